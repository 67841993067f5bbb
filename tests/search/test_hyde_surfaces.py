"""Drafts over HTTP and in the terminal: what is asked for, told, kept and shown."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flask.testing import FlaskClient
from openai_server import Reply, ScriptedServer, openai_server, stream

from codeqa.settings import load_settings
from codeqa.web.app import create_app

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop", "chat_fixtures")
pytestmark = pytest.mark.usefixtures("clock")

QUESTION = "who pays for what is bought?"
DRAFTS = {400: "func PayOrder(card string) error", 768: "PayOrder charges the card <b>bold</b>"}
ANSWER = ["The customer [store/checkout.go:3-6].\n"]


def reply(path: str, body: dict[str, Any]) -> Reply:
    draft = DRAFTS.get(body.get("max_tokens", 0))
    return stream([draft] if draft else ANSWER)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with openai_server(reply) as server:
        yield server


@pytest.fixture
def asked(server: ScriptedServer) -> ScriptedServer:
    """The server, which has not been asked anything yet."""
    server.requests.clear()
    server.exchanges.clear()
    return server


@pytest.fixture(scope="module")
def client(shop: Path, server: ScriptedServer) -> Iterator[FlaskClient]:
    """The page over the shop, with a model at `server`."""
    settings = load_settings(
        data=shop.parent / "data", watch=False, hyde="one", effort="normal", model="custom/m",
        model_url=server.base_url,
    )  # fmt: skip
    app = create_app(settings, shop)
    yield app.test_client()
    app.extensions["codeqa"].close()


def ask(client: FlaskClient, **more: Any) -> list[str]:
    """The lines of an answer."""
    asked = {"question": f"@codebase {QUESTION}", "conversation": uuid.uuid4().hex, "hyde": "two"}
    response = client.post("/chat/stream", json={**asked, "render": True, "effort": "fast", **more})
    return list(response.get_data(as_text=True).splitlines())


def annotations(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line[2:])[0] for line in lines if line.startswith("8:")]


def drafted(server: ScriptedServer) -> list[int]:
    return [body["max_tokens"] for _, body in server.requests if "max_tokens" in body]


def test_the_stages_come_with_the_stream_and_in_order(client: FlaskClient) -> None:
    told = annotations(ask(client))
    told = [one for one in told if one.get("stage") != "step"]
    stages = [one.get("stage") for one in told if "stage" in one]
    assert stages == [
        "asked", "classified", "hits", "drafting", "drafted", "drafting", "drafted", "hits",
        "retrieved", "generating", "cited",
    ]  # fmt: skip
    begun, ended = told[3], told[4]
    plain, final = (one["hits"] for one in told if one.get("stage") == "hits")
    assert plain[0]["path"] == "README.md"  # it shares a word; the drafts name what pays
    assert (final[0]["path"], final[0]["name"]) == ("store/checkout.go", "PayOrder")
    assert begun.pop("milliseconds") >= 0
    assert begun == {
        "stage": "drafting", "name": "hyde-1", "model": "custom/m", "host": "127.0.0.1",
    }  # fmt: skip
    assert ended["name"] == "hyde-1" and ended["outcome"] == "done"
    assert ended["took"] >= 0 and ended["text"] == DRAFTS[400]
    done = told[-1]
    assert done["hyde"] == "two"
    assert [stage["name"] for stage in done["stages"]] == ["hyde-1", "hyde-2", "search"]
    # A client that did not ask for more gets the stream as it was.
    lines = ask(client, render=False)
    *before, done = annotations(lines)
    assert [one.get("stage") for one in before] == ["classified", "retrieved", "generating"]
    assert set(done) == {"intent", "confidence", "retrieval_info", "query_tags"}
    assert DRAFTS[400] not in "".join(lines)


def test_each_request_chooses_and_else_the_setting_does(
    client: FlaskClient, asked: ScriptedServer
) -> None:
    assert client.get("/api/status").json["hyde"] == "one"
    expected: list[int] = []
    for field, stages in {"off": [], "": [400], "two": [400, 768]}.items():
        done = annotations(ask(client, hyde=field, effort="normal"))[-1]
        expected += stages
        assert drafted(asked) == expected
        assert done["hyde"] == (field or "one")


def test_another_value_is_refused_before_anything_is_asked(
    client: FlaskClient, asked: ScriptedServer
) -> None:
    for value in ("three", True, ["one"]):
        for address in ("/chat/stream", "/"):
            response = client.post(address, json={"question": QUESTION, "hyde": value})
            assert response.status_code == 400
    for address in ("/", "/api/status", "/api/models", "/api/repos"):
        assert client.get(address).status_code == 200
    assert asked.requests == [] == [one for one in asked.exchanges if one.method == "GET"]


def test_the_context_panel_gets_drafts_times_and_how_each_hit_was_found(
    client: FlaskClient,
) -> None:
    turn = annotations(ask(client, rerank=True))[-1]["turn"]
    shown = client.get(f"/api/context/{turn}").json
    assert shown["hyde"] == "two"
    assert [stage["name"] for stage in shown["stages"]] == [
        "hyde-1", "hyde-2", "search", "rerank",
    ]  # fmt: skip
    second = dict(shown["stages"][1])
    assert second.pop("usage")["prompt_tokens"] > 0
    assert second == {
        "name": "hyde-2", "milliseconds": second["milliseconds"],
        "outcome": "done", "text": DRAFTS[768], "model": "custom/m", "host": "127.0.0.1",
    }  # fmt: skip
    hits = shown["hits"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    paid = next(hit for hit in hits if hit["name"] == "PayOrder")
    assert paid["path"] == "store/checkout.go" and paid["kind"] == "function"
    assert paid["start_line"] == 3 and paid["end_line"] == 6
    assert paid["why"] and {"hyde-1 text", "hyde-2 text"} <= set(paid["channels"])
    assert all(rank >= 1 for hit in hits for rank in hit["channels"].values())
    assert paid["sent"] is True
    sent = {(one["path"], one["start_line"]) for one in shown["chunks"]}
    assert all(hit["sent"] == ((hit["path"], hit["start_line"]) in sent) for hit in hits)


# In the terminal


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch, asked: ScriptedServer) -> ScriptedServer:
    for name, value in (("MODEL", "custom/m"), ("MODEL_URL", asked.base_url), ("HYDE", "one"),
                        ("EFFORT", "normal")):  # fmt: skip
        monkeypatch.setenv(f"CODEQA_{name}", value)
    return asked


def test_search_drafts_only_when_told_to(
    shop_codeqa: Command, shop: Path, chosen: ScriptedServer
) -> None:
    search = ("search", QUESTION, "--repo", shop)
    assert shop_codeqa(*search).status == 0 and chosen.exchanges == []
    found = shop_codeqa(*search, "--hyde", "two")
    assert found.status == 0, found.err
    assert drafted(chosen) == [400, 768]
    assert "PayOrder" in found.out
    told = json.loads(shop_codeqa(*search, "--hyde", "one", "--json").out)
    assert told["hyde"] == "one" and told["stages"][0]["text"] == DRAFTS[400]
    assert any("hyde-1 text" in hit["channels"] for hit in told["hits"])


def test_ask_drafts_as_the_setting_says_or_as_it_is_told(
    shop_codeqa: Command, shop: Path, chosen: ScriptedServer
) -> None:
    result = shop_codeqa("ask", QUESTION, "--repo", shop)
    assert result.status == 0, result.err
    assert result.out == "".join(ANSWER)
    assert drafted(chosen) == [400]
    told = shop_codeqa("ask", QUESTION, "--repo", shop, "--hyde", "off", "--json")
    assert json.loads(told.out)["hyde"] == "off"
    assert drafted(chosen) == [400]
    without = shop_codeqa("ask", QUESTION, "--repo", shop, "--no-model", "--hyde", "two")
    assert without.status == 0 and "raft" not in without.err
    assert drafted(chosen) == [400]
