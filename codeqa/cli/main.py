"""The root of the commands. Each is loaded when it is called, and loads what it uses."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import closing

import click

from codeqa import __version__
from codeqa.cli.command import HELP, debug_option, run_command, shown
from codeqa.cli.console import Line

MODULES = {
    **{name: name for name in ("ask", "index", "mcp", "models", "privacy", "repos", "serve")},
    "search": "ask", "review": "ask", "sync": "repos", "doctor": "repos", "state": "privacy",
    "worker": "serve",
}  # fmt: skip
"""Names of commands → where each is, as `<name>_command`."""


class LateGroup(click.Group):
    """A group whose commands are imported when they are called, or listed with their help."""

    def list_commands(self, context: click.Context) -> list[str]:
        from codeqa.cli.tools import TOOL_COMMANDS

        return [*sorted(MODULES), *TOOL_COMMANDS]

    def get_command(self, context: click.Context, name: str) -> click.Command:
        if name in MODULES:
            with closing(Line()) as waiting:
                waiting.show("Starting CodeQA…")
                module = importlib.import_module(f"codeqa.cli.{MODULES[name]}")
            late: click.Command = getattr(module, f"{name}_command")
            return late
        from codeqa.cli.tools import TOOL_COMMANDS, tool_command

        # As agents call it, too: results name tools so.
        if (typed := name.replace("_", "-")) in TOOL_COMMANDS:
            return tool_command(typed)
        names = self.list_commands(context)
        raise click.exceptions.NoSuchCommand(name, possibilities=names, ctx=context)


@click.group(
    "codeqa",
    cls=LateGroup,
    context_settings=HELP,
    epilog=shown(
        [
            "codeqa index ~/src/flask",
            'codeqa ask "where are sessions opened?" --repo ~/src/flask',
            "codeqa serve ~/src/flask",
        ]
    ),
)
@click.version_option(__version__, prog_name="codeqa", message="%(prog)s %(version)s")
@debug_option
def cli() -> None:
    """Answers questions about a code base, with citations, on this machine."""


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(cli, arguments)
