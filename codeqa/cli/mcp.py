"""`codeqa mcp`: messages of the Model Context Protocol as lines of stdin and stdout."""

from __future__ import annotations

import codecs
import gc
import json
import socket
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from codeqa import mcp
from codeqa.cli import served
from codeqa.cli.command import command, folders_of, print_error, repos_option  # fmt: skip
from codeqa.environment import data_folder
from codeqa.errors import CodeQAError

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from codeqa.engine import Engine

MOST_CALLS = 32
ENDING_SECONDS = 2.0
"""From the end of the input to that of what is still running."""
BLANK = codecs.BOM_UTF8 + b" \t\r\n"


@command(
    "mcp",
    [
        "codeqa mcp                         the repository of this folder",
        "codeqa mcp ~/src/flask tokio       several, by folder or name",
        "claude mcp add codeqa -- codeqa mcp ~/src/flask",
    ],
)
@click.argument("names", nargs=-1, metavar="[REPO]...")
@repos_option
def mcp_command(names: tuple[str, ...], repos: tuple[str, ...]) -> None:
    """Let other agents search and read the code over MCP.

    They see only the repositories that you name, or the one of this folder; index them first. A
    running server offers the same over HTTP at /mcp. See docs/mcp.md.
    """
    folders = folders_of(names + repos, data_folder())
    roots = list(map(str, folders))
    click.echo(f"Serving {', '.join(roots)} to the agent on standard input.", err=True)
    gc.disable()  # until all is loaded: collecting garbage takes a sixth of that time
    session = _Session(roots, sys.stdout.buffer)
    sys.stdout = sys.stderr  # stdout is for messages alone
    session.run(sys.stdin.buffer)


class _Pending:
    """A message that is being answered, here or by a running server."""

    def __init__(self, message: Any) -> None:
        about = message if isinstance(message, dict) else {}
        self.message, self.method, self.id = message, str(about.get("method")), about.get("id")
        self.stopped, self.is_local = threading.Event(), False
        self.server: HTTPConnection | None = None

    def stop(self) -> None:
        """End the work, whose result nobody waits for."""
        self.stopped.set()
        if self.server and self.server.sock:  # the server notices that
            with suppress(OSError):
                self.server.sock.shutdown(socket.SHUT_RDWR)


class _Session:
    """Answers an agent by a running server for the repositories, else in this process."""

    def __init__(self, folders: Sequence[str], outgoing: BinaryIO) -> None:
        self._folders, self._outgoing = folders, outgoing
        self._repositories = ", ".join(folders)
        if len(folders) > 1:
            self._repositories += " (a path begins with the name of its repository)"
        self._engine: Engine | None = None
        self._opening, self._writing = threading.Lock(), threading.Lock()
        self._running: set[_Pending] = set()

    def run(self, incoming: BinaryIO) -> None:
        """Answer every message until the input ends; what then takes long is stopped."""
        ending = threading.Timer(ENDING_SECONDS, self._stop_all)
        with ExitStack() as self._stack, ThreadPoolExecutor(MOST_CALLS) as threads:
            self._stack.callback(ending.cancel)
            try:
                for line in incoming:
                    if line.strip(BLANK):
                        self._take(_Pending(mcp.read(line)), threads)
            finally:
                ending.start()

    def _take(self, call: _Pending, threads: ThreadPoolExecutor) -> None:
        if call.method == "notifications/cancelled":
            unwanted = mcp.parameters(call.message).get("requestId")
            for pending in self._running.copy():
                if pending.id == unwanted:
                    self._running.discard(pending)
                    pending.stop()
            return
        self._running.add(call)
        if call.method.startswith("tools/") or isinstance(call.message, list):
            threads.submit(self._answer, call)
        else:  # a ping is answered however many calls run
            self._answer(call)

    def _stop_all(self) -> None:
        for call in self._running.copy():
            call.stop()

    def _answer(self, call: _Pending) -> None:
        for part in mcp.with_progress(call.message, partial(self._reply, call)):
            with self._writing, suppress(BrokenPipeError):
                if call in self._running:  # else it was cancelled
                    self._outgoing.write(json.dumps(part).encode() + b"\n")
                    self._outgoing.flush()
        self._running.discard(call)
        if call.is_local and call.method == "tools/list":  # calls will follow
            self._warm_up()

    def _reply(self, call: _Pending) -> Any:
        if self._engine is None and call.method.startswith("tools/"):
            reply = served.post(
                "/mcp", call.message, self._folders, partial(setattr, call, "server")
            )
            if reply is not None or (call.server and call.stopped.is_set()):
                return reply
        call.is_local = True
        return mcp.answer(
            call.message, self._repositories,
            lambda: replace(self._open(), cancelled=call.stopped.is_set),
        )  # fmt: skip

    def _open(self) -> Engine:
        """Return the engine, and open it at the first call. Raises CodeQAError."""
        from codeqa.cli.local import engine_of

        with self._opening:
            if self._engine is None:
                self._engine = self._stack.enter_context(engine_of(self._folders, ""))
            return self._engine

    def _warm_up(self) -> None:
        try:
            self._open().tables()
        except CodeQAError as error:  # it may be indexed later, while the agent runs
            print_error(str(error))
        gc.freeze()  # what is loaded stays in memory
        gc.enable()
