"""`codeqa mcp`: messages of the Model Context Protocol, a line each, over stdin and stdout."""

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
        "codeqa mcp                         for the repository of this folder",
        "codeqa mcp ~/src/flask tokio       for several, by folder or name",
        "claude mcp add codeqa -- codeqa mcp ~/src/flask",
    ],
)
@click.argument("names", nargs=-1, metavar="[REPO]...")
@repos_option
def mcp_command(names: tuple[str, ...], repos: tuple[str, ...]) -> None:
    """Let other agents search and read the code, by MCP.

    They see the repositories that are named, else the one of this folder, and no others; these
    must be indexed. A running server offers the same over HTTP at /mcp. See docs/mcp.md.
    """
    folders = folders_of((*names, *repos), data_folder())
    chosen = list(map(str, folders))
    click.echo(f"Serving {', '.join(chosen)} to the agent on standard input.", err=True)
    gc.disable()  # until all is loaded: to look at it again and again takes a sixth of that
    session = _Session(chosen, sys.stdout.buffer)
    sys.stdout = sys.stderr  # what else would be printed is no message
    session.run(sys.stdin.buffer)


class _Session:
    """What answers an agent: a server that runs for the repositories, else this process."""

    def __init__(self, folders: Sequence[str], outgoing: BinaryIO) -> None:
        self._folders, self._outgoing = folders, outgoing
        self._named = ", ".join(folders)
        if len(folders) > 1:
            self._named += " (a path begins with the name of its repository)"
        self._engine: Engine | None = None
        self._opening, self._writing = threading.Lock(), threading.Lock()

    def run(self, incoming: BinaryIO) -> None:
        """Answer until there is nothing more to read, and all that was asked is answered."""
        with ExitStack() as self._stack, ThreadPoolExecutor() as threads:
            for line in incoming:
                threads.submit(self._answer, line)

    def _answer(self, line: bytes) -> None:
        message, reply = json_object(line) or {}, None
        method = str(message.get("method"))
        if self._engine is None and method.startswith("tools/"):
            reply = served.post("/mcp", message, self._folders)
        alone = reply is None
        if reply := reply or mcp.answer(message, self._named, self._opened):
            with self._writing, suppress(BrokenPipeError):
                self._outgoing.write(json.dumps(reply).encode() + b"\n")
                self._outgoing.flush()
        if alone and method == "tools/list":  # calls will follow
            self._warm_up()

    def _opened(self) -> Engine:
        """Return the engine, opened by the first who asks. Raises CodeQAError."""
        from codeqa.cli.local import engine_of

        with self._opening:
            if self._engine is None:
                self._engine = self._stack.enter_context(engine_of(self._folders, ""))
            return self._engine

    def _warm_up(self) -> None:
        try:
            self._opened().tables()
        except CodeQAError as error:  # it may be indexed while the agent is there
            print_error(str(error))
        gc.freeze()  # what is loaded stays
        gc.enable()
