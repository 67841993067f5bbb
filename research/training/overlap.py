"""Which rows stand, in large part, in a text that is kept for measuring.

A row overlaps when half of its query's shingles of five words, or half of its document's
shingles of eight, occur in the benchmark. Repositories copy from each other, so leaving the
benchmark's own repositories out is not enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codeqa.embeddings.pieces import runs
from codeqa.repository.classify import is_binary
from codeqa.text.unit_text import decode

QUERY_WORDS = 5
DOCUMENT_WORDS = 8
SHARE = 0.5
MAX_BYTES = 2_000_000
"""Larger files of a benchmark are data."""

Shingles = NDArray[np.uint64]


@cache
def _number(word: bytes) -> int:
    return int.from_bytes(blake2b(word, digest_size=8).digest(), "big")


def shingles(text: str, length: int) -> Shingles:
    """One number for each `length` words in a row, case aside; none when there are fewer.

    Words are identifiers here, not their parts: half of the time, and the same finds.
    """
    words = runs(text.lower())
    if len(words) < length:
        return np.zeros(0, np.uint64)
    numbers = np.fromiter(map(_number, words), np.uint64, len(words))
    made = np.zeros(len(words) - length + 1, np.uint64)
    for place in range(length):  # wraps around, as hashes do
        made = made * np.uint64(0x9E3779B97F4A7C15) + numbers[place : place + len(made)]
    return made


class Benchmark:
    """The shingles of texts that no row may repeat."""

    def __init__(self, texts: Iterable[str]) -> None:
        short: list[Shingles] = [np.zeros(0, np.uint64)]
        long: list[Shingles] = [np.zeros(0, np.uint64)]
        self.texts = 0
        for text in texts:
            short.append(np.unique(shingles(text, QUERY_WORDS)))
            long.append(np.unique(shingles(text, DOCUMENT_WORDS)))
            self.texts += 1
        self._short = np.unique(np.concatenate(short))
        self._long = np.unique(np.concatenate(long))

    def overlaps(self, row: dict[str, Any]) -> bool:
        """Whether half of a row's query or of its document stands in the benchmark."""
        if self._holds_half(shingles(row["query"], QUERY_WORDS), self._short):
            return True
        fields = decode(row["unit"])
        document = shingles(f"{fields.doc_comment}\n{fields.body}", DOCUMENT_WORDS)
        return self._holds_half(document, self._long)

    @staticmethod
    def _holds_half(found: Shingles, known: Shingles) -> bool:
        if not len(found) or not len(known):
            return False
        places = np.minimum(np.searchsorted(known, found), len(known) - 1)
        return bool(np.mean(known[places] == found) >= SHARE)


def read_texts(paths: Iterable[Path]) -> Iterable[str]:
    """The text files below folders, or the files themselves; `.git` and binary ones left out."""
    for top in paths:
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for path in files:
            if ".git" in path.parts or path.is_symlink() or not path.is_file():
                continue
            if path.stat().st_size > MAX_BYTES:
                continue
            data = path.read_bytes()
            if not is_binary(data):
                yield data.decode("utf-8", "replace")
