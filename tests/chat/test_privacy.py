"""Deleting for good: no file of the data folder and no Redis key holds afterwards what was said."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flask.testing import FlaskClient
from indexed import indexed
from redis_server import RedisServer, free_port, redis_server, server_binaries
from waiting import AT_ONCE

from codeqa.account import Privacy, privacy_report
from codeqa.engine import open_privacy
from codeqa.errors import NotFoundError, UsageError
from codeqa.llm.models import Models
from codeqa.routing.followup import cache_key
from codeqa.settings import Settings, load_settings
from codeqa.state import State
from codeqa.state.cache import RedisCache, context_key, open_redis
from codeqa.state.records import Turn, TurnExtras
from codeqa.web.app import create_app

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)
pytestmark = pytest.mark.usefixtures("patient")
needs_server = pytest.mark.skipif(not server_binaries(), reason="no Redis server for this system")

REPOSITORY = "shop-0a1b2c3d"
QUESTION = "Où est calculé le “prix” of the violet umbrella?"
ANSWER = "The umbrella's price is worked out by quokka_total.\n\nIt is never the naïve sum."
TITLE = "Quarrelsome umbrellas"
REASON = "it forgot the marmalade surcharge"
NAME = "Wilhelmina Quettelschnuck"
SAID = ("violet umbrella", "quokka_total", "naïve sum", "marmalade surcharge", "Quarrelsome")
"""Pieces of what was said, as a person would look for them."""


@pytest.fixture
def state(data_dir: Path) -> State:
    return State(data_dir)


@pytest.fixture
def privacy(settings: Settings, state: State) -> Privacy:
    return Privacy(settings, state, state.values, Models(settings))


def tell(
    state: State, conversation: str, user: str = "local", *, texts: str = "", facts: bool = False
) -> str:
    """One turn as it is kept; `texts` makes those of another one different. Its id."""
    turn = Turn(
        id=f"{conversation}-{user}-turn-of-32-characters",
        conversation=conversation,
        question=f"{QUESTION}{texts}",
        answer=f"{ANSWER}{texts}",
        context=f"[CONTEXT]\n\n=== CHUNK 1 ===\n{texts}",
        details={"messages": [{"role": "user", "parts": [f"{QUESTION}{texts}"]}]},
        user=user,
        repository=REPOSITORY,
    )
    extras = TurnExtras("table", b"\x01\x3c" * 64, {"name": NAME} if facts else {})
    assert state.turns.save(turn, extras=extras)
    state.conversations.rename(conversation, f"{TITLE}{texts}", user, REPOSITORY)
    state.feedback.save(turn.id, user, -1, f"{REASON}{texts[:100]}")
    return turn.id


def grep(folder: Path, *texts: str) -> dict[str, list[str]]:
    """Files below `folder` that hold a text, as UTF-8 or as JSON; independent of the product."""
    found: dict[str, list[str]] = {}
    for path in (Path(base, name) for base, _, names in os.walk(folder) for name in names):
        content = path.read_bytes()
        for text in texts:
            if text.encode() in content or json.dumps(text)[1:-1].encode() in content:
                found.setdefault(text, []).append(path.name)
    return found


# The three deletions


def test_a_deleted_conversation_is_in_no_byte_of_the_data_folder(
    privacy: Privacy, state: State, data_dir: Path
) -> None:
    turn = tell(state, "conversation-of-umbrellas")
    other = tell(state, "conversation-of-parasols", texts=" (kept)")
    state.values.set(context_key("local", "conversation-of-umbrellas"), "{quokka_total}", 60)
    intent = cache_key("local", QUESTION, True)
    state.values.set(intent, '["general", 0.9]', 60)
    state.values.set(context_key("local", "conversation-of-parasols"), "{parasol_total}", 60)
    (data_dir / "repos" / REPOSITORY).mkdir(parents=True)
    (data_dir / "repos" / REPOSITORY / "table.lance").write_bytes(b"def quokka_total(): ...")
    assert set(grep(data_dir, turn, *SAID)) == {turn, *SAID}

    state.conversations.delete("conversation-of-parasols", "local", REPOSITORY)
    erased = privacy.delete("conversation", "local", "conversation-of-umbrellas", REPOSITORY)
    assert erased.counts == {
        "conversations": 1, "turns": 1, "thumbs": 1, "vectors": 1, "facts": 0, "cached": 1,
    }  # fmt: skip
    assert erased.problems == ()
    left = grep(data_dir, turn, "conversation-of-umbrellas", *SAID)
    assert left == {"quokka_total": ["table.lance"]}, "code of the repository, which stays"
    assert state.values.get(context_key("local", "conversation-of-parasols")) == "{parasol_total}"
    assert not grep(data_dir, other)
    assert state.values.get(intent) is None


def test_a_deleted_profile_is_in_no_byte_and_conversations_stay(
    privacy: Privacy, state: State, data_dir: Path
) -> None:
    tell(state, "conversation-of-umbrellas", facts=True)
    assert set(grep(data_dir, NAME)) == {NAME}
    erased = privacy.delete("profile", "local")
    assert erased.counts["facts"] == 1 and sum(erased.counts.values()) == 1
    assert erased.problems == ()
    assert grep(data_dir, NAME) == {}
    assert len(state.turns.active("conversation-of-umbrellas", "local", REPOSITORY)) == 1


def test_everything_of_a_user_goes_and_nothing_of_another(
    privacy: Privacy, state: State, data_dir: Path
) -> None:
    mine = [tell(state, f"conversation-{n}", "token-aaaaaaaa", facts=True) for n in range(3)]
    yours = tell(state, "conversation-0", "token-bbbbbbbb", texts=" of Bela", facts=True)
    for user in ("token-aaaaaaaa", "token-bbbbbbbb"):
        state.values.set(context_key(user, "conversation-0"), f"context of {user}", 60)
        state.values.set(context_key(user, ""), f"lone context of {user}", 60)
    erased = privacy.delete("everything", "token-aaaaaaaa")
    assert erased.counts == {
        "conversations": 3, "turns": 3, "thumbs": 3, "vectors": 3, "facts": 1, "cached": 2,
    }  # fmt: skip
    assert erased.problems == ()
    assert grep(data_dir, *mine, "token-aaaaaaaa") == {}
    assert grep(data_dir, yours)
    assert privacy.stored("token-aaaaaaaa").turns == 0
    assert privacy.stored("token-bbbbbbbb").turns == 1
    assert privacy.stored("token-bbbbbbbb").profile == {"name": NAME}
    assert state.values.get(context_key("token-bbbbbbbb", "conversation-0"))
    privacy.delete("everything", "token-bbbbbbbb")
    assert grep(data_dir, yours, NAME, *SAID) == {}


def test_deletion_removes_long_texts_and_spares_other_conversations(
    privacy: Privacy, state: State, data_dir: Path
) -> None:
    long = "".join(f"\nline {number} of the marsupial saga" for number in range(3000))
    tell(state, "conversation-of-sagas", texts=long)
    others = [tell(state, f"conversation-{n}", texts=f" about {n}") for n in range(20)]
    assert_bytes = [f"line {number} of the marsupial" for number in (0, 1500, 2999)]
    assert len(grep(data_dir, *assert_bytes)) == 3
    privacy.delete("conversation", "local", "conversation-of-sagas")
    assert grep(data_dir, *assert_bytes) == {}
    turn = state.turns.get(others[7])
    assert turn is not None and turn.answer == f"{ANSWER} about 7"
    assert state.feedback.of_conversation("conversation-7", "local", REPOSITORY)


def test_bytes_that_an_earlier_version_left_behind_go_too_and_room_is_given_back(
    state: State, data_dir: Path
) -> None:
    for number in range(20):
        tell(state, f"conversation-{number}", texts=f" about {number} " * 500)
    size = state.size()
    connection = sqlite3.connect(state.path)
    connection.executescript("PRAGMA secure_delete=OFF; DELETE FROM turn; DELETE FROM conversation")
    connection.close()
    assert grep(data_dir, *SAID)
    state.compact()
    assert grep(data_dir, *SAID) == {}
    assert state.path.stat().st_size < size / 2


def test_what_is_not_there_is_said(privacy: Privacy) -> None:
    with pytest.raises(NotFoundError):
        privacy.delete("conversation", "local", "nowhere")
    for scope, conversation in (("all", ""), ("conversation", "")):
        with pytest.raises(UsageError):
            privacy.delete(scope, "local", conversation)
    assert sum(privacy.delete("everything", "local").counts.values()) == 0


def test_a_reader_that_holds_the_log_open_is_told_and_not_denied(
    privacy: Privacy, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.state.database.BUSY_SECONDS", AT_ONCE)
    tell(state, "conversation-of-umbrellas")
    reader = sqlite3.connect(state.path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM turn").fetchone()
    try:
        erased = privacy.delete("conversation", "local", "conversation-of-umbrellas")
    finally:
        reader.close()
    assert erased.counts["turns"] == 1
    assert erased.problems
    assert sum(privacy.delete("everything", "local").counts.values()) == 0


# Redis


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def server(running: RedisServer) -> RedisServer:
    running.command("FLUSHALL")
    return running


def keys(server: RedisServer) -> list[str]:
    return sorted(server.command("KEYS", "*").split("\r\n")[2::2])


@needs_server
def test_the_keys_of_a_user_are_gone_from_redis_and_no_others(
    server: RedisServer, data_dir: Path
) -> None:
    settings = load_settings(data=data_dir, redis_url=server.url)
    state = State(data_dir)
    cache = open_redis(settings) or state.values
    privacy = Privacy(settings, state, cache, Models(settings))
    tell(state, "one"), tell(state, "two")
    mine = [context_key("local", name) for name in ("one", "two", "a*b[c]?", "")]
    theirs = [context_key("local2", "one"), context_key("token-1", "one"), "another:program"]
    for key in (*mine, *theirs):
        cache.set(key, "code", 60)
    state.values.set(mine[0], "from before Redis was set", 60)
    assert privacy.stored("local").cached == 5
    assert privacy.stored("local").redis == server.url.removeprefix("redis://")
    assert privacy.delete("conversation", "local", "one").counts["cached"] == 2
    assert keys(server) == sorted([*mine[1:], *theirs])
    assert privacy.delete("everything", "local").counts["cached"] == 3
    assert keys(server) == sorted(theirs)


@needs_server
def test_a_redis_server_that_is_down_is_told_and_emptied_by_the_next_wish(
    server: RedisServer, data_dir: Path
) -> None:
    settings = load_settings(data=data_dir, redis_url=server.url)
    privacy, hurried = (
        Privacy(settings, State(data_dir), RedisCache(server.url + limit), Models(settings))
        for limit in ("", f"?socket_timeout={AT_ONCE}")
    )
    privacy.cache.set(context_key("local", "one"), "code", 600)
    server.freeze()
    erased = hurried.delete("everything", "local")
    assert len(erased.problems) == 1 and "24 hours" in erased.problems[0]
    assert (stored := hurried.stored("local")).cached is None
    assert "in a Redis server that does not answer" in privacy_report(stored)
    server.thaw()
    assert not privacy.delete("everything", "local").problems
    assert keys(server) == []


# HTTP


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_each_user_sees_and_deletes_only_what_is_theirs(state: State, data_dir: Path) -> None:
    settings = load_settings(data=data_dir, token="anna,bela", host="0.0.0.0")
    shared = create_app(settings).test_client()
    anna, bela = (
        shared.get("/api/privacy", headers=bearer(token)).json["user"]  # type: ignore[index]
        for token in ("anna", "bela")
    )
    mine = tell(state, "conversation-one", anna, facts=True)
    yours = tell(state, "conversation-one", bela, texts=" of Bela", facts=True)
    found = shared.get("/api/privacy", headers=bearer("anna")).json
    assert found["turns"] == 1 and found["profile"] == {"name": NAME} and found["shared"]
    refused = shared.delete("/api/privacy/conversation?id=nowhere", headers=bearer("anna"))
    assert refused.status_code == 404
    done = shared.delete("/api/privacy/everything", headers=bearer("anna"))
    assert done.status_code == 200 and done.json["problems"] == []
    assert done.json["counts"]["turns"] == 1
    assert grep(data_dir, mine) == {} and grep(data_dir, yours)
    after = shared.get("/api/privacy", headers=bearer("bela")).json
    assert after["turns"] == 1 and after["profile"] == {"name": NAME}


def test_one_conversation_or_the_profile_is_deleted_over_http(
    settings: Settings, state: State, data_dir: Path
) -> None:
    client = create_app(settings).test_client()
    turn = tell(state, "conversation-one", facts=True)
    assert client.delete("/api/privacy/conversation").status_code == 400
    assert client.delete("/api/privacy/nothing").status_code == 400
    assert client.delete("/api/privacy/profile").json["counts"]["facts"] == 1
    address = f"/api/privacy/conversation?id=conversation-one&repo={REPOSITORY}"
    assert client.delete(address).json["counts"]["turns"] == 1
    assert grep(data_dir, turn, NAME, *SAID) == {}


# By message


def ask(client: FlaskClient, text: str) -> str:
    body = {"question": text, "conversation": "conversation-of-messages"}
    lines = client.post("/chat/stream", json=body).get_data(as_text=True).splitlines()
    assert not [line for line in lines if line.startswith("3:")], lines
    return "".join(json.loads(line[2:]) for line in lines if line.startswith("0:"))


@pytest.fixture
def client(data_dir: Path, tmp_path: Path) -> Iterator[FlaskClient]:
    """A page about an indexed repository with a model chosen that nobody serves."""
    tables = indexed(tmp_path, {"shop.py": "def total(): ...\n"})
    settings = load_settings(
        data=data_dir, model="ollama/none", model_url=f"http://127.0.0.1:{free_port()}/v1"
    )
    app = create_app(settings, tables.location.root)
    yield app.test_client()
    app.extensions["codeqa"].close()


def test_a_message_deletes_only_by_its_exact_confirmation(
    client: FlaskClient, state: State, data_dir: Path
) -> None:
    for number in range(2):
        tell(state, f"conversation-{number}", texts=f" number {number}", facts=not number)
    assert NAME in ask(client, "what do you know about me?")
    assert "Nothing has been deleted yet" in ask(client, "delete my profile")
    assert state.profile.facts()
    assert "1 profile line" in ask(client, "delete my profile for good")
    assert state.profile.facts() == {}
    assert "Nothing has been deleted yet" in ask(client, "delete this conversation")
    assert "is deleted: 1 conversation, 5 questions" in ask(
        client, "delete this conversation for good"
    )
    assert grep(data_dir, "conversation-of-messages", NAME, "what do you know about me") == {}
    assert set(grep(data_dir, *SAID)) == set(SAID)
    told = ask(client, "delete everything for good")
    assert "3 conversations, 3 questions" in told, "the message that asks for it among them"
    assert grep(data_dir, "conversation-of-messages", "for good", *SAID) == {}
    assert state.user_data.counts().turns == 0


# The command


def test_the_command_shows_and_deletes(codeqa: Command, state: State, data_dir: Path) -> None:
    turn = tell(state, "conversation-one", facts=True)
    done = codeqa("privacy", "show")
    assert done.status == 0
    for piece in ("1 conversation", NAME, str(data_dir), "nothing leaves this machine"):
        assert piece in done.out
    assert "*" not in done.out
    assert json.loads(codeqa("privacy", "show", "--json").out)["profile"] == {"name": NAME}
    delete = ("privacy", "delete")
    done = codeqa(*delete, "conversation", "nowhere", "--yes")
    assert done.status != 0 and "no such conversation" in done.err
    done = codeqa(*delete, "everything")
    assert done.status == 2 and "Add --yes" in done.err
    assert grep(data_dir, turn)
    done = codeqa(*delete, "everything", "--yes")
    assert done.status == 0 and "1 question" in done.out + done.err
    assert grep(data_dir, turn, NAME, *SAID) == {}


# What is counted, and who receives it


def receivers(settings: Settings) -> Sequence[tuple[str, str, bool]]:
    found = open_privacy(settings).stored("local").receivers
    return [(one.part, one.host, one.local) for one in found]


def test_every_host_that_receives_something_is_named(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert receivers(load_settings(data=data_dir)) == []
    exported = load_settings(data=data_dir, openai_api_key="sk-none", cohere_api_key="none")
    assert receivers(exported) == [], "an exported key alone sends nothing"
    chosen = load_settings(
        data=data_dir,
        model="openai/gpt-4o",
        openai_api_key="sk-none",
        embedding="jina/jina-embeddings-v3",
        reranker="cohere/rerank-v3.5",
        cohere_api_key="none",
    )
    assert receivers(chosen) == [
        ("model", "api.openai.com", False),
        ("embedding", "api.jina.ai", False),
        ("reranker", "api.cohere.ai", False),
    ]
    local = load_settings(data=data_dir, model="ollama/qwen3")
    assert [(part, here) for part, _, here in receivers(local)] == [("model", True)]
