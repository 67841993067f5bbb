"""Tools, searches and counted answers tell what is on disk now, however short ago that changed."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_kit import answer, ask
from repositories import git
from repositories import write as write_files
from waiting import PATIENCE

from codeqa.engine import Engine, open_engine
from codeqa.errors import NotFoundError
from codeqa.indexing import background
from codeqa.search import hybrid
from codeqa.search.channels import gather
from codeqa.search.freshness import IndexFreshness
from codeqa.settings import load_settings
from codeqa.store import Tables

COMMIT = ("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-a", "-m", "change")
EGGS = "def four():\n    return 4\n\n\ndef first():\n    return four()\n"
ROOM = "def waiting_room():\n    return 1\n"
FILES = {"shop/eggs.py": EGGS, "shop/till/pay.py": "def pay():\n    return 1\n"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a second branch, on which the function `four` is called `five`."""
    root = write_files(tmp_path_factory.mktemp("fresh") / "repository", FILES)
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, *COMMIT)
    git(root, "checkout", "-q", "-b", "other")
    write(root, EGGS.replace("four", "five"))
    git(root, *COMMIT)
    git(root, "checkout", "-q", "main")
    return root


class OfHits(IndexFreshness):
    """As for several repositories together."""

    def before_search(self) -> str:
        return ""


@pytest.fixture(scope="module")
def engine(repository: Path) -> Iterator[Engine]:
    """Opened as a command or an agent's server opens it: nothing follows the files. Each test has
    files of its own."""
    settings = load_settings(data=repository.with_name("data"), workers=1, watch=True)
    with open_engine(settings, repository) as engine, pytest.MonkeyPatch.context() as patched:
        # However long it takes, nothing is told of the index of before.
        patched.setattr(background, "UPDATE_SECONDS", PATIENCE)
        patched.setattr(background, "LONGEST_REST", PATIENCE)
        engine.index.run()
        yield engine


def definition(engine: Engine, name: str) -> str:
    return engine.call("symbol", name=name).text


def write(root: Path, text: str, name: str = "shop/eggs.py") -> None:
    (root / name).write_text(text)


def within_the_second(root: Path) -> None:
    """An edit of the same size, by which the file's time goes on by a millisecond alone."""
    before = (root / "shop/eggs.py").stat().st_mtime_ns
    write(root, EGGS.replace("four", "six6"))
    os.utime(root / "shop/eggs.py", ns=(before, before + 1_000_000))


def delete_and_revert(root: Path) -> None:
    (root / "shop/New.py").unlink()
    git(root, "checkout", "-q", "--", ".")


def move(root: Path) -> None:
    (root / "shop/new.py").rename(root / "shop/New.py")
    (root / "shop/till").rename(root / "shop/desk")


def edit_and_add(root: Path) -> None:
    write(root, "\n" + EGGS.replace("four", "ten"))
    write(root, "def nine():\n    return 9\n", "shop/new.py")


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    # What is done after the one above → what is there then.
    "of the same size": (
        lambda root: write(root, EGGS.replace("four", "five")),
        "five shop/eggs.py:1-2, pay shop/till/pay.py:1-2",
    ),
    "in the same second": (within_the_second, "six6 shop/eggs.py:1-2, pay shop/till/pay.py:1-2"),
    "edited, and one added": (
        edit_and_add, "ten shop/eggs.py:2-3, nine shop/new.py:1-2, pay shop/till/pay.py:1-2",
    ),
    "renamed by case alone, and moved with its folder": (
        move, "ten shop/eggs.py:2-3, nine shop/New.py:1-2, pay shop/desk/pay.py:1-2",
    ),
    "stashed": (
        lambda root: git(root, "stash", "-q", "-u"),
        "four shop/eggs.py:1-2, pay shop/till/pay.py:1-2",
    ),
    "and back": (
        lambda root: git(root, "stash", "pop", "-q"),
        "ten shop/eggs.py:2-3, nine shop/New.py:1-2, pay shop/desk/pay.py:1-2",
    ),
    "deleted, and the rest reverted": (
        delete_and_revert,
        "four shop/eggs.py:1-2, pay shop/desk/pay.py:1-2, pay shop/till/pay.py:1-2",
    ),
    "another branch": (
        lambda root: git(root, "checkout", "-q", "other"),
        "five shop/eggs.py:1-2, pay shop/desk/pay.py:1-2, pay shop/till/pay.py:1-2",
    ),
}  # fmt: skip


def test_a_tool_finds_what_was_changed_a_moment_before(engine: Engine, repository: Path) -> None:
    assert "(lines 1-2" in definition(engine, "four")
    for change, (do, expected) in CHANGES.items():
        do(repository)
        name, place = expected.split(", ")[0].split()
        assert place.replace(":", " (lines ") in definition(engine, name), change
        units = [unit for unit in engine.tables().units() if unit.path.startswith("shop/")]
        found = {f"{unit.name} {unit.span}" for unit in units if unit.name != "first"}
        assert found == {*expected.split(", ")}, change
    assert "nothing here is called four" in definition(engine, "four")
    git(repository, "checkout", "-q", "-f", "main")


def test_an_opened_file_and_a_counted_answer_are_of_now(engine: Engine, repository: Path) -> None:
    new = "from shop.eggs import four\n\n\ndef breakfast():\n    return four()\n"
    write(repository, new, "meal.py")
    assert "breakfast" in engine.call("open_file", path="meal.py").text
    (repository / "meal.py").rename(repository / "morning.py")
    assert "morning.py:5" in answer(ask(engine, "@codebase who calls four?", use_model=False))


@pytest.mark.parametrize("indexed_too", [False, True])
def test_a_search_of_several_repositories_is_not_older_than_what_changes_meanwhile(
    engine: Engine, repository: Path, monkeypatch: pytest.MonkeyPatch, indexed_too: bool
) -> None:
    write(repository, ROOM, "room.py")
    definition(engine, "waiting_room")
    search = replace(engine.search, freshness=OfHits(engine.index, updates_hits=True))
    calls: list[object] = []

    def changing(tables: Tables, *more: Any) -> Any:
        hits = gather(tables, *more)
        calls.append(hits)
        if len(calls) == 1:
            write(repository, "\n" + ROOM, "room.py")
            if indexed_too:  # as when the run of a follower ends just now
                engine.index.run()
        return hits

    monkeypatch.setattr(hybrid, "gather", changing)
    result = search.search("where is waiting_room?")
    assert result.units[0].unit.start_line == 2
    assert len(calls) == 2 and not result.changed


def test_what_cannot_be_brought_in_is_said(engine: Engine, repository: Path) -> None:
    write(repository, ROOM.replace("waiting", "dining"), "dining.py")
    engine.index.pause()
    assert "which could not be updated" in definition(engine, "dining_room")
    engine.index.resume()
    assert "dining.py (lines 1-2" in definition(engine, "dining_room")
    write(repository, ROOM.replace("waiting", "dining") + "\n", "dining.py")
    lock = engine.location.folder / "lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(engine.location.folder / "gone" / "lock")  # no run can open it
    assert engine.search.search("where is dining_room?").changed == {"dining.py": "changed"}
    lock.unlink()


def test_what_is_not_ready_in_time_is_said(engine: Engine, repository: Path) -> None:
    class Late(Future[bool]):
        def result(self, timeout: float | None = None) -> bool:
            raise TimeoutError

    write(repository, ROOM.replace("waiting", "living"), "living.py")
    update, engine.index._update = engine.index._update, Late()
    text = definition(engine, "living_room")
    with pytest.raises(NotFoundError) as caught:
        engine.call("open_file", path="nowhere.py")
    searched = engine.search.search("living_room")
    engine.index._update = update
    for answered in (text, str(caught.value), " ".join(searched.warnings)):
        assert "have changed since the index of" in answered and "is being updated" in answered
    assert "is being updated" not in definition(engine, "living_room")


def test_where_nothing_has_changed_no_run_is_made(
    engine: Engine, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = 1_700_000_000
    for path in (repository, *repository.rglob("*")):
        os.utime(path, (old, old))
    assert "(lines 1-2" in definition(engine, "four")  # their times are others
    # As if that had been long after: when they changed the system alone says.
    monkeypatch.setattr(engine.index, "checked_ns", time.time_ns() + 10**10)
    monkeypatch.setattr(engine.index, "update_now", lambda: pytest.fail("a run was made"))
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
