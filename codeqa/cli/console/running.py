"""Running a command: its arguments, and errors of one line."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from codeqa.cli.console.text import visible
from codeqa.errors import CodeQAError, UsageError
from codeqa.settings import quiet_libraries

DONE, FAILED, BAD_USAGE = 0, 1, 2
"""The only exit statuses of every command."""


def print_error(message: str, program: str = "codeqa") -> None:
    """Write `message` to stderr as one line, whatever line breaks it holds."""
    print(f"{program}: {visible(' '.join(message.split()))}", file=sys.stderr)


def run_main(
    main: Callable[[], int | None],
    *,
    program: str = "codeqa",
    debug: bool | None = None,
    kept: str = "What was written is kept; the next run goes on from there.",
) -> int:
    """Run `main` and return an exit status; failures become one line on stderr.

    `main` returns a status or None for success. A SystemExit (argparse) keeps its status,
    folded to the three that commands use. `debug` adds the traceback; None looks for
    `--debug` in the command line. `kept` tells after Ctrl-C what is not lost.
    """
    show_trace = "--debug" in sys.argv if debug is None else debug
    _never_fail_on_encoding()
    quiet_libraries()
    try:
        status = main()
        sys.stdout.flush()
        return DONE if status is None else status
    except CodeQAError as error:
        return _fail(str(error), error.exit_status, show_trace, program)
    except KeyboardInterrupt:
        return _fail(f"interrupted. {kept}", FAILED, False, program)
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except SystemExit as error:
        return _status_of(error, program)
    except OSError as error:
        where = f" {error.filename}:" if error.filename else ""
        text = f"the system refused:{where} {error.strerror or error}."
        return _fail(text + _debug_hint(show_trace), FAILED, show_trace, program)
    except Exception as error:
        # The last resort of a command: whatever it is, the user gets one line.
        text = f"unexpected {type(error).__name__}: {error}."
        return _fail(text + _debug_hint(show_trace), FAILED, show_trace, program)


class _Parser(argparse.ArgumentParser):
    """Reports a wrong call as all commands do: in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.rstrip('.')}.", f"See '{self.prog} --help'.")


def front_door(program: str, description: str, examples: Sequence[str]) -> argparse.ArgumentParser:
    """Argument parser of a top-level script: description, `--debug`, and examples in the help."""
    parser = _Parser(
        prog=program,
        # The formatter that keeps the examples' lines would keep a description on one.
        description=textwrap.fill(description, 79),
        epilog="\n".join(["examples:", *(f"  {example}" for example in examples)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _fail(message: str, status: int, trace: bool, program: str) -> int:
    if trace:
        traceback.print_exc()
    print_error(message, program)
    return status


def _debug_hint(shown: bool) -> str:
    return "" if shown else " Run the same command with --debug to see where."


def _status_of(error: SystemExit, program: str) -> int:
    if error.code is None:
        return DONE
    if isinstance(error.code, int):
        return error.code if error.code in (DONE, FAILED, BAD_USAGE) else FAILED
    return _fail(str(error.code), FAILED, False, program)


def _never_fail_on_encoding() -> None:
    """Source holds any character; a terminal that cannot show one gets a replacement."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
