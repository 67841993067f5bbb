"""What a turn takes beside the model: `python -m benchmarks.turns FOLDER … [--json FILE]`.

The page's server runs in a process of its own with a model that answers at once: a scripted
HTTP server that speaks the chat-completions API. Each turn is asked over HTTP as the page asks
it, first with `@codebase`, then a follow-up without. All times are CodeQA's own: what the
model takes comes on top.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.openai_server import ScriptedServer, openai_server, stream

ROOT = Path(__file__).resolve().parent.parent
PIECES = 200
"""Pieces of the scripted answer: about 800 tokens of prose with citations."""
SECONDS_TO_START = 60.0
FORMS = (
    "how does {} work?",
    "where is {} defined and who calls it?",
    "what happens when {} fails?",
    "explain `{}`",
)
LABELS = {
    "to_model": "question to the model's request, ms",
    "first_text": "model's first token to the first text, ms",
    "whole": "whole turn, ms",
}


def questions(folder: Path, count: int) -> list[str]:
    """Questions about definitions of the repository, the same in every run."""
    from codeqa.settings import load_settings
    from codeqa.store import Filter, Tables, locate

    location = locate(load_settings(), folder)
    names = sorted(
        {
            unit.qualified_name
            for unit in Tables(location).units(Filter(kinds=("function", "method", "class")))
            if unit.role == "source"
        }
    )
    chosen = random.Random(7).choices(names, k=count)
    return [FORMS[number % len(FORMS)].format(name) for number, name in enumerate(chosen)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def turn(port: int, server: ScriptedServer, body: dict[str, Any]) -> dict[str, float]:
    """Ask one question and take the times, in milliseconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    started = time.monotonic()
    connection.request(
        "POST", "/chat/stream", json.dumps(body), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    first = 0.0
    while line := response.readline():
        if line.startswith(b"0:") and not first:
            first = time.monotonic()
        if line.startswith(b"3:"):
            raise SystemExit(f"a turn failed: {line.decode()}")
    ended = time.monotonic()
    connection.close()
    exchange = server.exchanges[-1]
    return {
        "to_model": 1000 * (exchange.asked - started),
        "first_text": 1000 * (first - exchange.first_piece),
        "whole": 1000 * (ended - started),
    }


def measure(folder: Path, turns: int, rerank: bool) -> dict[str, Any]:
    """Median and 95th percentile of every time, with and without `@codebase`."""
    answer = [f"word{number} " for number in range(PIECES)]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    with tempfile.TemporaryDirectory() as data, openai_server(lambda *_: stream(answer)) as server:
        os.environ["CODEQA_DATA"] = data
        port = free_port()
        model = {"CODEQA_MODEL": "custom/scripted", "CODEQA_MODEL_URL": server.base_url}
        command = [sys.executable, "-m", "codeqa"]
        subprocess.run([*command, "index", str(folder)], check=True, cwd=ROOT, capture_output=True)
        page = subprocess.Popen(
            [*command, "serve", str(folder), "--port", str(port)],
            cwd=ROOT, env={**os.environ, **model}, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait(port)
            asked = questions(folder, turns + 2)
            times: dict[str, list[dict[str, float]]] = {"tagged": [], "follow_up": []}
            for number, question in enumerate(asked):
                common = {"conversation": f"c{number}", "rerank": rerank, "render": True}
                tagged = turn(port, server, {"question": f"@codebase {question}", **common})
                follow_up = turn(port, server, {"question": "and why is that?", **common})
                if number >= 2:  # the first ones open the tables
                    times["tagged"].append(tagged)
                    times["follow_up"].append(follow_up)
        finally:
            page.terminate()
            page.wait(20)
    result: dict[str, Any] = {"repository": folder.name, "turns": turns, "rerank": rerank}
    for kind, rows in times.items():
        for name in LABELS:
            values = sorted(row[name] for row in rows)
            p95 = values[min(len(values) - 1, round(0.95 * len(values)))]
            result[f"{kind}_{name}"] = {"median": statistics.median(values), "p95": p95}
    return {**result, "load": load}


def wait(port: int) -> None:
    """Until the page can answer."""
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("the page did not start")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--turns", type=int, default=100, help="of each kind; default 100")
    parser.add_argument("--rerank", action="store_true", help="with reranking")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    rows = [measure(one.resolve(), options.turns, options.rerank) for one in options.folder]
    for row in rows:
        print(f"{row['repository']}: {row['turns']} turns of each kind, load {row['load']:.1f}")
        for kind in ("tagged", "follow_up"):
            for name, label in LABELS.items():
                value = row[f"{kind}_{name}"]
                print(f"  {kind:<10} {label:<44} {value['median']:7.1f} {value['p95']:7.1f} (p95)")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
