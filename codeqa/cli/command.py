"""What commands are made with and run by: options that several take, errors of one line, three
exit statuses. The commands of `codeqa` and the scripts at the top level share it.

Importing this loads nothing but click: `codeqa --version` takes as long as Python and click do.
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
    help="Show the traceback of an error, and what is logged in detail.",
)
"""`--debug`, which `run_command` looks for by itself."""


def folder_of(given: str, data: Path, *, anew: bool = False) -> Path:
    """Return the repository that `given` is the folder, name or id of. Raises UsageError, and
    RepositoryError where a link took the place of an indexed one, unless its folder is given to be
    indexed `anew`."""
    folder = Path.cwd() / with_home(Path(given))
    if folder.is_dir():
        path = os.path.normpath(folder)
        if not anew and path in (root for _, root, _ in noted_repositories(data)):
            confirm_folder(Path(path))
        return folder.resolve()
    if folder.exists():
        raise UsageError(f"{given} is not a folder.", "Give the folder that holds the source code.")
    known = noted_repositories(data)
    named = [one for one in known if given == one[2] or str(folder) == one[1]]
    named = named or [one for one in known if given == one[0]]
    if len(named) > 1:
        raise UsageError(f"{len(named)} repositories are named {given}.", "Give the path of one.")
    if not named:
        raise UsageError(
            f"There is no folder {given}, and no indexed repository has that name.",
            "See `codeqa repos list`.",
        )
    confirm_folder(Path(named[0][1]))
    return Path(named[0][1])


def folder_here(data: Path) -> Path | None:
    """Return the repository that the current folder lies in: one that is indexed, or any of git."""
    indexed, here = {root for _, root, _ in noted_repositories(data)}, Path.cwd()
    for folder in (here, *here.parents):
        if str(folder) in indexed or (folder / ".git").exists():
            return folder
    return None


EVERY = "all"
"""Named alone, it stands for every repository that is indexed."""


def folders_of(repos: Sequence[str], data: Path) -> list[Path]:
    """Return the repositories that are named, else the current folder's. Raises UsageError."""
    if [*repos] == [EVERY] and (known := noted_repositories(data)):
        every = (Path(root) for _, root, _ in known)
        return [folder for folder in every if folder.is_dir() and is_direct(folder)]
    if here := None if repos else folder_here(data):
        return [here]
    if not repos:
        raise UsageError(
            "No repository was given, and the current folder is not inside one.",
            "Give its path, for example /path/to/repository.",
        )
    return [folder_of(one, data) for one in repos]


json_option = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def _not_empty(_: click.Context, __: click.Parameter, given: str | None) -> str:
    if given == "":
        raise click.BadParameter("name a commit, a branch or a tag.")
    return given or ""


rev_option = click.option(
    "--rev",
    callback=_not_empty,
    metavar="COMMIT",
    help="The code as it was at this commit, branch or tag; your files stay as they are.",
)
repo_argument = click.argument("repo", required=False, envvar="REPO_PATH")
repos_option = click.option(
    "--repo",
    "repos",
    multiple=True,
    help="Folder of the repository, or its name in 'codeqa repos list'. Give it several times to "
    "ask several at once; 'all' asks every one.",
)
local_option = click.option(
    "--local", is_flag=True, help="Work it out here, even where a server runs for the repository."
)
model_option = click.option(
    "--model",
    default="",
    metavar="MODEL",
    help="Language model as provider/name, or none; see 'codeqa models'.",
)
no_model_option = click.option(
    "--no-model", "model", flag_value="none", help="Ask no language model, like --model none."
)


def together(*options: Command) -> Command:
    """Return the decorator that adds all `options`."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


where_options = together(repos_option, rev_option, local_option, json_option)
"""Of what is asked of code: which, and whether a server is asked."""
model_options = together(model_option, no_model_option)


def command(
    name: str, examples: Sequence[str], group: click.Group | None = None
) -> Callable[[Command], click.Command]:
    """Make a command, of `group` if there is one, with `--debug` and `examples` in its help."""

    def decorate(function: Command) -> click.Command:
        option = debug_option(function)
        made = click.command(name, epilog=shown(examples), context_settings=HELP)(option)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def front_door(program: str, examples: Sequence[str]) -> Callable[[Command], Callable[..., int]]:
    """The command line of a program that `python` runs (a script at the top level, `-m module`):
    takes arguments, gives an exit status."""

    def decorate(function: Command) -> Callable[..., int]:
        made = command(f"python {program}", examples)(function)
        return partial(run_command, made, program=program.removeprefix("-m "))

    return decorate


def shown(examples: Sequence[str]) -> str:
    """Write the end of a help text, line by line."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def ask_first(yes: bool, question: str, what: str) -> None:
    """Have the user agree before `what` ("delete it") is done, unless `yes`.

    Raises UsageError when nobody is there to be asked, click.Abort for no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on.", f"Add --yes to {what}.")
    click.confirm(question, abort=True)


def run_command(
    made: click.Command, arguments: Sequence[str] | None = None, *, program: str = "codeqa"
) -> int:
    """Run a command and return its exit status, without click's own handling of errors: failures
    become one line on stderr.

    The command returns a status or None for success. `--debug` among `arguments` adds the
    traceback.
    """
    prepare_lancedb()
    before = os.umask(OTHERS)
    given = list(sys.argv[1:] if arguments is None else arguments)
    show_trace = "--debug" in given
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
        with made.make_context(str(made.name), given) as context:
            status = made.invoke(context)
        sys.stdout.flush()
        return status if isinstance(status, int) else DONE
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except (KeyboardInterrupt, click.Abort):
        print_error("interrupted. What was written is kept; indexing goes on from there.", program)
        return FAILED
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        # The last resort of a command: whatever it is, the user gets one line.
        if show_trace:
            traceback.print_exc()
        message, status = _explained(error, show_trace)
        print_error(message, program)
        return status
    finally:
        os.umask(before)
        log.removeHandler(handler)
        log.setLevel(level)


def _explained(error: Exception, traced: bool) -> tuple[str, int]:
    """Return what to say of an error, and the exit status."""
    if isinstance(error, CodeQAError):
        return str(error), error.exit_status
    if isinstance(error, click.ClickException):
        said = " ".join(error.format_message().split()).rstrip(".")
        said = re.sub(r"\((Did you mean .*)\)$", r"\1", said)
        context = error.ctx if isinstance(error, click.UsageError) else None
        see = f" See '{context.command_path} --help'." if context else ""
        return said + ("" if said.endswith("?") else ".") + see, BAD_USAGE
    if isinstance(error, ModuleNotFoundError):
        own = "`make setup` installs it; the command is then .venv/bin/codeqa" if checkout() else ""
        return f"{error.name} is missing. {own or 'Install codeqa anew with pip'}.", FAILED
    where = "" if traced else " Run the same command with --debug to see where."
    if isinstance(error, OSError):
        file = f" {error.filename}:" if error.filename else ""
        return f"the system refused:{file} {error.strerror or error}.{where}", FAILED
    return f"unexpected {type(error).__name__}: {error}.{where}", FAILED


def print_error(message: str, program: str = "codeqa") -> None:
    """Write `message` to stderr as one line, whatever line breaks it holds."""
    from codeqa.cli.console import visible

    print(f"{program}: {visible(' '.join(message.split()))}", file=sys.stderr)
