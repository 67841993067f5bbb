"""Keep the state in a PostgreSQL server, for several processes and machines.

No message holds the password or a value: of the server's errors only the sentence is repeated.
"""

from __future__ import annotations

import os
import re
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from codeqa.errors import SettingsError, StorageError
from codeqa.state import database
from codeqa.state.database import NAMES, OLDEST, TABLES, VERSION, Database, GoneError, check_version

CONNECTIONS = 8  # most of a process: a transaction takes some thousandths of a second
OPTIONS = {"connect_timeout": 3, "tcp_user_timeout": 20_000, "options": "-c lock_timeout=20s"}
TIMEOUT = "SET LOCAL statement_timeout = '25s'"
SILENT_SECONDS = 30.0
"""After which a silent server is given up: a frozen one keeps its connections."""
_DIALECT = (
    (r"\buser\b", '"user"'),  # else it is whoever opened the connection
    (r"\?", "%s"),
    (r"json_each\(%s\)", "json_array_elements_text(%s::json)"),
    (r" INDEXED BY \w+", ""),
    (r"\bREAL\b", "DOUBLE PRECISION"),
    (r"\bBLOB\b", "BYTEA"),
    (r"INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY"),
    (r"CREATE TABLE .*\(", r"\g<0>rowid BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE, "),
    (
        r"CREATE TRIGGER IF NOT EXISTS (\w+) (.*)\s+BEGIN (.*;) END;",
        r"CREATE OR REPLACE FUNCTION \1() RETURNS trigger LANGUAGE plpgsql AS "
        r"$$BEGIN \3 RETURN NULL; END$$; CREATE OR REPLACE TRIGGER \1 \2 FOR EACH ROW "
        r"EXECUTE FUNCTION \1();",
    ),
)
"""Patterns in SQLite's words → PostgreSQL's, replaced one after the other."""


class _Connection(psycopg.Connection[Any]):
    impatient = True
    """True if a silent server is given up."""

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        options |= {"timeout": SILENT_SECONDS} if self.impatient else {}
        try:
            return super().wait(gen, *args, **options)
        except psycopg.errors._WaitTimeout:
            problem = f"it did not answer for {SILENT_SECONDS:.0f} seconds"
            raise psycopg.OperationalError(problem) from None

    def execute(self, query: Any, parameters: Any = (), **options: Any) -> Any:  # type: ignore[override]
        for sqlite, postgres in _DIALECT:
            query = re.sub(sqlite, postgres, query)
        # PostgreSQL takes no NUL in a text.
        values = [
            value.replace("\0", "\ufffd") if isinstance(value, str) else value
            for value in parameters
        ]
        return super().execute(query, values or None, **options)


class Postgres(Database):
    """Open the database at `address` when it is first used. Raises SettingsError for no address."""

    def __init__(self, address: str) -> None:
        self._idle = defaultdict(list)
        try:
            if not re.fullmatch(r"postgres(ql)?://([^/?#@]*@)?[^@]*", address):
                raise psycopg.Error
            self._address: Any = OPTIONS | conninfo_to_dict(address, client_encoding="utf8")
        except psycopg.Error:  # which may quote the password
            hint = "Write postgresql://user:password@host/database, special characters as %XX."
            raise SettingsError("This is not the address of a PostgreSQL server.", hint) from None
        host, port, name = map(self._address.get, ("host", "port", "dbname"))
        self.place = f"PostgreSQL at {host or 'localhost'}:{port or 5432}/{name or ''}"
        self._wait_until: float | None = 0.0
        """When waiting for a lost server ends; None while it answers, 0 before it ever did."""
        self._free = defaultdict[int, Any](lambda: threading.Semaphore(CONNECTIONS))

    def reading(self) -> AbstractContextManager[_Connection]:
        return self._transaction(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {TIMEOUT}")

    def writing(self, user: str = "") -> AbstractContextManager[_Connection]:
        number = zlib.crc32(user.encode(errors="replace"))
        return self._transaction(f"BEGIN; {TIMEOUT}; SELECT pg_advisory_xact_lock({number})")

    def size(self) -> int:
        return int(self.rows("SELECT pg_database_size(current_database())")[0][0])

    def compact(self) -> str:
        with self._transaction(f"VACUUM {', '.join(NAMES)}", impatient=False):
            return "Logs, copies and backups of PostgreSQL may hold it: ask whoever runs it."

    @contextmanager
    def _transaction(self, statement: str, *, impatient: bool = True) -> Iterator[_Connection]:
        """Yield a connection on which `statement` has begun a transaction.

        The work of the block is stored as a whole, or not at all when it raises. Waits up to
        BUSY_SECONDS for a lost server.
        """
        connection, idle = None, self._idle[(os.getpid(),)]
        with self._free[os.getpid()]:
            try:
                while True:
                    try:
                        connection = idle.pop() if idle else self._connect()
                        connection.impatient = impatient
                        connection.execute(statement)
                        break
                    except psycopg.Error as error:
                        if not self._gone(error) or time.monotonic() > (self._wait_until or 0):
                            raise
                        time.sleep(0.1)
                self._wait_until = None
                yield connection
                connection.execute("COMMIT")
            except psycopg.Error as error:
                problem = error.diag.message_primary or str(error).splitlines()[0].rstrip(".")
                raise (GoneError if self._gone(error) else StorageError)(
                    f"The state in {self.place} cannot be used: {problem}.",
                    "No stored data is lost. Check the server and CODEQA_STATE.",
                ) from None
            finally:
                if connection:
                    status = connection.info.transaction_status
                    if status == psycopg.pq.TransactionStatus.IDLE:
                        idle.append(connection)
                    else:  # it is in the middle of something
                        connection.close()

    def _gone(self, error: psycopg.Error) -> bool:
        """Return whether the server is starting, ending, full or out of reach.

        If so, close its connections and begin to wait.
        """
        lost = isinstance(error, psycopg.OperationalError)
        if not lost or not (error.sqlstate or "08").startswith(("08", "57P", "53300")):
            return False
        self.close()  # none of them outlived it
        if self._wait_until is None:
            self._wait_until = time.monotonic() + database.BUSY_SECONDS
        return True

    def _connect(self) -> _Connection:
        """Connect, and make the tables that there are not.

        Raises StorageError for tables of another version.
        """
        connection = _Connection.connect(**self._address, autocommit=True)
        number = "SELECT version FROM codeqa"
        is_new = connection.execute("SELECT to_regclass('codeqa')").fetchone() == (None,)
        if is_new or connection.execute(number).fetchone()[0] in range(OLDEST, VERSION):
            made = f"CREATE TABLE IF NOT EXISTS codeqa AS SELECT {VERSION} AS version"
            note = f"UPDATE codeqa SET version = {VERSION}"
            connection.execute(f"SELECT pg_advisory_xact_lock(0); {TABLES} {made}; {note}")
        check_version(connection.execute(number).fetchone()[0])
        return connection
