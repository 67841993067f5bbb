"""What the terminal shows: text made harmless, progress, tables, figures."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Self, TextIO

import click

from codeqa.types import IndexSummary, Progress

_FENCE = re.compile(r"[> ]*(`{3,})")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

_SHOWN = {
    # Controls as their pictures; what turns the direction of text, or has no picture, as "�".
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
    0x7F: 0x2421,
    ord("\r"): None,
}


def visible(text: str) -> str:
    """`text` without what a terminal would obey: files, names and models may hold anything."""
    return text.translate(_SHOWN)


class PlainText:
    """Markdown as a person reads it on a terminal: without backslashes and control characters.

    Text may come in pieces. The backslashes of fenced code stay.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._at_line_start = True
        self._held = ""

    def feed(self, text: str) -> str:
        """What to show of `text`; a backslash at its end waits for what it belongs to."""
        text, self._held = self._held + visible(text), ""
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


class Line:
    """One changing line on `stream`, stderr unless given, when that is a terminal; else nothing."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = False

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if self._stream.isatty():
            room = shutil.get_terminal_size().columns - 1  # a second line could not be taken away
            print(f"\r\x1b[K{visible(text)[:room]}", end="", file=self._stream, flush=True)
            self._shown = True

    def close(self) -> None:
        """Take the line away, before anything else is printed."""
        if self._shown:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
            self._shown = False


class ProgressDisplay:
    """Shows the `Progress` values that it is called with: on a terminal a bar for each phase,
    elsewhere its name."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._phase = ""
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self.close()
            self._phase = progress.phase
            if not (progress.total and self._stream.isatty()):
                click.echo(visible(progress.phase), file=self._stream)
        if progress.total and self._stream.isatty():
            if self._bar is None:
                self._bar = click.progressbar(
                    length=progress.total, label=visible(progress.phase), file=self._stream
                )
            self._bar.length = progress.total
            self._bar.update(progress.done - self._bar.pos)

    def close(self) -> None:
        """Finish the phase on display; its last state stays visible."""
        if self._bar is not None:
            self._bar.render_finish()
        self._phase, self._bar = "", None


def print_summary(summary: IndexSummary, stream: TextIO | None = None) -> None:
    """Print what one indexing run did and what the index holds, aligned."""
    read = f"{summary.changed:,} new or changed, {summary.unchanged:,} unchanged"
    if summary.removed:
        read += f", {summary.removed:,} removed"
    rows = [
        ("files", f"{summary.files:,} ({read})"),
        ("methods", f"{summary.methods:,}"),
        ("classes", f"{summary.classes:,}"),
        ("documents", f"{summary.documents:,}"),
        ("references", f"{summary.references:,}"),
    ]
    vectors = [f"{count:,} of {name}" for name, count in summary.vectors.items()]
    rows += zip(("vectors", *[""] * len(vectors)), vectors, strict=False)
    if summary.broken:
        rows.append(("parsed in part", f"{summary.broken:,} files with broken source"))
    if summary.replaced:
        rows.append(("not UTF-8", f"{summary.replaced:,} files, indexed with replacements"))
    skipped = sorted(summary.skipped.items(), key=lambda item: (-item[1], item[0]))
    rows.append(("skipped", f"{sum(summary.skipped.values()):,}"))
    rows += [("", f"{count:,} {reason}") for reason, count in skipped]
    rows.append(("time", f"{summary.seconds:,.1f} s"))
    rows.append(("on disk", human_bytes(summary.bytes_on_disk)))
    print(f"Indexed {summary.repository}", file=stream or sys.stdout)
    print(format_pairs(rows), file=stream or sys.stdout)


def format_pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Labels and values in two aligned columns."""
    width = max(len(label) for label, _ in rows)
    return "\n".join(f"  {label:<{width}}  {value}".rstrip() for label, value in rows)


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with aligned columns; those whose cells are all numbers stand right."""
    aligned = []
    for title, *cells in zip(header, *rows, strict=True):
        adjust = str.rjust if all(cell[:1].isdigit() for cell in cells) else str.ljust
        width = max(map(len, (title, *cells)))
        aligned.append([adjust(cell, width) for cell in (title, *cells)])
    return "\n".join("  ".join(line).rstrip() for line in zip(*aligned, strict=True))


def human_bytes(count: float) -> str:
    """`1536` → `1.5 kB`; decimal units as disks and file managers count."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:  # what is rounded to 1000 is of the next one
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"


def print_json(document: Any) -> None:
    print(json.dumps(document, ensure_ascii=False, indent=2))


def print_either(as_json: bool, document: Any, text: str) -> None:
    """Print `document` for programs, or `text` for people."""
    print_json(document) if as_json else print(text)
