"""The one place where hits pass through LanceDB's reranker interface, in both directions.

`lance_reranker` makes a LanceDB reranker of a function that scores hits; it works in any
search of a unit table. `relevance` hands hits to a LanceDB reranker, ours or any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from codeqa.errors import RerankerError
from codeqa.search.query import Query, parse_query
from codeqa.store.records import unit_of
from codeqa.store.schema import CLASS_COLUMNS, UNIT_COLUMNS
from codeqa.types import Hit, Unit

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.rerankers import Reranker as LanceDBReranker

CHARACTERS = 2_000
"""Of a unit that a model is given: the tokens that models of this size read are fewer."""

ROW, TEXT, FIRST, RELEVANCE = "_rowid", "text", "_first_score", "_relevance_score"
"""LanceDB's names, but FIRST: the score of the stage before, which the table itself lacks."""

Score = Callable[[Sequence[Hit], Query], Sequence[float | None]]
"""Relevance of each hit, in their order; None for one that was not read."""


class _Question(str):
    """A question as LanceDB's interface wants it: a string, with how it was taken apart."""

    parsed: Query

    @classmethod
    def of(cls, query: Query) -> _Question:
        question = cls(query.text)
        question.parsed = query
        return question


def document(unit: Unit) -> str:
    """What a model reads of a unit: where it is, what it is called, how its code begins."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:CHARACTERS]


def lance_reranker(name: str, score: Score, *, return_score: str = "relevance") -> LanceDBReranker:
    """A LanceDB reranker for searches of a unit table; `score` gives the relevance.

    What `score` leaves out comes last with no relevance. `return_score` is LanceDB's. Raises
    RerankerError as `score` does, and for rows that lack columns of a unit.
    """
    made: LanceDBReranker = _reranker_class()(name, score, return_score)
    return made


def relevance(reranker: LanceDBReranker, hits: Sequence[Hit], query: Query) -> list[float | None]:
    """The relevance that a LanceDB reranker gives to each of `hits`, None for what it leaves out.

    Its two sides are all hits in their order, as the vector search's, and those that the
    full-text search found, in its order: a reranker by ranks has two lists to combine, one
    that reads the text gets each hit once. Raises what the reranker raises, and ValueError
    when it gives back a table without `_relevance_score`.
    """
    if not hits:
        return []
    table, text_side = _tables(hits)
    found = reranker.rerank_hybrid(_Question.of(query), table, text_side)
    if RELEVANCE not in found.column_names or ROW not in found.column_names:
        raise ValueError(f"the reranker gives back no {ROW} or no {RELEVANCE}")
    given = dict(zip(found[ROW].to_pylist(), found[RELEVANCE].to_pylist(), strict=True))
    return [given.get(row) for row in range(len(hits))]


def _tables(hits: Sequence[Hit]) -> tuple[pa.Table, pa.Table]:
    """`hits` as LanceDB's vector and full-text searches would give them."""
    import pyarrow as pa

    best = max(abs(hit.score) for hit in hits) or 1.0
    columns: dict[str, Any] = {
        name: [getattr(hit.unit, name) for hit in hits] for name in CLASS_COLUMNS
    }
    columns["method_declarations"] = [list(hit.unit.method_declarations) for hit in hits]
    columns[TEXT] = [document(hit.unit) for hit in hits]
    columns[FIRST] = [hit.score for hit in hits]
    columns[ROW] = pa.array(range(len(hits)), pa.uint64())
    table = pa.table(columns)
    distances = pa.array([1 - hit.score / best for hit in hits], pa.float32())
    ranked = sorted(
        (hit.channels["text"], row) for row, hit in enumerate(hits) if "text" in hit.channels
    )
    text_side = table.take(pa.array([row for _, row in ranked], pa.int64())).append_column(
        "_score", pa.array([1 / rank for rank, _ in ranked], pa.float32())
    )
    return table.append_column("_distance", distances), text_side


def _hits(table: pa.Table) -> list[Hit]:
    """Rows of a unit table as hits, scored by the stage before or else by their place."""
    lacking = [name for name in UNIT_COLUMNS if name not in table.column_names]
    if lacking:
        raise RerankerError(
            f"The rows to rerank lack the columns {', '.join(lacking[:3])}.",
            "Select all columns of the table in the search that reranks.",
        )
    read = [name for name in (*CLASS_COLUMNS, FIRST) if name in table.column_names]
    return [
        Hit(unit_of(row), row.get(FIRST, 1 - place / table.num_rows))
        for place, row in enumerate(table.select(read).to_pylist())
    ]


def _asked(question: Any) -> Query:
    """The question, taken apart; a full-text query of LanceDB carries its words in `query`."""
    if isinstance(question, _Question):
        return question.parsed
    return parse_query(str(question if isinstance(question, str) else question.query))


@cache
def _reranker_class() -> Any:
    """The class, made on first use: LanceDB is imported then."""
    import pyarrow as pa
    from lancedb.rerankers import Reranker

    class UnitReranker(Reranker):
        """Orders units by a score of ours, in LanceDB's vector, full-text and hybrid searches."""

        def __init__(self, name: str, score: Score, return_score: str) -> None:
            super().__init__(return_score)
            self._name = name
            self._score_hits = score

        def __str__(self) -> str:
            return self._name

        def rerank_hybrid(
            self, query: str, vector_results: pa.Table, fts_results: pa.Table
        ) -> pa.Table:
            merge = self.merge_results if self.score == "relevance" else self._merge_and_keep_scores
            return self._ordered(query, merge(vector_results, fts_results))

        def rerank_vector(self, query: str, vector_results: pa.Table) -> pa.Table:
            return self._ordered(query, vector_results)

        def rerank_fts(self, query: str, fts_results: pa.Table) -> pa.Table:
            return self._ordered(query, fts_results)

        def _ordered(self, query: str, rows: pa.Table) -> pa.Table:
            scores = self._relevance(query, rows) if rows.num_rows else []
            ranked = rows.append_column(RELEVANCE, pa.array(scores, pa.float32()))
            order = sorted(range(len(scores)), key=lambda row: _last_without(scores[row]))
            return self._keep_relevance_score(ranked.take(pa.array(order, pa.int64())))

        def _relevance(self, query: str, rows: pa.Table) -> Sequence[float | None]:
            return self._score_hits(_hits(rows), _asked(query))

    return UnitReranker


def _last_without(score: float | None) -> float:
    return math.inf if score is None else -score
