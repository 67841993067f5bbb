"""The topic of a conversation as a vector, and the gate for follow-ups."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import intents as benchmark
from codeqa.chat.vectors import (
    TOPIC_DECAY_ALPHA,
    Thresholds,
    Vector,
    cosine,
    next_topic,
    off_topic,
    thresholds_of,
)
from codeqa.embeddings.registry import fast_embedding
from codeqa.intents import INTENTS

NEVER, HALF = Thresholds(-1.0, 1.0), Thresholds(0.5, 0.65)


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


def test_the_cosine_is_that_of_the_angle() -> None:
    assert cosine(vector(3, 0), vector(5, 0)) == pytest.approx(1)
    assert cosine(vector(1, 0), vector(0, 2)) == 0
    assert cosine(vector(1, 1), vector(-1, -1)) == pytest.approx(-1)
    assert cosine(vector(0, 0), vector(1, 0)) == 0
    assert cosine(vector(1, 0), vector(1, 0, 0)) == 0


def test_a_topic_moves_by_a_fifth_of_each_question() -> None:
    moved = next_topic(vector(1, 0), vector(0, 1))
    assert moved is not None
    assert moved.tolist() == pytest.approx([0.8, 0.2])
    assert moved.dtype == np.float32
    assert TOPIC_DECAY_ALPHA == 0.2


@pytest.mark.parametrize(
    ("topic", "question", "after"),
    [
        (None, vector(0, 1), [0, 1]),
        (vector(1, 0), None, [1, 0]),
        (vector(1, 0), vector(0, 0), [1, 0]),
        (vector(1, 0, 0), vector(0, 1), [0, 1]),
        (None, vector(0, 0), None),
        (None, None, None),
    ],
    ids=[
        "the first question",
        "no vector",
        "no known word",
        "another embedding",
        "neither",
        "none",
    ],
)
def test_a_topic_begins_with_a_question_and_stays_without_one(
    topic: Vector | None, question: Vector | None, after: list[int] | None
) -> None:
    before = None if topic is None else topic.tolist()
    found = next_topic(topic, question)
    assert (None if found is None else found.tolist()) == after
    assert topic is None or topic.tolist() == before, "the one that it came from is not changed"


def test_only_a_follow_up_is_held_against_the_topic() -> None:
    far = [intent for intent in INTENTS if off_topic(intent, vector(1, 0), vector(0, 1), HALF)]
    assert far == ["continuation"]


def test_what_lies_on_the_threshold_stays() -> None:
    same = vector(1, 0)
    assert not off_topic("continuation", same, same, Thresholds(1.0, 1.0))
    assert off_topic("continuation", same, same, Thresholds(1.0001, 1.0))


def test_nothing_is_off_topic_without_both_vectors() -> None:
    there, zero = vector(1, 0), vector(0, 0)
    for question, topic in [(None, there), (there, None), (zero, there), (there, zero)]:
        assert not off_topic("continuation", question, topic, HALF)
    assert not off_topic("continuation", there, vector(1, 0, 0), HALF)


def test_the_requirements_pair_holds_for_its_embedding_and_those_unknown() -> None:
    assert thresholds_of("BAAI/bge-base-en-v1.5") == Thresholds(0.35, 0.65)
    assert thresholds_of("somebody/something") == Thresholds(0.35, 0.65)
    assert thresholds_of("") == Thresholds(0.35, 0.65)


def test_the_shipped_tables_pair_is_what_the_labelled_pairs_give() -> None:
    embedding = fast_embedding()
    assert embedding is not None
    chosen = thresholds_of(embedding.name)
    assert chosen != thresholds_of("somebody/something")
    measured = benchmark.measure_pairs(benchmark.TUNE)
    assert (chosen.continuation, chosen.similar) == benchmark.best_thresholds(measured)


def test_two_ways_of_asking_are_similar_to_the_shipped_table_and_two_questions_are_not() -> None:
    embedding = fast_embedding()
    assert embedding is not None
    similar = thresholds_of(embedding.name).similar
    asked = embedding.embed_query("How are passwords hashed?")
    again = embedding.embed_query("which algorithm hashes the passwords")
    other = embedding.embed_query("where is the command line parsed")
    assert cosine(asked, again) > similar > cosine(asked, other)


def test_a_message_without_a_known_word_is_never_gated() -> None:
    embedding = fast_embedding()
    assert embedding is not None
    topic = embedding.embed_query("How are passwords hashed?")
    assert not off_topic("continuation", embedding.embed_query("???"), topic, Thresholds(1.0, 1.0))
