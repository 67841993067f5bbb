"""Thumbs over HTTP to a real engine: given, refused, kept, and gone with their answer."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from cli_shop import QUESTION, copied_settings
from flask.testing import FlaskClient
from pydantic import SecretStr
from werkzeug.test import TestResponse

from codeqa.settings import Settings
from codeqa.state import State
from codeqa.web.app import create_app
from research.evals.search.thumbs import CitedLines, thumbs_given

pytest_plugins = ("cli_shop",)

ANNA, BELA = "anna's token", "bela's token"


@dataclass(frozen=True)
class Client:
    """Somebody who talks to the server with a token of their own."""

    flask: FlaskClient
    token: str

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> TestResponse:
        sent = {"data": body, "content_type": "application/json"}
        sent = sent if isinstance(body, bytes) else {"json": body}
        headers = {"Authorization": f"Bearer {self.token}"}
        return self.flask.open(path, method=method, headers=headers, **{**sent, **more})

    def ask(self, question: str = QUESTION, conversation: str = "c", **more: Any) -> str:
        """The id of the turn."""
        body = {"question": question, "conversation": conversation, **more}
        return str(self.send("POST", "/chat", body).json["turn"])  # type: ignore[index]

    def rate(self, turn: str, value: Any, reason: Any = "") -> TestResponse:
        body = {"value": value, "reason": reason}
        return self.send("POST", f"/api/turns/{quote(turn, safe='')}/feedback", body)

    def shown(self, conversation: str = "c") -> list[Any]:
        opened: Any = self.send("GET", f"/api/conversations/{conversation}").json
        return [turn["feedback"] for turn in opened["turns"]]


@pytest.fixture(scope="module")
def shop_settings(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    token, folder = SecretStr(f"{ANNA},{BELA}"), tmp_path_factory.mktemp("thumbs")
    return copied_settings(shop, folder, threads=8, token=token, hyde="off")


@pytest.fixture(scope="module")
def shared(shop: Path, shop_settings: Settings) -> Iterator[FlaskClient]:
    app = create_app(shop_settings, shop)
    yield app.test_client()
    app.extensions["codeqa"].close()


@pytest.fixture
def flask(shared: FlaskClient) -> Iterator[FlaskClient]:
    """One server for all of these tests; nobody has a conversation when one begins."""
    yield shared
    for token in (ANNA, BELA):
        Client(shared, token).send("DELETE", "/api/privacy/everything")


@pytest.fixture
def anna(flask: FlaskClient) -> Client:
    return Client(flask, ANNA)


@pytest.fixture
def bela(flask: FlaskClient) -> Client:
    return Client(flask, BELA)


@pytest.fixture
def state(shop_settings: Settings) -> State:
    return State(shop_settings.data_dir)


def kept(state: State, client: Client) -> list[tuple[str, int, str]]:
    repository = client.send("GET", "/api/status").json["id"]
    return [(one.turn_id, one.value, one.reason) for one in thumbs_given(state, repository)]


def test_a_thumb_is_kept_shown_and_taken_back(anna: Client, state: State) -> None:
    turn = anna.ask()
    assert anna.shown() == [{"value": 0, "reason": ""}]
    assert anna.rate(turn, 1).json == {"turn": turn, "value": 1, "reason": ""}
    assert anna.rate(turn, -1, " no\nsuch line ").json == {
        "turn": turn, "value": -1, "reason": "no\nsuch line"
    }  # fmt: skip
    assert anna.shown() == [{"value": -1, "reason": "no\nsuch line"}]
    assert kept(state, anna) == [(turn, -1, "no\nsuch line")]
    assert anna.rate(turn, 0, "left over").json == {"turn": turn, "value": 0, "reason": ""}
    assert anna.shown() == [{"value": 0, "reason": ""}] and kept(state, anna) == []


def test_a_thumb_stands_on_the_code_that_the_answer_cites_or_was_made_from(
    anna: Client, state: State
) -> None:
    turn = anna.ask()
    assert anna.rate(turn, 1).status_code == 200
    (thumb,) = thumbs_given(state, anna.send("GET", "/api/status").json["id"])
    assert thumb.question == "how is an article put into the basket?" and thumb.searched
    assert CitedLines("store/basket.py", 7, 9) in thumb.cited
    # Where nothing is cited it stands on what was sent.
    sent = anna.send("GET", f"/api/context/{turn}").json["chunks"]
    ((user,),) = state.turns._database.rows("SELECT user FROM turn")
    answered = state.turns.get(turn, user)
    assert answered is not None
    state.turns.save(replace(answered, details={**answered.details, "citations": []}))
    (thumb,) = thumbs_given(state, anna.send("GET", "/api/status").json["id"])
    expected = tuple(CitedLines(one["path"], one["start_line"], one["end_line"]) for one in sent)
    assert thumb.cited == expected != ()


def test_only_the_owner_of_an_answer_gives_it_a_thumb(
    anna: Client, bela: Client, state: State
) -> None:
    turn = anna.ask()
    bela.ask()
    refused = bela.rate(turn, -1, "mine now")
    assert refused.status_code == 404 and refused.json["error"]["code"] == "not_found"
    assert anna.rate(turn, 1).status_code == 200
    assert bela.rate(turn, 0).status_code == 404
    assert kept(state, anna) == [(turn, 1, "")]
    assert anna.shown() == [{"value": 1, "reason": ""}]
    assert bela.shown() == [{"value": 0, "reason": ""}]
    assert Client(anna.flask, "nobody").rate(turn, 1).status_code == 401


def test_what_is_no_thumb_or_reason_or_object_is_refused(anna: Client) -> None:
    turn = anna.ask()
    for value in (2, -2, 1.0, True, "1", None, [1], {}):
        refused = anna.rate(turn, value)
        assert refused.status_code == 400 and refused.json["error"]["hint"], value
    for reason in ("x" * 2_001, 7, ["a"]):
        refused = anna.rate(turn, -1, reason)
        assert refused.status_code == 400 and "reason" in refused.json["error"]["message"], reason
    path = f"/api/turns/{turn}/feedback"
    for body, status in ((b"", 400), (b"[1]", 400), (b"{", 400), (b"x" * 1_000_001, 413)):
        assert anna.send("POST", path, body).status_code == status
    form = "application/x-www-form-urlencoded"
    assert anna.send("POST", path, b"value=1", content_type=form).status_code == 415
    assert anna.send("GET", path).status_code == 405
    for unknown in ("unknown", "x" * 500, "' OR 1=1 --", "ünï\u2028", "\x00"):
        assert anna.rate(unknown, 1).status_code == 404
    assert anna.shown() == [{"value": 0, "reason": ""}]
    assert anna.send("POST", path, {"value": -1}).status_code == 200
    assert anna.shown() == [{"value": -1, "reason": ""}]


def test_a_secret_in_a_reason_is_masked_and_nothing_of_it_is_logged(
    anna: Client, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sk-proj-" + "a1B2c3D4" * 6
    turn = anna.ask()
    with caplog.at_level(logging.DEBUG):
        anna.rate(turn, -1, f'It shows api_key = "{key}"')
    (shown,) = anna.shown()
    assert shown["reason"].startswith("It shows") and key not in shown["reason"]
    assert key not in caplog.text and "It shows" not in caplog.text


def test_a_thumb_stays_with_its_version_of_an_answer_and_goes_with_the_conversation(
    anna: Client, state: State
) -> None:
    first = anna.ask()
    anna.rate(first, -1)
    second = anna.ask(replaces=first)
    anna.rate(second, 1)
    assert sorted(kept(state, anna)) == sorted([(first, -1, ""), (second, 1, "")])
    assert anna.shown() == [{"value": 1, "reason": ""}]  # the version in use
    other = anna.ask(conversation="d")
    anna.rate(other, -1)
    assert anna.send("DELETE", "/api/conversations/c").status_code == 200
    assert kept(state, anna) == [(other, -1, "")]
    assert anna.rate(first, 1).status_code == anna.rate(second, 1).status_code == 404
