"""`--json` of every command, and what a shell completes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from conftest import Run

from codeqa.cli.main import cli, main
from codeqa.cli.tools import TOOL_COMMANDS

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

WITHOUT = {"completion", "mcp", "serve", "watch"}
"""Commands that go on until they are ended, or print a script."""
ELSEWHERE = {"doctor": "test_cli", "models test": "test_cli_models"}
"""What takes long or a server, and where its JSON is read; that of the tools is in test_tools."""

COMMANDS = [
    "index my-shop", "search article", "ask article --no-model",
    "models", "models use ollama/x", "models none", "repos list",
    "repos rename my-shop Baskets", "sync Baskets",
    "review --title basket --no-model", "privacy show", "privacy delete everything --yes",
    "repos remove my-shop --yes",
]  # fmt: skip


def leaves(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        made = group.get_command(context, name)
        assert made is not None
        if isinstance(made, click.Group):
            yield from leaves(made, f"{before}{name} ")
            if not made.invoke_without_command:
                continue
        yield f"{before}{name}", made


def test_what_each_command_prints_as_json_is_json(
    copied_codeqa: Command, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    for words in COMMANDS:
        arguments = [str(shop) if word == "my-shop" else word for word in words.split()]
        result = copied_codeqa(*arguments, "--json")
        assert json.loads(result.out) is not None, words
        assert result.status == 0, (words, result.err)


def test_every_command_that_has_something_to_tell_tells_it_as_json() -> None:
    called = {
        name for name, _ in leaves(cli) if any(f"{c} ".startswith(f"{name} ") for c in COMMANDS)
    }
    for name, made in leaves(cli):
        has = any("--json" in parameter.opts for parameter in made.params)
        assert has == (name not in WITHOUT), name
        assert not has or name in called | set(ELSEWHERE) | set(TOOL_COMMANDS), name


def completed(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    capsys.readouterr()
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    monkeypatch.setenv("_CODEQA_COMPLETE", "bash_complete")
    assert main() == 0
    return capsys.readouterr().out.splitlines()


def test_a_shell_completes_commands_tools_options_and_repositories(
    shop_codeqa: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run_python: Run,
) -> None:
    for words, expected in {
        "codeqa comp": ["plain,completion"],
        "codeqa outl": ["plain,outline"],
        "codeqa list-all tod": ["plain,todos"],
        "codeqa ask --repo my": ["plain,my shop"],
        "codeqa callers --repo ": ["plain,my shop"],
        "codeqa index my": ["plain,my shop"],
        "codeqa index /": ["dir,/"],
        "codeqa ask --effort d": ["plain,deep"],
        "codeqa ask --lo": ["plain,--local"],
        "codeqa completion f": ["plain,fish"],
    }.items():
        assert completed(words, monkeypatch, capsys) == expected, words
    code = "import sys; from codeqa.cli import main; main(); print(' '.join(sys.modules))"
    asked = {"COMP_WORDS": "codeqa ask --repo my", "COMP_CWORD": "3"}
    done = run_python("-c", code, env={**asked, "_CODEQA_COMPLETE": "bash_complete"})
    first, *_, loaded = done.stdout.splitlines()
    assert first == "plain,my shop"
    assert not {"pydantic", "numpy", "lancedb", "codeqa.settings"} & set(loaded.split())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_says_how_it_is_installed(codeqa: Command, shell: str) -> None:
    script = codeqa("completion", shell).out
    assert script.startswith(f"# To install it: codeqa completion {shell} >")
    assert "_CODEQA_COMPLETE" in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, text=True, check=True, timeout=20)
