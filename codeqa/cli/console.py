"""Print to a terminal: harmless text, progress, tables, figures."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Self, TextIO

import click

from codeqa.text import some_of
from codeqa.types import IndexSummary, Progress

SAY_SECONDS = 0.75
"""Between two lines of progress: within two seconds the user sees that work goes on, also on a busy
machine."""

SKIPPED_NAMED = 3  # files, for each reason

_FENCE = re.compile(r"[> ]*(`{3,})")
_MARKS = re.compile(
    r"""\\(?P<escaped>[!-/:-@\[-`{-~]) | (?P<ticks>`+)(?P<code>.+?)(?P=ticks)(?!`)
    | \*\*(?P<strong>.+?)\*\*(?!\*) | (?<![\w*])\*(?P<emphasis>[^\s*][^*]*)\*(?![\w*])""",
    re.VERBOSE,
)
_MARK = re.compile(r"[*`\\]")
_HEADING = re.compile(r"#{1,6} ")

_SHOWN = {
    # Controls as their pictures; what turns the direction of text, or has no picture, as "�".
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
    0x7F: 0x2421,
    ord("\r"): None,
}


def visible(text: str) -> str:
    """Remove control characters from `text`: files, names and models may hold anything."""
    return text.translate(_SHOWN)


class PlainText:
    """Turns Markdown into text for a terminal: without marks, drawings and control characters.

    Text may come in parts; code is indented by four blanks.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._drawing = False
        self._rest = ""
        self._begun = False
        """The beginning of the line whose rest waits is printed already."""

    def feed(self, text: str, *, last: bool = False) -> str:
        """Return what can be printed; marks that may be incomplete wait, unless `last`."""
        *lines, rest = (self._rest + visible(text)).split("\n")
        output = "".join(map(self._line, lines))
        ready = len(rest) if last else 0
        if not (last or self._fence) and (
            self._begun or rest.lstrip(" >")[:1] not in ("", "#", "`")
        ):
            ready = _complete(rest)
        if ready:
            output += self._line(rest)[:-1] if last else _inline(rest[:ready])
            self._begun = True
        self._rest = rest[ready:]
        return output

    def _line(self, line: str) -> str:
        begun, self._begun = self._begun, False
        marks = None if begun else _FENCE.match(line)
        if marks and (not self._fence or marks[1].startswith(self._fence)):
            self._drawing = not self._fence and line.endswith("mermaid")
            self._fence = "" if self._fence else marks[1]
            return ""
        if self._fence:
            return "" if self._drawing else f"    {line}\n".replace("    \n", "\n")
        if not begun and (heading := _HEADING.match(line)):
            return f"{click.style(_inline(line[heading.end() :]), bold=True)}\n"
        return f"{_inline(line)}\n"


def _complete(line: str) -> int:
    """Return how many characters of a line no later text changes."""
    at = 0
    while mark := _MARK.search(line, at):
        whole = _MARKS.match(line, mark.start())
        if not whole or whole.end() == len(line):
            return mark.start()
        at = whole.end()
    return len(line)


def _inline(line: str) -> str:
    """Render a line of Markdown without its marks; strong text is bold."""

    def plain(mark: re.Match[str]) -> str:
        name = mark.lastgroup or ""
        if name in ("escaped", "code"):
            return mark[name].strip() if name == "code" else mark[name]
        text = _inline(mark[name])
        return text if name == "emphasis" else click.style(text, bold=True)

    return _MARKS.sub(plain, line)


class Line:
    """One changing line on `stream` (default: stderr) if that is a terminal; else nothing."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = False

    def show(self, text: str, end: str = "") -> None:
        """Replace the line by `text`; with a line break as `end` it stays."""
        if self._stream.isatty():
            room = shutil.get_terminal_size().columns - 1  # a second line could not be removed
            print(f"\r\x1b[K{visible(text)[:room]}", end=end, file=self._stream, flush=True)
            self._shown = True

    def close(self) -> None:
        """Remove the line, before anything else is printed."""
        if self._shown:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
            self._shown = False


class ProgressDisplay:
    """Prints the `Progress` values that it is called with, and the time while none comes.

    A terminal gets one changing line for each phase, a file a line every SAY_SECONDS.
    """

    def __init__(
        self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._began = self._said = 0.0
        self._line = ""
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __call__(self, progress: Progress) -> None:
        with self._lock:
            if self._progress is None or progress.phase != self._progress.phase:
                self.close()
                self._began, self._said = self._clock(), -math.inf
                self._ended = threading.Event()
                threading.Thread(target=self._repeat, args=(self._ended,), daemon=True).start()
            self._progress = progress
            self.tick()

    def tick(self) -> None:
        """Print the progress, unless that was done a moment ago or the work is paused."""
        with self._lock:
            if self._progress is None or self._clock() - self._said < SAY_SECONDS:
                return
            if self._said < self._began or not self._progress.phase.endswith("paused"):
                self._say(self._progress)

    def close(self) -> None:
        """Finish the current phase; its last line stays visible."""
        with self._lock:
            self._ended.set()
            if self._progress is not None:
                self._say(self._progress, end="\n")
            self._progress = None

    def _repeat(self, ended: threading.Event) -> None:
        with suppress(OSError, ValueError):  # nobody listens any more
            while not ended.wait(SAY_SECONDS / 4):
                self.tick()

    def _say(self, progress: Progress, end: str = "") -> None:
        self._said, before = self._clock(), self._line
        seconds, done, total = self._said - self._began, progress.done, progress.total
        self._line = progress.phase
        if seconds >= SAY_SECONDS and not total:
            self._line += f", {seconds:.0f} s"
        if total:
            self._line += f": {done:,} of {total:,} ({100 * done // total}%)"
        if progress.far_enough and done < total:
            self._line += f", {seconds / done * (total - done):.0f} s left"
        if self._stream.isatty():
            Line(self._stream).show(self._line, end)
        elif self._line != before or not end:
            print(visible(self._line), file=self._stream, flush=True)


def print_summary(summary: IndexSummary, stream: TextIO | None = None) -> None:
    """Print a table of what an indexing run did and what the index holds."""
    changes = f"{summary.changed:,} new or changed, {summary.unchanged:,} unchanged"
    if summary.removed:
        changes += f", {summary.removed:,} removed"
    rows = [
        ("files", f"{summary.files:,} ({changes})"),
        ("methods", f"{summary.methods:,}"),
        ("classes", f"{summary.classes:,}"),
        ("documents", f"{summary.documents:,}"),
        ("references", f"{summary.references:,}"),
    ]
    vectors = [f"{count:,} of {name}" for name, count in summary.vectors.items()]
    rows += [("" if number else "vectors", text) for number, text in enumerate(vectors)]
    if summary.broken:
        names = some_of(summary.broken_files, SKIPPED_NAMED)
        rows.append(("parsed in part", f"{summary.broken:,} with syntax errors: {names}"))
    if summary.replaced:
        rows.append(("not UTF-8", f"{summary.replaced:,} files, indexed with replacements"))
    skipped = sorted(summary.skipped.items(), key=lambda item: (-item[1], item[0]))
    rows.append(("skipped", f"{sum(summary.skipped.values()):,}"))
    for reason, count in skipped:
        paths = summary.skipped_files.get(reason, ())
        names = ", ".join(paths[:SKIPPED_NAMED]) + ", …" * (count > SKIPPED_NAMED)
        rows.append(("", f"{count:,} {reason}: {names}" if paths else f"{count:,} {reason}"))
    rows.append(("time", f"{summary.seconds:,.1f} s"))
    rows.append(("on disk", human_bytes(summary.bytes_on_disk)))
    print(f"Indexed {summary.repository}", file=stream or sys.stdout)
    print(format_pairs(rows), file=stream or sys.stdout)


def format_pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Return labels and values in two aligned columns."""
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"  {label:<{width}}  {value}".rstrip() for label, value in rows)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with aligned columns; columns of numbers are aligned to the right."""
    aligned = []
    for column in zip(header, *rows, strict=True):
        adjust = str.rjust if all(cell[:1].isdigit() for cell in column[1:]) else str.ljust
        width = max(map(len, column))
        aligned.append([adjust(cell, width) for cell in column])
    return "\n".join("  ".join(line).rstrip() for line in zip(*aligned, strict=True))


def human_bytes(count: float) -> str:
    """Return `1.5 kB` for 1536: decimal units, as disks and file managers count."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:  # rounded to 1000, it belongs to the next unit
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"


def print_json(document: Any) -> None:
    """Print a document as indented JSON."""
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_either(as_json: bool, document: Any, text: str) -> None:
    """Print `document` for programs, or `text` for people."""
    print_json(document) if as_json else print(text)


def search_notes(coverage: str, reranker: str) -> Iterator[str]:
    """Yield a line about what was searched and one about the reranker, unless they are empty."""
    if coverage:
        yield f"Searched: {coverage}"
    if reranker:
        yield f"Reranked: {reranker}"
