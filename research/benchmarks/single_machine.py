"""What one machine pays for what several need: two installations, measured in turn.

    python -m research.benchmarks.single_machine OTHER_VENV VENV REPOSITORY [--json FILE]

Each environment is a venv into which one state of the checkout was installed by `pip install .`.
Every round does the same with both, so whatever else the machine does falls on both alike.
Processor seconds are those of a command and the processes that it waited for; a busy machine
hardly changes them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from research.benchmarks.machine import conditions, disk_of, free_port, memory_mb, wait_for_page

QUESTION = "how is a request dispatched?"

Figures = dict[str, float]


def processor_seconds(environment: Path, data: str, *arguments: str) -> float:
    """Of one command that must succeed."""
    before = os.times()
    subprocess.run(
        [environment / "bin/python", *arguments],
        env=variables(data),
        cwd=data,
        check=True,
        capture_output=True,
    )
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def variables(data: str) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "CODEQA_DATA": f"{data}/data", "CODEQA_EFFORT": "fast", "CODEQA_HYDE": "off"}


def served(environment: Path, data: str, repository: Path) -> Figures:
    """A server over an index that is there: its start, and its memory, also after questions."""
    port = free_port()
    command = [environment / "bin/python", "-m", "codeqa", "serve", repository, "--port", str(port)]
    began = time.monotonic()
    with subprocess.Popen(
        command, env=variables(data), cwd=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait_for_page(port)
            found = {
                "serve: until it is ready, wall": time.monotonic() - began,
                "serve: until it is ready, s": taken(server.pid),
                "serve: memory when it is ready, MB": memory_mb(server.pid),
            }
            for _ in range(5):
                ask(port)
            found["serve: memory after five questions, MB"] = memory_mb(server.pid)
        finally:
            server.terminate()
    return found


def taken(pid: int) -> float:
    """Processor seconds of a process that runs, Linux only."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = json.dumps({"question": f"@codebase {QUESTION}", "conversation": "c"})
    connection.request("POST", "/chat/stream", body, {"Content-Type": "application/json"})
    assert connection.getresponse().read()


def one_round(environment: Path, repository: Path) -> Figures:
    with tempfile.TemporaryDirectory() as data:

        def codeqa(*arguments: str) -> float:
            return processor_seconds(environment, data, "-m", "codeqa", *arguments)

        return {
            "import codeqa.cli, s": processor_seconds(environment, data, "-c", "import codeqa.cli"),
            "codeqa --version, s": codeqa("--version"),
            "codeqa index, first, s": codeqa("index", str(repository)),
            "codeqa index, nothing changed, s": codeqa("index", str(repository)),
            "codeqa search, s": codeqa("search", QUESTION, "--repo", str(repository)),
            **served(environment, data, repository),
        }


def installed(environment: Path) -> Figures:
    (packages,) = environment.glob("lib/python*/site-packages")
    return {
        "site-packages, MB": disk_of(packages)[0],
        "of it codeqa, MB": disk_of(packages / "codeqa")[0],
        "packages": len(list(packages.glob("*.dist-info"))),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("environments", nargs=2, type=Path, metavar="ENVIRONMENT")
    parser.add_argument("repository", type=Path)
    parser.add_argument("--commits", nargs=2, default=("before", "after"), help="their names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    told = conditions([*sys.orig_argv[1:]])
    rounds: dict[str, list[list[float]]] = defaultdict(list)
    for number in range(-1, given.rounds):  # in the first one Python compiles what it imports
        pair = [one_round(one.absolute(), given.repository.resolve()) for one in given.environments]
        for name in pair[0] if number >= 0 else ():
            rounds[name].append([round(one[name], 3) for one in pair])
    found = {
        name: [size, installed(given.environments[1])[name]]
        for name, size in installed(given.environments[0]).items()
    }
    for name, pairs in rounds.items():
        found[name] = [round(statistics.median(side), 3) for side in zip(*pairs, strict=True)]
    for name, (before, after) in found.items():
        print(f"{name:<45}{before:>10,.2f}{after:>10,.2f}{after / before:>8.2f}")
    if given.json:
        content = {**told, "commits": given.commits, "medians": found, "rounds": rounds}
        given.json.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
