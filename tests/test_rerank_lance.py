"""LanceDB's reranker interface: ours in its searches, its rerankers in ours. Real tables."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from conftest import Run
from hypothesis import given
from hypothesis import strategies as st
from lancedb.query import MatchQuery
from lancedb.rerankers import (
    LinearCombinationReranker,
    MRRReranker,
    Reranker,
    RRFReranker,
)

from codeqa.errors import RerankerError
from codeqa.indexing import Indexer
from codeqa.search import BuiltInReranker, LanceReranker, Query, Search, lance_reranker, parse_query
from codeqa.search.lance import CHARACTERS, relevance
from codeqa.search.rerank import CANDIDATES
from codeqa.settings import load_settings
from codeqa.store import Tables, locate
from codeqa.types import Hit, Unit

QUESTION = parse_query("when does a session cookie expire")


def hit(number: int, code: str = "", *, text_rank: int = 0) -> Hit:
    unit = Unit(
        path=f"src/m{number:02}.py",
        language="python",
        kind="class" if number % 2 else "function",
        name=f"f{number}",
        qualified_name=f"f{number}",
        source_code=code or f"def f{number}():\n    return {number}",
        start_line=1,
        end_line=2,
        method_declarations=("def g()",) if number % 2 else (),
        id=f"id{number}",
    )
    return Hit(unit, 1 - number / 1_000, ("matches",), {"text": text_rank} if text_rank else {})


HITS = [hit(number) for number in range(60)]


def numbers(hits: Sequence[Hit]) -> list[int]:
    return [int(one.unit.name[1:]) for one in hits]


class Longest(Reranker):
    """A reranker as LanceDB's documentation shows how to write one: the longer, the better."""

    def __init__(self, column: str = "text", seconds: float = 0.0, top: int = 1_000) -> None:
        super().__init__()
        self.column, self.seconds, self.top = column, seconds, top
        self.seen: list[pa.Table] = []

    def rerank_hybrid(
        self, query: str, vector_results: pa.Table, fts_results: pa.Table
    ) -> pa.Table:
        time.sleep(self.seconds)
        rows = self.merge_results(vector_results, fts_results)
        self.seen.append(rows)
        lengths = [float(len(text)) for text in rows[self.column].to_pylist()]
        rows = rows.append_column("_relevance_score", pa.array(lengths, pa.float32()))
        return self._keep_relevance_score(rows.sort_by([("_relevance_score", "descending")]))[
            : self.top
        ]


# Ours in LanceDB's searches


def shop(folder: Path) -> Tables:
    for number in range(12):
        target = folder / "shop" / f"m{number}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            f"def session_{number}(cookie):\n"
            + "    touch(cookie)\n" * number
            + f"    return {number}\n\n\n"
            f"class Basket{number}:\n    cookie = {number}\n"
        )
    settings = load_settings(data=folder / "data", workers=1)
    location = locate(settings, folder / "shop")
    Indexer(settings, location).run()
    return Tables.open(location)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return shop(tmp_path_factory.mktemp("lance"))


@pytest.fixture(scope="module")
def methods(tables: Tables) -> Any:
    """The table of methods as LanceDB opens it, with its vectors and its full-text index."""
    return lancedb.connect(tables.location.tables).open_table("methods")


def by_length(hits: Sequence[Hit], query: Query) -> list[float | None]:
    assert query.words == ("session", "cookie")
    return [float(hit.unit.end_line - hit.unit.start_line) for hit in hits]


def test_ours_is_a_reranker_of_lancedb_and_orders_a_hybrid_search(methods: Any) -> None:
    reranker = lance_reranker("by length", by_length)
    assert isinstance(reranker, Reranker) and str(reranker) == "by length"
    vector = np.asarray(methods.search().limit(1).to_list()[0]["vector"], np.float32)
    found = (
        methods.search(query_type="hybrid", vector_column_name="vector")
        .vector(vector)
        .text(MatchQuery("session cookie", "search_text"))
        .rerank(reranker)
        .limit(12)
        .to_arrow()
    )
    assert [row["name"] for row in found.to_pylist()] == [
        f"session_{number}" for number in reversed(range(12))
    ]
    assert found["_relevance_score"].to_pylist() == sorted(map(float, range(1, 13)), reverse=True)
    assert not {"_score", "_distance"} & set(found.column_names)


def test_ours_orders_a_vector_search_and_a_full_text_search(methods: Any) -> None:
    reranker = lance_reranker("by length", by_length)
    vector = np.asarray(methods.search().limit(1).to_list()[0]["vector"], np.float32)
    nearest = (
        methods.search(vector, vector_column_name="vector")
        .rerank(reranker, query_string="session cookie")
        .limit(12)
    )
    words = (
        methods.search(MatchQuery("session cookie", "search_text"), query_type="fts")
        .rerank(reranker)
        .limit(12)
    )
    for search in (nearest, words):
        names = [row["name"] for row in search.to_list()]
        assert names == [f"session_{number}" for number in reversed(range(12))]


def test_all_scores_are_kept_when_they_are_asked_for(methods: Any) -> None:
    vector = np.asarray(methods.search().limit(1).to_list()[0]["vector"], np.float32)
    found = (
        methods.search(query_type="hybrid", vector_column_name="vector")
        .vector(vector)
        .text(MatchQuery("session cookie", "search_text"))
        .rerank(lance_reranker("by length", by_length, return_score="all"))
        .limit(12)
        .to_arrow()
    )
    assert {"_score", "_distance", "_relevance_score"} <= set(found.column_names)
    assert found["name"].to_pylist() == [f"session_{n}" for n in reversed(range(12))]


def test_a_search_that_finds_nothing_is_reranked_to_nothing(methods: Any) -> None:
    search = methods.search(MatchQuery("xyzzy", "search_text"), query_type="fts")
    found = search.rerank(lance_reranker("by length", by_length)).limit(5).to_arrow()
    assert found.num_rows == 0 and "_relevance_score" in found.column_names


def test_rows_without_the_columns_of_a_unit_are_refused_in_words(methods: Any) -> None:
    search = methods.search(MatchQuery("session cookie", "search_text"), query_type="fts")
    with pytest.raises(RerankerError, match="lack the columns id, path, language"):
        search.select(["name"]).rerank(lance_reranker("x", by_length)).limit(5).to_arrow()


def test_what_a_score_leaves_out_comes_last_in_a_search_of_lancedb(methods: Any) -> None:
    def even(hits: Sequence[Hit], query: Query) -> list[float | None]:
        return [None if int(h.unit.name[8:]) % 2 else float(h.unit.name[8:]) for h in hits]

    search = methods.search(MatchQuery("session cookie", "search_text"), query_type="fts")
    found = search.rerank(lance_reranker("even", even)).limit(12).to_arrow()
    scores = found["_relevance_score"].to_pylist()
    assert scores[:6] == [10, 8, 6, 4, 2, 0] and scores[6:] == [None] * 6


# Every reranker of LanceDB in ours


@pytest.mark.parametrize(
    "reranker", [RRFReranker(), MRRReranker(), LinearCombinationReranker()], ids=str
)
def test_lancedbs_own_rerankers_combine_our_order_with_that_of_the_full_text(
    reranker: Reranker,
) -> None:
    hits = [hit(number, text_rank={8: 1, 5: 2}.get(number, 0)) for number in range(10)]
    found = [score or 0.0 for score in relevance(reranker, hits, QUESTION)]
    assert found[8] > found[7] > 0 and found[5] > found[4] > 0
    done = LanceReranker(reranker).rerank(hits, QUESTION)
    assert done.reranker == str(reranker)
    assert sorted(numbers(done.hits)) == list(range(10))
    assert done.notice == ""


def test_a_reranker_that_somebody_wrote_reads_the_text_of_at_most_fifty_hits() -> None:
    mine = Longest()
    long = [hit(n, "x" * 9_000 if n == 49 else "x" * 3_000 if n == 50 else "") for n in range(60)]
    done = LanceReranker(mine).rerank(long, QUESTION)
    (seen,) = mine.seen
    assert seen.num_rows == CANDIDATES == 50
    assert len(seen["text"].to_pylist()[49]) == CHARACTERS
    assert numbers(done.hits)[0] == 49
    assert numbers(done.hits)[50:] == list(range(50, 60))
    assert [one.score for one in done.hits] == sorted((h.score for h in done.hits), reverse=True)
    assert done.reranker == "Longest"
    assert done.hits[0].why == ("matches", f"reranked by Longest: {CHARACTERS}.00")


def test_fewer_candidates_can_be_asked_for_but_not_more() -> None:
    mine = Longest()
    LanceReranker(mine, candidates=7).rerank(HITS, QUESTION)
    LanceReranker(mine, candidates=700).rerank(HITS, QUESTION)
    assert [seen.num_rows for seen in mine.seen] == [7, CANDIDATES]


def test_what_a_reranker_leaves_out_stays_behind_in_its_order_and_is_said() -> None:
    longer = [hit(n, "x" * (100 + n)) for n in range(20)]
    done = LanceReranker(Longest(top=5)).rerank(longer, QUESTION)
    assert set(numbers(done.hits)[:5]) == {15, 16, 17, 18, 19}
    assert numbers(done.hits)[5:] == list(range(15))
    assert done.notice.startswith("Longest read 5 of 20 hits in ")
    assert done.notice.endswith(" seconds; the others stand behind them.")


def test_a_reranker_that_hangs_is_not_waited_for_beyond_its_time() -> None:
    started = time.monotonic()
    with pytest.raises(RerankerError, match=r"Longest did not answer within 0.2 seconds"):
        LanceReranker(Longest(seconds=1.5), seconds=0.2).rerank(HITS, QUESTION)
    assert time.monotonic() - started < 1.2


def test_a_reranker_that_breaks_says_so_without_the_code_or_the_question() -> None:
    with pytest.raises(RerankerError) as caught:
        LanceReranker(Longest(column="no such column")).rerank(HITS, QUESTION)
    assert caught.value.message == "Longest failed while reading (KeyError)."
    assert caught.value.__suppress_context__


class Nothing(Longest):
    def rerank_hybrid(
        self, query: str, vector_results: pa.Table, fts_results: pa.Table
    ) -> pa.Table:
        return vector_results


class NoNumbers(Longest):
    def rerank_hybrid(
        self, query: str, vector_results: pa.Table, fts_results: pa.Table
    ) -> pa.Table:
        scores = pa.array([float("nan")] * len(vector_results), pa.float32())
        return vector_results.append_column("_relevance_score", scores)


@pytest.mark.parametrize(
    ("reranker", "said"),
    [
        (Nothing(), r"failed while reading \(ValueError\)"),
        (NoNumbers(), "gives scores that are no numbers"),
        (Longest(top=0), "read nothing within"),
    ],
)
def test_an_answer_without_usable_scores_orders_nothing(reranker: Reranker, said: str) -> None:
    with pytest.raises(RerankerError, match=said):
        LanceReranker(reranker).rerank(HITS, QUESTION)


def test_nothing_found_and_nothing_asked_are_reranked_by_nobody() -> None:
    mine = Longest()
    assert LanceReranker(mine).rerank([], QUESTION).hits == []
    assert LanceReranker(mine).rerank(HITS, parse_query("")).hits == HITS
    assert relevance(mine, [], QUESTION) == []
    assert mine.seen == []


# Across the interface nothing is lost


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
            st.floats(-5, 5, allow_nan=False),
            st.integers(0, 9),
        ),
        max_size=8,
    )
)
def test_a_score_of_ours_sees_every_hit_as_it_was_and_answers_in_its_place(
    given_hits: list[tuple[str, float, int]],
) -> None:
    hits = [
        Hit(hit(number, code).unit, score, (), {"text": rank} if rank else {})
        for number, (code, score, rank) in enumerate(given_hits)
    ]
    seen: list[Hit] = []

    def score(candidates: Sequence[Hit], query: Query) -> list[float | None]:
        assert query is QUESTION
        seen.extend(candidates)
        return [None if n % 3 == 2 else float(c.unit.name[1:]) for n, c in enumerate(candidates)]

    found = relevance(lance_reranker("x", score), hits, QUESTION)
    assert [(one.unit, one.score) for one in seen] == [(one.unit, one.score) for one in hits]
    assert found == [None if n % 3 == 2 else float(n) for n in range(len(hits))]


# In a search


def test_a_search_reranks_before_it_cuts(tables: Tables) -> None:
    settings = load_settings(workers=1)
    plain = Search(lambda: tables, settings).search("session cookie", top=12)
    assert "session_11" not in [one.unit.name for one in plain.methods]
    search = Search(lambda: tables, settings, reranker=LanceReranker(Longest()))
    done = search.search("session cookie", top=12, rerank=True)
    assert (done.reranker, done.notice) == ("Longest", "")
    assert "session_11" in [one.unit.name for one in done.methods]
    assert {one.unit.id for one in done.units} <= {
        one.unit.id
        for one in Search(lambda: tables, settings).search("session cookie", top=50).units
    }


# The built-in one keeps to its bounds


def test_the_built_in_reranker_reads_at_most_fifty_hits() -> None:
    near = "when\nsession\ncookie\nexpire"
    beyond = [replace(hit(n, near if n == 55 else ""), score=0.5) for n in range(60)]
    done = numbers(BuiltInReranker().rerank(beyond, QUESTION).hits)
    assert sorted(done[:50]) == list(range(50)) and done[50:] == list(range(50, 60))
    within = [replace(hit(n, near if n == 49 else ""), score=0.5) for n in range(60)]
    assert numbers(BuiltInReranker().rerank(within, QUESTION).hits)[0] == 49


def test_the_built_in_reranker_stops_when_its_time_is_over_and_says_so() -> None:
    done = BuiltInReranker(seconds=-1.0).rerank(HITS, QUESTION)
    assert done.hits == HITS
    assert done.notice.startswith("built-in read 0 of 50 hits in ")
    slow = [hit(n, "session cookie expire\n" * 2_000) for n in range(60)]
    started = time.monotonic()
    done = BuiltInReranker(seconds=0.02).rerank(slow, QUESTION)
    assert time.monotonic() - started < 2
    assert "the others stand behind them" in done.notice
    assert numbers(done.hits) == list(range(60))


def test_lancedb_is_imported_when_something_is_reranked_and_not_before(run_python: Run) -> None:
    script = """
import json, sys
import codeqa.search as retrieval
from codeqa.settings import load_settings
retrieval.choose_reranker(load_settings())
loaded = {name.split(".")[0] for name in sys.modules}
print(json.dumps(sorted(loaded & {"lancedb", "pyarrow", "requests", "rerankers"})))
"""
    done = run_python("-c", script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
