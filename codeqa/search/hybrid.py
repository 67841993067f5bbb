"""Search an index: channels, ranking, drafts of the answer, reranking, and the choice of hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal

from codeqa.embeddings.registry import Embedding, query_embedding
from codeqa.errors import CodeQAError, EmbeddingError
from codeqa.llm.client import Model
from codeqa.llm.models import Models
from codeqa.llm.values import Cancelled, never
from codeqa.metrics import measure
from codeqa.search.by_model import (
    FirstSearch,
    merge,
    needless,
    search_by_drafts,
    search_by_model_drafts,
)
from codeqa.search.channels import Candidates, gather, resolve_query
from codeqa.search.coverage import changed_files, coverage, shortfall
from codeqa.search.freshness import IndexFreshness
from codeqa.search.mentions import guaranteed, keep_guaranteed
from codeqa.search.query import Query, parse_query
from codeqa.search.ranking import FileHit, RankingSignals, best_of_each, rank, rank_files
from codeqa.search.rerank import Reranker, rerank_built_in
from codeqa.search.rerank_models import choose_reranker
from codeqa.search.result import MOST_FILES, OF_RESULT, OF_UNIT, SearchResult
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.types import Hit, HydeMode, StageTime

HITS_SO_FAR = 10
"""Hits of the question alone that are shown while a model writes drafts."""
NO_MODEL = "No draft of the answer was made, because no language model is chosen."

SearchPhases = Generator["StageTime | tuple[Hit, ...]", None, SearchResult]


@dataclass(frozen=True)
class Search:
    """Answers questions from one index."""

    tables: Callable[[], Tables]
    """Opens the index for reading. May raise CodeQAError."""
    settings: Settings
    encoder: Callable[[str], Embedding | None] | None = None
    """Returns the query side of the embedding of that name, None when it cannot be loaded here. May
    raise CodeQAError."""
    _: KW_ONLY
    reranker: Reranker = rerank_built_in
    """Orders the units of a search with `rerank`."""
    connect: Callable[[], Model | None] = lambda: None
    """Returns the model that writes drafts, None for none."""
    freshness: IndexFreshness = field(default_factory=IndexFreshness)
    """Updates the index before and after it is searched."""

    def search(
        self, question: str, *, kind: str = "", language: str = "", path: str = "", **options: Any
    ) -> SearchResult:
        """Return the best `top` units and at least ten files for `question`.

        The keyword filters join those written in it. `options` are those of `phases`, which raises
        the same; nothing is sent to a language model unless `hyde` says so.
        """
        query = parse_query(question, kind=kind, language=language, path=path)
        phases = self.phases(query, **options)
        while True:
            try:
                next(phases)
            except StopIteration as end:
                result: SearchResult = end.value
                return result

    # The algorithm in one piece; each of its phases is a function.
    def phases(
        self,
        query: Query,
        *,
        top: int = 10,
        rerank: bool = False,
        hyde: Literal["", HydeMode] = "off",
        drafts: Sequence[str] = (),
        use_model: bool = True,
        cancelled: Cancelled = never,
    ) -> SearchPhases:
        """Search; return the result and yield progress.

        Where a model writes drafts, yield first the question's own best HITS_SO_FAR, then each
        stage of the model as it begins and as it ends, then the final best. `hyde` is how many
        drafts it writes, '' for what the setting says. `drafts` are the caller's own; with them, or
        without `use_model`, no model is asked. Once `cancelled()` is true, slow phases are skipped.
        Raises IndexMissingError and IndexFormatError as the tables do.
        """
        started = time.perf_counter()
        # Search for the question itself in all channels, and rank the candidates.
        first = self._search_question(query)
        query, candidates, hits = first.query, first.candidates, first.hits
        files, warnings, stages = rank_files(hits), list(first.warnings), list[StageTime]()

        # Search also by drafts of the answer, which a model or the caller writes.
        mode: HydeMode = "off" if drafts else hyde or self.settings.hyde or "two"
        model = self._model_for_drafts(mode, bool(hyde), warnings) if use_model else None
        shows_early = model is not None and bool(hits) and not needless(query, candidates)
        if shows_early:
            yield keep_guaranteed(hits, guaranteed(hits, query.mentions), HITS_SO_FAR)
        if drafts:
            candidates, stages = search_by_drafts(first, drafts)
        elif model is not None:
            candidates, stages = yield from search_by_model_drafts(
                first, model, mode, self.settings, cancelled
            )
            warnings += [f"A draft {stage.outcome}" for stage in stages if stage.failed]
        if stages:
            hits, files = merge(rank(candidates, query), hits, files, top)

        # Let the reranker read the best hits.
        reranker, reranking = "", list[StageTime]()
        if rerank and not cancelled():
            rerank_started = time.perf_counter()
            reranked = self.reranker(hits, query)
            hits, reranker = reranked.hits, reranked.reranker
            warnings += reranked.warnings
            milliseconds = (time.perf_counter() - rerank_started) * 1000
            reranking = [StageTime("rerank", milliseconds, "done")]

        result = self._choose(first, candidates, hits, files, top)
        if shows_early:
            yield result.units[:HITS_SO_FAR]
        total_ms = (time.perf_counter() - started) * 1000
        own_ms = total_ms - sum(stage.milliseconds for stage in stages + reranking)
        measure("search_seconds", total_ms / 1000)
        return replace(
            result,
            milliseconds=total_ms,
            reranker=reranker,
            warnings=tuple(warnings),
            hyde=mode if model else "off",
            stages=tuple(stages + [StageTime("search", own_ms, "done")] + reranking),
        )

    def _search_question(self, parsed: Query) -> FirstSearch:
        """Search for the question alone, again if files of the hits have changed on disk."""
        delay = self.freshness.before_search()
        tables = self.tables()
        encoders, trouble = self._encoders(tables)
        version = tables.version()
        query, warnings = resolve_query(tables, parsed)
        try:
            candidates = gather(tables, query, encoders)
        except EmbeddingError as error:
            encoders, trouble = {}, error.message
            candidates = gather(tables, query, encoders)
        hits = rank(candidates, query)
        paths = [hit.unit.path for hit in hits]
        complete, outdated = tables.meta().complete, changed_files(tables, paths)
        if outdated:  # the index may have been updated meanwhile
            tables.look_again()
            outdated = changed_files(tables, paths)
        if complete and self.freshness.after_search(tables, version, outdated):
            tables.look_again()
            query, warnings = resolve_query(tables, parsed)
            candidates = gather(tables, query, encoders)
            hits = rank(candidates, query)
        notices = list(filter(None, [delay, "" if complete else shortfall(tables)]))
        warnings = list(tables.notices) + warnings + notices
        return FirstSearch(tables, encoders, trouble, query, candidates, hits, warnings)

    def _choose(
        self,
        first: FirstSearch,
        candidates: Candidates,
        hits: Sequence[Hit],
        files: Sequence[FileHit],
        top: int,
    ) -> SearchResult:
        """Choose from `hits` and `files`, and give each hit its reasons."""
        tables, query = first.tables, first.query
        methods, classes = best_of_each(hits)
        mentioned = guaranteed(hits, query.mentions)
        units = keep_guaranteed(hits, mentioned, top)
        files = files[: max(top, MOST_FILES)]
        paths = [hit.unit.path for hit in mentioned + units]
        changed = changed_files(tables, paths)
        self.freshness.note_hits(paths)
        signals = RankingSignals(candidates, query)
        by_unit: dict[str, Hit] = {}

        def explain(hit: Hit) -> Hit:
            # Once per unit, as in the first list that holds it: the words are slow to find.
            if hit.unit.id not in by_unit:
                by_unit[hit.unit.id] = signals.explain(hit, changed.get(hit.unit.path, ""))
            return by_unit[hit.unit.id]

        return SearchResult(
            query=query,
            units=tuple(map(explain, units)),
            methods=tuple(map(explain, methods)),
            classes=tuple(map(explain, classes)),
            mentioned=tuple(map(explain, mentioned)),
            files=tuple(replace(file, best=explain(file.best)) for file in files),
            channels=tuple(name for name, scores in candidates.channels.items() if scores),
            coverage=coverage(tables, first.encoders, first.trouble),
            changed=changed,
        )

    def _model_for_drafts(
        self, mode: HydeMode, explicit: bool, warnings: list[str]
    ) -> Model | None:
        """Return the model that writes drafts, None for none.

        Adds to `warnings` why a chosen model cannot be asked, or that no model is chosen though
        the request has an `explicit` wish for drafts.
        """
        if mode == "off":
            return None
        try:
            model = self.connect()
        except CodeQAError as error:
            warnings.append(f"No draft of the answer was made. {error}")
            return None
        if model is None and explicit:
            warnings.append(NO_MODEL)
        return model

    def _encoders(self, tables: Tables) -> tuple[dict[str, Embedding], str]:
        """Return the encoders of the vector columns, and why one is missing ('' if none is)."""
        encoders: dict[str, Embedding] = {}
        trouble = ""
        for column, record in tables.vector_columns():
            try:
                encoder = self.encoder(record.name) if self.encoder else None
            except EmbeddingError as error:
                encoder, trouble = None, error.message
            if encoder is not None:
                encoders[column] = encoder
        return encoders, trouble


def open_search(
    settings: Settings,
    tables: Callable[[], Tables],
    *,
    models: Models | None = None,
    vectors: bool = True,
    freshness: IndexFreshness | None = None,
) -> Search:
    """Return the search of the index that `tables` opens.

    Without `models` no drafts are written by a language model, without `vectors` no embedding is
    used. Raises SettingsError for a reranker that cannot be used.
    """
    return Search(
        tables,
        settings,
        cache(partial(query_embedding, settings)) if vectors else None,  # each is built once
        reranker=choose_reranker(settings),
        connect=models.small_model if models else lambda: None,
        freshness=freshness or IndexFreshness(),
    )


def search_for_programs(
    search: Search, question: str, guess: str = "", **options: Any
) -> dict[str, Any]:
    """Return the result of a search as data for programs; `guess` is a draft of the code."""
    result = search.search(question, drafts=(guess,) if guess.strip() else (), **options)
    fields = {"question": question} | _fields(result, OF_RESULT)
    return fields | {
        "stages": list(map(asdict, result.stages)),
        "notice": " ".join(result.warnings),
        "hits": list(map(_hit_fields, result.units)),
        "files": [{"path": file.path, "score": file.score} for file in result.files],
    }


def _hit_fields(hit: Hit) -> dict[str, Any]:
    fields = {"score": hit.score, "why": hit.why, "channels": dict(hit.channels)}
    return _fields(hit.unit, OF_UNIT) | fields


def _fields(record: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}
