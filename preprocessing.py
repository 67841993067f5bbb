"""Show what CodeQA reads from a repository: `python preprocessing.py REPO`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from codeqa.cli.command import front_door
from codeqa.cli.console import ProgressDisplay, format_pairs
from codeqa.errors import UsageError
from codeqa.parsing.csv_tables import write_csv
from codeqa.parsing.preprocess import json_line, preprocess
from codeqa.settings import load_settings
from codeqa.types import ParsedFile, Skipped

__all__ = ["main", "preprocess"]


@front_door(
    "preprocessing.py",
    [
        "python preprocessing.py ../flask                       JSON lines to the terminal",
        "python preprocessing.py ../flask --output flask.jsonl  … to a file",
        "python preprocessing.py ../flask --csv processed/flask two CSV tables in a folder",
        "python preprocessing.py ../flask | head -1 | python -m json.tool",
    ],
    kept="Nothing was written.",
)
@click.argument("repo", type=Path)
@click.option("--output", type=Path, metavar="FILE", help="Write the JSON lines to FILE.")
@click.option("--csv", type=Path, metavar="DIR", help="Write CSV tables into DIR.")
@click.option("--workers", type=int, help="Worker processes (default: one per core, ≤ 4).")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def main(
    repo: Path, output: Path | None, csv: Path | None, workers: int | None, quiet: bool
) -> None:
    """Write what is read from a repository, one file a line as JSON, or as two CSV tables.

    These are its methods, classes, documents and references. Nothing is indexed.
    """
    if output and csv:
        raise UsageError("--output and --csv exclude each other.", "Leave one out.")
    settings = load_settings(repo, workers=workers)
    skipped: list[Skipped] = []
    counts: Counter[str] = Counter()
    with ProgressDisplay() as display:
        progress = None if quiet else display
        parsed_files = preprocess(repo, settings, progress=progress, skipped=skipped)
        files = _counted(parsed_files, counts)
        if csv:
            write_csv(files, csv)
        else:
            with _opened(output) as stream:
                for parsed in files:
                    stream.write(json_line(parsed))
                stream.flush()
    if not quiet:
        _summarise(counts, skipped)


def _counted(files: Iterator[ParsedFile], counts: Counter[str]) -> Iterator[ParsedFile]:
    for parsed in files:
        counts["files"] += 1
        methods = sum(unit.is_method for unit in parsed.units)
        counts["methods"] += methods
        counts["classes and documents"] += len(parsed.units) - methods
        counts["references"] += len(parsed.references)
        yield parsed


@contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    """The stream to write to; a file appears under its name only once it is complete."""
    if output is None:
        yield sys.stdout
        return
    partial = output.with_name(output.name + ".part")
    try:
        stream = partial.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(
            f"{output} cannot be written: {error.strerror}.", "Give another file."
        ) from None
    try:
        with stream:
            yield stream
        partial.replace(output)
    finally:
        partial.unlink(missing_ok=True)


def _summarise(counts: Counter[str], skipped: list[Skipped]) -> None:
    rows = [(name, f"{count:,}") for name, count in counts.items()]
    rows.append(("skipped", f"{len(skipped):,}"))
    reasons = Counter(entry.reason for entry in skipped)
    rows += [("", f"{count:,} {reason}") for reason, count in reasons.most_common()]
    print(format_pairs(rows), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
