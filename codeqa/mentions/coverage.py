"""What a question points at with `@`, and how much of it a context holds."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from codeqa.search.mentions import resolve_mentions, take_mentions
from codeqa.store import Tables
from codeqa.text import strip_tag
from codeqa.types import Chunk

Included = Literal["", "whole", "part", "none"]


@dataclass(frozen=True, slots=True)
class MentionCoverage:
    """Something that a question points at."""

    text: str
    """As written, without `@` and quotes."""
    kind: str
    """`file` · `folder` · `symbol` · '' for what nothing in the index is called."""
    path: str = ""
    """Of the first file, folder or definition that is meant."""
    line: int = 0
    end_line: int = 0
    """Lines that are meant, 0 for a whole file and a folder."""
    places: int = 1
    """How many files, folders or definitions are meant."""
    included: Included = ""
    """How much of them the context holds; '' while there is none."""
    held: int = 0
    lines: int = 0
    """Lines that the context holds, and lines that are meant; blank ones between two
    definitions count as neither. Of a folder all lines in it that the context holds."""


def mention_coverage(
    tables: Tables, question: str, chunks: Sequence[Chunk] | None = None
) -> list[MentionCoverage]:
    """What each mention of `question` stands for, and how much of it `chunks` hold.

    `chunks` are those of the context that was sent, None before there is one.
    """
    sent = _lines((chunk.path, chunk.start_line, chunk.end_line) for chunk in chunks or ())
    found = [_look(tables, text, sent) for text in take_mentions(strip_tag(question))[1]]
    return [replace(one, included="") for one in found] if chunks is None else found


def _look(tables: Tables, text: str, sent: set[tuple[str, int]]) -> MentionCoverage:
    found, _ = resolve_mentions(tables, [text])
    if not found:
        return MentionCoverage(text, "", places=0)
    mention = found[0]
    units = tables.by_ids(mention.units)
    units += [unit for path in mention.files for unit in tables.in_file(path)]
    first, last = mention.lines or (1, sys.maxsize)
    # Of a file the lines that its units cover; of a folder whatever was sent.
    meant = _lines((u.path, max(u.start_line, first), min(u.end_line, last)) for u in units)
    held = {line for line in sent if line in meant or line[0].startswith(mention.folders)}
    included: Included = "none" if not held else "whole" if held == meant else "part"
    if mention.units:
        kind, path, first, last = "symbol", units[0].path, units[0].start_line, units[0].end_line
    else:
        kind, path = "file" if mention.files else "folder", (mention.files or mention.folders)[0]
        first, last = mention.lines or (0, 0)
    places = len(mention.units or mention.files or mention.folders)
    return MentionCoverage(text, kind, path, first, last, places, included, len(held), len(meant))


def _lines(spans: Iterable[tuple[str, int, int]]) -> set[tuple[str, int]]:
    """Path and number of each line in `spans` of path, first and last line."""
    return {(path, line) for path, first, last in spans for line in range(first, last + 1)}
