"""The rerank switch, the built-in reranker, the choice of one, and what is done where it fails;
Cohere's and Jina's against servers that speak their API over real HTTP.

Nothing here runs a model: scores go by the number of the text. Models themselves are tried in
test_rerank_local.py.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from indexed import indexed
from openai_server import Plain, ScriptedServer, openai_server, silent
from waiting import AT_ONCE, PATIENCE

from codeqa.embeddings import local
from codeqa.embeddings.registry import question_matcher
from codeqa.environment import install_command
from codeqa.errors import EmbeddingError, RerankerError
from codeqa.search import rerank, rerank_models
from codeqa.search.hybrid import Search
from codeqa.search.query import parse_query
from codeqa.search.rerank import (
    MOST_RERANKED,
    Reranked,
    parse_rerank,
    rerank_built_in,
    used_by_better,
)
from codeqa.search.rerank_models import (
    MOST_RERANKED_HERE,
    PASSAGE_CHARACTERS,
    ModelReranker,
    Score,
    choose_reranker,
    local_reranker,
    reranker_status,
)
from codeqa.settings import Settings, load_settings
from codeqa.text.unit_text import UnitText
from codeqa.types import Hit, Unit

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

QUESTION = parse_query("when does a session cookie expire")
FILLER = "\n".join(f"    total_{number} = rows[{number}] + offset" for number in range(80))
"""Lines that have nothing to do with any question here."""
PASSWORD = """\
    salt = os.urandom(16)
    digest = hashlib.pbkdf2_hmac("sha256", password, salt, 100_000)
    return base64.b64encode(salt + digest)"""


def hit(number: int, code: str = "", *, role: str = "source", score: float | None = None) -> Hit:
    """The function `f<number>`, of the score 1 less a thousandth of its number."""
    path, name, kind = f"src/m{number:02}.py", f"f{number}", "class" if number % 2 else "function"
    code = code or f"def {name}():\n    return {number}"
    unit = Unit(path, "python", kind, name, name, code, 1, 2, role=role, id=f"id{number}")
    return Hit(unit, 1 - number / 1_000 if score is None else score, ("matches",))


HITS = [hit(number) for number in range(60)]


def numbers(hits: Sequence[Hit]) -> list[int]:
    return [int(one.unit.name[1:]) for one in hits]


def named(name: str, code: str, *, path: str = "", score: float = 1.0, first: int = 1) -> Hit:
    last = first + code.count("\n")
    path = path or f"{name}.py"
    unit = Unit(path, "python", "function", name, name, code, first, last, id=path + name)
    return Hit(unit, score)


def scoring(by_number: Callable[[int], float] = float) -> ModelReranker:
    """A model that scores by the number of the text."""

    def score(question: str, texts: Sequence[str]) -> list[float]:
        return [by_number(int(text.split("/m")[1][:2])) for text in texts]

    return ModelReranker("x-small", score, MOST_RERANKED_HERE, PATIENCE)


def test_the_switch_is_on_for_exactly_what_the_source_lists() -> None:
    assert all(map(parse_rerank, (True, "true", "True", "1", 1)))
    assert not any(map(parse_rerank, (False, "false", "TRUE", "yes", "", None, 0, 2, [True], {})))


# A model: order and time


def test_a_model_orders_the_first_hits_and_the_rest_stays_behind() -> None:
    done = scoring(lambda n: 0.9 if n == 17 else 0.5).rerank(HITS, QUESTION)
    assert numbers(done.hits)[0] == 17
    assert numbers(done.hits[MOST_RERANKED_HERE:]) == list(range(MOST_RERANKED_HERE, 60))
    assert sorted(numbers(done.hits)) == list(range(60))
    assert [one.score for one in done.hits] == sorted((h.score for h in done.hits), reverse=True)
    assert done.hits[0].why == ("matches", "reranked by x-small: 0.90")
    assert (done.reranker, done.warnings) == ("x-small", ())
    assert scoring().rerank([], QUESTION) == Reranked([], "")


def test_the_first_stage_has_half_a_say_and_penalties_hold() -> None:
    same = scoring(lambda n: 1.0)
    assert numbers(same.rerank(HITS[:5], QUESTION).hits) == [0, 1, 2, 3, 4]
    test, source, worst = hit(0, role="test", score=0.5), hit(1, score=0.5), hit(2, score=0.01)
    done = scoring({0: 1.0, 1: 0.8, 2: 0.0}.__getitem__)
    assert numbers(done.rerank([test, source, worst], QUESTION).hits) == [1, 0, 2]
    likes_the_test = scoring(lambda n: 1.0 if n == 0 else 0.7)
    asked_for = parse_query("which test checks the session cookie")
    assert numbers(likes_the_test.rerank([test, source], asked_for).hits) == [0, 1]


def test_a_loading_model_is_loaded_once_and_waited_for_only_so_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go, loads = threading.Event(), []

    @cache
    def load(model: str) -> Score:
        loads.append(model)
        go.wait(PATIENCE)
        return scoring().score

    monkeypatch.setattr(rerank_models, "LOCAL_SECONDS", AT_ONCE)
    with pytest.raises(RerankerError, match=r"x did not answer within 0 seconds"):
        local_reranker("x", load).rerank(HITS, QUESTION)
    go.set()
    monkeypatch.setattr(rerank_models, "LOCAL_SECONDS", PATIENCE)
    assert local_reranker("x", load).rerank(HITS, QUESTION).reranker == "x"
    assert loads == ["x"]


def test_a_model_that_breaks_says_so_without_the_code_or_the_question() -> None:
    def broken(question: str, texts: Sequence[str]) -> Sequence[float]:
        raise ValueError(f"cannot read {question} {texts}")

    for score, said in (
        (broken, "ValueError"),
        (lambda question, texts: [float("nan")] * len(texts), "ValueError"),
        (lambda question, texts: [0.5], "ValueError"),
    ):
        with pytest.raises(RerankerError) as caught:
            ModelReranker("x-small", score, MOST_RERANKED, PATIENCE).rerank(HITS, QUESTION)
        assert caught.value.message == f"x-small failed ({said})."
        assert "cookie" not in str(caught.value) and "def" not in str(caught.value)
        assert caught.value.__cause__ is None


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


def test_a_question_of_one_word_or_of_nothing_known_and_a_damaged_table_keep_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for question in ("", "cookie", "\u3042\u3044 \u3046\u3048"):
        assert rerank_built_in(HITS, parse_query(question)) == Reranked(HITS, "built-in")
    assert rerank_built_in([], QUESTION) == Reranked([], "")

    def fail(*_: object) -> object:
        raise EmbeddingError("The embedding table cannot be read.", "Install CodeQA again.")

    monkeypatch.setattr(rerank, "question_matcher", fail)
    assert rerank_built_in(HITS, QUESTION) == Reranked(HITS, "built-in")


def test_the_built_in_reranker_reads_at_most_fifty_hits_and_the_rest_stays_behind() -> None:
    near = "when\nsession\ncookie\nexpire"
    beyond = [replace(hit(n, near if n == 55 else ""), score=0.5) for n in range(60)]
    done = rerank_built_in(beyond, QUESTION).hits
    assert sorted(numbers(done)[:50]) == list(range(50))
    assert numbers(done)[50:] == list(range(50, 60))
    assert [one.score for one in done] == sorted((one.score for one in done), reverse=True)
    within = [replace(hit(n, near if n == 49 else ""), score=0.5) for n in range(60)]
    assert numbers(rerank_built_in(within, QUESTION).hits)[0] == 49


# The choice


def test_without_the_extra_the_built_in_reranks_and_a_named_model_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: None)  # whatever this machine has
    for value in ("auto", "", " auto ", "built-in"):
        done = choose_reranker(load_settings(reranker=value))(HITS, QUESTION)
        assert (done.reranker, done.warnings) == ("built-in", ())
    done = choose_reranker(load_settings(reranker="owner/colbert"))(HITS, QUESTION)
    assert done == replace(
        rerank_built_in(HITS, QUESTION),
        warnings=(
            "owner/colbert cannot be used: fastembed is not installed. The built-in reranker was "
            f"used. Install it: {install_command('models')}",
        ),
    )
    assert reranker_status(load_settings(reranker="built-in")) == (True, "built-in", "")
    ok, message, hint = reranker_status(load_settings())
    assert (ok, hint) == (True, "") and "pip install" in message
    assert message.startswith("built-in; answerdotai/answerai-colbert-small-v1 is not used: ")
    ok, message, hint = reranker_status(load_settings(reranker="owner/name"))
    assert (ok, message) == (False, "owner/name cannot be used: fastembed is not installed.")
    assert "pip install" in hint


def test_a_search_reranks_before_it_cuts(tmp_path: Path) -> None:
    body = "def session_{0}(cookie):\n{1}    return {0}\n"
    files = {f"m{n}.py": body.format(n, "    touch(cookie)\n" * n) for n in range(12)}
    tables = indexed(tmp_path, files)
    by_length = ModelReranker(
        "by length", lambda question, texts: [float(len(text)) for text in texts], 50, PATIENCE
    )
    search = Search(
        lambda: tables, load_settings(data=tmp_path / "data"), reranker=by_length.rerank
    )
    plain = search.search("session cookie", top=5)
    assert "session_11" not in [one.unit.name for one in plain.methods]
    done = search.search("session cookie", top=5, rerank=True)
    assert (done.reranker, done.warnings) == ("by length", ())
    assert "session_11" in [one.unit.name for one in done.methods]


# Behind an API: what is sent, and what is made of the answer


KEY = "key-for-the-reranker"
MODELS = {"cohere": "rerank-v3.5", "jina": "jina-reranker-v2-base-multilingual"}
FAKE_TOKEN = "ghp_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"

Answer = Callable[[str, dict[str, Any]], Plain]


def the_last_first(path: str, body: dict[str, Any]) -> Plain:
    """What both answer: the best first, each by its place in what was sent."""
    places = range(len(body["documents"]) - 1, -1, -1)
    results = [{"index": place, "relevance_score": place / 100} for place in places]
    return 200, {}, {"id": "r", "model": body["model"], "results": results}


def settings_for(provider: str, url: str, key: str = KEY) -> Settings:
    address = {f"{provider}_base_url": url, f"{provider}_api_key": key}
    return load_settings(reranker=f"{provider}/{MODELS[provider]}", **address)


NamedHost = Callable[[ScriptedServer], str]


@pytest.fixture
def named_host(monkeypatch: pytest.MonkeyPatch) -> NamedHost:
    """Gives a server on this machine a name as of another one, which no proxy stands before."""
    resolve = socket.getaddrinfo

    def here(host: Any, *arguments: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host == "rerank.test" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda server: server.base_url.replace("127.0.0.1", "rerank.test")


@pytest.mark.parametrize("provider", ["cohere", "jina"])
def test_a_chosen_provider_orders_the_candidates_over_its_api(provider: str) -> None:
    with openai_server(the_last_first) as server:
        done = choose_reranker(settings_for(provider, server.base_url))(HITS, QUESTION)
        ((path, body),) = server.requests
        (headers,) = server.headers
    assert done.reranker == f"{provider}/{MODELS[provider]}"
    assert numbers(done.hits)[0] == 49
    assert numbers(done.hits)[MOST_RERANKED:] == list(range(50, 60))
    assert done.hits[0].why == ("matches", f"reranked by {done.reranker}: 0.49")
    assert done.warnings == ()  # the server is this machine
    assert path == "/v1/rerank"
    assert headers["authorization"] == f"Bearer {KEY}" and headers["user-agent"] == "codeqa"
    assert set(headers) <= {
        "host", "user-agent", "accept", "accept-encoding", "content-type", "content-length",
        "authorization", "connection",
    }  # fmt: skip
    assert body == {
        "model": MODELS[provider],
        "query": QUESTION.text,
        "documents": [
            f"src/m{n:02}.py f{n}\ndef f{n}():\n    return {n}" for n in range(MOST_RERANKED)
        ],
        "top_n": MOST_RERANKED,
        "return_documents": False,
    }


def test_long_code_is_cut_and_what_looks_like_a_secret_is_masked() -> None:
    with openai_server(the_last_first) as server:
        asked = parse_query(f"why does {FAKE_TOKEN} not work")
        long = hit(0, f"TOKEN = '{FAKE_TOKEN}'\n" + "x = 1\n" * 9_000)
        choose_reranker(settings_for("jina", server.base_url))([long, hit(1)], asked)
        ((_, body),) = server.requests
    assert len(body["documents"][0]) == PASSAGE_CHARACTERS
    assert FAKE_TOKEN not in json.dumps(body)
    assert "*" * 20 in body["documents"][0] and "*" * 20 in body["query"]


def test_the_answer_says_to_which_host_how_much_was_sent(named_host: NamedHost) -> None:
    with openai_server(the_last_first) as server:
        url = named_host(server)
        settings = settings_for("cohere", url)
        place = url.removeprefix("http://").removesuffix("/v1")
        ok, message, *_ = reranker_status(settings)
        assert ok and server.requests == []
        assert message == (
            f"cohere/rerank-v3.5 at {place}; a reranked question sends itself and up to 50 pieces "
            "of code there"
        )
        done = choose_reranker(settings)(HITS[:7], QUESTION)
        assert len(server.requests) == 1
    said = f"The question and 7 pieces of code were sent to {place} to be ordered."
    assert done.warnings == (said,)


def test_an_exported_key_alone_sends_nothing() -> None:
    with openai_server(the_last_first) as server:
        url = server.base_url
        keys = {"cohere_api_key": KEY, "jina_api_key": KEY}
        settings = load_settings(cohere_base_url=url, jina_base_url=url, **keys)
        assert "sends" not in reranker_status(settings)[1]
        done = choose_reranker(settings)(HITS, QUESTION)
        assert server.exchanges == [] and done.warnings == ()


def test_what_cannot_be_asked_is_refused_before_anything_is_sent() -> None:
    for values, said, advice in (
        ({"jina_api_key": KEY},  # the key of the other one
         "Cohere was chosen as reranker, but COHERE_API_KEY is not set.", "Set COHERE_API_KEY"),
        ({"cohere_base_url": "rerank.test"},
         "COHERE_BASE_URL is not a valid address.", "base address"),
        ({"cohere_base_url": f"http://u:{KEY}@x/v1"}, "COHERE_BASE_URL is", "base address"),
    ):  # fmt: skip
        settings = load_settings(reranker="cohere/rerank-v3.5", **values)
        ok, message, hint = reranker_status(settings)
        assert not ok and said in message and advice in hint
        done = choose_reranker(settings)(HITS, QUESTION)
        assert done.warnings == (f"{message} The built-in reranker was used. {hint}",)
        assert done.reranker == "built-in" and KEY not in message + hint


# What is wrong is said, and the built-in one answers


def refused(answer: Answer) -> str:
    """The warning when Jina's server answers so; the built-in one has ordered the hits."""
    with openai_server(answer) as server:
        done = choose_reranker(settings_for("jina", server.base_url))(HITS, QUESTION)
        assert len(server.requests) == 1
    assert done.reranker == "built-in"
    assert sorted(numbers(done.hits)) == list(range(60))
    (warning,) = done.warnings
    assert " The built-in reranker was used. " in warning
    assert KEY not in warning and "cookie" not in warning and "def f" not in warning
    return warning


def test_a_refusal_is_said_by_its_kind_and_neither_key_question_nor_code_is_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: str, body: dict[str, Any]) -> Plain:
        return 401, {}, {"message": f"{KEY} {body['query']} {body['documents'][0]}"}

    caplog.set_level(logging.DEBUG)
    with openai_server(the_last_first) as server:
        choose_reranker(settings_for("cohere", server.base_url))(HITS, QUESTION)
    assert " did not rerank (status 401)." in refused(refuse)
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert KEY not in text and "cookie" not in text and "return 3" not in text
    assert printed.out == "" and os.environ.get("COHERE_API_KEY") is None


def test_a_redirect_is_not_followed() -> None:
    with openai_server(the_last_first) as other:

        def elsewhere(path: str, body: dict[str, Any]) -> Plain:
            return 307, {"Location": f"{other.base_url}/rerank"}, {}

        warning = refused(elsewhere)
        assert other.exchanges == []
    assert "(status 307)" in warning and "JINA_BASE_URL" in warning


@pytest.mark.parametrize(
    "payload",
    [
        b"<html>",
        {"results": None},
        {"results": [{"index": 0, "relevance_score": 1.0}]},
        {"results": [{"index": 0, "relevance_score": "high"}]},
    ],
    ids=lambda payload: repr(payload)[:40],
)
def test_an_answer_that_is_no_ranking_orders_nothing(payload: Any) -> None:
    said = refused(lambda path, body: (200, {}, payload))
    assert said.startswith(f"jina/{MODELS['jina']} failed (")


def test_whatever_goes_wrong_after_sending_says_to_which_host(
    named_host: NamedHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer, seconds, said in (
        (lambda path, body: silent(headers=False), AT_ONCE, "did not answer within 0 seconds"),
        (lambda path, body: (200, {}, {"results": []}), PATIENCE, "failed (KeyError)"),
    ):
        monkeypatch.setattr(rerank_models, "HOSTED_SECONDS", seconds)
        with openai_server(answer) as server:
            done = choose_reranker(settings_for("jina", named_host(server)))(HITS, QUESTION)
        assert done.reranker == "built-in" and "rerank.test:" in done.warnings[0]
        assert said in done.warnings[0]
    gone = choose_reranker(settings_for("jina", named_host(server)))(HITS, QUESTION)
    assert gone.reranker == "built-in" and "failed (ConnectError)" in gone.warnings[0]
