"""Settings: documented, read from where they should be, and refused with a clear line."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT, Run

from codeqa.errors import SettingsError
from codeqa.settings import Settings, load_settings, settings_table


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_holds_the_table_that_the_settings_generate() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert script("settings_table").with_table(page) == page, "run `make docs`"


@pytest.mark.parametrize("row", settings_table(), ids=lambda row: row[0])
def test_every_setting_has_a_name_and_a_sentence(row: tuple[str, str, str]) -> None:
    name, _, help_text = row
    assert name.isupper()
    assert help_text.endswith(".") and help_text[0].isupper()


def test_every_setting_is_in_the_table_once() -> None:
    names = [name for name, _, _ in settings_table()]
    assert len(names) == len(set(names)) == len(Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CODEQA_PORT", "eighty"),
        ("CODEQA_PORT", "70000"),
        ("CODEQA_THREADS", "0"),
        ("CODEQA_MAX_FILE_BYTES", "-1"),
        ("CODEQA_LOG_LEVEL", "loud"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=f"^{name} has a value that cannot be used: ") as caught:
        load_settings()
    assert caught.value.exit_status == 2


def test_a_command_refuses_a_bad_setting_in_one_line(run_python: Run) -> None:
    done = run_python("-m", "codeqa", "repos", "list", env={"CODEQA_PORT": "eighty"})
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("codeqa: CODEQA_PORT has a value that cannot be used: ")
    assert done.stderr.count("\n") == 1


def test_the_environment_sets_what_the_table_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEQA_PORT", "5005")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    settings = load_settings()
    assert settings.port == 5005
    assert settings.openai_api_key.get_secret_value() == "sk-test"


def test_a_given_value_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEQA_PORT", "5005")
    assert load_settings(port=5006).port == 5006


def test_none_leaves_a_setting_as_it_is() -> None:
    assert load_settings(port=None).port == 5001


def test_a_dotenv_file_of_the_working_directory_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("CODEQA_PORT=5007\n")
    monkeypatch.chdir(tmp_path)
    assert load_settings().port == 5007


@pytest.mark.parametrize("inside", [".", "src"])
def test_a_dotenv_file_of_the_indexed_repository_is_not_read(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / inside
    folder.mkdir(exist_ok=True)
    for place in {tmp_path, folder}:
        (place / ".env").write_text("CODEQA_PORT=5007\n")
    monkeypatch.chdir(folder)
    assert load_settings(tmp_path).port == 5001


@pytest.mark.parametrize("named", ["tree/src", "elsewhere", None])
def test_a_dotenv_file_of_a_work_tree_is_not_read_whatever_is_indexed(
    named: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("tree/.git", "tree/src", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "tree" / ".env").write_text("OPENAI_BASE_URL=http://collector.example\n")
    monkeypatch.chdir(tmp_path / "tree")
    assert load_settings(tmp_path / named if named else None).openai_base_url == ""


def test_a_dotenv_file_of_the_repository_is_not_read_though_its_path_begins_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("CODEQA_PORT=5007\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert load_settings(Path("~")).port == 5001


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEQA_TOKEN", "the-token")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("JINA_API_KEY", "jina-secret")
    shown = f"{load_settings()!r} {settings_table()}"
    for secret in ("the-token", "sk-secret", "jina-secret"):
        assert secret not in shown


def test_the_data_lies_in_the_folder_that_is_set(tmp_path: Path) -> None:
    assert load_settings(data=tmp_path / "here").data_dir == tmp_path / "here"


def test_without_a_setting_the_data_lies_in_the_users_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CODEQA_DATA")
    assert load_settings().data_dir.is_relative_to(Path.home())
