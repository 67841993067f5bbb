"""What a question points at with `@`, and how much of it a context holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from codeqa.search.mentions import Mention, resolve_mentions, take_mentions
from codeqa.store import Tables
from codeqa.text.tag import strip_tag
from codeqa.types import Chunk

Included = Literal["", "whole", "part", "none"]
Span = tuple[str, int, int]
"""Path, first line, last line."""


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
    _, written = take_mentions(strip_tag(question))
    return [_look(tables, text, chunks) for text in written]


def _look(tables: Tables, text: str, chunks: Sequence[Chunk] | None) -> MentionCoverage:
    found, _ = resolve_mentions(tables, [text])
    if not found:
        return MentionCoverage(text, "", places=0)
    mention = found[0]
    sent = _merged((chunk.path, chunk.start_line, chunk.end_line) for chunk in chunks or ())
    if mention.folders:
        held = sum(_length(span) for span in sent if span[0].startswith(mention.folders))
        some: Included = "" if chunks is None else "part" if held else "none"
        places = len(mention.folders)
        return MentionCoverage(text, "folder", mention.folders[0], 0, 0, places, some, held)
    meant = _meant(tables, mention)
    held = sum(_shared(one, other) for one in meant for other in sent)
    lines = sum(map(_length, meant))
    included: Included = "none" if not held else "whole" if held >= lines else "part"
    path, first, last = meant[0] if meant else (mention.files[0], 0, 0)
    if mention.files:
        first, last = mention.lines or (0, 0)
    return MentionCoverage(
        text=text,
        kind="file" if mention.files else "symbol",
        path=path,
        line=first,
        end_line=last,
        places=len(mention.files or mention.units),
        included="" if chunks is None else included,
        held=held,
        lines=lines,
    )


def _meant(tables: Tables, mention: Mention) -> list[Span]:
    """Path and lines of what is meant; of a file the lines that its units cover."""
    if mention.units:
        units = tables.by_ids(mention.units)
    else:
        units = [unit for path in mention.files for unit in tables.in_file(path)]
    first, last = mention.lines or (1, 2**31)
    cut = ((u.path, max(u.start_line, first), min(u.end_line, last)) for u in units)
    spans = _merged(span for span in cut if _length(span) > 0)
    # The definition or file that stands for all is the one that was found first.
    order = {unit.path: place for place, unit in reversed(list(enumerate(units)))}
    return sorted(spans, key=lambda span: (order[span[0]], span[1]))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """`spans` without lines that stand in two of them, by path and line."""
    merged: list[Span] = []
    for path, first, last in sorted(spans):
        if merged and merged[-1][0] == path and first <= merged[-1][2] + 1:
            merged[-1] = (path, merged[-1][1], max(last, merged[-1][2]))
        else:
            merged.append((path, first, last))
    return merged


def _length(span: Span) -> int:
    return span[2] - span[1] + 1


def _shared(one: Span, other: Span) -> int:
    if one[0] != other[0]:
        return 0
    return max(0, min(one[2], other[2]) - max(one[1], other[1]) + 1)
