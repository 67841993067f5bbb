"""The topic of a conversation as a vector, and the gate for follow-ups."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import intents as benchmark
from codeqa.chat.vectors import (
    TOPIC_DECAY_ALPHA,
    QuestionVectors,
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


def test_a_topic_begins_with_a_question_and_stays_without_one() -> None:
    assert next_topic(None, None) is None
    for topic, question, after in (
        (None, vector(0, 1), [0, 1]),
        (vector(1, 0), None, [1, 0]),
        (vector(1, 0, 0), vector(0, 1), [0, 1]),  # of another embedding
    ):
        found = next_topic(topic, question)
        assert found is not None and found.tolist() == after


def test_only_a_follow_up_is_held_against_the_topic() -> None:
    far = [intent for intent in INTENTS if off_topic(intent, vector(1, 0), vector(0, 1), HALF)]
    assert far == ["continuation"]


def test_what_lies_on_the_threshold_stays() -> None:
    same = vector(1, 0)
    assert not off_topic("continuation", same, same, Thresholds(1.0, 1.0))
    assert off_topic("continuation", same, same, Thresholds(1.0001, 1.0))


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
    vectors = QuestionVectors(fast_embedding)
    topic = vectors("How are passwords hashed?")
    assert topic is not None
    for silent in ("???", "and why is that?"):
        assert vectors(silent) is None
        assert not off_topic("continuation", vectors(silent), topic, Thresholds(1.0, 1.0))
    assert not off_topic("continuation", topic, None, Thresholds(1.0, 1.0))
