"""Cohere's and Jina's rerankers against servers that speak their API over real HTTP."""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

import pytest
from openai_server import Plain, ScriptedServer, openai_server, silent
from reranking import HITS, hit, numbers

from codeqa.errors import RerankerError
from codeqa.search import rerank
from codeqa.search.query import parse_query
from codeqa.search.rerank import (
    CANDIDATES,
    CHARACTERS,
    CROSS_ENCODER,
    PYTORCH,
    RerankerChoice,
    choose_reranker,
    hosted_reranker,
    parse_reranker,
    reranker_status,
)
from codeqa.settings import Settings, load_settings

QUESTION = parse_query("when does a session cookie expire")
KEY = "key-for-the-reranker"
MODELS = {"cohere": "rerank-v3.5", "jina": "jina-reranker-v2-base-multilingual"}
FAKE_TOKEN = "ghp_" + "a1B2c3D4e5F6a1B2c3D4e5F6a1B2c3D4e5F6"

Answer = Callable[[str, dict[str, Any]], Plain]


def ranking(body: dict[str, Any], scores: dict[int, float] | None = None) -> dict[str, Any]:
    """What both answer: the best first, each by its place in what was sent."""
    given = scores or {place: place / 100 for place in range(len(body["documents"]))}
    ordered = sorted(given.items(), key=lambda pair: -pair[1])[: body["top_n"]]
    results = [{"index": place, "relevance_score": score} for place, score in ordered]
    return {"id": "r", "model": body["model"], "results": results, "usage": {"total_tokens": 9}}


def the_last_first(path: str, body: dict[str, Any]) -> Plain:
    return 200, {}, ranking(body)


def settings_for(provider: str, url: str, key: str = KEY) -> Settings:
    address = {f"{provider}_base_url": url, f"{provider}_api_key": key}
    return load_settings(reranker=f"{provider}/{MODELS[provider]}", **address)


@pytest.fixture
def named_host(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedServer], str]:
    """Gives a server on this machine a name as of another one, which no proxy stands before."""
    resolve = socket.getaddrinfo

    def here(host: Any, *arguments: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host == "rerank.test" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda server: server.base_url.replace("127.0.0.1", "rerank.test")


# What is sent, and what is made of the answer


@pytest.mark.parametrize("provider", ["cohere", "jina"])
def test_a_chosen_provider_orders_the_candidates_over_its_api(provider: str) -> None:
    with openai_server(the_last_first) as server:
        done = choose_reranker(settings_for(provider, server.base_url))(HITS, QUESTION)
        ((path, body),) = server.requests
        (headers,) = server.headers
    assert done.reranker == f"{provider}/{MODELS[provider]}"
    assert numbers(done.hits)[0] == 49
    assert numbers(done.hits)[CANDIDATES:] == list(range(50, 60))
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
            f"src/m{n:02}.py f{n}\ndef f{n}():\n    return {n}" for n in range(CANDIDATES)
        ],
        "top_n": CANDIDATES,
        "return_documents": False,
    }


def test_long_code_is_cut_and_what_looks_like_a_secret_is_masked() -> None:
    with openai_server(the_last_first) as server:
        asked = parse_query(f"why does {FAKE_TOKEN} not work")
        long = hit(0, f"TOKEN = '{FAKE_TOKEN}'\n" + "x = 1\n" * 9_000)
        choose_reranker(settings_for("jina", server.base_url))([long, hit(1)], asked)
        ((_, body),) = server.requests
    assert len(body["documents"][0]) == CHARACTERS
    assert FAKE_TOKEN not in json.dumps(body)
    assert "*" * 20 in body["documents"][0] and "*" * 20 in body["query"]


def test_the_answer_says_to_which_host_how_much_was_sent(
    named_host: Callable[[ScriptedServer], str],
) -> None:
    provider = "cohere"
    with openai_server(the_last_first) as server:
        url = named_host(server)
        settings = settings_for(provider, url)
        place = url.removeprefix("http://").removesuffix("/v1")
        ok, message, *_ = reranker_status(settings)
        assert ok and server.requests == []
        assert message == (
            f"{provider}/{MODELS[provider]} at {place}; a reranked question sends itself and up "
            "to 50 pieces of code there"
        )
        assert server.requests == []
        done = choose_reranker(settings)(HITS[:7], QUESTION)
        assert len(server.requests) == 1
    said = f"The question and 7 pieces of code were sent to {place} to be ordered."
    assert done.warnings == (said,)


def test_a_hit_that_the_provider_leaves_out_stays_behind() -> None:
    def some(path: str, body: dict[str, Any]) -> Plain:
        return 200, {}, ranking(body, {3: 0.9, 1: 0.2})

    with openai_server(some) as server:
        done = choose_reranker(settings_for("cohere", server.base_url))(HITS[:6], QUESTION)
    assert numbers(done.hits) == [3, 1, 0, 2, 4, 5]
    assert done.warnings[0].startswith(f"cohere/{MODELS['cohere']} read 2 of 6 hits in ")


def test_the_whole_address_is_taken_as_well_as_its_base_and_no_key_where_none_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # is not asked for this machine
    with openai_server(the_last_first) as server:
        settings = settings_for("jina", f"{server.base_url}/rerank/", key="")
        done = choose_reranker(settings)(HITS, QUESTION)
        assert done.reranker.startswith("jina/")
        assert [path for path, _ in server.requests] == ["/v1/rerank"]
        assert "authorization" not in server.headers[0]


# Only once chosen


@pytest.mark.parametrize("value", ["auto", "built-in"])
def test_an_exported_key_alone_sends_nothing(value: str) -> None:
    with openai_server(the_last_first) as server:
        url = server.base_url
        settings = load_settings(
            reranker=value, cohere_api_key=KEY, jina_api_key=KEY, cohere_base_url=url,
            jina_base_url=url,
        )  # fmt: skip
        reranker = choose_reranker(settings)
        assert "sends" not in reranker_status(settings)[1]
        done = reranker(HITS, QUESTION)
        assert server.exchanges == []
    assert done.warnings == ()


def test_the_key_of_the_other_provider_is_not_used() -> None:
    settings = load_settings(reranker="cohere/rerank-v3.5", jina_api_key=KEY)
    ok, message, hint, _ = reranker_status(settings)
    assert not ok
    assert message == "Cohere was chosen as reranker, but COHERE_API_KEY is not set."
    assert hint == "Set COHERE_API_KEY, or CODEQA_RERANKER=built-in."
    done = choose_reranker(settings)(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert done.warnings == (f"{message} The built-in reranker was used. {hint}",)


# The setting


WISHES = {
    "built-in": None,
    "auto": RerankerChoice(),
    "owner/name": RerankerChoice("owner/name"),
    "/models/colbert-small": RerankerChoice("/models/colbert-small"),
    "Cohere/name": RerankerChoice("Cohere/name"),
    "cohere/rerank-v3.5": RerankerChoice("rerank-v3.5", "cohere"),
    "cross-encoder/ms-marco-tiny": RerankerChoice("cross-encoder/ms-marco-tiny", CROSS_ENCODER),
    "cross-encoder/BAAI/bge-base": RerankerChoice("BAAI/bge-base", CROSS_ENCODER),
    "cross-encoder//models/x": RerankerChoice("/models/x", CROSS_ENCODER),
    "cross-encoder/./x": RerankerChoice("./x", CROSS_ENCODER),
    "rerankers/a/b": RerankerChoice("a/b", PYTORCH),
}


def test_the_first_part_of_the_setting_decides_what_it_names() -> None:
    assert {setting: parse_reranker(setting) for setting in WISHES} == WISHES


def test_what_cannot_be_asked_is_refused_before_anything_is_sent() -> None:
    for change, said, advice in (
        *(({"reranker": f"cohere/{model}"}, "names no model", "`cohere/rerank-v3.5`")
          for model in ("", "two words", "a//b", "/a", "a/", "a\nb", "é")),
        *(({"cohere_api_key": key}, "holds characters that no key has.", "Copy the key again.")
          for key in ("a\nb", "ключ", "a\x00b")),
        ({"cohere_base_url": "rerank.test"}, "COHERE_BASE_URL is no address", "base address"),
        ({"cohere_base_url": "http://u:p@x/v1"}, "COHERE_BASE_URL is no address", "base address"),
    ):  # fmt: skip
        values = {"reranker": "cohere/rerank-v3.5", "cohere_api_key": KEY, **change}
        ok, message, hint, _ = reranker_status(load_settings(**values))
        assert not ok and said in message and advice in hint
        assert KEY not in message + hint


# What is wrong is said, and the built-in one answers


def refused(answer: Answer, *, provider: str = "cohere") -> str:
    """The warning when the server answers so; the built-in one has ordered the hits."""
    with openai_server(answer) as server:
        done = choose_reranker(settings_for(provider, server.base_url))(HITS, QUESTION)
        assert len(server.requests) == 1
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
    assert done.reranker == "built-in"
    assert sorted(numbers(done.hits)) == list(range(60))
    (warning,) = done.warnings
    assert " The built-in reranker was used. " in warning
    assert KEY not in warning and "cookie" not in warning and "def f" not in warning
    assert warning.startswith(f"{host} ")
    return warning.removeprefix(f"{host} ")


@pytest.mark.parametrize("status", [401, 500])
def test_a_refusal_is_said_by_its_kind_and_never_in_the_servers_words(status: int) -> None:
    def refuse(path: str, body: dict[str, Any]) -> Plain:
        return status, {}, {"message": f"{KEY} {body['query']} {body['documents'][0]}"}

    said = f"did not rerank with rerank-v3.5 (status {status})."
    assert refused(refuse).startswith(said)


def test_a_redirect_is_not_followed() -> None:
    with openai_server(the_last_first) as other:

        def elsewhere(path: str, body: dict[str, Any]) -> Plain:
            return 307, {"Location": f"{other.base_url}/rerank"}, {}

        warning = refused(elsewhere, provider="jina")
        assert other.exchanges == []
    assert "(status 307)" in warning and "JINA_BASE_URL" in warning


@pytest.mark.parametrize(
    "payload",
    [
        b"<html>",
        {"results": None},
        {"results": [{"index": 60, "relevance_score": 1.0}]},
        {"results": [{"index": 0, "relevance_score": "high"}]},
    ],
    ids=lambda payload: repr(payload)[:40],
)
def test_an_answer_that_is_no_ranking_orders_nothing(payload: Any) -> None:
    said = refused(lambda path, body: (200, {}, payload))
    assert said.startswith("answered with something that is no ranking.")


def test_a_server_that_is_silent_is_not_waited_for_beyond_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rerank, "HOSTED_SECONDS", 0.4)
    with openai_server(lambda path, body: silent(600, headers=False)) as server:
        model = hosted_reranker(settings_for("cohere", server.base_url), "cohere", "m")
        with pytest.raises(RerankerError, match=r"did not answer within 0.4 seconds"):
            model.rerank(HITS, QUESTION)


@pytest.mark.parametrize("results", [[], [{"index": 0, "relevance_score": float("nan")}]])
def test_whatever_goes_wrong_after_sending_says_to_which_host(
    results: Any, named_host: Callable[[ScriptedServer], str]
) -> None:
    with openai_server(lambda path, body: (200, {}, {"results": results})) as server:
        done = choose_reranker(settings_for("jina", named_host(server)))(HITS, QUESTION)
        assert len(server.requests) == 1
    assert done.reranker == "built-in" and "rerank.test:" in done.warnings[0]


def test_a_server_that_is_not_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    done = choose_reranker(settings_for("jina", url))(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert (
        "cannot be reached. The built-in reranker was used. Ask again, or check CODEQA_RERANKER, "
        "JINA_API_KEY and JINA_BASE_URL." in done.warnings[0]
    )


def test_neither_key_nor_question_nor_code_is_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: str, body: dict[str, Any]) -> Plain:
        return 500, {}, body

    caplog.set_level(logging.DEBUG)
    for answer in (the_last_first, refuse):
        with openai_server(answer) as server:
            choose_reranker(settings_for("cohere", server.base_url))(HITS, QUESTION)
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert KEY not in text and "cookie" not in text and "return 3" not in text
    assert printed.out == "" and os.environ.get("COHERE_API_KEY") is None
