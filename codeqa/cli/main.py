"""The root of the commands. Each is loaded when it is called, and loads what it uses."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import click

from codeqa import __version__
from codeqa.cli.command import HELP, debug_option, run_command, shown

COMMANDS = (
    "ask", "doctor", "eval", "index", "models", "policy", "privacy", "repos", "search", "serve",
)  # fmt: skip
MODULES = {"eval": "evaluate", "serve": "index"}
"""Of commands that are not in the module of their name, as `<name>_command`."""


class LateGroup(click.Group):
    """A group whose commands are imported when they are called, or listed with their help."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command:
        if name not in COMMANDS:
            raise click.exceptions.NoSuchCommand(name, possibilities=COMMANDS, ctx=context)
        from codeqa.settings import quiet_libraries

        quiet_libraries()
        module = importlib.import_module(f"codeqa.cli.{MODULES.get(name, name)}")
        found: click.Command = getattr(module, f"{name}_command")
        return found


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
    """Run the command line and return its exit status."""
    return run_command(cli, arguments)
