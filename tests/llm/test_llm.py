"""A model over real HTTP: what its answers say, silence, cancellation, and how much it takes."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.errors import ModelError
from codeqa.llm import loop as llm_loop
from codeqa.llm.answer import AnswerReader
from codeqa.llm.client import Model, TokenUsage, generate_bounded
from codeqa.llm.providers import ModelAddress, provider_named
from codeqa.llm.values import Piece, Reasoning, RetryWait, never
from tests.kit.openai_server import (
    NEVER,
    Reply,
    Script,
    ScriptedServer,
    Streamed,
    delta,
    dropped,
    event,
    failure,
    openai_server,
    silent,
    stream,
)
from tests.kit.waiting import LOOK_AGAIN, PATIENCE, Clock

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

MESSAGES = [{"role": "user", "content": "hi"}]
KEY = "sk-test-0123456789abcdef"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


def model_at(server: ScriptedServer, key: str = KEY) -> Model:
    return Model(ModelAddress(server.base_url, "m1", key, "custom"), PATIENCE)


def ask(reply: Reply | Script, **options: Any) -> tuple[list[str | TokenUsage], ScriptedServer]:
    """What a model that replies so streams to one question."""
    script: Script = reply if callable(reply) else lambda path, body: reply
    with openai_server(script) as server, model_at(server) as model:
        return list(model.stream(MESSAGES, **options)), server


def test_an_answer_comes_in_pieces_and_ends_with_what_it_took() -> None:
    pieces, server = ask(stream(["Hal", "lo", "\n", " there"], usage=(11, 4)), max_tokens=40)
    assert pieces == ["Hal", "lo", "\n", " there", TokenUsage(11, 4)]
    path, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert body["messages"] == MESSAGES and body["model"] == "m1"
    assert body["max_tokens"] == 40 and body["stream"] is True
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


THINKING = ("<thi", "nk>secret", " thought</th", "ink>\n\n", "Answer with <think> in it.")
THOUGHTS = Streamed(
    (
        delta(reasoning_content="let me see"),
        delta(reasoning="and more"),
        *map(delta, THINKING),
        delta(reason="stop"),
    )
)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (stream(["a"], usage=None), ["a"]),
        (stream(["a"], usage=None, reason="length"), ["a", TokenUsage(0, 0, cut=True)]),
        (stream(["a"], usage=(3, 9), reason="max_tokens"), ["a", TokenUsage(3, 9, cut=True)]),
        (stream(["a\u2028b\u0085c\x0bd"], usage=None), ["a\u2028b\u0085c\x0bd"]),
        (THOUGHTS, [Reasoning("let me see"), Reasoning("and more"), Reasoning("secret"),
                    Reasoning(" thought"), "Answer with <think> in it."]),
        (Streamed((delta("Hi"), delta(refusal="No."), delta(reason="stop"))), ["Hi", "No."]),
        (stream(["Whole"], usage=None, end="finished"), ["Whole"]),
        (stream(["Whole"], end="closed"), ["Whole"]),
        (stream(["Whole"], reason=None, usage=None), ["Whole"]),
    ],
    ids=["no count", "cut", "cut and counted",
         "line separators in text", "reasoning", "refusals", "no end", "closed",
         "no reason"],
)  # fmt: skip
def test_an_answer_is_read_in_whatever_form_it_comes(reply: Reply, expected: list[Any]) -> None:
    pieces, server = ask(reply)
    assert pieces == expected
    assert "max_tokens" not in server.requests[0][1]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Streamed((delta(reasoning_content="hm"), delta(reason="length"))), "without content"),
        (stream([]), "without content"),
        (stream([], reason="content_filter"), "without content"),
        (
            Streamed((b"data: {not json\n\n", delta("a"), delta(reason="stop"))),
            "broke off: it cannot be read",
        ),
        ((200, {"Content-Type": "text/html"}, b"<html>hello</html>"), "not a chat API"),
        ((200, {}, {"status": "ok"}), "not a chat API"),
        (Streamed((delta("Ha"), event({"error": {"message": "No GPU", "code": 502}}))), "No GPU"),
    ],
)
def test_what_is_no_whole_answer_says_why(reply: Reply, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ask(reply)


Pass = Callable[[float], None]


@pytest.fixture
def let_pass(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """`let_pass(seconds)`: so many are over for the loop that requests run on."""
    loop, passed = llm_loop._loop(), [0.0]
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + passed[0])

    async def woken() -> None: ...

    def advance(seconds: float) -> None:
        passed[0] += seconds
        asyncio.run_coroutine_threadsafe(woken(), loop).result()

    return advance


@pytest.fixture
def flies(let_pass: Pass) -> Iterator[threading.Event]:
    """From when this is set, time flies for that loop."""
    begun, over = threading.Event(), threading.Event()

    def fly() -> None:
        begun.wait()
        while not over.wait(LOOK_AGAIN):
            let_pass(PATIENCE)

    thread = threading.Thread(target=fly)
    thread.start()
    yield begun
    over.set()
    begun.set()
    thread.join()


@pytest.mark.parametrize(
    ("reply", "came"),
    [(silent(), []), (silent(headers=False), []), (stream(["Ha", NEVER]), ["Ha"])],
    ids=["after the headers", "before the headers", "in the middle"],
)
def test_a_silent_model_is_given_up_after_the_timeout(
    reply: Reply, came: list[str], flies: threading.Event
) -> None:
    def script(path: str, body: dict[str, Any]) -> Reply:
        if not came:
            flies.set()
        return reply

    pieces: list[Piece] = []
    with openai_server(script) as server, model_at(server) as model:
        with pytest.raises(ModelError, match="broke off: it stayed silent"):
            for piece in model.stream(MESSAGES):
                pieces.append(piece)
                flies.set()
        assert server.wait_for_disconnects()
        assert len(server.requests) == 1
    assert pieces == came


def test_what_a_slow_model_says_to_itself_keeps_it_alive(let_pass: Pass) -> None:
    gates = [threading.Event() for _ in range(4)]
    events = itertools.chain.from_iterable((gate, delta(reasoning="hm")) for gate in gates)
    reply = Streamed((*events, delta("at last"), delta(reason="stop")))
    with openai_server(lambda path, body: reply) as server, model_at(server) as model:
        pieces = model.stream(MESSAGES)
        for gate in gates:
            gate.set()
            assert next(pieces) == Reasoning("hm")
            let_pass(PATIENCE / 2)
        assert list(pieces) == ["at last"]


@pytest.mark.parametrize("headers", [True, False], ids=["after the headers", "before the headers"])
def test_cancelling_a_silent_model_closes_its_request(headers: bool) -> None:
    reply = silent(headers=headers)
    with openai_server(lambda path, body: reply) as server, model_at(server) as model:
        assert list(model.stream(MESSAGES, cancelled=lambda: len(server.requests) > 0)) == []
        assert server.wait_for_disconnects()


def test_cancelling_while_waiting_for_another_try_is_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Model, "sleep", staticmethod(lambda seconds: asyncio.Event().wait()))
    refused = failure(503, headers={"Retry-After": "60"})
    with openai_server(lambda path, body: refused) as server, model_at(server) as model:
        told: list[Piece] = []
        for piece in model.stream(MESSAGES, cancelled=lambda: bool(told)):
            told.append(piece)
        assert [type(one) for one in told] == [RetryWait]
        assert len(server.requests) == 1


def test_a_caller_that_has_already_cancelled_sends_nothing() -> None:
    with openai_server() as server, model_at(server) as model:
        assert list(model.stream(MESSAGES, cancelled=lambda: True)) == []
        assert model.complete(MESSAGES, 5, cancelled=lambda: True) == ""
        assert server.requests == []


def test_no_key_and_no_question_is_ever_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked = [{"role": "user", "content": "the question about wombats"}]
    replies: list[Reply] = [
        stream(["ok"]),
        failure(401, f"Incorrect key {KEY}, you asked: the question about wombats"),
        dropped(["a"]),
    ]
    with openai_server(lambda path, body: replies.pop(0)) as server, model_at(server) as model:
        list(model.stream(asked))
        for _ in range(2):
            with pytest.raises(ModelError):
                list(model.stream(asked))
    assert caplog.records
    assert KEY not in caplog.text and KEY[:12] not in caplog.text
    assert "wombats" not in caplog.text


def test_only_what_a_request_needs_is_sent_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: secret\nAuthorization: Bearer other")
    with openai_server() as server:
        with model_at(server) as model:
            list(model.stream(MESSAGES))
            model.list_models()
        with model_at(server, key="") as model:
            list(model.stream(MESSAGES))
    needed = {"host", "accept", "accept-encoding", "connection", "user-agent"}
    needed |= {"content-type", "content-length", "x-stainless-raw-response"}
    for exchange in server.exchanges:
        assert set(exchange.headers) <= needed | {"authorization"}
        assert "secret" not in str(exchange.headers)
    assert "authorization" not in server.exchanges[-1].headers
    assert server.exchanges[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with openai_server() as proxy, openai_server() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url)
        monkeypatch.setenv("ALL_PROXY", proxy.base_url)
        with model_at(server) as model:
            list(model.stream(MESSAGES))
        assert proxy.exchanges == [] and len(server.requests) == 1


def text_of(pieces: list[str]) -> str:
    """The text of an answer whose content comes in `pieces`."""
    answer = AnswerReader()
    events = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    taken = [one for event in events for one in answer.take(event) if isinstance(one, str)]
    return "".join(taken) + answer.rest()


@given(TEXTS, TEXTS, st.lists(st.integers(0, 80), max_size=8), st.booleans())
def test_leading_thoughts_are_left_out_however_they_are_cut(
    thought: str, answer: str, cuts: list[int], opened: bool
) -> None:
    thought = thought.replace("<", "")
    answer = answer.lstrip().removeprefix("<think>")
    whole = f" \n<think>{thought}</think>\n{answer}" if opened else answer
    places = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    got = text_of([whole[a:b] for a, b in itertools.pairwise(places)])
    if opened or not answer.lstrip().startswith("<think>"):
        assert got == answer.lstrip()


def test_text_that_only_begins_like_a_thought_is_kept_and_space_around_one_is_not() -> None:
    for text in ("<thi", "<thing>", "  <th", "a <think>b</think>"):
        assert text_of(list(text)) == text.lstrip()
    assert text_of([" <think>so</think>", " \n", " ", " and", " on"]) == "and on"


def test_whatever_an_event_holds_it_is_read_or_skipped() -> None:
    answer = AnswerReader()
    odd = [
        None, 3, "x", [], {}, {"choices": {}}, {"choices": [3]}, {"choices": [{"delta": 4}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"content": [7, {"type": "text"}]}}]}, {"usage": []},
        {"usage": {"prompt_tokens": "many", "completion_tokens": -3}},
    ]  # fmt: skip
    assert [piece for event in odd for piece in answer.take(event)] == []
    assert answer.reason == "" and answer.usage is None


REFUSED = failure(500)
UNCOUNTED = stream(["one two"], usage=None)


@pytest.mark.parametrize(
    ("reply", "outcome", "used"),
    [
        (stream(["one two"], usage=(70, 3)), "done", TokenUsage(70, 3)),
        (UNCOUNTED, "done", TokenUsage(5, 3, estimated=True)),
        (stream(["…"], usage=(70, 3)), "empty", TokenUsage(70, 3)),
        (silent(), "timed out", TokenUsage(5, 0, estimated=True)),
        (dropped(["one two"]), "failed", TokenUsage(5, 3, estimated=True)),
        (REFUSED, "failed", TokenUsage()),
    ],
    ids=["counted", "uncounted", "empty", "late", "broken off", "refused"],
)
def test_a_small_call_tells_what_came_of_it_and_what_it_took(
    reply: Reply, outcome: str, used: TokenUsage, clock: Clock
) -> None:
    def script(path: str, body: dict[str, Any]) -> Reply:
        if outcome == "timed out":
            clock.advance(9.0)
        return reply

    with openai_server(script) as server, model_at(server) as model:
        *_, stage = generate_bounded("hyde-1", model, lambda: MESSAGES, 9, 9.0, never)
    assert stage.outcome.partition(":")[0] == outcome
    assert stage.usage == used


PROPS = "/props?model=m&autoload=false"
SERVERS = [
    ("ollama", "/api/ps", {"models": [{"name": "m:latest", "context_length": 16_000}]}, 16_000),
    ("ollama", "/api/ps", {"models": []}, 4_096),
    ("llamacpp", PROPS, {"default_generation_settings": {"n_ctx": 6_000}}, 6_000),
    ("lmstudio", "/api/v0/models", {"data": [
        {"id": "other", "loaded_context_length": 1},
        {"id": "m", "loaded_context_length": 12_000, "max_context_length": 32_000}]}, 12_000),
    ("custom", "/v1/models", {"data": [{"id": "m", "max_model_len": 40_960}]}, 40_960),
    ("custom", "/v1/models", {"data": [
        {"id": "m", "meta": {"n_ctx": 8_192, "n_ctx_train": 131_072}}]}, 8_192),
    ("custom", "/v1/models", {"data": [{"id": "m", "meta": None}]}, 0),
    ("lmstudio", "/api/v0/models", {"data": [{"id": "m", "max_context_length": 32_000}]}, 0),
    ("custom", "/v1/models", ["no", "list", {"of": "models"}], 0),
]  # fmt: skip


@pytest.mark.parametrize(("provider", "page", "said", "window"), SERVERS)
def test_a_server_says_how_much_its_model_takes_and_is_asked_once_in_a_while(
    provider: str, page: str, said: Any, window: int
) -> None:
    with openai_server() as server:
        server.pages[page] = said
        model = Model(ModelAddress(server.base_url, "m", provider=provider))
        assert model.window() == window
        assert model.window() == window and len(server.exchanges) == 1
        model.close()


@pytest.mark.parametrize(
    ("abilities", "refuses"),
    [
        ({"chat_template_caps": {"supports_tool_calls": False}}, True),
        ({"chat_template_caps": {"supports_tools": False, "supports_tool_calls": True}}, False),
        ({"chat_template_caps": {}}, False),
        ({"chat_template_caps": None}, False),
        ({}, False),
    ],
)
def test_no_tools_are_offered_where_the_template_of_llamacpp_would_drop_them(
    abilities: dict[str, Any], refuses: bool
) -> None:
    with openai_server() as server:
        server.pages[PROPS] = {"default_generation_settings": {"n_ctx": 6_000}, **abilities}
        with Model(ModelAddress(server.base_url, "m", provider="llamacpp")) as model:
            assert model.window() == 6_000 and model.refuses_tools == refuses


def test_a_large_provider_is_not_asked_but_a_server_that_speaks_for_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = provider_named("openai").base_url
    assert Model(ModelAddress(own, "gpt-4o", provider="openai")).window() == 128_000
    with openai_server() as server:
        server.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": 5_000}]}
        with Model(ModelAddress(server.base_url, "m", provider="openai")) as model:
            assert model.window() == 5_000
    with Model(ModelAddress(server.base_url, "m")) as model:
        assert model.window() == 0, "nobody is there any more"
    monkeypatch.setenv("ALL_PROXY", "nonsense://proxy")
    assert Model(ModelAddress("http://models.invalid/v1", "m")).window() == 0
