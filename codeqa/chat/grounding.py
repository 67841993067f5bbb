"""Whether each sentence of an answer has its evidence in the code that was sent, told without a
model: by its citations, the names and numbers in it, and how near its words come to a chunk's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

from codeqa.chat.citations import CODE_SPAN, VALUES, next_fence
from codeqa.chat.sentences import SentenceSplitter, sentences_of
from codeqa.embeddings import sentence_matcher
from codeqa.search.question_words import FILE_ENDINGS
from codeqa.text.citation_format import CITATION
from codeqa.types import Chunk

NEAR = 0.65
"""A chunk that says this part of a sentence shows it. This and the next are set on the tuned half
of evals/grounding."""
QUOTED, ALTERED = 0.8, 0.3
"""Part of a code block's lines that stand in what was sent: it is a quotation, one that was
changed, or below that an example of the answer's own."""
UNKNOWN_BELOW = 0.5
"""When less than this part of what an answer claims has its evidence, it is taken for a guess."""
FEWEST_CLAIMS = 3

Verdict = Literal["supported", "unsupported", "general"]

_NAME = re.compile(r"[A-Za-z_$][\w$]+")
_NAMED = re.compile(r"\b[A-Za-z]\w*_\w+\b|\b\w+(?=\(\))")
_PATH = re.compile(rf"[\w.@+/-]+\.(?:{'|'.join(sorted(FILE_ENDINGS))})(?![\w/.]*\w)")
_NUMBER = re.compile(r"(?<![\w.])\d{2,}")
_GROUPED = re.compile(r"(?<=\d)[_,](?=\d{3})")
_OF_THIS = re.compile(r"\W*(?:The|Its?|They|Their)\b")
"""A sentence that begins so speaks of this code."""
_COMMENT = " \t/*#!"
"""Around a line of code that is quoted from a comment."""
_NOT_PROSE = re.compile(r"\W*(?:#.*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer, and what its evidence is."""

    text: str
    """As it stands in the answer, without what surrounds it."""
    verdict: Verdict
    """General is what claims nothing about this code."""
    path: str = ""
    start: int = 0
    end: int = 0
    """Place of the chunk that supports it."""


class Grounding:
    """Judges sentences by the chunks that were sent."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks

    @cached_property
    def _texts(self) -> list[str]:
        return [f"{chunk.path}\n{chunk.content}" for chunk in self._chunks]

    @cached_property
    def _matcher(self) -> Any:
        return sentence_matcher(self._texts)

    @cached_property
    def _names(self) -> set[str]:
        return {name.lower() for text in self._texts for name in _NAME.findall(text)}

    @cached_property
    def _numbers(self) -> set[str]:
        return {one for text in self._texts for one in re.findall(r"\d+", _GROUPED.sub("", text))}

    @cached_property
    def _lines(self) -> dict[str, int]:
        """Each line that says something, and the chunk in which it stands first."""
        found: dict[str, int] = {}
        for at, chunk in enumerate(self._chunks):
            for line in chunk.content.split("\n"):
                found.setdefault(line.strip(_COMMENT), at)
        return found

    def judge(self, written: str) -> Sentence | None:
        """What the evidence of a sentence is; None for what says nothing: a heading, a mark, words
        that lead to a list."""
        text = written.strip()
        if next_fence("", text.split("\n", 1)[0])[1]:
            return self._judge_block(text)
        if _NOT_PROSE.fullmatch(text) or text.endswith(":"):
            return None
        said = CITATION.sub(" ", text)
        names, paths = _names_in(said)
        cited = [(c[1], int(c[2]), int(c[3] or c[2])) for c in CITATION.finditer(text)]
        shown = [at for at, chunk in enumerate(self._chunks) if _overlaps(chunk, cited)]
        numbers = _NUMBER.findall(_GROUPED.sub("", said))
        claims = bool(names or paths or cited or numbers) or _OF_THIS.match(said) is not None
        known = (
            (shown or not cited)
            and self._names.issuperset(names)
            and self._numbers.issuperset(numbers)
            and all(any(path in text for text in self._texts) for path in paths)
        )
        if known and self._matcher:
            nearness = self._matcher.nearness(said)
            best = int(nearness.argmax())
            if nearness[best] >= NEAR:
                cited_best = max(shown, key=nearness.__getitem__, default=best)
                return self._supported(text, cited_best if nearness[cited_best] >= NEAR else best)
        return Sentence(text, "unsupported" if claims else "general")

    def _judge_block(self, text: str) -> Sentence:
        lines = [line.strip(_COMMENT) for line in text.split("\n")[1:] if re.search(r"\w", line)]
        found = [self._lines[line] for line in lines if line in self._lines]
        if lines and len(found) >= QUOTED * len(lines):
            return self._supported(text, max(set(found), key=found.count))
        return Sentence(text, "unsupported" if len(found) >= ALTERED * len(lines) else "general")

    def _supported(self, text: str, at: int) -> Sentence:
        chunk = self._chunks[at]
        return Sentence(text, "supported", chunk.path, chunk.start_line, chunk.end_line)


def _names_in(said: str) -> tuple[set[str], set[str]]:
    """The names of code, lower case, and the paths of files that a sentence speaks of."""
    spans = [span[2] for span in CODE_SPAN.finditer(said)]
    prose = CODE_SPAN.sub(" ", said)
    paths = {path for text in (*spans, prose) for path in _PATH.findall(text)}
    names = {name for span in spans for name in _NAME.findall(_PATH.sub(" ", span))}
    names.update(_NAMED.findall(_PATH.sub(" ", prose)))
    return {name.lower() for name in names} - VALUES, paths


def _overlaps(chunk: Chunk, cited: Iterable[tuple[str, int, int]]) -> bool:
    return any(
        chunk.path == path and chunk.start_line <= end and start <= chunk.end_line
        for path, start, end in cited
    )
