"""What is read of a repository in worker processes: the front door that shows it as JSON lines and
CSV tables, bad files, dying and hanging workers, clean ends."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import threading
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas
import pytest
from cli_shop import Command, Result, runner
from waiting import until

import preprocessing
from codeqa.errors import RepositoryError, UsageError
from codeqa.parsing import parse_file, pool
from codeqa.parsing import preprocess as preprocess_module
from codeqa.parsing.pool import FileResult, parse_many
from codeqa.parsing.preprocess import preprocess
from codeqa.repository.walk import FileEntry, walk
from codeqa.settings import Settings
from codeqa.types import Progress, Skipped
from tests.kit.repositories import Write

SHAPES = '''\
"""Shapes."""

class Square:
    """A square."""

    def __init__(self, side):
        self.side = side

    def area(self):
        """Its area."""
        return self.side ** 2

    def outline(self):
        return 4 * self.side
'''
MAIN = "from shapes import Square\n\n\ndef main():\n    return Square(2).area()\n"


FILES: dict[str, str | bytes] = {
    "shapes.py": SHAPES,
    "main.py": MAIN,
    "README.md": '# Shapes\n\nDraws; "squares", and\nmore.\n',
    "latin.py": "x = 'naïve'\n".encode("latin-1"),
    "logo.png": b"\x89PNG",
    "data.bin2": b"\0",
}


@pytest.fixture
def repo(tmp_path: Path, write_files: Write) -> Path:
    return write_files(tmp_path / "a repo", FILES)


def test_files_come_in_the_order_of_their_paths(repo: Path, settings: Settings) -> None:
    skipped: list[Skipped] = []
    seen: list[Progress] = []
    files = list(preprocess(str(repo), settings, progress=seen.append, skipped=skipped))
    assert [file["path"] for file in files] == ["README.md", "latin.py", "main.py", "shapes.py"]
    reasons = {entry.path: entry.reason for entry in skipped}
    assert reasons == {"logo.png": "binary", "data.bin2": "binary"}
    assert files[1]["replaced_bytes"] == 1
    assert [progress.done for progress in seen] == [1, 2, 3, 4, 5]
    assert {progress.total for progress in seen} == {5}
    with pytest.raises(UsageError, match="nowhere"):
        list(preprocess(repo / "nowhere", settings))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def front_door(capsys: pytest.CaptureFixture[str]) -> Command:
    return runner(capsys, preprocessing.main)


def test_files_go_to_a_folder_called_like_the_repository_or_are_printed(
    repo: Path, tmp_path: Path, front_door: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = front_door(repo)
    assert (done.status, done.out) == (0, ""), done.err
    assert "processed/a repo" in done.err and "references" in done.err and "binary" in done.err
    folder = tmp_path / "processed" / "a repo"
    names = sorted(path.name for path in folder.iterdir())
    assert names == [".gitignore", "classes.csv", "files.jsonl", "methods.csv"]
    done = front_door(repo, "--out", "-")
    assert done.out == (folder / "files.jsonl").read_text("utf-8")
    files = {entry["path"]: entry for entry in map(json.loads, done.out.splitlines())}
    assert list(files) == ["README.md", "latin.py", "main.py", "shapes.py"]
    area = next(unit for unit in files["shapes.py"]["units"] if unit["name"] == "area")
    assert (area["kind"], area["start_line"], area["end_line"]) == ("method", 9, 11)
    assert (area["qualified_name"], area["doc_comment"]) == ("Square.area", "Its area.")
    assert any(ref["name"] == "Square" for ref in files["main.py"]["references"])


def test_csv_tables_are_those_of_the_source_system(
    repo: Path, tmp_path: Path, front_door: Command
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    done = front_door(repo, "--out", folder, "--quiet")
    assert done == Result(0, "", "")
    assert not (folder / ".gitignore").exists()  # only a folder of our own is hidden from git
    methods, classes = rows(folder / "methods.csv"), rows(folder / "classes.csv")
    assert list(methods[0])[:7] == [
        "code", "file_path", "class_name", "name", "doc_comment", "source_code", "references",
    ]  # fmt: skip
    assert list(classes[0])[:6] == [
        "source_code", "file_path", "class_name", "constructor_declaration",
        "method_declarations", "references",
    ]  # fmt: skip
    area = next(row for row in methods if row["name"] == "area")
    assert (area["class_name"], area["references"]) == ("Square", "main.py:5:22")
    assert area["source_code"].startswith("    def area") and "def area" in area["code"]
    square = next(row for row in classes if row["class_name"] == "Square")
    assert square["references"] == "main.py:1:20; main.py:5:12"
    assert square["reference_count"] == "2"
    assert square["method_declarations"] == "def area(self)\n-----\ndef outline(self)"
    assert "__init__" in square["constructor_declaration"]
    section = next(row for row in classes if row["kind"] == "document")
    assert section["source_code"] == '# Shapes\n\nDraws; "squares", and\nmore.'
    assert section["references"] == ""


def test_a_wrong_call_is_told_in_one_line(
    repo: Path, front_door: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    for arguments, message in (
        (["nowhere"], "There is no folder nowhere"),
        (["shapes.py"], "is not a folder"),
        ([], "REPO"),
        ([".", "--out", "shapes.py/x"], "cannot be written"),
        ([".", "--workers", "-1"], "CODEQA_WORKERS"),
    ):
        done = front_door(*arguments, "--quiet")
        assert (done.status, done.out) == (2, "")
        assert message in done.err and "Traceback" not in done.err


def test_an_interrupt_ends_workers_and_leaves_no_half_file(
    tmp_path: Path, write_files: Write, front_door: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_files(tmp_path / "big", {f"f{n}.py": SHAPES * 50 for n in range(48)})
    line, served = preprocess_module.json_line, list[int]()

    def json_line(file: dict[str, Any]) -> str:
        served.append(len(serving()))
        if len(served) == 3:
            raise KeyboardInterrupt
        return line(file)

    monkeypatch.setattr(preprocess_module, "json_line", json_line)
    done = front_door(root, "--out", tmp_path / "out")
    assert done.status == 1
    assert "interrupted" in done.err and "Traceback" not in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".gitignore"]
    assert served[-1] and not serving()


# The workers

# Loaded by the workers alone, in place of a parser with a defect. The limit of a file is over at
# once for the one that hangs, and never for another.
BAD_PARSER = """
import ctypes, faulthandler, os, signal, sys
import codeqa.parsing as parsing
whole = parsing.parse_file
class Limit:
    seconds = 0.0
    def dump_traceback_later(self, seconds, exit): self.seconds = exit and seconds
    def cancel_dump_traceback_later(self): self.seconds = 0.0
limit = Limit()
def hang():
    if limit.seconds == pool.SECONDS_PER_FILE: faulthandler.dump_traceback_later(1e-6, exit=True)
    ctypes.PyDLL(None).sleep(600)  # lets no thread run
def parse_file(path, data, role="source"):
    if b"please crash" in data: os.kill(os.getpid(), signal.SIGSEGV)
    if b"please exit" in data: sys.exit(0)
    if b"please hang" in data: hang()
    if b"please raise" in data: raise RecursionError
    if b"please print" in data: print("noise")
    return whole(path, data, role)
parsing.parse_file = parse_file
from codeqa.parsing import pool
pool.faulthandler = limit
"""


@pytest.fixture
def bad_parser(monkeypatch: pytest.MonkeyPatch, real_workers: None) -> None:
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


def test_each_file_comes_back_once_with_what_is_known(tmp_path: Path, write_files: Write) -> None:
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


def test_few_files_start_one_worker_which_parses_no_file_of_the_known_hash_again(
    tmp_path: Path, write_files: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    whole = pool._start_process
    monkeypatch.setattr(pool, "_start_process", lambda: (started.append(1), whole())[1])
    root = write_files(tmp_path / "repo", {"a.py": "a = 1\n", "b.py": "b = 2\n"})
    known = {path: blake2b(b"a = 1\n", digest_size=16).hexdigest() for path in ("a.py", "b.py")}
    again = parse(root, workers=8, hashes=known)
    assert again["a.py"].unchanged and again["a.py"].packed is None
    assert not again["b.py"].unchanged and again["b.py"].packed is not None
    assert list(parse_many(root, [], workers=4, max_file_bytes=10)) == []
    assert len(started) == 1


def test_files_that_vanish_or_change_are_skipped(tmp_path: Path, write_files: Write) -> None:
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
    tmp_path: Path, write_files: Write, bad_parser: None
) -> None:
    files = {f"m{n:02}.py": f"x = {n}\n" for n in range(12)}
    bad = {0: "crash", 3: "exit", 4: "raise", 11: "hang"}
    for number, request in {**bad, 7: "print"}.items():
        files[f"m{number:02}.py"] += f"# please {request}\n"
    results = parse(write_files(tmp_path / "repo", files), workers=1)
    failed = {path: result.reason for path, result in results.items() if result.reason}
    assert failed == {f"m{number:02}.py": "the parser failed on it" for number in bad}
    assert all(result.packed for path, result in results.items() if path not in failed)


@pytest.mark.usefixtures("real_workers")
def test_workers_that_cannot_start_are_an_error_and_not_a_skipped_file(
    tmp_path: Path, write_files: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write_files(tmp_path / "repo", {"a.py": "x = 1\n"})
    monkeypatch.setattr(pool, "_BOOT", "raise ImportError({separator!r})")
    with pytest.raises(RepositoryError, match="stop as soon as they start"):
        parse(root)
    monkeypatch.setattr(pool.sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(RepositoryError, match="No worker process can start"):
        parse(root)


@pytest.mark.usefixtures("real_workers")
def test_workers_give_way_and_end_with_their_reader(tmp_path: Path, write_files: Write) -> None:
    root = write_files(tmp_path / "repo", {f"m{n}.py": "x = 1\n" for n in range(64)})
    entries = walk(root, max_file_bytes=1_000_000).files
    before = children()
    results = parse_many(root, entries, workers=2, max_file_bytes=1_000_000)
    next(results)
    lower = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)

    def started() -> list[int]:
        priorities = {one: os.getpriority(os.PRIO_PROCESS, one) for one in children() - before}
        lowered = [worker for worker, priority in priorities.items() if priority == lower]
        return lowered if len(lowered) == 2 else []

    workers = until(started)  # the first result may be there before the last worker has begun
    # Linux weighs sessions against each other before priorities.
    assert {os.getsid(worker) for worker in workers} == {os.getsid(0)}
    results.close()  # type: ignore[attr-defined]
    assert not children() & {*workers}
    assert not serving()


def serving() -> list[str]:
    """Threads that each serve a worker and end it when they end."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name == "codeqa-parse"]


def children() -> set[int]:
    """Processes that this one started and did not see end."""
    processes: set[int] = set()
    for listed in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            processes.update(map(int, listed.read_text().split()))
    return processes


def test_parquet_tables_are_the_csv_tables_part_by_part(
    repo: Path, tmp_path: Path, front_door: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.parsing.preprocess.FRAME_ROWS", 1)
    for table_format in ("csv", "parquet"):
        folder = tmp_path / table_format
        assert front_door(repo, "--out", folder, "--format", table_format, "--quiet").status == 0
    for name in ("methods", "classes"):
        frame = pandas.read_parquet(tmp_path / "parquet" / f"{name}.parquet")
        written = rows(tmp_path / "csv" / f"{name}.csv")
        assert frame.astype(str).to_dict("records") == written and len(written) > 1
