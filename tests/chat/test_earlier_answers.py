"""Answers of other conversations: which are sent along, how, and what says so."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from chat_kit import ASK, FILES, SAYS, Open, Script, ask, gathered, index, parts, told
from openai_server import stream

from codeqa.chat.events import as_json
from codeqa.chat.messages import build_messages
from codeqa.engine import Engine
from codeqa.types import Exchange

pytest_plugins = ("chat_fixtures",)


def test_an_answer_with_a_thumb_up_is_sent_along_to_another_conversation(
    engine: Engine, script: Script, user: str
) -> None:
    def sent(question: str = ASK, **options: Any) -> list[str]:
        done = told(ask(engine, question, conversation=uuid.uuid4().hex, **options), "done")
        kept = done["earlier"]
        stored = engine.conversations.turn(done["turn"], options.get("user", "local"))
        assert as_json(stored.earlier) == kept
        along = "".join(p for p in parts(script.sent[-1]) if p.startswith("[EARLIER ANSWERS]"))
        assert bool(along) == bool(kept)
        assert all(f"Answer: {one['answer']}" in along for one in kept)
        assert not any(one["role"] == "assistant" for one in script.sent), "it is data alone"
        return [one["conversation"] for one in kept]

    first = told(ask(engine, ASK, conversation="first"), "done")
    assert sent(earlier_answers=True) == ["first"]
    assert sent() == [], "nobody said that it is good"
    engine.conversations.rate(first["turn"], 1)
    assert sent("@codebase when does expire_session forget a visitor?") == ["first"]
    assert sent(user=user, earlier_answers=True) == [], "not that of another user"
    engine.conversations.rate(first["turn"], -1)
    assert "first" not in sent(earlier_answers=True)


def test_an_answer_without_a_right_citation_is_sent_along_nowhere(
    engine: Engine, script: Script
) -> None:
    for says in ("The session ends after a while.", "`expire_session` ends [shop/nowhere.py:1-3]."):
        script.replies = [stream([says])]
        wrong = told(ask(engine, ASK, conversation=says), "done")
        assert wrong["earlier"] == []
        engine.conversations.rate(wrong["turn"], 1)
    script.replies = [stream(SAYS)]
    assert told(ask(engine, ASK), "done")["earlier"] == []


def test_an_answer_whose_code_has_changed_is_not_sent_along(tmp_path: Path, script: Script) -> None:
    files = {path: FILES[path] for path in ("shop/session.py", "shop/visit.py")}
    engine = index(tmp_path, files).open(tmp_path / "data", **script.settings)
    file = tmp_path / "shop" / "shop" / "session.py"

    def asked(conversation: str) -> dict[str, Any]:
        return told(ask(engine, ASK, conversation=conversation), "done")

    def edit() -> None:  # not in the lines that it cites
        file.write_text(FILES["shop/session.py"].replace("MONTH = 30", "MONTH = 31"), "utf-8")

    for name, change in (("edited", edit), ("deleted", file.unlink)):
        engine.conversations.rate(asked(f"{name}: before")["turn"], 1)
        assert len(asked(f"{name}: of the same code")["earlier"]) == 1
        change()
        engine.index.run()
        assert asked(f"{name}: after")["earlier"] == []
    engine.close()


def test_the_setting_sends_answers_without_a_thumb_along_too(opened: Open, script: Script) -> None:
    engine = opened(**script.settings, earlier_answers=True)
    ask(engine, ASK, conversation="first")
    assert len(told(ask(engine, ASK), "done")["earlier"]) == 1


def test_a_question_about_other_names_is_not_similar(engine: Engine, script: Script) -> None:
    for number in (1, 2):
        name = f"warehouse_part_{number}"
        says = f"`{name}` moves stock [shop/part{number}.py:1-20]."
        script.replies = [stream([says])]
        done = told(ask(engine, f"@codebase what does {name} do?", conversation=name), "done")
        assert done["earlier"] == []
        engine.conversations.rate(done["turn"], 1)
    events = ask(engine, "@codebase what does `warehouse_part_1` really do?", conversation="two")
    (earlier,) = told(events, "done")["earlier"]
    assert earlier["question"] == "what does warehouse_part_1 do?"


def test_earlier_answers_are_data_whole_and_without_numbers_of_chunks(engine: Engine) -> None:
    asked = gathered(
        "why?",
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
