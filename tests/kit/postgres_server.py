"""A real PostgreSQL server for tests, on a unix socket in a folder of its own, and the fixtures
that have the same test run against it and against a file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from codeqa.state import State, open_database
from codeqa.state.database import NAMES

STARTING_SECONDS = "60"


class PostgresServer:
    """A server whose files lie in `folder`, which belongs to `user`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # it refuses to be run by root
            shutil.chown(folder, "nobody")
            self._as_user = ["setpriv", "--reuid=nobody", "--clear-groups", "--"]
        password = folder / "password"
        password.write_text("se/cret")
        password.chmod(0o644)
        self._run("initdb", "-E", "UTF8", "--locale=C", "-A", "scram-sha-256", "-U", "owner",
                  "--no-sync", f"--pwfile={password}")  # fmt: skip

    def start(self) -> None:
        # No commit of a test must outlive the machine.
        options = f"-c listen_addresses='' -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "start", "-w", "-t", STARTING_SECONDS, "-o", options,
                  "-l", str(self.folder / "log"))  # fmt: skip

    def stop(self, how: str = "fast") -> None:
        """End it; `immediate` as a crash would."""
        self._run("pg_ctl", "stop", "-w", "-m", how)

    def kill(self) -> None:
        """End it in the middle of whatever it does, also when it does not run."""
        with_number = self.folder / "data" / "postmaster.pid"
        if with_number.exists():
            os.kill(int(with_number.read_text().split()[0]), signal.SIGQUIT)

    @contextmanager
    def frozen(self, *backends: int) -> Iterator[None]:
        """Meanwhile it, and what has these process numbers, keeps connections and says nothing."""
        first = (self.folder / "data" / "postmaster.pid").read_text().split()[0]
        processes = (*backends, int(first))
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def address(self, database: str = "postgres") -> str:
        return f"postgresql://owner:se%2Fcret@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of one that holds nothing."""
        import psycopg  # the wheel is tested without it

        name = f"state{next(self._numbers)}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.address(name)

    def _run(self, program: str, *arguments: str) -> None:
        data = ["-D", str(self.folder / "data")]
        command = [*self._as_user, program_path(program), *data, *arguments]
        with tempfile.TemporaryFile() as said:  # a pipe would stay open as long as the server
            done = subprocess.run(command, cwd="/", stdout=said, stderr=said, timeout=120)
            said.seek(0)
            assert done.returncode == 0, said.read().decode(errors="replace")


def program_path(name: str) -> str:
    """A program of the server, '' where that is not installed; Debian's are not on the path."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or str(next(reversed(versions), ""))


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server until the end of the block."""
    # A socket's path may have a hundred characters, and its user must get there.
    with tempfile.TemporaryDirectory(prefix="codeqa-pg-", dir="/tmp") as folder:
        server = PostgresServer(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server for all tests; what stops it is given one of its own."""
    pytest.importorskip("psycopg", reason="the extra `server` is not installed")
    if not program_path("initdb"):
        pytest.skip("PostgreSQL is not installed: `python scripts/postgresql.py` may do it")
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_database(postgres: PostgresServer) -> Iterator[str]:
    """The address of a database that tests share, one after the other."""
    yield (address := postgres.new_database())
    close_connections(address)


def close_connections(address: str) -> None:
    open_database(address).close()


@pytest.fixture
def empty_database(postgres_database: str) -> str:
    for table in NAMES:
        open_database(postgres_database).change(f"DELETE FROM {table}")
    return postgres_database


@pytest.fixture(params=["file", "server"])
def state(request: pytest.FixtureRequest, data_dir: Path) -> State:
    """The state, in a file and in PostgreSQL."""
    in_a_file = request.param == "file"
    return State(data_dir, "" if in_a_file else request.getfixturevalue("empty_database"))
