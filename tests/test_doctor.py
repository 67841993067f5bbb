"""The checks of what is optional: model, reranker and Redis. The rest is in test_cli.py."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from redis_server import free_port, redis_server, server_binaries

from codeqa.doctor import Check, examine
from codeqa.llm.models import Models
from codeqa.llm.providers import ModelChoice
from codeqa.settings import Settings, load_settings

PASSWORD = "the-password"
KEY = "sk-the-key"

pytestmark = pytest.mark.usefixtures("no_grammars")


def check(name: str, settings: Settings) -> Check:
    found = next(one for one in examine(settings) if one.name == name)
    assert PASSWORD not in f"{found.detail} {found.hint}"
    assert KEY not in f"{found.detail} {found.hint}"
    return found


# Redis


@pytest.mark.skipif(not server_binaries(), reason="no Redis server for this system")
def test_a_redis_server_that_works_is_named_and_left_as_it_was(tmp_path: Path) -> None:
    with redis_server(tmp_path / "redis", "--requirepass", PASSWORD) as server:
        url = server.url.replace("//", f"//:{PASSWORD}@")
        found = check("Redis", load_settings(redis_url=url))
        assert found.ok
        assert found.detail.startswith(f"127.0.0.1:{server.port}/0 writes and reads")
        wrong = check("Redis", load_settings(redis_url=server.url))
        assert not wrong.ok and "AuthenticationError" in wrong.detail
    with redis_server(tmp_path / "open") as server:
        assert check("Redis", load_settings(redis_url=server.url)).ok
        assert server.command("DBSIZE") == ":0\r\n"


def test_redis_is_checked_where_it_is_set_and_a_server_that_is_not_there_is_said(
    settings: Settings,
) -> None:
    assert "Redis" not in [one.name for one in examine(settings)]
    found = check("Redis", load_settings(redis_url=f"redis://:{PASSWORD}@127.0.0.1:{free_port()}"))
    assert not found.ok and found.detail.endswith("does not work: Connection refused.")
    assert found.hint.startswith("Start it, or correct REDIS_URL; until then follow-ups")
    found = check("Redis", load_settings(redis_url=f"http://:{PASSWORD}@localhost"))
    assert (found.ok, found.detail) == (False, "REDIS_URL is no address of a Redis server.")


def test_a_redis_server_that_is_silent_does_not_hold_up_the_doctor(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"redis://127.0.0.1:{listening.getsockname()[1]}"
        found = check("Redis", load_settings(data=settings.data_dir, redis_url=url))
    assert not found.ok and found.detail.endswith("does not work: TimeoutError.")


# Model


def test_a_model_is_named_with_host_and_source_of_its_key(
    settings: Settings, data_dir: Path
) -> None:
    found = check("model", settings)
    assert found.ok and found.detail.startswith("none chosen; answers are put together")
    found = check("model", load_settings(model="openai/gpt-4o", openai_api_key=KEY))
    assert (found.ok, found.detail) == (
        True,
        "openai/gpt-4o at api.openai.com, key exported, set by CODEQA_MODEL",
    )
    Models(settings).choose(ModelChoice("groq", "some-model"), KEY)
    found = check("model", settings)
    assert (found.ok, found.detail) == (
        True,
        "groq/some-model at api.groq.com, key stored, picked by the user",
    )
    (data_dir / "models.json").write_text("{")
    found = check("model", settings)
    assert (found.ok, found.hint) == (False, "Pick the model and enter its key again.")


def test_a_missing_key_and_an_unknown_provider_are_said() -> None:
    found = check("model", load_settings(model="openai/gpt-4o"))
    assert not found.ok and "There is no key for OpenAI" in found.detail
    assert "OPENAI_API_KEY" in found.hint
    found = check("model", load_settings(model="nobody/nothing"))
    assert not found.ok and found.hint


def test_a_model_is_looked_at_without_asking_its_server() -> None:
    calls: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)

        def accept() -> None:
            while True:
                try:
                    calls.append(listening.accept())
                except OSError:
                    return

        waiting = threading.Thread(target=accept)
        waiting.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        found = check("model", load_settings(model="ollama", model_url=url))
        waiting.join()
    assert found.ok
    assert found.detail == (
        "ollama, the first of its models, at 127.0.0.1, key unneeded, set by CODEQA_MODEL"
    )
    assert calls == []


def test_the_reranker_that_would_be_used_is_named_or_it_is_said_why_not(tmp_path: Path) -> None:
    found = check("reranker", load_settings(reranker="built-in"))
    assert found == Check("reranker", True, "built-in", "")
    assert check("reranker", load_settings()).ok
    found = check("reranker", load_settings(reranker=str(tmp_path / "no-checkpoint")))
    assert not found.ok and found.detail and found.hint


def test_hooks_are_named_in_order_and_a_plugin_that_is_left_out_fails(tmp_path: Path) -> None:
    mine = "from codeqa.chat.hooks import Hooks\n@Hooks.after_generation\ndef say(text): ...\n"
    (tmp_path / "mine.py").write_text(mine)
    settings = load_settings(plugins=str(tmp_path))
    found = check("hooks", settings)
    assert found.ok and found.detail.endswith("after_generation mine.py:say")
    (tmp_path / "bad.py").write_text("import no_such_package\n")
    found = check("hooks", settings)
    assert not found.ok
    assert "The plugin bad.py was left out: ModuleNotFoundError at bad.py:1." in found.detail
