"""Step 2: rows of every collected repository, by CodeQA's own parsing.

For each repository of OUT/collected.jsonl writes OUT/rows/<owner>+<name>.jsonl.gz, one
object per row::

    {"repo", "path", "line", "language", "kind", "source", "query", "unit"}

`source` says what the query was made from (`features.SOURCES`); `unit` is the text that is
embedded (`codeqa.text.unit_text`) with the query taken out of it. Beside it lies <…>.json with the
counts. A repository whose rows are there for the same commit is not mined again.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from codeqa.languages import detect
from codeqa.parsing import parse_file
from codeqa.repository.classify import classify, role_of, skip_by_name
from codeqa.types import ParsedFile
from research.training.console import (
    bar,
    file_name,
    parser,
    read_lines,
    say,
    write_json,
    write_lines,
)
from research.training.licences import states_copyleft
from research.training.mirrors import Entry, Mirror, MirrorError
from research.training.rows import Row, Rows, distinct, languages_of
from research.training.tested import Tested

VERSION = 1
"""Of the rules: rows of another version are mined again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one repository is taken, so that none drowns the others."""

    files: int = 5_000
    rows: int = 14_000
    """Rows of doc comments and names together."""
    names: int = 4_000
    test_files: int = 250
    """Tests cost as much to read as source and give few rows."""
    tests: int = 1_500
    documents: int = 150
    sections: int = 1_500
    file_bytes: int = 300_000
    """Larger files are data, or generated without saying so."""


EXAMPLES = """\
  python -m research.training.mine --out ~/training
  python -m research.training.mine --out ~/training --processes 4 --only psf/requests
"""


class _Repository:
    """Reads and parses the files of one repository."""

    def __init__(self, entry: dict[str, Any], mirror: Mirror, limits: Limits) -> None:
        self._mirror = mirror
        self._limits = limits
        self.skipped: Counter[str] = Counter()
        self.lines = 0
        restricted = tuple(entry.get("restricted", ()))
        self._groups: dict[str, list[Entry]] = {"code": [], "test": [], "document": []}
        for file in mirror.tree(entry["commit"]):
            if not 0 < file.size <= limits.file_bytes or skip_by_name(file.path):
                continue
            group = _group(file.path)
            if group and restricted and file.path.startswith(restricted):
                self.skipped["licence of its folder"] += 1
            elif group:
                self._groups[group].append(file)
        for files in self._groups.values():
            # A fixed order that is none of the repository's: a limit cuts no folder off.
            files.sort(key=lambda file: blake2b(file.path.encode(), digest_size=8).digest())

    def parsed(self, group: str, limit: int) -> Iterator[ParsedFile]:
        """The files of a group that may be read, at most `limit` of them."""
        for file in self._groups[group][:limit]:
            data = self._mirror.read(file.blob)
            if data is None:
                self.skipped["missing from the mirror"] += 1
                continue
            if states_copyleft(data):
                self.skipped["licence in its head"] += 1
                continue
            role = classify(file.path, data)
            if not isinstance(role, str) or role in ("vendored", "generated"):
                self.skipped[role if isinstance(role, str) else role.reason] += 1
                continue
            try:
                parsed = parse_file(file.path, data, role)
            except Exception:  # one file must never end the run
                self.skipped["the parser failed on it"] += 1
                continue
            if group == "code":
                self.lines += data.count(b"\n")
            yield parsed


def _group(path: str) -> str:
    """Which rows a file may give: of code, of tests, of documents; '' for none."""
    language = detect(path)
    if language is None:
        return ""
    role = role_of(path)
    if role == "document":
        return "document" if language.name in ("markdown", "rst") else ""
    if not language.grammar or role in ("vendored", "generated", "benchmark"):
        return ""
    return "test" if role == "test" else "code"


def mine_repository(
    entry: dict[str, Any], mirror: Mirror, limits: Limits
) -> tuple[list[Row], dict[str, Any]]:
    """The rows of one repository and what is told of them."""
    started = time.monotonic()
    files = _Repository(entry, mirror, limits)
    maker, tested, seen = Rows(entry["repository"]), Tested(), set[int]()
    rows: list[Row] = []
    names = 0
    for parsed in files.parsed("code", limits.files):
        if len(rows) >= limits.rows:
            break
        tested.add_source(parsed)
        for row in distinct(maker.of_code(parsed), seen):
            names += row["source"] == "name"
            if row["source"] != "name" or names <= limits.names:
                rows.append(row)
    del rows[limits.rows :]
    code_lines = files.lines
    for parsed in files.parsed("test", limits.test_files):
        tested.add_tests(parsed)
    pairs = (maker.of_test(name, unit) for name, unit in tested.pairs())
    rows += islice((row for row in pairs if row), limits.tests)
    if entry.get("documents", True):
        sections = [row for parsed in files.parsed("document", limits.documents)
                    for row in distinct(maker.of_document(parsed), seen)]  # fmt: skip
        rows += sections[: limits.sections]
    told = {
        "version": VERSION,
        "repository": entry["repository"],
        "commit": entry["commit"],
        "licence": entry["licence"],
        "rows": len(rows),
        "languages": languages_of(rows),
        "lines": code_lines,
        "refused": dict(Counter(maker.refused).most_common()),
        "skipped": dict(files.skipped.most_common()),
        "seconds": round(time.monotonic() - started, 1),
    }
    return rows, told


def _mine(job: tuple[dict[str, Any], Path, Limits]) -> dict[str, Any]:
    """One repository in a process of its own; never raises because of what it holds."""
    entry, folder, limits = job
    target = folder / f"{file_name(entry['repository'])}.jsonl.gz"
    try:
        with Mirror(Path(entry["mirror"])) as mirror:
            rows, told = mine_repository(entry, mirror, limits)
    except MirrorError as error:
        return {"repository": entry["repository"], "error": str(error)}
    write_lines(target, rows)
    write_json(_told_path(target), told)
    return told


def _told_path(rows: Path) -> Path:
    return rows.with_name(rows.name.removesuffix(".jsonl.gz") + ".json")


def is_done(entry: dict[str, Any], folder: Path) -> bool:
    """Whether the rows of a repository are there, of this commit and these rules."""
    target = folder / f"{file_name(entry['repository'])}.jsonl.gz"
    told = _told_path(target)
    if not target.is_file() or not told.is_file():
        return False
    stated = json.loads(told.read_text("utf-8"))
    return bool(stated["version"] == VERSION and stated["commit"] == entry["commit"])


def mine(out: Path, processes: int, limits: Limits, only: Sequence[str] = ()) -> int:
    """Mine what is not yet mined; how many repositories have rows now."""
    collected = read_lines(out / "collected.jsonl")
    entries = [entry for entry in collected if not only or entry["repository"] in only]
    folder = out / "rows"
    # The smallest first: a run that is stopped leaves as many repositories as can be.
    todo = sorted((e for e in entries if not is_done(e, folder)),
                  key=lambda e: sum(e["bytes"].values()))  # fmt: skip
    say(f"mine: {len(entries)} repositories, {len(entries) - len(todo)} of them done before")
    jobs = [(entry, folder, limits) for entry in todo]
    errors = []
    if processes == 1:
        done = map(_mine, jobs)
        errors = [t for t in bar(done, "mine", "repo", len(jobs)) if "error" in t]
    elif jobs:
        # `spawn` behaves alike everywhere; each process serves many repositories.
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            results = pool.imap_unordered(_mine, jobs)
            errors = [t for t in bar(results, "mine", "repo", len(jobs)) if "error" in t]
    for told in errors:
        say(f"  {told['repository']}: {told['error']}")
    stated = [json.loads(_told_path(folder / f"{file_name(e['repository'])}.jsonl.gz").read_text())
              for e in entries if is_done(e, folder)]  # fmt: skip
    _tell(stated)
    return len(stated)


def _tell(stated: Sequence[dict[str, Any]]) -> None:
    sources: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    for told in stated:
        for language, counts in told["languages"].items():
            sources.update(counts)
            languages[language] += sum(counts.values())
    lines, seconds = sum(t["lines"] for t in stated), sum(t["seconds"] for t in stated)
    say(f"mine: {sources.total():,} rows of {len(stated)} repositories, {lines:,} lines of code, "
        f"{seconds:,.0f} s of one core")  # fmt: skip
    say(f"  by source: {dict(sources.most_common())}")
    say(f"  by language: {dict(languages.most_common())}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    usual = Limits()
    options = parser("mine", __doc__, EXAMPLES)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--only", nargs="*", default=(), help="these repositories alone")
    options.add_argument("--files", type=int, default=usual.files, help="per repository")
    options.add_argument("--rows", type=int, default=usual.rows, help="per repository")
    chosen = options.parse_args(arguments)
    limits = Limits(files=chosen.files, rows=chosen.rows)
    return 0 if mine(chosen.out, chosen.processes, limits, chosen.only) else 1


if __name__ == "__main__":
    sys.exit(main())
