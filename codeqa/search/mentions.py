"""Mentions in a question (`@src/app.py`, `@src/flask/`, `@Flask.route`, `@"a b/x.py"`), tracebacks.

A mentioned file or symbol is in the answer whatever the ranking says, a mentioned folder
restricts the search. A word with `@` that names nothing in the index (a decorator, a package) is a
plain word.
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
"""Most characters of a mention."""
MOST_FILES = 5
"""Most files of one name that a mention stands for, those nearest to the root."""
MOST_NAMED = 5_000
"""Most definitions of one name that are searched for the right owners: a large code base has
thousands called `__init__`."""
MOST_DEFINITIONS = 20
"""Most definitions of one name that a mention stands for."""
GUARANTEED = 3
"""Units of one mention that are sure to be returned: those that rank highest."""

FILE_ENDINGS = word_set("""
bash bat c cc cfg clj cljs cmake conf cpp cs css csv cxx dart env erl ex exs go gradle graphql
h haskell hh hpp hs html ini ipynb java jl js json jsx kt kts less lock lua m md mjs mm mod php
pl pm po properties proto ps1 py pyi pyx r rake rb rs rst sass scala scss sh sql sum svelte
swift tf toml ts tsx txt vue xml yaml yml zig zsh
""")
"""Endings that distinguish `app.py` in a question from `Flask.route`."""

_AT = re.compile(
    # After an ASCII letter it is an e-mail address, after a Chinese one (no blanks) a mention.
    r"(?<![A-Za-z0-9_.+%/\\=&@{-])@"
    rf"(?:\"([^\"\n]{{1,{LONGEST_MENTION}}})\"|“([^”\n]{{1,{LONGEST_MENTION}}})”|([^\s\"“”`<>@]{{1,{LONGEST_MENTION}}}))"
    r"|^(`{3,9})(?s:.*?)^\4",  # in a block of code it mentions nothing
    re.MULTILINE,
)
_LINES = re.compile(r"(?::|#L?)(\d{1,7})(?:[-–]L?(\d{1,7}))?$")
_TRAILING = ".,:;!?)]}'…。、，！？；：）」』】"
_CUT = re.compile(r"[(\[{,;'’`“”（「，。、；：！？]")
_NAME = re.compile(r"[A-Z_.:#]")
_FOREIGN = re.compile(r"[^\x00-\x7f]")

MOST_FRAMES = 100
"""Most frames that are parsed: after a stack overflow the innermost tell enough."""

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
    """The mention as written, without `@`."""
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """With a `/` at the end."""
    units: tuple[str, ...] = ()
    """Ids of definitions."""
    lines: tuple[int, int] | None = None
    """Lines of the file that are meant (`@app.py:10-20`)."""


def take_mentions(text: str) -> tuple[str, tuple[str, ...]]:
    """Return `text` without the `@` of mentions, and the text after each `@`."""
    mentions: dict[str, None] = {}

    def take(match: re.Match[str]) -> str:
        if mention := match[1] or match[2] or match[3]:
            mentions[mention] = None
        return mention or match[0]

    return _AT.sub(take, text), tuple(mentions)[:MOST_MENTIONS]


def as_mention(text: str) -> str:
    """Return what to write after `@` for `text`: in quotes if needed, '' where it is impossible."""
    for mention in (text, f'"{text}"', f"“{text}”"):
        match = _AT.fullmatch(f"@{mention}")
        if match and text in match.groups():
            return mention
    return ""


def resolve_mentions(tables: Tables, texts: Iterable[str]) -> tuple[list[Mention], list[str]]:
    """Return the mentions that `texts` stand for in the index, and the texts that stand for none.

    Each text is what follows an `@`.
    """
    mentions: list[Mention] = []
    unknown: list[str] = []
    for text in texts:
        mention = next(filter(None, (_find(tables, reading) for reading in readings(text))), None)
        if mention is None:
            unknown.append(text)
        elif mention not in mentions:
            mentions.append(mention)
    return mentions, unknown


def readings(mention: str) -> list[str]:
    """Return what `mention` may mean, the most literal first.

    That is with and without the punctuation, the call and the letters of another script that
    follow it.
    """
    text = mention.replace("\\", "/").removeprefix("./")
    before_call, ascii_start = _CUT.split(text, maxsplit=1)[0], _FOREIGN.split(text, maxsplit=1)[0]
    texts = [text, text.rstrip(_TRAILING), before_call, ascii_start]
    texts += [before_call.rstrip(_TRAILING), ascii_start.rstrip(_TRAILING)]
    return [reading for reading in dict.fromkeys(texts) if reading.strip("/.*?")]


def looks_like_path(text: str) -> bool:
    """Return whether a file or folder is meant rather than a name."""
    stem, _, ending = _LINES.sub("", text).rpartition(".")
    return "/" in text or (bool(stem) and ending.lower() in FILE_ENDINGS)


def guaranteed(hits: Sequence[Hit], mentions: Iterable[Mention]) -> tuple[Hit, ...]:
    """Return the best GUARANTEED of `hits` (best first) for each mention.

    For mentioned lines these are the units that overlap them and hold the fewest other lines.
    """
    chosen: dict[str, Hit] = {}
    for mention in mentions:
        of_mention = [h for h in hits if h.unit.id in mention.units or h.unit.path in mention.files]
        if mention.lines:
            first, last = mention.lines
            of_mention.sort(key=lambda hit: _beside(hit.unit, first, last))
        chosen.update((hit.unit.id, hit) for hit in of_mention[:GUARANTEED])
    return tuple(chosen.values())


def keep_guaranteed(hits: Sequence[Hit], mentioned: Sequence[Hit], top: int) -> tuple[Hit, ...]:
    """Return the first `top` of `hits`, with all of `mentioned` in place of the last of them.

    Never returns more than `top`.
    """
    ids = {hit.unit.id for hit in mentioned[:top]}
    others = [hit.unit.id for hit in hits if hit.unit.id not in ids]
    ids.update(others[: top - len(ids)])
    return tuple(hit for hit in hits if hit.unit.id in ids)


def _beside(unit: Unit, first: int, last: int) -> tuple[bool, int]:
    """Return a key that sorts by whether `unit` misses the lines, then by its other lines."""
    inside = min(unit.end_line, last) - max(unit.start_line, first) + 1
    return inside <= 0, unit.end_line - unit.start_line + 1 - inside if inside > 0 else 0


def _find(tables: Tables, text: str) -> Mention | None:
    lines = _LINES.search(text)
    file = _file_or_folder(tables, text[: lines.start()]) if lines else None
    if lines and file and file.files:
        first = int(lines[1])
        return Mention(text, files=file.files, lines=(first, int(lines[2] or first)))
    if looks_like_path(text):
        return _file_or_folder(tables, text) or _symbol(tables, text)
    return _symbol(tables, text) or _file_or_folder(tables, text)


def _file_or_folder(tables: Tables, text: str) -> Mention | None:
    catalogue = tables.catalogue()
    if not text.endswith("/") and (files := _ending_with(catalogue.paths, text.lstrip("/"))):
        return Mention(text, files=files)
    folders = _ending_with(catalogue.folders, text.strip("/") + "/") if "/" in text else ()
    return Mention(text, folders=folders) if folders else None


def _ending_with(paths: frozenset[str], end: str) -> tuple[str, ...]:
    """Return the one of `paths` that is `end`, else those that end with it.

    Where there is none, letters in another case count as the same.
    """
    if not end.strip("/"):
        return ()
    if end in paths:
        return (end,)
    for spelled in (str, str.lower):
        ending = spelled(end)
        matches = [path for path in paths if spelled(path) == ending]
        if not matches:
            matches = [path for path in paths if spelled(path).endswith("/" + ending)]
        if matches:
            return tuple(_shallowest_first(matches)[:MOST_FILES])
    return ()


def _shallowest_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: (path.count("/"), path))


def _symbol(tables: Tables, text: str) -> Mention | None:
    # A bare lower-case word may be anyone's decorator.
    source = definitions_called(tables, text, any_case=_NAME.search(text) is not None)
    if source and all(unit.kind == "module" for unit in source):
        return Mention(text, files=tuple(unit.path for unit in source[:MOST_FILES]))
    ids = tuple(unit.id for unit in source[:MOST_DEFINITIONS] if unit.kind != "module")
    return Mention(text, units=ids) if ids else None


def definitions_called(tables: Tables, text: str, *, any_case: bool = False) -> list[Unit]:
    """Return the definitions called `text`: a name, with or without its owners and module.

    With `any_case`, letters in another case count as the same where nothing else is found. Where
    some definitions are in source code, return only those.
    """
    dotted = "." + re.sub(r"::|#|->|/", ".", text).strip(".")
    key = name_key(dotted.rpartition(".")[2])
    exact, others, lower = list[Unit](), list[Unit](), dotted.lower()
    for unit in tables.named([key], limit=MOST_NAMED) if key else []:
        if unit.kind in TEXT_KINDS:
            continue
        name = whole_name(unit.path, unit.qualified_name)
        if name.endswith(dotted):
            exact.append(unit)
        elif any_case and name.lower().endswith(lower):
            others.append(unit)
    units = exact or others
    return [unit for unit in units if unit.role == "source"] or units


def whole_name(path: str, qualified_name: str) -> str:
    """Return the module's path, owners and name with `.` before each: `.src.flask.app.Flask.route`.

    A mention stands for the definitions whose whole name ends with it.
    """
    module = (path.rpartition(".")[0] or path).replace("/", ".")
    return f".{module}.{re.sub(r'::|#|->', '.', qualified_name)}"


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of a traceback, with a path of the machine where it was raised."""

    path: str
    line: int
    function: str = ""
    """Bare name of the function; '' if the traceback gives none."""


@dataclass(frozen=True, slots=True)
class Traceback:
    """The error that was raised, and its frames, the innermost first."""

    error: str
    frames: tuple[Frame, ...]


def take_traceback(text: str) -> tuple[str, Traceback | None]:
    """Return `text` without the frames of the traceback in it, and the traceback.

    The error stays in the text.
    """
    matches = list(_PYTHON.finditer(text))
    # `File "app.py", line 10` within a line, without its function, may be part of a sentence.
    if matches and ("\n" in text or any(match[3] for match in matches)):
        frames = [_frame(*match.groups()) for match in reversed(matches)]
        after = text[matches[-1].end() :]
        error_match = _PYTHON_ERROR.search(after)
        after = after[error_match.start() :] if error_match else ""
    elif matches := list(_OTHERS.finditer(text)):
        # Where errors caused each other, the last is the root.
        cause = text.rfind("\nCaused by: ")
        root_first = sorted(matches, key=lambda match: match.start() < cause)
        frames = [_frame(match["path"], match["line"], match["function"]) for match in root_first]
        errors = list(_ERROR.finditer(text))
        error_match = errors[-1] if errors else None
        after = text[matches[-1].end() :].partition("\n")[2]
    else:
        return text, None
    rest = " ".join(_LEFT_OVER.sub(" ", f"{text[: matches[0].start()]}\n{after}").split())
    error = " ".join(error_match[0].split()) if error_match else ""
    rest = rest if error in rest else f"{rest} {error}".strip()
    return rest, Traceback(error, tuple(frames[:MOST_FRAMES]))


def _frame(path: str, line: str, function: str | None) -> Frame:
    path, function = path.replace("\\", "/").removeprefix("./"), function or ""
    if "/" not in path and function.count(".") > 1:  # Java: the folder of a file is its package
        path = "/".join(function.split(".")[:-2] + [path])
    name = _FUNCTION.search(function.strip())
    return Frame(path, int(line), name[1] if name else "")


def frames_here(tables: Tables, frames: Iterable[Frame]) -> list[tuple[Unit, int]]:
    """Return the unit around each frame that lies in this repository, and the line that is meant.

    The paths are another machine's. A frame lies here when the last two parts of its path are
    those of an indexed file, or all of its path is, and that file defines its function. Where the
    code has moved since, the line is the definition's first.
    """
    units_by_line: dict[tuple[str, int], tuple[Unit, int]] = {}
    by_name = tables.catalogue().by_file_name
    for frame in frames:
        paths = by_name.get(frame.path.rstrip("/").rpartition("/")[2], ())
        for path in _alike(paths, frame):
            units = tables.in_file(path)
            unit = innermost = smallest_around(units, frame.line)
            namesakes = [unit for unit in units if unit.name == frame.function]
            if frame.function and innermost not in namesakes:
                unit = namesakes[0] if namesakes else None
            if unit is not None:
                line = frame.line if unit is innermost else unit.start_line
                units_by_line.setdefault((unit.id, line), (unit, line))
                break
    return list(units_by_line.values())


def smallest_around(units: Iterable[Unit], line: int) -> Unit | None:
    """Return the smallest of `units` that holds the line of its file; None for none."""
    around = [unit for unit in units if unit.start_line <= line <= unit.end_line]
    return min(around, key=lambda unit: unit.end_line - unit.start_line, default=None)


def _alike(paths: Collection[str], frame: Frame) -> list[str]:
    """Return those of `paths` that share the longest end with the path of `frame`.

    They share two parts at least, or all of the path where the frame has a function to check.
    """
    parts = [part for part in frame.path.split("/") if part]
    deepest = max((path.count("/") + 1 for path in paths), default=0)
    for first in range(max(0, len(parts) - deepest), max(1, len(parts) - 1)):
        end = "/".join(parts[first:])
        matches = [path for path in paths if path == end or path.endswith(f"/{end}")]
        if len(parts) == 1 and not frame.function:  # a bare file name must be the whole path
            matches = [path for path in matches if path == end]
        if matches:
            return _shallowest_first(matches)
    return []
