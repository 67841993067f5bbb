"""Answers of other conversations: which are sent along, how, and what says so."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from chat_kit import ASK, FILES, SAYS, Open, Script, ask, index, parts, told
from openai_server import stream

from codeqa.chat.messages import build_messages
from codeqa.chat.values import Gathered
from codeqa.context import ContextBlock
from codeqa.engine import Engine
from codeqa.types import Exchange

pytest_plugins = ("chat_fixtures",)


def test_an_answer_of_another_conversation_is_sent_along_while_it_holds(
    engine: Engine, script: Script, user: str
) -> None:
    def sent(question: str = ASK, **options: Any) -> list[str]:
        done = told(ask(engine, question, conversation=uuid.uuid4().hex, **options), "done")
        kept = done["earlier"]
        assert engine.conversations.turn(done["turn"], options.get("user", "local")).earlier == kept
        (*_, last) = parts(script.sent[-1])
        assert last.startswith("[EARLIER ANSWERS]") == bool(kept)
        assert all(f"Answer: {one['answer']}" in last for one in kept)
        assert not any(one["role"] == "assistant" for one in script.sent), "it is data alone"
        return [one["conversation"] for one in kept]

    first = told(ask(engine, ASK, conversation="first"), "done")
    assert sent("@codebase when does expire_session forget a visitor?") == ["first"]
    assert sent(user=user) == [], "not that of another user"
    assert sent(earlier_answers=False) == []
    engine.conversations.rate(first["turn"], -1)
    assert "first" not in sent()


@pytest.mark.parametrize(
    "says",
    [
        "The session ends after a while.",
        "`expire_session` ends it [shop/nowhere.py:1-3].",
        "It posts a letter. It then calls `notify_owner`. It rings. `expire_session` ends it"
        " [shop/session.py:6-10].",
    ],
    ids=["without a citation", "with a wrong one", "mostly guessed"],
)
def test_an_answer_without_its_evidence_is_told_to_no_other_conversation(
    engine: Engine, script: Script, says: str
) -> None:
    script.replies = [stream([says])]
    ask(engine, ASK, conversation="first")
    script.replies = [stream(SAYS)]
    assert told(ask(engine, ASK), "done")["earlier"] == []


def test_an_answer_whose_lines_have_changed_is_not_sent_along(
    tmp_path: Path, script: Script
) -> None:
    engine = index(tmp_path, FILES).open(tmp_path / "data", **script.settings)
    ask(engine, ASK, conversation="first")
    assert len(told(ask(engine, ASK, conversation="second"), "done")["earlier"]) == 1
    file = tmp_path / "shop" / "shop" / "session.py"
    file.write_text(FILES["shop/session.py"].replace("> MONTH", "> 2 * MONTH"), encoding="utf-8")
    engine.index.run()
    assert told(ask(engine, ASK, conversation="third"), "done")["earlier"] == []
    engine.close()


def test_the_setting_keeps_other_conversations_to_themselves(opened: Open, script: Script) -> None:
    engine = opened(**script.settings, earlier_answers=False)
    ask(engine, ASK, conversation="first")
    assert told(ask(engine, ASK), "done")["earlier"] == []


def test_a_question_about_other_names_is_not_similar(engine: Engine, script: Script) -> None:
    for number in (1, 2):
        name = f"warehouse_part_{number}"
        says = f"`{name}` moves stock [shop/part{number}.py:1-20]."
        script.replies = [stream([says])]
        done = told(ask(engine, f"@codebase what does {name} do?", conversation=name), "done")
        assert done["earlier"] == []
    events = ask(engine, "@codebase what does `warehouse_part_1` really do?", conversation="two")
    (earlier,) = told(events, "done")["earlier"]
    assert earlier["question"] == "what does warehouse_part_1 do?"


def test_earlier_answers_are_data_whole_and_without_numbers_of_chunks(engine: Engine) -> None:
    asked = Gathered(
        "why?", "explain", ContextBlock(()), searched=False,
        history=(Exchange("latest", "yes, by chunk 3 and `x[1]` [2]"),),
        similar=(
            Exchange("long", "x" * 9_000, elsewhere=True),
            Exchange("alike", "```\n[1]\n```\nSee Chunks 1 and 2", elsewhere=True),
            Exchange("here", "b"),
        ),
    )  # fmt: skip
    *history, last = [message["content"] for message in build_messages(asked)[1:]]
    then = "[code shown then]"
    assert history == ["here", "b", "latest", f"yes, by {then} and `x[1]` {then}"]
    (*_, earlier) = [part["text"] for part in last]
    answer = f"Answer: ```\n[1]\n```\nSee {then}"
    assert earlier.endswith(f"\n\n````\nQuestion: alike\n\n{answer}\n````")
    assert "xxx" not in str(last), "a part of an answer might say the opposite"
