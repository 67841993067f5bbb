"""Which model is used, with which key, at which address; and what a server offers."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from codeqa.errors import ModelError, SettingsError, UsageError
from codeqa.llm.client import TOOLS_SECONDS
from codeqa.llm.models import FILE_NAME, Models
from codeqa.llm.providers import PROVIDERS, ModelChoice, ModelProvider, parse_choice, provider_named
from codeqa.settings import Settings, load_settings
from tests.kit.openai_server import Reply, openai_server, stream
from tests.kit.waiting import Clock

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

MESSAGES = [{"role": "user", "content": "hi"}]
KEY = "sk-test-0123456789abcdef"


Make = Callable[..., Models]


@pytest.fixture
def make(data_dir: Path) -> Make:
    """`make(model=…, groq_api_key=…)`: Models over settings with the data in `data_dir`."""

    def models(**values: Any) -> Models:
        return Models(load_settings(data=data_dir, **values))

    return models


# The table of providers


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_a_provider_is_either_here_and_free_or_elsewhere_safe_and_with_a_key(
    provider: ModelProvider,
) -> None:
    fields = {str(name).upper() for name in Settings.model_fields}
    if provider.local:
        assert "//127.0.0.1:" in provider.base_url and not provider.key_variable and provider.start
    else:
        assert provider.base_url.startswith("https://")
        assert provider.key_variable in fields
        assert provider.chat_model and provider.small_model
    assert not provider.base_url.endswith("/")
    assert provider_named(provider.name.upper()) is provider


# Choices


def test_a_choice_is_read_or_refused() -> None:
    for text, expected in (
        ("openrouter/openai/gpt-4o", ModelChoice("openrouter", "openai/gpt-4o")),
        (" OpenAI ", ModelChoice("openai", "gpt-4o")),
    ):
        assert parse_choice(text) == parse_choice(str(expected)) == expected
    for text in ("", "/", "gpt-4o", "nobody/x", "ollama", "openai/a\nb", "openai/" + "x" * 300):
        with pytest.raises(UsageError) as caught:
            parse_choice(text)
        assert caught.value.hint


def test_an_address_has_one_spelling_and_is_kept_only_where_it_differs() -> None:
    for address, expected in {
        "http://Box:8080/v1/": "http://box:8080/v1",
        "https://x.example:443/v1/chat/completions": "https://x.example/v1",
        "https://x.example/v1//chat/completions/": "https://x.example/v1",
        "https://x.example/v1/responses": "https://x.example/v1",
        "http://127.0.0.1:11434/v1": "",
        "http://gpu:11434": "http://gpu:11434/v1",
        " http://[::1]:8000/v1 ": "http://[::1]:8000/v1",
    }.items():
        assert parse_choice("ollama/qwen3", address).address == expected


def test_what_is_no_address_is_refused_without_repeating_it() -> None:
    for address in (
        "box:8080", "ftp://box/v1", "http://", "http://user:secret-word@box/v1", "http://box:99999/",
        "http://box/v1?key=secret-word", "http://bo x/", "http://box/#secret-word", "javascript:1",
        "http://[::1/v1", "http://box/\u202ev1", "http://\u24dbocalhost/v1", "http://%00/v1",
        "http://box\\.openai.com/v1",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="address") as caught:
            parse_choice("custom/m", address)
        assert "secret-word" not in str(caught.value)


# Which is in force


def test_nothing_is_chosen_at_first_whatever_is_exported(make: Make) -> None:
    models = make(openai_api_key=KEY, groq_api_key=KEY)
    assert models.current() is None and models.source() == ""
    assert models.answer_model() is None
    assert models.key_state(ModelChoice("groq", "x")) == "exported"


def test_a_setting_chooses_and_a_pick_takes_its_place_until_it_changes(make: Make) -> None:
    assert make(model="ollama/qwen3").source() == "setting"
    make(model="ollama/qwen3").choose(ModelChoice("ollama", "gemma3"))
    again = make(model="ollama/qwen3")
    assert (again.current(), again.source()) == (ModelChoice("ollama", "gemma3"), "page")
    changed = make(model="ollama/llama3")
    assert (changed.current(), changed.source()) == (ModelChoice("ollama", "llama3"), "setting")
    moved = make(model="ollama/qwen3", model_url="http://gpu:11434/v1")
    assert moved.source() == "setting"
    assert make(model="ollama/qwen3").current() == ModelChoice("ollama", "gemma3")
    assert make(model="none").current() is None and make(model="none").answer_model() is None
    make(model="ollama/qwen3").choose(None)
    without = make(model="ollama/qwen3")
    assert without.current() is None and without.source() == "page"
    assert without.answer_model() is None


def test_a_commands_own_choice_comes_before_pick_and_setting(make: Make) -> None:
    make(model="ollama/qwen3").choose(ModelChoice("ollama", "gemma3"))
    models = make(model="ollama/qwen3")
    models.prefer("ollama/qwen3")
    assert models.current() == ModelChoice("ollama", "qwen3")
    assert make(model="ollama/qwen3").current() == ModelChoice("ollama", "gemma3")
    models.choose(ModelChoice("ollama", "llama3"))  # what is picked later
    assert models.current() == ModelChoice("ollama", "llama3")


def test_a_commands_choice_of_the_provider_in_use_is_asked_at_the_address_in_use(
    make: Make,
) -> None:
    models = make(model="no-such/model")
    models.choose(ModelChoice("custom", "m", "http://10.0.0.5:8000/v1"), KEY)
    models.prefer("custom/other")
    assert models.answer_model().address.base_url == "http://10.0.0.5:8000/v1"  # type: ignore[union-attr]
    assert models.address(models.current()).key == KEY  # type: ignore[arg-type]
    models.prefer("ollama/qwen3")
    assert models.current() == ModelChoice("ollama", "qwen3")
    with pytest.raises(UsageError, match="needs an address"):
        make().prefer("custom/other")


def test_an_impossible_setting_is_said(make: Make) -> None:
    with pytest.raises(SettingsError, match=r"CODEQA_MODEL .* no model provider 'gpt-4o'"):
        make(model="gpt-4o").current()
    with pytest.raises(SettingsError, match="needs an address"):
        make(model="custom/m").answer_model()


# Addresses and keys


def test_the_settings_address_is_that_of_the_provider_which_the_setting_names(make: Make) -> None:
    models = make(model="openai/gpt-4o", model_url="http://gpu:8000/v1", model_key="for-gpu")
    target = models.address(ModelChoice("openai", "o3"))
    assert (target.base_url, target.key, target.host) == ("http://gpu:8000/v1", "for-gpu", "gpu")
    assert models.address(ModelChoice("ollama", "m")).host == "127.0.0.1"
    assert make(model_url="http://gpu:1/v1").address(ModelChoice("custom", "m")).host == "gpu"


def test_an_exported_key_goes_to_its_own_provider_only(make: Make) -> None:
    models = make(groq_api_key=KEY, openai_api_key="for-openai")
    assert models.address(ModelChoice("groq", "m")).key == KEY
    elsewhere = models.address(ModelChoice("groq", "m", "https://collector.example/v1"))
    assert elsewhere.key == ""
    same_name = models.address(ModelChoice("groq", "m", "http://api.groq.com/openai/v1"))
    assert same_name.key == ""  # unencrypted is another place
    custom = models.address(ModelChoice("custom", "m", "https://api.groq.com/openai/v1"))
    assert custom.key == ""
    set_elsewhere = make(model="openai/m", model_url="http://gpu:1/v1", openai_api_key=KEY)
    assert set_elsewhere.address(ModelChoice("openai", "m")).key == ""
    with pytest.raises(SettingsError, match="Cerebras") as caught:
        models.address(ModelChoice("cerebras", "m"))
    assert "CEREBRAS_API_KEY" in caught.value.hint


def test_openais_address_of_the_environment_is_openais(make: Make) -> None:
    models = make(openai_base_url="http://gpu:1/v1/", openai_api_key=KEY)
    target = models.address(ModelChoice("openai", "m"))
    assert (target.base_url, target.key) == ("http://gpu:1/v1", KEY)
    assert make(openai_base_url="http://gpu:1/v1").address(ModelChoice("openai", "m")).key == ""


def test_a_key_is_kept_for_the_place_that_it_was_given_for(make: Make) -> None:
    models = make()
    box = ModelChoice("custom", "m", "http://box:8000/v1")
    models.choose(box, f" {KEY}\n")
    assert models.address(box).key == KEY
    assert models.address(ModelChoice("vllm", "other", "http://box:8000")).key == KEY
    for other in ("http://box:8001/v1", "https://box:8000/v1", "http://box.example:8000/v1"):
        assert models.address(ModelChoice("custom", "m", other)).key == ""
    models.forget_key(box)
    assert make().key_state(box) == "unneeded" and models.address(box).key == ""


def test_a_key_that_is_given_comes_before_a_kept_one_and_that_before_an_exported_one(
    make: Make,
) -> None:
    models = make(groq_api_key="exported-key")
    groq = ModelChoice("groq", "m")
    assert (models.address(groq).key, models.key_state(groq)) == ("exported-key", "exported")
    models.choose(groq, "kept-key")
    assert (models.address(groq).key, models.key_state(groq)) == ("kept-key", "stored")
    assert models.address(groq, "given-key").key == "given-key"
    models.choose(groq)
    assert models.address(groq).key == "kept-key"  # choosing without a key forgets none


def test_a_model_without_the_key_that_it_needs_cannot_be_chosen(make: Make) -> None:
    models = make()
    assert models.key_state(ModelChoice("ollama", "")) == "unneeded"
    assert models.key_state(ModelChoice("mistral", "")) == "missing"
    with pytest.raises(SettingsError):
        models.choose(ModelChoice("mistral", "m"))
    assert models.current() is None


def test_a_key_that_no_header_takes_is_refused_without_repeating_it(make: Make) -> None:
    for key in ("two words", "zwölf", "line\nbreak", "x" * 5000):
        with pytest.raises(UsageError, match="key") as caught:
            make().choose(ModelChoice("groq", "m"), key)
        assert key not in str(caught.value)
        with pytest.raises(UsageError, match="key") as exported:
            make(groq_api_key=key).address(ModelChoice("groq", "m"))
        assert key not in str(exported.value)


def test_no_key_shows_in_any_representation(make: Make) -> None:
    models = make()
    models.choose(ModelChoice("groq", "m"), KEY)
    model = models.answer_model()
    assert model is not None
    shown = [model, model.address, models, models.current(), models._saved()]
    assert KEY not in "".join(map(repr, shown)) and KEY not in "".join(map(str, shown))


# The file


def test_the_file_is_for_its_owner_alone_from_its_first_byte(
    make: Make, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real = os.open

    def watching(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        number = real(path, flags, mode, **options)
        if str(path).startswith(str(data_dir)):
            modes.append(stat.S_IMODE(os.fstat(number).st_mode))
        return number

    monkeypatch.setattr(os, "open", watching)
    old = os.umask(0)
    try:
        make().choose(ModelChoice("groq", "m"), KEY)
    finally:
        os.umask(old)
    path = data_dir / FILE_NAME
    assert set(modes) == {0o600}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert {entry.name for entry in data_dir.iterdir()} <= {FILE_NAME, "models.lock"}
    path.chmod(0o644)  # as a restored backup may leave it
    assert make().address(ModelChoice("groq", "m")).key == KEY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b'{"pick": {}}', b"[" * 100_000])
def test_a_damaged_file_is_said_and_not_fatal(content: bytes, make: Make, data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / FILE_NAME).write_bytes(content)
    (data_dir / FILE_NAME).chmod(0o644)
    models = make(model="ollama/qwen3")
    assert models.current() == ModelChoice("ollama", "qwen3")
    assert FILE_NAME in models.problem()
    models.choose(ModelChoice("ollama", "gemma3"))
    assert models.problem() == "" and models.current() == ModelChoice("ollama", "gemma3")
    damaged = data_dir / "models.damaged"  # which may hold keys
    assert damaged.read_bytes() == content
    assert stat.S_IMODE(damaged.stat().st_mode) == 0o600


def test_many_writers_lose_no_key(make: Make) -> None:
    choices = [ModelChoice("custom", "m", f"http://box-{number}/v1") for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda choice: make().choose(choice, KEY), choices))
    assert [make().address(choice).key for choice in choices] == [KEY] * 8


# Models


def test_known_are_those_in_use_picked_before_or_with_a_key_and_no_other_is_called(
    make: Make,
) -> None:
    assert make().known() == {}
    models = make(openai_api_key=KEY, model="ollama/qwen3")
    assert list(models.known()) == ["ollama/qwen3", "openai/gpt-4o"]
    models.choose(ModelChoice("custom", "m", "http://10.0.0.5/v1"))
    models.choose(ModelChoice("groq", "big"), KEY)
    models.choose(None)
    known = ["groq/big", "custom/m", "openai/gpt-4o", "groq/openai/gpt-oss-120b"]
    assert list(models.known()) == known
    model = models.called("custom/m")
    assert model is not None and model.address.base_url == "http://10.0.0.5/v1"
    assert models.called("") is None
    models.forget_key(ModelChoice("groq", "big"))
    for name in ("groq/big", "custom/other", "http://10.0.0.5/v1", "custom"):
        with pytest.raises(UsageError, match="not set up"):
            models.called(name)


def test_a_model_is_connected_once_and_kept_for_the_next_turn(make: Make) -> None:
    with openai_server() as server:
        models = make(model="custom/m", model_url=server.base_url)
        first = models.answer_model()
        assert first is not None and first is models.answer_model()
        assert next(iter(first.stream(MESSAGES))) == "Hello"
        models.choose(ModelChoice("custom", "m", server.base_url), KEY)
        second = models.answer_model()
        assert second is not None and second is not first
        list(second.stream(MESSAGES))
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
        models.close()


def test_models_are_listed_once_each_and_none_that_a_terminal_would_obey(make: Make) -> None:
    odd = ["\x1b]0;owned\x07", "a\nb", "  ", "x" * 5_000, "\u202elanigiro"]
    with openai_server(models=["gpt-4o", *odd, "whisper-1", "gpt-4o"]) as server:
        choice = ModelChoice("custom", "", server.base_url)
        assert make().list_models(choice, KEY) == ["gpt-4o", "whisper-1"]
        assert server.exchanges[0].headers["authorization"] == f"Bearer {KEY}"
        assert server.exchanges[0].path == "/v1/models"
        server.pages["/v1/models"] = {"object": "list", "data": None}  # Ollama's empty one
        assert make().list_models(choice) == []


def test_a_list_that_is_refused_or_is_none_says_so(make: Make) -> None:
    with openai_server() as server, pytest.raises(ModelError, match="not a chat API"):
        make().list_models(ModelChoice("custom", "", f"{server.base_url}/nothing"))
    with pytest.raises(ModelError, match="cannot be reached"):
        make().list_models(ModelChoice("custom", "", server.base_url))


def test_a_test_says_how_long_a_word_took(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("codeqa.llm.models.time", clock)

    def script(path: str, body: dict[str, Any]) -> Reply:
        clock.advance(0.125)
        return stream(["ready"])

    with openai_server(script) as server:
        tested = make().test(ModelChoice("custom", "m9", server.base_url), KEY)
    assert tested == {"model": "m9", "host": "127.0.0.1", "milliseconds": 125}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_model_that_seemed_to_refuse_tools_is_offered_them_again_after_an_hour(
    data_dir: Path,
) -> None:
    now = 0.0
    models = Models(load_settings(data=data_dir, groq_api_key=KEY), clock=lambda: now)
    model = models.answer_model(ModelChoice("groq", "some-model"))
    assert model and not model.refuses_tools
    model.note_refused_tools()
    now = TOOLS_SECONDS - 1
    model.note_refused_tools()  # an answer meanwhile, with looks as lines, is no new suspicion
    assert models.answer_model(ModelChoice("groq", "some-model")) is model
    assert model.refuses_tools
    now = TOOLS_SECONDS + 1
    assert not model.refuses_tools
    other = models.answer_model(ModelChoice("groq", "other-model"))
    assert other and not other.refuses_tools
