"""What commands are made with and run by: options that several take, errors of one line, three
exit statuses. The commands of `codeqa` and the scripts at the top level share it.

Importing this loads nothing but click: `codeqa --version` takes as long as Python and click do.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import click

from codeqa.errors import CodeQAError, UsageError

DONE, FAILED, BAD_USAGE = 0, 1, 2
"""The only exit statuses of every command."""

HELP = {"help_option_names": ["-h", "--help"]}
KEPT = "What was written is kept; the next run goes on from there."

Command = Callable[..., Any]

debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)
"""`--debug`, which `run_command` looks for by itself."""
repo_option = click.option(
    "--repo", help="Folder of the repository, or the name it has in 'codeqa repos list'."
)
model_option = click.option(
    "--model",
    default="",
    metavar="MODEL",
    help="Language model as provider/name; see 'codeqa models'.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
rerank_option = click.option(
    "--rerank", is_flag=True, help="Let the reranker order the best of what is found."
)


def hyde_option(default: str, explained: str) -> Callable[[Command], Command]:
    """`--hyde`; `default` '' leaves it to the setting, `explained` says which that is."""
    return click.option(
        "--hyde",
        type=click.Choice(("off", "one", "two")),
        default=default or None,
        help=f"Search also by drafts of a language model: off, one or two; {explained}.",
        metavar="MODE",
    )


def command(
    name: str, examples: Sequence[str], group: click.Group | None = None
) -> Callable[[Command], click.Command]:
    """A command, of `group` if there is one, with `--debug` and `examples` in its help."""

    def decorate(function: Command) -> click.Command:
        made = click.command(name, epilog=shown(examples))(debug_option(function))
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def front_door(
    program: str, examples: Sequence[str], kept: str = KEPT
) -> Callable[[Command], Callable[..., int]]:
    """The command line of a script at the top level: takes arguments, gives an exit status."""

    def decorate(function: Command) -> Callable[..., int]:
        made = command(f"python {program}", examples)(function)
        made.context_settings = HELP

        def main(arguments: Sequence[str] | None = None) -> int:
            from codeqa.settings import quiet_libraries

            quiet_libraries()
            return run_command(made, arguments, program=program, kept=kept)

        return main

    return decorate


def shown(examples: Sequence[str]) -> str:
    """The end of a help text, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def ask_first(yes: bool, question: str, what: str) -> None:
    """Have the user agree before `what` ("delete it") is done, unless `yes`.

    Raises UsageError when nobody is there to be asked, click.Abort for no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked here.", f"Add --yes to {what}.")
    click.confirm(question, abort=True)


def run_command(
    made: click.Command,
    arguments: Sequence[str] | None = None,
    *,
    program: str = "codeqa",
    kept: str = KEPT,
) -> int:
    """Run a command and return its exit status; failures become one line on stderr.

    The command returns a status or None for success. `--debug` among `arguments` adds the
    traceback. `kept` tells after Ctrl-C what is not lost.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    show_trace = "--debug" in given
    for stream in (sys.stdout, sys.stderr):
        # Source holds any character; a terminal that cannot show one gets a replacement.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    try:
        status = _invoke(made, given)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print_error(f"interrupted. {kept}", program)
        return FAILED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        # The last resort of a command: whatever it is, the user gets one line.
        if show_trace:
            traceback.print_exc()
        print_error(_explained(error, show_trace), program)
        return error.exit_status if isinstance(error, CodeQAError) else FAILED


def _explained(error: Exception, traced: bool) -> str:
    if isinstance(error, CodeQAError):
        return str(error)
    where = "" if traced else " Run the same command with --debug to see where."
    if isinstance(error, OSError):
        file = f" {error.filename}:" if error.filename else ""
        return f"the system refused:{file} {error.strerror or error}.{where}"
    return f"unexpected {type(error).__name__}: {error}.{where}"


def print_error(message: str, program: str = "codeqa") -> None:
    """Write `message` to stderr as one line, whatever line breaks it holds."""
    from codeqa.cli.console import visible

    print(f"{program}: {visible(' '.join(message.split()))}", file=sys.stderr)


def _invoke(made: click.Command, arguments: list[str]) -> int:
    """Invoke without click's own handling of errors: ours are one line and three statuses."""
    name = str(made.name)
    try:
        with made.make_context(name, arguments) as context:
            status = made.invoke(context)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else name
        raise UsageError(_sentence(error.format_message()), f"See '{path} --help'.") from error
    except click.ClickException as error:
        raise CodeQAError(_sentence(error.format_message())) from error
    except click.Abort:
        raise KeyboardInterrupt from None
    return status if isinstance(status, int) else DONE


def _sentence(text: str) -> str:
    text = re.sub(r"\((Did you mean .*)\)$", r"\1", " ".join(text.split()))
    return text if text.endswith((".", "?", "!")) else f"{text}."
