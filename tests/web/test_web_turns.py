"""Questions over HTTP to a real engine, which asks a model over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_kit import parts
from cli_shop import ANSWER, QUESTION, TITLE, copied_settings
from flask.testing import FlaskClient
from openai_server import (
    NEVER,
    Reply,
    ScriptedServer,
    completion,
    failure,
    is_for_title,
    openai_server,
    silent,
    stream,
)
from pydantic import SecretStr
from serving import serving
from waiting import PATIENCE, Clock

from codeqa.indexing import Indexer
from codeqa.settings import Settings
from codeqa.store import locate
from codeqa.web.app import create_app

pytest_plugins = ("cli_shop",)

KEY = "sk-very-secret-0123456789"

Client = Callable[..., FlaskClient]


@pytest.fixture(scope="module")
def started(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of a server over the shop."""
    more = {"hyde": "off", "effort": "fast", "watch": False}
    app = create_app(copied_settings(shop, tmp_path_factory.mktemp("turns"), **more), shop)
    yield app.test_client()
    app.extensions["codeqa"].close()


@pytest.fixture
def client(started: FlaskClient) -> Iterator[FlaskClient]:
    """The same, with no conversation and no model when a test begins."""
    yield started
    started.delete("/api/privacy/everything")
    started.post("/api/models", json={"provider": ""})


@pytest.fixture
def model(client: FlaskClient) -> Iterator[ScriptedServer]:
    """A model that answers, and is chosen."""
    with openai_server(lambda path, body: stream(ANSWER)) as server:
        choose(client, server.base_url)
        yield server


@pytest.fixture
def make_client(shop: Path, shop_settings: Settings) -> Iterator[Client]:
    """`make_client(token=…)` starts a server over the shop: its state is in the data folder."""
    with contextlib.ExitStack() as ending:

        def make(**overrides: Any) -> FlaskClient:
            settings = shop_settings.model_copy(update=overrides)
            app = create_app(settings, shop)
            ending.callback(app.extensions["codeqa"].close)
            return app.test_client()

        yield make


def choose(client: FlaskClient, address: str, key: str = "", **more: Any) -> dict[str, Any]:
    body = {"provider": "custom", "model": "m", "address": address, "key": key}
    response = client.post("/api/models", json=body, **more)
    assert response.status_code == 200, response.text
    return response.json  # type: ignore[no-any-return]


def ask(client: FlaskClient, question: str, conversation: str = "c", **more: Any) -> Any:
    """The text of the answer and its last annotation."""
    headers = more.pop("headers", {})
    body = {"question": question, "conversation": conversation, "render": True, **more}
    response = client.post("/chat/stream", json=body, headers=headers)
    lines = response.get_data(as_text=True).splitlines()
    text = "".join(json.loads(line[2:]) for line in lines if line.startswith("0:"))
    return text, [json.loads(line[2:])[0] for line in lines if line.startswith("8:")][-1]


def contents(request: tuple[str, dict[str, Any]]) -> str:
    return json.dumps(request[1]["messages"])


def test_a_question_and_its_follow_up_go_to_the_chosen_model(client: FlaskClient) -> None:
    with openai_server(lambda path, body: stream(ANSWER, usage=(700, 20))) as server:
        assert choose(client, server.base_url, KEY)["current"]["local"] is True
        body = {"provider": "custom", "model": "m", "address": server.base_url}
        tested = client.post("/api/models/test", json=body).json
        assert tested["model"] == "m" and tested["host"] == "127.0.0.1"
        text, done = ask(client, QUESTION)
        assert text == "".join(ANSWER)
        assert (done["model"], done["host"]) == ("custom/m", "127.0.0.1")
        tokens = {"prompt": 700, "completion": 20, "estimated": False, "cost": 0.0}
        assert done["tokens"] == tokens
        assert [one["verified"] for one in done["citations"]] == [True, False]
        assert done["mode"] == "explain"
        ask(client, "and what does it cost?")
        first, second = server.requests[-2:]
        _, done = ask(client, "and then?", mode="review")
    assert all(one["authorization"] == f"Bearer {KEY}" for one in server.headers)
    assert "add_article" in contents(first)
    assert "@codebase" not in json.dumps(first[1]["messages"][-1])
    assert "add_article" in contents(second) and "and what does it cost?" in contents(second)
    assert "It is appended" in contents(second) and "It is appended" not in contents(first)
    # The context panel shows exactly what the server received.
    context = client.get(f"/api/context/{done['turn']}").json
    sent = server.requests[-1][1]["messages"]
    received = [*map(parts, sent)]
    assert [one["role"] for one in context["messages"]] == [one["role"] for one in sent]
    assert [one["parts"] for one in context["messages"]] == received
    assert received[-1][0].startswith("[MODE: review]\n[INSTRUCTION]\n")
    assert received[-1][1] == context["text"] and context["chunks"]
    assert context["model"] == "custom/m" and context["tokens"]["prompt"] == 700


def test_a_conversation_survives_a_restart_with_its_context(make_client: Client) -> None:
    with openai_server(lambda path, body: stream(ANSWER)) as server:
        client = make_client()
        choose(client, server.base_url)
        ask(client, QUESTION, "kept")
        again = make_client()
        assert again.get("/api/models").json["current"]["host"] == "127.0.0.1"
        (listed,) = again.get("/api/conversations").json["conversations"]
        assert listed["title"] == "how is an article put into the basket?"
        opened = again.get("/api/conversations/kept").json
        assert opened["context"]
        (turn,) = opened["turns"]
        assert turn["tagged"] and turn["finished"] and turn["answer"] == "".join(ANSWER)
        assert 'class="citation"' in turn["html"] and "citation unverified" in turn["html"]
        _, done = ask(again, "and what does it cost?", "kept")
        assert done["intent"] == "continuation"
        assert "add_article" in contents(server.requests[-1])
        assert again.delete("/api/conversations/kept").status_code == 200
        _, done = ask(again, "and what does it cost?", "kept")
        assert done["intent"] != "continuation"
        assert "add_article" not in contents(server.requests[-1])


def test_two_users_never_see_each_others_code_questions_or_answers(make_client: Client) -> None:
    client = make_client(token=SecretStr("anna, bela"))
    anna, bela = ({"headers": {"Authorization": f"Bearer {name}"}} for name in ("anna", "bela"))
    with openai_server(lambda path, body: stream(ANSWER)) as server:
        choose(client, server.base_url, **anna)
        _, mine = ask(client, QUESTION, "same", **anna)
        _, yours = ask(client, "and what does it cost?", "same", **bela)
        assert yours["intent"] != "continuation"
        assert "add_article" not in contents(server.requests[-1])
        assert "article" not in contents(server.requests[-1]).split("and what does it cost?")[1]
        assert mine["turn"] != yours["turn"]
        # Naming another's turn neither shows nor replaces it.
        assert client.get(f"/api/context/{mine['turn']}", **bela).status_code == 404
        ask(client, "again", "same", replaces=mine["turn"], **bela)
    turns = client.get("/api/conversations/same", **anna).json["turns"]
    assert [turn["id"] for turn in turns] == [mine["turn"]]
    assert client.get(f"/api/context/{mine['turn']}", **anna).status_code == 200
    assert len(client.get("/api/conversations/same", **bela).json["turns"]) == 2
    assert client.delete("/api/conversations/same", **bela).status_code == 200
    assert client.get("/api/conversations/same", **anna).status_code == 200
    _, done = ask(client, "go on", "same", without_model=True, **anna)
    assert done["intent"] == "continuation"


def test_a_key_goes_to_the_host_it_was_given_for_and_nowhere_else(
    make_client: Client, shop_settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = make_client()
    shown = []
    with openai_server() as first, openai_server() as second:
        for server, key in ((first, KEY), (second, "")):
            shown.append(json.dumps(choose(client, server.base_url, key)))
            body = {"provider": "custom", "model": "m", "address": server.base_url}
            for address in ("/api/models/test", "/api/models/list"):
                shown.append(client.post(address, json=body).text)
            ask(client, QUESTION)
        assert {one.headers["authorization"] for one in first.exchanges} == {f"Bearer {KEY}"}
        assert second.exchanges
        assert not any(KEY in json.dumps(one.headers) for one in second.exchanges)
        choose(client, first.base_url)
        body = {"provider": "custom", "address": first.base_url}
        shown.append(client.post("/api/models/forget", json=body).text)
        asked = len(first.exchanges)
        ask(client, QUESTION)
        assert KEY not in json.dumps(first.exchanges[asked].headers)
    shown += [client.get(address).text for address in ("/api/models", "/api/conversations/c")]
    assert not any(KEY in text for text in shown) and KEY not in caplog.text
    stored = shop_settings.data_dir / "models.json"
    assert KEY not in stored.read_text() and stored.stat().st_mode & 0o777 == 0o600


def test_a_server_that_sends_elsewhere_is_not_followed(client: FlaskClient) -> None:
    with openai_server() as elsewhere:
        there = f"{elsewhere.base_url}/chat/completions"
        for status in (301, 307):
            with openai_server(lambda path, body, s=status: (s, {"Location": there}, {})) as server:
                choose(client, server.base_url, KEY)
                _, failed = ask(client, QUESTION)
                assert failed["error"]["message"]
        assert elsewhere.exchanges == []


def test_an_exported_key_sends_nothing_until_its_provider_is_chosen(make_client: Client) -> None:
    with openai_server() as server:
        client = make_client(openai_api_key=SecretStr(KEY), openai_base_url=server.base_url)
        overview = client.get("/api/models")
        openai = overview.json["providers"][0]
        assert openai["key"] == "exported" and overview.json["current"] is None
        assert openai["host"] == "127.0.0.1"  # where the question would go, not api.openai.com
        assert KEY not in overview.text
        _, done = ask(client, QUESTION)
        assert done["generator"] == "extractive" and server.exchanges == []
        assert client.post("/api/models", json={"provider": "openai"}).status_code == 200
        _, done = ask(client, QUESTION)
        assert done["model"] == "openai/gpt-4o" and server.headers[0]["authorization"]
        assert client.post("/api/models", json={"provider": ""}).json["current"] is None
        _, done = ask(client, QUESTION)
        assert done["generator"] == "extractive" and len(server.requests) == 1


def test_only_the_owner_of_a_shared_server_opens_what_is_not_indexed_yet(
    make_client: Client, shop: Path, tmp_path: Path
) -> None:
    client = make_client(token=SecretStr("anna,bela"))
    bela = {"headers": {"Authorization": "Bearer bela"}}
    (tmp_path / "private.py").write_text("def hidden():\n    return 1\n", encoding="utf-8")
    for path in ("~", "\x00", str(tmp_path), f"{shop}/..", "/", "relative"):
        refused = client.post("/api/repos", json={"path": path}, **bela)
        assert refused.status_code == 403, path
    assert client.post("/api/repos", json={"path": str(shop)}, **bela).status_code == 202
    anna = {"headers": {"Authorization": "Bearer anna"}}
    assert client.post("/api/repos", json={"path": str(tmp_path)}, **anna).status_code == 202


def test_addresses_in_settings_that_lead_nowhere_leave_the_other_providers(
    make_client: Client,
) -> None:
    nowhere = {"model_url": "nowhere", "openai_base_url": "nowhere", "model_key": SecretStr(KEY)}
    client = make_client(**nowhere, openai_api_key=SecretStr(KEY))
    assert len(client.get("/api/models").json["providers"]) > 10
    refused = client.post("/api/models", json={"provider": "openai"})
    assert refused.status_code == 400 and KEY not in refused.text
    assert make_client(**nowhere, model="custom/m").get("/api/models").json["problem"]
    set_by = {"model": "custom/m", "model_url": "http://127.0.0.1:9/v1"}
    shown = make_client(**set_by).get("/api/models").json["current"]
    assert shown["address"] == set_by["model_url"], "which its form begins with"


def test_a_model_picked_for_one_repository_answers_for_all(
    make_client: Client, shop_settings: Settings, tmp_path: Path, write_files: Callable[..., Path]
) -> None:
    client = make_client()
    other = write_files(tmp_path / "other", {"a.py": "def alone():\n    return 1\n"})
    Indexer(shop_settings, location := locate(shop_settings, other)).run(refine=False)
    with openai_server(lambda path, body: stream(ANSWER)) as server:
        choose(client, server.base_url)
        _, done = ask(client, "@codebase what is alone?", repo=location.id)
        assert done["model"] == "custom/m"
    assert client.get("/api/conversations").json["conversations"] == []
    listed = client.get(f"/api/conversations?repo={location.id}").json["conversations"]
    assert [one["title"] for one in listed] == ["what is alone?"]


def test_the_answer_in_one_piece_comes_from_the_model_too_and_fails_with_its_status(
    client: FlaskClient,
) -> None:
    with openai_server(lambda path, body: stream(ANSWER)) as server:
        choose(client, server.base_url)
        assert client.post("/", json={"query": QUESTION}).json == {"response": "".join(ANSWER)}
        client.post("/", json={"query": "go on"})
        assert "add_article" in contents(server.requests[-1])
    with openai_server(lambda path, body: failure(401, "bad key")) as server:
        choose(client, server.base_url, KEY)
        refused = client.post("/", json={"query": QUESTION})
    assert refused.status_code == 502 and refused.json["error"]["code"] == "model"
    empty = client.post("/", json={"query": "@codebase"})
    assert empty.status_code == 400 and empty.json["error"]["code"] == "usage"


def test_an_unreadable_cited_file_spoils_no_answer(
    client: FlaskClient, model: ScriptedServer, shop: Path
) -> None:
    file = shop / "store" / "basket.py"
    text, about = file.read_text(encoding="utf-8"), file.stat()
    ask(client, QUESTION, conversation="grown")
    file.write_text(text + "# more\n" * 200_000, encoding="utf-8")  # above the limit
    try:
        _, done = ask(client, QUESTION, conversation="grown")
        opened = client.get("/api/conversations/grown")
    finally:
        file.write_text(text, encoding="utf-8")
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert [one["verified"] for one in done["citations"]] == [True, True], "nobody knows"
    assert opened.status_code == 200, opened.text
    assert [turn["answer"] for turn in opened.json["turns"]] == ["".join(ANSWER)] * 2


# The title of a conversation


def title_after(client: FlaskClient, question: str, **more: Any) -> str:
    """What the conversation, by default `c`, is called when nothing more is asked about that."""
    ask(client, question, **{"effort": "normal", **more})
    for thread in threading.enumerate():
        if thread.name == "answer":
            thread.join()
    return str(client.get("/api/conversations").json["conversations"][0]["title"])


def asked_for_titles(server: ScriptedServer) -> list[str]:
    return [json.dumps(one.body) for one in server.exchanges if is_for_title(one.body)]


def test_the_model_that_answered_first_gives_a_conversation_its_title_once(
    client: FlaskClient, model: ScriptedServer
) -> None:
    model.title = lambda path, body: completion('"Articles in the `Basket`."\n')
    for more in ({"without_model": True}, {"effort": "fast"}):
        assert title_after(client, QUESTION, conversation=str(more), **more) == TITLE
    assert asked_for_titles(model) == []
    assert title_after(client, QUESTION) == "Articles in the Basket"
    assert title_after(client, "@codebase and what is paid?") == "Articles in the Basket"
    (sent,) = asked_for_titles(model)
    assert "how is an article put" in sent and "It is appended" in sent
    assert "def add_article" not in sent and "@codebase" not in sent


def test_a_title_that_its_user_gave_meanwhile_stays(
    client: FlaskClient, model: ScriptedServer
) -> None:
    def rename_first(path: str, body: dict[str, Any]) -> Reply:
        mine = {"title": "Mine"}
        renamed = client.application.test_client().post("/api/conversations/c", json=mine)
        assert renamed.status_code == 200, renamed.text
        return completion("The model's")

    model.title = rename_first
    assert title_after(client, QUESTION) == "Mine"
    assert len(asked_for_titles(model)) == 1


def test_where_a_model_gives_no_title_in_time_the_question_stays(
    client: FlaskClient, model: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.llm.client.time", clock := Clock())
    replies = [silent(600), completion("This says far more than fits into a title"), failure(500)]

    def late(path: str, body: dict[str, Any]) -> Reply:
        reply = replies.pop()
        clock.advance(0 if replies else 600)
        return reply

    model.title = late
    for number in range(len(replies)):
        assert title_after(client, QUESTION, conversation=str(number)) == TITLE
    assert len(asked_for_titles(model)) == 3 and not replies


def test_an_answer_is_over_while_its_conversation_waits_for_a_title(
    client: FlaskClient, model: ScriptedServer
) -> None:
    over = threading.Event()

    def after_the_answer(path: str, body: dict[str, Any]) -> Reply:
        assert over.wait(PATIENCE)
        return completion("Articles")

    model.title = after_the_answer
    text, done = ask(client, QUESTION, effort="normal")
    assert text == "".join(ANSWER) and done["turn"]
    assert model.wait_for(lambda: asked_for_titles(model))
    over.set()


# Over a real connection


def test_words_stream_at_once_and_leaving_ends_the_model_request(
    shop: Path, shop_settings: Settings
) -> None:
    replies = [silent(600), stream([ANSWER[0], NEVER])]
    with openai_server(lambda path, body: replies[-1]) as server:
        update = {"model": "custom/m", "model_url": server.base_url}
        with serving(shop_settings.model_copy(update=update), shop) as port:
            for gone, speaks in enumerate((True, False)):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
                body = json.dumps({"question": QUESTION, "conversation": f"c{gone}"})
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/chat/stream", body, headers)
                response = connection.getresponse()
                assert server.wait_for_requests(gone + 1)
                while speaks and not response.readline().startswith(b"0:"):
                    pass  # the second word never comes
                assert len(server.disconnects) == gone
                response.close()
                connection.close()
                assert server.wait_for_disconnects(gone + 1)
                replies.pop()
