"""The rerank switch, the choice of a reranker, and what happens when the wished one cannot work.

Nothing here needs torch: rankers are the library's own kind, scoring by words. The model itself
is tried in test_rerank_colbert.py.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rerankers.documents import Document
from rerankers.models.ranker import BaseRanker
from rerankers.results import RankedResults, Result
from reranking import hit, numbers

from codeqa.errors import RerankerError
from codeqa.search import Reranked, choose_reranker, parse_query, parse_rerank, reranker_status
from codeqa.search.rerank import checkpoint as checkpoints
from codeqa.search.rerank import choice, local
from codeqa.search.rerank.built_in import BuiltInReranker
from codeqa.search.rerank.local import BATCH, CANDIDATES, LocalModel, local_reranker
from codeqa.search.rerank.model import ModelReranker
from codeqa.settings import load_settings

QUESTION = parse_query("when does a session cookie expire")
HITS = [hit(number) for number in range(40)]


class WordRanker(BaseRanker):
    """A ranker as `rerankers` has them: a score by number of the document, and a pace."""

    def __init__(self, scores: Callable[[int], float] = float, seconds: float = 0.0) -> None:
        self.scores = scores
        self.seconds = seconds
        self.batches: list[list[str]] = []
        self.alone = threading.Lock()

    def rank(
        self, query: str, docs: list[str], doc_ids: list[int] | None = None, **_: Any
    ) -> RankedResults:
        assert self.alone.acquire(blocking=False), "two threads are in the ranker at once"
        try:
            time.sleep(self.seconds)
            self.batches.append(docs)
            scored = [
                (self.score(query, text), Document(text=text, doc_id=number))
                for text, number in zip(docs, doc_ids or [], strict=True)
            ]
            scored.sort(key=lambda pair: -pair[0])
            results = [Result(document=one, score=score) for score, one in scored]
            return RankedResults(results=results, query=query, has_scores=True)
        finally:
            self.alone.release()

    def score(self, query: str, doc: str) -> float:
        return self.scores(int(doc.split("/m")[1][:2]))


def with_model(checkpoint: str = "./x-small", **options: Any) -> ModelReranker:
    return local_reranker(LocalModel(checkpoint, download=False, **options))


def with_ranker(ranker: BaseRanker, seconds: float = 5.0) -> ModelReranker:
    return with_model(seconds=seconds, load=lambda *_, **__: ranker)


# The switch


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    )
    | st.sampled_from([True, "true", "True", "1", 1, 1.0])
)
def test_the_switch_is_on_for_exactly_what_the_source_lists(value: object) -> None:
    assert parse_rerank(value) is (value in [True, "true", "True", "1"])


# A model: order, batches, time


def test_a_model_orders_the_first_hits_and_the_rest_stays_behind() -> None:
    ranker = WordRanker(scores=lambda n: 0.9 if n == 17 else 0.5)
    done = with_ranker(ranker).rerank(HITS, QUESTION)
    assert numbers(done.hits)[0] == 17
    assert numbers(done.hits[CANDIDATES:]) == list(range(CANDIDATES, 40))
    assert sorted(numbers(done.hits)) == list(range(40))
    assert [one.score for one in done.hits] == sorted((h.score for h in done.hits), reverse=True)
    assert done.hits[0].why == ("matches", "reranked by x-small: 0.90")
    assert (done.reranker, done.warnings) == ("x-small", ())
    assert with_model("./never").rerank([], QUESTION) == Reranked([], "")


def test_the_first_stage_has_half_a_say_and_penalties_hold() -> None:
    same = WordRanker(scores=lambda n: 1.0)
    assert numbers(with_ranker(same).rerank(HITS[:5], QUESTION).hits) == [0, 1, 2, 3, 4]
    test, source = hit(0, role="test", score=0.5), hit(1, score=0.5)
    likes_the_test = WordRanker(scores=lambda n: 1.0 if n == 0 else 0.7)
    worst = hit(2, score=0.01)
    scores = {0: 1.0, 1: 0.8, 2: 0.0}
    done = with_ranker(WordRanker(scores=scores.__getitem__)).rerank(
        [test, source, worst], QUESTION
    )
    assert numbers(done.hits) == [1, 0, 2]
    asked_for = parse_query("which test checks the session cookie")
    done = with_ranker(likes_the_test).rerank([test, source], asked_for)
    assert numbers(done.hits) == [0, 1]


def test_what_is_not_read_in_time_stands_behind_and_is_said() -> None:
    slow = WordRanker(scores=float, seconds=0.15)
    done = with_ranker(slow, seconds=0.4).rerank(HITS, QUESTION)
    read = sum(map(len, slow.batches))
    assert 0 < read <= 2 * BATCH  # a third batch could not have ended in time
    assert numbers(done.hits)[0] == read - 1
    assert numbers(done.hits)[read:] == list(range(read, 40))
    assert re.fullmatch(
        rf"x-small read {read} of 20 hits in 0\.[1-9] seconds; the others stand behind them\.",
        *done.warnings,
    )


def test_a_model_that_is_still_loading_is_not_waited_for_beyond_the_time() -> None:
    go = threading.Event()

    def load(*_: object, **__: object) -> BaseRanker:
        go.wait(10)
        return WordRanker()

    reranker = with_model(seconds=0.1, load=load)
    started = time.monotonic()
    with pytest.raises(RerankerError, match=r"x-small did not answer within 1.1 seconds"):
        reranker.rerank(HITS, QUESTION)
    assert time.monotonic() - started < 2
    go.set()
    deadline = time.monotonic() + 5
    while True:  # loaded behind, the next question has it
        try:
            assert reranker.rerank(HITS, QUESTION).reranker == "x-small"
            break
        except RerankerError:
            assert time.monotonic() < deadline


def test_a_model_is_loaded_once_for_all_that_ask_at_the_same_time() -> None:
    loads: list[str] = []
    ranker = WordRanker(seconds=0.01)

    def load(checkpoint: str, *_: object, **__: object) -> BaseRanker:
        loads.append(checkpoint)
        time.sleep(0.05)
        return ranker

    reranker = with_model(load=load)
    done: list[list[int]] = []

    def ask() -> None:
        done.append(numbers(reranker.rerank(HITS, QUESTION).hits))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert loads == ["./x-small"]
    assert len(done) == 6 and all(order == done[0] for order in done)


def test_after_a_failure_the_checkpoint_is_left_alone_for_a_while_and_then_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[int] = []

    def load(*_: object, **__: object) -> BaseRanker:
        tries.append(1)
        if len(tries) == 1:
            raise RerankerError("The hub is away.", "Wait.")
        return WordRanker()

    reranker = with_model(load=load)
    for _ in range(3):
        with pytest.raises(RerankerError, match="The hub is away"):
            reranker.rerank(HITS, QUESTION)
    assert len(tries) == 1
    monkeypatch.setattr(local, "RETRY_SECONDS", -1.0)
    assert reranker.rerank(HITS, QUESTION).reranker == "x-small"
    assert len(tries) == 2


def test_a_failure_that_nobody_foresaw_is_still_one_that_is_explained() -> None:
    def load(*_: object, **__: object) -> BaseRanker:
        raise PermissionError("denied")

    with pytest.raises(RerankerError, match=r"x-small cannot be loaded \(PermissionError\)"):
        with_model(load=load).rerank(HITS, QUESTION)


def test_a_ranker_that_breaks_says_so_without_the_code_or_the_question() -> None:
    class Broken(WordRanker):
        def score(self, query: str, doc: str) -> float:
            raise ValueError(f"cannot read {query} {doc}")

    with pytest.raises(RerankerError) as caught:
        with_ranker(Broken()).rerank(HITS, QUESTION)
    assert "x-small failed while reading (ValueError)" in caught.value.message
    assert "cookie" not in str(caught.value) and "def" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


# The choice


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed, whatever this machine has."""
    find = checkpoints.find_spec
    monkeypatch.setattr(
        checkpoints,
        "find_spec",
        lambda name: None if name in ("torch", "transformers") else find(name),
    )


@pytest.fixture
def with_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is installed."""
    monkeypatch.setattr(checkpoints, "find_spec", lambda name: object())
    monkeypatch.setattr(checkpoints, "version", lambda name: "4.57.6")


@pytest.fixture(autouse=True)
def forget_loaded_models() -> None:
    local.shared.cache_clear()


def test_automatically_the_built_in_one_is_taken_without_the_extra_and_without_a_word(
    no_torch: None,
) -> None:
    for value in ("auto", "", " auto ", "built-in"):
        reranker = choose_reranker(load_settings(reranker=value))
        done = reranker.rerank(HITS, QUESTION)
        assert (done.reranker, done.warnings) == ("built-in", ())


def test_a_wished_model_without_the_extra_is_replaced_and_the_answer_says_how_to_get_it(
    no_torch: None,
) -> None:
    wished = choose_reranker(load_settings(reranker="answerdotai/answerai-colbert-small-v1"))
    done = wished.rerank(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert done.hits == BuiltInReranker().rerank(HITS, QUESTION).hits
    assert done.warnings == (
        "answerdotai/answerai-colbert-small-v1 cannot be used: torch and transformers are not "
        "installed. The built-in reranker was used. "
        "Install them with `pip install 'codeqa[rerank]'`.",
    )


def test_a_transformers_that_the_loader_cannot_use_is_named(
    with_torch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "version", lambda name: "5.23.0")
    ok, message, hint = reranker_status(load_settings(reranker="owner/name"))
    assert not ok
    assert "transformers 4" in message and "5.23.0 is installed" in message
    assert "codeqa[rerank]" in hint


@pytest.mark.parametrize(
    ("files", "lacking"),
    [
        (None, "does not exist"),
        ((), "holds no config.json"),
        (("config.json",), "holds no tokenizer"),
        (("config.json", "vocab.txt"), "holds no weights"),
    ],
)
def test_a_folder_that_is_no_checkpoint_says_what_it_lacks(
    with_torch: None, tmp_path: Path, files: tuple[str, ...] | None, lacking: str
) -> None:
    folder = tmp_path / "colbert-small"
    if files is not None:
        folder.mkdir()
    for name in files or ():
        (folder / name).write_text("{}")
    settings = load_settings(reranker=str(folder))
    ok, message, hint = reranker_status(settings)
    assert (ok, message) == (False, f"The reranker's folder {folder} {lacking}.")
    assert "CODEQA_RERANKER" in hint
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert done.reranker == "built-in"
    (warning,) = done.warnings
    assert warning.startswith(message) and "The built-in reranker was used." in warning


@pytest.mark.parametrize("value", ["a/b/c", "two words", "https://host/x", "owner/..", "-x"])
def test_what_is_neither_a_folder_nor_a_name_is_refused(with_torch: None, value: str) -> None:
    ok, message, hint = reranker_status(load_settings(reranker=value))
    assert not ok
    assert repr(value) in message and "./path" in hint


def test_a_folder_of_the_working_directory_is_taken_only_when_it_is_written_as_one(
    with_torch: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "owner" / "name"
    planted.mkdir(parents=True)
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        (planted / name).write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checkpoints, "_cached", lambda name: None)
    assert checkpoints.local_folder("owner/name") is None
    assert checkpoints.local_folder("./owner/name") == planted
    assert checkpoints.short_name("./owner/name") == "name"
    assert checkpoints.short_name("owner/name") == "owner/name"


def test_the_status_says_which_reranker_would_be_used(no_torch: None) -> None:
    assert reranker_status(load_settings(reranker="built-in")) == (True, "built-in", "")
    ok, message, hint = reranker_status(load_settings())
    assert ok and not hint
    assert message.startswith("built-in; answerdotai/answerai-colbert-small-v1 is not used")
    ok, message, hint = reranker_status(load_settings(reranker="owner/name"))
    assert not ok
    assert message == "owner/name cannot be used: torch and transformers are not installed."
    assert "pip install" in hint


def test_a_working_model_is_used_and_named(
    with_torch: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "shared", lambda *_, **__: with_ranker(WordRanker()))
    done = choose_reranker(load_settings(reranker="./x-small")).rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("x-small", ())
    assert numbers(done.hits)[0] == CANDIDATES - 1
