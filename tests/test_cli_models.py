"""`codeqa models`: what there is, a choice, a key that only comes in, a test."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from openai_server import ScriptedServer, failure, openai_server, stream

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with openai_server(lambda path, body: stream(["ready"])) as server:
        yield server


@pytest.fixture
def typed_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{KEY}\n"))


def test_every_provider_is_listed_with_the_state_of_its_key(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    result = codeqa("models")
    assert result.status == 0
    rows = {line.split()[0]: line for line in result.out.splitlines()}
    assert "exported" in rows["groq"] and "https://api.groq.com" in rows["groq"]
    assert "gpt-4o" in rows["openai"] and "https://gateway.example/v1" in rows["openai"]
    assert "unneeded" in rows["ollama"] and "missing" in rows["anthropic"]
    assert "No model is used" in result.err and KEY not in result.out + result.err


def test_a_model_is_used_until_none_is(
    codeqa: Command, server: ScriptedServer, data_dir: Path, typed_key: None
) -> None:
    used = codeqa("models", "use", "custom/m", "--url", server.base_url, "--key-stdin")
    assert used.status == 0, used.err
    assert "custom/m at 127.0.0.1" in used.out
    assert server.exchanges == []  # choosing sends nothing
    shown = codeqa("models")
    assert "In use: custom/m at 127.0.0.1 (picked by the user)" in shown.err
    tested = codeqa("models", "test")
    assert tested.status == 0, tested.err
    assert tested.out.startswith("m at 127.0.0.1 answered in ")
    assert json.loads(codeqa("models", "test", "--json").out)["host"] == "127.0.0.1"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    none = codeqa("models", "none")
    assert none.status == 0 and "nothing is sent" in none.out
    assert "No model is used" in codeqa("models").err
    for result in (used, shown, tested, none):
        assert KEY not in result.out + result.err
    assert (data_dir / "models.json").stat().st_mode & 0o777 == 0o600


def test_a_setting_is_named_as_what_chose_the_model_and_its_key_when_it_is_missing(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_MODEL", "ollama/qwen3")
    shown = codeqa("models")
    assert "In use: ollama/qwen3 at 127.0.0.1 (set by CODEQA_MODEL)" in shown.err
    monkeypatch.setenv("CODEQA_MODEL", "groq")
    shown = codeqa("models")
    assert shown.status == 0 and "There is no key for Groq." in shown.err


def test_a_test_of_a_model_that_fails_is_one_line(codeqa: Command) -> None:
    with openai_server(lambda path, body: failure(401, f"wrong key {KEY}")) as server:
        result = codeqa("models", "test", "custom/m", "--url", server.base_url)
    assert (result.status, result.out) == (1, "")
    assert "127.0.0.1" in result.error and KEY not in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["use", "no-such/model"], "no-such"),
        (["use", "openai/gpt-4o"], "OPENAI_API_KEY"),
        (["use", "custom/m"], "needs an address"),
        (["use", "custom/m", "--url", "ftp://host"], "http://"),
        (["use"], "PROVIDER/NAME"),
        (["test"], "No model is chosen"),
        (["tset"], "tset"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_call_is_bad_usage(arguments: list[str], said: str, codeqa: Command) -> None:
    result = codeqa("models", *arguments)
    assert (result.status, result.out) == (2, "")
    assert said in result.error


@pytest.mark.parametrize("text", ["", "\n", "two words\n", "k\u00e9y\n", "a\x00b\n"])
def test_what_is_no_key_is_refused_without_repeating_it(
    text: str, codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    result = codeqa("models", "use", "groq", "--key-stdin")
    assert result.status == 2 and "key" in result.error
    assert text.strip("\n") == "" or text.strip("\n") not in result.err
    assert "No model is used" in codeqa("models").err
