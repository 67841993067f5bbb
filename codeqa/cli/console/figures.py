"""Numbers and tables for people: sizes, times, columns, the summary of an indexing run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from codeqa.types import IndexSummary


def print_summary(summary: IndexSummary, stream: TextIO | None = None) -> None:
    """Print what one indexing run did and what the index holds, aligned."""
    rows = [
        ("files", _files(summary)),
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
