"""The root of the commands. Each is loaded when it is called, and loads what it uses."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from codeqa import __version__
from codeqa.cli.command import DONE, HELP, debug_option, run_command, shown
from codeqa.environment import completion_wanted, prepare_lancedb

COMMANDS = (
    "ask", "completion", "doctor", "index", "mcp", "models", "privacy", "repos",
    "review", "search", "serve", "sync", "watch",
)  # fmt: skip
MODULES = {"sync": "repos", "watch": "index"}
"""Of commands that are not in the module of their name, as `<name>_command`."""


class LateGroup(click.Group):
    """A group whose commands are imported when they are called, or listed with their help."""

    def list_commands(self, context: click.Context) -> list[str]:
        from codeqa.cli.tools import TOOL_COMMANDS

        return [*COMMANDS, *TOOL_COMMANDS]

    def get_command(self, context: click.Context, name: str) -> click.Command:
        prepare_lancedb()
        if name not in COMMANDS:
            from codeqa.cli.tools import TOOL_COMMANDS, tool_command

            # As agents call it, too: results name tools so.
            if (typed := name.replace("_", "-")) in TOOL_COMMANDS:
                return tool_command(typed)
            known = self.list_commands(context)
            raise click.exceptions.NoSuchCommand(name, possibilities=known, ctx=context)
        module = importlib.import_module(f"codeqa.cli.{MODULES.get(name, name)}")
        made: click.Command = getattr(module, f"{name}_command")
        return made

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names alone: a help text beside each would have every command loaded."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, tools in (("Commands", False), ("To read code, also for agents", True)):
            rows = [
                (name, self.get_command(context, name).get_short_help_str(58))
                for name in self.list_commands(context)
                if (name not in COMMANDS) == tools
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


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
    if arguments is None and (instruction := completion_wanted()):
        from codeqa.cli.completion import complete

        complete(cli, instruction)
        return DONE
    return run_command(cli, arguments)
