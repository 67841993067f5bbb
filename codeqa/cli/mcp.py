"""`codeqa mcp`: messages of the Model Context Protocol as lines of stdin and stdout."""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, BinaryIO

import click

from codeqa import mcp
from codeqa.cli import served
from codeqa.cli.command import command, folders_of, print_error, repos_option  # fmt: skip
from codeqa.environment import data_folder
from codeqa.errors import CodeQAError
from codeqa.text import json_object

if TYPE_CHECKING:
    from codeqa.engine import Engine


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


class _Session:
    """Answers an agent by a running server for the repositories, else in this process."""

    def __init__(self, folders: Sequence[str], outgoing: BinaryIO) -> None:
        self._folders, self._outgoing = folders, outgoing
        self._repositories = ", ".join(folders)
        if len(folders) > 1:
            self._repositories += " (a path begins with the name of its repository)"
        self._engine: Engine | None = None
        self._opening, self._writing = threading.Lock(), threading.Lock()

    def run(self, incoming: BinaryIO) -> None:
        """Answer every message until the input ends."""
        with ExitStack() as self._stack, ThreadPoolExecutor() as threads:
            for line in incoming:
                threads.submit(self._answer, line)

    def _answer(self, line: bytes) -> None:
        message, reply = json_object(line) or {}, None
        method = str(message.get("method"))
        if self._engine is None and method.startswith("tools/"):
            reply = served.post("/mcp", message, self._folders)
        is_local = reply is None
        if reply := reply or mcp.answer(message, self._repositories, self._open):
            with self._writing, suppress(BrokenPipeError):
                self._outgoing.write(json.dumps(reply).encode() + b"\n")
                self._outgoing.flush()
        if is_local and method == "tools/list":  # calls will follow
            self._warm_up()

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
