"""The checks of what is optional: model and reranker. The rest is in test_cli.py."""

from __future__ import annotations

import socket
from pathlib import Path

from codeqa.doctor import Check, examine
from codeqa.llm.models import Models
from codeqa.llm.providers import ModelChoice
from codeqa.settings import Settings, load_settings

KEY = "sk-the-key"


def check(name: str, settings: Settings) -> Check:
    found = next(one for one in examine(settings) if one.name == name)
    assert KEY not in f"{found.detail} {found.hint}"
    return found


def test_a_model_is_named_with_host_and_source_of_key(settings: Settings, data_dir: Path) -> None:
    found = check("model", settings)
    assert found.ok and found.detail.startswith("none chosen; answers quote the code")
    found = check("model", load_settings(model="openai/gpt-4o", openai_api_key=KEY))
    detail = "openai/gpt-4o at api.openai.com, key exported, set by CODEQA_MODEL"
    assert (found.ok, found.detail) == (True, detail)
    Models(settings).choose(ModelChoice("groq", "some-model"), KEY)
    found = check("model", settings)
    detail = "groq/some-model at api.groq.com, key stored, picked by the user"
    assert (found.ok, found.detail) == (True, detail)
    found = check("model", load_settings(model="openai/gpt-4o"))
    assert not found.ok and "There is no key for OpenAI" in found.detail
    assert "OPENAI_API_KEY" in found.hint
    found = check("model", load_settings(model="nobody/nothing"))
    assert not found.ok and found.hint
    (data_dir / "models.json").write_text("{")
    found = check("model", settings)
    assert (found.ok, found.hint) == (False, "Pick the model and enter its key again.")


def test_a_model_is_looked_at_without_asking_its_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        choice = load_settings(model="ollama/m", model_url=f"http://127.0.0.1:{port}/v1")
        found = check("model", choice)
        with socket.create_connection(("127.0.0.1", port)) as own:
            first, address = listening.accept()
            first.close()
            assert address == own.getsockname(), "nobody connected before"
    assert found.ok
    assert found.detail == "ollama/m at 127.0.0.1, key unneeded, set by CODEQA_MODEL"


def test_the_reranker_that_would_be_used_is_named_or_it_is_said_why_not(tmp_path: Path) -> None:
    built_in = check("reranker", load_settings(reranker="built-in"))
    assert built_in == Check("reranker", True, "built-in", "")
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
    assert "The plugin bad.py was skipped: ModuleNotFoundError at bad.py:1." in found.detail
