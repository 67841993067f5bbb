"""Step 3: which rows train, which are the yardstick, which are kept back.

Repositories are parted, never rows: about 8 % by a hash of their name are held out, as the
yardstick by which trainings are compared; those of tuning_repositories.json are in neither
part, because questions for tuning are written about them. Reads OUT/rows, writes
OUT/pairs/<part>/<owner>+<name>.jsonl.gz and OUT/split.json.

Dropped: documents that stood before (those of the yardstick count first, so that nothing of
it is trained on), sentences beyond the third time, and rows that overlap with the benchmark.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from research.training.console import (
    TUNING,
    bar,
    file_name,
    parser,
    read_lines,
    say,
    write_json,
    write_lines,
)
from research.training.features import PARTS
from research.training.overlap import Benchmark, read_texts
from research.training.rows import text_key

HELD_OUT_PERCENT = 8
HELD_OUT_SALT = "17"
"""With it the held-out repositories hold all languages of the list and 8 % of its code."""
SENTENCES = 3
"""How often a sentence may be a query within a part."""

EXAMPLES = """\
  python -m research.training.split --out ~/training
  python -m research.training.split --out ~/training --benchmark ~/evals/trees \\
      ~/evals/questions.jsonl
"""


def part_of(repository: str, tuning: Iterable[str]) -> str:
    """`train`, `held_out` or `tuning`."""
    if repository in tuning:
        return "tuning"
    digest = blake2b(f"{HELD_OUT_SALT} {repository.lower()}".encode(), digest_size=8).digest()
    return "held_out" if int.from_bytes(digest, "big") % 100 < HELD_OUT_PERCENT else "train"


def tuning_repositories(path: Path = TUNING) -> list[str]:
    """The repositories that are kept back for tuning questions."""
    return [entry["repository"] for entry in json.loads(path.read_text("utf-8"))["repositories"]]


@dataclass(slots=True)
class Filter:
    """Drops rows, over all repositories; counts why."""

    benchmark: Benchmark | None = None
    dropped: Counter[str] = field(default_factory=Counter)
    _documents: set[int] = field(default_factory=set)
    _sentences: dict[tuple[str, int], int] = field(default_factory=dict)

    def keep(self, rows: Iterable[dict[str, Any]], part: str) -> Iterator[dict[str, Any]]:
        """Those of `rows` that stay."""
        for row in rows:
            why = self._why_not(row, part)
            if why:
                self.dropped[why] += 1
            else:
                yield row

    def _why_not(self, row: dict[str, Any], part: str) -> str:
        # Tests are further queries for documents that may be there already.
        document = text_key(row["unit"].partition("\nsignature: ")[2])
        if row["source"] != "test":
            if document in self._documents:
                return "document seen before"
        elif part == "train" and -document in self._documents:
            return "document held out"
        sentence = (part, text_key(row["query"]))
        if self._sentences.get(sentence, 0) >= SENTENCES:
            return "sentence seen before"
        if self.benchmark is not None and self.benchmark.overlaps(row):
            return "overlaps with the benchmark"
        self._documents.add(document)
        if part == "held_out":
            self._documents.add(-document)
        self._sentences[sentence] = self._sentences.get(sentence, 0) + 1
        return ""


def split(out: Path, benchmark: Sequence[Path], tuning: Sequence[str]) -> dict[str, int]:
    """Write the pairs of each part; how many rows each has."""
    known = Benchmark(bar(read_texts(benchmark), "benchmark", "file")) if benchmark else None
    if known is None:
        say("split: no --benchmark given, so no overlap is looked for")
    names = [entry["repository"] for entry in read_lines(out / "collected.jsonl")]
    parts: dict[str, list[str]] = {"train": [], "held_out": [], "tuning": []}
    for name in names:
        if (out / "rows" / f"{file_name(name)}.jsonl.gz").is_file():
            parts[part_of(name, tuning)].append(name)
    shutil.rmtree(out / "pairs", ignore_errors=True)
    chosen = Filter(known)
    counts: dict[str, dict[str, int]] = {}
    jobs = [(part, name) for part in reversed(PARTS) for name in parts[part]]
    for part, name in bar(jobs, "split", "repo"):
        target = out / "pairs" / part / f"{file_name(name)}.jsonl.gz"
        counts.setdefault(part, {})[name] = write_lines(target, chosen.keep(_rows(out, name), part))
    write_json(out / "split.json", {
        "held_out_percent": HELD_OUT_PERCENT,
        "repositories": parts,
        "rows": counts,
        "dropped": dict(chosen.dropped.most_common()),
        "benchmark_texts": known.texts if known else 0,
    })  # fmt: skip
    for part in PARTS:
        say(f"split: {sum(counts.get(part, {}).values()):,} rows of {len(parts[part])} "
            f"repositories for {part}")  # fmt: skip
    say(f"  kept back for tuning: {', '.join(parts['tuning'])}")
    say(f"  dropped: {dict(chosen.dropped.most_common())}")
    return {part: sum(counts.get(part, {}).values()) for part in PARTS}


def _rows(out: Path, repository: str) -> Iterator[dict[str, Any]]:
    path = out / "rows" / f"{file_name(repository)}.jsonl.gz"
    if path.is_file():
        yield from read_lines(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    options = parser("split", __doc__, EXAMPLES)
    options.add_argument("--benchmark", type=Path, nargs="*", default=(),
                         help="trees and files that no row may repeat")  # fmt: skip
    chosen = options.parse_args(arguments)
    return 0 if split(chosen.out, chosen.benchmark, tuning_repositories())["train"] else 1


if __name__ == "__main__":
    sys.exit(main())
