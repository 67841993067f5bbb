"""The twelve steps over a real index and a real state; what is told to what writes the answer."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any, get_args

import pytest
from chat_kit import ASK, Indexed, Listener, Open, Script, answer, ask, begun, told
from conftest import ROOT
from repositories import write
from waiting import AT_ONCE, PATIENCE

from codeqa import selection
from codeqa.chat import ask as ask_module
from codeqa.chat.conversations import HISTORY_MESSAGES
from codeqa.chat.events import StepName, as_json
from codeqa.chat.gather import RETRIEVAL_K
from codeqa.chat.messages import build_messages
from codeqa.chat.question import read_question
from codeqa.chat.values import AskOptions
from codeqa.chat.vectors import prune, write_vector
from codeqa.embeddings.registry import fast_embedding
from codeqa.engine import Engine, open_engine
from codeqa.errors import StorageError, UsageError
from codeqa.types import Exchange

pytest_plugins = ("chat_fixtures",)
STEPS = get_args(StepName)
TOKEN = "ghp_" + "aB3" * 12


@pytest.fixture
def engine(listened: Engine) -> Engine:
    """Its answers are written by `listener`."""
    return listened


# The steps.


def test_the_page_has_words_for_each_step() -> None:
    script = (ROOT / "static/js/answer/details.js").read_text(encoding="utf-8")
    words = script.split("const STEPS = {")[1].split("};")[0]
    assert tuple(re.findall(r"(\w+): \"", words)) == STEPS


def test_a_turn_is_twelve_steps_in_their_order_each_with_its_time(engine: Engine) -> None:
    events = ask(engine, ASK)
    steps = [event.data for event in events if event.kind == "step"]
    assert [step["name"] for step in steps] == list(STEPS)
    assert all(step["milliseconds"] >= 0 for step in steps)
    done = told(events, "done")
    assert [step["name"] for step in done["steps"]] == list(STEPS)
    (turn,) = engine.conversations.turns("talk")
    assert as_json(turn.steps) == done["steps"][:-1], "all that was over when it was kept"


def test_a_turn_that_fails_takes_its_later_steps_all_the_same(
    engine: Engine, listener: Listener
) -> None:
    def fail() -> None:
        raise StorageError("The disk is full.", "Make room.")

    listener.during = fail
    events = ask(engine, ASK)
    assert events[-1].kind == "error"
    assert [e.data["name"] for e in events if e.kind == "step"] == list(STEPS)
    assert engine.conversations.turns("talk")[0].error.message == "The disk is full."  # type: ignore[index]


# What is done for which message.


def test_small_talk_gets_neither_code_nor_history(engine: Engine, listener: Listener) -> None:
    ask(engine, ASK)
    events = ask(engine, "thank you!")
    assert told(events, "classified")["intent"] == "general"
    asked = listener.last
    assert (asked.block.text, asked.history, asked.similar, asked.profile) == ("", (), (), "")


def test_an_untagged_question_about_the_code_searches_only_where_that_is_wished(
    engine: Engine, listener: Listener
) -> None:
    question = "how does the function count_teapots count what stands on a shelf?"
    events = ask(engine, question)
    first = told(events, "classified")
    assert first["intent"] == "knowledge_base" and not first["searched_automatically"]
    assert not listener.last.block.chunks
    assert told(events, "done")["suggest_codebase"]
    events = ask(engine, question, conversation="another", retrieval="auto")
    assert told(events, "classified")["searched_automatically"]
    assert told(events, "retrieved")["num_docs"] == len(listener.last.block.chunks)
    assert any(chunk.path == "shop/stock.py" for chunk in listener.last.block.chunks)
    assert not told(events, "done")["suggest_codebase"]


def test_a_search_that_nobody_asked_for_brings_four_units(
    engine: Engine, listener: Listener
) -> None:
    question = "how does the function warehouse_part move a warehouse part?"
    assert told(ask(engine, question, retrieval="auto", effort="fast"), "done")["effort"] == "fast"
    definitions = [c for c in listener.last.block.chunks if not c.why.startswith("uses ")]
    assert len(definitions) == RETRIEVAL_K
    events = ask(engine, f"@codebase {question}", conversation="another")
    assert told(events, "done")["effort"] == engine.settings.effort  # which nobody chose
    definitions = [c for c in listener.last.block.chunks if not c.why.startswith("uses ")]
    assert len(definitions) > RETRIEVAL_K


def test_what_is_mentioned_is_looked_up_without_the_tag(engine: Engine, listener: Listener) -> None:
    events = ask(engine, "what is in @shop/stock.py?")
    assert told(events, "classified")["source"] == "user"
    assert listener.last.block.chunks[0].path == "shop/stock.py"
    assert not told(events, "done")["searched_automatically"]


def test_a_mode_that_is_chosen_is_about_the_code(engine: Engine, listener: Listener) -> None:
    ask(engine, ASK)
    events = ask(engine, "/review that, please")
    assert told(events, "classified")["intent"] == "knowledge_base"
    assert listener.last.mode == "review" and listener.last.block.chunks


def test_a_tag_that_nobody_typed_does_not_search_for_small_talk(engine: Engine) -> None:
    for message in ("thanks!", "My name is Ada."):
        events = ask(engine, f"@codebase {message}", tag_is_default=True, conversation=message)
        assert told(events, "classified")["searches"] is False
        assert told(events, "done")["query_tags"] == []
        assert not engine.conversations.turns(message)[0].tagged
        events = ask(engine, f"@codebase {message}", conversation=message)
        assert told(events, "classified")["searches"] is True, "one that was typed is meant"


# History and earlier answers.


def test_the_question_is_embedded_on_this_machine_and_its_vector_kept(engine: Engine) -> None:
    ask(engine, ASK)
    engine.conversations.flush()
    embedding = fast_embedding()
    assert embedding is not None
    kept = engine.conversations.state.turns.past_questions(
        "local", engine.location.id, embedding.name
    )
    vector = embedding.embed_query(ASK.removeprefix("@codebase "))
    assert [one.vector for one in kept] == [write_vector(vector)]


def test_the_last_twenty_messages_and_the_profile_are_known(engine: Engine) -> None:
    conversations = engine.conversations
    for number in range(12):
        ask(engine, f"what does warehouse_part_{number} do?")
    ask(engine, "My name is Ada.", conversation="another")
    conversations.flush()
    so_far = conversations.load(read_question(AskOptions("and why?", conversation="talk")))
    asked = [exchange.question for exchange in so_far.history]
    assert asked == [f"what does warehouse_part_{number} do?" for number in range(2, 12)]
    assert HISTORY_MESSAGES == 2 * len(asked) == 20
    assert so_far.profile == {"name": "Ada"}


def test_pruning_keeps_six_last_messages_and_three_similar_questions() -> None:
    import numpy as np

    near = {"cat": [1, 1, 1, 1], "kitten": [1, 1, 0, 0], "half": [1, 0, 0, 0], "dog": [1, -1, 0, 0]}

    def embed(text: str) -> Any:
        return np.array(near[text.split()[0]], np.float32)

    def kept(asked: str, vector: Any) -> list[int]:
        history = [Exchange(f"{word} {n}", "yes") for n, word in enumerate(asked.split())]
        return [history.index(one) for one in prune(history, vector, embed)]

    asked = "kitten dog cat half cat kitten dog dog half dog"
    assert kept(asked, embed("cat")) == [0, 2, 4, 7, 8, 9], "as they were asked"
    asked = "kitten dog half half dog cat half dog"
    assert kept(asked, embed("cat")) == [0, 5, 6, 7], "a cosine of a half is not above it"
    assert kept(asked, None) == [5, 6, 7]


def test_a_client_that_keeps_its_conversation_is_answered_from_that_alone(
    engine: Engine, listener: Listener
) -> None:
    history = (Exchange("what is expire_session?", "A function."),)
    before = engine.conversations.all()
    events = ask(engine, "and why is that?", history=history, keep=False)
    assert listener.last.history == history
    assert told(events, "done")["turn"] == ""
    assert engine.conversations.all() == before
    assert not engine.conversations.has_context("")
    events = ask(engine, ASK, history=(), keep=False)
    assert listener.last.block.chunks
    assert not engine.conversations.has_context(""), "nothing of it is kept, the context neither"


# Follow-ups that are searched for.


def test_a_follow_up_is_searched_for_with_what_it_is_about(
    engine: Engine, listener: Listener
) -> None:
    ask(engine, ASK)
    events = ask(engine, "@codebase and who calls it?")
    rewritten = told(events, "rewritten")
    assert rewritten["by"] == "carried" and "expire_session" in rewritten["question"]
    assert listener.last.question == "and who calls it?", "the question itself stays as typed"
    paths = {chunk.path for chunk in listener.last.block.chunks}
    assert "shop/visit.py" in paths
    assert engine.conversations.turns("talk")[1].rewritten == rewritten["question"]


# What the user told of themselves.


def test_a_fact_is_kept_and_known_in_every_conversation(engine: Engine, listener: Listener) -> None:
    events = ask(engine, "My name is Ada.", conversation="one")
    assert told(events, "classified")["intent"] == "profile"
    assert told(events, "done")["profile"] == {"name": "Ada"}
    ask(engine, "What's my name?", conversation="two")
    assert listener.last.profile == "name: Ada"
    ask(engine, ASK, conversation="two")
    assert listener.last.profile == "", "a name is no matter of the code"
    ask(engine, "From now on, please answer in German.", conversation="one")
    ask(engine, ASK, conversation="two")
    assert "German" in listener.last.profile


def test_without_a_model_the_app_answers_from_the_profile(quoting: Engine) -> None:
    assert "Ada" in answer(ask(quoting, "My name is Ada.", conversation="one"))
    events = ask(quoting, "What's my name?", conversation="two")
    assert "Ada" in answer(events) and told(events, "done")["generator"] == "app"
    events = ask(quoting, "My name is Bob.", keep=False)
    assert "will not remember" in answer(events) and told(events, "done")["profile"] == {}


def test_a_question_about_what_is_stored_reaches_no_model(
    engine: Engine, listener: Listener
) -> None:
    events = ask(engine, "What do you store about me?")
    assert told(events, "classified")["intent"] == "privacy"
    assert listener.asked == []
    assert told(events, "done")["reply"] == "privacy"
    ask(engine, "and why is that?")
    assert listener.last.history == (), "nor does the account of it later on"


ABOUT_THE_CODE = (
    "what do you know about expire_session?", "where do you keep the teapots?",
    "is there anything that deletes a visitor?", "what data do you hold of a shelf?",
    "do you remember the stock?", "who can see the warehouse?",
)  # fmt: skip
ABOUT_ITS_WRITER = (
    "what do you know about me?", "what do you keep of my questions about teapots?",
    "who can see this conversation?", "do you set cookies?", "Forget what I said.",
)  # fmt: skip


def test_a_name_of_code_asks_for_code_and_stored_data_asks_the_app(
    quoting: Engine,
) -> None:
    for question in (*ABOUT_THE_CODE, *ABOUT_ITS_WRITER):
        events = ask(quoting, question, retrieval="auto", conversation=question)
        private = question in ABOUT_ITS_WRITER
        expected = ("privacy", "privacy") if private else ("knowledge_base", "")
        intent, reply = told(events, "classified")["intent"], told(events, "done")["reply"]
        assert (intent, reply) == expected, question


def test_a_confirmed_deletion_works_but_not_for_another_program(
    engine: Engine,
) -> None:
    ask(engine, "thank you!")
    programs: tuple[dict[str, Any], ...] = ({"keep": False}, {"conversation": "api", "history": ()})
    for program in programs:
        events = ask(engine, "delete everything for good", **program)
        assert "Nothing was deleted" in answer(events)
        assert len(engine.conversations.turns("talk")) == 1
    events = ask(engine, "delete this conversation for good")
    assert "is deleted" in answer(events) and events[-1].data["turn"] == ""
    assert [kept.id for kept in engine.conversations.all()] == ["api"]


def test_a_deletion_holds_for_answers_that_are_being_written(
    engine: Engine, listener: Listener
) -> None:
    events = begun(engine, "My name is Ada.", conversation="one")
    engine.conversations.state.profile.clear("local")
    list(events)
    engine.conversations.flush()
    assert engine.conversations.state.profile.facts() == {}
    events = begun(engine, ASK, conversation="two")
    engine.conversations.state.user_data.delete("local")  # as from another process
    list(events)
    assert engine.conversations.all() == []


def test_a_question_whose_reader_leaves_during_the_search_is_kept(engine: Engine) -> None:
    begun(engine, ASK, "classified").close()
    (turn,) = engine.conversations.turns("talk")
    assert turn.question == ASK.removeprefix("@codebase ") and not turn.finished


def test_another_repositorys_answer_is_not_packed_anew(
    engine: Engine, listener: Listener, tmp_path: Path
) -> None:
    first = told(ask(engine, ASK), "done")["turn"]
    root = write(tmp_path / "other", {"app.py": "def expire_session(): pass\n"})
    other = open_engine(engine.settings, root, generator=listener)
    other.index.run()
    ask(other, ASK, replaces=first, exclude=["app.py:100-101"])
    assert {chunk.path for chunk in listener.last.block.chunks} == {"app.py"}
    other.close()


def test_a_branch_that_is_chosen_meanwhile_does_not_get_the_answer(engine: Engine) -> None:
    first = told(ask(engine, ASK), "done")["turn"]
    second = told(ask(engine, ASK, replaces=first), "done")["turn"]
    events = begun(engine, "and why is that?")
    engine.conversations.choose_branch("talk", first)
    (done,) = (event.data for event in events if event.kind == "done")
    assert [turn.id for turn in engine.conversations.turns("talk")] == [first], "that stays in use"
    engine.conversations.choose_branch("talk", done["turn"])
    assert [turn.id for turn in engine.conversations.turns("talk")] == [second, done["turn"]]


# Pins.


def test_excluded_chunks_go_pinned_ones_come_and_nothing_is_searched_again(
    engine: Engine, listener: Listener
) -> None:
    first = told(ask(engine, ASK), "done")
    block = listener.last.block
    places = [chunk.span for chunk in block.chunks]
    pins = {"exclude": [places[0]], "pin": ["shop/stock.py:1-3"]}
    done = told(ask(engine, ASK, replaces=first["turn"], **pins), "done")
    again = [chunk.span for chunk in listener.last.block.chunks]
    assert again[0] == "shop/stock.py:1-3" and places[0] not in again
    assert done["stages"] == [], "no search"
    assert engine.conversations.turn(done["turn"]).block.text == listener.last.block.text
    ask(engine, "and why is that?")
    assert listener.last.block.chunks[0].path == "shop/stock.py", "follow-ups go on from it"


def test_a_follow_up_and_a_first_question_have_what_they_pin(
    engine: Engine, listener: Listener
) -> None:
    place = "shop/stock.py:1-3"
    ask(engine, ASK)
    first = [chunk.span for chunk in listener.last.block.chunks]
    ask(engine, "and why is that?", pin=[place], exclude=[first[0]], retrieval="explicit")
    again = [chunk.span for chunk in listener.last.block.chunks]
    assert again[0] == place and first[0] not in again
    assert again[1:] and set(again[1:]) <= {*first[1:]} - {place}
    ask(engine, "why so?", pin=[place], conversation="new", retrieval="explicit")
    assert [chunk.span for chunk in listener.last.block.chunks] == [place]


def test_what_is_given_to_write_answers_leaves_nothing_to_a_model(
    opened: Open, script: Script, listener: Listener
) -> None:
    engine = opened(generator=listener, **script.settings)
    for question in ("ratatouille with rice", ASK, "my code and my cat, hm", "@codebase and why?"):
        assert ask(engine, question)[-1].kind == "done"
    assert not script.server.requests


def test_the_code_of_a_follow_up_fits_a_model_that_takes_less(opened: Open, script: Script) -> None:
    engine = opened(**script.settings)
    ask(engine, f"/all {ASK}")
    (before,) = engine.conversations.turns("talk")
    script.window = 4_096
    for effort in ("normal", "deep"):
        done = told(ask(engine, "and why is that?", retrieval="explicit", effort=effort), "done")
        block = engine.conversations.turn(done["turn"]).block
        assert 0 < len(block.text) <= selection.largest_block(4_096) < len(before.block.text)
        assert "too long" not in done["notice"]


def test_a_place_that_cannot_be_pinned_is_explained_and_too_many_are_refused(
    engine: Engine,
) -> None:
    for place, why in (
        ("shop/stock.py", "not a location"),
        ("shop/stock.py:0-3", "no lines"),
        ("shop/stock.py:3-2", "no lines"),
        ("shop/stock.py:1-999", "no lines"),
        ("../secret.py:1-2", "not an indexed file"),
        ("/etc/passwd:1-2", "not an indexed file"),
    ):
        *_, last = ask(engine, ASK, pin=[place])
        assert last.kind == "error" and why in last.data["message"], place
    (event,) = ask(engine, ASK, exclude=[f"a.py:{n}-{n}" for n in range(1, 300)])
    assert event.data["code"] == UsageError.code


# Branches.


def test_a_branch_goes_on_with_its_own_history_and_context(
    engine: Engine, listener: Listener
) -> None:
    first = told(ask(engine, ASK), "done")["turn"]
    follow_up = told(ask(engine, "and why is that?"), "done")["turn"]
    other = "@codebase what does count_teapots return?"
    told(ask(engine, other, replaces=first), "done")
    assert listener.last.history == (), "what it replaces is no history"
    ask(engine, "and why is that?")
    assert [one.question for one in listener.last.history] == [other.removeprefix("@codebase ")]
    engine.conversations.choose_branch("talk", first)
    assert [turn.id for turn in engine.conversations.turns("talk")] == [first, follow_up]
    ask(engine, "and why is that so?")
    assert listener.last.block.chunks[0].path == "shop/session.py"
    assert len(listener.last.history) == 2


def test_a_question_may_follow_an_earlier_turn_and_none_that_is_not_there(
    engine: Engine, listener: Listener
) -> None:
    first = told(ask(engine, ASK), "done")["turn"]
    ask(engine, "and why is that?")
    ask(engine, "and what does it return?", after=first)
    assert len(listener.last.history) == 1
    assert [turn.parent for turn in engine.conversations.turns("talk")] == ["", first]
    assert ask(engine, "and why is that?", after="nothing")[-1].data["code"] == "not_found"


# Hooks.

HOOKS = """
from dataclasses import replace

from codeqa.chat.hooks import Hooks

@Hooks.policy_override
def search(decision, question):
    if "teapots" in question:
        return replace(decision, inject_rag=True, suggest_codebase=False)


@Hooks.before_generation
def without_legacy(asked):
    kept = (chunk for chunk in asked.block.chunks if not chunk.path.startswith("legacy/"))
    chunks = tuple(replace(c, content=c.content + TOKEN) for c in kept)
    return replace(asked, block=replace(asked.block, chunks=chunks))


@Hooks.before_generation
def politely(asked):
    return replace(asked, question="Please: " + asked.question, profile=TOKEN)


@Hooks.before_generation
def broken(asked):
    raise ValueError(asked.question)


@Hooks.after_generation
def signed(text):
    return text + " (House rules)"
""".replace("TOKEN", repr(f"# {TOKEN}"))


def test_every_hook_takes_part_in_a_turn_and_a_broken_one_costs_nothing(
    opened: Open, listener: Listener, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = write(tmp_path / "house", {"house.py": HOOKS})
    engine = opened(plugins=str(house), generator=listener)
    events = ask(engine, "how many teapots are on a shelf?")
    done, said = told(events, "done"), "".join(listener.says)
    assert done["rules"][-1] == "hook house.py:search"
    paths = {chunk.path for chunk in listener.last.block.chunks}
    assert paths and not any(path.startswith("legacy/") for path in paths)
    assert "legacy/" not in listener.last.block.text
    assert TOKEN not in str(listener.last) and "*" * len(TOKEN) in listener.last.profile
    assert "*" * len(TOKEN) in listener.last.block.text, "what a hook brought is masked too"
    assert listener.last.question == "Please: how many teapots are on a shelf?"
    assert answer(events) == said and done["revised"] == f"{said} (House rules)"
    (problem,) = done["hook_problems"]
    assert problem.startswith("The hook house.py:broken (before_generation) was skipped: Val")
    assert "teapots" not in problem and "how many" not in caplog.text
    (kept,) = engine.conversations.turns("talk")
    assert kept.answer == done["revised"] and kept.hook_problems == [problem]


def test_secrets_of_a_client_are_masked_before_anything_is_written(
    engine: Engine, listener: Listener
) -> None:
    history = (Exchange(f"is {TOKEN} ours?", f"Yes, {TOKEN}."),)
    question = f"and who uses {TOKEN}?"
    ask(engine, question, history=history, instructions=f"Say {TOKEN}.", keep=False)
    asked = listener.last
    assert TOKEN not in str(asked) and TOKEN not in str(build_messages(asked))
    assert str((asked.question, asked.history, asked.instructions)).count("*" * len(TOKEN)) == 4


# Keeping.


def test_a_question_that_cannot_be_saved_in_time_is_refused(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = threading.Event()
    real = engine.conversations.state.turns.save

    def save(*arguments: Any, **named: Any) -> bool:
        slow.wait(PATIENCE)
        return real(*arguments, **named)

    monkeypatch.setattr(engine.conversations.state.turns, "save", save)
    monkeypatch.setattr(ask_module, "FLUSH_SECONDS", AT_ONCE)
    *_, last = events = ask(engine, ASK)
    assert not [event for event in events if event.kind in ("asked", "token")]
    assert last.kind == "error" and "could not be saved" in last.data["message"]
    slow.set()
    monkeypatch.setattr(ask_module, "FLUSH_SECONDS", PATIENCE)
    (turn,) = engine.conversations.turns("talk")  # whoever reads it waits for it
    assert as_json(turn.error) == {name: last.data[name] for name in ("message", "hint", "code")}


@pytest.mark.slow
def test_a_process_that_ends_at_once_has_kept_its_answers(
    indexed: Indexed, quoting: Engine, data_dir: Path
) -> None:
    program = f"""
        import sys
        from pathlib import Path
        from codeqa.chat.values import AskOptions
        from codeqa.engine import open_engine
        from codeqa.settings import load_settings
        settings = load_settings(data=Path({str(data_dir)!r}), tables={str(indexed.tables)!r})
        engine = open_engine(settings, Path({str(indexed.repository)!r}))
        for question in ("@codebase expire_session", "and why is that?"):
            for event in engine.chat.ask(AskOptions(question, conversation="talk")):
                pass
        sys.exit(0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=PATIENCE)
    assert len(quoting.conversations.turns("talk")) == 2


def test_pins_and_exclusions_hold_for_whole_files_and_beyond_the_room(
    engine: Engine, listener: Listener
) -> None:
    for question in (ASK, f"/all shop/*.py {ASK}", f"/files {ASK}"):
        pins = {"pin": ["legacy/stock.py:1-3"], "exclude": ["shop/stock.py:1-3"]}
        done = told(ask(engine, question, **pins), "done")
        places = [chunk.span for chunk in listener.last.block.chunks]
        assert places[0] == "legacy/stock.py:1-3" and "shop/stock.py:1-3" not in places, question
        assert len(places) > 1 and done["searches"]
    every = [f"shop/part{part}.py:1-{end}" for part in range(6) for end in range(30, 61)]
    assert ask(engine, ASK, pin=every[:40])[-1].kind == "done"


def test_a_new_topic_without_a_conversation_gets_no_earlier_code(
    engine: Engine, listener: Listener
) -> None:
    ask(engine, ASK, conversation="")
    ask(engine, "and what is MONTH?", conversation="")
    assert listener.last.block.chunks
    ask(
        engine,
        "where is the kubernetes ingress of the staging cluster configured?",
        conversation="",
    )
    assert not listener.last.block.chunks
