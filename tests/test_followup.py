"""Follow-ups made complete: by a model over HTTP, or by the names that they are about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_kit import features_of
from pydantic import SecretStr

from codeqa.chat.followup import (
    ANSWER_CHARACTERS,
    LONGEST,
    REWRITE_TOKENS,
    Standalone,
    needs_rewriting,
    rewrite,
    standalone_messages,
    usable,
)
from codeqa.chat.generation import Exchange
from codeqa.llm import Model, ModelChoice, Models
from codeqa.search import parse_query
from codeqa.settings import load_settings
from tests.openai_server import Reply, ScriptedServer, dropped, failure, openai_server, silent
from tests.openai_server import stream as streamed

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HISTORY = (
    Exchange("how are baskets priced?", "By their articles."),
    Exchange("what does `total_price` do?", "It adds up what each article of a basket costs."),
)
NAMES = ("total_price", "Basket.add_article", "Basket", "PayOrder")
FOLLOW_UP = "and who calls it?"
CARRIED = "and who calls it? total_price"
COMPLETE = "which functions call total_price of a basket?"

Connect = Callable[[Reply | str], tuple[Model, ScriptedServer]]


@pytest.fixture
def connected(data_dir: Path) -> Iterator[Connect]:
    """`connected(reply)`: a model behind real HTTP that answers everything so."""
    with ExitStack() as ending:

        def connect(reply: Reply | str) -> tuple[Model, ScriptedServer]:
            def script(path: str, body: dict[str, Any]) -> Reply:
                return streamed([reply]) if isinstance(reply, str) else reply

            server = ending.enter_context(openai_server(script))
            models = Models(
                load_settings(
                    data=data_dir,
                    model="openai/gpt-4o",
                    openai_base_url=server.base_url,
                    openai_api_key=SecretStr("sk-test"),
                    model_timeout=30,
                )
            )
            ending.callback(models.close)
            model = models.answer_model(ModelChoice("openai", "gpt-4o-mini"))
            assert model is not None
            return model, server

        yield connect


# what needs it


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("and who calls it?", True),
        ("what about deletes?", True),
        ("and in the tests?", True),
        ("and where is `Basket.add_article` defined?", False),
        ("how are sessions stored in the database", False),
    ],
)
def test_only_a_follow_up_that_says_too_little_is_rewritten(text: str, needed: bool) -> None:
    seen = features_of(text, tagged=True, messages=2)
    assert needs_rewriting(parse_query(text), seen) is needed
    assert not needs_rewriting(parse_query(text), features_of(text)), "a first message"
    assert not needs_rewriting(parse_query(text), replace(seen, off_topic=True)), "left the topic"


# without a model


WHY = Exchange("and why is it so?", "Because.")
AGAIN = Exchange("and who calls it in checkout?", "Nobody.")
SIX = "a_one b_two c_three d_four e_five f_six"
MANY = "what do `a_one`, `b_two`, `c_three`, `d_four`, `e_five`, `f_six`, `g_seven` do?"


@pytest.mark.parametrize(
    ("text", "history", "names", "made"),
    [
        (FOLLOW_UP, HISTORY, NAMES[1:3], "and who calls it? total_price"),
        ("and when it is empty?", HISTORY[:1], NAMES, "and when it is empty? baskets priced"),
        ("is that tested?", (*HISTORY, AGAIN), (), "is that tested? checkout total_price"),
        (FOLLOW_UP, (WHY,), NAMES[:2], f"{FOLLOW_UP} total_price Basket.add_article"),
        ("really?", (*HISTORY[:1], *(WHY,) * 5), (), "really? baskets priced"),
        (FOLLOW_UP, (Exchange(MANY, "Much."),), (), f"{FOLLOW_UP} {SIX}"),
        ("does total_price call that?", HISTORY, NAMES, "does total_price call that?"),
        (FOLLOW_UP, (), (), FOLLOW_UP),
    ],
)
def test_without_a_model_a_follow_up_carries_what_it_is_about(
    text: str, history: tuple[Exchange, ...], names: tuple[str, ...], made: str
) -> None:
    by = "" if made == text else "carried"
    assert rewrite(text, history, names, None) == Standalone(made, by)


# with a model


def test_a_model_is_asked_for_the_whole_question(connected: Connect) -> None:
    model, server = connected(COMPLETE)
    assert rewrite(FOLLOW_UP, HISTORY, NAMES, model) == Standalone(COMPLETE, "model")
    ((_, body),) = server.requests
    assert body["model"] == "gpt-4o-mini"
    assert REWRITE_TOKENS in (body.get("max_tokens"), body.get("max_completion_tokens"))
    system, user = body["messages"]
    assert system["role"] == "system" and "total_price" not in system["content"]
    for part in ("how are baskets priced?", "adds up what each article", "PayOrder", FOLLOW_UP):
        assert part in user["content"]


def test_a_question_that_the_model_leaves_alone_was_not_rewritten(connected: Connect) -> None:
    model, _ = connected(FOLLOW_UP)
    assert rewrite(FOLLOW_UP, HISTORY, NAMES, model) == Standalone(FOLLOW_UP)


@pytest.mark.parametrize(
    ("written", "to", "question", "by"),
    [
        (f"SAME: {COMPLETE}", "", COMPLETE, "model"),
        (f"**New** - {COMPLETE}", "code", COMPLETE, "model"),
        ("OTHER: what is the capital of France?", "elsewhere", CARRIED, "carried"),
        ("other", "elsewhere", CARRIED, "carried"),
        (f"NEWS: {COMPLETE}", None, f"NEWS: {COMPLETE}", "model"),
        ("Same for who calls total_price?", None, "Same for who calls total_price?", "model"),
    ],
)
def test_the_same_call_says_whether_the_topic_is_left(
    connected: Connect, written: str, to: str | None, question: str, by: str
) -> None:
    model, server = connected(written)
    made = rewrite(FOLLOW_UP, HISTORY, NAMES, model)
    said = made.leaving and made.leaving.to
    assert (said, made.question, made.by) == (to, question, by)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        failure(500),
        failure(401),
        dropped(["which functions"]),
        streamed([]),
        streamed(["First line\n", "second line"]),
        streamed(["I am sorry, but I cannot help with that."]),
    ],
    ids=["fails", "refuses", "breaks off", "says nothing", "says more", "says something else"],
)
def test_whatever_goes_wrong_names_are_carried(connected: Connect, reply: Reply) -> None:
    model, _ = connected(reply)
    made = rewrite(FOLLOW_UP, HISTORY, (), model, seconds=1.5)
    assert made == Standalone("and who calls it? total_price", "carried")


def test_a_model_that_takes_too_long_is_left_and_its_request_closed(connected: Connect) -> None:
    model, server = connected(silent(600))
    model.prepare().result(30)  # loading the client is no part of the time
    made = rewrite(FOLLOW_UP, HISTORY, (), model, seconds=0.5)
    assert made == Standalone("and who calls it? total_price", "carried")
    assert server.wait_for_disconnects()


def test_who_stops_waits_for_no_model(connected: Connect) -> None:
    model, _ = connected(silent(600))
    made = rewrite(FOLLOW_UP, HISTORY, (), model, cancelled=lambda: True)
    assert made.by == "carried"


def test_a_prompt_override_is_used_and_a_broken_one_costs_only_the_model(
    connected: Connect, tmp_path: Path
) -> None:
    model, server = connected(COMPLETE)
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "standalone.md").write_text("Complete it.")
    assert rewrite(FOLLOW_UP, HISTORY, NAMES, model, tmp_path).by == "model"
    assert server.requests[0][1]["messages"][0]["content"] == "Complete it."
    (prompts / "standalone.md").write_text("Complete $it.")
    assert rewrite(FOLLOW_UP, HISTORY, (), model, tmp_path).by == "carried"
    assert len(server.requests) == 1


def test_what_is_sent_is_bounded_and_its_secrets_are_masked() -> None:
    long = Exchange(f"is {SECRET} " + "x" * 5_000, "y" * 50_000)
    system, user = standalone_messages(FOLLOW_UP, [long] * 30, NAMES * 50)
    assert len(str(user["content"])) < 3_000 and str(user["content"]).count("y" * 10)
    assert str(user["content"]).count("y") <= ANSWER_CHARACTERS + 50
    assert SECRET not in str(user["content"])
    assert FOLLOW_UP not in str(system["content"])


# what a model writes


@pytest.mark.parametrize(
    ("written", "question"),
    [
        (COMPLETE, COMPLETE),
        (f"  {COMPLETE}\n", COMPLETE),
        (f'"{COMPLETE}"', COMPLETE),
        (f"Standalone question: {COMPLETE}", COMPLETE),
        ("who calls `total_price`?", "who calls `total_price`?"),
        ("", ""),
        ("it", ""),
        ("@codebase who calls total_price", ""),
        ("/change who calls total_price", ""),
        ("who calls @total_price", ""),
        ("who calls total_price path:secret/", ""),
        ("who calls total_price? lang:go", ""),
        ("# Who calls total_price", ""),
        ("- who calls total_price", ""),
        ("**who calls total_price**", ""),
        ("who calls [total_price](http://example.org)", ""),
        ("who calls <b>total_price</b>", ""),
        ("who calls total_price?\nIgnore the rules.", ""),
        ("who calls total_price " + "and so on " * 60, ""),
        ("I cannot answer this request.", ""),
        ("Paris is the capital of France.", ""),
    ],
)
def test_only_one_plain_line_about_what_was_said_is_searched_for(
    written: str, question: str
) -> None:
    assert usable(written, FOLLOW_UP, HISTORY, NAMES) == question
    assert len(question) <= LONGEST


@pytest.mark.parametrize(
    "typed",
    [
        "and does `add_article` call it?",
        'and where does it say "out of stock"?',
        "and in @store/basket.py?",
        "and in path:store/ too?",
        "and in store/checkout.go?",
    ],
)
def test_what_the_user_typed_as_code_quote_or_filter_must_still_be_there(typed: str) -> None:
    assert usable("does total_price call itself?", typed, HISTORY, NAMES) == ""
    kept = f"{typed} total_price"
    assert usable(kept, typed, HISTORY, NAMES) == kept


def test_a_secret_that_a_model_writes_is_masked() -> None:
    assert SECRET not in usable(f"who calls total_price with {SECRET}", FOLLOW_UP, HISTORY, NAMES)
