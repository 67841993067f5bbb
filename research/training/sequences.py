"""Token sequences of the pairs, for an encoder that reads words in their order.

OUT/sequences has the format of `features.py`, but its "bags" hold the pieces of a text
in their order, repetitions included, and every count is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from codeqa.embeddings.pieces import (
    BODY_CHARACTERS,
    DOC_CHARACTERS,
    PATH_SEGMENTS,
    UNKNOWN_ID,
    WordPiece,
    split,
)
from codeqa.text.unit_text import UnitText, decode
from research.training.console import SEED, bar, read_lines
from research.training.features import BAGS, PARTS, SOURCES, BagWriter, Features, save

LIMITS = {"path": 12, "name": 12, "body": 160, "doc": 48, "query": 48}
"""Pieces kept of each text: what the encoder reads costs time by its square."""


def field_texts(query: str, unit: UnitText) -> dict[str, str]:
    """The texts that the five sequences are made of."""
    folders = unit.path.rsplit("/", PATH_SEGMENTS)[-PATH_SEGMENTS:]
    name = folders.pop().rpartition(".")
    return {
        "path": "/".join((*folders, name[0] or name[2])),
        "name": f"{unit.owner} {unit.name}",
        "body": unit.body[:BODY_CHARACTERS].replace(unit.name, " ") if unit.name else unit.body,
        "doc": unit.doc_comment[:DOC_CHARACTERS],
        "query": query,
    }


def sequence(text: str, pieces: WordPiece, limit: int) -> list[int]:
    """Ids of the first `limit` known pieces of `text`."""
    found: list[int] = []
    for word in split(text):
        found += [piece for piece in pieces.ids(word) if piece != UNKNOWN_ID]
        if len(found) >= limit:
            break
    return found[:limit]


def make_sequences(out: Path, pieces: list[str]) -> Features:
    """OUT/sequences of OUT/pairs, made unless it is there for this vocabulary."""
    folder = out / "sequences"
    if (folder / "manifest.json").exists():
        there = Features(folder)
        if there.pieces == pieces:
            return there
    known = WordPiece(pieces)
    writers = {bag: BagWriter() for bag in BAGS}
    repositories: list[str] = []
    languages: dict[str, int] = {}
    columns: dict[str, list[int]] = {"repository": [], "source": [], "language": [], "part": []}
    for part, path in bar(list(_files(out)), "sequences", "repo"):
        for row in read_lines(path):
            if not repositories or repositories[-1] != row["repo"]:
                repositories.append(row["repo"])
            columns["repository"].append(len(repositories) - 1)
            columns["source"].append(SOURCES.index(row["source"]))
            columns["language"].append(languages.setdefault(row["language"], len(languages)))
            columns["part"].append(PARTS.index(part))
            for bag, text in field_texts(row["query"], decode(row["unit"])).items():
                ids = sequence(text, known, LIMITS[bag])
                writers[bag].add((ids, [1] * len(ids)))
    save(
        folder,
        {bag: writer.arrays() for bag, writer in writers.items()},
        {
            name: np.asarray(values, np.int32 if name == "repository" else np.int8)
            for name, values in columns.items()
        },
        pieces,
        repositories,
        list(languages),
        SEED,
    )
    return Features(folder)


def _files(out: Path) -> Iterable[tuple[str, Path]]:
    for part in PARTS:
        for path in sorted((out / "pairs" / part).glob("*.jsonl.gz")):
            yield part, path
