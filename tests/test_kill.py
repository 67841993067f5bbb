"""`kill -9` at any moment leaves an index that the next run completes, row for row."""

from __future__ import annotations

import json
import os
import queue
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from codeqa.indexing import Indexer
from codeqa.indexing.runs import holder_of
from codeqa.settings import load_settings
from codeqa.store import Location, Tables, TextSearch, locate
from codeqa.types import Progress
from create_tables import main
from tests.index_rows import clean_rows, read_meanwhile, rows

ROOT = Path(__file__).resolve().parent.parent
SECONDS_TO_START = 60


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
    until = time.monotonic() + 30
    while holder := holder_of(location):
        assert time.monotonic() < until, f"the lock outlives its process: {holder}"
        time.sleep(0.05)


def start(root: Path, data: Path, *options: str) -> subprocess.Popen[bytes]:
    """A run in a process of its own, which leads its group as in a terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment |= {"CODEQA_DATA": str(data), "CODEQA_BATCH_FILES": "4", "CODEQA_WORKERS": "2"}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "create_tables.py"), *options, str(root)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for_work(process: subprocess.Popen[bytes], location: Location, since: float) -> None:
    """Return once the process has begun to index; its imports are not worth a kill."""
    record = location.folder / "progress.json"
    until = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < until:
        try:
            said = json.loads(record.read_text())
            if said["at"] > since and (said["progress"] or {}).get("phase") == "indexing":
                return
        except (OSError, ValueError):
            pass
        time.sleep(0.005)


def kill_and_complete(tmp_path: Path, seed: int, kills: int, files: int, longest: float) -> int:
    """Kill `kills` runs while files change, complete, compare; returns how many died."""
    chance = random.Random(seed)
    root, data = tmp_path / "repo", tmp_path / "data"
    for number in range(files):
        write_module(root, number, 0)
    settings = load_settings(data=data, workers=2)
    location = locate(settings, root)
    died = 0
    for _ in range(kills):
        began = time.time()
        options = ["--full"] if chance.random() < 0.15 else []
        process = start(root, data, *options)
        wait_for_work(process, location, began)
        time.sleep(chance.uniform(0, longest))
        process.kill()
        process.communicate()
        died += process.returncode == -signal.SIGKILL
        wait_until_free(location)
        if location.folder.exists() and Indexer(settings, location).status().files:
            Tables(location).find(TextSearch("methods", "step", 5))
        if chance.random() < 0.7:
            mutate(root, chance)
    Indexer(settings, location).run()
    assert rows(location) == clean_rows(root, tmp_path)
    status = Indexer(settings, location).status()
    assert (status.state, status.error) == ("ready", "")
    return died


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))
def test_many_killed_runs_are_completed_row_for_row(seed: int, tmp_path: Path) -> None:
    assert kill_and_complete(tmp_path, seed, kills=8, files=90, longest=1.2) > 0


def test_a_run_that_is_held_is_named_and_one_that_waits_completes_what_ctrl_c_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, data = tmp_path / "repo", tmp_path / "data"
    for number in range(40):
        write_module(root, number, 1)
    settings = load_settings(data=data, workers=1)
    location = locate(settings, root)
    first = start(root, data)
    wait_for_work(first, location, 0)
    first.send_signal(signal.SIGSTOP)
    assert main([str(root), "--no-wait"]) == 1
    assert f"process {first.pid} on " in capsys.readouterr().err
    told: queue.Queue[Progress] = queue.Queue()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(Indexer(settings, location).run, told.put)
        assert told.get(timeout=60).phase == "waiting"
        os.killpg(first.pid, signal.SIGINT)  # to the whole group, as a terminal does
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate(timeout=60)
        assert first.returncode == 1
        assert errors.decode().strip().splitlines()[-1].startswith("codeqa: interrupted.")
        assert "Traceback" not in errors.decode()
        assert waiting.result(120).files == 40
    assert rows(location) == clean_rows(root, tmp_path)


@pytest.mark.slow  # test_store.py has the readers and the writer in one process
def test_readers_of_another_process_see_no_error_while_it_indexes(tmp_path: Path) -> None:
    root, data = tmp_path / "repo", tmp_path / "data"
    for number in range(30):
        write_module(root, number, 0)
    settings = load_settings(data=data, workers=2)
    indexer = Indexer(settings, locate(settings, root))
    indexer.run()
    tables = Tables(indexer.location)

    def read() -> None:
        time.sleep(0.02)  # leaves the processor to the process that writes
        assert tables.find(TextSearch("methods", "step", 20))
        assert tables.counts().files > 20
        assert indexer.status().files > 20

    chance = random.Random(7)
    with read_meanwhile(read):
        for options in ([], ["--full"]):
            mutate(root, chance)
            process = start(root, data, *options)
            process.communicate(timeout=120)
            assert process.returncode == 0
    assert rows(indexer.location) == clean_rows(root, tmp_path)
