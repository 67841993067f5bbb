"""How alike questions are, and the gate for follow-ups."""

from __future__ import annotations

import json

import numpy as np
import pytest
from chat_kit import Open, Script, ask

from codeqa.chat.values import Vector
from codeqa.chat.vectors import SIMILAR_FROM, QuestionVectors, cosine
from codeqa.context.packing import pack
from codeqa.embeddings.registry import fast_embedding
from codeqa.engine import Engine
from codeqa.routing.followup import leaving_by_words
from codeqa.routing.intents import read
from codeqa.search.query import parse_query
from codeqa.types import Exchange
from research.benchmarks import intents as benchmark

pytest_plugins = ("chat_fixtures",)


def vector(*values: float) -> Vector:
    return np.array(values, dtype=np.float32)


def test_the_cosine_is_that_of_the_angle() -> None:
    assert cosine(vector(3, 0), vector(5, 0)) == pytest.approx(1)
    assert cosine(vector(1, 0), vector(0, 2)) == 0
    assert cosine(vector(1, 1), vector(-1, -1)) == pytest.approx(-1)
    assert cosine(vector(0, 0), vector(1, 0)) == 0


def test_the_shipped_tables_threshold_is_what_the_labelled_pairs_give() -> None:
    embedding = fast_embedding()
    assert embedding is not None
    measured = benchmark.measure_pairs(benchmark.TUNE)
    assert benchmark.best_threshold(measured) == SIMILAR_FROM


def test_a_message_without_a_known_word_has_no_vector() -> None:
    vectors = QuestionVectors()
    assert vectors("How are passwords hashed?") is not None
    assert vectors("???") is None and vectors("and why is that?") is None


# The gate: what words say of a message after a question about sessions.

HISTORY = (Exchange("when does the session of a visitor expire?", "After a month."),)


WHERE_TO = {
    "is that slow?": "",
    "in German please": "",
    "why a month and not a week?": "",
    "and how are the teapots on a shelf counted?": "",
    "how is it counted on a shelf of teapots?": "",
    "when is the cookie of a visitor cleared?": "",
    "how are the teapots on a shelf counted?": "code",
    "what does `count_teapots` return?": "code",
    "what does a vegetarian pizza cost in Naples?": "elsewhere",
    "list the moons of jupiter": "elsewhere",
}


def test_what_is_whole_and_not_in_the_code_at_hand_leaves(engine: Engine) -> None:
    context = engine.chat.gatherer.context_for("when does expire_session forget the visitor?")
    at_hand = pack([one for one in context.chunks if "shop/session.py" in one.path], 5_000)
    nothing, tables = pack([], 5_000), engine.tables()
    for text, to in WHERE_TO.items():
        query, words = parse_query(text), read(text)
        found = leaving_by_words(query, words, HISTORY, at_hand, tables)
        assert (found.to, bool(found.why)) == (to, bool(to)), text
        assert leaving_by_words(query, words, HISTORY, nothing, tables).to == "", "no code at hand"


@pytest.mark.parametrize(
    ("said", "question", "intent", "calls"),
    [
        ("SAME", "how are the teapots counted?", "kept", 1),
        ("neither", "how are the teapots counted?", "knowledge_base", 1),
        ("OTHER", "and is that cookie cleared?", "kept", 0),
        ("OTHER", "How do I deploy this to Kubernetes?", "general", 1),
    ],
)
def test_a_model_is_asked_once_where_the_words_doubt(
    opened: Open, script: Script, said: str, question: str, intent: str, calls: int
) -> None:
    script.understood = json.dumps({"topic": said, "question": question})
    engine = opened(**script.settings, effort="normal")
    ask(engine, "@codebase path:shop/session.py when does expire_session forget?", effort="fast")
    events = ask(engine, question)
    told = next(event.data for event in events if event.kind == "classified")
    assert told["goes_on"] is (intent == "kept") is not bool(told["left_out"])
    assert intent in ("kept", told["intent"])
    assert len(script.small_calls) == calls
    sent = str(script.sent)
    assert ("expire_session(cookie)" in sent) is (intent == "kept")
