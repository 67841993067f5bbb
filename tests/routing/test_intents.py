"""The intent of a message: by its words, from the cache, by a model; and how that is measured."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai_server import Reply, ScriptedServer, failure, openai_server, silent, stream
from waiting import Clock

from codeqa.llm.client import Model
from codeqa.llm.providers import ModelAddress
from codeqa.routing.followup import (
    CACHE_SECONDS,
    MODEL_SECONDS,
    SmallCall,
    Understood,
    cache_key,
    messages_for,
    read_answer,
)
from codeqa.routing.intents import (
    INTENTS,
    MESSAGE_CHARACTERS,
    MODEL_BELOW,
    Intent,
    by_words,
    lexicon,
    read,
)
from codeqa.state import State
from codeqa.types import NO_USAGE, Exchange
from research.benchmarks import intents as benchmark
from research.training import intents as training

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

UNSURE = "Zanzibar?"
FIRST = {
    "general": """
        hello there! | thanks a lot | how are you today? | what can you do? | are you a human
        what is a monad? | explain the difference between TCP and UDP
        tell me a joke | vim or emacs? | should I learn Kotlin or Swift first
        """,
    "knowledge_base": """
        where is the login handled | where is a payment booked? | how is an order shipped?
        how are passwords hashed? | UserRepository | src/net/socket.c
        who calls render() | list all cron jobs | how do I run the tests
        hello, can you tell me where emails are sent?
        I'm new to Go, how does the worker pool work?
        how does the code delete a user's profile
        what user data does this project store in the database?
        """,
    "profile": """
        My name is Ada | I am new to Go | call me Max | what's my name?
        please always answer in German | my favourite editor is emacs
        """,
    "privacy": """
        what do you know about me | delete my data | is this conversation saved?
        are you tracking me | who can read my messages | does anything leave my machine
        is my code sent to openai
        """,
}
LATER = {
    "continuation": """
        why? | where is it defined | and what about the other one? | shorter please
        are you sure? | who calls that | what happens if it times out | go on
        thanks, and where is that configured? | is it thread-safe?
        """,
    "general": "thanks, that helped a lot | ok cool | that was quick | bye!",
    "knowledge_base": """
        who calls `Order.cancel`? | thanks! now, where is the rate limiter configured?
        which exceptions can the http client raise | how long does an idle thread stay alive?
        """,
    "profile": "from now on keep answers under five lines | by the way, I'm colour-blind",
    "privacy": "are you recording this? | forget everything i told you",
}


def messages(table: dict[str, str], history: bool) -> Iterator[tuple[str, str, bool]]:
    for intent, texts in table.items():
        for text in texts.replace("\n", "|").split("|"):
            if text.strip():
                yield intent, text.strip(), history


def test_a_message_gets_the_intent_of_its_definition() -> None:
    for intent, text, history in (*messages(FIRST, False), *messages(LATER, True)):
        assert by_words(read(text), has_history=history).name == intent
        assert by_words(read(text), has_history=False).name != "continuation", "of no message"
    pasted = "x = 1\n" * MESSAGE_CHARACTERS + "\nwhere is this parsed?"
    assert by_words(read(pasted), has_history=False).name == "knowledge_base"


def test_the_shipped_weights_know_the_messages_that_they_were_fitted_to() -> None:
    rows = list(training.messages())
    assert len(rows) > 3_000
    some = rows[::7]
    right = [by_words(read(text), has_history=h).name == intent for text, h, intent in some]
    assert sum(right) / len(some) >= 0.95


def test_the_reason_names_the_words_that_decided_and_who_says_little_is_not_sure_of() -> None:
    made = by_words(read("delete my data"), has_history=False)
    assert made.source == "heuristics" and "“my" in made.reason
    assert by_words(read("hello"), has_history=False).confidence > 0.9
    assert by_words(read(UNSURE), has_history=False).confidence < MODEL_BELOW


def test_a_question_in_another_language_is_searched_for_when_no_model_says_otherwise() -> None:
    for text in (
        "¿Dónde se validan los formularios?",
        "配置文件在哪里",
        "где обрабатываются ошибки?",
    ):
        found = by_words(read(text), has_history=False)
        assert found.name == "knowledge_base" and found.confidence < MODEL_BELOW


def test_any_text_has_an_intent() -> None:
    source = random.Random(5)
    letters = "abcde äöß 你好 これ да 한국 `'\"()[]{}<>:/\\.,;!?@#_-\n\t0123456789"
    texts = ["".join(source.choices(letters, k=source.randrange(80))) for _ in range(200)]
    texts += ["", " ", "???", "🙂🙂", "\n\n", "\ud800", "'s", "@"]
    texts += [piece * 50_000 for piece in ("a", "\n", "/", "a.b.", "it ", "(((", "a_", "-", "你")]
    for text in texts:
        for history in (False, True):
            found = by_words(read(text), has_history=history)
            assert found.name in INTENTS and 0 < found.confidence <= 1 and found.reason


def test_an_english_word_stands_for_its_forms() -> None:
    for form in ("store", "stores", "stored", "storing"):
        assert "STORE" in lexicon().kinds(form)
    assert "SOFTWARE" in lexicon().kinds("queries") and not lexicon().kinds("restored")


class Kept:
    """A cache in memory that counts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.seconds: list[float] = []

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def set(self, key: str, value: str, seconds: float) -> None:
        self.values[key] = value
        self.seconds.append(seconds)

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


def says(intent: object, confidence: object = 0.9) -> Reply:
    return stream([json.dumps({"intent": intent, "confidence": confidence})])


@contextmanager
def with_model(
    reply: Callable[[], Reply], cache: Any
) -> Iterator[tuple[SmallCall, ScriptedServer]]:
    """The call of a model that says `reply()`, and the server that counts what is asked."""
    with (
        openai_server(lambda path, body: reply()) as server,
        Model(ModelAddress(server.base_url, "small")) as model,
    ):
        yield SmallCall(cache, lambda: model, None), server


def ask(call: SmallCall, text: str = UNSURE, user: str = "ada", **given: Any) -> Understood:
    """What the model said, without what that took."""
    values = {"has_history": False, "history": (), "names": (), **given}
    return replace(call.ask(user, text, **values), usage=NO_USAGE)


# The one call of a small model.


def test_an_intent_by_a_model_is_cached_half_an_hour_without_the_text(
    tmp_path: Path,
) -> None:
    cache = Kept()
    with with_model(lambda: says("general", 0.85), cache) as (call, _server):
        assert ask(call).intent == Intent("general", 0.85, "model", "a language model was asked")
        again = call.recall("ada", f"  {UNSURE.upper()} ", False)
        assert again and (again.name, again.confidence, again.source) == ("general", 0.85, "cache")
        assert call.recall("bo", UNSURE, False) is None
        assert call.recall("ada", UNSURE, True) is None
    assert cache.seconds == [CACHE_SECONDS] == [1800.0]
    assert "zanzibar" not in str(cache.values).casefold()
    assert "ada" not in "".join(cache.values)
    with with_model(lambda: says("general"), State(tmp_path).values) as (call, _server):
        ask(call)
        assert call.recall("ada", UNSURE, False)


def test_a_cache_that_is_damaged_or_cannot_be_used_costs_nothing(tmp_path: Path) -> None:
    cache = Kept()
    for value in ("", "nonsense", '["general", 1]', '{"intent": "theft", "confidence": 1}', "5",
                  '{"intent": "general", "confidence": 7}', '{"intent": "general"}',
                  '{"intent": ["general"], "confidence": 1}', "[" * 9_000):  # fmt: skip
        cache.values[cache_key("ada", "delete my data", False)] = value
        assert SmallCall(cache, lambda: None, None).recall("ada", "delete my data", False) is None
    (tmp_path / "state").write_text("in the way")
    with with_model(lambda: says("general"), State(tmp_path / "state").values) as (call, _server):
        assert call.recall("ada", UNSURE, False) is None
        assert ask(call).intent


def test_whatever_is_odd_says_nothing() -> None:
    for reply in (
        stream(["I think it is general."]), stream(["{" * 5_000]), stream(["[" * 3_000 + '{"a": ']),
        says("theft"), says("general", 1.5), says("general", "high"), says(["general"]),
        says("continuation"), failure(401),
    ):  # fmt: skip
        cache = Kept()
        with with_model(lambda reply=reply: reply, cache) as (call, _server):
            assert ask(call) == Understood()
        assert cache.values == {}


def test_a_model_that_fails_is_left_alone_for_a_while() -> None:
    with with_model(lambda: stream(["no"]), Kept()) as (call, server):
        for number in range(4):
            assert ask(call, f"Zanzibar {number}?") == Understood()
        assert len(server.requests) == 1


def test_a_slow_model_is_left_at_the_deadline(clock: Clock) -> None:
    def late() -> Reply:
        clock.advance(MODEL_SECONDS)
        return silent()

    with with_model(late, Kept()) as (call, server):
        assert ask(call) == Understood()
        assert server.wait_for_disconnects()


def test_a_stop_ends_the_request_and_does_not_count_against_the_model() -> None:
    replies: list[Reply] = [silent(), says("general")]
    with with_model(lambda: replies.pop(0), Kept()) as (call, server):
        assert ask(call, cancelled=lambda: bool(server.requests)) == Understood()
        assert server.wait_for_disconnects()
        assert ask(call).intent


def test_the_small_model_gets_one_short_request_without_secrets() -> None:
    with with_model(lambda: says("general"), Kept()) as (call, server):
        ask(call)
        assert len(server.requests) == 1
        body = server.requests[0][1]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"] == f"[MESSAGE]\n{UNSURE}"
    assert UNSURE not in body["messages"][0]["content"]
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    sent = json.dumps(messages_for(f"is {secret} still valid", False, (), ()))
    assert "still valid" in sent and secret not in sent
    long = messages_for("y" * 90_000, True, [Exchange("q" * 9_000, "a" * 9_000)] * 9, ["n"] * 99)
    assert len(str(long[1]["content"])) < 4_000
    first, later = (str(messages_for("x", turns, (), ())[0]["content"]) for turns in (False, True))
    assert "first message" in first and "earlier turns." in later
    assert all(f"- {intent}:" in first for intent in INTENTS)


def test_an_answer_may_be_fenced_and_each_part_of_it_counts_by_itself() -> None:
    said = read_answer('```json\n{"intent": "privacy", "confidence": 1}\n```', "delete it")
    assert said.intent and (said.intent.name, said.intent.confidence) == ("privacy", 1.0)
    said = read_answer('{"intent": 5, "topic": "new", "question": "who calls `f`?"}', "who calls f")
    assert said.intent is None and said.leaving and said.leaving.to == "code"
    assert said.question == "who calls `f`?"


def test_a_prompt_that_cannot_be_used_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "understand.md").write_text("$nonsense")
    with openai_server() as server, Model(ModelAddress(server.base_url, "m")) as model:
        assert ask(SmallCall(Kept(), lambda: model, tmp_path)) == Understood()
        assert server.requests == []


# The measurement.


def test_the_intent_report_shows_half_of_the_messages_and_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The floor is below the figure in research/benchmarks/results."""
    out, data = tmp_path / "intents.md", tmp_path / "intents.json"
    assert benchmark.main(["--markdown", str(out), "--json", str(data)]) == 0
    told = out.read_text("utf-8") + data.read_text("utf-8") + capsys.readouterr().out
    measured = json.loads(data.read_text("utf-8"))["halves"]
    assert list(measured) == ["tune"] and "## tune" in told
    assert measured["tune"]["messages"]["untagged"]["macro_f1"] >= 0.88
    assert measured["tune"]["messages"]["with_the_tag"]["messages"] == 198
    texts = [row["text"] for row in benchmark.rows("messages", benchmark.TUNE)]
    assert sum(len(text) >= 15 and text in told for text in texts) == 0
    assert {row["split"] for row in benchmark.rows("messages", benchmark.TUNE)} == {"tune"}
