"""The root of the commands. Each is loaded when it is called, and loads what it uses."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, shell_complete

from codeqa import __version__
from codeqa.cli.command import HELP, command, debug_option, run_command, shown
from codeqa.environment import COMPLETION, completion_wanted

MODULES = {
    **{name: name for name in ("ask", "index", "mcp", "models", "privacy", "repos", "serve")},
    "search": "ask", "review": "ask", "watch": "index", "sync": "repos", "doctor": "repos",
}  # fmt: skip
"""Names of commands → where each is, as `<name>_command`."""
INSTALL = {
    "bash": "codeqa completion bash >> ~/.bashrc",
    "zsh": "codeqa completion zsh >> ~/.zshrc",
    "fish": "codeqa completion fish > ~/.config/fish/completions/codeqa.fish",
}


class LateGroup(click.Group):
    """A group whose commands are imported when they are called, or listed with their help."""

    def list_commands(self, context: click.Context) -> list[str]:
        from codeqa.cli.tools import TOOL_COMMANDS

        return [*sorted([*MODULES, *self.commands]), *TOOL_COMMANDS]

    def get_command(self, context: click.Context, name: str) -> click.Command:
        if made := self.commands.get(name):
            return made
        if name in MODULES:
            module = importlib.import_module(f"codeqa.cli.{MODULES[name]}")
            late: click.Command = getattr(module, f"{name}_command")
            return late
        from codeqa.cli.tools import TOOL_COMMANDS, tool_command

        # As agents call it, too: results name tools so.
        if (typed := name.replace("_", "-")) in TOOL_COMMANDS:
            return tool_command(typed)
        known = self.list_commands(context)
        raise click.exceptions.NoSuchCommand(name, possibilities=known, ctx=context)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names alone: a help text beside each would have every command loaded."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            *(CompletionItem(name) for name in names),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        from codeqa.cli.tools import TOOL_COMMANDS

        for title, tools in (("Commands", False), ("To read code, also for agents", True)):
            rows = [
                (name, self.get_command(context, name).get_short_help_str(58))
                for name in self.list_commands(context)
                if (name in TOOL_COMMANDS) == tools
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


@command("completion", list(INSTALL.values()), group=cli)
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
def completion_command(shell: str) -> None:
    """Print the script with which SHELL completes commands, options, repositories and tools."""
    click.echo(f"# To install it: {INSTALL[shell]}")
    shell_complete(cli, {}, "codeqa", COMPLETION, f"{shell}_source")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    if arguments is None and (wanted := completion_wanted()):
        return shell_complete(cli, {}, "codeqa", COMPLETION, wanted)
    return run_command(cli, arguments)
