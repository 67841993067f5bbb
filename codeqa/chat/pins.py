"""Places in the code that a user wants in the context: `path:12-34`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from codeqa.chat.context_selection import place_of
from codeqa.context import chunk_id
from codeqa.errors import NotFoundError, UsageError
from codeqa.files import Files
from codeqa.types import Chunk

PLACES = 20
"""Places that may be pinned, or excluded, at once: more than a context has room for."""

_PLACE = re.compile(r"(?P<path>.+):(?P<start>\d{1,9})-(?P<end>\d{1,9})", re.DOTALL)


def check_places(places: Iterable[str]) -> tuple[str, ...]:
    """`places` as they are, each once. Raises UsageError for one that is none, or too many."""
    checked = tuple(dict.fromkeys(places))
    if len(checked) > PLACES:
        raise UsageError(f"More than {PLACES} places were given.", "Give fewer.")
    for place in checked:
        if not _PLACE.fullmatch(place):
            raise UsageError(f"{place[:80]!r} is no place.", "Write it as path:first-last.")
    return checked


def read_place(files: Files, place: str, known: Iterable[Chunk] = ()) -> Chunk:
    """The chunk of `place`, of `known` if it is among them, else as the file is now.

    Raises UsageError when it is no place, NotFoundError when the file does not have it.
    """
    for chunk in known:
        if place_of(chunk) == place:
            return chunk
    match = _PLACE.fullmatch(place)
    if match is None:
        raise UsageError(f"{place[:80]!r} is no place.", "Write it as path:first-last.")
    path, start, end = match["path"], int(match["start"]), int(match["end"])
    file = files.read(path)
    lines = file.text.split("\n")
    if not 1 <= start <= end <= len(lines):
        raise NotFoundError(
            f"{path} has no lines {start}-{end}.", f"It has {len(lines):,} lines now."
        )
    content = "\n".join(lines[start - 1 : end])
    return Chunk(chunk_id(path, place, content), path, start, end, file.language, content)
