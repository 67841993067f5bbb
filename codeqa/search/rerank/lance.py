"""A reranker of LanceDB's, its own or anybody's, as one of ours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from codeqa.search.query import Query
from codeqa.search.rerank.model import SECONDS, ModelReranker
from codeqa.search.rerank.reranker import CANDIDATES, document
from codeqa.store.schema import CLASS_COLUMNS
from codeqa.types import Hit

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.rerankers import Reranker as LanceDBReranker

ROW, TEXT, RELEVANCE = "_rowid", "text", "_relevance_score"
"""LanceDB's names of the columns."""


def lance_reranker(
    reranker: LanceDBReranker, *, candidates: int = CANDIDATES, seconds: float = SECONDS
) -> ModelReranker:
    """`reranker` asked through LanceDB's interface, within our bounds (see ModelReranker)."""
    return ModelReranker(
        str(reranker), partial(relevance, reranker), candidates=candidates, seconds=seconds
    )


def relevance(reranker: LanceDBReranker, hits: Sequence[Hit], query: Query) -> list[float | None]:
    """The relevance that a LanceDB reranker gives to each of `hits`, None for what it leaves out.

    Its two sides are all hits in their order, as the vector search's, and those that the
    full-text search found, in its order: a reranker by ranks has two lists to combine, one
    that reads the text gets each hit once. Raises what the reranker raises, and ValueError
    when it gives back a table without `_relevance_score`.
    """
    found = reranker.rerank_hybrid(query.text, *_tables(hits))
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
