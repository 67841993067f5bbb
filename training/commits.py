"""Optional step: rows of the histories, from what commits say was changed to what they changed.

Writes OUT/commits/<owner>+<name>.jsonl.gz, in the form of `training.mine`, with `commit` as the
source; `training.split` takes them in when they are there. Only commits that touch one to three
source files and at most three functions count: what a larger one says describes none of them.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from codeqa.languages import detect
from codeqa.parsing import parse_file
from codeqa.repository.roles import role_of
from codeqa.types import METHOD_KINDS, Unit
from training import cleaning
from training.console import bar, file_name, parser, read_lines, say, write_lines
from training.licences import states_copyleft
from training.mirrors import Mirror, MirrorError
from training.rows import Row, Rows, is_test

COMMITS = 300
EXAMPLES = """\
  python -m training.commits --out ~/training
  python -m training.commits --out ~/training --limit 100 --processes 4
"""

MAX_FILES = 3
MAX_FUNCTIONS = 3
LOOKED_AT = 12
"""Commits that are looked at for each one wanted: most are merges, chores or too wide."""
MAX_BYTES = 150_000

_HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def commit_rows(mirror: Mirror, commit: str, maker: Rows, limit: int) -> Iterator[Row]:
    """Rows of at most `limit` commits before `commit`. Raises MirrorError without a history."""
    taken = 0
    for subject, changed in _small_commits(mirror, commit, limit):
        functions: list[Unit] = []
        for path, (blob, spans) in changed.items():
            data = mirror.read(blob)
            if data is None or len(data) > MAX_BYTES or states_copyleft(data):
                functions = []
                break
            try:
                parsed = parse_file(path, data)
            except Exception:  # one file must never end the run
                continue
            methods = [unit for unit in parsed.units if unit.kind in METHOD_KINDS]
            functions += [u for u in methods if not is_test(u) and _touched(u, spans)]
        if 1 <= len(functions) <= MAX_FUNCTIONS:
            made = [row for unit in functions if (row := maker.of_commit(subject, unit))]
            yield from made
            taken += bool(made)
            if taken >= limit:
                return


def _touched(unit: Unit, spans: list[tuple[int, int]]) -> bool:
    return any(first <= unit.end_line and unit.start_line <= last for first, last in spans)


Changed = dict[str, tuple[str, list[tuple[int, int]]]]
"""Path → blob after the commit and the changed spans of lines in it."""


def _small_commits(mirror: Mirror, commit: str, limit: int) -> Iterator[tuple[str, Changed]]:
    listing = mirror.output(
        "log", "--no-merges", "--no-renames", "--raw", "--no-abbrev", f"-{limit * LOOKED_AT}",
        "--format=%x01%H%x02%s", commit, "--", seconds=60,
    )  # fmt: skip
    for entry in listing.split(b"\x01")[1:]:
        head, _, raw = entry.decode("utf-8", "replace").partition("\n")
        name, _, subject = head.partition("\x02")
        query = cleaning.commit_query(subject)
        files = [line for line in raw.split("\n") if line.startswith(":")]
        source = dict(pair for line in files if (pair := _source(line)))
        if not query or not 1 <= len(source) <= MAX_FILES or len(files) > 2 * MAX_FILES:
            continue
        if spans := _spans(mirror, name, list(source)):
            yield query, {path: (source[path], lines) for path, lines in spans.items()}


def _source(line: str) -> tuple[str, str] | None:
    """(path, blob) of a modified source file of a `--raw` line."""
    meta, _, path = line.partition("\t")
    fields = meta.split(" ")
    language = detect(path)
    if language is None or not language.grammar or role_of(path) != "source":
        return None
    return (path, fields[3]) if fields[4] == "M" else None


def _spans(mirror: Mirror, commit: str, paths: list[str]) -> dict[str, list[tuple[int, int]]]:
    spans: dict[str, list[tuple[int, int]]] = {}
    path = ""
    patch = mirror.output("show", "--format=", "-U0", "--no-renames", "--no-ext-diff",
                          "--no-textconv", commit, "--", *paths, seconds=20)  # fmt: skip
    for line in patch.split(b"\n"):
        if line.startswith(b"+++ b/"):
            path = line[6:].decode("utf-8", "replace")
        elif match := _HUNK.match(line):
            first, count = int(match[1]), int(match[2] or 1)
            spans.setdefault(path, []).append((first, first + max(count, 1) - 1))
    return {name: spans[name] for name in paths if name in spans}


def _mine(job: tuple[dict[str, Any], Path, int]) -> int:
    entry, target, limit = job
    restricted = tuple(entry.get("restricted", ()))
    rows: list[Row] = []
    try:
        with Mirror(Path(entry["mirror"])) as mirror:
            for row in commit_rows(mirror, entry["commit"], Rows(entry["repository"]), limit):
                if not restricted or not row["path"].startswith(restricted):
                    rows.append(row)
    except MirrorError:
        pass  # a mirror without its history gives what it has
    return write_lines(target, rows)


def commits(out: Path, processes: int, limit: int) -> int:
    """Write the rows of every collected repository that has none yet; how many rows."""
    jobs = []
    for entry in read_lines(out / "collected.jsonl"):
        target = out / "commits" / f"{file_name(entry['repository'])}.jsonl.gz"
        if not target.is_file():
            jobs.append((entry, target, limit))
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        rows: int = sum(bar(pool.imap_unordered(_mine, jobs), "commits", "repo", len(jobs)))
    say(f"commits: {rows:,} rows of {len(jobs)} repositories")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    options = parser("commits", __doc__, EXAMPLES)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--limit", type=int, default=COMMITS, help="commits per repository")
    chosen = options.parse_args(arguments)
    commits(chosen.out, chosen.processes, chosen.limit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
