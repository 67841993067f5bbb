"""A traceback that was pasted into a question: its frames and its error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from codeqa.store import Tables
from codeqa.types import Unit

MOST_FRAMES = 100
"""Frames that are read: of a recursion that ran out of stack the innermost say all."""
LONGEST_END = 30
"""Parts of a frame's path that are compared."""

_PYTHON = re.compile(r'File "([^"\n]+)", line (\d{1,9})(?:, in ([^\n]+))?')
_OTHERS = re.compile(
    # `at Layer.handle [as x] (/app/router.js:12:5)`, `at com.shop.Cart.add(Cart.java:12)`, of Rust
    # `at ./src/cart.rs:12:5` and `panicked at src/cart.rs:12:5`, of Go `/app/cart.go:12 +0x1d`.
    r"^(?:[ \t]*at |.{0,200}\bpanicked at (?:'.{0,300}', )?|[ \t]+(?=\S+\.go:\d+ \+0x))"
    r"(?:(?P<function>[^\n(]{1,300}?) ?\()?"
    r"(?:file://)?(?P<path>[^\s():]+\.(?:[cm]?[jt]sx?|go|rs|java|kt|scala)):(?P<line>\d{1,9})",
    re.MULTILINE,
)
_PYTHON_ERROR = re.compile(r"^\s?([A-Za-z_][\w.]*(?:: .*)?)[ \t]*$", re.MULTILINE)
_ERROR = re.compile(
    r"^.*(?:(?:Error|Exception|panic)\b|panicked at ).*(?:(?<=:)\n.+)?$", re.MULTILINE
)
_LEFT_OVER = re.compile(
    r"^[ \t]*(?:at .*|\.\.\. \d+ more)$|Traceback \(most recent call last\):", re.MULTILINE
)
_FUNCTION = re.compile(r"([^\W\d]\w*)(?: \[as \w+\])?$")


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a traceback: a place on the machine where it was raised."""

    path: str
    line: int
    function: str = ""
    """Its bare name; '' where that is not said, or nothing that has one."""


@dataclass(frozen=True, slots=True)
class Traceback:
    """What was raised, and where; the innermost frame first."""

    error: str
    frames: tuple[Frame, ...]


def take_traceback(text: str) -> tuple[str, Traceback | None]:
    """`text` without the frames of the traceback in it, whose error stays; and the traceback."""
    found = list(_PYTHON.finditer(text))
    # `File "app.py", line 10` within a line, without its function, may as well be a sentence's.
    if found and ("\n" in text or any(one[3] for one in found)):
        frames = [_frame(*one.groups()) for one in reversed(found)]
        after = text[found[-1].end() :]
        raised = _PYTHON_ERROR.search(after)
        after = after[raised.start() :] if raised else ""
    elif found := list(_OTHERS.finditer(text)):
        # Of errors that caused each other the last is the root.
        cause = text.rfind("\nCaused by: ")
        ordered = sorted(found, key=lambda one: one.start() < cause)
        frames = [_frame(one["path"], one["line"], one["function"]) for one in ordered]
        errors: list[re.Match[str] | None] = [None, *_ERROR.finditer(text)]
        raised = errors[-1]
        after = text[found[-1].end() :].partition("\n")[2]
    else:
        return text, None
    rest = " ".join(_LEFT_OVER.sub(" ", f"{text[: found[0].start()]}\n{after}").split())
    error = " ".join(raised[0].split()) if raised else ""
    rest = rest if error in rest else f"{rest} {error}".strip()
    return rest, Traceback(error, tuple(frames[:MOST_FRAMES]))


def _frame(path: str, line: str, function: str | None) -> Frame:
    path, function = path.replace("\\", "/").removeprefix("./"), function or ""
    if "/" not in path and function.count(".") > 1:  # of Java: the file's folder is its package
        path = "/".join((*function.split(".")[:-2], path))
    name = _FUNCTION.search(function.strip())
    return Frame(path, int(line), name[1] if name else "")


def frames_here(tables: Tables, frames: Iterable[Frame]) -> list[tuple[Unit, int]]:
    """The unit of this repository around each frame that lies in it, and the line that is meant.

    The paths are another machine's. A frame lies here when the last two parts of its path are
    those of an indexed file, or all of its path is, and that file defines its function. Where the
    code has moved since, the line is the definition's first.
    """
    found: dict[tuple[str, int], tuple[Unit, int]] = {}
    by_name = tables.catalogue().by_file_name
    for frame in frames:
        known = by_name.get(frame.path.rstrip("/").rpartition("/")[2], ())
        for path in _alike(known, frame):
            units = tables.in_file(path)
            around = [unit for unit in units if unit.start_line <= frame.line <= unit.end_line]
            inner = min(around, key=lambda unit: unit.end_line - unit.start_line, default=None)
            named = [unit for unit in units if unit.name == frame.function]
            unit = inner if not frame.function or inner in named else next(iter(named), None)
            if unit is not None:
                line = frame.line if unit is inner else unit.start_line
                found.setdefault((unit.id, line), (unit, line))
                break
    return list(found.values())


def _alike(known: Iterable[str], frame: Frame) -> list[str]:
    """Those of `known` that share the longest end with the path of `frame`: two parts at least, or
    all of it and a function to know it by."""
    parts = [part for part in frame.path.split("/") if part][-LONGEST_END:]
    for first in range(max(1, len(parts) - 1)):
        end = "/".join(parts[first:])
        ends = [one for one in known if one == end or one.endswith(f"/{end}")]
        if sure := [one for one in ends if one == end or len(parts) > 1 or frame.function]:
            return sorted(sure, key=lambda one: (one.count("/"), one))
    return []
