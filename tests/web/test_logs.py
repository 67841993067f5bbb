"""The log as lines of JSON: what stands in it, and what never does."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import pytest
from chat_kit import ASK, Script
from openai_server import failure
from pydantic import SecretStr
from serving import client_of

from codeqa.engine import Engine
from codeqa.settings import Settings
from codeqa.web.logs import start_log

pytest_plugins = ("chat_fixtures",)

Start = Callable[[Settings], None]
TOKEN, KEY = "anna's-long-token", "sk-proj-Ab0123456789abcdefABCDEF0123456789abcdef"


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Settings], None]]:
    """`start_log` in a process that has no log yet; pytest's own handlers are there otherwise."""

    def started(settings: Settings) -> None:
        monkeypatch.setattr(logging.root, "handlers", [])
        start_log(settings)

    level = logging.root.level
    yield started
    logging.root.setLevel(level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_request_is_logged_with_id_and_digest_and_no_text(
    engine: Engine, script: Script, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"log_format": "json", "log_level": "debug", "token": SecretStr(TOKEN)}
    settings = engine.settings.model_copy(update=changed)
    client = client_of(settings, engine)
    start(settings)
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-Id": "from-the-proxy-1"}
    body = {"question": f"{ASK} {KEY}", "conversation": "the-conversation"}
    answer = client.post("/chat/stream", json=body, headers=headers)
    answer.get_data()
    answer.close()
    assert answer.headers["X-Request-Id"] == "from-the-proxy-1"
    script.replies = [failure(400, f"no: {ASK}")]
    client.post("/chat/stream", json=body, headers=headers).close()
    client.get("/api/search", query_string={"q": ASK}, headers={"X-Request-Id": "a\tb"}).close()
    text = capsys.readouterr().err
    found = [json.loads(line) for line in text.splitlines()]
    asked, _, refused = [one for one in found if one["logger"] == "codeqa.requests"]
    assert asked["request"] == "from-the-proxy-1" and asked["level"] == "info"
    assert (asked["method"], asked["rule"], asked["status"]) == ("POST", "/chat/stream", 200)
    assert len(asked["user"]) == 16 and asked["milliseconds"] >= 0
    assert refused["status"] == 401 and len(refused["request"]) == 32 and "user" not in refused
    user = client.application.extensions["codeqa_gate"].admit(TOKEN, "").id
    for secret in (TOKEN, KEY, "forget the visitor", "the-conversation", user, "q="):
        assert secret not in text


def test_secrets_in_a_message_and_the_words_of_an_exception_are_left_out(
    engine: Engine, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    start(engine.settings.model_copy(update={"log_format": "json"}))
    words = "the question was: where is the vault"
    try:
        raise ValueError(words)
    except ValueError:
        logging.getLogger("somebody").exception("api_key = '%s'", KEY)
    (line,) = lines(capsys)
    assert line["level"] == "error" and line["logger"] == "somebody"
    assert KEY not in str(line) and "vault" not in str(line)
    assert str(line["exception"]).startswith("ValueError")
    assert "test_logs.py" in str(line["exception"])


def test_requests_that_programs_send_all_the_time_are_told_to_who_debugs_alone(
    engine: Engine, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = engine.settings.model_copy(update={"log_format": "json", "log_level": "info"})
    client = client_of(settings, engine)
    start(settings)
    for path in ("/health", "/api/status", "/no-such-page"):
        client.get(path).close()
    assert [line["rule"] for line in lines(capsys)] == ["/api/status", "no address"]
