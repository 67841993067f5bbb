"""Build and run commands: shared options, errors in one line, three exit statuses.

The commands of `codeqa` and the scripts at the top level share it. Importing it loads nothing but
click: `codeqa --version` takes as long as Python and click do.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any

import click

from codeqa.environment import checkout, noted_repositories, prepare_lancedb, with_home
from codeqa.errors import CodeQAError, UsageError
from codeqa.folders import OTHERS, confirm_folder, is_direct

DONE, FAILED, BAD_USAGE = 0, 1, 2
"""The only exit statuses of every command."""

HELP = {"help_option_names": ["-h", "--help"]}

Command = Callable[..., Any]

debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    help="Show the traceback of an error and the detailed log.",
)
"""`run_command` looks for it by itself."""


def folder_of(repo: str, data: Path, *, anew: bool = False) -> Path:
    """Return the folder of the repository with this path, name or id. Raises UsageError.

    Raises RepositoryError if a link took the place of an indexed folder, unless that is indexed
    `anew`.
    """
    folder = Path.cwd() / with_home(Path(repo))
    if folder.is_dir():
        path = os.path.normpath(folder)
        if not anew and path in (root for _, root, _ in noted_repositories(data)):
            confirm_folder(Path(path))
        return folder.resolve()
    if folder.exists():
        raise UsageError(f"{repo} is not a folder.", "Give the folder that holds the source code.")
    rows = noted_repositories(data)
    matches = [row for row in rows if repo == row[2] or str(folder) == row[1]]
    matches = matches or [row for row in rows if repo == row[0]]
    if len(matches) > 1:
        raise UsageError(f"{len(matches)} repositories are named {repo}.", "Give the path of one.")
    if not matches:
        raise UsageError(
            f"There is no folder {repo}, and no indexed repository has that name.",
            "See `codeqa repos list`.",
        )
    confirm_folder(Path(matches[0][1]))
    return Path(matches[0][1])


def folder_here(data: Path) -> Path | None:
    """Return the indexed or git repository that the current folder is in, if any."""
    roots, here = {root for _, root, _ in noted_repositories(data)}, Path.cwd()
    for folder in (here, *here.parents):
        if str(folder) in roots or (folder / ".git").exists():
            return folder
    return None


EVERY = "all"
"""As the only name, it stands for every indexed repository."""


def folders_of(repos: Sequence[str], data: Path) -> list[Path]:
    """Return the folders of `repos`, or of the current repository. Raises UsageError."""
    if list(repos) == [EVERY] and (rows := noted_repositories(data)):
        folders = (Path(root) for _, root, _ in rows)
        return [folder for folder in folders if folder.is_dir() and is_direct(folder)]
    if repos:
        return [folder_of(repo, data) for repo in repos]
    here = folder_here(data)
    if here is None:
        raise UsageError(
            "No repository was given, and the current folder is not inside one.",
            "Give its path, for example /path/to/repository.",
        )
    return [here]


json_option = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def _not_empty(_: click.Context, __: click.Parameter, value: str | None) -> str:
    if value == "":
        raise click.BadParameter("name a commit, a branch or a tag.")
    return value or ""


rev_option = click.option(
    "--rev",
    callback=_not_empty,
    metavar="COMMIT",
    help="Use the code at this commit, branch or tag; your files are not changed.",
)
repo_argument = click.argument("repo", required=False, envvar="REPO_PATH")
repos_option = click.option(
    "--repo",
    "repos",
    multiple=True,
    help="Folder of the repository, or its name in 'codeqa repos list'. Repeat it to ask several "
    "repositories at once; 'all' stands for every one.",
)
local_option = click.option(
    "--local", is_flag=True, help="Do the work in this process, even if a server is running."
)
model_option = click.option(
    "--model",
    default="",
    metavar="MODEL",
    help="Language model as provider/name, or none; see 'codeqa models'.",
)
no_model_option = click.option(
    "--no-model", "model", flag_value="none", help="Use no language model, like --model none."
)


def together(*options: Command) -> Command:
    """Return the decorator that adds all `options`."""
    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)


where_options = together(repos_option, rev_option, local_option, json_option)
"""Options of commands that read code."""
model_options = together(model_option, no_model_option)


def command(
    name: str, examples: Sequence[str], group: click.Group | None = None
) -> Callable[[Command], click.Command]:
    """Make a command, of `group` if there is one, with `--debug` and `examples` in its help."""

    def decorate(function: Command) -> click.Command:
        option = debug_option(function)
        result = click.command(name, epilog=examples_text(examples), context_settings=HELP)(option)
        if group is not None:
            group.add_command(result)
        return result

    return decorate


def front_door(program: str, examples: Sequence[str]) -> Callable[[Command], Callable[..., int]]:
    """Return the decorator that makes a function the command line of a Python program.

    `program` is a script at the top level or `-m module`. The result takes arguments and returns
    the exit status.
    """

    def decorate(function: Command) -> Callable[..., int]:
        program_command = command(f"python {program}", examples)(function)
        return partial(run_command, program_command, program=program.removeprefix("-m "))

    return decorate


def examples_text(examples: Sequence[str]) -> str:
    """Return the end of a help text, with an example on each line."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def ask_first(yes: bool, question: str, what: str) -> None:
    """Ask the user to confirm before `what` ("delete it") is done, unless `yes`.

    Raises UsageError without a terminal, click.Abort if the user says no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on.", f"Add --yes to {what}.")
    click.confirm(question, abort=True)


def run_command(
    main: click.Command, arguments: Sequence[str] | None = None, *, program: str = "codeqa"
) -> int:
    """Run a command and return its exit status; failures become one line on stderr.

    The command returns a status, or None for success. `--debug` among `arguments` adds the
    traceback.
    """
    prepare_lancedb()
    umask = os.umask(OTHERS)
    words = list(sys.argv[1:] if arguments is None else arguments)
    show_trace = "--debug" in words
    log, handler = logging.getLogger("codeqa"), logging.StreamHandler()
    level = log.level
    if show_trace:  # such as the second draft of an answer, `-query_v2-`
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
    for stream in (sys.stdout, sys.stderr):
        # Source holds any character; a terminal that cannot show one gets a replacement.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    try:
        with main.make_context(str(main.name), words) as context:
            status = main.invoke(context)
        sys.stdout.flush()
        return status if isinstance(status, int) else DONE
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except (KeyboardInterrupt, click.Abort):
        print_error("interrupted. What is done is kept: run it again to continue.", program)
        return FAILED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        # Whatever it is, the user gets one line.
        if show_trace:
            traceback.print_exc()
        message, status = _explained(error, show_trace)
        print_error(message, program)
        return status
    finally:
        os.umask(umask)
        log.removeHandler(handler)
        log.setLevel(level)


def _explained(error: Exception, traced: bool) -> tuple[str, int]:
    """Return the message for an error, and the exit status."""
    if isinstance(error, CodeQAError):
        return str(error), error.exit_status
    if isinstance(error, click.ClickException):
        message = " ".join(error.format_message().split()).rstrip(".")
        message = re.sub(r"\((Did you mean .*)\)$", r"\1", message)
        context = error.ctx if isinstance(error, click.UsageError) else None
        see = f" See '{context.command_path} --help'." if context else ""
        return message + ("" if message.endswith("?") else ".") + see, BAD_USAGE
    if isinstance(error, ModuleNotFoundError):
        own = "`make setup` installs it; the command is then .venv/bin/codeqa" if checkout() else ""
        return f"{error.name} is missing. {own or 'Install codeqa again with pip'}.", FAILED
    where = "" if traced else " Run the same command with --debug to see where."
    if isinstance(error, OSError):
        file = f" {error.filename}:" if error.filename else ""
        return f"the system refused:{file} {error.strerror or error}.{where}", FAILED
    return f"unexpected {type(error).__name__}: {error}.{where}", FAILED


def print_error(message: str, program: str = "codeqa") -> None:
    """Write `message` to stderr as one line, whatever line breaks it holds."""
    from codeqa.cli.console import visible

    print(f"{program}: {visible(' '.join(message.split()))}", file=sys.stderr)
