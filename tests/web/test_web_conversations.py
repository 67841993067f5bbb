"""Conversations over HTTP: listed, opened, renamed and deleted."""

from __future__ import annotations

from urllib.parse import quote

from browser.fakes import ANSWER
from flask.testing import FlaskClient
from serving import ask, listed

pytest_plugins = ("web_kit",)


def test_an_opened_conversation_holds_everything_that_the_page_shows(client: FlaskClient) -> None:
    ask(client, "@codebase how?", "one", body={"rerank": True, "mode": "review"})
    ask(client, "and then?", "one")
    opened = client.get("/api/conversations/one").json
    assert (opened["id"], opened["title"]) == ("one", "how?")
    assert opened["context"] is True
    first, second = opened["turns"]
    assert (first["question"], first["tagged"], first["mode"]) == ("how?", True, "review")
    assert first["reranker"] == "built-in" and first["finished"] and first["error"] is None
    assert second["tagged"] is False and second["answer"] == ANSWER
    assert "<table>" in second["html"] and "citation unverified" in second["html"]
    assert "/?repo=store-0123abcd&amp;file=src/store/sessions.py" in second["html"]


def test_a_stored_answer_is_rendered_as_it_was_when_it_was_streamed(client: FlaskClient) -> None:
    body = {"question": "@codebase x", "conversation": "one", "render": True}
    lines = client.post("/chat/stream", json=body).get_data(as_text=True).splitlines()
    streamed = "".join(
        value["block"]["html"]
        for value in (client.application.json.loads(one[2:])[0] for one in lines if one[0] == "8")
        if "block" in value
    )
    streamed = streamed.replace("</ul>\n<ul>\n", "")  # items that came one by one
    assert client.get("/api/conversations/one").json["turns"][0]["html"] == streamed


def test_another_version_of_a_question_is_a_sibling_and_can_be_gone_back_to(
    client: FlaskClient,
) -> None:
    ask(client, "first", "one")
    ask(client, "second", "one")
    before = client.get("/api/conversations/one").json["turns"]
    ask(client, "second, put otherwise", "one", body={"replaces": before[1]["id"]})
    ask(client, "third", "one")
    first, other, third = client.get("/api/conversations/one").json["turns"]
    assert first["id"] == before[0]["id"] and first["siblings"] == [first["id"]]
    assert other["siblings"] == [before[1]["id"], other["id"]]
    assert other["parent"] == first["id"] and third["parent"] == other["id"]
    beside = client.get(f"/api/conversations/one?versions={other['id']}").json["turns"]
    assert [turn["question"] for turn in beside] == ["second", "second, put otherwise"]
    assert client.get("/api/conversations/one?versions=unknown").json["turns"] == []
    address = "/api/conversations/one/branch"
    chosen = client.post(address, json={"turn": before[1]["id"]}).json
    assert [turn["id"] for turn in chosen["turns"]] == [turn["id"] for turn in before]
    assert chosen == client.get("/api/conversations/one").json
    again = client.post(address, json={"turn": other["id"]}).json
    assert [turn["id"] for turn in again["turns"]][1:] == [other["id"], third["id"]]
    assert client.post(address, json={"turn": "unknown"}).status_code == 404
    assert client.post(address, json={}).status_code == 400
    assert client.post("/api/conversations/x/branch", json={"turn": "y"}).status_code == 404


def test_conversations_are_found_by_what_was_said(client: FlaskClient) -> None:
    ask(client, "say:the Wombat eats", "one")
    ask(client, "say:nothing", "two")
    (found,) = client.get("/api/conversations?q=wombat").json["conversations"]
    (turn,) = client.get("/api/conversations/one").json["turns"]
    assert (found["id"], found["turn"]) == ("one", turn["id"]) and "Wombat" in found["snippet"]
    assert client.get("/api/conversations?q=quokka").json == {"conversations": []}
    assert len(client.get("/api/conversations?q=%20").json["conversations"]) == 2


def test_a_conversation_is_renamed_to_what_can_be_shown_and_deleted(client: FlaskClient) -> None:
    ask(client, "first", "one")
    ask(client, "second", "two")
    renamed = client.post("/api/conversations/one", json={"title": "  A better\n title "})
    assert renamed.json == {"id": "one", "title": "A better title", "pinned": False}
    for title in ("", "  ", 7, None, "a\u202eb", "a\0b", "x" * 201):
        refused = client.post("/api/conversations/one", json={"title": title})
        assert refused.status_code == 400 and refused.json["error"]["hint"], title
    assert [one["title"] for one in listed(client)] == ["second", "A better title"]
    assert client.delete("/api/conversations/one").json == {"deleted": "one"}
    assert [one["id"] for one in listed(client)] == ["two"]
    assert client.get("/api/conversations/one").status_code == 404


def test_a_pinned_conversation_is_listed_first_until_its_pin_is_taken_off(
    client: FlaskClient,
) -> None:
    for name in ("one", "two"):
        ask(client, f"say:{name}", name)
    address = "/api/conversations/one"
    assert client.post(address, json={"pinned": True}).json["pinned"] is True
    assert [(row["id"], row["pinned"]) for row in listed(client)] == [("one", True), ("two", False)]
    changed = client.post(address, json={"pinned": False, "title": "Both"}).json
    assert changed == {"id": "one", "title": "Both", "pinned": False}
    assert [row["id"] for row in listed(client)] == ["two", "one"]
    for body in ({}, {"pinned": None}, {"pinned": 1}, {"pinned": "yes"}):
        assert client.post(address, json=body).status_code == 400, body
    missing = client.post("/api/conversations/unknown", json={"pinned": True})
    assert missing.status_code == 404


def test_any_id_that_a_client_may_choose_can_be_opened(client: FlaskClient) -> None:
    for identifier in ("a/b", "a%2Fb c", "ünï", "a?b#c", "x" * 200):
        ask(client, "first", identifier)
        address = f"/api/conversations/{quote(identifier, safe='')}"
        assert client.get(address).json["id"] == identifier
        assert client.delete(address).json == {"deleted": identifier}
    for method, body in (("GET", None), ("POST", {"title": "x"}), ("DELETE", None)):
        missing = client.open("/api/conversations/unknown", method=method, json=body)
        assert missing.status_code == 404 and missing.json["error"]["code"] == "not_found"
