"""Runs the command line and turns every ending into one of three statuses."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import click

from codeqa.cli import (  # noqa: F401 (their commands)
    ask,
    doctor,
    evaluate,
    index,
    models,
    policy,
    privacy,
    repos,
    search,
)
from codeqa.cli.command import cli
from codeqa.cli.console import BAD_USAGE, DONE, run_main
from codeqa.errors import CodeQAError, UsageError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_main(lambda: _run(given), debug="--debug" in given)


def _run(arguments: list[str]) -> int:
    """Run click without its own handling of errors: ours are one line and three statuses."""
    try:
        with cli.make_context("codeqa", arguments) as context:
            status = cli.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "codeqa"
        raise UsageError(_sentence(error.format_message()), f"See '{path} --help'.") from error
    except click.ClickException as error:
        raise CodeQAError(_sentence(error.format_message())) from error
    except click.Abort:
        raise KeyboardInterrupt from None
    return status if isinstance(status, int) else DONE


def _sentence(text: str) -> str:
    text = re.sub(r"\((Did you mean .*)\)$", r"\1", " ".join(text.split()))
    return text if text.endswith((".", "?", "!")) else f"{text}."
