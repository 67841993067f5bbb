"""The shapes in which models cite, made one while the answer arrives: `[path:12-34]`.

The model is asked for that form and for the numbers or Ids of chunks, and writes what it has seen
elsewhere as well: `app.py:12`, `app.py#L3-L9`, `[f.py:L1-L2, g.py:3-4]`, `【f.py:1-2】`, `[1]`.
To a reader `[Chunk 2]` says nothing, and it means another chunk in the next turn. A citation whose
lines do not speak of the symbol before it is led to that symbol's definition, if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeqa.chat.citations import CitedCode, find_citations, next_fence, symbols_before
from codeqa.types import Chunk

LONGEST = 200
"""Characters that may wait for the end of what has begun: five chunks by Id."""

_LINES = r"[:#]\s?L?(\d{1,7})(?:\s?[-–—]\s?L?(\d{1,7}))?"
_SHAPES = re.compile(
    rf"(?P<code>(?<!`)(?P<marks>`+)(?!`)(?P<inside>[^\n]{{1,{LONGEST}}}?)(?<!`)(?P=marks)(?!`))"
    rf"|(?<![\w\])])\[(?P<square>(?:[^\[\]\n`]|\[[^\[\]\n`]*\]){{1,{LONGEST}}})\](?![(\[])"
    rf"|【(?P<lens>[^【】\n]{{1,{LONGEST}}})】"
    r"|\((?P<round>(?:chunks?|ctx_|id: ?ctx_)[^()\n]{1,80})\)"
    rf"|(?<![\w/.:@`-])(?P<path>[\w.@+/-]*\w\.[A-Za-z]\w{{0,9}}){_LINES}(?![\w:]|\.\d)",
    re.IGNORECASE,
)
_CHUNK = re.compile(r"(?:id: ?)?(ctx_[0-9a-f]{8})|chunks?[ #]*(\d{1,3})", re.IGNORECASE)
_NUMBER = re.compile(r"#?(\d{1,3})")
_PLACE = re.compile(rf"(?:†)?(.+?){_LINES}")
_RANGE = re.compile(r"L?(\d{1,7})(?:\s?[-–—]\s?L?(\d{1,7}))?", re.IGNORECASE)
_APART = re.compile(r"\s*(?:[,;&]|\band\b)\s*")


class CitationWriter:
    """Rewrites the answer that is fed to it piece by piece; what may still become a citation waits.

    How an answer is cut into pieces changes nothing. What cannot be told for sure stays as it is.
    """

    def __init__(self, chunks: Sequence[Chunk], code: CitedCode) -> None:
        self._code = code
        self._chunks: dict[str, str] = {}
        for number, chunk in enumerate(chunks, 1):
            place = f"[{chunk.path}:{chunk.start_line}-{chunk.end_line}]"
            if find_citations(place):  # a path may hold what would end it early
                self._chunks[str(number)] = self._chunks[chunk.id] = place
        self._line = ""
        """The line that is being written, as the model wrote it."""
        self._told = 0
        """How much of it has been decided."""
        self._fence = ""
        self._written = ""
        """What was made of the part that has been decided."""

    def feed(self, text: str) -> str:
        """What can be told of the answer after `text`, beyond what was told before."""
        told = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line += line
            told += [self._decide(len(self._line)), "\n"]
            self._fence, _ = next_fence(self._fence, self._line)
            self._line, self._told, self._written = "", 0, ""
        self._line += rest
        told.append(self._decide(max(self._told, _safe_end(self._line))))
        return "".join(told)

    def close(self) -> str:
        """What still waited when the answer ends."""
        return self._decide(len(self._line))

    def _decide(self, end: int) -> str:
        """The line up to `end`, rewritten; only what follows the part that was told before."""
        if self._fence or next_fence("", self._line)[1]:
            made = self._line[self._told : end]
        else:
            made = ""
            at = self._told
            for match in _SHAPES.finditer(self._line, self._told, end):
                made += self._line[at : match.start()]
                said = self._written + made
                made += self._cited(match, said)
                at = match.end()
            made += self._line[at:end]
        self._told = end
        self._written += made
        return made

    def _cited(self, match: re.Match[str], said: str) -> str:
        """The citations that `match` stands for, as `said` before them asks for; else `match`."""
        if match["path"]:
            return self._place(said, match["path"], *match.groups()[-2:]) or match[0]
        if match["code"]:
            one = _PLACE.fullmatch(match["inside"].strip())
            return (self._place(said, *one.groups()) if one else "") or match[0]
        inner = match["square"] or match["lens"] or match["round"]
        listed = ", ".join(dict.fromkeys(self._listed(inner, said)))
        return (f"({listed})" if match["round"] and listed else listed) or match[0]

    def _listed(self, inner: str, said: str) -> list[str]:
        """The places in brackets; [] unless each part is one."""
        whole = _PLACE.fullmatch(inner)  # a path may hold a comma
        if whole and (place := self._place(said, *whole.groups())):
            return [place]
        parts = _APART.split(inner)
        numbered = all(map(_NUMBER.fullmatch, parts)) or bool(_CHUNK.match(parts[0]))
        found, path = [], ""
        for part in parts:
            if chunk := _CHUNK.fullmatch(part):
                place = self._chunks.get((chunk[1] or chunk[2]).lower(), "")
            elif numbered and (number := _NUMBER.fullmatch(part)):
                place = self._chunks.get(number[1], "")
            elif one := _PLACE.fullmatch(part):
                path = one[1]
                place = self._place(said, *one.groups())
            else:
                lines = _RANGE.fullmatch(part)
                place = self._place(said, path, *lines.groups()) if lines else ""
            if not place:
                return []
            found.append(place)
        return found

    def _place(self, said: str, written: str, first: str, last: str | None = None) -> str:
        """`[path:first-last]`, or the definition that `said` names, where these lines have nothing
        to do with it; '' where no file is called like what is `written`."""
        code, path = self._code, self._code.path_of(written.strip())
        if not path:
            return ""
        start, end = int(first), int(last or first)
        named = [symbol for symbol in symbols_before(said) if not code.path_of(symbol)]
        exists = 1 <= start <= end <= len(code.lines(path) or ())
        if named and not (exists and code.speaks_of(path, start, end, named)):
            unit = code.definition(named[-1])
            if unit:
                path, start, end = unit.path, unit.start_line, unit.end_line
        return f"[{path}:{start}-{end}]" if last or start != end else f"[{path}:{start}]"


def _safe_end(line: str) -> int:
    """Where in `line` nothing begins that what follows may complete: not in its last word, nor in
    the word that brackets or code begin in which the last word is a part of."""
    nearest = max(0, len(line) - LONGEST - 4)
    cut, before = len(line), -1
    while cut != before:
        before = cut
        cut = max(line.rfind(" ", 0, cut), line.rfind("\t", 0, cut)) + 1
        for opens, closes in ("[]", "【】", "()"):
            at = line.find(opens, nearest, cut)
            while at >= 0 and _closed(line, at, opens, closes) <= cut:
                at = line.find(opens, at + 1, cut)
            cut = at if at >= 0 else cut
        if line.count("`", 0, cut) % 2 and line.rfind("`", 0, cut) >= nearest:
            cut = line.rfind("`", 0, cut)
    return cut if cut >= nearest else len(line)


def _closed(line: str, at: int, opens: str, closes: str) -> int:
    """Where the bracket at `at` is closed; past the end where it is not."""
    depth = 0
    for place in range(at, len(line)):
        depth += (line[place] == opens) - (line[place] == closes)
        if not depth:
            return place + 1
    return len(line) + 1
