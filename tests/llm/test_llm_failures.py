"""What providers, connections and hostile servers do wrong, as a sentence and a next step."""

from __future__ import annotations

import gc
import itertools
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis_server import free_port

from codeqa.errors import ContextLengthError, ModelError
from codeqa.llm import client as client_module
from codeqa.llm import models as models_module
from codeqa.llm.answer import AnswerReader
from codeqa.llm.client import Model, generate_bounded
from codeqa.llm.failures import explain, refusal_in
from codeqa.llm.models import Models
from codeqa.llm.providers import ModelAddress, ModelChoice
from codeqa.llm.values import RetryWait, never
from codeqa.settings import Settings
from tests.kit.openai_server import (
    Plain,
    Reply,
    Script,
    Streamed,
    context_length,
    delta,
    dropped,
    event,
    failure,
    openai_server,
    rate_limited,
    stream,
)
from tests.kit.waiting import PATIENCE, Clock

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

MESSAGES = [{"role": "user", "content": "How do wombats dig their burrows?"}]
KEY = "sk-test-0123456789abcdef"


def fail(
    reply: Reply | Script, key: str = KEY, provider: str = "custom", model: str = "m1"
) -> tuple[ModelError, int]:
    """The error that a reply leads to, and how often the server was asked."""
    script: Script = reply if callable(reply) else lambda path, body: reply
    with openai_server(script) as server:
        target = ModelAddress(server.base_url, model, key, provider)
        with Model(target) as client, pytest.raises(ModelError) as caught:
            list(client.stream(MESSAGES))
        return caught.value, len(server.requests)


@pytest.mark.parametrize(
    ("reply", "said", "next_step", "asked"),
    [
        (failure(400, "bad temperature"), "failed with status 400: “bad temperature”", "name", 1),
        (failure(401), "refused the key", "Check the key", 1),
        (failure(400, "API key not valid. Please pass one."), "refused the key", "Check", 1),
        (failure(404, "The model `m1` does not exist"), "no model 'm1'", "Choose", 1),
        (failure(404, "Not Found"), "not a chat API", "ends in /v1", 1),
        (failure(402, "pay"), "“pay”", "your account", 1),
        (rate_limited(30, "Too much"), "limits the rate.*: “Too much”", "in 30 seconds", 3),
        (failure(503, "Overloaded"), "is overloaded", "in a minute", 3),
        (failure(503, "Loading model"), "still loads the model", "in a moment", 3),
        (failure(400, "why " * 500), "(why ?){30}…”", "name", 1),
        ((302, {"location": "https://login.example/x"}, {}), "status 302", "Ask", 1),
        ((418, {}, "<html>teapot</html>"), "status 418\\.$", "Ask", 1),
        ((403, {}, {"error": "plain words"}), "“plain words”", "Ask", 1),
        ((403, {}, [{"error": {"message": "in a list", "code": 403}}]), "“in a list”", "A", 1),
        ((500, {}, b"\xff\xfe\x00"), "status 500", "Ask again", 3),
    ],
)  # fmt: skip
def test_a_refusal_has_a_next_step_and_is_retried_where_that_may_help(
    reply: Reply, said: str, next_step: str, asked: int
) -> None:
    shown, requests = fail(reply)
    assert re.search(said, shown.message), shown.message
    assert next_step in shown.hint
    assert shown.message.count("127.0.0.1") == 1
    assert shown.message.endswith(".") and shown.hint.endswith(".")
    assert requests == asked


def test_a_local_server_is_asked_once() -> None:
    _, requests = fail(failure(503), provider="ollama")
    assert requests == 1


def test_a_local_server_that_loads_its_model_is_asked_again() -> None:
    _, requests = fail(failure(503, "Loading model"), provider="llamacpp")
    assert requests == 3


LONG, OTHER = (Path(__file__).parent / "refusals.txt").read_text("utf-8").split("\n\n")
TARGET = ModelAddress("http://127.0.0.1/v1", "m")


def test_every_way_to_say_that_the_context_is_too_long_is_understood_and_no_other() -> None:
    for words in (LONG + "\n" + OTHER).splitlines():
        for body in ({"error": {"message": words, "param": "messages"}}, {"detail": words}, words):
            error = explain(refusal_in({"error": body}), TARGET)
            too_long = isinstance(error, ContextLengthError)
            assert too_long == (words in LONG) or words.startswith("#"), body
    reply = Streamed((event({"error": {"message": "Context size has been exceeded."}}),))
    for told in (context_length(), reply, failure(413, "Request too large on tokens per minute")):
        error, asked = fail(told)
        assert "CODEQA_CONTEXT_CHARACTERS" in error.hint and asked == 1


@pytest.mark.parametrize(
    ("reply", "waits"),
    [
        (rate_limited(30), [30.0, 30.0]),
        (failure(529), list(client_module.PAUSES)),
        (dropped(), list(client_module.PAUSES)),
    ],
    ids=["429", "529", "closed"],
)
def test_what_passes_is_waited_out(reply: Reply, waits: list[float], clock: Clock) -> None:
    begun, asked_at = clock.now, list[float]()
    replies = [reply, reply, stream(["at last"], usage=None)]

    def script(path: str, body: dict[str, Any]) -> Reply:
        asked_at.append(clock.now)
        return replies.pop(0)

    with openai_server(script) as server, Model(ModelAddress(server.base_url, "m")) as model:
        *waited, last = model.stream(MESSAGES)
    assert last == "at last"
    assert asked_at == [begun, begun + waits[0], begun + sum(waits)]
    told = [one for one in waited if isinstance(one, RetryWait)]
    seconds = [left for wait in waits for left in range(math.ceil(wait), -1, -1)]
    assert [one.seconds for one in told] == seconds
    assert [one.begins for one in told].count(True) == 2
    if waits[0] == 30:
        assert told[0].text == "127.0.0.1 asks to wait 30 s"


def test_what_a_draft_was_asked_to_wait_the_answer_waits_before_its_first_request(
    clock: Clock,
) -> None:
    begun, replies = clock.now, [rate_limited(30), stream(["at last"], usage=None)]
    with openai_server(lambda path, body: replies.pop(0)) as server:
        with Model(ModelAddress(server.base_url, "m")) as model:
            for name in ("hyde-1", "hyde-2"):  # the second is not even sent
                *_, stage = generate_bounded(name, model, lambda: MESSAGES, 9, PATIENCE, never)
                assert stage.outcome.startswith("failed") and "limits the rate" in stage.outcome
            assert clock.now == begun and len(server.requests) == 1
            *waited, last = model.stream(MESSAGES)
        assert len(server.requests) == 2
    assert last == "at last" and clock.now == begun + 30
    told = [one for one in waited if isinstance(one, RetryWait)]
    assert told[0].text == "127.0.0.1 asks to wait 30 s" and told[0].begins


IN_AN_HOUR = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(Clock().now + 3_600))


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (rate_limited(61), r"61 seconds"),
        (rate_limited(message="Quota exceeded. Please retry in 3600.07s."), r"3600 seconds"),
        (failure(503, headers={"Retry-After": IN_AN_HOUR}), r"\d{4} seconds"),
    ],
    ids=["seconds", "Gemini's words", "a date"],
)
def test_a_wait_that_is_too_long_is_told_at_once(reply: Reply, seconds: str) -> None:
    error, requests = fail(reply)
    assert re.search(f"Ask again in {seconds}, or choose another model", error.hint), error.hint
    assert requests == 1


def test_a_test_of_a_model_is_asked_for_once(settings: Settings) -> None:
    with openai_server(lambda path, body: rate_limited(30)) as server:
        with pytest.raises(ModelError):
            Models(settings).test(ModelChoice("custom", "m", server.base_url))
        assert len(server.requests) == 1


def test_what_nobody_thought_of_is_an_error_without_its_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any) -> str:
        raise KeyError("wom" + "bats")  # the line of the code itself may be logged

    monkeypatch.setattr(AnswerReader, "take", broken)
    error, requests = fail(stream(["ok"]))
    assert "KeyError" in error.message and "wombats" not in str(error)
    assert requests == 1
    assert "KeyError" in caplog.text and "wombats" not in caplog.text


def test_text_that_no_encoding_takes_is_sent_with_marks_for_it() -> None:
    with openai_server() as server, Model(ModelAddress(server.base_url, "m")) as model:
        list(model.stream([{"role": "user", "content": [{"type": "text", "text": "a\udc80b"}]}]))
        list(model.stream([{"role": "user", "content": "a\x00\ud800"}]))
    assert server.requests[0][1]["messages"][0]["content"][0]["text"] == "a?b"
    assert server.requests[1][1]["messages"][0]["content"] == "a\x00?"


PARTS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
]


@pytest.mark.parametrize(
    "refusal",
    [
        failure(400, "Unknown parameter: 'stream_options'."),
        (422, {}, {"detail": [{"loc": ["body", "stream_options"], "msg": "E"}]}),
        failure(400, "messages: invalid type: sequence, expected a string"),
    ],
)
def test_a_server_that_refuses_a_request_is_asked_in_the_plainest_form_from_then_on(
    refusal: Plain,
) -> None:
    def script(path: str, body: dict[str, Any]) -> Reply:
        return refusal if "stream_options" in body else stream(["ok"], usage=None)

    with openai_server(script) as server, Model(ModelAddress(server.base_url, "m")) as model:
        assert [list(model.stream(PARTS)) for _ in range(2)] == [["ok"], ["ok"]]
        assert model.complete(PARTS, 9) == "ok"
    seen = [body for _, body in server.requests]
    assert ["stream_options" in body for body in seen] == [True, False, False, False]
    assert seen[0]["messages"] == PARTS and "max_tokens" not in seen[3]
    assert seen[2]["messages"][-1]["content"] == "one\n\ntwo"


def test_no_error_repeats_the_key_or_commands_the_terminal() -> None:
    for words in (
        f"Incorrect API key provided: {KEY}.",
        "Incorrect key sk-test-****************cdef, see the site",
        f"No account for {KEY[3:15]}***",
        "line one\nline two\r\n\x1b[31mred\u202e",
    ):
        error, _ = fail(failure(400, words))
        assert KEY[5:13] not in str(error) and "****" not in str(error)
        assert str(error).isprintable()
        assert error.__cause__ is None and error.__suppress_context__


@pytest.mark.parametrize(
    ("provider", "command"),
    [
        ("ollama", "Is Ollama running? Start it with `ollama serve`."),
        ("custom", "that the server is running"),
    ],
)
def test_a_local_server_that_does_not_run_is_named_with_the_command_that_starts_it(
    provider: str, command: str
) -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    model = Model(ModelAddress(address, "m", KEY, provider))
    with model, pytest.raises(ModelError) as caught:
        list(model.stream(MESSAGES))
    assert caught.value.message.startswith(f"{address} cannot be reached (")
    assert command in caught.value.hint


# Servers that mean harm or are broken: an error in a sentence, soon and in little memory

DEEP = b"[" * 200_000


def test_what_nobody_can_read_is_an_error_in_our_words() -> None:
    gc.collect()  # what other tests left cannot warn of itself at the end of the stack
    for reply in (
        Streamed((b"data: " + DEEP + b"\n\n",)),
        (200, {}, DEEP),
        (400, {}, DEEP),
        (400, {"Content-Type": "text/plain; charset=idna"}, b"no"),
    ):
        error, _ = fail(reply)
        assert KEY not in str(error)
    with openai_server() as server, Model(ModelAddress(server.base_url, "m")) as model:
        server.pages["/v1/models"] = DEEP
        with pytest.raises(ModelError, match="it cannot be read"):
            model.list_models()


def test_an_answer_without_an_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LONGEST_ANSWER", 10_000)
    error, _ = fail(Streamed(itertools.repeat(delta("and so on ") * 10)))
    assert "broke off: it is longer than 10,000 characters" in error.message
    with openai_server(lambda path, body: stream(["x" * 9_999])) as server:
        model = Model(ModelAddress(server.base_url, "m"))
        assert model.complete(MESSAGES, 10) == "x" * 9_999
        model.close()


def ending(*events: bytes, end: str = "finished") -> Streamed:
    """An answer of two words, then `events`, and the end of the connection."""
    return Streamed((delta("Orders "), delta("are"), *events), end=end)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (ending(), "it ended in the middle"),
        (ending(delta(" read")[:-12]), ""),
        (ending(b'data: {"choices": [{"delta": {"content": " re'), ""),
        (ending(end="closed"), ""),
        (ending(event({"choices": [{"delta": {}, "finish_reason": "content_filter"}]})), "filter"),
        (ending(event({"choices": [{"delta": {}, "finish_reason": "error"}]})), "with an error"),
    ],
    ids=["nothing", "cut in an event", "cut in a line", "cut connection", "filter", "error"],
)
def test_a_stream_that_ends_without_its_end_has_broken_off(reply: Streamed, why: str) -> None:
    pieces = list[Any]()
    with openai_server(lambda path, body: reply) as server:
        model = Model(ModelAddress(server.base_url, "m"))
        with model, pytest.raises(ModelError) as caught:
            pieces.extend(iter(model.stream(MESSAGES)))
        assert len(server.requests) == 1, "what began to come is not asked for again"
    assert "".join(pieces).startswith("Orders are")
    assert "broke off" in caught.value.message and why in caught.value.message
    assert "TIMEOUT" not in caught.value.hint, "it was not silent"


def test_a_test_of_a_model_that_only_shows_signs_of_life_ends(
    settings: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models_module, "time", clock)

    def signs_of_life() -> Iterator[bytes]:
        yield b": still here\n\n" * 99
        clock.advance(models_module.TEST_SECONDS + 1)
        yield from itertools.repeat(b": still here\n\n" * 99)

    with (
        openai_server(lambda path, body: Streamed(signs_of_life())) as server,
        pytest.raises(ModelError, match="stayed silent"),
    ):
        Models(settings).test(ModelChoice("custom", "m", server.base_url))


def test_a_flood_without_text_can_be_stopped() -> None:
    """The loop must come to notice it although there is always more to read."""
    flood = event({"choices": [{"index": 0, "delta": {"reasoning": "x"}}]}) * 200
    came: list[Any] = []
    with (
        openai_server(lambda path, body: Streamed(itertools.repeat(flood))) as server,
        Model(ModelAddress(server.base_url, "m")) as model,
    ):
        for piece in model.stream(MESSAGES, cancelled=lambda: len(came) > 1_000):
            came.append(piece)
    assert not any(isinstance(one, str) for one in came)  # but what it thinks
