"""An answer at once or one more search first, over real HTTP with a scripted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from chat_kit import ASK, SAYS, Open, Script, answer, ask
from openai_server import Streamed, delta, failure, stream

from codeqa.chat.asking import ASKS, may_ask, read_request
from codeqa.engine import Engine
from codeqa.types import Event

pytest_plugins = ("chat_fixtures",)

GUESS = "def warehouse_part_4(stock):\n    stock.move(7)"
REQUEST = f"{ASKS} warehouse_part_4 shop/part2.py\n{GUESS}"
ENDS = ("It is moved ", "[shop/part4.py:1-9].\n")


@pytest.fixture
def engine(opened: Open, script: Script) -> Engine:
    """The shop with so small a context that it does not hold all of it."""
    return opened(**{**script.settings, "hyde": ""}, context_tokens=450)


def normal(engine: Engine, question: str = ASK, **options: Any) -> list[Event]:
    return ask(engine, question, effort="normal", **options)


def looked_up(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [dict(event.data) for event in events if event.kind == "looked_up"]


def numbers_in(text: str) -> list[int]:
    return [int(line.split()[2]) for line in text.split("\n") if line.startswith("=== CHUNK ")]


def test_where_the_context_holds_the_answer_it_takes_one_call(
    engine: Engine, script: Script
) -> None:
    events = normal(engine)
    assert answer(events) == "".join(SAYS) and not looked_up(events)
    assert len(script.bodies) == 1
    system, *_, user = script.bodies[0]["messages"]
    assert ASKS in system["content"]
    instruction, block, others = (part["text"] for part in user["content"])
    assert block.startswith("[CONTEXT]") and ASKS not in block + instruction
    assert "shop/part4.py:1-61 warehouse_part_4" in others and "[ALSO FOUND]" in others


def test_the_model_may_ask_for_one_more_search_whose_chunks_go_on_from_the_first(
    engine: Engine, script: Script
) -> None:
    pieces = [delta(text) for text in ("SEA", REQUEST.removeprefix("SEA")[:9])]
    rest = REQUEST.removeprefix("SEA")[9:]
    ends = (*ENDS, "It ends [1].")
    script.replies = [Streamed((*pieces, delta(rest), delta(reason="stop"))), stream(ends)]
    events = normal(engine)
    (step,) = looked_up(events)
    assert step["summary"] == "Searched once more: warehouse_part_4 shop/part2.py"
    assert GUESS in step["text"] and "shop/part4.py:1-" in step["text"]
    first, second = (body["messages"] for body in script.bodies)
    assert second[: len(first)] == first, "a server may have kept what it read of the first"
    assert second[len(first)] == {"role": "assistant", "content": REQUEST}
    shown, added = first[-1]["content"][1]["text"], second[-1]["content"][1]["text"]
    assert "def warehouse_part_4" in added and "def warehouse_part_2" in added
    assert numbers_in(shown + added) == list(range(1, len(numbers_in(shown + added)) + 1))
    path = shown.split("Path: ")[1].split("\n")[0]
    lines = shown.split("Lines: ")[1].split("\n")[0]
    # Nothing of the request is told as an answer, and a number means the chunk that it stood at.
    assert answer(events) == f"{''.join(ENDS)}It ends [{path}:{lines}]."
    done = events[-1].data
    assert [one["verified"] for one in done["citations"]] == [True, True]
    assert done["tokens"]["prompt"] > 0


def test_no_third_call_is_made_and_the_reader_sees_no_request(
    engine: Engine, script: Script
) -> None:
    script.replies = [stream([REQUEST]), stream([f"{ASKS} the cellar"])]
    events = normal(engine)
    assert len(script.bodies) == 2
    assert answer(events).endswith("What is missing: `the cellar`.\n") and ASKS not in answer(
        events
    )


@pytest.mark.parametrize(
    "options", [{"effort": "fast"}, {"hyde": "off"}, {"exclude": ("shop/stock.py:1-3",)}]
)
def test_who_wants_one_call_or_leaves_code_out_gets_one(
    engine: Engine, script: Script, options: Any
) -> None:
    ask(engine, ASK, **{"effort": "normal", **options})
    assert len(script.bodies) == 1
    assert ASKS not in script.bodies[0]["messages"][0]["content"]


def test_at_fast_no_small_call_goes_before_the_answer_of_a_follow_up(
    engine: Engine, script: Script
) -> None:
    normal(engine)
    script.bodies.clear()
    ask(engine, "and who calls it?", effort="fast", retrieval="auto")
    assert len(script.bodies) == 1


def test_a_second_call_that_fails_is_told_as_any_other(engine: Engine, script: Script) -> None:
    script.replies = [stream([REQUEST]), failure(400)]
    events = normal(engine)
    assert events[-1].kind == "error" and answer(events) == ""


def test_a_request_is_known_by_its_first_characters() -> None:
    assert may_ask("") and may_ask("SEAR") and may_ask("\n`SEARCH: x") and not may_ask("The sea")
    assert read_request("The answer. SEARCH: x") is None
    request = read_request("SEARCH: `Cart.total` a/b.py\n```python\ndef total(): ...\n```")
    assert request is not None and request.guess == "def total(): ..."
    assert request.wanted == "`Cart.total` a/b.py"
