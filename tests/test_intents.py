"""The intent of a message: rules, cache, model, and how they are measured."""

from __future__ import annotations

import json
import logging
import random
import re
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai  # noqa: F401  (loading it would use up the seconds that a model has)
import pytest
from conftest import ROOT
from openai_server import Reply, ScriptedServer, failure, openai_server, silent, stream

from benchmarks import intents as benchmark
from codeqa.intents import (
    INTENTS,
    MODEL_BELOW,
    Classifier,
    Intent,
    by_heuristics,
    cache_key,
)
from codeqa.intents.classifier import CACHE_SECONDS, messages_for, read_answer, weigh
from codeqa.intents.reading import CODE, LONGEST, NUMBER, lexicon
from codeqa.llm import Endpoint, Model
from codeqa.state import State

PACKAGE = ROOT / "codeqa" / "intents"
UNSURE = "Zanzibar?"
FIRST = {
    "general": """
        hello there! | thanks a lot | how are you today? | what can you do? | are you a human
        what is a monad? | explain the difference between TCP and UDP
        tell me a joke | vim or emacs?
        should I learn Kotlin or Swift first | what's the weather like | where is it sunny today
        Guten Morgen | merci beaucoup
        ¿cómo estás? | спасибо большое | ありがとうございます | 你好
        안녕하세요 | grazie mille | cześć | 👍
        """,
    "knowledge_base": """
        where is the login handled | where is a payment booked? | how is an order shipped?
        how are passwords hashed? | UserRepository | src/net/socket.c
        who calls render() | list all cron jobs
        how do I run the tests | it fails with exit code 137
        hello, can you tell me where emails are sent?
        I'm new to Go, how does the worker pool work?
        how does the code delete a user's profile | what personal data does this project store?
        where do we log user activity? | what is the best place to add a new validator
        what's your opinion on the error handling in client.go? | how does it work
        Wo wird die Datenbankverbindung geöffnet? | ¿Dónde se validan los formularios?
        où sont stockées les sessions ? | где обрабатываются ошибки? | 配置文件在哪里
        ログインの処理はどこにありますか
        로그인은 어디서 처리되나요? | gdzie jest konfiguracja bazy danych?
        """,
    "profile": """
        My name is Ada | I am new to Go | call me Max | what's my name? | who am i
        please always answer in German | where do I work? | my favourite editor is emacs
        do you remember which languages I know? | hello, I'm Fatima | I live in Berlin
        Ich heiße Jonas | je m'appelle Claire | me llamo Pedro | меня зовут Иван | 我叫小明
        """,
    "privacy": """
        what do you know about me | delete my data
        is this conversation saved? | are you tracking me
        don't save my name | who can read my messages | does anything leave my machine | forget me
        is my code sent to openai
        what's your privacy policy | My name is Lee, but don't save it.
        Lösche bitte meinen Verlauf | olvida mi nombre | Supprime toutes mes données
        что ты обо мне знаешь? | 删除我的数据
        私のデータを削除してください | cancella i miei dati
        """,
}
LATER = {
    "continuation": """
        why? | where is it defined | and what about the other one?
        shorter please | plus court | give me an example
        are you sure? | who calls that | what happens if it times out | in German please | go on
        thanks, and where is that configured? | what did you mean by channel | is it thread-safe?
        und wer ruft das auf? | ¿y eso dónde se define? | pourquoi ? | а где это вызывается?
        为什么? | それはなぜですか | e perché?
        더 자세히 설명해줘 | en waarom?
        """,
    "general": "thanks, that helped a lot | ok cool | that was quick | haha nice | bye!",
    "knowledge_base": """
        who calls `Order.cancel`? | thanks! now, where is the rate limiter configured?
        how is src/table.go built and where is it used | is there a retry queue
        which exceptions can the http client raise | where are the unit tests for the tokenizer?
        how long does an idle thread stay alive?
        """,
    "profile": "from now on keep answers under five lines | by the way, I'm colour-blind",
    "privacy": "are you recording this? | forget everything i told you | delete my last question",
}


def messages(table: dict[str, str], history: bool) -> Iterator[tuple[str, str, bool]]:
    for intent, texts in table.items():
        for text in texts.replace("\n", "|").split("|"):
            if text.strip():
                yield intent, text.strip(), history


@pytest.mark.parametrize(
    ("intent", "text", "history"), [*messages(FIRST, False), *messages(LATER, True)]
)
def test_a_message_gets_the_intent_of_its_definition(intent: str, text: str, history: bool) -> None:
    assert by_heuristics(text, has_history=history).name == intent


def development() -> Iterator[tuple[str, str, bool]]:
    """The messages of evals/intents/development.txt."""
    for part in (
        (ROOT / "evals" / "intents" / "development.txt").read_text("utf-8").split("== ")[1:]
    ):
        heading, *texts = part.strip().split("\n")
        intent, when = heading.split()
        yield from ((intent, text, when == "later") for text in texts)


def test_the_rules_know_the_messages_that_they_were_made_on() -> None:
    """The floor is below what they reach: a fall means that a rule broke."""
    right = [by_heuristics(text, has_history=h).name == intent for intent, text, h in development()]
    assert len(right) > 1_000 and sum(right) / len(right) >= 0.94


def test_a_first_message_is_never_a_continuation() -> None:
    texts = [text for _, text, _ in (*messages(FIRST, False), *messages(LATER, True))]
    assert all(by_heuristics(text, has_history=False).name != "continuation" for text in texts)


def test_the_reason_names_the_rule_that_decided_and_the_sums_are_those_that_hold() -> None:
    found = by_heuristics("who calls that", has_history=True)
    assert (found.source, found.reason) == ("heuristics", "a pronoun without a referent")
    sums, held = weigh("delete my data", has_history=False)
    assert sum(sums.values()) == sum(rule.weight for rule in held)


def test_confidence_grows_with_the_lead_and_is_low_where_little_is_said() -> None:
    assert by_heuristics("hello", has_history=False).confidence > 0.95
    assert by_heuristics(UNSURE, has_history=False).confidence < MODEL_BELOW


def test_any_text_has_an_intent() -> None:
    source = random.Random(5)
    letters = "abcde äöß 你好 これ да 한국 `'\"()[]{}<>:/\\.,;!?@#_-\n\t0123456789"
    drawn = ["".join(source.choices(letters, k=source.randrange(80))) for _ in range(300)]
    for text in ("", " ", "???", "🙂🙂", "\n\n", "\ud800", "a" * 50_000, "'s", "@", *drawn):
        for history in (False, True):
            found = by_heuristics(text, has_history=history)
            assert found.name in INTENTS and 0.5 <= found.confidence <= 1 and found.reason


@pytest.mark.parametrize(
    "piece", ["a", "\n", "/", "a.b.", "it ", "`", "(((", "a_", "a/b", "-", "你"]
)
def test_a_long_message_takes_no_longer_than_its_ends(piece: str) -> None:
    by_heuristics("warm", has_history=False)
    text = piece * (200_000 // len(piece))
    by_heuristics(text, has_history=True)


def test_a_long_paste_and_a_swapped_letter_change_nothing() -> None:
    pasted = "x = 1\n" * LONGEST + "\nwhere is this parsed?"
    assert by_heuristics(pasted, has_history=False).name == "knowledge_base"
    assert by_heuristics("waht do you know abuot me", has_history=False).name == "privacy"


def test_rules_name_no_kind_that_the_lexicon_lacks_and_the_lexicon_none_that_no_rule_names() -> (
    None
):
    listed = set(tomllib.loads((PACKAGE / "lexicon.toml").read_text("utf-8")))
    sources = [
        (PACKAGE.parent / f"{name}.py").read_text("utf-8")
        for name in ("intents/rules", "intents/signs", "intents/reading", "account/facts")
    ]
    named = {word for source in sources for word in re.findall(r'"([A-Z_]+)"', source)}
    assert named - {CODE, NUMBER, "NFC"} == listed


def test_an_english_word_stands_for_its_forms() -> None:
    known = lexicon()
    for form in ("store", "stores", "stored", "storing"):
        assert "STORE" in known.kinds(form)
    assert "SOFTWARE" in known.kinds("queries") and not known.kinds("restored")


# The classifier.


class Kept:
    """A cache in memory that counts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.seconds: list[float] = []
        self.asked: list[str] = []

    def get(self, key: str) -> str | None:
        self.asked.append(key)
        return self.values.get(key)

    def set(self, key: str, value: str, seconds: float) -> None:
        self.values[key] = value
        self.seconds.append(seconds)

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


class Broken(Kept):
    def get(self, key: str) -> str | None:
        raise OSError("gone: " + key)

    def set(self, key: str, value: str, seconds: float) -> None:
        raise OSError("gone: " + value)


def says(intent: object, confidence: object = 0.9) -> Reply:
    return stream([json.dumps({"intent": intent, "confidence": confidence})])


def classify(classifier: Classifier, text: str = UNSURE, **given: Any) -> Intent:
    wishes = {"tagged": False, "has_history": False, "user": "ada", **given}
    return classifier.classify(text, **wishes)


@contextmanager
def with_model(
    reply: Callable[[], Reply], cache: Any, **given: Any
) -> Iterator[tuple[Classifier, ScriptedServer]]:
    """A classifier whose model says `reply()`, and the server that counts what is asked."""
    with (
        openai_server(lambda path, body: reply()) as server,
        Model(Endpoint(server.base_url, "small")) as model,
    ):
        yield Classifier(cache, lambda: model, None, **given), server


def test_the_tag_decides_before_anything_is_looked_up() -> None:
    cache = Kept()
    found = classify(Classifier(cache, lambda: None, None), "delete my data", tagged=True)
    assert (found.name, found.confidence, found.source) == ("knowledge_base", 1.0, "tag")
    assert cache.asked == []


def test_a_message_that_the_rules_are_sure_of_is_not_sent() -> None:
    with with_model(lambda: says("general"), Kept()) as (classifier, server):
        assert classify(classifier, "delete my data").source == "heuristics"
        assert server.requests == []


def test_a_model_is_asked_once_below_the_confidence_and_then_the_cache(tmp_path: Path) -> None:
    state = State(tmp_path).values
    with with_model(lambda: says("general", 0.85), state) as (classifier, server):
        first = classify(classifier, UNSURE)
        again = classify(classifier, f"  {UNSURE.upper()} ")
        assert (first.name, first.confidence, first.source) == ("general", 0.85, "model")
        assert (again.name, again.confidence, again.source) == ("general", 0.85, "cache")
        assert len(server.requests) == 1
        classify(classifier, "Zanzibar, Pemba", has_history=True)
        classify(classifier, user="bo")
        assert len(server.requests) == 3


def test_what_the_cache_holds_decides_before_the_rules() -> None:
    cache = Kept()
    cache.values[cache_key("ada", "delete my data", False)] = (
        '{"intent": "general", "confidence": 0.7}'
    )
    found = classify(Classifier(cache, lambda: None, None), "Delete  my data")
    assert (found.name, found.source) == ("general", "cache")


def test_only_what_a_model_said_is_cached_for_half_an_hour_and_without_the_text() -> None:
    cache = Kept()
    with with_model(lambda: says("general"), cache) as (classifier, _server):
        classify(classifier, "delete my data")
        assert cache.values == {}
        classify(classifier, "Zanzibar ?")
    assert cache.seconds == [CACHE_SECONDS] == [1800.0]
    assert "zanzibar" not in str(cache.values).casefold()
    assert "ada" not in "".join(cache.values)


def test_the_key_differs_by_user_text_and_history() -> None:
    keys = {
        cache_key(user, text, history)
        for user in ("a", "b")
        for text in ("x", "y")
        for history in (True, False)
    }
    assert len(keys) == 8


@pytest.mark.parametrize(
    "value",
    ["", "nonsense", "[]", '["general", 1]', '{"intent": "theft", "confidence": 1}', "{}", "[1]",
     '"general"', "5", '{"intent": "general", "confidence": 7}', '{"intent": "general"}',
     '{"intent": ["general"], "confidence": 1}', "[" * 9_000, "{" * 9_000],
)  # fmt: skip
def test_a_damaged_cache_costs_nothing(value: str) -> None:
    cache = Kept()
    cache.values[cache_key("ada", "delete my data", False)] = value
    assert classify(Classifier(cache, lambda: None, None), "delete my data").name == "privacy"


def test_a_failing_cache_costs_nothing_and_is_logged_without_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "codeqa")
    with with_model(lambda: says("general"), Broken()) as (classifier, _server):
        assert classify(classifier, "Zanzibar ?").source == "model"
    said = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("codeqa"))
    assert "cached intent could not be read" in said
    assert "could not be cached" in said
    assert "Zanzibar" not in said
    assert cache_key("ada", "Zanzibar ?", False) not in said


@pytest.mark.parametrize(
    "reply",
    [
        stream(["I think it is general."]),
        stream([""]),
        stream(["{" * 5_000]),
        says("theft"),
        says("general", 1.5),
        says("general", "high"),
        says("general", True),
        says(["general"]),
        says("continuation"),
        failure(401),
        failure(400),
    ],
    ids=str,
)
def test_whatever_is_odd_leaves_the_rules_answer(reply: Reply) -> None:
    cache = Kept()
    with with_model(lambda: reply, cache) as (classifier, _server):
        found = classify(classifier)
        assert (found.name, found.source) == ("knowledge_base", "heuristics")
        assert cache.values == {}


def test_a_model_that_fails_is_left_alone_for_a_while() -> None:
    with with_model(lambda: stream(["no"]), Kept()) as (classifier, server):
        for number in range(4):
            assert classify(classifier, f"Zanzibar {number}?").source == "heuristics"
        assert len(server.requests) == 1


def test_a_slow_model_is_left_at_the_deadline() -> None:
    with with_model(lambda: silent(600), Kept(), seconds=0.2) as (classifier, server):
        assert classify(classifier).source == "heuristics"
        assert server.wait_for_disconnects()


def test_a_stop_ends_the_request_and_does_not_count_against_the_model() -> None:
    replies: list[Reply] = [silent(600), says("general")]
    with with_model(lambda: replies.pop(0), Kept()) as (classifier, server):
        begun = time.monotonic()
        found = classify(classifier, cancelled=lambda: time.monotonic() > begun + 0.2)
        assert found.source == "heuristics"
        assert server.wait_for_disconnects()
        assert classify(classifier).source == "model"


def test_without_a_model_and_without_the_wish_nothing_is_asked() -> None:
    with with_model(lambda: says("general"), Kept()) as (classifier, server):
        assert classify(classifier, use_model=False).source == "heuristics"
        assert server.requests == []
    assert classify(Classifier(Kept(), lambda: None, None)).source == "heuristics"


def test_the_model_gets_one_short_request_without_secrets() -> None:
    with with_model(lambda: says("general"), Kept()) as (classifier, server):
        classify(classifier)
        assert len(server.requests) == 1
        body = server.requests[0][1]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][1]["content"] == UNSURE
    assert UNSURE not in body["messages"][0]["content"]
    assert body.get("max_tokens", body.get("max_completion_tokens")) <= 32
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    sent = json.dumps(messages_for(f"is {secret} still valid", False, None))
    assert "still valid" in sent and secret not in sent
    assert len(str(messages_for("y" * 90_000, False, None)[1]["content"])) <= LONGEST + 1


def test_the_model_is_told_whether_turns_came_before() -> None:
    first, later = (str(messages_for("x", said, None)[0]["content"]) for said in (False, True))
    assert "first message" in first and "earlier turns" in later
    assert all(f"- {intent}:" in first for intent in INTENTS)


def test_an_answer_may_be_fenced() -> None:
    found = read_answer('```json\n{"intent": "privacy", "confidence": 1}\n```', has_history=False)
    assert found is not None
    assert (found.name, found.confidence, found.source) == ("privacy", 1.0, "model")


def test_a_prompt_that_cannot_be_used_leaves_the_rules_answer(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "classify_intent.md").write_text("$nonsense")
    with openai_server() as server, Model(Endpoint(server.base_url, "m")) as model:
        classifier = Classifier(Kept(), lambda: model, tmp_path)
        assert classify(classifier).source == "heuristics"
        assert server.requests == []


# The measurement.


def test_the_rules_reach_on_the_half_they_were_made_on_what_they_reached() -> None:
    """The floor is below the figure in benchmarks/results: a fall means a rule broke."""
    measured = benchmark.measure_messages(benchmark.TUNE)
    assert measured["untagged"]["macro_f1"] >= 0.95
    assert measured["with_the_tag"]["messages"] == 198


def test_the_scores_are_those_of_the_definitions() -> None:
    pairs = [("general", "general"), ("general", "profile"), ("profile", "profile")]
    measured = benchmark.scores(pairs)
    assert measured["intents"]["general"] == {
        "precision": 1.0, "recall": 0.5, "f1": 0.667, "messages": 2,
    }  # fmt: skip
    assert measured["intents"]["profile"]["precision"] == 0.5
    assert measured["matrix"]["general"] == [1, 0, 0, 1, 0]
    assert measured["macro_f1"] == round((0.667 + 0.667) / 5, 3)


def test_the_report_shows_no_message_and_counts_the_unseen_half_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, data = tmp_path / "intents.md", tmp_path / "intents.json"
    assert benchmark.main(["--markdown", str(out), "--json", str(data)]) == 0
    told = out.read_text("utf-8") + data.read_text("utf-8") + capsys.readouterr().out
    texts = [row["text"] for row in benchmark.rows("messages", benchmark.TUNE)]
    assert sum(len(text) >= 15 and text in told for text in texts) == 0
    assert "## tune" in told and list(json.loads(data.read_text("utf-8"))["halves"]) == ["tune"]
    assert {row["split"] for row in benchmark.rows("messages", benchmark.TUNE)} == {"tune"}
