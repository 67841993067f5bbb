"""Policy, hooks and rewritten follow-ups in real turns: an index, a model over HTTP, a state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from codeqa.chat import AskOptions
from codeqa.engine import Engine, open_engine
from codeqa.errors import SettingsError
from codeqa.settings import load_settings
from codeqa.types import Event
from tests.openai_server import Reply, ScriptedServer, openai_server
from tests.openai_server import stream as streamed

FILES = {
    "shop/basket.py": (
        "class Basket:\n"
        '    """Holds what a customer buys."""\n\n'
        "    def add_article(self, name, price):\n"
        '        """Put one article into the basket."""\n'
        "        self.articles.append((name, price))\n\n\n"
        "def total_price(basket):\n"
        '    """Sum up what the articles of a basket cost."""\n'
        "    return sum(price for _, price in basket.articles)\n"
    ),
    "shop/checkout.py": (
        "from shop.basket import total_price\n\n\n"
        "def pay_order(basket, card):\n"
        '    """Charge the card of a customer."""\n'
        "    return card.charge(total_price(basket))\n"
    ),
    "legacy/prices.py": (
        'def old_total(articles):\n    """Sum up what articles cost, as it was done before."""\n'
        "    return sum(articles)\n"
    ),
}
ANSWER = "It is summed up in `total_price`."
COMPLETE = "who calls total_price of a basket?"

Opened = Callable[..., Engine]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    for name, text in FILES.items():
        (folder / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "shop" / name).write_text(text, encoding="utf-8")
    engine = open_engine(load_settings(data=folder / "data", workers=1), folder / "shop")
    engine.index.run()
    engine.close()
    return folder


def said(path: str, body: dict[str, Any]) -> Reply:
    """The answer, or what the follow-up means in full."""
    rewriting = "[FOLLOW-UP]" in str(body["messages"][-1]["content"])
    return streamed([COMPLETE if rewriting else ANSWER])


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with openai_server(said) as running:
        yield running


@pytest.fixture
def opened(indexed: Path, server: ScriptedServer) -> Iterator[Opened]:
    """`opened(model=…)`: the shop; with a model it is asked over HTTP."""
    with ExitStack() as ending:

        def open_(model: bool = True, **values: Any) -> Engine:
            if model:
                values |= {
                    "model": "openai/gpt-4o",
                    "openai_base_url": server.base_url,
                    "openai_api_key": SecretStr("sk-test"),
                }
            engine = open_engine(
                load_settings(data=indexed / "data", workers=1, **values), indexed / "shop"
            )
            ending.callback(engine.close)
            return engine

        yield open_


def ask(engine: Engine, question: str, **given: Any) -> dict[str, Any]:
    """The data of the events that there is one of, and the names of the steps in `order`."""
    events: list[Event] = list(engine.chat.ask(AskOptions(question, **given)))
    told: dict[str, Any] = {event.kind: event.data for event in events}
    assert "done" in told, told.get("error")
    told["order"] = [event.data["name"] for event in events if event.kind == "step"]
    return told


def sent(server: ScriptedServer) -> list[str]:
    """The parts of the last message that went to a model: the question, and code if there is."""
    return [part["text"] for part in server.requests[-1][1]["messages"][-1]["content"]]


def test_an_untagged_question_without_code_suggests_the_tag(
    opened: Opened, server: ScriptedServer
) -> None:
    told = ask(opened(), "where is the price summed up?", conversation="explicit")
    assert told["done"]["suggest_codebase"] is True and "retrieved" not in told
    assert len(sent(server)) == 1
    assert "no-code-at-hand" in told["done"]["rules"]


def test_an_untagged_question_goes_on_from_the_code_at_hand(
    opened: Opened, server: ScriptedServer
) -> None:
    engine = opened()
    ask(engine, "@codebase what does `total_price` do?", conversation="at-hand")
    told = ask(engine, "where is `total_price` defined?", conversation="at-hand")
    assert "retrieved" not in told and sent(server)[1].startswith("[CONTEXT]")
    assert told["done"]["suggest_codebase"] is False


def test_in_auto_it_is_searched_for_and_the_answer_says_so(opened: Opened) -> None:
    told = ask(opened(), "where is `total_price` defined?", conversation="auto", retrieval="auto")
    assert told["done"]["searched_automatically"] is True
    assert told["retrieved"]["num_docs"] > 0


def test_a_greeting_costs_no_search_and_sends_no_conversation(
    opened: Opened, server: ScriptedServer
) -> None:
    engine = opened(retrieval="auto")
    ask(engine, "@codebase what does `total_price` do?", conversation="greeting")
    told = ask(engine, "thanks a lot!", conversation="greeting")
    assert told["classified"]["intent"] == "general" and "retrieved" not in told
    assert [m["role"] for m in server.requests[-1][1]["messages"]] == ["system", "user"]
    assert len(sent(server)) == 1


def test_what_is_stored_is_told_by_the_app_and_no_model_is_asked(
    opened: Opened, server: ScriptedServer
) -> None:
    told = ask(opened(), "what do you know about me?", conversation="privacy")
    assert told["classified"]["intent"] == "privacy"
    assert server.requests == []
    assert "privacy-is-ours" in told["done"]["rules"]


def test_a_tagged_follow_up_is_made_complete_by_the_model_and_then_searched(
    opened: Opened, server: ScriptedServer
) -> None:
    engine = opened()
    ask(engine, "@codebase what does `total_price` do?", conversation="rewritten")
    told = ask(engine, "@codebase and who calls it?", conversation="rewritten")
    assert told["rewritten"] == {"question": COMPLETE, "by": "model"}
    assert "and who calls it?" in sent(server)[0]
    context = engine.conversations.turn(told["done"]["turn"])
    assert "shop/checkout.py" in {chunk.path for chunk in context.chunks}


def test_without_a_model_it_carries_what_the_last_question_named(opened: Opened) -> None:
    engine = opened(model=False)
    ask(engine, "@codebase what does `total_price` do?", conversation="carried")
    told = ask(engine, "@codebase and who calls it?", conversation="carried")
    assert told["rewritten"] == {"question": "and who calls it? total_price", "by": "carried"}


HOOKS = """
from dataclasses import replace

from codeqa.chat.hooks import Hooks


@Hooks.policy_override
def search(decision, question):
    if "price" in question:
        return replace(decision, inject_rag=True, suggest_codebase=False)


@Hooks.after_retrieval
def without_legacy(retrieved):
    kept = tuple(chunk for chunk in retrieved.chunks if not chunk.path.startswith("legacy/"))
    return replace(retrieved, chunks=kept)


@Hooks.before_generation
def politely(asked):
    return replace(asked, question="Please: " + asked.question)


@Hooks.before_generation
def broken(asked):
    raise ValueError(asked.question)


@Hooks.after_generation
def signed(text):
    return text + " (House rules)"
"""


def test_every_hook_takes_part_in_a_turn_and_a_broken_one_costs_nothing(
    opened: Opened, server: ScriptedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "house.py").write_text(HOOKS, encoding="utf-8")
    engine = opened(plugins=str(tmp_path))
    told = ask(engine, "how is the price of articles summed up?", conversation="hooks")
    done = told["done"]
    assert done["rules"][-1] == "hook house.py:search"
    paths = {chunk.path for chunk in engine.conversations.turn(done["turn"]).chunks}
    assert paths and not any(path.startswith("legacy/") for path in paths)
    assert "legacy/" not in sent(server)[1]
    assert "Please: how is the price" in sent(server)[0]
    assert done["revised"] == f"{ANSWER} (House rules)"
    (kept,) = engine.conversations.turns("hooks")
    assert kept.answer == done["revised"]
    (problem,) = done["hook_problems"]
    assert problem.startswith("The hook house.py:broken (before_generation) was left out: Val")
    assert "price" not in problem and "summed up" not in caplog.text


def test_plugins_in_the_repository_that_is_opened_are_refused(
    opened: Opened, indexed: Path
) -> None:
    with pytest.raises(SettingsError, match="lies in the repository"):
        opened(plugins=str(indexed / "shop" / "shop"))
