"""A small world to train on: units whose doc comments share words with their bodies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from codeqa.embeddings.pieces import UNKNOWN, WordPiece, document_fields, query_ids
from codeqa.text.unit_text import UnitText
from research.training.features import BAGS, FIELDS, PARTS, SOURCES, BagWriter, save

SUBJECTS = ("cookie", "route", "cache", "token", "queue", "socket", "header", "page", "file")
VERBS = ("opens", "closes", "parses", "writes", "counts", "drops", "merges", "signs", "sends")


def in_code(word: str) -> str:
    """What the code calls a word of the questions: only training can tell."""
    return word[::-1]


def pieces() -> list[str]:
    """A vocabulary that knows the small world."""
    words = {"how", "does", "do", "where", "is", "what", "the", "of", "src", "def", "return"}
    words |= {"self", *SUBJECTS, *VERBS, *map(in_code, (*SUBJECTS, *VERBS))}
    words |= {chr(code) for code in range(ord("a"), ord("z") + 1)}
    return [UNKNOWN, *sorted(words), *(f"##{chr(c)}" for c in range(ord("a"), ord("z") + 1))]


def samples(rows: int, seed: int = 0) -> list[tuple[str, UnitText]]:
    """Questions with the units that answer them."""
    rng = np.random.default_rng(seed)
    found = []
    for row in range(rows):
        words = [str(rng.choice(some)) for some in (VERBS, SUBJECTS, SUBJECTS)]
        verb, subject, other = map(in_code, words)
        text = UnitText(
            path=f"src/{subject}.py",
            owner=subject.capitalize(),
            name=f"{verb}_{other}",
            doc_comment=f"The {other} is not of row {row}.",
            signature="",
            body=f"def x(self):\n    self.do_{verb}({other})\n    return {subject}",
        )
        found.append(("{} the {} of the {}".format(*words), text))
    return found


def write_features(folder: Path, rows: int = 600, repositories: int = 6, seed: int = 0) -> Path:
    """Features of the small world; the last repository is held out."""
    vocabulary = pieces()
    known = WordPiece(vocabulary)
    writers = {bag: BagWriter() for bag in BAGS}
    for query, text in samples(rows, seed):
        for field, bag in zip(FIELDS, document_fields(text, known), strict=True):
            writers[field].add(bag)
        writers["query"].add(query_ids(query, known))
    owner = np.sort(np.arange(rows) % repositories).astype(np.int32)
    held_out = owner == repositories - 1
    save(
        folder,
        {bag: writer.arrays() for bag, writer in writers.items()},
        {
            "repository": owner,
            "source": np.full(rows, SOURCES.index("doc"), np.int8),
            "language": np.zeros(rows, np.int8),
            "part": np.where(held_out, PARTS.index("held_out"), 0).astype(np.int8),
        },
        vocabulary,
        [f"owner/repository{number}" for number in range(repositories)],
        ["python"],
        seed,
    )
    return folder
