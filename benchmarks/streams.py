"""Many slow answers at once: `python -m benchmarks.streams FOLDER [--streams N] [--json FILE]`.

The page's server runs as it is shipped, in a process of its own, with a model that writes
slowly: an HTTP server in this process that speaks the chat-completions API. All questions are
asked at the same moment, each in a conversation of its own and with `@codebase`. An answer
is complete when every piece came through in order and the stream ended as it should.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import conditions
from benchmarks.turns import free_port, questions, wait

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 0.25
PATIENCE = 120.0
"""Seconds beyond the model's own after which an answer counts as lost."""
BACKLOG = 1_024


@dataclass
class Slow:
    """A model that writes `pieces` pieces, `delay` seconds before each."""

    pieces: int
    delay: float
    written: dict[str, float] = field(default_factory=dict)
    """Piece → when it was written; each names its request."""
    open: int = 0
    most: int = 0
    """Requests that were answered at the same time."""
    requests: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(_length(head))
                self.requests += 1
                await self._answer(self.requests, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: int, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            for number in range(self.pieces):
                await asyncio.sleep(self.delay)
                piece = f"p{request}-{number} "
                self.written[piece.strip()] = time.monotonic()
                await _send(writer, {"content": piece}, None)
            await _send(writer, {}, "stop")
            writer.write(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
            await writer.drain()
        finally:
            self.open -= 1


@dataclass
class Read:
    """What came of one question."""

    complete: bool = False
    problem: str = ""
    first: float = 0.0
    """Seconds from the question to the first text."""
    whole: float = 0.0
    lags: list[float] = field(default_factory=list)
    """Seconds from the model's writing of each piece to its reading."""


async def ask(port: int, question: str, number: int, model: Slow, render: bool) -> Read:
    """Ask, and read the answer to its end."""
    read = Read()
    started = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE + model.pieces * model.delay):
            await _read(port, question, number, model, render, read, started)
    except TimeoutError:
        read.problem = "no end"
    except (OSError, asyncio.IncompleteReadError) as error:
        read.problem = type(error).__name__
    read.whole = time.monotonic() - started
    return read


async def _read(
    port: int, question: str, number: int, model: Slow, render: bool, read: Read, started: float
) -> None:
    body = json.dumps(
        {"question": f"@codebase {question}", "conversation": f"c{number}", "render": render}
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    writer.write(
        b"POST /chat/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)
    )
    status = await reader.readline()
    if b" 200 " not in status:
        read.problem = status.decode("latin-1").strip() or "hung up"
    texts: list[str] = []
    ended = False
    while line := await reader.readline():
        now = time.monotonic()
        if line.startswith(b"0:"):
            read.first = read.first or now - started
            text = json.loads(line[2:])
            texts.append(text)
            if written := model.written.get(text.strip()):
                read.lags.append(now - written)
        elif line.startswith(b"3:"):
            read.problem = json.loads(line[2:])
        ended = ended or line.startswith(b'd:{"finishReason":"stop"}')
    writer.close()
    numbers = [int(word.rpartition("-")[2]) for word in "".join(texts).split()]
    read.complete = ended and not read.problem and numbers == list(range(model.pieces))
    if not read.complete:
        read.problem = read.problem or f"{len(numbers)} of {model.pieces} pieces"


async def measure(folder: Path, streams: int, model: Slow, render: bool) -> dict[str, Any]:
    """All figures of one run."""
    command = [sys.executable, "-m", "codeqa"]
    with tempfile.TemporaryDirectory() as data:
        os.environ["CODEQA_DATA"] = data
        subprocess.run([*command, "index", str(folder)], check=True, cwd=ROOT, capture_output=True)
        asked = questions(folder, streams + 1)
        server = await asyncio.start_server(model.serve, "127.0.0.1", 0, backlog=BACKLOG)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        port = free_port()
        settings = {
            "CODEQA_MODEL": "custom/slow",
            "CODEQA_MODEL_URL": address,
            "CODEQA_HYDE": "off",  # drafts are further requests; these are about the answers
        }
        page = subprocess.Popen(
            [*command, "serve", str(folder), "--port", str(port)],
            cwd=ROOT, env={**os.environ, **settings}, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await asyncio.to_thread(wait, port)
            await ask(port, asked[-1], streams, model, render)  # opens the tables
            before = memory(page.pid)
            peak = {"memory": 0, "threads": 0}
            watching = asyncio.create_task(watch(page.pid, peak))
            model.most = 0
            started = time.monotonic()
            reads = await asyncio.gather(
                *(ask(port, asked[n], n, model, render) for n in range(streams))
            )
            seconds = time.monotonic() - started
            watching.cancel()
            after = memory(page.pid)
            kept = await asyncio.to_thread(_kept, port, streams)
        finally:
            page.terminate()
            await asyncio.to_thread(page.wait, 30)
            server.close()
    lags = sorted(lag for read in reads for lag in read.lags)
    problems = [read.problem for read in reads if read.problem]
    return {
        "repository": folder.name,
        "streams": streams,
        "pieces": model.pieces,
        "delay": model.delay,
        "render": render,
        "complete": sum(read.complete for read in reads),
        "kept": kept,
        "at_once": model.most,
        "problems": {one: problems.count(one) for one in sorted(set(problems))},
        "model_seconds": model.pieces * model.delay,
        "seconds": round(seconds, 1),
        "first_text": spread([read.first for read in reads]),
        "whole": spread([read.whole for read in reads]),
        "lag_ms": spread([1000 * lag for lag in lags], 1),
        "memory_before": before,
        "memory_peak": peak["memory"],
        "memory_after": after,
        "threads": peak["threads"],
    }


def spread(values: Sequence[float], digits: int = 2) -> dict[str, float]:
    """Median, 95th percentile and the largest of `values`."""
    ordered = sorted(values) or [0.0]
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    found = {"median": statistics.median(ordered), "p95": p95, "most": ordered[-1]}
    return {name: round(value, digits) for name, value in found.items()}


async def watch(process: int, peak: dict[str, int]) -> None:
    """Note the most memory and threads that `process` has in `peak`, until cancelled."""
    while True:
        peak["memory"] = max(peak["memory"], memory(process))
        peak["threads"] = max(peak["threads"], _status(process, "Threads"))
        await asyncio.sleep(SAMPLE_SECONDS)


def memory(process: int) -> int:
    """Bytes of `process` that are resident; 0 where the system does not say."""
    return 1024 * _status(process, "VmRSS")


def _status(process: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text("ascii", "replace").splitlines()
    except OSError:
        return 0
    found = next((line.split()[1] for line in lines if line.startswith(f"{name}:")), "0")
    return int(found)


def _kept(port: int, streams: int) -> int:
    """How many of the conversations hold one finished answer."""
    from urllib.request import urlopen

    kept = 0
    for number in range(streams):
        address = f"http://127.0.0.1:{port}/api/conversations/c{number}"
        with urlopen(address, timeout=30) as response:
            turns = json.load(response)["turns"]
        kept += len(turns) == 1 and turns[0]["finished"]
    return kept


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def _send(writer: asyncio.StreamWriter, delta: dict[str, str], reason: str | None) -> None:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    event = json.dumps({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})
    writer.write(_chunk(f"data: {event}\n\n".encode()))
    await writer.drain()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def as_markdown(report: dict[str, Any]) -> str:
    """The report as benchmarks/results/streams.md."""
    machine = report["machine"]
    lines = [
        "# Streams",
        "",
        f"`{report['command']}`, commit {report['commit']}, {report['date']}; "
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}, load {machine['load']}.",
        "",
        "Slow answers at once from `codeqa serve` with the settings as shipped; the model is an "
        "HTTP server that writes one piece per delay. Lag: from the model's writing of a piece "
        "to its reading by the client.",
        "",
        "| | " + " | ".join("page" if row["render"] else "public" for row in report["rows"]) + " |",
        "|---|" + "---|" * len(report["rows"]),
    ]
    mib = 2**20
    columns = {
        "asked at once": lambda row: row["streams"],
        "complete": lambda row: row["complete"],
        "kept as conversations": lambda row: row["kept"],
        "answered by the model at the same time": lambda row: row["at_once"],
        "pieces × delay": lambda row: f"{row['pieces']} × {row['delay']} s",
        "all done after": lambda row: f"{row['seconds']} s",
        "first text, median / p95": lambda row: _pair(row["first_text"], "s"),
        "whole answer, median / p95": lambda row: _pair(row["whole"], "s"),
        "lag of a piece, median / p95": lambda row: _pair(row["lag_ms"], "ms"),
        "memory before / at most / after": lambda row: " / ".join(
            f"{row[name] / mib:.0f}" for name in ("memory_before", "memory_peak", "memory_after")
        ) + " MiB",
        "threads at most": lambda row: row["threads"],
    }  # fmt: skip
    for name, value in columns.items():
        lines.append(f"| {name} | " + " | ".join(str(value(row)) for row in report["rows"]) + " |")
    problems = [f"{count} × {what}" for row in report["rows"] for what, count in
                row["problems"].items()]  # fmt: skip
    lines += ["", f"Problems: {', '.join(problems) or 'none'}."]
    return "\n".join(lines) + "\n"


def _pair(values: dict[str, float], unit: str) -> str:
    return f"{values['median']} / {values['p95']} {unit}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--pieces", type=int, default=60)
    parser.add_argument("--delay", type=float, default=0.5, help="seconds before each piece")
    parser.add_argument("--json", type=Path, help="write all figures here, and a table beside it")
    options = parser.parse_args(arguments)
    command = ["python", "-m", "benchmarks.streams", options.folder.name]
    command += ["--streams", str(options.streams), "--pieces", str(options.pieces)]
    told = conditions([*command, "--delay", str(options.delay)])
    rows = []
    for render in (False, True):
        model = Slow(options.pieces, options.delay)
        run = measure(options.folder.resolve(), options.streams, model, render)
        rows.append(asyncio.run(run))
    report = {**told, "rows": rows}
    text = as_markdown(report)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        options.json.with_suffix(".md").write_text(text, encoding="utf-8")
    return 0 if all(row["complete"] == row["streams"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
