"""The trained numbers: one vector per piece, and what each piece and field weighs.

A folder holds them: `table.npy` (int8, pieces × dimension) with one factor per row in
`scales.npy`, the weights of the pieces on either side, the weights of the fields, the pieces
themselves, one a line, a card for readers, and `manifest.json`, which names the table, its
version and the SHA-256 of every other file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.embeddings.table.wordpiece import WordPiece
from codeqa.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
"""Raised when the files or their meaning change: an older CodeQA then refuses them."""

MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.txt"
TABLE = "table.npy"
CARD = "card.md"
VECTORS = ("scales", "query_weights", "document_weights", "field_weights")
FILES = (TABLE, *(f"{name}.npy" for name in VECTORS), VOCABULARY, CARD)

DAMAGED = "Install CodeQA again."


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A trained table. Arrays are read-only; V pieces, D dimensions.

    The vector of piece p is `table[p] * scales[p]`. It counts `query_weights[p]` times in
    a question and `document_weights[p]` times in a unit, as these numbers stand; a field
    counts softplus(`field_weights[f]`) times, in the order of `fields.FIELDS`.
    """

    pieces: WordPiece
    table: NDArray[np.int8]
    """(V, D)"""
    scales: NDArray[np.float32]
    """(V,)"""
    query_weights: NDArray[np.float32]
    """(V,)"""
    document_weights: NDArray[np.float32]
    """(V,)"""
    field_weights: NDArray[np.float32]
    """(len(FIELDS),)"""
    name: str
    version: str

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.table.shape[1])


def load_weights(folder: Path | str) -> Weights:
    """Read the table in `folder`; `table.npy` is mapped, so that processes share it.

    Raises EmbeddingError when a file is missing or is not what the manifest says.
    """
    folder = Path(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT:
            raise EmbeddingError(
                f"The embedding table has format {manifest['format']}, this version of CodeQA "
                f"reads format {FORMAT}.",
                DAMAGED,
            )
        return _read(folder, manifest)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EmbeddingError(f"The embedding table cannot be read: {reason}.", DAMAGED) from error


def _read(folder: Path, manifest: dict[str, Any]) -> Weights:
    import numpy as np

    # One mapping serves to verify and to encode, so that every page is fetched but once. What is
    # byte for byte what was shipped was checked when it was written.
    whole: NDArray[np.uint8] = np.asarray(np.memmap(folder / TABLE, mode="r"))
    for file in FILES:
        data: Any = whole if file == TABLE else (folder / file).read_bytes()
        if hashlib.sha256(data).hexdigest() != manifest["files"][file]:
            raise ValueError(f"{file} is not the one that was shipped")
    header = np.load(folder / TABLE, mmap_mode="r")
    table = whole[header.offset :].view(np.int8).reshape(header.shape)
    vectors = {key: np.load(folder / f"{key}.npy") for key in VECTORS}
    for values in vectors.values():
        values.setflags(write=False)
    pieces = WordPiece((folder / VOCABULARY).read_bytes().decode().split("\n"))
    return Weights(
        pieces, table, **vectors, name=str(manifest["name"]), version=str(manifest["version"])
    )
