"""The record of a turn: what is stored of it comes back, and what is public holds no code."""

from __future__ import annotations

import json
from dataclasses import replace

from codeqa.chat.events import Citation, Failure, Retrieved, Step, ToolStep, as_json
from codeqa.chat.record import (
    Done,
    EarlierAnswer,
    RecordedHit,
    SentMessage,
    Tokens,
    TurnRecord,
    read_done,
)
from codeqa.chat.stored import as_turn, read_turn_record
from codeqa.types import Chunk, StageTime, TokenUsage

CODE = "def total(): return SECRET_SUM"
CHUNK = Chunk("c1", "shop/cart.py", 4, 6, "python", CODE, "u1")
RECORD = TurnRecord(
    id="t1", typed="@codebase what is total?", answer="A sum [shop/cart.py:4-6].", created=1.5,
    parent="t0", mode="explain", rules=("tagged",), retrieval_info=Retrieved(1, 0),
    stages=(StageTime("hyde-1", 12.0, "done", CODE, "custom/m", "localhost", TokenUsage(3, 4)),),
    hits=(RecordedHit("shop/cart.py", 4, 6, "function", "total", "u1", 1.5, ("name",), {"text": 1}),
    ),
    tokens=Tokens(3, 4, cost=0.001), citations=(Citation("shop/cart.py", 4, 6, verified=True),),
    looked_up=(ToolStep("grep", "{}", "1 line", "shop/cart.py:4"),),
    earlier=(EarlierAnswer("before?", "yes", "t9", "c9"),), steps=(Step("embed", 1.25),),
    finished=False, error=Failure("It failed.", "Ask again.", "model"),
    messages=(SentMessage("user", ("what is total?", None)),), chunks=(CHUNK,),
)  # fmt: skip


def test_what_is_stored_of_a_turn_comes_back_as_it_was() -> None:
    turn = as_turn(RECORD, "anna", "shop", "c")
    stored = replace(turn, details=json.loads(json.dumps(turn.details)))
    assert as_json(read_turn_record(stored)) == as_json(RECORD)
    assert read_turn_record(stored).hits[0].name == "total"


def test_what_another_version_stored_otherwise_is_left_out_or_has_its_default() -> None:
    turn = as_turn(RECORD, "anna", "shop", "c")
    chunks = [{"id": "c0", "text": "as it was"}, *turn.details["chunks"], "no chunk"]
    details = {**turn.details, "chunks": chunks, "tokens": {"prompt": 3}, "later": [1]}
    del details["error"]
    record = read_turn_record(replace(turn, details=details))
    assert record.chunks == (CHUNK,) and record.tokens == Tokens(prompt=3) and record.error is None


def test_what_is_public_holds_no_code_and_the_page_has_less_of_it() -> None:
    public = RECORD.public()
    assert "SECRET_SUM" not in json.dumps([public, Done(RECORD, "t1").data])
    assert set(RECORD.page()) - set(public) == {"question", "tagged"}
    assert set(public) - set(RECORD.page()) == {"typed", "reply", "cut"}


def test_a_terminal_reads_the_end_of_an_answer_as_the_server_tells_it() -> None:
    done = read_done(json.loads(json.dumps(Done(RECORD, "t1", "revised").data)))
    assert (done.turn, done.revised, done.record.tokens) == ("t1", "revised", RECORD.tokens)
    assert done.record.citations == RECORD.citations and done.record.earlier == RECORD.earlier
