"""Every command and script: help with examples, JSON; imports without effect."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from conftest import ROOT, Run
from repositories import git, write

from codeqa import __version__, environment
from codeqa.cli.main import cli
from codeqa.cli.serve import repository_here
from codeqa.cli.tools import TOOL_COMMANDS
from codeqa.environment import install_command
from codeqa.settings import Settings
from create_tables import create_tables

if TYPE_CHECKING:
    from cli_shop import Command

pytest_plugins = ("cli_shop",)

REEXPORTS = {
    "app": {"create_app", "generate_context", "main"},
    "create_tables": {"create_tables", "main"},
    "preprocessing": {"preprocess", "main"},
    "prompts": {"CHAT_SYSTEM_PROMPT", "HYDE_SYSTEM_PROMPT", "HYDE_V2_SYSTEM_PROMPT", "main"},
    "llm_comments": {"describe", "main"},
}
FRONT_DOORS = sorted(REEXPORTS)
COMMANDS = {
    "app": ("codeqa serve", "codeqa"),
    "create_tables": ("codeqa index", "codeqa"),
    "llm_comments": ("codeqa index", "codeqa"),
}
"""Doors that are a command, and what their errors begin with."""
HEAVY = {"lancedb", "pyarrow", "pandas", "openai", "fastembed", "onnxruntime"}

WITHOUT = {"mcp", "serve", "worker"}
"""Commands that go on until they are ended."""
ELSEWHERE = {"doctor": "test_cli", "review": "test_review", "state copy": "test_postgres"}
"""Where else JSON is read; that of the tools is in test_tools."""

CALLED = [
    "index my-shop", "search article", "ask article --no-model",
    "models", "models use ollama/x", "models none", "repos list",
    "sync my-shop", "privacy show", "privacy delete everything --yes",
    "repos remove my-shop --yes",
]  # fmt: skip
CLUSTER = "lance_namespace_urllib3_client.api"
"""A third of LanceDB's import."""

# Runs in a fresh interpreter: every file that is written and every socket that is opened
# raises an audit event, whichever library does it.
IMPORT_AND_WATCH = """
import json, os, sys
effects = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int):
        if arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            effects.append(f"writes {arguments[0]}")
    elif event in {"socket.__new__", "socket.connect", "subprocess.Popen", "os.mkdir", "os.fork"}:
        effects.append(f"{event} {arguments}")
sys.addaudithook(watch)
modules = {name: __import__(name, fromlist=["_"]) for name in sys.argv[1:]}
names = {name: sorted(getattr(module, "__all__", ())) for name, module in modules.items()}
done, loaded = [*effects], sorted(sys.modules)
from codeqa.settings import load_settings
from codeqa.web.workspace import Workspace
Workspace(load_settings())
later = sorted(sys.modules)
json.dump({"effects": done, "loaded": loaded, "later": later, "names": names}, sys.stdout)
"""


def commands(group: click.Group, *before: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command by its words, groups among them."""
    yield before, group
    context = click.Context(group)
    for name in group.list_commands(context):
        made = group.get_command(context, name)
        assert made is not None
        if isinstance(made, click.Group):
            yield from commands(made, *before, name)
        else:
            yield (*before, name), made


@pytest.mark.parametrize("name", FRONT_DOORS)
def test_a_front_door_shows_its_help_and_refuses_a_wrong_call_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main = importlib.import_module(name).main
    door, prefix = COMMANDS.get(name, (f"python {name}.py", f"{name}.py"))
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert door in shown.split("Examples:")[1] and "--debug" in shown
    assert main([".", "--no-such-option"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert told.err.startswith(f"{prefix}: ") and f"{door} --help" in told.err


@pytest.mark.parametrize("name", FRONT_DOORS)
def test_a_front_door_whose_packages_are_missing_says_how_to_get_them(
    name: str, run_python: Run
) -> None:
    done = run_python("-S", f"{name}.py", "--help")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.strip().endswith(f"run `make setup`, then .venv/bin/python {name}.py")


def test_the_command_that_installs_an_extra_keeps_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install_command("models") == f'{sys.executable} -m pip install -e "{ROOT}[models]"'
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "codeqa" / "environment.py"))
    assert install_command("models") == 'pip install "codeqa[models]"'


def test_where_no_repository_is_named_repo_path_names_it(
    codeqa: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPO_PATH", str(tmp_path / "gone"))
    assert str(tmp_path / "gone") in codeqa("index").err


def test_in_a_checkout_of_codeqa_the_repository_used_last_is_served(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert repository_here(settings) == ROOT
    create_tables(write(tmp_path / "shop", {"a.py": "x = 1\n"}), settings=settings)
    assert repository_here(settings) == tmp_path / "shop"
    git(tmp_path, "init", "-q", "other")
    monkeypatch.chdir(tmp_path / "other")
    assert repository_here(settings) == tmp_path / "other"


def test_a_package_that_is_missing_later_is_named_with_what_to_do(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "codeqa.cli.repos", None)
    done = codeqa("repos", "list")
    assert done.status == 1 and " is missing. `make setup` installs it" in done.err


def test_help_of_every_command_shows_examples(codeqa: Command) -> None:
    for path, command in commands(cli):
        done = codeqa(*path, "--help")
        assert done.status == 0, done.err
        if command.epilog or not isinstance(command, click.Group):
            assert " ".join(["codeqa", *path]) in done.out.split("Examples:")[1]


def test_every_command_that_has_something_to_tell_tells_it_as_json(
    copied_codeqa: Command, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    called = {*ELSEWHERE, *TOOL_COMMANDS}
    for words in CALLED:
        arguments = [str(shop) if word == "my-shop" else word for word in words.split()]
        result = copied_codeqa(*arguments, "--json")
        assert json.loads(result.out) is not None, words
        assert result.status == 0, (words, result.err)
        called |= {" ".join(words.split()[:length]) for length in (1, 2)}
    for path, command in commands(cli):
        if isinstance(command, click.Group) and not command.invoke_without_command:
            continue
        has = any("--json" in parameter.opts for parameter in command.params)
        assert has == (" ".join(path) not in WITHOUT), path
        assert not has or " ".join(path) in called, path


def test_importing_does_nothing_and_gives_the_names(tmp_path: Path, run_python: Run) -> None:
    modules = (*FRONT_DOORS, "codeqa.cli", "codeqa.cli.serve", "codeqa.engine", "codeqa.web.jobs")
    environment = {"PYTHONDONTWRITEBYTECODE": "1"}
    done = run_python("-c", IMPORT_AND_WATCH, *modules, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["effects"] == []
    assert not HEAVY & set(report["loaded"])
    own = set(report["later"])
    assert not {"prometheus_client", "redis", "rq"} & own, "a server of its own needs none"
    assert not any(tmp_path.iterdir())
    for name, exported in REEXPORTS.items():
        assert exported <= set(report["names"][name]), name
    done = run_python("-c", IMPORT_AND_WATCH, "codeqa_server.jobs", cwd=tmp_path, env=environment)
    assert not HEAVY & set(json.loads(done.stdout)["loaded"]), "a worker forks with what is loaded"


def test_commands_load_only_what_they_use(run_python: Run, shop: Path) -> None:
    used = [
        ("--version", "click", {"codeqa.settings", "pydantic", "numpy", "codeqa.engine"}),
        ("mcp .", "codeqa.mcp", HEAVY | {"pydantic", "numpy", "codeqa.engine", "mcp.server"}),
        ("models", "codeqa.llm", HEAVY | {"flask", "numpy", "codeqa.store", "codeqa.search"}),
        ("repos list", "codeqa.repositories", HEAVY | {"flask", "codeqa.engine"}),
        (
            "index nowhere",
            "codeqa.indexing",
            {"flask", "openai", "codeqa.chat.ask", "codeqa.engine"},
        ),
        ("privacy show", "codeqa.account", HEAVY | {"flask", "psycopg", "codeqa_server"}),
        ("index .", "codeqa.indexing.indexer", {"flask", "codeqa_server", "lance", "ray"}),
        ("search nothing", "codeqa.search.hybrid", {"flask", "openai", CLUSTER}),
    ]  # one after the other in one process, the light ones first
    script = (
        "import sys; from codeqa.cli import main; out = sys.stdout\n"
        "for command in sys.argv[1:]:\n"
        "    main(command.split()); sys.stdout = out; print('loaded', *sys.modules)"
    )
    data, hello = {"CODEQA_DATA": str(shop.parent / "data")}, '{"id": 1, "method": "initialize"}'
    words = [command for command, _, _ in used]
    done = run_python("-c", script, *words, env=data, cwd=shop, input=hello)
    first, _, answer, *_ = lines = done.stdout.splitlines()
    assert first == f"codeqa {__version__}"
    assert json.loads(answer)["result"]["serverInfo"]["name"] == "codeqa"
    loaded = [set(line.split()) for line in lines if line.startswith("loaded ")]
    for (command, loads, not_loaded), names in zip(used, loaded, strict=True):
        assert loads in names and not names & not_loaded, (command, names & not_loaded)


def test_a_command_tells_a_bad_setting_in_one_line(
    codeqa: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_PORT", "eighty")
    done = codeqa("models")
    assert (done.status, done.out) == (2, "")
    assert done.error.startswith("CODEQA_PORT has a value that cannot be used: ")
