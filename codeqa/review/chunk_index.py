"""The index of the system that reviews of issues come from, to the letter."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from codeqa.code.tools import Toolbox

_WORD = re.compile(r"\b[a-z_][a-z0-9_]*\b")


@dataclass
class ChunkIndex:
    """Chunks of 50 lines, found by the cosine of their words; in memory, without any model."""

    chunk_size: int = 50
    overlap: int = 5
    _chunks: list[tuple[dict[str, Any], Counter[str]]] = field(default_factory=list)

    def add_file(self, path: str, content: str) -> int:
        """Add the chunks of a file; returns how many. The last may lie wholly inside the one before
        it, and an empty text is one empty chunk. Raises ValueError where none would advance."""
        if not 0 <= self.overlap < self.chunk_size:
            raise ValueError(f"overlap {self.overlap} is not from 0 to below {self.chunk_size}")
        lines = content.split("\n")
        starts = range(0, len(lines), self.chunk_size - self.overlap)
        for start in starts:
            chunk = lines[start : start + self.chunk_size]
            text, end = "\n".join(chunk), start + len(chunk)
            about = {"path": path, "content": text, "start_line": start + 1, "end_line": end}
            self._chunks.append((about, _words(text)))
        return len(starts)

    def ingest(self, toolbox: Toolbox, pattern: str = "") -> int:
        """Add every indexed file of a repository, or those of a glob; returns how many chunks."""
        return sum(self.add_file(f.path, f.text) for f in toolbox.files.read_all(pattern))

    def search(self, query: str, k: int = 3) -> list[dict[str, Any]]:
        """The best `k` chunks as {path, content, start_line, end_line, score}; none without a word
        of the query."""
        wanted = _words(query)
        scored = [{**chunk, "score": _cosine(wanted, words)} for chunk, words in self._chunks]
        found = [one for one in scored if one["score"] > 0]
        return sorted(found, key=lambda one: -one["score"])[:k]


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    dot = sum(count * other[word] for word, count in one.items())
    lengths = math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
    return dot / lengths if lengths else 0.0
