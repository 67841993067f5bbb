"""What every command shares: progress, the final summary, and errors of one line."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self, TextIO

from codeqa.errors import CodeQAError, UsageError
from codeqa.types import IndexSummary, Progress

DONE, FAILED, BAD_USAGE = 0, 1, 2
"""The only exit statuses of every command."""

_FENCE = re.compile(r"[> ]*(`{3,})")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

SECONDS_BETWEEN_LINES = 3.0
"""Pause between two plain progress lines of one phase, so that a log stays readable."""


def print_error(message: str, program: str = "codeqa") -> None:
    """Write `message` to stderr as one line, whatever line breaks it holds."""
    print(f"{program}: {' '.join(message.split())}", file=sys.stderr)


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


class ProgressDisplay:
    """Shows `Progress` values: a bar on a terminal, a plain line now and then elsewhere.

    Use as a context manager and call it with each value; a new phase starts a new bar.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._bar: Any = None
        self._phase = ""
        self._started = self._last_line = 0.0
        self._last: Progress | None = None
        self._printed: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self.close()
            self._phase, self._started = progress.phase, time.monotonic()
            self._last_line = 0.0
        self._last = progress
        if self._terminal:
            self._draw(progress)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._print_line(progress)

    def close(self) -> None:
        """Finish the phase on display; its last state stays visible."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        elif self._last is not None and self._last != self._printed:
            self._print_line(self._last)
        self._phase, self._last = "", None

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=progress.phase,
                total=progress.total or None,
                file=self._stream,
                dynamic_ncols=True,
                mininterval=0.1,
            )
        if progress.total:
            self._bar.total = progress.total
        self._bar.set_postfix_str(progress.detail[-40:], refresh=False)
        self._bar.update(progress.done - self._bar.n)

    def _print_line(self, progress: Progress) -> None:
        seconds = time.monotonic() - self._started
        print(describe_progress(progress, seconds), file=self._stream, flush=True)
        self._last_line, self._printed = time.monotonic(), progress


class PlainText:
    """Takes the backslashes out of Markdown that a person reads on a terminal.

    Text may come in pieces. Fenced code stays as it is.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._at_line_start = True
        self._held = ""

    def feed(self, text: str) -> str:
        """What to show of `text`; a backslash at its end waits for what it belongs to."""
        text, self._held = self._held + text, ""
        if not self._fence and len(text) - len(text.rstrip("\\")) & 1:
            text, self._held = text[:-1], "\\"
        return "".join(map(self._line, text.splitlines(keepends=True)))

    def _line(self, line: str) -> str:
        if self._at_line_start and (marks := _FENCE.match(line)):
            run = marks[1]
            if not self._fence:
                self._fence = run
            elif run.startswith(self._fence):
                self._fence = ""
        elif not self._fence:
            line = _ESCAPE.sub(r"\1", line)
        self._at_line_start = line.endswith("\n")
        return line


def describe_progress(progress: Progress, seconds: float) -> str:
    """`parsing: 200 of 1,000 (20 %), 100/s, 8 s left` after `seconds` of this phase."""
    if not progress.done and not progress.total:
        return progress.phase
    parts = [f"{progress.done:,}"]
    if progress.total:
        share = 100 * progress.done // progress.total
        parts = [f"{progress.done:,} of {progress.total:,} ({share} %)"]
    rate = progress.done / seconds if seconds > 0.05 else 0.0
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if progress.total > progress.done:
            parts.append(f"{human_seconds((progress.total - progress.done) / rate)} left")
    return f"{progress.phase}: {', '.join(parts)}"


def print_summary(summary: IndexSummary, stream: TextIO | None = None) -> None:
    """Print what one indexing run did and what the index holds, aligned."""
    rows = [
        ("files", _files(summary)),
        ("methods", f"{summary.methods:,}"),
        ("classes", f"{summary.classes:,}"),
        ("documents", f"{summary.documents:,}"),
        ("references", f"{summary.references:,}"),
    ]
    if summary.broken:
        rows.append(("parsed in part", f"{summary.broken:,} files with broken source"))
    if summary.replaced:
        rows.append(("not UTF-8", f"{summary.replaced:,} files, indexed with replacements"))
    skipped = sorted(summary.skipped.items(), key=lambda item: (-item[1], item[0]))
    rows.append(("skipped", f"{sum(summary.skipped.values()):,}"))
    rows += [("", f"{count:,} {reason}") for reason, count in skipped]
    rows.append(("time", human_seconds(summary.seconds)))
    rows.append(("on disk", human_bytes(summary.bytes_on_disk)))
    if summary.peak_memory:
        rows.append(("peak memory", human_bytes(summary.peak_memory)))
    print(f"Indexed {summary.repository}", file=stream or sys.stdout)
    print(format_pairs(rows), file=stream or sys.stdout)


def _files(summary: IndexSummary) -> str:
    detail = f"{summary.changed:,} new or changed, {summary.unchanged:,} unchanged"
    if summary.removed:
        detail += f", {summary.removed:,} removed"
    return f"{summary.files:,} ({detail})"


def format_pairs(rows: Sequence[tuple[str, str]], indent: str = "  ") -> str:
    """Labels and values in two aligned columns."""
    width = max((len(label) for label, _ in rows), default=0)
    return "\n".join(f"{indent}{label:<{width}}  {value}".rstrip() for label, value in rows)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with aligned columns; those whose cells are all numbers stand right."""
    numeric = [all(row[i][:1].isdigit() for row in rows) and bool(rows) for i in range(len(header))]
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def human_bytes(count: float) -> str:
    """`1536` → `1.5 kB`; decimal units as disks and file managers count."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def human_seconds(seconds: float) -> str:
    """`0.42` → `0.4 s`, `75` → `1 min 15 s`, `7500` → `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


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
