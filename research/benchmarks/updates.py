"""What many small updates leave behind.

    python -m research.benchmarks.updates [--updates N] [--apart]

A copy of a folder is indexed and searched without a pause, as a served page does, while one file
after another changes and is indexed again: by the same process, or with `--apart` by another one.
Measured are, at the first and the last updates, the memory and the open files of the process that
searches, the bytes and files of its tables, and the time that an update and a search take. An
edited file gets a new function in the place of its last one, so that the repository does not grow;
with `--at-once` several files are edited before each update, as a watched folder's are.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from codeqa.engine import Engine, open_engine
from codeqa.settings import Settings, load_settings
from research.benchmarks.machine import ROOT, conditions, disk_of, memory_mb, open_files

QUESTIONS = (
    "where are the tables opened for reading?", "how is a deleted file noticed?", "Settings",
    "what limits the number of workers?", "def run", "when are old versions removed?",
)  # fmt: skip
WARM_UP = 20
"""Updates before the first figures: caches fill, and every index was built anew once."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What stands at one moment."""

    updates: int
    memory_mb: float
    open_files: int
    disk_mb: float
    disk_files: int
    update_ms: float
    """Median of the latest updates."""
    search_ms: float
    """Median of the searches beside them."""


class Searcher:
    """Searches in a thread until it is stopped."""

    def __init__(self, engine: Engine) -> None:
        self.milliseconds: list[float] = []
        self.failure: BaseException | None = None
        self._engine = engine
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self.failure:
            raise self.failure

    def _run(self) -> None:
        number = 0
        try:
            while not self._stop.is_set():
                began = time.perf_counter()
                self._engine.search.search(QUESTIONS[number % len(QUESTIONS)])
                self.milliseconds.append((time.perf_counter() - began) * 1000)
                number += 1
                time.sleep(0.05)
        except BaseException as error:
            self.failure = error


def measure(source: Path, updates: int, every: int, at_once: int, apart: bool) -> list[Figures]:
    """Figures after `WARM_UP` updates and after each `every` more."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "repository"
        shutil.copytree(source, repository, ignore=shutil.ignore_patterns("__pycache__"))
        settings = load_settings(data=Path(folder) / "data")
        engine = open_engine(settings, repository)
        engine.index.run()
        searcher = Searcher(engine)
        try:
            writer = _Apart(settings, repository) if apart else _Here(engine)
            return _measured(engine, searcher, writer, repository, updates, every, at_once)
        finally:
            searcher.stop()
            engine.close()


class _Here:
    """Indexes in this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def update(self) -> None:
        self._engine.index.run()


class _Apart:
    """Indexes in a process of its own, each time that it is told to."""

    CODE = (
        "import sys; from pathlib import Path; from codeqa.engine import open_engine; "
        "from codeqa.settings import load_settings\n"
        "engine = open_engine(load_settings(data=Path(sys.argv[1])), Path(sys.argv[2]))\n"
        "for line in sys.stdin:\n    engine.index.run(); print('done', flush=True)"
    )

    def __init__(self, settings: Settings, repository: Path) -> None:
        command = [sys.executable, "-c", self.CODE, str(settings.data_dir), str(repository)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def update(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


def _measured(
    engine: Engine,
    searcher: Searcher,
    writer: _Here | _Apart,
    repository: Path,
    updates: int,
    every: int,
    at_once: int,
) -> list[Figures]:
    files = sorted(repository.rglob("*.py"))
    found: list[Figures] = []
    seconds: list[float] = []
    for number in range(1, updates + 1):
        added = f"\n\ndef added_{number}(value):\n    return value + {number}\n"
        for place in range(number * at_once, (number + 1) * at_once):
            path = files[place % len(files)]
            text = path.read_text(encoding="utf-8").partition("\n\ndef added_")[0]
            path.write_text(text + added, encoding="utf-8")
        began = time.perf_counter()
        writer.update()
        seconds.append(time.perf_counter() - began)
        if number == WARM_UP or (number > WARM_UP and number % every == 0):
            found.append(_figures(engine, number, seconds, searcher.milliseconds))
            print(json.dumps(asdict(found[-1])), flush=True)
            seconds.clear()
            searcher.milliseconds.clear()
    return found


def _figures(
    engine: Engine, updates: int, seconds: Sequence[float], searches: Sequence[float]
) -> Figures:
    megabytes, files = disk_of(Path(engine.location.tables))
    return Figures(
        updates=updates,
        memory_mb=memory_mb(),
        open_files=open_files(),
        disk_mb=megabytes,
        disk_files=files,
        update_ms=round(statistics.median(seconds) * 1000, 1),
        search_ms=round(statistics.median(searches or [0.0]), 1),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repository", type=Path, default=ROOT / "codeqa")
    parser.add_argument("--updates", type=int, default=1_000)
    parser.add_argument("--every", type=int, default=100, help="updates between two figures")
    parser.add_argument("--at-once", type=int, default=1, help="files edited before each update")
    parser.add_argument("--apart", action="store_true", help="index in another process")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)
    found = measure(
        options.repository, options.updates, options.every, options.at_once, options.apart
    )
    if options.json:
        command = ["python", "-m", "research.benchmarks.updates", *sys.argv[1:]]
        report = {**conditions(command), "figures": [asdict(one) for one in found]}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
