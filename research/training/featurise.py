"""Step 4: the vocabulary, and the token bags of every row.

Reads OUT/pairs, learns a WordPiece vocabulary on the rows that train, and writes OUT/features
in the format of `research.training.features`. The bags are made by the encoder's own functions, so
that training and run time agree on every token.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codeqa.embeddings.pieces import WordPiece, document_fields, query_ids
from codeqa.text.unit_text import decode
from research.training.console import SEED, bar, parser, read_lines, say
from research.training.features import BAGS, FIELDS, PARTS, SOURCES, BagWriter, save
from research.training.vocabulary import PIECES, learn, words_of_row

EXAMPLES = """\
  python -m research.training.featurise --out ~/training
  python -m research.training.featurise --out ~/training --pieces 16000
"""


def _files(out: Path, part: str) -> list[Path]:
    """The files of pairs of a part, in a fixed order."""
    return sorted((out / "pairs" / part).glob("*.jsonl.gz"))


def _words(paths: Sequence[Path]) -> Iterator[set[str]]:
    for path in bar(paths, "vocabulary", "repo"):
        yield {word for row in read_lines(path) for word in words_of_row(row)}


def featurise(out: Path, pieces: int = PIECES) -> int:
    """Write the features; how many rows they have."""
    known = learn(_words(_files(out, "train")), pieces)
    say(f"featurise: a vocabulary of {len(known):,} pieces")
    wordpiece = WordPiece(known)
    writers = {bag: BagWriter() for bag in BAGS}
    repositories: list[str] = []
    languages: dict[str, int] = {}
    columns: dict[str, list[int]] = {"repository": [], "source": [], "language": [], "part": []}
    jobs = [(part, path) for part in PARTS for path in _files(out, part)]
    for part, path in bar(jobs, "featurise", "repo"):
        for row in read_lines(path):
            if not repositories or repositories[-1] != row["repo"]:
                repositories.append(row["repo"])
            columns["repository"].append(len(repositories) - 1)
            columns["source"].append(SOURCES.index(row["source"]))
            columns["language"].append(languages.setdefault(row["language"], len(languages)))
            columns["part"].append(PARTS.index(part))
            for bag, field in zip(FIELDS, document_fields(decode(row["unit"]), wordpiece),
                                  strict=True):  # fmt: skip
                writers[bag].add(field)
            writers["query"].add(query_ids(row["query"], wordpiece))
    rows = len(columns["part"])
    arrays: dict[str, Any] = {
        name: np.asarray(values, np.int32 if name == "repository" else np.int8)
        for name, values in columns.items()
    }
    bags = {bag: writer.arrays() for bag, writer in writers.items()}
    save(out / "features", bags, arrays, known, repositories, list(languages), SEED)
    lengths = ", ".join(f"{bag} {len(bags[bag]['ids']) / max(rows, 1):.1f}" for bag in BAGS)
    say(f"featurise: {rows:,} rows of {len(repositories)} repositories")
    say(f"  distinct tokens per row: {lengths}")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    options = parser("featurise", __doc__, EXAMPLES)
    options.add_argument("--pieces", type=int, default=PIECES, help="size of the vocabulary")
    chosen = options.parse_args(arguments)
    return 0 if featurise(chosen.out, chosen.pieces) else 1


if __name__ == "__main__":
    sys.exit(main())
