"""`kill -9` at any moment leaves an index that the next run completes, row for row."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codeqa.indexing import Indexer
from codeqa.indexing.runs import holder_of
from codeqa.settings import load_settings
from codeqa.store import Location, Tables, TextSearch, locate
from codeqa.types import Progress
from create_tables import main
from tests.kit.index_rows import clean_rows, rows
from tests.kit.waiting import PATIENCE, until

HELD = """
import os, signal
from codeqa.indexing import passes
from create_tables import main
add, results = passes.add_result, []

def add_result(*arguments):
    results.append(arguments)
    if len(results) == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
    add(*arguments)

passes.add_result = add_result
raise SystemExit(main())
"""
"""A run that stops while files are parsed, until it gets SIGCONT."""
ROOT = Path(__file__).resolve().parents[2]


def write_module(root: Path, number: int, version: int) -> None:
    folder = root / ("src" if number % 3 else "tests")
    folder.mkdir(parents=True, exist_ok=True)
    functions = "\n\n".join(
        f"def step_{number}_{index}(value):\n    '''Step {index} of {version}.'''\n"
        f"    return step_{number}_{(index + 1) % 5}(value + {version})\n"
        for index in range(3 + version % 3)
    )
    text = f"import os\n\n\nclass Part{number}:\n    size = {version}\n\n\n{functions}"
    (folder / f"module_{number}.py").write_text(text)


def mutate(root: Path, chance: random.Random) -> None:
    """Change, delete, rename and add some files."""
    files = sorted(root.rglob("*.py"))
    for file in chance.sample(files, k=min(6, len(files))):
        action = chance.choice(["change", "change", "delete", "rename", "empty"])
        if action == "change":
            with file.open("a") as text:
                text.write(f"\n\ndef added_{chance.randrange(10**6)}():\n    return 1\n")
        elif action == "delete":
            file.unlink()
        elif action == "rename":
            file.rename(file.with_name(f"renamed_{chance.randrange(10**6)}.py"))
        else:
            file.write_text("")
    write_module(root, 1000 + chance.randrange(1000), chance.randrange(9))


def wait_until_free(location: Location) -> None:
    """A worker that was being forked holds the lock's descriptor until it execs."""
    until(lambda: not holder_of(location))


def start(root: Path, data: Path, *options: str, script: str = "") -> subprocess.Popen[bytes]:
    """A run in a process of its own, which leads its group as in a terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment |= {"CODEQA_DATA": str(data), "CODEQA_BATCH_FILES": "4", "CODEQA_WORKERS": "2"}
    program = ["-c", script] if script else [str(ROOT / "create_tables.py")]
    return subprocess.Popen(
        [sys.executable, *program, *options, str(root)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_killed_runs_are_completed_row_for_row(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    root, data = tmp_path / "repo", tmp_path / "data"
    for number in range(90):
        write_module(root, number, 0)
    settings = load_settings(data=data, workers=2)
    location = locate(settings, root)
    died = 0
    for _ in range(8):
        process = start(root, data, *(["--full"] if chance.random() < 0.15 else []))
        before, most = {*location.folder.rglob("*")}, chance.randrange(1, 80)
        # Killed when it has written that many files, wherever it is then.
        until(
            lambda process=process, before=before, most=most: (
                process.poll() is not None or len({*location.folder.rglob("*")} - before) >= most
            )
        )
        process.kill()
        process.communicate()
        died += process.returncode == -signal.SIGKILL
        # A worker that was being forked holds the lock's descriptor until it execs.
        wait_until_free(location)
        if location.folder.exists() and Indexer(settings, location).status().files:
            Tables(location).find(TextSearch("methods", "step", 5))
        if chance.random() < 0.7:
            mutate(root, chance)
    Indexer(settings, location).run()
    assert rows(location) == clean_rows(root, tmp_path)
    status = Indexer(settings, location).status()
    assert (status.state, status.error) == ("ready", "")
    assert died > 0


@pytest.mark.slow
def test_a_run_that_is_held_is_named_and_one_that_waits_completes_what_ctrl_c_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, data = tmp_path / "repo", tmp_path / "data"
    for number in range(8):
        write_module(root, number, 1)
    settings = load_settings(data=data, workers=1)
    location = locate(settings, root)
    first = start(root, data, script=HELD)
    os.waitpid(first.pid, os.WUNTRACED)  # until it has stopped
    assert main([str(root), "--no-wait"]) == 1
    assert f"process {first.pid} on " in capsys.readouterr().err
    steps: queue.Queue[Progress] = queue.Queue()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(Indexer(settings, location).run, steps.put)
        assert steps.get(timeout=PATIENCE).phase == "waiting"
        os.killpg(first.pid, signal.SIGINT)  # to the whole group, as a terminal does
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate(timeout=PATIENCE)
        assert first.returncode == 1
        assert errors.decode().strip().splitlines()[-1].startswith("codeqa: interrupted.")
        assert "Traceback" not in errors.decode()
        assert waiting.result(PATIENCE).files == 8
    assert rows(location) == clean_rows(root, tmp_path)
