"""The rerank switch, the built-in reranker, the choice of one, and what is done where it fails.

Nothing here runs a model: scores go by the number of the text. Models themselves are tried in
test_rerank_local.py.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from indexed import indexed
from reranking import HITS as SIXTY
from reranking import hit, numbers

from codeqa.embeddings import local
from codeqa.embeddings.registry import question_matcher
from codeqa.errors import EmbeddingError, RerankerError
from codeqa.search import rerank
from codeqa.search.hybrid import Search
from codeqa.search.query import parse_query
from codeqa.search.rerank import (
    BATCH,
    ModelReranker,
    Reranked,
    Score,
    choose_reranker,
    files_of,
    local_reranker,
    parse_rerank,
    rerank_built_in,
    reranker_status,
    shared,
    used_by_better,
)
from codeqa.search.rerank import LOCAL_CANDIDATES as CANDIDATES
from codeqa.settings import load_settings
from codeqa.text.unit_text import UnitText
from codeqa.types import Hit, Unit

QUESTION = parse_query("when does a session cookie expire")
HITS = [hit(number) for number in range(40)]
FILLER = "\n".join(f"    total_{number} = rows[{number}] + offset" for number in range(80))
"""Lines that have nothing to do with any question here."""
PASSWORD = """\
    salt = os.urandom(16)
    digest = hashlib.pbkdf2_hmac("sha256", password, salt, 100_000)
    return base64.b64encode(salt + digest)"""


def named(name: str, code: str, *, path: str = "", score: float = 1.0, first: int = 1) -> Hit:
    last = first + code.count("\n")
    path = path or f"{name}.py"
    unit = Unit(path, "python", "function", name, name, code, first, last, id=path + name)
    return Hit(unit, score)


def scoring(by_number: Callable[[int], float] = float, seconds: float = 0.0) -> Score:
    """A model that scores by the number of the text and takes `seconds` for a batch."""

    def score(question: str, texts: Sequence[str]) -> Iterable[float]:
        for place, text in enumerate(texts):
            if place % BATCH == 0:
                time.sleep(seconds)
            yield by_number(int(text.split("/m")[1][:2]))

    return score


def loading(load: Callable[[], Score], seconds: float = 5.0) -> ModelReranker:
    return local_reranker("x-small", load, seconds)


def with_model(score: Score, seconds: float = 5.0) -> ModelReranker:
    return loading(lambda: score, seconds)


# The switch


def test_the_switch_is_on_for_exactly_what_the_source_lists() -> None:
    assert all(map(parse_rerank, (True, "true", "True", "1", 1)))
    assert not any(map(parse_rerank, (False, "false", "TRUE", "yes", "", None, 0, 2, [True], {})))


# A model: order, batches, time


def test_a_model_orders_the_first_hits_and_the_rest_stays_behind() -> None:
    done = with_model(scoring(lambda n: 0.9 if n == 17 else 0.5)).rerank(HITS, QUESTION)
    assert numbers(done.hits)[0] == 17
    assert numbers(done.hits[CANDIDATES:]) == list(range(CANDIDATES, 40))
    assert sorted(numbers(done.hits)) == list(range(40))
    assert [one.score for one in done.hits] == sorted((h.score for h in done.hits), reverse=True)
    assert done.hits[0].why == ("matches", "reranked by x-small: 0.90")
    assert (done.reranker, done.warnings) == ("x-small", ())
    assert with_model(scoring()).rerank([], QUESTION) == Reranked([], "")


def test_the_first_stage_has_half_a_say_and_penalties_hold() -> None:
    same = with_model(scoring(lambda n: 1.0))
    assert numbers(same.rerank(HITS[:5], QUESTION).hits) == [0, 1, 2, 3, 4]
    test, source, worst = hit(0, role="test", score=0.5), hit(1, score=0.5), hit(2, score=0.01)
    done = with_model(scoring({0: 1.0, 1: 0.8, 2: 0.0}.__getitem__))
    assert numbers(done.rerank([test, source, worst], QUESTION).hits) == [1, 0, 2]
    likes_the_test = with_model(scoring(lambda n: 1.0 if n == 0 else 0.7))
    asked_for = parse_query("which test checks the session cookie")
    assert numbers(likes_the_test.rerank([test, source], asked_for).hits) == [0, 1]


def test_what_is_not_read_in_time_stands_behind_and_is_said() -> None:
    done = with_model(scoring(float, 0.15), seconds=0.2).rerank(HITS, QUESTION)
    (warning,) = done.warnings
    said = re.fullmatch(
        r"x-small read (\d+) of 20 hits in \d\.\d seconds; the others stand behind them\.", warning
    )
    assert said
    read = int(said[1])
    assert 0 < read <= 2 * BATCH and read % BATCH == 0
    assert numbers(done.hits)[0] == read - 1
    assert numbers(done.hits)[read:] == list(range(read, 40))


def test_a_model_that_is_still_loading_is_not_waited_for_beyond_the_time() -> None:
    go = threading.Event()

    def load() -> Score:
        go.wait(10)
        return scoring()

    reranker = loading(load, seconds=0.1)
    with pytest.raises(RerankerError, match=r"x-small did not answer within 1.1 seconds"):
        reranker.rerank(HITS, QUESTION)
    go.set()
    deadline = time.monotonic() + 5
    while True:  # loaded behind, the next question has it
        try:
            assert reranker.rerank(HITS, QUESTION).reranker == "x-small"
            break
        except RerankerError:
            assert time.monotonic() < deadline


def test_a_model_is_loaded_once_for_all_that_ask_at_the_same_time() -> None:
    loads: list[int] = []

    def load() -> Score:
        loads.append(1)
        time.sleep(0.05)
        return scoring(seconds=0.01)

    reranker = loading(load)
    done: list[list[int]] = []

    def ask() -> None:
        done.append(numbers(reranker.rerank(HITS, QUESTION).hits))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert loads == [1]
    assert len(done) == 6 and all(order == done[0] for order in done)


def test_a_model_that_breaks_says_so_without_the_code_or_the_question() -> None:
    def broken(question: str, texts: Sequence[str]) -> Iterable[float]:
        raise ValueError(f"cannot read {question} {texts}")

    with pytest.raises(RerankerError) as caught:
        with_model(broken).rerank(HITS, QUESTION)
    assert "x-small failed while reading (ValueError)" in caught.value.message
    assert "cookie" not in str(caught.value) and "def" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


# The built-in one: what it reads, what it makes of that, and its bounds


def test_the_nearest_passage_of_a_long_unit_is_found_and_its_lines_told() -> None:
    near = question_matcher("encrypt the password with a salted hash")
    long = UnitText("app.py", "", "work", "", "", f"def work():\n{FILLER}\n{PASSWORD}\n{FILLER}")
    found = near.nearness(long)
    assert found.first_line <= 82 <= found.last_line
    alone = near.nearness(UnitText("app.py", "", "work", "", "", f"def work():\n{PASSWORD}"))
    filler = near.nearness(UnitText("app.py", "", "work", "", "", f"def work():\n{FILLER}"))
    assert alone.passage > found.passage > filler.passage
    assert alone.late > filler.late


def test_what_better_hits_call_is_lifted_and_what_only_holds_it_does_not_count() -> None:
    caller = named("handle", "def handle():\n    verify_token()", path="a.py")
    called = named("verify_token", "def verify_token():\n    pass", path="b.py")
    other = named("unrelated", "def unrelated():\n    pass", path="c.py")
    outer = Unit("b.py", "python", "class", "Box", "Box", "def verify_token(): ...", 1, 9, id="o")
    assert used_by_better([caller, other, called]) == [0.0, 0.0, 1.0]
    assert used_by_better([Hit(outer, 2.0), called]) == [0.0, 0.0]
    twin = named("verify_token", "def verify_token():\n    pass", path="d.py")
    assert used_by_better([other, caller, called, twin]) == [0.0, 0.0, 0.25, 0.25]
    asked = parse_query("who checks the token of a visitor")
    done = rerank_built_in([caller, other, called], asked)
    why = {one.unit.name: one.why[-1] for one in done.hits}
    assert why["verify_token"].endswith("and better hits use it")
    assert "better hits" not in why["unrelated"]


def test_the_built_in_reranker_lifts_what_means_the_question_and_says_which_lines() -> None:
    query = parse_query("encrypt the password with a salted hash")
    wrong = named("offsets", f"def offsets(rows):\n{FILLER}", score=1.0)
    right = named("protect", f"def protect(password):\n{PASSWORD}", score=0.97, first=11)
    done = rerank_built_in([wrong, right], query)
    assert [one.unit.name for one in done.hits] == ["protect", "offsets"]
    assert done.hits[0].why[-1] == "reranked: lines 11-14 come closest"
    assert (done.reranker, done.warnings) == ("built-in", ())


def test_a_damaged_table_leaves_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise EmbeddingError("The embedding table cannot be read.", "Install CodeQA again.")

    monkeypatch.setattr(rerank, "question_matcher", fail)
    assert rerank_built_in(SIXTY, QUESTION) == Reranked(SIXTY, "built-in")


@pytest.mark.parametrize("question", ["", "cookie", "lang:python", "\u3042\u3044 \u3046\u3048"])
def test_a_question_of_one_word_or_of_nothing_known_keeps_its_order(question: str) -> None:
    done = rerank_built_in(SIXTY, parse_query(question))
    assert (done.hits, done.reranker) == (SIXTY, "built-in")
    assert rerank_built_in([], QUESTION) == Reranked([], "")


def test_the_built_in_reranker_reads_at_most_fifty_hits_and_the_rest_stays_behind() -> None:
    near = "when\nsession\ncookie\nexpire"
    beyond = [replace(hit(n, near if n == 55 else ""), score=0.5) for n in range(60)]
    done = rerank_built_in(beyond, QUESTION).hits
    assert sorted(numbers(done)[:50]) == list(range(50))
    assert numbers(done)[50:] == list(range(50, 60))
    assert [one.score for one in done] == sorted((one.score for one in done), reverse=True)
    within = [replace(hit(n, near if n == 49 else ""), score=0.5) for n in range(60)]
    assert numbers(rerank_built_in(within, QUESTION).hits)[0] == 49


def test_the_built_in_reranker_stops_when_its_time_is_over_and_says_so() -> None:
    done = rerank_built_in(SIXTY, QUESTION, -1.0)
    assert done.hits == SIXTY
    assert done.warnings[0].startswith("built-in read 0 of 50 hits in ")
    slow = [hit(n, "session cookie expire\n" * 2_000) for n in range(60)]
    done = rerank_built_in(slow, QUESTION, 0.02)
    assert done.warnings[0].endswith("; the others stand behind them.")
    assert numbers(done.hits) == list(range(60))


# The choice


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed, whatever this machine has."""
    monkeypatch.setattr(local, "find_spec", lambda name: None)


@pytest.fixture(autouse=True)
def forget_loaded_models() -> None:
    shared.cache_clear()


@pytest.mark.parametrize("value", ["auto", "", " auto ", "built-in"])
def test_automatically_the_built_in_one_is_taken_without_the_extra_and_without_a_word(
    no_extra: None, value: str
) -> None:
    done = choose_reranker(load_settings(reranker=value))(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("built-in", ())


def test_a_wished_model_without_the_extra_is_replaced_and_the_answer_says_how_to_get_it(
    no_extra: None,
) -> None:
    done = choose_reranker(load_settings(reranker="owner/colbert"))(HITS, QUESTION)
    assert done == replace(
        rerank_built_in(HITS, QUESTION),
        warnings=(
            "owner/colbert cannot be used: fastembed is not installed. The built-in reranker was "
            'used. Install it: pip install "codeqa[models]"',
        ),
    )


@pytest.mark.parametrize(
    ("files", "lacking"),
    [
        (None, "does not exist"),
        (("model.onnx",), "holds no tokenizer.json and no tokenizer_config.json"),
        (
            ("tokenizer.json", "tokenizer_config.json", "model.safetensors"),
            "holds no model in ONNX (vespa_colbert.onnx or model.onnx or onnx/model.onnx)",
        ),
    ],
)
def test_a_folder_that_is_no_checkpoint_says_what_it_lacks(
    tmp_path: Path, files: tuple[str, ...] | None, lacking: str
) -> None:
    folder = tmp_path / "colbert-small"
    if files is not None:
        folder.mkdir()
    for name in files or ():
        (folder / name).write_text("{}")
    settings = load_settings(reranker=str(folder))
    ok, message, hint, _ = reranker_status(settings)
    assert (ok, message) == (False, f"The folder {folder} {lacking}.")
    assert "CODEQA_RERANKER" in hint
    done = choose_reranker(settings)(HITS, QUESTION)
    assert done.reranker == "built-in"
    (warning,) = done.warnings
    assert warning.startswith(message) and "The built-in reranker was used." in warning


@pytest.mark.parametrize("value", ["a/b/c", "two words", "https://host/x", "owner/..", "-x"])
def test_what_is_neither_a_folder_nor_a_name_is_refused(value: str) -> None:
    ok, message, hint, _ = reranker_status(load_settings(reranker=value))
    assert not ok
    assert repr(value) in message and "./path" in hint


def test_a_folder_of_the_working_directory_is_taken_only_when_it_is_written_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "owner" / "name"
    planted.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "model.onnx"):
        (planted / name).write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert files_of("owner/name").here({}) is None
    assert files_of("./owner/name").here({}) == planted
    assert files_of("./owner/name").title == "name"
    assert files_of("owner/name").title == "owner/name"


def test_the_status_says_which_reranker_would_be_used(no_extra: None) -> None:
    assert reranker_status(load_settings(reranker="built-in")) == (True, "built-in", "", "")
    ok, message, hint, command = reranker_status(load_settings())
    assert (ok, hint) == (True, "") and command in message
    assert message.startswith("built-in; answerdotai/answerai-colbert-small-v1 is not used: ")
    ok, message, hint, command = reranker_status(load_settings(reranker="owner/name"))
    assert (ok, message) == (False, "owner/name cannot be used: fastembed is not installed.")
    assert "pip install" in command and command in hint


# In a search


def test_a_search_reranks_before_it_cuts(tmp_path: Path) -> None:
    body = "def session_{0}(cookie):\n{1}    return {0}\n"
    files = {f"m{n}.py": body.format(n, "    touch(cookie)\n" * n) for n in range(12)}
    tables = indexed(tmp_path, files)
    by_length = ModelReranker(
        "by length", lambda hits, query: [len(one.unit.source_code) for one in hits], 50, 5.0
    )
    search = Search(
        lambda: tables, load_settings(data=tmp_path / "data"), reranker=by_length.rerank
    )
    plain = search.search("session cookie", top=5)
    assert "session_11" not in [one.unit.name for one in plain.methods]
    done = search.search("session cookie", top=5, rerank=True)
    assert (done.reranker, done.warnings) == ("by length", ())
    assert "session_11" in [one.unit.name for one in done.methods]
