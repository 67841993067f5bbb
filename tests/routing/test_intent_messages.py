"""The messages that intents are measured with, and the pairs of the topic gate."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from conftest import ROOT

from codeqa.routing.intents import INTENTS
from codeqa.text import has_tag


def rows(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "research" / "evals" / "intents" / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


MESSAGES = rows("messages")
PAIRS = rows("pairs")
TOPICS = rows("topic_pairs")


def every_second(keys: list[str]) -> set[str]:
    """The first, third, fifth… of `keys` in the order of their SHA-256."""
    return set(sorted(keys, key=lambda key: hashlib.sha256(key.encode()).hexdigest())[::2])


def plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?!. ") or text


def test_every_row_has_the_fields_that_are_described_and_no_text_stands_twice() -> None:
    for name, count, found, fields in (
        ("message", 400, MESSAGES, "id text intent context tagged language note split"),
        ("pair", 120, PAIRS, "id first second same_topic split"),
        ("topic", 60, TOPICS, "id repository first code answer second label split"),
    ):
        assert [row["id"] for row in found] == [f"{name}-{n:03}" for n in range(1, count + 1)]
        assert all(" ".join(row) == fields for row in found)
    assert all(row["text"] and row["text"] == row["text"].strip() for row in MESSAGES)
    contexts = [row["context"] for row in MESSAGES if row["context"] is not None]
    assert all(list(context) == ["question", "answer"] for context in contexts)
    assert all("\n" not in context["answer"] and all(context.values()) for context in contexts)
    assert len({plain(row["text"]) for row in MESSAGES}) == len(MESSAGES)


def test_tagged_is_what_the_text_says_and_decides_the_intent() -> None:
    assert all(row["tagged"] is has_tag(row["text"]) for row in MESSAGES)
    assert {row["intent"] for row in MESSAGES if row["tagged"]} == {"knowledge_base"}


def test_half_of_every_intent_is_unseen_by_the_stated_rule() -> None:
    for intent in INTENTS:
        of_it = {row["id"]: row["split"] for row in MESSAGES if row["intent"] == intent}
        unseen = every_second(list(of_it))
        assert of_it == {one: "unseen" if one in unseen else "tune" for one in of_it}


def test_pairs_are_split_by_their_first_message() -> None:
    unseen = every_second(list({row["first"] for row in PAIRS}))
    assert all((row["split"] == "unseen") is (row["first"] in unseen) for row in PAIRS)
    assert {row["split"] for row in PAIRS} == {"tune", "unseen"}


def test_topic_pairs_are_split_by_repository_and_first_question() -> None:
    asked = {row["id"]: f"{row['repository']} {row['first'][0]}" for row in TOPICS}
    unseen = every_second(list(set(asked.values())))
    assert all((row["split"] == "unseen") is (asked[row["id"]] in unseen) for row in TOPICS)
