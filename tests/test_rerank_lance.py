"""Every reranker of LanceDB as one of ours."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import Run
from lancedb.rerankers import (
    LinearCombinationReranker,
    MRRReranker,
    Reranker,
    RRFReranker,
)
from reranking import HITS, hit, numbers

from codeqa.errors import RerankerError
from codeqa.indexing import Indexer
from codeqa.search import Search, lance_reranker, parse_query
from codeqa.search.rerank.lance import relevance
from codeqa.search.rerank.reranker import CANDIDATES, CHARACTERS
from codeqa.settings import load_settings
from codeqa.store import Tables, locate

QUESTION = parse_query("when does a session cookie expire")


class Longest(Reranker):
    """A reranker as LanceDB's documentation shows how to write one: the longer, the better."""

    def __init__(self, column: str = "text", seconds: float = 0.0, top: int = 1_000) -> None:
        super().__init__()
        self.column, self.seconds, self.top = column, seconds, top
        self.seen: list[pa.Table] = []

    def rerank_hybrid(
        self, query: str, vector_results: pa.Table, fts_results: pa.Table
    ) -> pa.Table:
        assert query == QUESTION.text or query == "session cookie"
        time.sleep(self.seconds)
        rows = self.merge_results(vector_results, fts_results)
        self.seen.append(rows)
        lengths = [float(len(text)) for text in rows[self.column].to_pylist()]
        rows = rows.append_column("_relevance_score", pa.array(lengths, pa.float32()))
        return self._keep_relevance_score(rows.sort_by([("_relevance_score", "descending")]))[
            : self.top
        ]


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
    "reranker", [RRFReranker(), MRRReranker(), LinearCombinationReranker()], ids=str
)
def test_lancedbs_own_rerankers_combine_our_order_with_that_of_the_full_text(
    reranker: Reranker,
) -> None:
    text_ranks = {8: {"text": 1}, 5: {"text": 2}}
    hits = [replace(hit(n), channels=text_ranks.get(n, {})) for n in range(10)]
    found = [score or 0.0 for score in relevance(reranker, hits, QUESTION)]
    assert found[8] > found[7] > 0 and found[5] > found[4] > 0
    done = lance_reranker(reranker).rerank(hits, QUESTION)
    assert (done.reranker, done.warnings) == (str(reranker), ())
    assert sorted(numbers(done.hits)) == list(range(10))


def test_a_reranker_that_somebody_wrote_reads_the_text_of_at_most_fifty_hits() -> None:
    mine = Longest()
    long = [hit(n, "x" * 9_000 if n == 49 else "x" * 3_000 if n == 50 else "") for n in range(60)]
    done = lance_reranker(mine).rerank(long, QUESTION)
    (seen,) = mine.seen
    assert seen.num_rows == CANDIDATES == 50
    assert len(seen["text"].to_pylist()[49]) == CHARACTERS
    assert numbers(done.hits)[0] == 49
    assert numbers(done.hits)[50:] == list(range(50, 60))
    assert [one.score for one in done.hits] == sorted((h.score for h in done.hits), reverse=True)
    assert done.hits[0].why == ("matches", f"reranked by Longest: {CHARACTERS}.00")


def test_fewer_candidates_can_be_asked_for_but_not_more() -> None:
    mine = Longest()
    lance_reranker(mine, candidates=7).rerank(HITS, QUESTION)
    lance_reranker(mine, candidates=700).rerank(HITS, QUESTION)
    assert [seen.num_rows for seen in mine.seen] == [7, CANDIDATES]


def test_what_a_reranker_leaves_out_stays_behind_in_its_order_and_is_said() -> None:
    longer = [hit(n, "x" * (100 + n)) for n in range(20)]
    done = lance_reranker(Longest(top=5)).rerank(longer, QUESTION)
    assert set(numbers(done.hits)[:5]) == {15, 16, 17, 18, 19}
    assert numbers(done.hits)[5:] == list(range(15))
    (warning,) = done.warnings
    assert warning.startswith("Longest read 5 of 20 hits in ")
    assert warning.endswith(" seconds; the others stand behind them.")


def test_a_reranker_that_hangs_is_not_waited_for_beyond_its_time() -> None:
    started = time.monotonic()
    with pytest.raises(RerankerError, match=r"Longest did not answer within 0.2 seconds"):
        lance_reranker(Longest(seconds=1.5), seconds=0.2).rerank(HITS, QUESTION)
    assert time.monotonic() - started < 1.2


@pytest.mark.parametrize(
    ("reranker", "said"),
    [
        (Longest(column="no such column"), r"^Longest failed while reading \(KeyError\)"),
        (Nothing(), r"failed while reading \(ValueError\)"),
        (NoNumbers(), "gives scores that are no numbers"),
        (Longest(top=0), "read nothing within"),
    ],
)
def test_without_usable_scores_nothing_is_ordered_and_neither_code_nor_question_is_told(
    reranker: Reranker, said: str
) -> None:
    with pytest.raises(RerankerError, match=said) as caught:
        lance_reranker(reranker).rerank(HITS, QUESTION)
    assert caught.value.__cause__ is None
    assert "cookie" not in str(caught.value) and "def" not in str(caught.value)


def test_nothing_found_and_nothing_asked_are_reranked_by_nobody() -> None:
    mine = Longest()
    assert lance_reranker(mine).rerank([], QUESTION).hits == []
    assert lance_reranker(mine).rerank(HITS, parse_query("")).hits == HITS
    assert mine.seen == []


def test_a_search_reranks_before_it_cuts(tmp_path: Path) -> None:
    for number in range(12):
        target = tmp_path / "shop" / f"m{number}.py"
        target.parent.mkdir(exist_ok=True)
        lines = "    touch(cookie)\n" * number
        target.write_text(f"def session_{number}(cookie):\n{lines}    return {number}\n")
    settings = load_settings(data=tmp_path / "data", workers=1)
    location = locate(settings, tmp_path / "shop")
    Indexer(settings, location).run()
    tables = Tables.open(location)
    search = Search(lambda: tables, settings, reranker=lance_reranker(Longest()))
    plain = search.search("session cookie", top=5)
    assert "session_11" not in [one.unit.name for one in plain.methods]
    done = search.search("session cookie", top=5, rerank=True)
    assert (done.reranker, done.warnings) == ("Longest", ())
    assert "session_11" in [one.unit.name for one in done.methods]
    everything = search.search("session cookie", top=50).units
    assert {one.unit.id for one in done.units} <= {one.unit.id for one in everything}


def test_nothing_is_imported_before_something_is_reranked(run_python: Run) -> None:
    script = """
import json, sys
from codeqa.search import choose_reranker, parse_query, reranker_status
from codeqa.settings import load_settings
from codeqa.types import Hit, Unit
for value in ("auto", "built-in", "cohere/rerank-v3.5"):
    reranker = choose_reranker(load_settings(reranker=value, cohere_api_key="k"))
    reranker_status(load_settings(reranker=value))
before = {name.split(".")[0] for name in sys.modules}
hit = Hit(Unit("a.py", "python", "function", "f", "f", "session cookie", 1, 1), 1.0)
for value in ("auto", "built-in"):
    reranker = choose_reranker(load_settings(reranker=value))
    assert reranker.rerank([hit], parse_query("session cookie")).reranker == "built-in"
after = {name.split(".")[0] for name in sys.modules}
print(json.dumps([sorted(before), sorted(after)]))
"""
    done = run_python("-c", script)
    assert done.returncode == 0, done.stderr
    before, after = map(set, json.loads(done.stdout))
    assert not before & {"lancedb", "pyarrow", "httpx2", "rerankers", "fastembed", "onnxruntime"}
    assert not after & {"fastembed", "onnxruntime", "rerankers"}
