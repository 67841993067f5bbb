"""Vectors of the embedding that the user chose, made behind the first pass.

Their column exists only once one is chosen; the writer carries its vectors over wherever a unit's
text stays the same, so that none is paid for twice.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence, Set
from multiprocessing.pool import ThreadPool
from typing import TYPE_CHECKING

from codeqa.embeddings.base import Embedding
from codeqa.parsing.worker import NICENESS
from codeqa.store.filters import one_of
from codeqa.store.meta import record_of
from codeqa.store.schema import (
    ALL_ROWS,
    REFINED,
    UNIT_TABLES,
    refined_field,
    vector_array,
)
from codeqa.store.writer import Writer
from codeqa.types import Progress

if TYPE_CHECKING:
    import numpy as np

REFINED_ROWS, REFINED_FILES = 512, 20
"""Vectors of the chosen embedding in one commit, and files that they are of, at most: what a
killed run pays for twice."""


def refine_units(
    writer: Writer,
    embedding: Embedding,
    batch: int,
    progress: Callable[[Progress], None],
    enough: threading.Event,
    asked: Set[str],
) -> None:
    """Embed the units that lack a vector of the chosen `embedding`, `batch` texts per call, all of
    them or until `enough` is set.

    The units of files that are in `asked`, which may grow meanwhile, come first, then the first
    unit of each file, then the others; in each of these source code before the rest. Another
    embedding than the column holds empties the column first. Raises EmbeddingError; what was
    committed stays.
    """
    import numpy as np
    import pyarrow as pa

    _prepare_column(writer, embedding)
    lacking = _lacking(writer)
    total, done, known = len(lacking), 0, 0
    if not total:
        return
    progress(Progress("embedding", 0, total, embedding.name))
    threads = min(4, max(1, (os.cpu_count() or 1) // 2))
    with writer.growing(), ThreadPool(threads, _make_way) as pool:
        while lacking:
            if len(asked) > known:
                known, first = len(asked), set(asked)
                lacking.sort(key=lambda unit: unit[0] not in first)
            ids = _ids_together(lacking)
            del lacking[: len(ids)]
            texts = _texts(writer, ids)
            parts = [texts[at : at + batch] for at in range(0, len(texts), batch)]
            made: list[np.ndarray] = []
            for vectors in pool.imap(embedding.embed_passages, parts):
                made.append(vectors)
                done += len(vectors)
                progress(Progress("embedding", done, total, embedding.name))
                if enough.is_set():
                    break
            vectors = np.concatenate(made)
            for table in UNIT_TABLES:  # each takes those of its own units
                handle = writer.tables[table]
                column = vector_array(vectors, handle.schema.field(REFINED).type)
                found = pa.table([ids[: len(vectors)], column], names=["id", REFINED])
                handle.merge_insert("id").when_matched_update_all().execute(found)
            if done < total and enough.is_set():
                return
        where = "status = 'indexed' AND tier = 'fast'"
        writer.tables["files"].update(where=where, values={"tier": "refined"})
        writer.tidy()


def _make_way() -> None:
    """Lower the priority of this thread, where the system has such a thing: elsewhere it would be
    that of the whole server."""
    if sys.platform == "linux":
        os.nice(NICENESS)


def _prepare_column(writer: Writer, embedding: Embedding) -> None:
    """Drop vectors of another embedding; the rows themselves stay as they are."""
    record = record_of(embedding)
    if writer.meta.refined == record:
        return
    with writer.growing():
        writer.update_meta(refined=None)
        for table in UNIT_TABLES:
            handle = writer.tables[table]
            if REFINED in handle.schema.names:
                handle.drop_columns([REFINED])
            handle.add_columns(refined_field(embedding.dimension))
        writer.tables["files"].update(where="tier = 'refined'", values={"tier": "fast"})
        writer.update_meta(refined=record)


def _lacking(writer: Writer) -> list[tuple[str, str]]:
    """Path and id of the units without a vector of the chosen embedding: the first unit of each
    file, those of source code first, then the others alike."""
    columns = {name: name for name in ("path", "start_line", "id", "role")}
    rows = []
    for table in UNIT_TABLES:
        query = writer.tables[table].search().select({**columns, "lacks": f"{REFINED} IS NULL"})
        rows += query.limit(ALL_ROWS).to_arrow().to_pylist()
    rows.sort(key=lambda row: (row["path"], row["start_line"], row["id"]))
    heads = {row["path"]: row["id"] for row in reversed(rows)}
    rows.sort(key=lambda row: (heads[row["path"]] != row["id"], row["role"] != "source"))
    return [(row["path"], row["id"]) for row in rows if row["lacks"]]


def _ids_together(lacking: Sequence[tuple[str, str]]) -> list[str]:
    """Those of the first units, as many as are committed together."""
    paths: set[str] = set()
    ids = []
    for path, identity in lacking[:REFINED_ROWS]:
        paths.add(path)
        if len(paths) > REFINED_FILES:
            break
        ids.append(identity)
    return ids


def _texts(writer: Writer, ids: Sequence[str]) -> list[str]:
    found: dict[str, str] = {}
    for table in UNIT_TABLES:
        query = writer.tables[table].search().where(one_of("id", ids)).select(["id", "code"])
        rows = query.limit(len(ids)).to_arrow()
        found.update(zip(rows["id"].to_pylist(), rows["code"].to_pylist(), strict=True))
    return [found[identity] for identity in ids]
