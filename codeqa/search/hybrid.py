"""One question into hits: filters, channels, ranking, HyDE, reranking, and what was covered."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

from codeqa.embeddings.registry import Embedding, query_embedding
from codeqa.errors import CodeQAError, EmbeddingError
from codeqa.indexing.runs import holder_of, is_paused
from codeqa.llm.client import Model
from codeqa.llm.models import Models
from codeqa.llm.values import Cancelled, clean_text, never
from codeqa.metrics import measure
from codeqa.search.by_model import join, merge, needless, search_by_draft, search_by_hypotheses
from codeqa.search.channels import Candidates, gather, resolve_query
from codeqa.search.mentions import guaranteed, keep_guaranteed
from codeqa.search.query import Query, parse_query
from codeqa.search.ranking import FileHit, RankingSignals, best_of_each, rank, rank_files
from codeqa.search.rerank import Reranker, choose_reranker, rerank_built_in
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.types import Hit, HydeMode, StageTime

if TYPE_CHECKING:
    from pandas import DataFrame

FRESH_FILES = 10
"""Files of the best hits whose state on disk is looked at; one stat each."""
FILES = 10
"""Files listed at least, where there are as many: a list of files is read to its end."""

HITS_SO_FAR = 10
OF_RESULT = ("question", "milliseconds", "channels", "coverage", "reranker", "hyde")
OF_UNIT = (
    "path", "start_line", "end_line", "language", "kind", "name", "qualified_name", "signature",
)  # fmt: skip
"""What programs are told of a search, and of each unit that it found."""
COLUMNS = (*OF_UNIT, "class_name", "doc_comment", "source_code")
"""Of the frame of a search, behind the score."""
NO_MODEL = "No draft of the answer was made, for no language model is chosen."

SearchSteps = Generator["StageTime | tuple[Hit, ...]", None, "SearchResult"]


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
    warnings: tuple[str, ...] = ()
    """What the user should know, as sentences: that a name was misspelt, that no hypothetical
    answer could be written, why another reranker was used or that it did not read all."""
    mentioned: tuple[Hit, ...] = ()
    """Hits that the question points at with `@`, which belong to every answer."""
    hyde: HydeMode = "off"
    """How many hypothetical answers were searched by."""
    stages: tuple[StageTime, ...] = ()
    """What was done and how long it took, in order."""

    def to_pandas(self) -> DataFrame:
        """Return the units as a frame, best first: a row each with its place, names and code."""
        from pandas import DataFrame

        rows = [(hit.score, *(getattr(hit.unit, name) for name in COLUMNS)) for hit in self.units]
        return DataFrame(rows, columns=["score", *COLUMNS])

    def head(self, top: int) -> SearchResult:
        """The same as a search for `top` units would give it."""
        units = keep_guaranteed(self.units, self.mentioned, top)
        return replace(self, units=units, files=self.files[: max(top, FILES)])


@dataclass(frozen=True, slots=True)
class _First:
    """What the question alone found."""

    tables: Tables
    encoders: Mapping[str, Embedding]
    trouble: str
    """Why an embedding could not be used; '' where all could."""
    query: Query
    candidates: Candidates
    hits: list[Hit]
    warnings: list[str]


@dataclass(frozen=True)
class Search:
    """Answers questions from one index."""

    tables: Callable[[], Tables]
    """The index for reading. May raise CodeQAError."""
    settings: Settings
    encoder: Callable[[str], Embedding | None] | None = None
    """The query side of the embedding with a given name, None when it is not at hand. May raise
    CodeQAError."""
    _: KW_ONLY
    reranker: Reranker = rerank_built_in
    """Orders the units of a search that asks for it."""
    connect: Callable[[], Model | None] = lambda: None
    """The model that writes hypothetical answers, None for none."""
    catch_up: Callable[[Iterable[str]], bool] | None = None
    """Of several repositories: brings the index up to date and says whether it did; it is asked to
    once when files that were found have changed."""
    keep_up: Callable[[], str] = str
    """Brings in what has changed on disk before the index is searched; gives a sentence where that
    takes too long, else ''."""
    asked: set[str] = field(default_factory=set)
    """Gets the files that were found."""

    def search(self, question: str, **options: Any) -> SearchResult:
        """The best `top` units and at least ten files for `question`.

        Nothing is sent to a language model unless `hyde` says so: see `steps`, which
        raises the same.
        """
        steps = self.steps(question, **options)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: SearchResult = end.value
                return result

    def steps(
        self,
        question: str,
        *,
        top: int = 10,
        kind: str = "",
        language: str = "",
        path: str = "",
        rerank: bool = False,
        hyde: Literal["", HydeMode] = "off",
        drafts: Sequence[str] = (),
        use_model: bool = True,
        cancelled: Cancelled = never,
    ) -> SearchSteps:
        """Search, and yield what happens meanwhile: the best HITS_SO_FAR of the question alone,
        each stage of the language model as it begins and as it ends, then the final best.

        `hyde` is how many hypothetical answers are searched by (`off`, `one`, `two`), '' for
        what the setting says; the question goes to the model for the first, what was found for
        the second. `drafts` are such answers, or lines of the code that is looked for, that whoever
        asks has written: each is searched by as one of the model's is, and no model is asked for
        others. Without `use_model` no language model is asked, whatever else is said. Once
        `cancelled()` is true what takes long is left out. Raises IndexMissingError and
        IndexFormatError as the tables do.
        """
        started = time.perf_counter()
        mode: HydeMode = "off" if drafts else hyde or self.settings.hyde or "two"
        first = self._first(parse_query(question, kind=kind, language=language, path=path))
        query, tables, candidates, hits = first.query, first.tables, first.candidates, first.hits
        warnings, files = [*first.warnings], rank_files(first.hits)
        model = self._model_for_drafts(mode, bool(hyde), warnings) if use_model else None

        shows_early = model is not None and bool(hits) and not needless(query, candidates)
        if shows_early:
            yield tuple(keep_guaranteed(hits, guaranteed(hits, query.mentions), HITS_SO_FAR))

        # Search by what a model, or whoever asks, expects the answer to look like.
        stages: list[StageTime] = []
        if model is not None:
            candidates, stages = yield from search_by_hypotheses(
                query, candidates, hits, tables, first.encoders, model, mode, self.settings,
                cancelled,
            )  # fmt: skip
            warnings += [f"A draft {stage.outcome}" for stage in stages if stage.failed]
        for number, draft in enumerate(drafts, 1):
            stages.append(StageTime(f"hyde-{number}", outcome="done", text=clean_text(draft)))
            by_draft = search_by_draft(stages[-1], query, tables, first.encoders)
            candidates = join(candidates, by_draft)
        if stages:
            hits, files = merge(rank(candidates, query), hits, files, top)

        reranker = ""
        if rerank and not cancelled():
            begun = time.perf_counter()
            reranked = self.reranker(hits, query)
            hits, reranker = reranked.hits, reranked.reranker
            warnings += reranked.warnings
            stages.append(StageTime("rerank", (time.perf_counter() - begun) * 1000, "done"))

        # Choose, and explain each hit once, as it stands in the first list that has it.
        methods, classes = best_of_each(hits)
        mentioned = guaranteed(hits, query.mentions)
        units = keep_guaranteed(hits, mentioned, top)
        if shows_early:
            yield tuple(units[:HITS_SO_FAR])
        files = files[: max(top, FILES)]
        paths = [hit.unit.path for hit in (*mentioned, *units)]
        changed = changed_files(tables, paths)
        self.asked.update(paths)
        signals = RankingSignals(candidates, query)
        listed = (*units, *methods, *classes, *mentioned, *(file.best for file in files))
        explained = {
            key: signals.explain(hit, changed.get(hit.unit.path, ""))
            for key, hit in {hit.unit.id: hit for hit in reversed(listed)}.items()
        }

        def with_reasons(hits: Iterable[Hit]) -> tuple[Hit, ...]:
            return tuple(explained[hit.unit.id] for hit in hits)

        whole = (time.perf_counter() - started) * 1000
        own = whole - sum(stage.milliseconds for stage in stages)
        before_reranking = sum(stage.name != "rerank" for stage in stages)
        stages.insert(before_reranking, StageTime("search", own, "done"))
        measure("search_seconds", whole / 1000)
        return SearchResult(
            question=question,
            query=query,
            units=with_reasons(units),
            files=tuple(replace(file, best=explained[file.best.unit.id]) for file in files),
            methods=with_reasons(methods),
            classes=with_reasons(classes),
            milliseconds=whole,
            channels=tuple(name for name, scores in candidates.channels.items() if scores),
            coverage=coverage(tables, first.encoders, first.trouble),
            changed=changed,
            reranker=reranker,
            warnings=tuple(warnings),
            mentioned=with_reasons(mentioned),
            hyde=mode if model else "off",
            stages=tuple(stages),
        )

    def _first(self, asked: Query) -> _First:
        """Search for the question alone, once more where the index was behind the files found."""
        behind = self.keep_up()
        tables = self.tables()
        encoders, trouble = self._encoders(tables)
        version = tables.version()
        query, warnings = resolve_query(tables, asked)
        try:
            candidates = gather(tables, query, encoders)
        except EmbeddingError as error:
            encoders, trouble = {}, error.message
            candidates = gather(tables, query, encoders)
        hits = rank(candidates, query)
        paths = [hit.unit.path for hit in hits]
        complete, outdated = tables.meta().complete, changed_files(tables, paths)
        if outdated:  # the index may hold it by now
            tables.look_again()
            outdated = changed_files(tables, paths)
        if self.catch_up and complete:
            caught_up = bool(outdated) and self.catch_up(outdated)
            # Also where the index caught up by itself between the search and that look.
            if caught_up or tables.version() != version:
                tables.look_again()
                query, warnings = resolve_query(tables, asked)
                candidates = gather(tables, query, encoders)
                hits = rank(candidates, query)
        warnings += filter(None, [behind, "" if complete else shortfall(tables)])
        warnings = [*tables.notices, *warnings]
        return _First(tables, encoders, trouble, query, candidates, hits, warnings)

    def _model_for_drafts(self, mode: HydeMode, wished: bool, warnings: list[str]) -> Model | None:
        """Return the model that writes drafts, None where none is to or can; why goes to
        `warnings`, where drafts were `wished` for or the model is chosen and cannot be asked."""
        if mode == "off":
            return None
        try:
            model = self.connect()
        except CodeQAError as error:
            warnings.append(f"No draft of the answer was made. {error}")
            return None
        if model is None and wished:
            warnings.append(NO_MODEL)
        return model

    def _encoders(self, tables: Tables) -> tuple[dict[str, Embedding], str]:
        """Vector column → its encoder, for those at hand; and what stood in the way."""
        found: dict[str, Embedding] = {}
        trouble = ""
        for column, record in tables.vector_columns():
            try:
                encoder = self.encoder(record.name) if self.encoder else None
            except EmbeddingError as error:
                encoder, trouble = None, error.message
            if encoder is not None:
                found[column] = encoder
        return found, trouble


def open_search(
    settings: Settings,
    tables: Callable[[], Tables],
    *,
    models: Models | None = None,
    vectors: bool = True,
    catch_up: Callable[[Iterable[str]], bool] | None = None,
    keep_up: Callable[[], str] = str,
    asked: set[str] | None = None,
) -> Search:
    """The search of the index that `tables` opens.

    Without `models` nothing is written by a language model to search by, without `vectors` no
    embedding is used. Raises SettingsError for a reranker that cannot be used.
    """
    return Search(
        tables,
        settings,
        cache(partial(query_embedding, settings)) if vectors else None,  # each is built once
        reranker=choose_reranker(settings),
        connect=models.small_model if models else lambda: None,
        catch_up=catch_up if settings.watch else None,
        keep_up=keep_up,
        asked=set() if asked is None else asked,
    )


def changed_files(tables: Tables, paths: Iterable[str]) -> dict[str, str]:
    """Files among the first FRESH_FILES of `paths` that differ from the manifest, and how."""
    records = tables.files_at(list(dict.fromkeys(paths))[:FRESH_FILES])
    states = {}
    for path, record in records.items():
        root, inside = tables.place_of(path)
        states[path] = replace(record, path=inside).state_below(root)
    return {path: state for path, state in states.items() if state}


def shortfall(tables: Tables) -> str:
    """A sentence on what an answer misses while the first index is made; '' once it is complete."""
    rest = "is being indexed"
    if not holder_of(tables.location):
        tables.look_again()  # the run may have ended just now
        rest = "is not indexed: `codeqa index` goes on"
    elif is_paused(tables.location):
        rest = "waits, for indexing is paused"
    meta, files = tables.meta(), tables.counts().files
    if meta.complete:
        return ""
    return f"Answered from {files:,} of {meta.expected:,} files; the rest {rest}."


def coverage(tables: Tables, columns: Collection[str], trouble: str = "") -> str:
    """What was searched: files, by words and names, and by the vectors of `columns`."""
    counts, meta = tables.counts(), tables.meta()
    of, so_far = (counts.files, "") if meta.complete else (meta.expected, " so far")
    files = f"{counts.files:,} of {of:,} files{so_far}"
    if tables.location.snapshot_of:
        files += f" of {tables.location.name}"
    filled = {"vector": counts.embedded, "vector_refined": counts.refined}
    parts = [
        f"by meaning ({record.name}): {filled[column]:,} of {counts.units:,} pieces"
        for column, record in tables.vector_columns()
        if column in columns
    ]
    if trouble:
        parts.append(f"by meaning left out: {trouble.rstrip('.')}")
    return f"{files}, by words and names; {'; '.join(parts) or 'not by meaning'}"


def search_for_programs(search: Search, guess: str = "", **options: Any) -> dict[str, Any]:
    """What a search with these options finds, by a draft of the code, `guess`, as well: what the
    terminal and HTTP tell programs."""
    result = search.search(drafts=(guess,) if guess.strip() else (), **options)
    return {
        **{name: getattr(result, name) for name in OF_RESULT},
        "stages": [asdict(stage) for stage in result.stages],
        "notice": " ".join(result.warnings),
        "hits": [
            {name: getattr(hit.unit, name) for name in OF_UNIT}
            | {"score": hit.score, "why": hit.why, "channels": dict(hit.channels)}
            for hit in result.units
        ],
        "files": [{"path": file.path, "score": file.score} for file in result.files],
    }
