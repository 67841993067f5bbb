"""The front door that shows what CodeQA reads: JSON lines, CSV tables, errors."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_shop import Command, Result, runner
from conftest import ROOT

import preprocessing
from codeqa.errors import UsageError
from codeqa.parsing.preprocess import preprocess
from codeqa.settings import Settings
from codeqa.types import Progress, Skipped
from tests.repositories import Write

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


@pytest.fixture
def repo(tmp_path: Path, write_files: Write) -> Path:
    return write_files(
        tmp_path / "a repo",
        {
            "shapes.py": SHAPES,
            "main.py": MAIN,
            "README.md": '# Shapes\n\nDraws; "squares", and\nmore.\n',
            "latin.py": "x = 'naïve'\n".encode("latin-1"),
            "logo.png": b"\x89PNG",
            "data.bin2": b"\0",
        },
    )


def test_files_come_in_the_order_of_their_paths(repo: Path, settings: Settings) -> None:
    skipped: list[Skipped] = []
    seen: list[Progress] = []
    files = list(preprocess(str(repo), settings, progress=seen.append, skipped=skipped))
    assert [file["path"] for file in files] == ["README.md", "latin.py", "main.py", "shapes.py"]
    assert {entry.path: entry.reason for entry in skipped} == {
        "logo.png": "binary",
        "data.bin2": "binary",
    }
    assert files[1]["replaced_bytes"] == 1
    assert [progress.done for progress in seen] == [1, 2, 3, 4, 5]
    assert {progress.total for progress in seen} == {5}


def test_a_missing_repository_is_bad_usage(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        list(preprocess(tmp_path / "nowhere", settings))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def front_door(capsys: pytest.CaptureFixture[str]) -> Command:
    return runner(capsys, preprocessing.main)


def test_a_hyphen_prints_units_and_references_as_json_lines(
    repo: Path, front_door: Command
) -> None:
    done = front_door(repo, "--out", "-")
    assert done.status == 0, done.err
    files = {entry["path"]: entry for entry in map(json.loads, done.out.splitlines())}
    assert list(files) == ["README.md", "latin.py", "main.py", "shapes.py"]
    names = {unit["qualified_name"]: unit for unit in files["shapes.py"]["units"]}
    area = names["Square.area"]
    assert (area["kind"], area["start_line"], area["end_line"]) == ("method", 9, 11)
    assert area["doc_comment"] == "Its area."
    assert any(ref["name"] == "Square" for ref in files["main.py"]["references"])
    assert "references" in done.err and "binary" in done.err


def test_files_go_to_a_folder_called_like_the_repository_and_are_summed_up(
    repo: Path, tmp_path: Path, front_door: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = front_door(repo)
    assert (done.status, done.out) == (0, ""), done.err
    assert "processed/a repo" in done.err
    folder = tmp_path / "processed" / "a repo"
    found = sorted(path.name for path in folder.iterdir())
    assert found == [".gitignore", "classes.csv", "files.jsonl", "methods.csv"]
    assert len((folder / "files.jsonl").read_text("utf-8").splitlines()) == 4


def test_csv_tables_have_the_columns_and_joints_of_the_source_system(
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


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nowhere"], 2, "There is no folder nowhere"),
        (["shapes.py"], 2, "is not a folder"),
        ([], 2, "REPO"),
        ([".", "--out", "shapes.py/x"], 2, "cannot be written"),
        ([".", "--workers", "-1"], 2, "CODEQA_WORKERS"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(
    arguments: list[str],
    status: int,
    message: str,
    repo: Path,
    front_door: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(repo)
    done = front_door(*arguments, "--quiet")
    assert done.status == status
    assert message in done.err and "Traceback" not in done.err
    assert done.out == ""


def test_an_interrupt_ends_workers_and_leaves_no_half_file(
    tmp_path: Path, write_files: Write
) -> None:
    root = write_files(tmp_path / "big", {f"f{n}.py": SHAPES * 300 for n in range(200)})
    folder = tmp_path / "out"
    command = [sys.executable, "preprocessing.py", str(root), "--out", str(folder)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if any(path.stat().st_size for path in folder.glob("part-*/files.jsonl")):
            break
        time.sleep(0.01)
    workers = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "interrupted" in errors and "Traceback" not in errors
    assert [path.name for path in folder.iterdir()] == [".gitignore"]
    assert workers and not any(alive(worker) for worker in workers)


def children_of(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return found


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
