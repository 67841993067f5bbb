"""Changes on disk are followed by a served index."""

from __future__ import annotations

import ctypes
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import watchfiles
from conftest import Run
from waiting import PATIENCE, until

from codeqa.embeddings.registry import Embedding
from codeqa.engine import Engine, open_engine
from codeqa.indexing import background, indexer
from codeqa.indexing.background import changes
from codeqa.settings import Settings
from tests.kit.index_rows import clean_rows, rows
from tests.kit.indexed import write
from tests.kit.repositories import git

FILES = {"a.py": "def find_user(key):\n    return key\n", "b.py": "def drop_user():\n    pass\n"}
SEEK = {"a.py": "def seek_user(key):\n    return key\n"}


def names(engine: Engine) -> set[str]:
    return {unit.name for unit in engine.tables().units() if unit.is_method}


def save_as_editors_do(root: Path) -> None:
    write(root, {"in/c.py": "def two():\n    pass\n", "a.py.tmp": SEEK["a.py"]})
    (root / "a.py.tmp").replace(root / "a.py")
    (root / "b.py").unlink()


def rename_and_ignore(root: Path) -> None:
    (root / "in").rename(root / "IN")
    write(root, {".git/info/exclude": "IN/\n"})


def commit_and_leave(root: Path) -> None:
    git(root, "add", ".")
    git(root, "commit", "-qm", "two")
    git(root, "checkout", "-q", "main")


def replace_by_folders(root: Path) -> None:
    (root / "a.py").unlink()
    write(root, {"a.py/d.py": "def in_a():\n    pass\n"})
    shutil.rmtree(root / "IN")


STEPS: list[tuple[Callable[[Path], object], set[str]]] = [
    (save_as_editors_do, {"seek_user", "two"}),
    (rename_and_ignore, {"seek_user"}),
    (lambda root: write(root, {".git/info/exclude": ""}), {"seek_user", "two"}),
    (commit_and_leave, {"find_user", "drop_user"}),
    (lambda root: git(root, "checkout", "-q", "other"), {"seek_user", "two"}),
    (replace_by_folders, {"in_a"}),
    (lambda root: write(root, {".gitignore": "a.py/\n", "e.py": FILES["b.py"]}), {"drop_user"}),
]


def test_whatever_changes_a_tree_leaves_what_a_clean_index_holds(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, runs, given_back = write(tmp_path / "repo", FILES), list[object](), list[bool]()
    monkeypatch.setattr(background, "give_back_memory", lambda: given_back.append(True))
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "other")
    with closing(open_engine(settings.model_copy(update={"watch": True}), root)) as engine:
        engine.index.start(on_end=runs.append)
        until(lambda: runs)
        assert (engine.index.status().state, engine.index.status().watched) == ("ready", True)
        assert names(engine) == {"find_user", "drop_user"}
        for step, expected in STEPS:
            del runs[:]
            step(root)
            until(lambda expected=expected: runs and names(engine) == expected)
        engine.index.stop()
        status = engine.index.status()
        assert (status.state, status.watched) == ("ready", False)
        assert rows(engine.location) == clean_rows(root, tmp_path)
    assert len(given_back) >= len(STEPS), "behind each run"


def test_vectors_that_take_long_make_way_for_a_change(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = "".join(f"def part_{n}():\n    return {n}\n\n\n" for n in range(20))
    root = write(tmp_path / "repo", {"a.py": functions})
    noticed, asked = threading.Event(), list[int]()

    class Slow:
        def compute_source_embeddings(self, texts: list[str]) -> list[list[float]]:
            asked.append(1)
            if len(asked) == 4:
                assert noticed.wait(PATIENCE)
            elif len(asked) > 4:  # those that the change comes before
                until(lambda: "drop_user" in names(engine))
            return [[1.0] * 8] * len(texts)

    slow = Embedding("slow/one", "1", 8, 8_000, Slow(), "Slow")
    monkeypatch.setattr(indexer, "chosen_embedding", lambda _: slow)
    chosen = settings.model_copy(update={"watch": True, "embedding_batch": 1})
    with closing(open_engine(chosen, root)) as engine:
        engine.index.start()
        until(lambda: len(asked) >= 4)
        write(root, {"b.py": FILES["b.py"]})
        until(engine.index.signals.files_changed.is_set)
        noticed.set()
        until(lambda: "drop_user" in names(engine))
        assert engine.tables().counts().refined >= 4  # what was made is kept
        until(lambda: engine.tables().counts().refined == 21)  # and the rest is made


def test_changes_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = watchfiles.watch

    def watch(*paths: Path, **options: Any) -> Iterator[object]:
        if not options["force_polling"]:
            raise OSError("OS file watch limit reached.")  # as it says it
        return really(*paths, **options)

    monkeypatch.setattr(watchfiles, "watch", watch)
    monkeypatch.setattr(background, "POLL_MS", 100)
    root, stop = write(tmp_path / "repo", FILES), threading.Event()
    seen = changes(root, [], stop)
    next(seen)
    write(root, {"c.py": "x = 1"})
    assert next(seen, "nothing") is None
    stop.set()


def test_what_git_and_codeqa_write_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, judged = watchfiles.watch, dict[str, bool]()

    def watch(*paths: Path, watch_filter: Callable[..., bool], **options: Any) -> Any:
        def counts(change: object, path: str) -> bool:
            judged[Path(path).name] = watch_filter(change, path)
            return judged[Path(path).name]

        return really(*paths, watch_filter=counts, **options)

    monkeypatch.setattr(watchfiles, "watch", watch)
    root = tmp_path / "repo"
    own = write(root / "data", {"x": ""})
    write(root / ".git", {"HEAD": ""})
    seen, counted = changes(root, [own], stop := threading.Event()), list[None]()
    next(seen)
    thread = threading.Thread(target=lambda: [*map(counted.append, seen)])
    thread.start()
    write(root, {".git/HEAD": "main", "data/tables": "rows", "database.py": "x = 1"})
    until(lambda: counted and judged.keys() >= {"HEAD", "tables", "database.py"})
    stop.set()
    thread.join(PATIENCE)
    assert [judged[name] for name in ("HEAD", "tables", "database.py")] == [False, False, True]


FREEING = """
import ctypes
from research.benchmarks.machine import memory_mb
from codeqa.store.reader import give_back_memory
c, size = ctypes.CDLL(None), 4_000
c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
pieces = [ctypes.c_void_p(c.malloc(size)) for _ in range(10_000)]
for piece in pieces:
    ctypes.memset(piece, 1, size)
before = memory_mb()
for piece in pieces[:-1]:  # what lies below the last one the C library keeps
    c.free(piece)
give_back_memory()
print(before - memory_mb())
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def test_what_was_freed_goes_back_to_the_system(run_python: Run) -> None:
    done = run_python("-c", FREEING)
    assert done.stdout, done.stderr
    assert float(done.stdout) > 25
