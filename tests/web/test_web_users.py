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


def cookie_of(client: FlaskClient, token: str) -> list[str]:
    """Name and value of the cookie of who signs in."""
    response = client.post("/login", data={"token": token})
    return response.headers["Set-Cookie"].split(";")[0].split("=", 1)


def status_with(client: FlaskClient, cookie: list[str]) -> int:
    client.set_cookie(*cookie)
    return client.get("/api/status").status_code


def bearer(token: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {token}"}}


def test_each_token_is_a_user_of_its_own_also_in_a_browser(
    shared: FlaskClient, fake_engine: FakeEngine
) -> None:
    ask(shared, "mine", "one", **bearer(ANNA))
    ask(shared, "yours", "one", **bearer(BELA))
    anna, bela = (asked["user"] for asked in fake_engine.chat.asked)
    assert anna != bela
    for user in (anna, bela):
        assert user.startswith("token-") and len(user) == len("token-") + 8
        assert user not in (ANNA, BELA)
    other = bearer(BELA)
    browser = shared.application.test_client()
    assert browser.post("/login", data={"token": BELA}).headers["Location"] == "/"
    ask(browser, "in a browser", "two")
    assert fake_engine.chat.asked[-1]["user"] == bela, "a session is its token's"
    for titles in (listed(shared, **other), listed(browser)):
        assert {one["title"] for one in titles} == {"yours", "in a browser"}
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


def test_tokens_stand_between_commas_and_are_together_none(shared: FlaskClient) -> None:
    assert load_settings(token=" one, with space,,one").tokens == ("one", "with space")
    assert load_settings(token="").tokens == ()
    for wrong in (f"{ANNA}, {BELA}", f"{ANNA},", ""):
        assert shared.get("/api/status", **bearer(wrong)).status_code == 401


def test_a_token_that_is_taken_away_ends_its_sessions_and_no_others(
    data_dir: Path, fake_engine: FakeEngine
) -> None:
    before = start(data_dir, fake_engine, f"{ANNA},{BELA}")
    cookies = [cookie_of(before, token) for token in (ANNA, BELA)]
    ask(before, "x", "one", **bearer(BELA))
    later = start(data_dir, fake_engine, f"a new one,{BELA}")
    assert listed(later, **bearer(BELA))  # the same user as before
    assert [status_with(later, cookie) for cookie in cookies] == [401, 200]


def test_servers_with_one_secret_key_take_each_others_sessions_and_others_do_not(
    tmp_path: Path, fake_engine: FakeEngine
) -> None:
    def server(name: str, **more: Any) -> FlaskClient:
        return start(tmp_path / name, fake_engine, ANNA, **more)

    cookie = cookie_of(server("one", secret_key="0" * 64), ANNA)
    others = server("two", secret_key="0" * 64), server("three", secret_key="1" * 64), server("4")
    assert [status_with(other, cookie) for other in others] == [200, 401, 401]
