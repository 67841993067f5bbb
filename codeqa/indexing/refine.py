"""The second pass: vectors of the embedding that the user chose, for units that lack one."""

from __future__ import annotations

from collections.abc import Callable

from codeqa.embeddings import Embedding
from codeqa.indexing.build import CancelledError
from codeqa.store.meta import record_of
from codeqa.store.refined import finish_refined, prepare_refined, texts_of, write_refined
from codeqa.store.writer import Writer
from codeqa.types import Progress

COMMIT_ROWS = 512
"""Vectors in one commit: what a killed run pays for twice."""


def refine(
    writer: Writer,
    embedding: Embedding,
    batch: int,
    progress: Callable[[Progress], None],
    cancelled: Callable[[], bool],
) -> int:
    """Embed what lacks a vector, `batch` texts per call; returns how many units that were.

    Another embedding than the column holds empties the column first. Raises
    EmbeddingError and CancelledError; what was committed stays.
    """
    record = record_of(embedding)
    assert record is not None
    lacking = prepare_refined(writer, record)
    total = sum(len(ids) for ids in lacking.values())
    done = 0
    if total:
        progress(Progress("embedding", 0, total, embedding.name))
    for table, ids in lacking.items():
        for first in range(0, len(ids), COMMIT_ROWS):
            part, texts = texts_of(writer, table, ids[first : first + COMMIT_ROWS])
            made = []
            for at in range(0, len(texts), batch):
                if cancelled():
                    raise CancelledError
                made.append(embedding.embed_passages(texts[at : at + batch]))
                done += len(made[-1])
                progress(Progress("embedding", done, total, embedding.name))
            write_refined(writer, table, part, made)
    if total:
        finish_refined(writer)
    return total
