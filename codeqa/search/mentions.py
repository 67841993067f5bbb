"""What a question points at: `@src/app.py`, `@src/flask/`, `@Flask.route`, `@"a b/x.py"`; and the
frames of a traceback that was pasted into it.

A mentioned file or symbol is in the answer whatever the ranking says, a mentioned folder
restricts the search. A word with `@` that nothing in the index is called by (a decorator, a
package) is a plain word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from codeqa.store import Tables
from codeqa.text.tokens import name_key, word_set
from codeqa.types import TEXT_KINDS, Hit, Unit

MOST_MENTIONS = 10
"""Mentions that are looked up; a question points at a few places."""
LONGEST_MENTION = 300
"""Characters of one."""
MOST_FILES = 5
"""Files of one name that a mention stands for, those nearest to the root."""
MOST_NAMED = 5_000
"""Definitions of one name among which those with the right owners are looked for: a large code
base has thousands called `__init__`."""
MOST_DEFINITIONS = 20
"""Definitions of one name that a mention stands for."""
GUARANTEED = 3
"""Units of one mention that are sure to be returned: those that the ranking likes best."""

FILE_ENDINGS = word_set("""
bash bat c cc cfg clj cljs cmake conf cpp cs css csv cxx dart env erl ex exs go gradle graphql
h haskell hh hpp hs html ini ipynb java jl js json jsx kt kts less lock lua m md mjs mm mod php
pl pm po properties proto ps1 py pyi pyx r rake rb rs rst sass scala scss sh sql sum svelte
swift tf toml ts tsx txt vue xml yaml yml zig zsh
""")
"""Endings by which `app.py` in a question is told from `Flask.route`."""

_AT = re.compile(
    # Behind an ASCII letter it is an address, behind a Chinese one (no blanks) a mention.
    r"(?<![A-Za-z0-9_.+%/\\=&@{-])@"
    rf"(?:\"([^\"\n]{{1,{LONGEST_MENTION}}})\"|“([^”\n]{{1,{LONGEST_MENTION}}})”|([^\s\"“”`<>@]{{1,{LONGEST_MENTION}}}))"
)
_LINES = re.compile(r"(?::|#L?)(\d{1,7})(?:[-–]L?(\d{1,7}))?$")
_TRAILING = ".,:;!?)]}'…。、，！？；：）」』】"
_CUT = re.compile(r"[(\[{,;'’`“”（「，。、；：！？]")
_NAME = re.compile(r"[A-Z_.:#]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")

MOST_FRAMES = 100
"""Frames that are read: of a recursion that ran out of stack the innermost say all."""

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
class Mention:
    """Something of the index that the question points at."""

    text: str
    """As written, without `@`."""
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """With a `/` at the end."""
    units: tuple[str, ...] = ()
    """Ids of definitions."""
    lines: tuple[int, int] | None = None
    """Lines of the file that are meant (`@app.py:10-20`)."""


def take_mentions(text: str) -> tuple[str, tuple[str, ...]]:
    """`text` without the `@` of mentions, and what stood behind each `@`."""
    found: dict[str, None] = {}

    def take(match: re.Match[str]) -> str:
        written = match[1] or match[2] or match[3]
        found[written] = None
        return written

    return _AT.sub(take, text), tuple(found)[:MOST_MENTIONS]


def as_mention(text: str) -> str:
    """What stands behind `@` for `text`: in quotes where it must, '' where nothing would do."""
    for quoted in (text, f'"{text}"', f"“{text}”"):
        if (found := _AT.fullmatch(f"@{quoted}")) and text in found.groups():
            return quoted
    return ""


def resolve_mentions(tables: Tables, written: Iterable[str]) -> tuple[list[Mention], list[str]]:
    """What each of `written` stands for in the index, and those that stand for nothing."""
    found: list[Mention] = []
    unknown: list[str] = []
    for text in written:
        mention = next(filter(None, (_find(tables, one) for one in readings(text))), None)
        if mention is None:
            unknown.append(text)
        elif mention not in found:
            found.append(mention)
    return found, unknown


def readings(written: str) -> list[str]:
    """What `written` may mean, the most literal first: with and without the punctuation, the
    call and the letters of another script that follow it."""
    text = written.replace("\\", "/").removeprefix("./")
    bare = text.rstrip(_TRAILING)
    cut = [_CUT.split(text, maxsplit=1)[0], _FOREIGN.split(text, maxsplit=1)[0]]
    found = [text, bare, *cut, *(one.rstrip(_TRAILING) for one in cut)]
    return [one for one in dict.fromkeys(found) if one.strip("/.*?")]


def looks_like_path(text: str) -> bool:
    """Whether a file or folder is meant rather than a name."""
    stem, _, ending = _LINES.sub("", text).rpartition(".")
    return "/" in text or (bool(stem) and ending.lower() in FILE_ENDINGS)


def guaranteed(hits: Sequence[Hit], mentions: Iterable[Mention]) -> tuple[Hit, ...]:
    """Of each mention the best GUARANTEED of `hits` (best first); of lines the units that overlap
    them first, and those that hold the fewest others."""
    chosen: dict[str, Hit] = {}
    for mention in mentions:
        held = [h for h in hits if h.unit.id in mention.units or h.unit.path in mention.files]
        if mention.lines:
            first, last = mention.lines
            held.sort(key=lambda hit: _beside(hit.unit, first, last))
        chosen.update((hit.unit.id, hit) for hit in held[:GUARANTEED])
    return tuple(chosen.values())


def keep_guaranteed(hits: Sequence[Hit], mentioned: Sequence[Hit], top: int) -> tuple[Hit, ...]:
    """The first `top` of `hits`, the last of them giving way to those of `mentioned` that would
    be missing; never more than `top`."""
    wanted = {hit.unit.id for hit in mentioned[:top]}
    others = [hit.unit.id for hit in hits if hit.unit.id not in wanted]
    kept = wanted.union(others[: top - len(wanted)])
    return tuple(hit for hit in hits if hit.unit.id in kept)


def _beside(unit: Unit, first: int, last: int) -> tuple[bool, int]:
    """Sorts by whether `unit` misses the lines, then by how many others it holds."""
    inside = min(unit.end_line, last) - max(unit.start_line, first) + 1
    return inside <= 0, unit.end_line - unit.start_line + 1 - inside if inside > 0 else 0


def _find(tables: Tables, text: str) -> Mention | None:
    lines = _LINES.search(text)
    if lines and (found := _file_or_folder(tables, text[: lines.start()])) and found.files:
        first = int(lines[1])
        return Mention(text, files=found.files, lines=(first, int(lines[2] or first)))
    if looks_like_path(text):
        return _file_or_folder(tables, text) or _symbol(tables, text)
    return _symbol(tables, text) or _file_or_folder(tables, text)


def _file_or_folder(tables: Tables, text: str) -> Mention | None:
    catalogue = tables.catalogue()
    if not text.endswith("/") and (files := _ending_so(catalogue.paths, text.lstrip("/"))):
        return Mention(text, files=files)
    folders = _ending_so(catalogue.folders, text.strip("/") + "/") if "/" in text else ()
    return Mention(text, folders=folders) if folders else None


def _ending_so(known: frozenset[str], wanted: str) -> tuple[str, ...]:
    """The one of `known` that is `wanted`, else those that end so; in other letters if not in
    these."""
    if not wanted.strip("/") or wanted in known:
        return (wanted,) if wanted in known else ()
    for spelled in (str, str.lower):
        end = spelled(wanted)
        exact = [one for one in known if spelled(one) == end]
        if found := exact or [one for one in known if spelled(one).endswith("/" + end)]:
            return tuple(sorted(found, key=lambda one: (one.count("/"), one))[:MOST_FILES])
    return ()


def _symbol(tables: Tables, text: str) -> Mention | None:
    # A bare lower-case word may be anyone's decorator.
    source = definitions_called(tables, text, any_case=_NAME.search(text) is not None)
    if source and all(unit.kind == "module" for unit in source):
        return Mention(text, files=tuple(unit.path for unit in source[:MOST_FILES]))
    ids = tuple(unit.id for unit in source[:MOST_DEFINITIONS] if unit.kind != "module")
    return Mention(text, units=ids) if ids else None


def definitions_called(tables: Tables, text: str, *, any_case: bool = False) -> list[Unit]:
    """Definitions called `text`: a name, or one with its owners or its module before it; with
    `any_case` in other letters, if not in these. Where some are in source, only those."""
    dotted = re.sub(r"::|#|->|/", ".", text).strip(".")
    key = name_key(dotted.rpartition(".")[2])
    named = tables.named([key], limit=MOST_NAMED) if key else []
    called: list[Unit] = []
    for spelled in (str, str.lower) if any_case else (str,):
        called = called or [
            unit
            for unit in named
            if unit.kind not in TEXT_KINDS
            and spelled(whole_name(unit.path, unit.qualified_name)).endswith(spelled(f".{dotted}"))
        ]
    return [unit for unit in called if unit.role == "source"] or called


def whole_name(path: str, qualified_name: str) -> str:
    """`.src.flask.app.Flask.route`: the module's path, owners and name with `.` before each.

    A mention stands for the definitions whose whole name ends with it.
    """
    module = (path.rpartition(".")[0] or path).replace("/", ".")
    return f".{module}.{re.sub(r'::|#|->', '.', qualified_name)}"


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
            inner = smallest_around(units, frame.line)
            named = [unit for unit in units if unit.name == frame.function]
            unit = inner if not frame.function or inner in named else next(iter(named), None)
            if unit is not None:
                line = frame.line if unit is inner else unit.start_line
                found.setdefault((unit.id, line), (unit, line))
                break
    return list(found.values())


def smallest_around(units: Iterable[Unit], line: int) -> Unit | None:
    """Return the smallest of `units` that holds the line of its file; None for none."""
    around = [unit for unit in units if unit.start_line <= line <= unit.end_line]
    return min(around, key=lambda unit: unit.end_line - unit.start_line, default=None)


def _alike(known: Collection[str], frame: Frame) -> list[str]:
    """Those of `known` that share the longest end with the path of `frame`: two parts at least, or
    all of it and a function to know it by."""
    parts = [part for part in frame.path.split("/") if part]
    deepest = max((one.count("/") + 1 for one in known), default=0)
    for first in range(max(0, len(parts) - deepest), max(1, len(parts) - 1)):
        end = "/".join(parts[first:])
        ends = [one for one in known if one == end or one.endswith(f"/{end}")]
        if sure := [one for one in ends if one == end or len(parts) > 1 or frame.function]:
            return sorted(sure, key=lambda one: (one.count("/"), one))
    return []
