"""How soon a clean clone shows its page.

    python -m research.benchmarks.first_run CHECKOUT... [--load 6]

Each CHECKOUT, a folder or `folder@commit`, is cloned, and `make run` is started in the clone with
empty caches and no data. Measured are the seconds until the page answers, the longest silence until
then and until the index is complete, what a second run takes of the processor until the page
answers, and how soon the page of another clone answers, which finds the packages of the first.
`--load` busy loops run beside it; `--terminal` gives `make` a terminal instead of a pipe.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pty
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Self
from urllib.request import urlopen

from research.benchmarks.machine import ROOT, conditions, free_port

SECONDS_TO_START, SECONDS_TO_INDEX = 900.0, 900.0
POLL_SECONDS = 0.02
LABELS = {
    "page": "first run, until the page answers, s",
    "processor": "  of the processor until then, s",
    "silence": "  longest silence until then, s",
    "silence_indexing": "  longest silence until all is indexed, s",
    "second": "second run, until the page answers, s",
    "second_processor": "  of the processor until then, s",
    "second_clone": "another clone, until the page answers, s",
}


class Run:
    """`make run` in `checkout`, with all that it says and when."""

    def __init__(self, checkout: Path, repo: Path, home: Path, terminal: bool) -> None:
        self.port = free_port()
        self.heard: list[tuple[float, bytes]] = []
        environment = {
            **{name: value for name, value in os.environ.items() if name != "WHEELS"},
            "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"),
            "CODEQA_DATA": str(home / "data"),
        }  # fmt: skip
        ours, theirs = pty.openpty() if terminal else os.pipe()
        command = ["make", "-s", "run", f"REPO={repo}", f"PORT={self.port}"]
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            command, cwd=checkout, env=environment, stdin=subprocess.DEVNULL,
            stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        threading.Thread(target=self._listen, args=(ours,), daemon=True).start()

    def _listen(self, ours: int) -> None:
        with contextlib.suppress(OSError):  # the other end of a terminal is closed
            while data := os.read(ours, 65_536):
                self.heard.append((time.monotonic(), data))
        os.close(ours)

    def text(self) -> str:
        return b"".join(data for _, data in self.heard).decode("utf-8", "replace")

    def until_page(self) -> tuple[float, float]:
        """Seconds by the clock and of the processor until the page answers."""
        while time.monotonic() < self.began + SECONDS_TO_START:
            with contextlib.suppress(OSError):
                urlopen(f"http://127.0.0.1:{self.port}/", timeout=300).read()
                return time.monotonic() - self.began, processor_seconds(self._process.pid)
            if self._process.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise SystemExit(f"make run did not serve the page:\n{self.text()}")

    def until_indexed(self) -> None:
        while "on disk" not in self.text():
            if time.monotonic() > self.began + SECONDS_TO_INDEX:
                raise SystemExit(f"The repository was not indexed:\n{self.text()}")
            time.sleep(0.1)

    def silence(self) -> float:
        """The longest time without a word until now, of what was taken until now."""
        times = [self.began, *(at for at, _ in self.heard), time.monotonic()]
        return max(later - before for before, later in pairwise(times))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait(120)


def processor_seconds(top: int) -> float:
    """What the process `top` and all below it have taken, with those of them that have ended."""
    ticks, waiting = 0, [top]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for children in process.glob("task/*/children"):
                waiting += map(int, children.read_text().split())
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the machine busy with so many loops."""
    loop = ["sh", "-c", "while :; do :; done"]
    # Each in a session of its own: the system shares the processors out among sessions.
    running = [subprocess.Popen(loop, start_new_session=True) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def measure(checkout: str, repo: Path, terminal: bool, log: Path | None) -> dict[str, float]:
    source, _, commit = checkout.partition("@")
    with tempfile.TemporaryDirectory() as folder:
        home, clones = Path(folder, "home"), [Path(folder, name) for name in ("one", "two")]
        home.mkdir()
        for clone in clones:
            subprocess.run(["git", "clone", "-q", Path(source).resolve(), clone], check=True)
            subprocess.run(["git", "checkout", "-q", commit or "HEAD"], cwd=clone, check=True)
        figures: dict[str, float] = {}
        with Run(clones[0], repo, home, terminal) as run:
            figures["page"], figures["processor"] = run.until_page()
            figures["silence"] = run.silence()
            run.until_indexed()
            figures["silence_indexing"] = run.silence()
        if log:
            at = (f"{when - run.began:7.2f}  {data.decode()!r}\n" for when, data in run.heard)
            log.write_text("".join(at), "utf-8")
        with Run(clones[0], repo, home, terminal) as run:
            figures["second"], figures["second_processor"] = run.until_page()
        with Run(clones[1], repo, home, terminal) as run:
            figures["second_clone"], _ = run.until_page()
        return figures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", nargs="+", metavar="CHECKOUT")
    parser.add_argument("--repo", type=Path, default=ROOT, help="what is indexed; default: CodeQA")
    parser.add_argument("--rounds", type=int, default=1, help="of all checkouts; medians are shown")
    parser.add_argument("--load", type=int, default=0, metavar="LOOPS", help="busy loops beside it")
    parser.add_argument("--terminal", action="store_true", help="a terminal instead of a pipe")
    parser.add_argument("--log", type=Path, help="write what the last first run said to this file")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it started ends with it
    taken: dict[str, list[dict[str, float]]] = {one: [] for one in options.checkouts}
    with busy(options.load):
        for _ in range(options.rounds):
            for checkout, rounds in taken.items():
                figures = measure(checkout, options.repo.resolve(), options.terminal, options.log)
                rounds.append(figures | {"load": os.getloadavg()[0]})
                print(checkout, {name: round(one, 2) for name, one in rounds[-1].items()})
    for name, label in LABELS.items():
        medians = [statistics.median(one[name] for one in rounds) for rounds in taken.values()]
        print(f"  {label:<44}" + "".join(f"{median:>9.2f}" for median in medians))
    if options.json:
        about = conditions(["python", "-m", "research.benchmarks.first_run", *sys.argv[1:]])
        options.json.write_text(json.dumps(about | {"runs": taken}, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
