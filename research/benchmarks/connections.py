"""What connections that bring no request cost the others.

    python -m research.benchmarks.connections

A server of its own is asked for `/health` on a new connection twice a second; then the same while
one attacker holds `--connections` open: a third says nothing, a third has sent half of a head, a
third adds a byte to its head every 5 seconds. What the server hangs up is opened again at once, or
with `--once` never.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.benchmarks.machine import ROOT, conditions, free_port, open_files, wait_for_page

sys.path.insert(0, str(ROOT / "tests" / "kit"))
from redis_server import redis_server

DRIPS_EVERY = 5.0
PATIENCE = 10.0
"""Seconds after which a request counts as unanswered."""
HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: "


class Attacker(threading.Thread):
    """Holds connections open until it is told to stop."""

    def __init__(self, port: int, connections: int, again: bool) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._ended = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._drips: dict[socket.socket, float] = {}
        self._wanted, self._again = connections, again
        self.opened = self.hung_up = 0
        self.all_open = threading.Event()

    def run(self) -> None:
        while not self._ended.is_set():
            held = len(self._selector.get_map()) if self._again else self.opened
            missing = self._wanted - held
            for _ in range(min(missing, 100)):
                self._open()
            if not missing:
                self.all_open.set()
            for key, _ in self._selector.select(0.05):
                self._close(key.fileobj)
            now = time.monotonic()
            for connection in [one for one, due in self._drips.items() if due <= now]:
                self._drips[connection] = now + DRIPS_EVERY
                try:
                    connection.send(b"a")
                except OSError:
                    self._close(connection)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _open(self) -> None:
        try:
            connection = socket.create_connection(("127.0.0.1", self._port), 0.5)
        except OSError:
            return
        connection.setblocking(False)
        kind, self.opened = self.opened % 3, self.opened + 1
        if kind:
            connection.send(HALF)
        if kind == 2:
            self._drips[connection] = time.monotonic() + DRIPS_EVERY
        self._selector.register(connection, selectors.EVENT_READ)

    def _close(self, connection: Any) -> None:
        self.hung_up += 1
        self._selector.unregister(connection)
        self._drips.pop(connection, None)
        connection.close()


def health(port: int) -> float | None:
    """Seconds that `/health` takes on a new connection; None where no answer came."""
    started = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            if not connection.recv(4_096).startswith(b"HTTP/1.1 200"):
                return None
    except OSError:
        return None
    return time.monotonic() - started


def asked(pid: int, port: int, seconds: float) -> dict[str, Any]:
    """What asking for so long gives."""
    found, until, began, used = [], time.monotonic() + seconds, time.monotonic(), processor(pid)
    while time.monotonic() < until:
        found.append(health(port))
        time.sleep(0.5)
    answered = sorted(one for one in found if one is not None)
    return {
        "requests": len(found),
        "unanswered": len(found) - len(answered),
        "median_ms": round(1000 * statistics.median(answered), 1) if answered else None,
        "most_ms": round(1000 * answered[-1], 1) if answered else None,
        "processor": round((processor(pid) - used) / (time.monotonic() - began), 2),
        "descriptors": open_files(pid),
    }


def processor(pid: int) -> float:
    """Seconds of the processor that a process and those that it started have used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(map(processor, map(int, children)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--connections", type=int, default=1_140)
    parser.add_argument("--once", action="store_true", help="open none again")
    parser.add_argument("--seconds", type=float, default=60.0, help="under attack")
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder) / "redis") as redis:
        (Path(folder) / "shop").mkdir()
        (Path(folder) / "shop" / "cart.py").write_text("def total():\n    return 1\n")
        port = free_port()
        server = subprocess.Popen(
            [sys.executable, "-m", "codeqa", "serve", f"{folder}/shop", "--port", str(port),
             "--workers", str(options.workers)], cwd=ROOT,
            env={**os.environ, "CODEQA_DATA": f"{folder}/data", "REDIS_URL": redis.url},
        )  # fmt: skip
        attacker = Attacker(port, options.connections, not options.once)
        try:
            wait_for_page(port)
            found: dict[str, Any] = {"before": asked(server.pid, port, 10)}
            attacker.start()
            attacker.all_open.wait(PATIENCE)
            found["attacked"] = asked(server.pid, port, options.seconds)
            found["attacker"] = {"opened": attacker.opened, "hung_up": attacker.hung_up}
            attacker.stop()
            time.sleep(2)
            found["after"] = asked(server.pid, port, 10)
        finally:
            server.terminate()
            server.wait(30)
    print(json.dumps(found, indent=1))
    if options.json:
        command = ["python", "-m", "research.benchmarks.connections", *(arguments or sys.argv[1:])]
        report = {**conditions(command), **found}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
