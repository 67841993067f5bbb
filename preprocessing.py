"""Show what CodeQA reads from a repository: `python preprocessing.py REPO`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from codeqa.cli.command import front_door
from codeqa.cli.console import ProgressDisplay, format_pairs
from codeqa.errors import UsageError
from codeqa.parsing.preprocess import json_line, preprocess, write_files
from codeqa.settings import load_settings
from codeqa.types import ParsedFile, Skipped

__all__ = ["main", "preprocess"]


@front_door(
    "preprocessing.py",
    [
        "python preprocessing.py ../flask              files in processed/flask",
        "python preprocessing.py ../flask --out there  … in the folder there",
        "python preprocessing.py ../flask --out - | head -1 | python -m json.tool",
    ],
)
@click.argument("repo", type=Path)
@click.option(
    "--out",
    type=Path,
    metavar="DIR",
    help="Folder to write into (default: processed/NAME); - prints the JSON lines.",
)
@click.option("--workers", type=int, help="Worker processes (default: one per core, ≤ 4).")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def main(repo: Path, out: Path | None, workers: int | None, quiet: bool) -> None:
    """Write what is read from a repository: JSON lines and two CSV tables.

    These are its methods, classes, documents and references: files.jsonl, one line for each
    file, methods.csv and classes.csv. Nothing is indexed.
    """
    folder = out or Path("processed", repo.resolve().name or "root")
    settings = load_settings(repo, workers=workers)
    skipped: list[Skipped] = []
    counts: Counter[str] = Counter()
    with ProgressDisplay() as display:
        progress = None if quiet else display
        parsed_files = preprocess(repo, settings, progress=progress, skipped=skipped)
        files = _counted(parsed_files, counts)
        if str(folder) == "-":
            for parsed in files:
                sys.stdout.write(json_line(parsed))
            sys.stdout.flush()
        else:
            _write(files, folder)
    if not quiet:
        _summarise(counts, skipped, folder)


def _write(files: Iterator[ParsedFile], folder: Path) -> None:
    try:
        write_files(files, folder)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror}.", "Give another folder with --out."
        ) from None


def _counted(files: Iterator[ParsedFile], counts: Counter[str]) -> Iterator[ParsedFile]:
    for parsed in files:
        counts["files"] += 1
        methods = sum(unit.is_method for unit in parsed.units)
        counts["methods"] += methods
        counts["classes and documents"] += len(parsed.units) - methods
        counts["references"] += len(parsed.references)
        yield parsed


def _summarise(counts: Counter[str], skipped: list[Skipped], folder: Path) -> None:
    rows = [(name, f"{count:,}") for name, count in counts.items()]
    rows.append(("skipped", f"{len(skipped):,}"))
    reasons = Counter(entry.reason for entry in skipped)
    rows += [("", f"{count:,} {reason}") for reason, count in reasons.most_common()]
    if str(folder) != "-":
        rows.append(("written to", str(folder)))
    print(format_pairs(rows), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
