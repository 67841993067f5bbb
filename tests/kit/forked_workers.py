"""Workers that parse, as forks of one process which has loaded all that they load.

A worker spends 0.15 s of processor time on its imports, and the tests index some hundred times.
What a fork runs is `run_worker`, as ever. Tests of how workers start and end take the fixture
`real_workers`; the commands that tests run start theirs as those of users do.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

FORKING = """
import os, signal, socket, sys
from contextlib import suppress
sys.path[:] = sys.argv[2].split(os.pathsep)
import codeqa.parsing, codeqa.store.records
from codeqa.parsing import grammar
from codeqa.parsing.pool import run_worker

def reap(*_):
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]: pass

grammar("python")
signal.signal(signal.SIGCHLD, reap)
asked = socket.socket(fileno=int(sys.argv[1]))
while (given := socket.recv_fds(asked, 1, 2))[0]:
    if not (child := os.fork()):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        asked.close()
        for place, descriptor in enumerate(given[1]):
            os.dup2(descriptor, place)
            os.close(descriptor)
        run_worker()
        os._exit(0)
    for descriptor in given[1]:
        os.close(descriptor)
    asked.sendall(child.to_bytes(8))
"""


class Forks:
    """The process that forks, begun with the first; it ends with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def _begin(self) -> socket.socket:
        own, its_own = socket.socketpair()
        with its_own:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", FORKING, str(its_own.fileno()),
                 os.pathsep.join(path for path in sys.path if Path(path).is_absolute())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[its_own.fileno()], process_group=0,
            )  # fmt: skip
        return own

    def start(self) -> Fork:
        """What `codeqa.parsing.pool._start_process` gives."""
        (requests, stdin), (stdout, answers) = os.pipe(), os.pipe()
        with self._lock:
            self._socket = self._socket or self._begin()
            socket.send_fds(self._socket, [b"+"], [requests, answers])
            pid = int.from_bytes(self._socket.recv(8))
        os.close(requests)
        os.close(answers)
        return Fork(pid, stdin, stdout)

    def close(self) -> None:
        if self._socket:
            self._socket.close()
            self._process.wait()


class Fork:
    """What the pool uses of a `Popen`."""

    def __init__(self, pid: int, stdin: int, stdout: int) -> None:
        self._process = os.pidfd_open(pid)
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")

    def kill(self) -> None:
        with suppress(OSError):  # it is gone
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def wait(self) -> None:
        select.select([self._process], [], [])
        done, self._process = self._process, -1
        os.close(done)
