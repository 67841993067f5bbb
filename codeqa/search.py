"""One question into hits: filters, channels, ranking, freshness, and what was covered."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from codeqa.errors import EmbeddingError
from codeqa.retrieval import (
    Asked,
    BuiltInReranker,
    FileScore,
    Query,
    QueryEncoder,
    Reranker,
    explain,
    gather,
    parse_query,
    rank,
    rank_files,
)
from codeqa.settings import Settings
from codeqa.store import FileRecord, Tables
from codeqa.types import Hit

PER_TABLE = 5
"""Hits kept per table (S1.31)."""
FILES = 10
"""Files listed at least, where there are as many: a list of files is read to its end."""
FRESH_FILES = 10
"""Files of the best hits whose state on disk is looked at; one stat each."""

FileHit = FileScore


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a question found; units and files are two lists with orders of their own."""

    question: str
    query: Query
    units: tuple[Hit, ...]
    files: tuple[FileHit, ...]
    methods: tuple[Hit, ...]
    classes: tuple[Hit, ...]
    milliseconds: float
    channels: tuple[str, ...]
    """Channels that were asked and gave something."""
    coverage: str
    """How much of the repository was searched, and by what, as a sentence."""
    changed: Mapping[str, str]
    """Path → how the file differs from what was indexed (`changed`, `deleted`)."""
    reranker: str = ""
    """Name of the reranker that ordered the units; '' when they were not reranked."""
    notice: str = ""
    """Why another reranker than the wished one did, or that it did not read all, as sentences."""


class Search:
    """Answers questions from one index.

    `open_tables` gives the index for reading, `encoder` the query side of the embedding
    with a given name, None when it is not at hand. Both may raise CodeQAError. `reranker`
    orders the units of a search that asks for it; without one the built-in does.
    """

    def __init__(
        self,
        open_tables: Callable[[], Tables],
        settings: Settings,
        encoder: Callable[[str], QueryEncoder | None] | None = None,
        *,
        reranker: Reranker | None = None,
    ) -> None:
        self._open_tables = open_tables
        self._settings = settings
        self._encoder = encoder
        self._reranker: Reranker = reranker or BuiltInReranker()

    def search(
        self,
        question: str,
        *,
        top: int = 10,
        kind: str = "",
        language: str = "",
        path: str = "",
        rerank: bool = False,
    ) -> SearchResult:
        """The best `top` units and at least ten files for `question`.

        Raises IndexMissingError and IndexFormatError as the tables do.
        """
        started = time.perf_counter()
        query = parse_query(question, kind=kind, language=language, path=path)
        tables = self._open_tables()
        encoders, trouble = self._encoders(tables)
        try:
            found = gather(tables, query, encoders)
        except EmbeddingError as error:
            trouble = error.message
            found = gather(tables, query)
        asked = Asked.of(query)
        hits = rank(found, asked)
        files = rank_files(hits)[: max(top, FILES)]
        reranker = notice = ""
        if rerank:
            reranked = self._reranker.rerank(hits, query)
            hits, reranker, notice = reranked.hits, reranked.reranker, reranked.notice
        methods = [hit for hit in hits if hit.unit.is_method][:PER_TABLE]
        classes = [hit for hit in hits if not hit.unit.is_method][:PER_TABLE]
        changed = changed_files(tables, [hit.unit.path for hit in hits[:top]])

        def finished(hit: Hit) -> Hit:
            return explain(hit, found, asked, changed.get(hit.unit.path, ""))

        return SearchResult(
            question=question,
            query=query,
            units=tuple(map(finished, hits[:top])),
            files=tuple(replace(file, best=finished(file.best)) for file in files),
            methods=tuple(map(finished, methods)),
            classes=tuple(map(finished, classes)),
            milliseconds=(time.perf_counter() - started) * 1000,
            channels=tuple(name for name, scores in found.channels.items() if scores),
            coverage=coverage(tables, encoders, trouble),
            changed=changed,
            reranker=reranker,
            notice=notice,
        )

    def _encoders(self, tables: Tables) -> tuple[dict[str, QueryEncoder], str]:
        """Vector column → its encoder, for those at hand; and what stood in the way."""
        found: dict[str, QueryEncoder] = {}
        trouble = ""
        for column, record in tables.vector_columns():
            try:
                encoder = self._encoder(record.name) if self._encoder else None
            except EmbeddingError as error:
                encoder, trouble = None, error.message
            if encoder is not None:
                found[column] = encoder
        return found, trouble


def changed_files(tables: Tables, paths: Iterable[str]) -> dict[str, str]:
    """Files among the first FRESH_FILES of `paths` that differ from the manifest, and how.

    Size and time of change decide, as for the next indexing run; nothing is read.
    """
    records = tables.files_at(list(dict.fromkeys(paths))[:FRESH_FILES])
    states = {path: file_state(tables.location.root, record) for path, record in records.items()}
    return {path: state for path, state in states.items() if state}


def file_state(root: Path, record: FileRecord) -> str:
    """'' for a file that is as it was indexed, else `changed` or `deleted`."""
    try:
        status = os.lstat(root / record.path)
    except OSError:
        return "deleted"
    same = status.st_size == record.size and status.st_mtime_ns == record.mtime_ns
    return "" if same else "changed"


def coverage(tables: Tables, encoders: Mapping[str, QueryEncoder], trouble: str = "") -> str:
    """What was searched: files, and by text, symbols and which vectors."""
    counts = tables.counts()
    if tables.meta().complete:
        files = f"{counts.files:,} of {counts.files:,} files"
    else:
        files = f"{counts.files:,} files so far, indexing goes on"
    filled = {"vector": counts.embedded, "vector_refined": counts.refined}
    parts = [
        f"vectors of {record.name} for {filled[column]:,} of {counts.units:,} units"
        for column, record in tables.vector_columns()
        if column in encoders
    ]
    if trouble:
        parts.append(f"vectors left out: {trouble.rstrip('.')}")
    return f"{files}, text and symbols; {'; '.join(parts) or 'no vectors'}"
