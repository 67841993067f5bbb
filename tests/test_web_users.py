"""Several tokens: each is a user of its own, who sees nothing of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser.fakes import FakeEngine
from flask.testing import FlaskClient
from serving import ask, client_of, listed

from codeqa.settings import load_settings

pytest_plugins = ("web_kit",)

ANNA, BELA = "anna's token", "bela's token"


def start(data_dir: Path, fake_engine: FakeEngine, token: str, **more: Any) -> FlaskClient:
    settings = load_settings(data=data_dir, token=token, **more)
    return client_of(settings, fake_engine)


@pytest.fixture
def shared(data_dir: Path, fake_engine: FakeEngine) -> FlaskClient:
    """A client of a server with two tokens."""
    return start(data_dir, fake_engine, f"{ANNA}, {BELA}", host="0.0.0.0")


def bearer(token: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_each_token_is_a_user_of_its_own(shared: FlaskClient, fake_engine: FakeEngine) -> None:
    ask(shared, "mine", "one", **bearer(ANNA))
    ask(shared, "yours", "one", **bearer(BELA))
    anna, bela = (asked["user"] for asked in fake_engine.chat.asked)
    assert anna != bela
    for user in (anna, bela):
        assert user.startswith("token-") and len(user) == len("token-") + 8
        assert user not in (ANNA, BELA)
    assert [c["title"] for c in listed(shared, **bearer(ANNA))] == ["mine"]
    other = bearer(BELA)
    assert [c["title"] for c in listed(shared, **other)] == ["yours"]
    assert shared.delete("/api/conversations/one", **other).status_code == 200
    assert shared.get("/api/conversations/one", **other).status_code == 404
    renamed = shared.post("/api/conversations/one", json={"title": "x"}, **other)
    assert renamed.status_code == 404
    assert [c["title"] for c in listed(shared, **bearer(ANNA))] == ["mine"]


def test_only_the_owner_has_another_model_answer(
    shared: FlaskClient, fake_engine: FakeEngine
) -> None:
    body = {"question": "x", "with_model": "openai/gpt-4o"}
    for address in ("/chat/stream", "/chat", "/"):
        assert shared.post(address, json=body, **bearer(BELA)).status_code == 403
    assert shared.get("/api/models", **bearer(BELA)).json["known"] == []
    assert fake_engine.chat.asked == []
    ask(shared, "x", body=body, **bearer(ANNA))
    assert shared.get("/api/models", **bearer(ANNA)).json["known"][0]["name"] == "openai/gpt-4o"


def test_a_session_belongs_to_the_token_it_was_opened_with(
    shared: FlaskClient, fake_engine: FakeEngine
) -> None:
    ask(shared, "as a program", "one", **bearer(BELA))
    assert shared.post("/login", data={"token": BELA}).headers["Location"] == "/"
    ask(shared, "as a browser", "two")
    assert len({asked["user"] for asked in fake_engine.chat.asked}) == 1
    assert {one["id"] for one in listed(shared)} == {"one", "two"}


def test_tokens_stand_between_commas() -> None:
    assert load_settings(token=" one, with space,,one").tokens == ("one", "with space")
    assert load_settings(token="").tokens == ()


def test_the_tokens_together_are_no_token(shared: FlaskClient) -> None:
    for wrong in (f"{ANNA}, {BELA}", f"{ANNA},", ""):
        refused = shared.get("/api/status", **bearer(wrong))
        assert refused.status_code == 401


def test_a_token_that_is_taken_away_ends_its_sessions_and_no_others(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    cookies = []
    both = f"{ANNA},{BELA}"
    for token in (ANNA, BELA):
        response = start(data_dir, fake_engine, both).post("/login", data={"token": token})
        cookies.append(response.headers["Set-Cookie"].split(";")[0].split("=", 1))
    later = f"a new one,{BELA}"
    ask(start(data_dir, fake_engine, both), "x", "one", **bearer(BELA))
    assert listed(start(data_dir, fake_engine, later), **bearer(BELA))  # the same user as before
    statuses = []
    for cookie in cookies:
        client = start(data_dir, fake_engine, later)
        client.set_cookie(*cookie)
        statuses.append(client.get("/api/status").status_code)
    assert statuses == [401, 200]


def test_servers_with_one_secret_key_take_each_others_sessions_and_others_do_not(
    tmp_path: Path, fake_engine: FakeEngine
) -> None:
    def server(name: str, **more: Any) -> FlaskClient:
        return start(tmp_path / name, fake_engine, ANNA, **more)

    response = server("one", secret_key="0" * 64).post("/login", data={"token": ANNA})
    cookie = response.headers["Set-Cookie"].split(";")[0].split("=", 1)
    statuses = []
    for other in (server("two", secret_key="0" * 64), server("three", secret_key="1" * 64),
                  server("four")):  # fmt: skip
        other.set_cookie(*cookie)
        statuses.append(other.get("/api/status").status_code)
    assert statuses == [200, 401, 401]
