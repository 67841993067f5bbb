"""Show what CodeQA reads from a repository: `python preprocessing.py REPO`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from codeqa.cli.console import ProgressDisplay, format_pairs, front_door, run_main
from codeqa.errors import UsageError
from codeqa.parsing.csv_tables import write_csv
from codeqa.parsing.preprocess import json_line, preprocess
from codeqa.settings import load_settings
from codeqa.types import ParsedFile, Skipped

__all__ = ["main", "preprocess"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a repository's units and references as JSON lines or as two CSV tables."""
    parser = front_door(
        "python preprocessing.py",
        "Write the methods, classes, documents and references of a repository, one file a line, "
        "as JSON, or as the tables methods.csv and classes.csv. Nothing is indexed.",
        [
            "python preprocessing.py ../flask                       JSON lines to the terminal",
            "python preprocessing.py ../flask --output flask.jsonl  … to a file",
            "python preprocessing.py ../flask --csv processed/flask two CSV tables in a folder",
            "python preprocessing.py ../flask | head -1 | python -m json.tool",
        ],
    )
    parser.add_argument("repo", type=Path, help="folder of the repository")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--output", type=Path, metavar="FILE", help="write the JSON lines to FILE")
    target.add_argument("--csv", type=Path, metavar="DIR", help="write CSV tables into DIR")
    parser.add_argument("--workers", type=int, help="worker processes (default: one per core, ≤ 4)")
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    given = parser.parse_args(arguments)
    settings = load_settings(given.repo, workers=given.workers)
    skipped: list[Skipped] = []
    counts: Counter[str] = Counter()
    with ProgressDisplay() as display:
        progress = None if given.quiet else display
        parsed_files = preprocess(given.repo, settings, progress=progress, skipped=skipped)
        files = _counted(parsed_files, counts)
        if given.csv:
            write_csv(files, given.csv)
        else:
            with _opened(given.output) as stream:
                for parsed in files:
                    stream.write(json_line(parsed))
                stream.flush()
    if not given.quiet:
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
    sys.exit(run_main(main, program="preprocessing.py", kept="Nothing was written."))
