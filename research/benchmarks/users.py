"""Several hundred users of two server processes, of which one is killed in the middle:
`python -m research.benchmarks.users REPO --locust PROGRAM`.

Locust, from an environment of its own (`pip install locust`), plays the users of
`users_locust.py` beside this: each waits 30 to 60 s, then asks and reads the answer, or searches.
The model is a server here that writes 30 words in 3 s. Halfway one of the two processes is
killed with -9. All of it shares this machine's cores, so times are those of a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.benchmarks.machine import ROOT, conditions, free_port, memory_mb, wait_for_page

sys.path.insert(0, str(ROOT / "tests" / "kit"))


def workers_of(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def kept(data: Path) -> list[tuple[str, str]]:
    """Question and details of all turns."""
    state = data / "state.sqlite"
    with sqlite3.connect(state) as connection:
        return connection.execute("SELECT question, details FROM turn").fetchall()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", type=Path)
    parser.add_argument("--locust", default=shutil.which("locust") or "locust")
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)

    from openai_server import openai_server, stream
    from redis_server import redis_server

    with (
        tempfile.TemporaryDirectory() as folder,
        redis_server(Path(folder) / "redis") as redis,
        openai_server(lambda path, body: stream(["word "] * 30, delay=0.1)) as model,
    ):
        port, data, told = free_port(), Path(folder) / "data", Path(folder) / "told.json"
        tokens = [f"token-of-user-{number}" for number in range(options.users)]
        variables = {"CODEQA_DATA": str(data), "CODEQA_MODEL": "custom/m", "REDIS_URL": redis.url,
                     "CODEQA_MODEL_URL": model.base_url, "CODEQA_TOKEN": ",".join(tokens),
                     "CODEQA_LOG_LEVEL": "error"}  # fmt: skip
        environment = {**os.environ, **variables}
        subprocess.run(
            [sys.executable, "-m", "codeqa", "index", options.repository],
            cwd=ROOT, env=environment, check=True,
        )  # fmt: skip
        server = subprocess.Popen(
            [sys.executable, "-m", "codeqa", "serve", options.repository, "--port", str(port),
             "--workers", "2"], cwd=ROOT, env=environment,
        )  # fmt: skip
        try:
            wait_for_page(port, tokens[0])
            time.sleep(5)  # both are warm
            users = subprocess.Popen(
                [options.locust, "-f", "research/benchmarks/users_locust.py",
                 "--headless", "--only-summary",
                 "-u", str(options.users), "-r", "20", "-t", f"{options.seconds}s",
                 "--host", f"http://127.0.0.1:{port}", "--stop-timeout", "60"],
                cwd=ROOT, env={**os.environ, "TOLD": str(told)},
            )  # fmt: skip
            time.sleep(options.seconds / 2)
            before = workers_of(server.pid)
            killed_at = time.time()
            os.kill(before[0], signal.SIGKILL)
            users.wait(options.seconds)
            memory = [memory_mb(pid) for pid in workers_of(server.pid)]
            server.send_signal(signal.SIGTERM)
            ended = server.wait(90)
        finally:
            server.kill()
        found: dict[str, Any] = json.loads(told.read_text())
        turns = kept(data)
        questions = {question.removeprefix("@codebase").strip() for question, _ in turns}
        found["errors"] = {one: found["errors"].count(one) for one in set(found["errors"])}
        asked = found.pop("asked")
        breaks = found.pop("broken")
        found |= {
            "asked": len(asked),
            "lost": len(set(asked) - questions),
            "broken_by_the_kill": len([one for one in breaks if one["at"] >= killed_at - 1]),
            "broken_before_it": len([one for one in breaks if one["at"] < killed_at - 1]),
            "of_those": {
                end: len([one for one in breaks if one["end"] == end])
                for end in {one["end"] for one in breaks}
            },
            "server": {"exit_status": ended, "memory_mb": memory},
        }
    print(json.dumps(found, indent=1))
    if options.json:
        command = ["python", "-m", "research.benchmarks.users", *(arguments or sys.argv[1:])]
        report = {**conditions(command), **found}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
