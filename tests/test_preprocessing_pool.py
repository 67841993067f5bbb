"""Parsing in worker processes: results, bad files, dying and hanging workers, clean ends."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from test_preprocessing import alive, children_of

from codeqa.errors import RepositoryError
from codeqa.parsing import parse_file, pool
from codeqa.parsing.pool import FileResult, parse_many
from codeqa.repository.walk import FileEntry, walk
from tests.repositories import Write

# Loaded by the workers alone, in place of a parser with a defect.
BAD_PARSER = """
import ctypes, os, signal, sys
import codeqa.parsing.parse as parsing
whole = parsing.parse_file
def parse_file(path, data, role="source"):
    if b"please crash" in data: os.kill(os.getpid(), signal.SIGSEGV)
    if b"please exit" in data: sys.exit(0)
    if b"please hang" in data: ctypes.PyDLL(None).sleep(600)  # lets no thread run
    if b"please raise" in data: raise RecursionError
    if b"please print" in data: print("noise")
    return whole(path, data, role)
parsing.parse_file = parse_file
"""


pytestmark = pytest.mark.usefixtures("real_workers")


@pytest.fixture
def bad_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that crash, hang or fail on the files that ask for it."""
    start = "from codeqa.parsing.pool import run_worker; run_worker()"
    assert start in pool._BOOT
    code = BAD_PARSER.replace("{", "{{").replace("}", "}}")
    boot = pool._BOOT.replace(start, f"exec({code!r}); {start}")
    monkeypatch.setattr(pool, "_BOOT", boot)


def parse(root: Path, workers: int = 2, **options: Any) -> dict[str, FileResult]:
    found = walk(root, max_file_bytes=1_000_000)
    results = list(
        parse_many(found.root, found.files, workers=workers, max_file_bytes=1_000_000, **options)
    )
    assert len(results) == len(found.files)
    return {result.path: result for result in results}


def test_each_file_comes_back_once_with_all_that_is_known(
    tmp_path: Path, write_files: Write
) -> None:
    code = "import os\n\n\nclass C{}:\n    def f(self):\n        return os.getcwd()\n"
    files = {f"pkg/m{n}.py": code.format(n) for n in range(50)}
    key = "gh" + "p_" + "a1B2" * 9
    root = write_files(
        tmp_path / "repo",
        {**files, "tests/test_a.py": f"K = '{key}'\n", "x.py": b"# \xff\xfe\n" * 9, "b.xyz": b"\0"},
    )
    results = parse(root)
    one = results["pkg/m7.py"]
    parsed = parse_file("pkg/m7.py", files["pkg/m7.py"].encode(), "source")
    assert one.packed == asdict(parsed)
    assert one.hash == blake2b(files["pkg/m7.py"].encode(), digest_size=16).hexdigest()
    assert one.size == len(files["pkg/m7.py"]) and one.role == "source" and not one.reason
    assert one.mtime_ns == (root / "pkg/m7.py").stat().st_mtime_ns
    assert (results["tests/test_a.py"].role, results["tests/test_a.py"].masked) == ("test", 1)
    assert results["x.py"].packed["replaced_bytes"] == 18
    assert results["b.xyz"].reason == "binary" and results["b.xyz"].packed is None


def test_a_file_with_the_known_hash_is_not_parsed_again(tmp_path: Path, write_files: Write) -> None:
    root = write_files(tmp_path / "repo", {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    known = {path: result.hash for path, result in parse(root).items()}
    write_files(root, {"b.py": "b = 2\n"})
    again = parse(root, known=known)
    assert again["a.py"].unchanged and again["a.py"].packed is None
    assert not again["b.py"].unchanged and again["b.py"].packed is not None


def test_files_that_vanish_or_change_under_our_hands_are_skipped(
    tmp_path: Path, write_files: Write
) -> None:
    root = write_files(tmp_path / "repo", {"a.py": "a = 1\n", "b.py": "b\n", "c.py": "c\n"})
    entries = walk(root, max_file_bytes=100).files
    (root / "a.py").unlink()
    (root / "b.py").write_bytes(b"x" * 101)
    (root / "c.py").unlink()
    os.mkfifo(root / "c.py")
    entries = (*entries, FileEntry("../x.py", 1, 1), FileEntry("/etc/passwd", 1, 1))
    results = {r.path: r.reason for r in parse_many(root, entries, workers=1, max_file_bytes=100)}
    assert results == {
        "../x.py": "unreadable: Not a path inside the repository",
        "/etc/passwd": "unreadable: Not a path inside the repository",
        "a.py": "unreadable: No such file or directory",
        "b.py": "larger than 100 bytes",
        "c.py": "unreadable: Not a regular file",
    }


def test_a_file_that_ends_or_holds_up_its_worker_is_skipped_and_the_rest_goes_on(
    tmp_path: Path, write_files: Write, bad_parser: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SECONDS_PER_FILE", 1.5)
    files = {f"m{n:02}.py": f"x = {n}\n" for n in range(40)}
    bad = {0: "crash", 3: "exit", 4: "raise", 39: "hang"}
    for number, request in {**bad, 7: "print"}.items():
        files[f"m{number:02}.py"] += f"# please {request}\n"
    results = parse(write_files(tmp_path / "repo", files))
    failed = {path: result.reason for path, result in results.items() if result.reason}
    assert failed == {f"m{number:02}.py": "the parser failed on it" for number in bad}
    assert all(result.packed for path, result in results.items() if path not in failed)


def test_workers_that_cannot_start_are_an_error_and_not_a_skipped_file(
    tmp_path: Path, write_files: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_files(tmp_path / "repo", {"a.py": "x = 1\n"})
    monkeypatch.setattr(pool, "_BOOT", "raise ImportError({separator!r})")
    with pytest.raises(RepositoryError, match="end as soon as they are started"):
        parse(root)
    monkeypatch.setattr(pool.sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(RepositoryError, match="No worker process starts"):
        parse(root)


def priority(process: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, process)


def test_workers_give_way_to_others_and_end_when_the_reader_leaves_early(
    tmp_path: Path, write_files: Write
) -> None:
    root = write_files(tmp_path / "repo", {f"m{n}.py": "x = 1\n" * 500 for n in range(200)})
    entries = walk(root, max_file_bytes=1_000_000).files
    before = set(children_of(os.getpid()))
    results = parse_many(root, entries, workers=3, max_file_bytes=1_000_000)
    next(results)
    lower = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
    # The first result may be there before the last worker has begun.
    deadline, workers = time.monotonic() + 10, set[int]()
    while time.monotonic() < deadline and (
        len(workers) < 3 or any(priority(worker) != lower for worker in workers)
    ):
        time.sleep(0.01)
        workers = set(children_of(os.getpid())) - before
    assert len(workers) == 3
    assert set(map(priority, workers)) == {lower}
    # Linux weighs sessions against each other before priorities.
    assert {os.getsid(worker) for worker in workers} == {os.getsid(0)}
    results.close()  # type: ignore[attr-defined]
    assert not any(map(alive, workers))
    assert not any(thread.name == "codeqa-parse" for thread in threading.enumerate())


def test_few_files_start_one_worker_and_none_start_none(
    tmp_path: Path, write_files: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    whole = pool._start_process
    monkeypatch.setattr(pool, "_start_process", lambda: (started.append(1), whole())[1])
    root = write_files(tmp_path / "repo", {f"m{n}.py": "x = 1\n" for n in range(3)})
    assert len(parse(root, workers=8)) == 3
    assert len(started) == 1
    assert list(parse_many(root, [], workers=4, max_file_bytes=10)) == []
    assert len(started) == 1
