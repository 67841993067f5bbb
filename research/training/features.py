"""The arrays that training reads: token bags of every row, memory-mapped.

A folder of features holds, for R rows in the order of their repositories::

    manifest.json          see below
    vocabulary.txt         one piece a line; the number of the line, from 0, is the id
    <bag>_starts.npy       int64 (R + 1): row r owns the entries starts[r]:starts[r + 1]
    <bag>_ids.npy          uint16: token ids of the entries, each once in its row
    <bag>_counts.npy       uint16: how often each occurs in its field (at most 65,535)
    repository.npy         int32 (R): index into the manifest's `repositories`
    source.npy             int8 (R): index into the manifest's `sources`
    language.npy           int8 (R): index into the manifest's `languages`
    part.npy               int8 (R): index into `PARTS`

`<bag>` is one of `BAGS`: the four fields of a document, in the encoder's order, and `query`.
A bag may be empty. The weights of the recipe, 1 + ln count, are left to the reader. Rows of
one repository are contiguous: `Features.span(repository)` gives them.

manifest.json: {"format": 1, "rows", "pieces", "repositories": ["owner/name", …], "sources",
"languages", "parts", "seed"}.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1

FIELDS = ("path", "name", "body", "doc")
"""A document's fields, as `codeqa.embeddings.pieces` has them."""

BAGS = (*FIELDS, "query")

SOURCES = ("doc", "name", "class", "section", "commit", "test")
"""What a row's query was made from."""

PARTS = ("train", "held_out")
"""What a row is for: training, or the yardstick by which trainings are compared."""

MAX_COUNT = 65_535

Bag = tuple[Sequence[int], Sequence[int]]
"""Token ids, each once, and their counts."""


@dataclass(frozen=True, slots=True)
class Bags:
    """The bags of one field for all rows, in compressed rows."""

    starts: NDArray[np.int64]
    ids: NDArray[np.uint16]
    counts: NDArray[np.uint16]

    def row(self, row: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        """Ids and counts of one row."""
        first, last = self.starts[row], self.starts[row + 1]
        return self.ids[first:last], self.counts[first:last]

    def take(
        self, rows: NDArray[np.integer]
    ) -> tuple[NDArray[np.int64], NDArray[np.uint16], NDArray[np.uint16]]:
        """Starts (n + 1), ids and counts of the given rows, in their order, copied."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=starts[1:])
        # Entry i of the result lies at the row's own start plus its place within the row.
        places = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return starts, self.ids[places], self.counts[places]


class Features:
    """A folder of features, opened without reading it.

    Raises FileNotFoundError when there is none, ValueError for another format.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
        if manifest["format"] != FORMAT:
            raise ValueError(f"{folder} has format {manifest['format']}, not {FORMAT}")
        self.manifest = manifest
        self.rows: int = manifest["rows"]
        self.repositories: list[str] = manifest["repositories"]
        self.languages: list[str] = manifest["languages"]
        self.pieces: list[str] = (folder / "vocabulary.txt").read_text("utf-8").split("\n")[:-1]
        self.repository: NDArray[np.int32] = self._load("repository")
        self.source: NDArray[np.int8] = self._load("source")
        self.language: NDArray[np.int8] = self._load("language")
        self.part: NDArray[np.int8] = self._load("part")
        self.bags = {
            bag: Bags(*(self._load(f"{bag}_{array}") for array in ("starts", "ids", "counts")))
            for bag in BAGS
        }

    def _load(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = np.load(self.folder / f"{name}.npy", mmap_mode="r")
        return array

    def where(self, part: str, sources: Iterable[str] = SOURCES) -> NDArray[np.int64]:
        """Rows of one of `PARTS` whose query was made from one of `sources`, ascending."""
        wanted = [SOURCES.index(source) for source in sources]
        chosen = np.isin(self.source, wanted) & (self.part == PARTS.index(part))
        return np.flatnonzero(chosen)

    def span(self, repository: str) -> range:
        """The rows of a repository. Raises ValueError when it has none here."""
        index = self.repositories.index(repository)
        first, last = np.searchsorted(self.repository, [index, index + 1])
        return range(int(first), int(last))


class BagWriter:
    """Collects the bags of one field and saves them as `Bags`' arrays."""

    def __init__(self) -> None:
        self._lengths: list[int] = []
        self._ids: list[NDArray[np.uint16]] = []
        self._counts: list[NDArray[np.uint16]] = []

    def add(self, bag: Bag) -> None:
        """Take in the next row's bag."""
        ids, counts = bag
        self._lengths.append(len(ids))
        self._ids.append(np.asarray(ids, np.uint16))
        self._counts.append(np.minimum(np.asarray(counts, np.int64), MAX_COUNT).astype(np.uint16))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """`starts`, `ids` and `counts` of everything so far."""
        empty = [np.zeros(0, np.uint16)]
        return {
            "starts": np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int64),
            "ids": np.concatenate(self._ids or empty),
            "counts": np.concatenate(self._counts or empty),
        }


def save(
    folder: Path,
    bags: Mapping[str, Mapping[str, NDArray[Any]]],
    columns: Mapping[str, NDArray[Any]],
    pieces: Sequence[str],
    repositories: Sequence[str],
    languages: Sequence[str],
    seed: int,
) -> None:
    """Write a folder of features, whole or not at all.

    Files that somebody has mapped stay as they are for them: new ones take their place.
    """
    made = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    made.mkdir(parents=True)
    for bag, arrays in bags.items():
        for name, array in arrays.items():
            np.save(made / f"{bag}_{name}.npy", array)
    for name, array in columns.items():
        np.save(made / f"{name}.npy", array)
    (made / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces), "utf-8")
    content = {
        "format": FORMAT,
        "rows": len(columns["repository"]),
        "pieces": len(pieces),
        "repositories": list(repositories),
        "sources": list(SOURCES),
        "languages": list(languages),
        "parts": list(PARTS),
        "seed": seed,
    }
    (made / "manifest.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    made.rename(folder)
