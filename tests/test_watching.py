"""Changes on disk are followed by a served index."""

from __future__ import annotations

import ctypes
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from benchmarks.machine import memory_mb
from codeqa.embeddings.registry import Embedding
from codeqa.engine import Engine, open_engine
from codeqa.indexing.indexer import changes
from codeqa.search import hybrid
from codeqa.search.channels import gather
from codeqa.settings import Settings
from codeqa.store import Tables
from tests.index_rows import clean_rows, rows
from tests.indexed import write
from tests.repositories import git

FILES = {"a.py": "def find_user(key):\n    return key\n", "b.py": "def drop_user():\n    pass\n"}
SECONDS = 60.0
"""Far more than it takes: a machine that does something else is no failure."""


AUTHOR = ("-c", "user.name=A. Tester", "-c", "user.email=tester@example.org")


def until(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


@pytest.fixture
def served(settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    """An engine whose index is followed, once its first run is over."""
    followed = settings.model_copy(update={"watch": True})
    root = write(tmp_path / "repo", FILES)
    with closing(open_engine(followed, root)) as engine:
        engine.index.start_background()
        assert until(lambda: engine.index.status().state == "ready")
        yield engine


def names(engine: Engine) -> set[str]:
    return {unit.name for unit in engine.tables().units() if unit.is_method}


def has_names(engine: Engine, expected: set[str]) -> bool:
    return names(engine) == expected


def commit_and_leave(root: Path) -> None:
    git(root, "add", ".")
    git(root, *AUTHOR, "commit", "-qm", "two")
    git(root, "checkout", "-q", "main")


def folder_for_a_file(root: Path) -> None:
    (root / "a.py").unlink()
    write(root, {"a.py/d.py": "def in_a():\n    pass\n"})


def test_what_changes_on_disk_is_found_without_asking_for_it(served: Engine) -> None:
    root = served.location.root
    assert served.index.status().watched
    assert names(served) == {"find_user", "drop_user"}
    (root / "new").mkdir()
    (root / "new" / "c.py").write_text("def add_user():\n    pass\n")
    (root / "b.py").unlink()
    beside = root / "a.py.tmp"  # as editors do
    beside.write_text("def seek_user(key):\n    return key\n")
    beside.replace(root / "a.py")
    assert until(lambda: names(served) == {"seek_user", "add_user"})
    (root / ".gitignore").write_text("new/\n")
    assert until(lambda: names(served) == {"seek_user"})


def test_whatever_changes_a_tree_leaves_what_a_clean_index_holds(
    served: Engine, tmp_path: Path
) -> None:
    root = served.location.root
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, *AUTHOR, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "other")
    before, both = {"find_user", "drop_user"}, {"find_user", "drop_user", "two"}
    steps: list[tuple[Callable[[], object], set[str]]] = [
        (lambda: write(root, {"in/c.py": "def two():\n    pass\n"}), both),
        (lambda: (root / "in").rename(root / "IN"), both),  # a name of other case
        (lambda: write(root, {".git/info/exclude": "IN/\n"}), before),
        (lambda: write(root, {".git/info/exclude": ""}), both),
        (lambda: commit_and_leave(root), before),
        (lambda: git(root, "checkout", "-q", "other"), both),
        (lambda: folder_for_a_file(root), {"drop_user", "two", "in_a"}),
        (lambda: shutil.rmtree(root / "IN"), {"drop_user", "in_a"}),
    ]
    for step, expected in steps:
        step()
        assert until(partial(has_names, served, expected)), (expected, names(served))
    served.index.stop()
    status = served.index.status()
    assert (status.state, status.watched) == ("ready", False)
    assert rows(served.location) == clean_rows(root, tmp_path)


@pytest.fixture
def opened(settings: Settings, tmp_path: Path) -> Iterator[Engine]:
    """An engine whose index is made once and then brought up to date by questions alone."""
    root = write(tmp_path / "repo", FILES)
    with closing(open_engine(settings.model_copy(update={"watch": True}), root)) as engine:
        engine.index.run()
        yield engine


def test_a_file_that_changed_just_before_the_question_is_read_again(opened: Engine) -> None:
    path = opened.location.root / "a.py"
    for number in range(2):  # the file is another one each time
        code = f"def find_user(key):\n    return users[{number}]\n"
        path.write_text("\n" * number + code)
        found = opened.search.search("where is find_user?")
        assert found.units[0].unit.source_code == code.strip()
        assert found.units[0].unit.start_line == number + 1
        assert not found.changed
    path.unlink()
    again = opened.search.search("where is find_user?").units
    assert "a.py" not in [hit.unit.path for hit in again]


def test_an_answer_is_not_older_than_the_index_that_catches_up_meanwhile(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [opened.search.search("where is find_user?").units[0].unit.start_line]

    def found(tables: Tables, *more: Any) -> Any:
        answer = gather(tables, *more)
        if len(asked) == 1:  # the follower's run ends just now
            asked.append(0)
            opened.index.run()
            tables.look_again()
        return answer

    monkeypatch.setattr(hybrid, "gather", found)
    write(opened.location.root, {"a.py": "\n" + FILES["a.py"]})
    assert opened.search.search("where is find_user?").units[0].unit.start_line == 2
    assert asked == [1, 0]


def test_vectors_that_take_long_make_way_for_a_change(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = "".join(f"def part_{n}():\n    return {n}\n\n\n" for n in range(200))
    root = write(tmp_path / "repo", {"a.py": functions})
    made: list[int] = []

    class Slow:
        def compute_source_embeddings(self, texts: list[str]) -> list[list[float]]:
            time.sleep(0.1)
            made.append(len(texts))
            return [[1.0] * 8] * len(texts)

    slow = Embedding("slow/one", "1", 8, 8_000, Slow(), "Slow")
    monkeypatch.setattr("codeqa.indexing.indexer.chosen_embedding", lambda _: slow)
    chosen = settings.model_copy(update={"watch": True, "embedding_batch": 1})
    with closing(open_engine(chosen, root)) as engine:
        engine.index.start_background()
        assert until(lambda: len(made) > 3)
        write(root, {"b.py": FILES["b.py"]})
        assert until(lambda: "drop_user" in names(engine))
        before = len(made)
        assert before < 200  # else it waited for all of them
        assert engine.tables().counts().refined  # what was made is kept
        assert until(lambda: len(made) > before + 3)  # and the rest is made


def test_where_the_system_tells_no_changes_they_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = watchfiles.watch

    def watch(*paths: Path, **options: Any) -> Iterator[object]:
        if not options["force_polling"]:
            raise OSError("OS file watch limit reached.")  # as it says it
        return really(*paths, **options)

    monkeypatch.setattr(watchfiles, "watch", watch)
    monkeypatch.setattr("codeqa.indexing.indexer.POLL_MS", 100)
    root, stop = write(tmp_path / "repo", FILES), threading.Event()
    seen = changes(root, [], stop)
    next(seen)
    threading.Timer(SECONDS, stop.set).start()
    write(root, {"c.py": "x = 1"})
    assert next(seen, "nothing") is None
    stop.set()


def test_a_search_whose_index_cannot_catch_up_says_what_changed(opened: Engine) -> None:
    write(opened.location.root, {"a.py": "def find_user(key):\n    return None\n"})
    lock = opened.location.folder / "lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(opened.location.folder / "gone" / "lock")  # no run can open it
    assert opened.search.search("where is find_user?").changed == {"a.py": "changed"}


def test_changes_of_git_and_of_codeqa_itself_are_none(tmp_path: Path) -> None:
    root, stop = tmp_path / "repo", threading.Event()
    own = write(root / "data", {"x": ""})
    write(root / ".git", {"HEAD": ""})
    seen = changes(root, [own], stop)
    next(seen)
    write(root, {".git/HEAD": "main", "data/tables": "rows", "database.py": "x = 1"})
    threading.Timer(0.4, stop.set).start()
    assert len(list(seen)) == 1


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_what_was_freed_goes_back_to_the_system_when_changes_are_followed(served: Engine) -> None:
    c, size = ctypes.CDLL(None), 4_000
    c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    pieces = [ctypes.c_void_p(c.malloc(size)) for _ in range(25_000)]
    for piece in pieces:
        ctypes.memset(piece, 1, size)
    before = memory_mb()
    last = pieces.pop()  # what lies below it the C library keeps
    for piece in pieces:
        c.free(piece)
    write(served.location.root, {"a.py": "def seek_user(key):\n    return key\n"})
    assert until(lambda: memory_mb() < before - 60)
    c.free(last)
