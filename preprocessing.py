"""Parse a repository with tree-sitter into files, without an index: `python preprocessing.py REPO`.

Methods and classes are tables for pandas.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import click

    from codeqa.cli.command import front_door
    from codeqa.cli.console import ProgressDisplay, format_pairs
    from codeqa.errors import UsageError
    from codeqa.parsing.preprocess import FORMATS, json_line, preprocess, write_files
    from codeqa.settings import load_settings
    from codeqa.types import METHOD_KINDS, Skipped
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing: run `make setup`, then .venv/bin/python preprocessing.py")

__all__ = ["main", "preprocess"]


@front_door(
    "preprocessing.py",
    [
        "python preprocessing.py ../flask              files in processed/flask",
        "python preprocessing.py ../flask --out there  … in the folder there",
        "python preprocessing.py ../flask --format parquet",
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
@click.option(
    "--format",
    "table_format",
    type=click.Choice(FORMATS),
    default="csv",
    show_default=True,
    help="Format of the two tables.",
)
@click.option("--workers", type=int, help="Worker processes (default: one per core, ≤ 4).")
@click.option("--quiet", is_flag=True, help="No progress and no summary.")
def main(repo: Path, out: Path | None, table_format: str, workers: int | None, quiet: bool) -> None:
    """Parse a repository with tree-sitter and write JSON lines and two tables.

    files.jsonl has one line for each file, with its methods, classes, documents and references. The
    tables methods and classes are for pandas (CSV or Parquet). Nothing is indexed.
    """
    folder = out or Path("processed", repo.resolve().name or "root")
    settings = load_settings(repo, workers=workers)
    skipped: list[Skipped] = []
    counts: Counter[str] = Counter()
    with ProgressDisplay() as display:
        progress = None if quiet else display
        files = _counted(preprocess(repo, settings, progress=progress, skipped=skipped), counts)
        if str(folder) == "-":
            sys.stdout.writelines(map(json_line, files))
            sys.stdout.flush()
        else:
            try:
                write_files(files, folder, table_format)
            except OSError as error:
                raise UsageError(
                    f"{folder} cannot be written: {error.strerror}.",
                    "Give another folder with --out.",
                ) from None
    if not quiet:
        rows = [(name, f"{count:,}") for name, count in counts.items()]
        reasons = Counter(entry.reason for entry in skipped)
        rows += [("skipped", f"{count:,} {reason}") for reason, count in reasons.most_common()]
        rows.append(("written to", str(folder)))
        print(format_pairs(rows), file=sys.stderr)


def _counted(files: Iterator[dict[str, Any]], counts: Counter[str]) -> Iterator[dict[str, Any]]:
    for file in files:
        methods = sum(unit["kind"] in METHOD_KINDS for unit in file["units"])
        counts["files"] += 1
        counts["methods"] += methods
        counts["classes and documents"] += len(file["units"]) - methods
        counts["references"] += len(file["references"])
        yield file


if __name__ == "__main__":
    sys.exit(main())
