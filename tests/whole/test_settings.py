"""Settings: documented, read from where they should be, and refused with a clear line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

from codeqa import environment
from codeqa.environment import env_file
from codeqa.errors import SettingsError
from codeqa.settings import Settings, load_settings, settings_table
from codeqa.store.location import locate, save_location


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_holds_the_table_that_the_settings_generate() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert script("settings_table").with_part(page, "settings") == page, "run `make docs`"


def test_the_api_is_described_with_every_option_of_a_question() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert script("settings_table").with_part(text, "api") == text, "run `make docs`"


def test_every_setting_is_in_the_table_once_with_a_name_and_a_sentence() -> None:
    rows = settings_table()
    assert len({name for name, _, _ in rows}) == len(rows) == len(Settings.model_fields)
    assert all(name.isupper() for name, _, _ in rows)
    assert all(text.endswith(".") and text[0].isupper() for _, _, text in rows)


def test_a_value_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"PORT": "eighty", "THREADS": "0", "MAX_FILE_BYTES": "-1", "LOG_LEVEL": "loud"}
    for name, value in wrong.items():
        with monkeypatch.context() as here:
            here.setenv(f"CODEQA_{name}", value)
            with pytest.raises(SettingsError, match=f"^CODEQA_{name} has a value that cannot"):
                load_settings()


def test_a_given_value_wins_over_the_environment_and_that_over_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert load_settings(port=None).port == 5001
    monkeypatch.setenv("CODEQA_PORT", "5005")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    settings = load_settings(data=tmp_path / "here")
    assert settings.port == 5005 and load_settings(port=5006).port == 5006
    assert settings.openai_api_key.get_secret_value() == "sk-test"
    assert settings.data_dir == tmp_path / "here"
    monkeypatch.delenv("CODEQA_DATA")
    assert load_settings().data_dir.is_relative_to(Path.home())


@pytest.mark.parametrize(
    ("here", "indexed", "read"),
    [
        ("elsewhere", None, True),
        ("elsewhere", "elsewhere", False),
        ("elsewhere/src", "elsewhere", False),
        ("elsewhere", "~", False),
        # A work tree counts as a whole, whatever of it is indexed.
        ("tree", "tree/src", False),
        ("tree", "elsewhere", False),
        ("tree", None, False),
    ],
)
def test_a_dotenv_file_is_read_unless_it_lies_in_a_repository(
    here: str, indexed: str | None, read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tree/.git", "tree/src", "elsewhere/src"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / here / ".env").write_text("CODEQA_PORT=5007\n")
    monkeypatch.chdir(tmp_path / here)
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path / here))
    named = Path("~") if indexed == "~" else indexed and tmp_path / indexed
    assert load_settings(named or None).port == (5007 if read else 5001)


@pytest.mark.parametrize("data_in", ["the environment", "the file"])
def test_a_dotenv_file_below_an_indexed_folder_is_no_configuration_whatever_is_asked(
    data_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, here = tmp_path / "data", tmp_path / "shop/src"
    here.mkdir(parents=True)
    save_location(locate(load_settings(data=data), tmp_path / "shop"))
    (here / ".env").write_text("CODEQA_PORT=5007\n")
    if data_in == "the environment":
        monkeypatch.setenv("CODEQA_DATA", str(data))
    else:
        (here / ".env").write_text(f"CODEQA_PORT=5007\nCODEQA_DATA={data}\n")
    monkeypatch.chdir(here)
    for _ in range(2):
        assert [load_settings(one).port for one in (None, tmp_path / "other")] == [5001, 5001]
        assert env_file() is None or data_in == "the file"
        monkeypatch.setattr(environment, "__file__", str(tmp_path / "codeqa/environment.py"))
        (tmp_path / ".git").mkdir(exist_ok=True)  # now it lies in CodeQA's own checkout


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEQA_TOKEN", "the-token")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("JINA_API_KEY", "jina-secret")
    shown = f"{load_settings()!r} {settings_table()}"
    for secret in ("the-token", "sk-secret", "jina-secret"):
        assert secret not in shown


@pytest.mark.parametrize(("cores", "workers"), [(None, 1), (1, 1), (3, 3), (64, 4)])
def test_each_core_parses_up_to_four_or_as_many_as_are_set(
    cores: int | None, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.settings.os.cpu_count", lambda: cores)
    assert load_settings().worker_count == workers
    assert load_settings(workers=7).worker_count == 7
