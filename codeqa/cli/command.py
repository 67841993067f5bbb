"""The root of the commands, and what each command is made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from codeqa import __version__

Command = Callable[..., Any]

REPO_HELP = "Folder of the repository, or the name it has in 'codeqa repos list'."
MODEL_HELP = "Language model as provider/name; see 'codeqa models'."


def debug_option(function: Command) -> Command:
    """`--debug`, which `main` looks for by itself."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
    )(function)


def command(group: click.Group, name: str, examples: Sequence[str]) -> Callable[[Command], Any]:
    """A command of `group` that takes `--debug` and shows `examples` in its help."""

    def decorate(function: Command) -> Any:
        return group.command(name, epilog=shown(examples))(debug_option(function))

    return decorate


def shown(examples: Sequence[str]) -> str:
    """The end of a help text, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="codeqa", message="%(prog)s %(version)s")
@debug_option
def cli() -> None:
    """Answers questions about a code base, with citations, on this machine.

    \b
    Examples:
      codeqa index ~/src/flask
      codeqa ask "where are sessions opened?" --repo ~/src/flask
      codeqa serve ~/src/flask
    """
