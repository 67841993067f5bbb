"""The language model over HTTP: what there is, a choice, a test, keys that only come in."""

from __future__ import annotations

from typing import Any

from browser.fakes import FakeEngine
from flask.testing import FlaskClient

pytest_plugins = ("web_kit",)

KEY = "sk-very-secret-0123456789"
POSTS = ["/api/models", "/api/models/list", "/api/models/test", "/api/models/forget"]


def post(client: FlaskClient, target: str, **body: Any) -> dict[str, Any]:
    response = client.post(target, json=body)
    assert response.status_code == 200, response.text
    assert KEY not in response.text
    return response.json  # type: ignore[no-any-return]


def provider(overview: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in overview["providers"] if one["name"] == name)


def test_the_overview_asks_nobody(client: FlaskClient, fake_engine: FakeEngine) -> None:
    overview = client.get("/api/models").json
    assert set(overview) == {"current", "providers", "problem", "changeable", "known"}
    assert overview["current"] is None and overview["changeable"] is True
    names = [one["name"] for one in overview["providers"]]
    assert names[0] == "openai" and names[-1] == "custom" and "ollama" in names
    openai = provider(overview, "openai")
    assert openai == {
        "name": "openai", "title": "OpenAI", "host": "api.openai.com", "local": False,
        "key": "exported", "key_variable": "OPENAI_API_KEY", "model": "gpt-4o",
        "needs_address": False,
    }  # fmt: skip
    assert provider(overview, "ollama")["local"] is True
    assert provider(overview, "custom")["needs_address"] is True
    assert fake_engine.models.probed == 0 and fake_engine.models.tested == []


def test_a_chosen_model_is_used_until_none_is_chosen(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    chosen = post(client, "/api/models", provider="openai", model="gpt-4o", key=KEY)
    assert chosen["current"] == {
        "provider": "openai", "title": "OpenAI", "model": "gpt-4o", "address": "",
        "host": "api.openai.com", "local": False, "source": "page", "key": "stored",
        "name": "openai/gpt-4o",
    }  # fmt: skip
    assert client.get("/api/models").json == chosen
    assert fake_engine.models.keys == {"api.openai.com": KEY}
    assert post(client, "/api/models", provider="")["current"] is None
    assert fake_engine.models.current() is None
    forgotten = post(client, "/api/models/forget", provider="openai", model="gpt-4o")
    assert forgotten["current"] is None and fake_engine.models.keys == {}


def test_an_address_on_this_machine_is_said_to_be_local(client: FlaskClient) -> None:
    for address, local in (
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:1/v1", True),
        ("http://192.168.1.9:8000/v1", False),
        ("http://127.0.0.1.evil.example/v1", False),
    ):
        body = {"provider": "custom", "model": "m", "address": address}
        assert post(client, "/api/models", **body)["current"]["local"] is local


BAD_CHOICES: list[dict[str, Any]] = [
    {"provider": "no-such-provider"},
    {"provider": 7},
    {"provider": "openai", "key": ["x"]},
    {"provider": "openai", "key": f"{KEY}\r\nX-Other: 1"},
    {"provider": "openai", "key": f"{KEY}\u00e9"},
    {"provider": "openai", "key": "x" * 4_097},
    {"provider": "openai", "model": {}},
    {"provider": "openai", "model": "x" * 201},
    {"provider": "openai", "address": "http://a\nb"},
    {"provider": "x" * 201},
]


def test_a_bad_choice_is_refused_without_repeating_its_key(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    for address in POSTS:
        for body in BAD_CHOICES:
            refused = client.post(address, json=body)
            assert refused.status_code == 400, body
            assert set(refused.json) == {"error"} and refused.json["error"]["hint"]
            assert KEY not in refused.text
    assert fake_engine.models.current() is None and fake_engine.models.keys == {}
