"""The twelve steps over a real index, a real state and a server that speaks the API."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from codeqa.chat import AskOptions, Exchange, GenerationInput, Piece
from codeqa.chat.conversations import Conversations
from codeqa.chat.history import RECENCY_WINDOW, SEMANTIC_K, prune
from codeqa.chat.hooks import Hooks
from codeqa.chat.messages import ELSEWHERE
from codeqa.chat.persistence import Persistence, problem_of
from codeqa.chat.pipeline import STEPS
from codeqa.chat.retrieval import RETRIEVAL_K
from codeqa.engine import Engine, open_engine
from codeqa.errors import StorageError, UsageError
from codeqa.settings import load_settings
from codeqa.types import Event

FILES = {
    "shop/session.py": '"""Sessions of visitors."""\n\nMONTH = 30\n\n\n'
    "def expire_session(cookie):\n"
    '    """Forget the visitor when the cookie is too old."""\n'
    "    if cookie.age > MONTH:\n        cookie.clear()\n    return cookie.age\n",
    "shop/visit.py": "from shop.session import expire_session\n\n\n"
    "def end_of_visit(visitor):\n"
    '    """Called by the clock each night."""\n'
    "    return expire_session(visitor.cookie)\n",
    "shop/stock.py": "def count_teapots(shelf):\n"
    '    """How many teapots stand on a shelf."""\n    return len(shelf)\n',
    **{
        f"shop/part{number}.py": f"def move_stock_{number}(shelf):\n"
        f'    """Move stock to shelf {number}."""\n    return shelf.move({number})\n'
        for number in range(8)
    },
}
ASK = "@codebase when does expire_session forget the visitor?"


@dataclass
class Listener:
    """A generator that writes down what it is asked."""

    name: str = "listener"
    needs_evidence: bool = False
    asked: list[GenerationInput] = field(default_factory=list)
    says: Sequence[str] = ("After a month. ", "[shop/session.py:6-10]")
    during: Callable[[], None] = lambda: None

    def generate(self, asked: GenerationInput) -> Iterator[Piece]:
        self.asked.append(asked)
        for piece in self.says:
            self.during()
            yield piece

    @property
    def last(self) -> GenerationInput:
        return self.asked[-1]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Data folder and repository, indexed once."""
    folder = tmp_path_factory.mktemp("pipeline")
    for name, content in FILES.items():
        target = folder / "repo" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    with_index = open_engine(load_settings(data=folder / "data", workers=1), folder / "repo")
    with_index.index.run()
    with_index.close()
    return folder / "data", folder / "repo"


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def engine(places: tuple[Path, Path], listener: Listener) -> Iterator[Engine]:
    settings = load_settings(data=places[0], workers=1)
    engine = open_engine(settings, places[1], generator=listener)
    yield engine
    engine.close()


@pytest.fixture
def quoting(places: tuple[Path, Path]) -> Iterator[Engine]:
    """Without any model."""
    engine = open_engine(load_settings(data=places[0], workers=1), places[1])
    yield engine
    engine.close()


@pytest.fixture
def talk() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def user() -> str:
    """Somebody of whom nothing is known."""
    return uuid.uuid4().hex


def ask(engine: Engine, question: str, **options: Any) -> list[Event]:
    return list(engine.chat.ask(AskOptions(question, **options)))


def told(events: list[Event], kind: str) -> dict[str, Any]:
    """Data of the one event of a kind."""
    (found,) = (event for event in events if event.kind == kind)
    return dict(found.data)


# The steps.


def test_a_turn_is_twelve_steps_in_their_order_each_with_its_time(
    engine: Engine, talk: str
) -> None:
    events = ask(engine, ASK, conversation=talk)
    steps = [event.data for event in events if event.kind == "step"]
    assert [step["name"] for step in steps] == list(STEPS)
    assert all(step["milliseconds"] >= 0 for step in steps)
    took = {step["name"]: step["milliseconds"] for step in steps}
    assert took["retrieve"] > took["features"]
    done = told(events, "done")
    assert [step["name"] for step in done["steps"]] == list(STEPS)
    (turn,) = engine.conversations.turns(talk)
    assert turn.steps == done["steps"][:-1], "all that was over when it was kept"


def test_the_intent_is_told_before_what_was_found_and_that_before_the_first_word(
    engine: Engine, talk: str
) -> None:
    kinds = [event.kind for event in ask(engine, ASK, conversation=talk) if event.kind != "step"]
    assert kinds == ["classified", "retrieved", "generating", "token", "token", "done"]


def test_a_turn_is_as_timed_when_it_fails_and_its_later_steps_are_taken(
    engine: Engine, listener: Listener, talk: str
) -> None:
    def fail() -> None:
        raise StorageError("The disk is full.", "Make room.")

    listener.during = fail
    events = ask(engine, ASK, conversation=talk)
    assert events[-1].kind == "error"
    assert [e.data["name"] for e in events if e.kind == "step"] == list(STEPS)
    assert engine.conversations.turns(talk)[0].error["message"] == "The disk is full."  # type: ignore[index]


# What is done for which message.


def test_small_talk_gets_neither_code_nor_history(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, ASK, conversation=talk)
    events = ask(engine, "thank you!", conversation=talk)
    assert told(events, "classified")["intent"] == "general"
    asked = listener.last
    assert (asked.block.text, asked.history, asked.similar, asked.profile) == ("", (), (), "")


def test_a_follow_up_has_the_context_and_the_history(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, ASK, conversation=talk)
    found = listener.last.block
    events = ask(engine, "and why is that?", conversation=talk)
    assert told(events, "classified")["intent"] == "continuation"
    asked = listener.last
    assert asked.block.text == found.text and not asked.searched
    assert [one.question for one in asked.history] == [ASK.removeprefix("@codebase ")]


def test_an_untagged_question_about_the_code_searches_only_where_that_is_wished(
    engine: Engine, listener: Listener, talk: str
) -> None:
    question = "how does the function count_teapots count what stands on a shelf?"
    events = ask(engine, question, conversation=talk)
    first = told(events, "classified")
    assert first["intent"] == "knowledge_base" and not first["searched_automatically"]
    assert not listener.last.block.chunks
    assert told(events, "done")["suggest_codebase"]
    events = ask(engine, question, conversation=uuid.uuid4().hex, retrieval="auto")
    assert told(events, "classified")["searched_automatically"]
    assert told(events, "retrieved")["num_docs"] == len(listener.last.block.chunks)
    assert any(chunk.path == "shop/stock.py" for chunk in listener.last.block.chunks)
    assert not told(events, "done")["suggest_codebase"]


def test_a_search_that_nobody_asked_for_brings_four_units(
    engine: Engine, listener: Listener, talk: str
) -> None:
    question = "how does the function move_stock move stock to a shelf?"
    ask(engine, question, conversation=talk, retrieval="auto")
    definitions = [c for c in listener.last.block.chunks if not c.why.startswith("uses ")]
    assert len(definitions) == RETRIEVAL_K
    ask(engine, f"@codebase {question}", conversation=uuid.uuid4().hex)
    definitions = [c for c in listener.last.block.chunks if not c.why.startswith("uses ")]
    assert len(definitions) > RETRIEVAL_K


def test_what_is_mentioned_is_looked_up_without_the_tag(
    engine: Engine, listener: Listener, talk: str
) -> None:
    events = ask(engine, "what is in @shop/stock.py?", conversation=talk)
    assert told(events, "classified")["source"] == "user"
    assert listener.last.searched
    assert listener.last.block.chunks[0].path == "shop/stock.py"
    assert not told(events, "done")["searched_automatically"]


def test_a_mode_that_is_chosen_is_about_the_code(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, ASK, conversation=talk)
    events = ask(engine, "/review that, please", conversation=talk)
    assert told(events, "classified")["intent"] == "knowledge_base"
    assert listener.last.mode == "review" and listener.last.block.chunks


@pytest.mark.parametrize("message", ["hello there", "thanks!", "My name is Ada."])
def test_a_tag_that_nobody_typed_does_not_search_for_small_talk(
    engine: Engine, talk: str, user: str, message: str
) -> None:
    events = ask(engine, f"@codebase {message}", conversation=talk, user=user, tag_is_default=True)
    assert told(events, "classified")["searches"] is False
    assert told(events, "done")["query_tags"] == []
    assert not engine.conversations.turns(talk, user)[0].tagged
    events = ask(engine, f"@codebase {message}", conversation=talk, user=user)
    assert told(events, "classified")["searches"] is True, "one that was typed is meant"


def test_a_tag_that_nobody_typed_searches_for_questions_about_the_code(
    engine: Engine, listener: Listener, talk: str
) -> None:
    events = ask(engine, ASK, conversation=talk, tag_is_default=True)
    assert told(events, "classified")["source"] == "tag"
    assert told(events, "done")["query_tags"] == ["codebase"] and listener.last.searched


def test_an_unknown_retrieval_is_explained(engine: Engine) -> None:
    (event,) = ask(engine, ASK, retrieval="sometimes")
    assert event.kind == "error" and "explicit" in event.data["hint"]


# History and earlier answers.


def test_pruning_keeps_the_window_and_the_older_questions_that_are_similar() -> None:
    import numpy as np

    def embed(text: str) -> Any:
        return np.array([1.0, 0.0] if "cat" in text else [0.0, 1.0], np.float32)

    history = [Exchange(f"{'cat' if n % 2 else 'dog'} {n}", "yes") for n in range(12)]
    kept = prune(history, embed("cat"), embed, 0.5)
    window = RECENCY_WINDOW // 2
    assert list(kept[-window:]) == history[-window:]
    older = kept[:-window]
    assert len(older) == SEMANTIC_K and all("cat" in one.question for one in older)
    assert list(kept) == sorted(kept, key=history.index), "in the order in which they were asked"
    assert prune(history, None, embed, 0.5) == tuple(history[-window:])
    exact = [Exchange("cat", "yes"), *history[-window:]]
    assert prune(exact, embed("cat"), embed, 1.0) == tuple(history[-window:]), "strictly above"


def test_a_question_like_one_of_another_conversation_is_told_with_its_answer(
    engine: Engine, listener: Listener, talk: str, user: str
) -> None:
    ask(engine, ASK, conversation=uuid.uuid4().hex, user=user)
    events = ask(engine, ASK, conversation=talk, user=user)
    assert told(events, "retrieved")["similar_queries"] == 1
    (similar,) = listener.last.similar
    assert similar.elsewhere and similar.answer == "".join(listener.says)
    events = ask(engine, ASK, conversation=uuid.uuid4().hex, user=uuid.uuid4().hex)
    assert told(events, "retrieved")["similar_queries"] == 0, "not that of another user"


def test_a_question_about_other_names_is_not_similar(
    engine: Engine, listener: Listener, user: str
) -> None:
    ask(engine, "@codebase what does move_stock_1 do?", conversation="one", user=user)
    ask(engine, "@codebase what does move_stock_2 do?", conversation="two", user=user)
    assert listener.last.similar == ()
    ask(engine, "@codebase what does `move_stock_1` really do?", conversation="two", user=user)
    assert [one.question for one in listener.last.similar] == ["what does move_stock_1 do?"]


def test_a_similar_answer_is_told_to_a_model_as_an_earlier_one(engine: Engine, talk: str) -> None:
    from codeqa.chat.messages import build_messages
    from codeqa.types import ContextBlock

    asked = GenerationInput(
        "why?", "explain", ContextBlock("", ()), searched=False,
        history=(Exchange("latest", "yes"),),
        similar=(
            Exchange("most alike", "a", elsewhere=True), Exchange("alike", "b", elsewhere=True),
        ),
    )  # fmt: skip
    told = [message["content"] for message in build_messages(asked)[1:-1]]
    assert told == [f"{ELSEWHERE}alike", "b", f"{ELSEWHERE}most alike", "a", "latest", "yes"]


def test_a_client_that_keeps_its_conversation_is_answered_from_that_alone(
    engine: Engine, listener: Listener, user: str
) -> None:
    history = (Exchange("what is expire_session?", "A function."),)
    before = engine.conversations.all(user)
    events = ask(engine, "and why is that?", history=history, keep=False, user=user)
    assert listener.last.history == history
    assert told(events, "done")["turn"] == ""
    assert engine.conversations.all(user) == before
    assert not engine.conversations.has_context("", user)
    events = ask(engine, ASK, history=(), keep=False, user=user)
    assert listener.last.block.chunks
    assert not engine.conversations.has_context("", user), (
        "nothing of it is kept, the context neither"
    )


# Follow-ups that are searched for.


def test_a_follow_up_is_searched_for_with_what_it_is_about(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, ASK, conversation=talk)
    events = ask(engine, "@codebase and who calls it?", conversation=talk)
    rewritten = told(events, "rewritten")
    assert rewritten["by"] == "carried" and "expire_session" in rewritten["question"]
    assert listener.last.question == "and who calls it?", "the question itself stays as typed"
    paths = {chunk.path for chunk in listener.last.block.chunks}
    assert "shop/visit.py" in paths
    assert engine.conversations.turns(talk)[1].rewritten == rewritten["question"]


def test_what_was_found_before_stays_in_the_running_for_a_follow_up(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, "@codebase count_teapots", conversation=talk)
    before = {chunk.path for chunk in listener.last.block.chunks}
    assert "shop/stock.py" in before
    ask(engine, "@codebase and how does it differ from expire_session?", conversation=talk)
    paths = [chunk.path for chunk in listener.last.block.chunks]
    assert "shop/session.py" in paths and "shop/stock.py" in paths


def test_a_question_that_stands_alone_is_searched_for_as_it_is(engine: Engine, talk: str) -> None:
    ask(engine, ASK, conversation=talk)
    events = ask(engine, "@codebase what does count_teapots return?", conversation=talk)
    assert not [event for event in events if event.kind == "rewritten"]


# What the user told of themselves.


def test_a_fact_is_kept_and_known_in_every_conversation(
    engine: Engine, listener: Listener, user: str
) -> None:
    events = ask(engine, "My name is Ada.", conversation="one", user=user)
    assert told(events, "classified")["intent"] == "profile"
    assert told(events, "done")["profile"] == {"name": "Ada"}
    ask(engine, "What's my name?", conversation="two", user=user)
    assert listener.last.profile == "name: Ada"
    ask(engine, ASK, conversation="two", user=user)
    assert listener.last.profile == "", "a name is no matter of the code"


def test_a_lasting_wish_goes_with_every_answer(
    engine: Engine, listener: Listener, user: str
) -> None:
    ask(engine, "From now on, please answer in German.", conversation="one", user=user)
    ask(engine, ASK, conversation="two", user=user)
    assert "German" in listener.last.profile


def test_without_a_model_the_app_answers_from_the_profile(quoting: Engine, user: str) -> None:
    events = ask(quoting, "My name is Ada.", user=user, conversation="one")
    answer = "".join(e.data["text"] for e in events if e.kind == "token")
    assert "Ada" in answer
    events = ask(quoting, "What's my name?", user=user, conversation="two")
    answer = "".join(e.data["text"] for e in events if e.kind == "token")
    assert "Ada" in answer and told(events, "done")["generator"] == "app"


def test_a_question_about_what_is_stored_reaches_no_model(
    engine: Engine, listener: Listener, talk: str
) -> None:
    events = ask(engine, "What do you store about me?", conversation=talk)
    assert told(events, "classified")["intent"] == "privacy"
    assert listener.asked == []
    assert told(events, "done")["reply"] == "privacy"
    ask(engine, "and why is that?", conversation=talk)
    assert listener.last.history == (), "nor does the account of it later on"


def test_another_program_cannot_delete_what_is_stored(engine: Engine, talk: str, user: str) -> None:
    ask(engine, ASK, conversation=talk, user=user)
    events = ask(engine, "delete everything for good", user=user, keep=False)
    assert "Nothing was deleted" in "".join(e.data["text"] for e in events if e.kind == "token")
    assert len(engine.conversations.turns(talk, user)) == 1


def test_neither_can_one_whose_conversation_is_kept_here(
    engine: Engine, talk: str, user: str
) -> None:
    ask(engine, ASK, conversation=talk, user=user)
    ask(engine, "delete everything for good", conversation="api", user=user, history=())
    assert len(engine.conversations.turns(talk, user)) == 1


def test_what_is_not_kept_is_not_said_to_be_remembered(quoting: Engine, user: str) -> None:
    events = ask(quoting, "My name is Ada.", user=user, keep=False)
    assert "will not remember" in "".join(e.data["text"] for e in events if e.kind == "token")
    assert told(events, "done")["profile"] == {}


def test_a_deletion_holds_for_answers_that_are_being_written(
    engine: Engine, listener: Listener, user: str
) -> None:
    events = engine.chat.ask(AskOptions("My name is Ada.", conversation="one", user=user))
    while next(events).kind != "token":
        pass
    engine.conversations._state.profile.clear(user)
    list(events)
    engine.conversations.flush()
    assert engine.conversations.profile(user) == {}
    events = engine.chat.ask(AskOptions(ASK, conversation="two", user=user))
    while next(events).kind != "token":
        pass
    engine.conversations._state.user_data.delete(user)  # as from another process
    list(events)
    assert engine.conversations.all(user) == []


def test_a_question_whose_reader_leaves_during_the_search_is_kept(
    engine: Engine, talk: str
) -> None:
    events = engine.chat.ask(AskOptions(ASK, conversation=talk))
    while next(events).kind != "classified":
        pass
    events.close()  # type: ignore[attr-defined]
    (turn,) = engine.conversations.turns(talk)
    assert turn.question == ASK.removeprefix("@codebase ") and not turn.finished


def test_a_repetition_that_is_stopped_leaves_nothing_behind(
    engine: Engine, talk: str, user: str
) -> None:
    first = told(ask(engine, ASK, conversation=talk, user=user), "done")["turn"]
    events = engine.chat.ask(AskOptions(ASK, conversation=talk, user=user, replaces=first))
    while next(events).kind != "generating":
        pass
    events.close()  # type: ignore[attr-defined]
    engine.conversations.flush()
    assert [turn.id for turn in engine.conversations.turns(talk, user)] == [first]
    assert engine.conversations._state.user_data.counts(user).turns == 1


def test_another_repositorys_answer_is_not_packed_anew(
    engine: Engine, listener: Listener, talk: str, tmp_path: Path
) -> None:
    first = told(ask(engine, ASK, conversation=talk), "done")["turn"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "app.py").write_text("def expire_session(): pass\n")
    other = open_engine(engine.settings, tmp_path / "other", generator=listener)
    other.index.run()
    ask(other, ASK, conversation=talk, replaces=first, exclude=["app.py:100-101"])
    assert {chunk.path for chunk in listener.last.block.chunks} == {"app.py"}
    other.close()


def test_an_answer_to_follow_that_is_not_there_is_explained(engine: Engine, talk: str) -> None:
    ask(engine, ASK, conversation=talk)
    events = ask(engine, "and why is that?", conversation=talk, after="nothing")
    assert events[-1].kind == "error" and events[-1].data["code"] == "not_found"


def test_a_branch_that_is_chosen_meanwhile_does_not_get_the_answer(
    engine: Engine, talk: str
) -> None:
    first = told(ask(engine, ASK, conversation=talk), "done")["turn"]
    second = told(ask(engine, ASK, conversation=talk, replaces=first), "done")["turn"]
    events = engine.chat.ask(AskOptions("and why is that?", conversation=talk))
    while next(events).kind != "token":
        pass
    engine.conversations.choose_branch(talk, first)
    (done,) = (event.data for event in events if event.kind == "done")
    assert [turn.id for turn in engine.conversations.turns(talk)] == [second, done["turn"]]


def test_what_is_confirmed_is_deleted_and_the_confirmation_goes_too(
    engine: Engine, talk: str, user: str
) -> None:
    ask(engine, ASK, conversation=talk, user=user)
    events = ask(engine, "delete this conversation for good", conversation=talk, user=user)
    assert "is deleted" in "".join(e.data["text"] for e in events if e.kind == "token")
    assert events[-1].data["turn"] == ""
    assert engine.conversations.all(user) == []


# Strictness, pins.


def test_strict_answers_are_quoted_when_the_code_shows_too_little(
    engine: Engine, listener: Listener, talk: str
) -> None:
    question = "@codebase how does quantum chromodynamics renormalise gluons?"
    events = ask(engine, question, conversation=talk, strict=True)
    assert listener.asked == []
    done = told(events, "done")
    assert done["generator"] == "extractive" and "too little" in done["notice"]
    ask(engine, ASK, conversation=talk, strict=True)
    assert listener.last.strict and listener.last.block.chunks


def test_excluded_chunks_go_pinned_ones_come_and_nothing_is_searched_again(
    engine: Engine, listener: Listener, talk: str
) -> None:
    first = told(ask(engine, ASK, conversation=talk), "done")
    block = listener.last.block
    places = [f"{c.path}:{c.start_line}-{c.end_line}" for c in block.chunks]
    events = ask(
        engine, ASK, conversation=talk, replaces=first["turn"],
        exclude=[places[0]], pin=["shop/stock.py:1-3"],
    )  # fmt: skip
    again = [f"{c.path}:{c.start_line}-{c.end_line}" for c in listener.last.block.chunks]
    assert again[0] == "shop/stock.py:1-3" and places[0] not in again
    assert told(events, "done")["stages"] == [], "no search"
    assert (
        engine.conversations.turn(told(events, "done")["turn"]).block.text
        == listener.last.block.text
    )
    ask(engine, "and why is that?", conversation=talk)
    assert listener.last.block.chunks[0].path == "shop/stock.py", "follow-ups go on from it"


def test_pins_without_an_answer_to_replace_go_with_a_search(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, ASK, conversation=talk, pin=["shop/stock.py:1-2"])
    assert listener.last.block.chunks[0].path == "shop/stock.py"
    assert any(chunk.path == "shop/session.py" for chunk in listener.last.block.chunks)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("shop/stock.py", "no place"),
        ("shop/stock.py:0-3", "no lines"),
        ("shop/stock.py:3-2", "no lines"),
        ("shop/stock.py:1-999", "no lines"),
        ("../secret.py:1-2", "not an indexed file"),
        ("/etc/passwd:1-2", "not an indexed file"),
    ],
)
def test_a_place_that_cannot_be_pinned_is_explained(engine: Engine, place: str, why: str) -> None:
    events = ask(engine, ASK, pin=[place])
    assert events[-1].kind == "error" and why in events[-1].data["message"]


def test_more_places_than_there_is_room_for_are_refused(engine: Engine) -> None:
    (event,) = ask(engine, ASK, exclude=[f"a.py:{n}-{n}" for n in range(1, 30)])
    assert event.data["code"] == UsageError.code


# Branches.


def test_an_answer_that_is_asked_for_again_stays_beside_the_new_one(
    engine: Engine, listener: Listener, talk: str
) -> None:
    first = told(ask(engine, ASK, conversation=talk), "done")["turn"]
    listener.says = ("Another answer.",)
    second = told(ask(engine, ASK, conversation=talk, replaces=first), "done")["turn"]
    assert [turn.id for turn in engine.conversations.turns(talk)] == [second]
    assert engine.conversations.branches(talk) == {second: (first, second)}
    engine.conversations.choose_branch(talk, first)
    assert [turn.id for turn in engine.conversations.turns(talk)] == [first]


def test_a_branch_goes_on_with_its_own_history_and_context(
    engine: Engine, listener: Listener, talk: str
) -> None:
    first = told(ask(engine, ASK, conversation=talk), "done")["turn"]
    follow_up = told(ask(engine, "and why is that?", conversation=talk), "done")["turn"]
    other = "@codebase what does count_teapots return?"
    told(ask(engine, other, conversation=talk, replaces=first), "done")
    assert listener.last.history == (), "what it replaces is no history"
    ask(engine, "and why is that?", conversation=talk)
    assert [one.question for one in listener.last.history] == [other.removeprefix("@codebase ")]
    engine.conversations.choose_branch(talk, first)
    assert [turn.id for turn in engine.conversations.turns(talk)] == [first, follow_up]
    ask(engine, "and why is that so?", conversation=talk)
    assert listener.last.block.chunks[0].path == "shop/session.py"
    assert len(listener.last.history) == 2


def test_a_question_may_follow_an_earlier_turn(
    engine: Engine, listener: Listener, talk: str
) -> None:
    first = told(ask(engine, ASK, conversation=talk), "done")["turn"]
    ask(engine, "and why is that?", conversation=talk)
    ask(engine, "and what does it return?", conversation=talk, after=first)
    assert len(listener.last.history) == 1
    assert [turn.parent for turn in engine.conversations.turns(talk)] == ["", first]


def test_an_earlier_question_asked_anew_goes_on_from_the_code_that_it_had(
    engine: Engine, listener: Listener, talk: str
) -> None:
    ask(engine, ASK, conversation=talk)
    follow_up = told(ask(engine, "and why is that?", conversation=talk), "done")["turn"]
    ask(engine, "@codebase what does count_teapots return?", conversation=talk)
    ask(engine, "and how does it do that?", conversation=talk, replaces=follow_up)
    assert listener.last.block.chunks[0].path == "shop/session.py"
    ask(engine, "and what does it return?", conversation=talk)
    assert listener.last.block.chunks[0].path == "shop/session.py", "so do those after it"


@pytest.mark.parametrize("model", [True, False], ids=["model", "quoting"])
def test_what_a_follow_up_carries_is_told_as_it_is_counted_later(
    engine: Engine, talk: str, model: bool, places: tuple[Path, Path]
) -> None:
    asked = engine if model else open_engine(load_settings(data=places[0]), places[1])
    for question in (ASK, "and why is that?", "thank you!", "What do you store about me?"):
        done = told(ask(asked, question, conversation=talk), "done")
        assert done["carries"] == asked.conversations.carries(talk), question
    if not model:
        asked.close()


# Hooks.


def test_a_hook_that_raises_is_named_and_costs_nothing(
    places: tuple[Path, Path], listener: Listener, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = Hooks()

    @hooks.before_generation
    def broken(asked: GenerationInput) -> GenerationInput:
        raise ZeroDivisionError("secret words")

    @hooks.after_generation
    def shouting(text: str) -> str:
        return text.upper()

    monkeypatch.setattr("codeqa.engine.load_hooks", lambda *_: hooks)
    engine = open_engine(load_settings(data=places[0], workers=1), places[1], generator=listener)
    events = ask(engine, ASK, conversation=talk)
    done = told(events, "done")
    (problem,) = done["hook_problems"]
    assert "broken" in problem and "ZeroDivisionError" in problem and "secret" not in problem
    said = "".join(listener.says)
    assert "".join(e.data["text"] for e in events if e.kind == "token") == said
    assert done["revised"] == said.upper()
    (turn,) = engine.conversations.turns(talk)
    assert turn.answer == said.upper() and turn.hook_problems == [problem]
    engine.close()


def test_a_hook_may_change_what_was_found(
    places: tuple[Path, Path], listener: Listener, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = Hooks()

    @hooks.after_retrieval
    def best_only(retrieved: Any) -> Any:
        return replace(retrieved, chunks=retrieved.chunks[:1])

    monkeypatch.setattr("codeqa.engine.load_hooks", lambda *_: hooks)
    engine = open_engine(load_settings(data=places[0], workers=1), places[1], generator=listener)
    ask(engine, ASK, conversation=talk)
    assert len(listener.last.block.chunks) == 1
    assert listener.last.block.text.count("=== CHUNK") == 1
    engine.close()


# Keeping.


def test_saving_is_done_in_order_and_flushing_waits_for_it() -> None:
    saved: list[int] = []
    persistence = Persistence()

    def save(number: int) -> None:
        time.sleep(0.001)
        saved.append(number)

    for number in range(50):
        persistence.submit(lambda number=number: save(number))  # type: ignore[misc]
    assert persistence.flush()
    assert saved == list(range(50))
    assert persistence.flush(), "nothing to wait for"


def test_what_cannot_be_saved_is_tried_twice_and_then_said() -> None:
    tries: list[int] = []

    def save() -> None:
        tries.append(1)
        raise StorageError("The disk is full.", "Make room.")

    saving = Persistence().submit(save)
    assert "disk is full" in problem_of(saving, 5)
    assert len(tries) == 2


def test_an_answer_does_not_wait_for_a_slow_disk(
    engine: Engine, talk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = threading.Event()
    real = engine.conversations._state.turns.save

    def save(*arguments: Any, **named: Any) -> bool:
        slow.wait(5)
        return real(*arguments, **named)

    monkeypatch.setattr(engine.conversations._state.turns, "save", save)
    started = time.monotonic()
    events = ask(engine, ASK, conversation=talk)
    assert events[-1].kind == "done" and time.monotonic() - started < 3
    slow.set()
    assert len(engine.conversations.turns(talk)) == 1, "whoever reads it waits for it"


def test_a_process_that_ends_at_once_has_kept_its_answers(
    places: tuple[Path, Path], engine: Engine, talk: str
) -> None:
    program = f"""
        import sys
        from pathlib import Path
        from codeqa.chat import AskOptions
        from codeqa.engine import open_engine
        from codeqa.settings import load_settings
        engine = open_engine(load_settings(data=Path({str(places[0])!r})), Path({str(places[1])!r}))
        for question in ("@codebase expire_session", "and why is that?"):
            for event in engine.chat.ask(AskOptions(question, conversation={talk!r})):
                pass
        sys.exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
    assert len(engine.conversations.turns(talk)) == 2


def test_a_turn_that_is_saved_twice_is_there_once(engine: Engine, talk: str, user: str) -> None:
    ask(engine, ASK, conversation=talk, user=user)
    (turn,) = engine.conversations._state.turns.active(talk, user)
    assert engine.conversations._state.turns.save(turn)
    assert len(engine.conversations._state.turns.active(talk, user)) == 1
    assert len(engine.conversations.all(user)) == 1


def test_conversations_are_found_by_what_was_said(engine: Engine, user: str) -> None:
    ask(engine, ASK, conversation="about sessions", user=user)
    ask(engine, "@codebase count_teapots", conversation="about teapots", user=user)
    (found,) = engine.conversations.find("TEAPOTS", user)
    assert found.conversation.id == "about teapots" and "teapots" in found.snippet
    assert isinstance(engine.conversations, Conversations)
