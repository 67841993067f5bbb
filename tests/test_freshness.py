"""Tools and counted answers tell what is on disk now, however short ago that changed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from chat_kit import answer, ask
from repositories import git
from repositories import write as write_files

from codeqa.engine import Engine, open_engine
from codeqa.errors import NotFoundError
from codeqa.settings import load_settings

COMMIT = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-a", "-m", "change")
FILES = {
    "shop/eggs.py": "def four():\n    return 4\n\n\ndef first():\n    return four()\n",
    "shop/till/pay.py": "def pay():\n    return 1\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a second branch, on which the function `four` is called `five`."""
    root = write_files(tmp_path / "repository", FILES)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, *COMMIT)
    git(root, "checkout", "-q", "-b", "other")
    write(root, FILES["shop/eggs.py"].replace("four", "five"))
    git(root, *COMMIT)
    git(root, "checkout", "-q", "-")
    return root


@pytest.fixture
def engine(repository: Path, tmp_path: Path) -> Iterator[Engine]:
    """Opened as a command or an agent's server opens it: nothing follows the files."""
    with open_engine(
        load_settings(data=tmp_path / "data", workers=1, watch=True), repository
    ) as engine:
        engine.index.run()
        yield engine


def definition(engine: Engine, name: str) -> str:
    return engine.call("symbol", name=name).text


def write(root: Path, text: str, name: str = "shop/eggs.py") -> None:
    (root / name).write_text(text)


def same_second(root: Path) -> None:
    """An edit of the same size, by which the file's time goes on by a millisecond alone."""
    file = root / "shop/eggs.py"
    before = file.stat().st_mtime_ns
    write(root, FILES["shop/eggs.py"].replace("four", "five"))
    os.utime(file, ns=(before, before + 1_000_000))


def stash(root: Path) -> None:
    write(root, FILES["shop/eggs.py"].replace("four", "five"))
    git(root, "stash", "-q")
    git(root, "stash", "pop", "-q")


CHANGES: dict[str, tuple[Callable[[Path], object], str, str, str]] = {
    # What is done → the name that is there then, its place, and the name that is gone.
    "edited": (
        lambda root: write(root, "\n" + FILES["shop/eggs.py"].replace("four", "fourteen")),
        "fourteen", "shop/eggs.py (lines 2-3", "four",
    ),
    "added": (
        lambda root: write(root, "def nine():\n    return 9\n", "shop/new.py"),
        "nine", "shop/new.py (lines 1-2", "",
    ),
    "deleted": (
        lambda root: (root / "shop/eggs.py").unlink(), "pay", "shop/till/pay.py", "four",
    ),
    "renamed": (
        lambda root: (root / "shop/eggs.py").rename(root / "shop/dozen.py"),
        "four", "shop/dozen.py (lines 1-2", "",
    ),
    "renamed by case alone": (
        lambda root: (root / "shop/eggs.py").rename(root / "shop/Eggs.py"),
        "four", "shop/Eggs.py (lines 1-2", "",
    ),
    "moved with its folder": (
        lambda root: (root / "shop/till").rename(root / "shop/desk"),
        "pay", "shop/desk/pay.py (lines 1-2", "",
    ),
    "another branch": (
        lambda root: git(root, "checkout", "-q", "other"), "five", "shop/eggs.py", "four",
    ),
    "stashed and back": (stash, "five", "shop/eggs.py", "four"),
    "of the same size": (
        lambda root: write(root, FILES["shop/eggs.py"].replace("four", "five")),
        "five", "shop/eggs.py", "four",
    ),
    "in the same second": (same_second, "five", "shop/eggs.py", "four"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_tool_finds_what_was_changed_a_moment_before(
    engine: Engine, repository: Path, change: str
) -> None:
    do, name, place, gone = CHANGES[change]
    assert "(lines 1-2" in definition(engine, "four")
    do(repository)
    assert place in definition(engine, name)
    assert not gone or f"nothing here is called {gone}" in definition(engine, gone)


def test_what_is_reverted_is_as_it_was(engine: Engine, repository: Path) -> None:
    write(repository, FILES["shop/eggs.py"].replace("four", "five"))
    assert "(lines 1-2" in definition(engine, "five")
    git(repository, "checkout", "-q", "--", ".")
    assert "(lines 1-2" in definition(engine, "four")
    assert "nothing here is called five" in definition(engine, "five")


def test_every_tool_and_a_counted_answer_know_a_new_file(engine: Engine, repository: Path) -> None:
    new = "from shop.eggs import four\n\n\ndef breakfast():\n    return four()\n"
    calls: dict[str, dict[str, str]] = {
        "symbol": {"name": "four", "want": "callers"},
        "grep": {"pattern": "breakfast"},
        "open_file": {"path": "meal0.py"},
        "list_all": {"kind": "files"},
        "search_code": {"query": "what is had for breakfast"},
    }
    for number, (tool, arguments) in enumerate(calls.items()):
        name = f"meal{number}.py"
        (repository / name).write_text(new)
        arguments = {key: value.replace("meal0.py", name) for key, value in arguments.items()}
        assert "breakfast" in (text := engine.call(tool, **arguments).text) or name in text, tool
        (repository / name).unlink()
    (repository / "meal.py").write_text(new)
    assert "meal.py:5" in answer(ask(engine, "@codebase who calls four?", use_model=False))


def test_what_is_not_ready_in_time_is_said_with_the_time_of_the_index(
    engine: Engine, repository: Path
) -> None:
    class Late(Future[bool]):
        def result(self, timeout: float | None = None) -> bool:
            raise TimeoutError

    write(repository, FILES["shop/eggs.py"].replace("four", "five"))
    kept_up, engine.index._kept_up = engine.index._kept_up, Late()
    found = definition(engine, "five")
    with pytest.raises(NotFoundError) as caught:
        engine.call("open_file", path="nowhere.py")
    searched = engine.search.search("who returns five")
    engine.index._kept_up = kept_up
    for text in (found, str(caught.value), *searched.warnings):
        assert "this is from the index of" in text and "is catching up" in text
    assert "is catching up" not in definition(engine, "five")


def test_a_paused_index_is_said_to_be_behind(engine: Engine, repository: Path) -> None:
    write(repository, FILES["shop/eggs.py"].replace("four", "five"))
    engine.index.pause()
    assert "which could not be brought up to date" in definition(engine, "four")
    engine.index.resume()
    assert "return 4" in definition(engine, "five")


def test_where_nothing_has_changed_no_run_is_made(
    engine: Engine, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = 1_700_000_000
    for path in (repository, *repository.rglob("*")):
        os.utime(path, (old, old))
    assert "(lines 1-2" in definition(engine, "four")  # their times are others
    # As if that had been long after: when they changed the system alone says.
    monkeypatch.setattr(engine.index, "checked_ns", time.time_ns() + 10**10)
    monkeypatch.setattr(engine.index, "catch_up", lambda: pytest.fail("a run was made"))
    assert "(lines 1-2" in definition(engine, "four")
    assert subprocess.run(["git", "-C", str(repository), "diff", "--quiet"]).returncode == 0


def test_other_content_of_equal_size_is_seen_though_its_time_was_set_back(
    engine: Engine, repository: Path
) -> None:
    file, old = repository / "shop/eggs.py", 1_700_000_000
    os.utime(file, (old, old))
    engine.index.run()
    write(repository, FILES["shop/eggs.py"].replace("four", "five"))
    os.utime(file, (old, old))
    assert "(lines 1-2" in definition(engine, "five")
