from __future__ import annotations

import socket

import pytest

from codeqa import llm
from codeqa.errors import ModelError, SettingsError
from codeqa.settings import Settings
from tests.openai_server import completion, failure, openai_server

MESSAGES = [{"role": "user", "content": "hi"}]


def test_a_completion_comes_back_over_http() -> None:
    with openai_server(lambda path, body: completion(f"{body['model']} says hi")) as server:
        complete = llm.connect(llm.Endpoint(server.base_url, "m1", "key-1"))
        assert complete(MESSAGES, 40) == "m1 says hi"
    path, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert body["messages"] == MESSAGES and body["max_tokens"] == 40
    assert server.headers[0]["authorization"] == "Bearer key-1"


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "refused the key"), (404, "no model 'm1'"), (400, "status 400"), (429, "rate")],
)
def test_a_refusal_becomes_a_sentence_with_a_next_step(
    status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "RETRIES", 0)
    with openai_server(lambda path, body: failure(status)) as server:
        complete = llm.connect(llm.Endpoint(server.base_url, "m1", "k"))
        with pytest.raises(ModelError, match=said) as caught:
            complete(MESSAGES, 4)
    assert caught.value.hint
    assert "127.0.0.1" in caught.value.message


def test_a_rate_limit_is_waited_out() -> None:
    replies = [failure(429, headers={"Retry-After": "0.01"}), completion("at last")]
    with openai_server(lambda path, body: replies.pop(0)) as server:
        complete = llm.connect(llm.Endpoint(server.base_url, "m1", "k"))
        assert complete(MESSAGES, 4) == "at last"
    assert len(server.requests) == 2


def test_an_unreachable_host_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "RETRIES", 0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    complete = llm.connect(llm.Endpoint(f"http://127.0.0.1:{port}/v1", "m1", "k"))
    with pytest.raises(ModelError, match="cannot be reached"):
        complete(MESSAGES, 4)


def test_without_key_or_address_the_settings_to_make_are_named() -> None:
    settings = Settings(openai_api_key="", openai_base_url="")
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        llm.endpoint(settings, "m")


def test_a_key_is_never_shown() -> None:
    settings = Settings(openai_api_key="sk-very-secret", openai_base_url="")
    assert "very-secret" not in repr(settings)
    target = llm.endpoint(settings, "m")
    assert target.host == "api.openai.com"
    assert "very-secret" not in repr(target)
