"""Several processes that serve the page, and what becomes of one that ends."""

from __future__ import annotations

import signal
import subprocess
import sys

from conftest import ROOT
from waiting import PATIENCE

DYING = """
import os, signal
from codeqa_server.workers import serve_with_workers
def serve():
    print("begun", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
serve_with_workers(1, serve)
"""


def test_processes_that_die_at_once_restart_after_growing_pauses() -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", DYING], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None and server.stderr is not None
    for seconds in (1, 3):
        assert server.stdout.readline() == "begun\n"
        assert server.stderr.readline().endswith(f"takes its place in {seconds} s.\n")
    server.send_signal(signal.SIGTERM)
    rest, _ = server.communicate(timeout=PATIENCE)
    assert (server.returncode, rest) == (0, ""), "it does not wait for the pause to end"
