"""Whole turns over a real index and a real HTTP server that speaks the API."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from block_grammar import parse_block
from chat_kit import ASK, SAYS, Indexed, Open, Script, answer, ask, begun, kinds, parts, told
from conftest import ROOT
from openai_server import (
    NEVER,
    Reply,
    Streamed,
    context_length,
    delta,
    dropped,
    event,
    failure,
    openai_server,
    rate_limited,
    silent,
    stream,
)
from redis import Redis
from redis_server import redis_server

from codeqa.chat.events import as_json
from codeqa.chat.record import Tokens
from codeqa.chat.values import NO_CONTEXT
from codeqa.engine import Engine, open_engine
from codeqa.errors import NotFoundError
from codeqa.llm.providers import ModelChoice
from codeqa.prompts import override_path, render_prompt
from codeqa.settings import load_settings
from codeqa.state import State
from codeqa.state.cache import context_key, open_redis
from codeqa.store import locate
from codeqa.web.app import create_app

pytest_plugins = ("chat_fixtures", "postgres_server")
TOKEN = "ghp_" + "aB3" * 12


def has_code(script: Script) -> bool:
    """Whether code was sent with the last question."""
    return any(part.startswith("[CONTEXT]") for part in parts(script.sent[-1]))


# The turn.


def test_a_tagged_question_is_searched_packed_asked_and_streamed(
    engine: Engine, script: Script
) -> None:
    events = ask(engine, ASK, user="talk")
    assert kinds(events) == ["classified", "retrieved", "generating", "token", "done"]
    assert answer(events) == "".join(SAYS)
    assert [e.data["text"] for e in events if e.kind == "token"] == SAYS
    system, user = script.sent
    assert system == {"role": "system", "content": render_prompt("chat_system")}
    instruction, block, *_ = parts(user)
    assert instruction.startswith(
        "[MODE: explain]\n[INSTRUCTION]\nwhen does expire_session forget the visitor?\n"
    )
    assert "@codebase" not in instruction
    assert "shop/session.py" in {chunk.path for chunk in parse_block(block)}
    assert script.bodies[-1]["model"] == "gpt-4o"
    done = events[-1].data
    assert done["model"] == "openai/gpt-4o"
    assert done["generator"] == "openai/gpt-4o"
    assert done["host"] == "127.0.0.1"
    assert done["mode"] == "explain"
    told = {"prompt": 120, "completion": 9, "estimated": False, "cost": 0.0}
    assert done["tokens"] == told
    assert done["reranker"] == "" and done["notice"] in ("", "Sent whole: 12 of 12 files, 14 KB.")
    assert done["coverage"].startswith("12 of 12 files")
    assert [c["verified"] for c in done["citations"]] == [True]


def test_a_follow_up_uses_the_cached_context_and_the_history(
    engine: Engine, script: Script
) -> None:
    ask(engine, ASK)
    block = parts(script.sent[-1])[1]
    events = ask(engine, "and what is MONTH?")
    assert "retrieved" not in kinds(events)
    assert told(events, "classified")["intent"] == "continuation"
    _, question, reply, user = script.sent
    assert parts(question) == ["when does expire_session forget the visitor?"]
    assert parts(reply) == ["".join(SAYS)]
    assert parts(user)[0].startswith("[MODE: explain]\n[INSTRUCTION]\nand what is MONTH?\n")
    assert parts(user)[1] == block
    assert [c["verified"] for c in events[-1].data["citations"]] == [True]


def test_a_model_named_for_one_answer_gets_all_requests_of_it(
    engine: Engine, script: Script
) -> None:
    with openai_server(lambda *_: stream(["By the other one."])) as other:
        choice = ModelChoice("custom", "other", other.base_url)
        engine.models.choose(choice)
        engine.models.choose(ModelChoice("openai", "gpt-4o"))
        ask(engine, ASK)
        before = list(script.server.requests)
        (kept,) = engine.conversations.turns("talk")
        for effort in ("normal", "deep"):
            given = {"with_model": "custom/other", "replaces": kept.id, "effort": effort}
            done = ask(engine, ASK, hyde="two", **given)[-1].data
            assert (done["model"], done["host"]) == ("custom/other", "127.0.0.1")
            assert "shop/session.py" in str(other.requests[-1])
        assert script.server.requests == before
        assert ask(engine, "and what is MONTH?")[-1].data["model"] == "openai/gpt-4o"
        failed = ask(engine, ASK, with_model="custom/nowhere")[-1]
        assert (failed.kind, failed.data["message"]) == ("error", "This model is not set up.")


def test_a_search_in_vain_says_so_to_the_model_and_empties_the_context(
    engine: Engine, script: Script
) -> None:
    ask(engine, ASK)
    events = ask(engine, "@codebase where is `zyzzyva` defined? lang:cobol")
    assert "retrieved" not in kinds(events)
    assert render_prompt("nothing_found").strip() in parts(script.sent[-1])[0]
    assert len(parts(script.sent[-1])) == 1
    ask(engine, "and now?")
    assert len(parts(script.sent[-1])) == 1


def test_the_mode_and_the_reranker_are_sent_kept_and_told(engine: Engine, script: Script) -> None:
    for question, mode, expected in (
        ("@codebase /plan expire_session", "", "plan"),
        ("@codebase expire_session", "change", "change"),
        ("@codebase where is expire_session?", "", "explain"),  # words choose none
    ):
        done = ask(engine, question, mode=mode, rerank=True)[-1].data
        assert (done["mode"], done["reranker"]) == (expected, "built-in")
        assert parts(script.sent[-1])[0].startswith(f"[MODE: {expected}]\n")
        assert "/" + expected not in parts(script.sent[-1])[0]
        kept = engine.conversations.turns("talk")[-1]
        assert (kept.mode, kept.reranker) == (expected, "built-in")


def test_secrets_that_are_typed_are_neither_sent_nor_kept(engine: Engine, script: Script) -> None:
    ask(engine, f"@codebase expire_session {TOKEN}")
    ask(engine, "and?")
    assert TOKEN not in str(script.bodies)
    assert TOKEN not in str(engine.conversations.turns("talk"))
    assert TOKEN not in str(engine.conversations.all())


def test_tokens_and_cost_are_those_of_every_request_for_the_answer(
    engine: Engine, script: Script
) -> None:
    paid = {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.0012}
    usage = event({"choices": [], "usage": paid})
    draft = Streamed((delta("def expire(): clear()", "stop"), usage))
    script.replies = [draft, Streamed((*map(delta, SAYS), delta(reason="stop"), usage))]
    ask(engine, ASK, hyde="one", effort="normal")
    script.replies = [Streamed((*map(delta, SAYS), delta(reason="stop"), usage))]
    follow_up = ask(engine, "and what of it?", retrieval="auto", hyde="off", effort="normal")
    assert len(script.small_calls) == 1, "what it means is asked as well"
    first, second = (turn.tokens for turn in engine.conversations.turns("talk"))
    assert first == Tokens(200, 20, cost=0.0024)
    assert second == Tokens(107, 15, cost=0.0012), "of the call, and the answer"
    assert follow_up[-1].data["tokens"] == as_json(second)


def test_an_answer_that_is_cut_off_says_so_and_uncounted_has_an_estimate(
    engine: Engine, script: Script
) -> None:
    script.replies = [stream(SAYS, reason="length"), stream(SAYS, reason="length", usage=None)]
    for estimated in (False, True):
        done = ask(engine, ASK)[-1].data
        assert "length limit" in done["notice"]
        assert done["tokens"]["estimated"] is estimated
        assert done["tokens"]["completion"] >= 5
        assert 100 < done["tokens"]["prompt"] < 9_000 or not estimated


def test_a_chunk_named_by_number_is_cited_by_the_lines_that_were_sent(
    engine: Engine, script: Script
) -> None:
    script.replies = [stream(["It ends [Chu", "nk 1]", " and not (Chunk 99). See [Chunk 1]"])]
    events = ask(engine, ASK)
    chunk = engine.conversations.turn(events[-1].data["turn"]).chunks[0]
    place = f"[{chunk.path}:{chunk.start_line}-{chunk.end_line}]"
    assert answer(events) == f"It ends {place} and not (Chunk 99). See {place}"
    (citation,) = events[-1].data["citations"]
    assert citation["verified"] and citation["path"] == chunk.path
    # A later block numbers other chunks: the history says which one was meant.
    ask(engine, "@codebase show warehouse_part_2")
    assert place in parts(script.sent[2])[0] and "[Chunk 1]" not in parts(script.sent[2])[0]


# No model.


def test_a_model_without_its_key_says_what_to_set(opened: Open) -> None:
    engine = opened(model="groq/llama-3.3-70b-versatile")
    events = ask(engine, ASK)
    assert kinds(events) == ["classified", "error"]
    assert "GROQ_API_KEY" in str(events[-1].data)
    assert "Without a language model" in answer(ask(engine, ASK, use_model=False))


# Isolation.


def test_conversations_users_and_repositories_never_see_each_others_context(
    engine: Engine, script: Script, tmp_path: Path
) -> None:
    anna, bela = "token-aaaaaaaa", "token-bbbbbbbb"
    ask(engine, ASK, user=anna)
    for options in (
        {},
        {"user": bela},
        {"conversation": "talk2", "user": anna},
        {"conversation": "", "user": anna},
        {"conversation": "", "user": f"{anna}:conversation:talk"},
    ):
        ask(engine, "and?", **options)
        assert len(script.sent) == 2, f"no history reaches {options}"
        assert not has_code(script), f"no context reaches {options}"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.py").write_text("def warehouse():\n    return 1\n")
    elsewhere = open_engine(engine.settings, tmp_path / "other")
    ask(elsewhere, "and?", user=anna)
    assert len(script.sent) == 2 and not has_code(script)
    (turn,) = engine.conversations.turns("talk", anna)
    assert turn.chunks
    for place, user in ((engine, "local"), (engine, bela), (elsewhere, anna)):
        with pytest.raises(NotFoundError):
            place.conversations.turn(turn.id, user)
    ask(engine, "and?", user=anna)
    assert len(script.sent) == 4 and has_code(script)


def test_many_conversations_at_once_keep_their_contexts_apart(
    engine: Engine, script: Script
) -> None:
    def converse(number: int) -> None:
        talk, user = f"t{number % 3}", f"token-{number:08x}"
        question = f"@codebase show warehouse_part_{number}"
        ask(engine, question, conversation=talk, user=user)
        ask(engine, f"follow-up of {number}", conversation=talk, user=user)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(converse, range(4)))
    every = [body["messages"] for body in script.bodies]
    follow_ups = [m for m in every if "follow-up of" in str(m)]
    assert len(follow_ups) == 4
    for messages in follow_ups:
        instruction, block, *_ = parts(messages[-1])
        number = instruction.partition("follow-up of ")[2][0]
        assert parts(messages[1]) == [f"show warehouse_part_{number}"]
        assert parse_block(block)[0].path == f"shop/part{number}.py"


def test_a_client_that_names_no_conversation_has_its_users_context_and_no_history(
    engine: Engine, script: Script
) -> None:
    ask(engine, ASK, conversation="", user="token-cccccccc")
    ask(engine, "and?", conversation="", user="token-cccccccc")
    assert len(script.sent) == 2 and has_code(script)
    assert engine.conversations.turns("", "token-cccccccc") == []
    assert engine.conversations.all("token-cccccccc") == []


def test_the_keys_of_cached_contexts_are_the_sources_and_cannot_collide() -> None:
    assert context_key("local", "") == "user:local:chat_context"
    assert context_key("local", "c1") == "user:local:conversation:c1:chat_context"
    names = ["a", "a:conversation:b", "a%3Ab", "", "b", ":", "%"]
    keys = {context_key(user, talk) for user in names for talk in names}
    assert len(keys) == len(names) ** 2


def test_a_follow_up_reads_its_code_from_redis_and_where_that_lost_it_from_its_turn(
    opened: Open, script: Script, tmp_path: Path
) -> None:
    with redis_server(tmp_path / "redis") as redis, Redis.from_url(redis.url) as client:
        engine = opened(**script.settings, redis_url=redis.url)
        ask(engine, ASK)
        key = context_key("local", "talk")
        with client.monitor() as monitor:
            ask(engine, "and what is MONTH?")
            client.echo("the end")
            commands = list[str]()
            while not commands or "the end" not in commands[-1]:
                commands.append(monitor.next_command()["command"])
        assert f"GET {key}" in commands and has_code(script)
        stored = json.loads(client.get(key) or "{}")
        damaged = json.loads(json.dumps(stored))
        damaged["chunks"][0]["content"] += "\nmore than its lines"
        for kept in ("", json.dumps({**stored, "turn": "another"}), "{", json.dumps(damaged)):
            client.set(key, kept)
            ask(engine, "and what is MONTH?")
            assert has_code(script), "the turn has it"
            newest = engine.conversations.turns("talk")[-1]
            assert json.loads(client.get(key) or "{}")["turn"] == newest.id


def test_a_damaged_cached_context_counts_as_none(quoting: Engine) -> None:
    conversations, ours = quoting.conversations, f'{{"repository": "{quoting.location.id}"'
    for value in ("", "{", "null", "[]", "{}", '"x"', f"{ours}}}", f'{ours}, "chunks": 3}}',
                  f'{ours}, "chunks": [3]}}', "[" * 100_000):  # fmt: skip
        conversations.cache.set(context_key("u", ""), value)
        assert conversations.cached_context("u") == ("", NO_CONTEXT), value[:80]


def test_a_lost_redis_costs_only_what_stateless_clients_had(
    opened: Open, script: Script, tmp_path: Path
) -> None:
    with redis_server(tmp_path / "redis") as redis:
        engine = opened(**script.settings, redis_url=redis.url)
        for conversation in ("", "talk"):
            ask(engine, ASK, conversation=conversation)
            done = ask(engine, "and?", conversation=conversation)[-1].data
            assert "cache" not in done["notice"]
            assert has_code(script), "the context goes on"
        assert State(engine.settings.data_dir).values.get(context_key("local", "talk")) is None
        cache = open_redis(engine.settings) or State(engine.settings.data_dir).values
        assert "expire_session" in (cache.get(context_key("local", "talk")) or "")
        redis.kill()
        for question, sent in (("and?", 6), (ASK, 8)):
            events = ask(engine, question)
            assert events[-1].kind == "done" and answer(events)
            assert "cache" not in events[-1].data["notice"], "a conversation needs none"
            assert len(script.sent) == sent, "the history is kept elsewhere"
            assert has_code(script), "the turn itself has its context"
        assert len(engine.conversations.turns("talk")) == 4
        for follow_up in ("and?", "explain that in more detail"):
            done = ask(engine, follow_up, conversation="")[-1].data
            assert not has_code(script)
            assert done["notice"].startswith("The cache") and "@codebase" in done["notice"]
        for searched_or_none in (ASK, "hello"):
            done = ask(engine, searched_or_none, conversation="")[-1].data
            assert "cache" not in done["notice"]


def test_of_a_long_conversation_the_last_three_answers_are_sent_along(
    engine: Engine, script: Script
) -> None:
    for number in range(5):
        script.replies = [stream([f"answer {number}"])]
        ask(engine, f"what does warehouse_part_{number} do?")
    ask(engine, "and?")
    assert [parts(m)[0] for m in script.sent[2:-1:2]] == [f"answer {n}" for n in range(2, 5)]
    ask(engine, "and what does warehouse_part_1 do?")
    sent = [parts(m)[0] for m in script.sent[2:-1:2]]
    assert "answer 1" in sent, "and an older one that resembles the question"


def test_a_prompt_that_cannot_be_used_is_named_and_matters_only_to_a_model(engine: Engine) -> None:
    path = override_path("chat_system", engine.settings.config_dir)
    path.parent.mkdir(parents=True)
    path.write_text("Answer $loudly.", encoding="utf-8")
    events = ask(engine, ASK)
    assert events[-1].kind == "error"
    assert "$loudly" in events[-1].data["message"]
    events = ask(engine, ASK, use_model=False)
    assert events[-1].kind == "done"


# Kept turns.


@pytest.mark.parametrize(
    ("how", "by"),
    [("answered", "another server"), ("stopped", "this server"), ("left", "its first turn")],
)
def test_a_conversation_that_is_deleted_while_it_is_answered_stays_deleted(
    opened: Open, engine: Engine, script: Script, how: str, by: str
) -> None:
    if by != "its first turn":
        ask(engine, ASK)
    deleted, stopped = threading.Event(), threading.Event()
    script.replies = [stream(["one ", deleted, "two ", NEVER if how == "stopped" else "three."])]
    events = begun(engine, ASK, cancelled=stopped.is_set)
    deleting = opened(**script.settings) if by == "another server" else engine
    deleting.conversations.delete("talk")
    deleted.set()
    if how == "left":
        events.close()
    elif how == "stopped":
        stopped.set()
    rest = list(events)
    assert "talk" not in [one.id for one in engine.conversations.all()]
    assert engine.conversations.turns("talk") == []
    assert not engine.conversations.has_context("talk")
    assert [one.kind for one in rest][-1:] == {
        "answered": ["done"], "stopped": ["stopped"], "left": []
    }[how]  # fmt: skip
    for last in rest[-1:]:
        with pytest.raises(NotFoundError):
            engine.conversations.turn(last.data["turn"])
    with pytest.raises(NotFoundError):
        deleting.conversations.delete("talk")
    cached = partial(engine.conversations.cache.get, context_key("local", "talk"))
    assert cached() is None
    script.replies = [stream(SAYS)]
    again = ask(engine, ASK)  # the name itself is free again
    assert [turn.id for turn in engine.conversations.turns("talk")] == [again[-1].data["turn"]]
    assert cached()
    engine.conversations.delete("talk")
    assert cached() is None, "with a conversation goes what is cached of it"


@pytest.mark.parametrize("leaves", [False, True], ids=["read", "left"])
def test_an_answer_that_cannot_be_kept_is_given_all_the_same(engine: Engine, leaves: bool) -> None:
    assert engine.conversations.turns("talk") == []  # the file is there from now on
    with contextlib.closing(sqlite3.connect(engine.conversations.state.path)) as disk:
        disk.execute(
            "CREATE TRIGGER full BEFORE INSERT ON turn "
            "BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
        try:
            if leaves:
                begun(engine, ASK).close()
                return
            *rest, last = ask(engine, ASK)
        finally:
            disk.execute("DROP TRIGGER full")
    assert answer(rest) == "".join(SAYS)
    assert last.kind == "done" and "could not be saved" in last.data["notice"]
    assert "disk is full" in last.data["notice"]
    assert engine.conversations.turns("talk") == []


BREAK = """
    CREATE SEQUENCE breaks;
    CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('breaks') <= {times} THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
        RETURN NEW; END $$;
    CREATE TRIGGER break_off BEFORE INSERT ON conversation FOR EACH ROW EXECUTE FUNCTION break_off()
"""
REPAIR = "DROP FUNCTION IF EXISTS break_off CASCADE; DROP SEQUENCE IF EXISTS breaks"


@pytest.mark.parametrize(("times", "kept"), [(1, True), (99, False)])
def test_an_answer_whose_connection_ends_within_the_transaction_is_kept_all_the_same(
    opened: Open, empty_database: str, times: int, kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    engine = opened(state=empty_database)
    assert engine.conversations.all() == []  # the tables are there from now on
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(BREAK.format(times=times))
        try:
            events = ask(engine, ASK)
            # Reading waits for what is still being kept.
            found = [one.id for one in engine.conversations.turns("talk")]
        finally:
            connection.execute(REPAIR)
    assert answer(events) and events[-1].kind == "done"
    assert found == ([events[-1].data["turn"]] if kept else [])
    assert ("could not be saved" in caplog.text) is not kept
    assert "cret" not in caplog.text and SAYS[0] not in caplog.text


def test_a_repetition_that_fails_leaves_the_answer_that_there_was(
    engine: Engine, script: Script
) -> None:
    events = ask(engine, ASK)
    turn = events[-1].data["turn"]
    script.replies = [failure(401)]
    events = ask(engine, ASK, replaces=turn)
    assert events[-1].kind == "error"
    (kept,) = engine.conversations.turns("talk")
    assert kept.id == turn and kept.answer
    assert events[-1].data["turn"] == "", "nothing is kept that no conversation holds"
    script.replies = [stream(["Better."])]
    ask(engine, ASK, replaces=turn)
    assert [t.answer for t in engine.conversations.turns("talk")] == ["Better."]


FORMER_LOOKS = [
    {"tool": "", "arguments": "", "summary": "Reasoning · 2 s", "text": "Who calls it?"},
    {"tool": "search", "arguments": "end_of_visit\ndef end_of_visit(visitor):",
     "summary": "Searched once more: end_of_visit", "text": "shop/visit.py:4-6"},
    {"tool": "history", "arguments": '{"name": "expire_session"', "summary": "history: no",
     "text": "The arguments are not a JSON object.", "failed": True},
]  # fmt: skip
"""Of a model's one further search, and of an agent, which each had a writer of its own."""


def test_a_turn_with_the_looks_of_an_earlier_version_is_shown_and_gone_on_from(
    indexed: Indexed, opened: Open, script: Script, data_dir: Path
) -> None:
    looks = [{"said": "", "milliseconds": 35.0, "failed": False, **look} for look in FORMER_LOOKS]
    here = locate(load_settings(tables=str(indexed.tables)), indexed.repository).id
    dump = gzip.decompress((ROOT / "tests" / "fixtures/state-2517e08c.sql.gz").read_bytes())
    written = dump.decode().replace("shop-aef0503f", here)
    written = written.replace('"looked_up": []', f'"looked_up": {json.dumps(looks)}')
    data_dir.mkdir(exist_ok=True)
    with contextlib.closing(sqlite3.connect(data_dir / "state.sqlite")) as database:
        database.executescript(written)
    engine = opened(**script.settings)
    client = create_app(engine.settings, engine=engine).test_client()
    shown = client.get("/api/conversations/kept").json["turns"]
    assert [turn["looked_up"] for turn in shown] == [looks] * 3
    last = ask(engine, "and?", conversation="kept")[-1]
    assert (
        last.kind == "done" and has_code(script) and shown[-1]["answer"].strip() in str(script.sent)
    )


# Misbehaviour.


def test_an_answer_that_is_no_text_is_kept_and_shown_all_the_same(
    engine: Engine, script: Script
) -> None:
    odd = b'data: {"choices": [{"index": 0, "delta": {"content": "a\\ud800\\u0000b"}}]}\n\n'
    script.replies = [replace(stream(["odd: "]), events=(odd, delta("c", "stop")))]
    events = ask(engine, ASK)
    assert events[-1].kind == "done"
    assert answer(events).startswith("a") and answer(events).endswith("bc")
    assert engine.conversations.turns("talk")[0].answer == answer(events)
    answer(events).encode()


@pytest.mark.parametrize(
    ("reply", "word"), [(failure(401), "key"), (rate_limited(3600), "3600 seconds")]
)
def test_a_refusal_is_a_sentence_with_a_next_step_and_the_turn_is_kept(
    engine: Engine, script: Script, reply: Reply, word: str
) -> None:
    script.replies = [reply]
    events = ask(engine, ASK)
    assert kinds(events) == ["classified", "retrieved", "generating", "error"]
    assert answer(events) == ""
    error = events[-1].data
    assert word.lower() in f"{error['message']} {error['hint']}".lower()
    assert "a-key" not in str(error)
    (kept,) = engine.conversations.turns("talk")
    assert kept.id == error["turn"]
    assert not kept.finished
    assert as_json(kept.error) == {name: error[name] for name in ("message", "hint", "code")}
    assert engine.conversations.turn(kept.id).sent
    script.replies = [stream(SAYS)]
    ask(engine, "and?")
    assert len(script.sent) == 2, "a question without an answer is no history"
    assert has_code(script), "what was found is still the context"


def test_a_context_that_is_too_long_is_sent_once_again_at_half_its_size(
    engine: Engine, script: Script
) -> None:
    question = "@codebase how does warehouse_part_1 move stock between warehouse parts?"
    ask(engine, question)
    script.replies = [context_length(), stream(SAYS)]
    events = ask(engine, question)
    assert answer(events) == "".join(SAYS)
    first, second = script.bodies[-2]["messages"], script.bodies[-1]["messages"]
    assert len(first) >= 4 and len(second) == 2, "what was said earlier is left out"
    whole, half = parts(first[-1])[1], parts(second[-1])[1]
    assert 0 < len(half) <= len(whole) / 2
    assert parse_block(half)
    done = events[-1].data
    assert "part of the code" in done["notice"]
    assert engine.conversations.turn(done["turn"]).block.text == half
    assert engine.conversations.turn(done["turn"]).dropped
    assert engine.conversations.turn(done["turn"]).sent[-1].parts[1] == half
    assert engine.conversations.turns("talk")[-1].notice == done["notice"]
    ask(engine, "and?")
    assert parts(script.sent[-1])[1] == half, "a follow-up does not run into it again"
    script.replies, asked = [context_length()], len(script.bodies)
    last = ask(engine, question)[-1]
    assert last.kind == "error" and len(script.bodies) == asked + 3, "twice again, and no more"
    sent = engine.conversations.turn(last.data["turn"]).sent
    assert sent[-1].parts == parts(script.sent[-1]), "the last of what was sent"


def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came_and_not_begun_anew(
    engine: Engine, script: Script
) -> None:
    _, _, refusal = context_length()
    refused = Streamed((*map(delta, SAYS), event(refusal)))
    for number, reply in enumerate((dropped(SAYS), refused), 1):
        script.replies = [reply]
        events = ask(engine, ASK)
        assert events[-1].kind == "error" and answer(events) == "".join(SAYS)
        assert len(script.bodies) == number
        kept = engine.conversations.turns("talk")[-1]
        assert kept.answer == "".join(SAYS) and kept.error and not kept.finished
        assert [c.verified for c in kept.citations] == [True] and kept.tokens.estimated


def test_stopping_reaches_a_silent_model_and_keeps_the_turn(engine: Engine, script: Script) -> None:
    script.replies = [silent()]
    events = ask(engine, ASK, cancelled=lambda: bool(script.bodies))
    assert script.server.wait_for_disconnects()
    assert events[-1].kind == "stopped"
    (kept,) = engine.conversations.turns("talk")
    assert not kept.finished and kept.error is None and kept.answer == ""
    assert engine.conversations.turn(kept.id).sent


@pytest.mark.parametrize("leaves", [False, True], ids=["stopped", "left"])
def test_a_stopped_answer_ends_its_request_and_is_saved_so_far(
    engine: Engine, script: Script, leaves: bool
) -> None:
    script.replies = [stream(["word ", NEVER])]
    stopped = threading.Event()
    events = begun(engine, ASK, cancelled=stopped.is_set)
    if leaves:
        events.close()
    else:
        stopped.set()
        assert list(events)[-1].kind == "stopped"
    assert script.server.wait_for_disconnects()
    (kept,) = engine.conversations.turns("talk")
    assert kept.answer == "word " and not kept.finished
    assert kept.tokens.estimated is True
