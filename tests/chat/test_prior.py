"""Earlier questions that resemble one, with their answers (S3.18, S3.19, C-23)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codeqa.chat import vectors
from codeqa.chat.vectors import QA_K, SIMILAR_FROM, similar_questions
from codeqa.state import State
from codeqa.state.records import Turn, TurnExtras
from codeqa.types import Exchange

WIDTH = 8
ANSWERED = {"generator": "a-model", "finished": True}


def at(cosine: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """A vector of length 3 with this cosine to `QUESTION`."""
    vector = np.zeros(WIDTH, np.float32)
    vector[0], vector[1] = 3 * cosine, 3 * math.sqrt(1 - cosine**2)
    return vector


QUESTION = at(1.0) * 5


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def keep(
    state: State, turn_id: str, cosine: float | np.ndarray[Any, Any], conversation: str = "c",
    *, embedding: str = "e", replaces: str = "", **fields: Any,
) -> None:  # fmt: skip
    """Keep a turn whose question has that cosine to `QUESTION`, or that vector."""
    plain = {"question": f"{turn_id}?", "answer": "an answer", "user": "u", "repository": "shop"}
    values = {**plain, "context": "", "details": ANSWERED, **fields}
    vector = cosine if isinstance(cosine, np.ndarray) else at(cosine)
    extras = TurnExtras(embedding, vector.astype("<f2").tobytes())
    state.turns.save(Turn(turn_id, conversation, **values), replaces, extras=extras)


def similar(state: State, same: bool = True, **changed: Any) -> list[str]:
    return [one.turn for one in exchanges(state, same, **changed)]


def exchanges(state: State, same: bool = True, **changed: Any) -> list[Exchange]:
    wished = {"user": "u", "repository": "shop", "conversation": "c", "embedding": "e",
              "holds": lambda past: True, **changed}  # fmt: skip
    found = similar_questions(state, wished.pop("vector", QUESTION), **wished)
    return [one for one in found if one.elsewhere != same]


def test_the_most_similar_come_first_and_four_at_most(state: State) -> None:
    for number, cosine in enumerate((0.7, 0.99, 0.2, 0.8, 0.9, 0.75)):
        keep(state, f"t{number}", cosine)
    assert similar(state) == ["t1", "t4", "t3", "t5"] and QA_K == 4
    assert similar(state, skip={"t1", "t3"}) == ["t4", "t5", "t0"]


def test_what_is_above_the_threshold_is_similar(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(state, "t1", SIMILAR_FROM - 0.01)
    keep(state, "t2", SIMILAR_FROM + 0.01)
    assert similar(state) == ["t2"]
    monkeypatch.setattr(vectors, "SIMILAR_FROM", 1.0)
    one = np.eye(WIDTH, dtype=np.float32)[1]
    keep(state, "t3", one)
    assert similar(state, vector=one) == [], "not above, but equal"


def test_the_same_conversation_and_all_others_are_told_apart(state: State) -> None:
    keep(state, "t1", 0.9)
    keep(state, "t2", 0.9, "d", question="@codebase /explain how so?", answer="so")
    keep(state, "t3", 0.8, "")
    assert exchanges(state) == [Exchange("t1?", "an answer", "t1", "c")]
    assert exchanges(state, same=False) == [
        Exchange("how so?", "so", "t2", "d", elsewhere=True),
        Exchange("t3?", "an answer", "t3", elsewhere=True),
    ]
    # Without a conversation every other turn is elsewhere.
    assert similar(state, conversation="") == []
    assert sorted(similar(state, same=False, conversation="")) == ["t1", "t2", "t3"]


def test_nothing_crosses_users_repositories_and_embeddings(state: State) -> None:
    elsewhere = {"user": "v", "repository": "site", "embedding": "f"}
    for name, value in elsewhere.items():
        keep(state, name, 0.9, **{name: value})
    assert similar(state) == similar(state, same=False) == []
    for name, value in elsewhere.items():
        assert similar(state, **{name: value}) == [name]


def test_only_whole_answers_of_a_model_count(state: State) -> None:
    unfit: list[dict[str, Any]] = [
        {"details": {"generator": "extractive", "finished": True}},
        {"details": {**ANSWERED, "finished": False}},
        {"details": {**ANSWERED, "error": {"code": "model"}}},
        {"details": {**ANSWERED, "reply": "privacy"}},
        {"answer": ""},
    ]
    for number, one in enumerate(unfit * 3):
        keep(state, f"x{number}", 0.95, **one)
    keep(state, "t1", 0.9)
    assert similar(state) == ["t1"], "behind all that do not count"


def test_only_answers_of_other_conversations_have_to_hold(state: State) -> None:
    for number in range(6):
        keep(state, f"t{number}", 0.9 - number / 100, "d" if number else "c")
    judged: list[str] = []

    def holds(past: Turn) -> bool:
        judged.append(past.id)
        return past.id != "t1"

    assert similar(state, holds=holds) == ["t0"]
    judged.clear()
    assert similar(state, same=False, holds=holds) == ["t2", "t3", "t4", "t5"]
    assert judged == ["t1", "t2", "t3", "t4", "t5"]


def test_of_a_question_asked_twice_the_latest_answer_counts(state: State) -> None:
    for turn in ("t1", "t2", "t3"):
        keep(state, turn, 0.9, question="@codebase Who pays?" if turn == "t2" else "who pays?")
    keep(state, "t4", 0.7)
    assert similar(state) == ["t3", "t4"]


def test_an_answer_that_another_took_the_place_of_does_not_come_back(state: State) -> None:
    for conversation in ("c", "d"):
        keep(state, f"{conversation}1", 0.9, conversation)
        keep(state, f"{conversation}2", 0.8, conversation, replaces=f"{conversation}1")
    assert similar(state) == ["c2"] and similar(state, same=False) == ["d2"]
    state.turns.choose_branch("c", "c1", "u", "shop")
    assert similar(state) == ["c1"]


def test_what_is_kept_and_deleted_meanwhile_is_noticed(state: State) -> None:
    assert similar(state) == []
    keep(state, "t1", 0.9)
    assert similar(state) == ["t1"]
    keep(state, "t2", 0.95, "d")
    assert similar(state, same=False) == ["t2"]
    State(state.path.parent).conversations.delete("d", "u", "shop")
    keep(state, "t3", 0.95)
    assert similar(state) == ["t3", "t1"] and similar(state, same=False) == []
    state.user_data.delete("u")
    assert similar(state) == []


def test_vectors_that_cannot_be_compared_are_passed_over(state: State) -> None:
    odd = [np.zeros(WIDTH), np.full(WIDTH, np.inf), np.full(WIDTH, np.nan), np.ones(WIDTH + 1)]
    for number, vector in enumerate(odd):
        keep(state, f"x{number}", vector)
    keep(state, "t1", 0.9)
    assert similar(state) == similar(state) == ["t1"]
    assert similar(state, vector=np.zeros(WIDTH, np.float32)) == []
    assert similar(state, vector=np.full(WIDTH, np.nan, np.float32)) == []
    assert similar(state, vector=np.ones(WIDTH + 1, np.float32)) == ["x3"], "another width"
    assert similar(state) == ["t1"]


def test_many_questions_are_compared_as_one_by_one(state: State) -> None:
    random = np.random.default_rng(7)
    asked = random.standard_normal((80, WIDTH)).astype("<f2")
    for number, vector in enumerate(asked):
        keep(state, f"t{number}", vector, f"c{number}")
    for question in random.standard_normal((5, WIDTH)).astype(np.float32):
        rows = asked.astype(np.float64)
        cosines = rows @ question / np.linalg.norm(rows, axis=1) / np.linalg.norm(question)
        best = [f"t{number}" for number in np.argsort(-cosines)[:4] if cosines[number] > 0.5]
        assert similar(state, same=False, vector=question) == best and best
