"""Units and questions into vectors of length 1, by looking up and adding: numpy alone.

A unit is four bags of pieces (see `fields`). Each bag becomes the sum of its pieces' vectors,
a piece that stands n times counting 1 + ln n times, brought to length 1; the four are added
with the fields' weights and the sum is brought to length 1. A question is one bag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from codeqa.embeddings.table.fields import QUERY_CHARACTERS, Bag, document_fields, query_ids
from codeqa.embeddings.table.weights import Weights
from codeqa.embeddings.table.wordpiece import split
from codeqa.text.unit_text import UnitText, decode

BATCH_UNITS = 16
"""Units whose pieces are weighed together: a call of numpy costs 1 µs whatever it does. One by
one a unit takes 35 µs, 17 µs with 16 together, no less with more."""

PIECES_AT_ONCE = 128
"""Rows of the table in one product of matrices. Each unit has products of its own, of 4 rows:
one for all units of a batch has mostly zeros to multiply (25 µs a unit), and OpenBLAS hands
products of more than 2¹⁸ multiplications to threads, which then takes ten times as long when
the machine is busy."""

SPEAKING_LETTERS = 3
"""Letters that the pieces of a word have on average where they say something; shorter ones
spell a word that nobody has met."""

NOTHING = 1e-12
"""A bag whose vector is shorter says nothing: unknown pieces, or such that cancel out."""


class TableEncoder:
    """Encodes with one table; may be shared by threads."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.dimension = weights.dimension
        self.query_factors = weights.scales * weights.query_weights
        self.document_factors = weights.scales * weights.document_weights
        """(V,) What a row of the int8 table counts in a question, and in a unit."""
        self.field_shares = np.logaddexp(0, weights.field_weights).astype(np.float32)
        """(fields,) What a field counts in a unit."""

    @property
    def unknown(self) -> NDArray[np.float32]:
        """What a text gets that holds no known piece: far from everything, yet a vector."""
        return np.full(self.dimension, self.dimension**-0.5, np.float32)

    def compute_query_embeddings(self, query: str) -> NDArray[np.float32]:
        """One vector (1, dimension); zeros for a question of which no word is known."""
        return (self.encode_query(query) * self.knows(query))[None]

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dimension), each of length 1, of serialised units (`unit_text.encode`).

        Any other text is taken as a body.
        """
        return self.encode_units(map(_unit, texts))

    compute_source_embeddings = encode_documents

    def encode_units(self, units: Iterable[UnitText]) -> NDArray[np.float32]:
        """Vectors (n, dimension), each of length 1; only a batch of `units` is held at a time."""
        waiting = iter(units)
        parts = []
        while part := list(islice(waiting, BATCH_UNITS)):
            parts.append(self._encode(part))
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Vector (dimension,) of length 1 of a question."""
        bag = query_ids(text, self.weights.pieces)
        vectors = self._sums([(bag,)], self.query_factors)[:, 0]
        self._normalise(vectors)
        found: NDArray[np.float32] = vectors[0]
        return found

    def knows(self, text: str) -> bool:
        """Whether some word of a question is in the vocabulary, whole or in parts that speak.

        Any word can be spelled with single letters; that says nothing of what is meant.
        """
        pieces = self.weights.pieces
        for word in set(split(text[:QUERY_CHARACTERS])):
            ids = pieces.ids(word)
            known = sum(pieces.letters[one] for one in ids)
            if known == len(word) and known >= min(SPEAKING_LETTERS, known) * len(ids):
                return True
        return False

    def _encode(self, units: Iterable[UnitText]) -> NDArray[np.float32]:
        pieces = self.weights.pieces
        sums = self._sums([document_fields(unit, pieces) for unit in units], self.document_factors)
        lengths = np.sqrt(np.einsum("ufd,ufd->uf", sums, sums))
        shares = np.zeros_like(lengths)
        np.divide(self.field_shares, lengths, out=shares, where=lengths > NOTHING)
        vectors: NDArray[np.float32] = (shares[:, None] @ sums)[:, 0]
        self._normalise(vectors)
        return vectors

    def _sums(
        self, units: Sequence[Sequence[Bag]], factors: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The weighted sums (units, bags, dimension) of the vectors in each unit's bags."""
        ids: list[int] = []
        counts: list[int] = []
        fields: list[int] = []
        ends = []
        for bags in units:
            for field, (some_ids, some_counts) in enumerate(bags):
                ids += some_ids
                counts += some_counts
                fields += [field] * len(some_ids)
            ends.append(len(ids))
        rows = np.array(ids, np.intp)
        weights = np.zeros((len(units[0]), len(ids)), np.float32)
        repeated = 1 + np.log(np.array(counts, np.float32))
        weights[np.array(fields, np.intp), np.arange(len(ids))] = factors[rows] * repeated
        sums = np.zeros((len(units), len(units[0]), self.dimension), np.float32)
        table, first = self.weights.table, 0
        for unit, end in enumerate(ends):
            for start in range(first, end, PIECES_AT_ONCE):
                stop = min(start + PIECES_AT_ONCE, end)
                part = table[rows[start:stop]].astype(np.float32)
                sums[unit] += weights[:, start:stop] @ part
            first = end
        return sums

    def _normalise(self, vectors: NDArray[np.float32]) -> None:
        """Bring each row to length 1, in place."""
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        empty = lengths <= NOTHING
        if empty.any():
            vectors[empty] = self.unknown
            lengths[empty] = 1
        vectors /= lengths[:, None]


def _unit(text: str) -> UnitText:
    try:
        return decode(text)
    except ValueError:
        return UnitText("", "", "", "", "", text)
