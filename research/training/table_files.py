"""Writes a trained table in the form that `codeqa.embeddings.table` reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codeqa.embeddings.pieces import FIELDS, WordPiece
from codeqa.embeddings.table import MANIFEST, TABLE, VECTORS, VOCABULARY

CARD = "card.md"
FILES = (TABLE, *(f"{name}.npy" for name in VECTORS), VOCABULARY, CARD)


def save_weights(
    folder: Path,
    *,
    pieces: Sequence[str],
    table: NDArray[np.int8],
    scales: NDArray[np.float32],
    query_weights: NDArray[np.float32],
    document_weights: NDArray[np.float32],
    field_weights: NDArray[np.float32],
    name: str,
    version: str,
    card: str,
) -> None:
    """Write a table into `folder`, the manifest last. Raises ValueError when parts do not fit."""
    vectors = {
        "scales": scales,
        "query_weights": query_weights,
        "document_weights": document_weights,
        "field_weights": field_weights,
    }
    check_parts(WordPiece(pieces).size, table, vectors)
    if any("\n" in piece or "\r" in piece for piece in pieces):
        raise ValueError("a piece holds a line break")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    np.save(folder / TABLE, np.ascontiguousarray(table))
    for key, values in vectors.items():
        np.save(folder / f"{key}.npy", values)
    (folder / VOCABULARY).write_bytes("\n".join(pieces).encode())
    (folder / CARD).write_bytes(card.encode())
    manifest = {
        "name": name,
        "version": version,
        "dimension": int(table.shape[1]),
        "pieces": len(pieces),
        "files": {file: hashlib.sha256((folder / file).read_bytes()).hexdigest() for file in FILES},
    }
    text = json.dumps(manifest, indent=2) + "\n"
    (folder / MANIFEST).write_bytes(text.encode())


def check_parts(
    pieces: int, table: NDArray[np.int8], vectors: dict[str, NDArray[np.float32]]
) -> None:
    """Raise ValueError unless everything has its shape and type and is a number."""
    if table.dtype != np.int8 or table.ndim != 2 or len(table) != pieces or not table.shape[1]:
        raise ValueError(f"the table is {table.dtype} {table.shape} for {pieces} pieces")
    for key, values in vectors.items():
        length = len(FIELDS) if key == "field_weights" else pieces
        if values.dtype != np.float32 or values.shape != (length,):
            raise ValueError(f"{key} is {values.dtype} {values.shape} for {length} values")
        if not np.isfinite(values).all():
            raise ValueError(f"{key} holds values that are no numbers")
