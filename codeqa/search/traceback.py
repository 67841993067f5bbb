"""A traceback that was pasted into a question: its frames and its error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codeqa.store import Tables
from codeqa.text.tokens import last_word
from codeqa.types import Unit

MOST_FRAMES = 100
"""Frames that are read: of a recursion that ran out of stack the innermost say all."""

_PYTHON = re.compile(r'File "([^"\n]+)", line (\d+)(?:, in ([^\n]+))?')
_OTHERS = re.compile(
    # JavaScript: `at Layer.handle [as handle_request] (/app/router.js:12:5)`
    r"^\s*at (?:(?P<js>[^\n(]+?) \()?(?P<js_path>[^\s()]+\.(?:[cm]?[jt]sx?)):(?P<js_line>\d+):\d+"
    # Java and its kin: `at com.shop.Cart.add(Cart.java:12)`
    r"|^\s*at (?P<jvm>[\w.$/<>@]+)\((?P<jvm_path>\w+\.(?:java|kt|scala|groovy)):(?P<jvm_line>\d+)\)"
    # Go: the call, and below it `	/app/cart.go:12 +0x1d`
    r"|^(?P<go>\S[^\n]{0,200})\([^\n]{0,300}\)\n\s+(?P<go_path>\S+\.go):(?P<go_line>\d+)"
    # Rust: `3: shop::add` and below it `at ./src/cart.rs:12:5`; `panicked at src/cart.rs:12:5`
    r"|^\s*\d+: (?P<rs>\S[^\n]*)\n\s+at (?P<rs_path>\S+\.rs):(?P<rs_line>\d+)"
    r"|panicked at (?P<panic>)(?:'[^\n]*', )?(?P<panic_path>\S+\.rs):(?P<panic_line>\d+)",
    re.MULTILINE,
)
_PYTHON_ERROR = re.compile(r"^\s?([A-Za-z_][\w.]*(?:: .*)?)\s*$", re.MULTILINE)
_ERROR = re.compile(
    r"^.*(?:(?:Error|Exception|panic)\b|panicked at ).*(?:(?<=:)\n.+)?$", re.MULTILINE
)
_OTHER_FRAMES = re.compile(r"^\s*(?:at .*|\.\.\. \d+ more)$", re.MULTILINE)
_NOISE = re.compile(r"(?:::\{\{closure\}\}|::h[0-9a-f]{16}|\s*\[as [^\]]+\]|<[^<>]*>)+$")
_LAST_NAME = re.compile(r"([^\W\d]\w*)\W*$")


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a traceback: a place on the machine where it was raised."""

    path: str
    line: int
    function: str = ""
    """As the traceback calls it; '' where it does not."""


@dataclass(frozen=True, slots=True)
class Traceback:
    """What was raised, and where; the innermost frame first."""

    error: str
    frames: tuple[Frame, ...]


def take_traceback(text: str) -> tuple[str, Traceback | None]:
    """`text` without the frames of the traceback in it, whose error stays; and the traceback."""
    found = list(_PYTHON.finditer(text))
    python = bool(found)
    found = found or list(_OTHERS.finditer(text))
    if not found:
        return text, None
    before, after = text[: found[0].start()], text[found[-1].end() :]
    if python:
        before = before.replace("Traceback (most recent call last):", " ")
        raised = _PYTHON_ERROR.search(after)
        after = after[raised.start() :] if raised else ""
        frames = [Frame(one[1], int(one[2]), one[3] or "") for one in reversed(found)]
    else:
        # Of errors that caused each other the last is the root.
        raised = ([*_ERROR.finditer(text)] or [None])[-1]
        after = _OTHER_FRAMES.sub("", after.partition("\n")[2])
        cause = text.rfind("\nCaused by: ")
        frames = [_frame(one) for one in sorted(found, key=lambda one: one.start() < cause)]
    error = " ".join(raised[0].split()) if raised else ""
    rest = " ".join(f"{before} {after}".split())
    rest = rest if error in rest else f"{rest} {error}"
    return rest, Traceback(error, tuple(frames[:MOST_FRAMES]))


def _frame(match: re.Match[str]) -> Frame:
    shape = str(match.lastgroup).removesuffix("_line")
    path, function = match[f"{shape}_path"], match[shape] or ""
    if shape == "jvm":  # a file's folder is its package
        package = function.rpartition("/")[2].split(".")[:-2]
        path = "/".join((*package, path))
    return Frame(path.removeprefix("file://"), int(match[f"{shape}_line"]), function)


def _bare(function: str) -> str:
    """`handle` of `Layer.handle [as x]`, `Serve` of `main.(*Server).Serve`, '' of `<module>`."""
    name = _LAST_NAME.search(_NOISE.sub("", function.strip()))
    return name[1] if name else ""


def frames_here(tables: Tables, frames: Iterable[Frame]) -> list[tuple[Unit, int]]:
    """The unit of this repository around each frame that lies in it, and the line that is meant.

    The paths are another machine's. A frame lies here when the last two parts of its path are
    those of an indexed file, or all of its path is, and that file defines its function. Where the
    code has moved since, the line is the definition's first.
    """
    known = tables.catalogue().paths
    found: dict[tuple[str, int], tuple[Unit, int]] = {}
    for frame in frames:
        for path in _alike(known, frame):
            units = tables.in_file(path)
            around = [unit for unit in units if unit.start_line <= frame.line <= unit.end_line]
            inner = min(around, key=lambda unit: unit.end_line - unit.start_line, default=None)
            name = _bare(frame.function)
            named = [unit for unit in units if unit.name == name]
            # Of methods that are called so that of the class which the frame names.
            named.sort(key=lambda unit: last_word(unit.class_name) not in frame.function)
            unit = inner if not name or inner in named else (named or [None])[0]
            if unit is not None:
                line = frame.line if unit is inner else unit.start_line
                found.setdefault((unit.id, line), (unit, line))
                break
    return list(found.values())


def _alike(known: Iterable[str], frame: Frame) -> list[str]:
    """Those of `known` that share the longest end with the path of `frame`: two parts at least, or
    all of it and a function to know it by."""
    path = frame.path.replace("\\", "/").removeprefix("./")
    parts = [part for part in path.split("/") if part]
    for first in range(max(1, len(parts) - 1)):
        end = "/".join(parts[first:])
        if ends := [one for one in known if one == end or one.endswith(f"/{end}")]:
            sure = [one for one in ends if one == end or len(parts) > 1 or _bare(frame.function)]
            return sorted(sure, key=lambda one: (one.count("/"), one))
    return []
