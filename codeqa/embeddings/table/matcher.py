"""One question against single units, closer than one vector each: passages, and word by word; and
single sentences against several texts, in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from codeqa.embeddings.table.encoder import NOTHING, TableEncoder
from codeqa.embeddings.table.fields import body_field, query_ids
from codeqa.embeddings.table.wordpiece import runs
from codeqa.text.unit_text import UnitText

PASSAGE_LINES = 12
"""Lines of a passage: a short block with what leads to it. Passages overlap by half."""
AT_ONCE = 48
"""Pieces of a body held against the question together: see `encoder.PIECES_AT_ONCE`."""
AT_ONCE_AT_MOST = 2**18
"""Multiplications in one product, for the same reason."""
READ_LINES = 300
READ_CHARACTERS = 16_000
"""Of a unit; bounds one unit to some milliseconds."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near a unit is to a question; both figures are at most 1."""

    passage: float
    """Cosine of the question and the nearest passage."""
    late: float
    """Late interaction: each piece of the question has the cosine of the nearest piece of the
    unit's body, and the mean is weighted by what the pieces count in the question's vector."""
    first_line: int
    last_line: int
    """The nearest passage, in lines of the unit, the first being 0."""


class QuestionMatcher:
    """A question, prepared to be held against many units.

    Late interaction follows Khattab and Zaharia, "ColBERT", SIGIR 2020, with the table's
    vectors, which know no context, in the place of a language model's.
    """

    def __init__(self, encoder: TableEncoder, question: str) -> None:
        self._encoder = encoder
        self._vector = encoder.encode_query(question)
        self._pieces, self._shares = _weighed(encoder, question)
        self.empty = not encoder.knows(question)
        """No word of the question is known: nothing can be said of any unit."""

    def nearness(self, unit: UnitText) -> Nearness:
        """How near `unit` is; 0 where it holds no known piece."""
        passage, first, last = self._passage(unit.body)
        return Nearness(passage, self._late(unit), first, last)

    def _late(self, unit: UnitText) -> float:
        ids, _ = body_field(unit, self._encoder.weights.pieces)
        if self.empty or not ids:
            return 0.0
        nearest = np.full(len(self._shares), -1.0, np.float32)
        for start in range(0, len(ids), AT_ONCE):
            pieces, _ = _directions(self._encoder, ids[start : start + AT_ONCE])
            np.maximum(nearest, (pieces @ self._pieces.T).max(axis=0), out=nearest)
        return float(nearest @ self._shares)

    def _passage(self, body: str) -> tuple[float, int, int]:
        of_run = self._encoder.weights.pieces.of_run
        lines = [
            [piece for run in runs(line) for piece in of_run[run]]
            for line in body[:READ_CHARACTERS].split("\n")[:READ_LINES]
        ]
        ids = [piece for line in lines for piece in line]
        if self.empty or not ids:
            return 0.0, 0, len(lines) - 1
        table, factors = self._encoder.weights.table, self._encoder.document_factors
        vectors = table[ids].astype(np.float32) * factors[ids][:, None]
        half = PASSAGE_LINES // 2
        ends = np.array([0, *accumulate(map(len, lines))])
        bounds = ends[np.minimum(np.arange(0, len(lines) + half, half), len(lines))]
        filled = np.flatnonzero(np.diff(bounds))
        blocks = np.zeros((len(bounds) - 1, vectors.shape[1]), np.float32)
        blocks[filled] = np.add.reduceat(vectors, bounds[filled], axis=0)
        passages = blocks[:-1] + blocks[1:] if len(blocks) > 1 else blocks
        lengths = np.sqrt(np.einsum("ij,ij->i", passages, passages))
        cosines = np.divide(
            passages @ self._vector, lengths, out=np.zeros_like(lengths), where=lengths > NOTHING
        )
        best = int(cosines.argmax())
        last = min(best * half + PASSAGE_LINES, len(lines)) - 1
        return max(0.0, float(cosines[best])), best * half, last


class SentenceMatcher:
    """Several texts, prepared for single sentences to be held against them."""

    def __init__(self, encoder: TableEncoder, texts: Sequence[str]) -> None:
        self._encoder = encoder
        of_run = encoder.weights.pieces.of_run
        ids = [{piece for run in set(runs(text)) for piece in of_run[run]} for text in texts]
        every = sorted(set().union(*ids))
        place = {piece: at for at, piece in enumerate(every)}
        self._directions, _ = _directions(encoder, every)
        self._texts = [np.array([place[piece] for piece in one], np.intp) for one in ids]

    def nearness(self, sentence: str) -> NDArray[np.float32]:
        """(texts,) How much of what `sentence` says each text says somewhere: `Nearness.late`."""
        pieces, shares = _weighed(self._encoder, sentence)
        every = self._directions
        size = max(1, AT_ONCE_AT_MOST // max(1, pieces.size))
        parts = [every[at : at + size] @ pieces.T for at in range(0, len(every), size)]
        cosines = np.concatenate(parts) if parts else every @ pieces.T
        found = np.zeros(len(self._texts), np.float32)
        for at, text in enumerate(self._texts):
            if len(text) and len(shares):
                found[at] = cosines[text].max(axis=0) @ shares
        return found


def _weighed(encoder: TableEncoder, text: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The directions of the pieces of `text`, and the share of its vector that each makes."""
    ids, counts = query_ids(text, encoder.weights.pieces)
    pieces, lengths = _directions(encoder, ids)
    shares = encoder.query_factors[ids] * (1 + np.log(np.array(counts))) * lengths
    return pieces, shares / max(float(shares.sum()), NOTHING)


def _directions(
    encoder: TableEncoder, ids: list[int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The rows of the table at length 1, and their lengths before."""
    rows = encoder.weights.table[ids].astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.maximum(lengths, NOTHING)[:, None], lengths
