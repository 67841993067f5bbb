"""How soon a new repository can be asked.

    python -m research.benchmarks.first_index FOLDER [--json FILE]

The page's server is started on FOLDER without an index, in a process of its own and without a
model. Taken are: when the page answers, when something can be searched, the first answer, when all
is searchable; and what a turn takes while indexing goes on and while it is paused, in turns of a
few questions each, so that whatever else the machine does falls on both alike. Then the same while
vectors of a chosen embedding are made, which a scripted server gives after some time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from research.benchmarks import soak
from research.benchmarks.machine import ROOT, free_port
from tests.kit.openai_server import Reply, openai_server

QUESTIONS = (
    "where is the configuration loaded?",
    "how are errors handled?",
    "what does simplify do?",
    "how is an expression printed?",
    "where are the tests of the parser?",
)
ROUND = 5
"""Questions while indexing goes on, and as many while it is paused."""
REFINING_ROUNDS, REFINING_ROUND = 3, 20
EMBEDDING_SECONDS = 0.3
"""What the server takes for a batch of texts; a question's is there at once."""
LABELS = {
    "page": "until the page answers, s",
    "first_batch": "until something is searchable, s",
    "first_answer": "until the first answer is there, s",
    "all": "until all is searchable, s, questions and pauses left out",
    **{
        f"{state} {kind}": label
        for state in ("indexing", "refining")
        for kind, label in (
            ("paused", f"a turn while {state} is paused, ms (median)"),
            ("on", f"a turn while {state} goes on, ms (median)"),
            ("times", "the one over the other"),
            ("turns", "turns of each kind"),
        )
    },
    "load": "load of the machine before",
}


class Page:
    """The API of a server, as the page asks it."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"

    def call(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._base + path, data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=300) as response:
            return bytes(response.read())

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.call("/api/status"))
        return found

    def steer(self, action: str) -> None:
        self.call("/api/index", {"action": action})

    def ask(self, number: int) -> float:
        """Seconds of a whole turn."""
        question = QUESTIONS[number % len(QUESTIONS)]
        began = time.monotonic()
        self.call("/chat/stream", {"question": f"@codebase {question}", "conversation": "b"})
        return time.monotonic() - began


def model(path: str, body: dict[str, Any]) -> Reply:
    """The scripted vectors."""
    if len(body["input"]) > 1:
        time.sleep(EMBEDDING_SECONDS)
    return soak.model(path, body)


def measure(folder: Path) -> dict[str, float]:
    port, load = free_port(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as data, openai_server(model) as scripted:
        environment = {
            **os.environ, "CODEQA_DATA": data, "CODEQA_EFFORT": "fast", "CODEQA_HYDE": "off",
            "CODEQA_EMBEDDING": "openai/text-embedding-3-small", "OPENAI_API_KEY": "sk-bench",
            "CODEQA_EMBEDDING_DIMENSION": str(soak.DIMENSION), "OPENAI_BASE_URL": scripted.base_url,
        }  # fmt: skip
        command = [sys.executable, "-m", "codeqa", "serve", str(folder), "--port", str(port)]
        began = time.monotonic()
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
        try:
            return {**followed(Page(port), began), "load": load}
        finally:
            server.terminate()
            server.wait(60)


def followed(page: Page, began: float) -> dict[str, float]:
    found: dict[str, float] = {}
    while "page" not in found:
        try:
            page.status()
            found["page"] = time.monotonic() - began
        except URLError:
            time.sleep(0.02)
    page.ask(0)
    found["first_answer"] = time.monotonic() - began
    while not page.status()["files"]:
        time.sleep(0.02)
    found["first_batch"] = time.monotonic() - began
    times: dict[str, list[float]] = defaultdict(list)
    left_out = 0.0
    while page.status()["state"] == "indexing":
        left_out += one_round(page, times, "indexing")
    found["all"] = time.monotonic() - began - left_out
    found |= summary(times, "indexing")
    for _ in range(REFINING_ROUNDS):
        while page.status()["state"] != "refining":
            time.sleep(0.1)
        one_round(page, times, "refining", REFINING_ROUND)
        time.sleep(1)  # the run that was paused ends, and another goes on after a rest
    return found | summary(times, "refining")


def one_round(
    page: Page, times: dict[str, list[float]], state: str, questions: int = ROUND
) -> float:
    """Ask while `state` goes on and while it is paused; the seconds of the pause."""
    times[f"{state} on"] += [page.ask(number) for number in range(questions)]
    began = time.monotonic()
    page.steer("pause")
    while page.status()["state"] == state:
        time.sleep(0.02)
    page.ask(0)  # what was written last is read once
    times[f"{state} paused"] += [page.ask(number) for number in range(questions)]
    page.steer("check")
    paused = time.monotonic() - began
    time.sleep(0.5)
    return paused


def summary(times: Mapping[str, list[float]], state: str) -> dict[str, float]:
    on, paused = (1000 * statistics.median(times[f"{state} {kind}"]) for kind in ("on", "paused"))
    return {
        f"{state} on": on,
        f"{state} paused": paused,
        f"{state} times": on / paused,
        f"{state} turns": len(times[f"{state} on"]),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    found = measure(options.folder.resolve())
    for name, label in LABELS.items():
        print(f"  {label:<60}{found[name]:>10,.{0 if found[name] >= 100 else 2}f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
