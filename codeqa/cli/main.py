"""The root of the commands; each module is imported when its command is called."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import closing

import click

from codeqa import __version__
from codeqa.cli.command import HELP, debug_option, examples_text, run_command
from codeqa.cli.console import Line

MODULES = {
    **{name: name for name in ("ask", "index", "mcp", "models", "privacy", "repos", "serve")},
    "search": "ask", "review": "ask", "sync": "repos", "doctor": "repos", "state": "privacy",
    "worker": "serve",
}  # fmt: skip
"""Name of a command → module of its function `<name>_command`."""


class LateGroup(click.Group):
    """A group whose commands are imported when they are called, or listed with their help."""

    def list_commands(self, context: click.Context) -> list[str]:
        from codeqa.cli.tools import TOOL_COMMANDS

        return sorted(MODULES) + list(TOOL_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command:
        if name in MODULES:
            with closing(Line()) as progress:
                progress.show("Starting CodeQA…")
                module = importlib.import_module(f"codeqa.cli.{MODULES[name]}")
            result: click.Command = getattr(module, f"{name}_command")
            return result
        from codeqa.cli.tools import TOOL_COMMANDS, tool_command

        tool = name.replace("_", "-")  # results name tools with underscores, as agents call them
        if tool in TOOL_COMMANDS:
            return tool_command(tool)
        names = self.list_commands(context)
        raise click.exceptions.NoSuchCommand(name, possibilities=names, ctx=context)


@click.group(
    "codeqa",
    cls=LateGroup,
    context_settings=HELP,
    epilog=examples_text(
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
    """Answer questions about a code base, with citations, on this machine."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return run_command(cli, arguments)
