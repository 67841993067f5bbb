"""Encode units and questions with the trained table, with numpy alone, and compare them.

A folder holds the table: `table.npy` (int8, pieces × dimension) with one factor per row in
`scales.npy`, the weights of the pieces in questions and in units, the weights of the fields, the
pieces themselves, one a line, a card for readers, and `manifest.json`, which names the table and
its version.

Each bag of pieces (`pieces`) becomes the sum of its pieces' vectors, a piece that appears n times
counting 1 + ln n times, brought to length 1. The vector of a question is that of its bag; the four
of a unit are added with the fields' weights and the sum is brought to length 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codeqa.embeddings.pieces import (
    QUERY_CHARACTERS,
    Bag,
    WordPiece,
    body_field,
    document_fields,
    query_ids,
    runs,
    split,
)
from codeqa.errors import EmbeddingError
from codeqa.text.unit_text import UnitText, decode

MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.txt"
TABLE = "table.npy"
VECTORS = ("scales", "query_weights", "document_weights", "field_weights")
BATCH_UNITS = 16
"""Units whose pieces are weighted together: a unit takes 35 µs alone, 17 µs with 16 together, and
no less with more."""
PIECES_AT_ONCE = 128
"""Rows of the table in one product of matrices. Each unit has products of its own, of 4 rows:
one for all units of a batch has mostly zeros to multiply (25 µs a unit), and OpenBLAS hands
products of more than 2¹⁸ multiplications to threads, which then takes ten times as long when
the machine is busy."""
SPEAKING_LETTERS = 3
"""Average letters of the pieces of a word from which on they say something; shorter ones merely
spell an unknown word."""
NOTHING = 1e-12
"""A bag with a shorter vector says nothing: its pieces are unknown or cancel out."""
PASSAGE_LINES = 12
"""Lines of a passage: a short block with the lines that lead to it. Passages overlap by half."""
AT_ONCE = 48
"""Pieces of a body compared with the question together: see PIECES_AT_ONCE."""
READ_LINES = 300
READ_CHARACTERS = 16_000
"""Most lines and characters of a unit that are read; bounds one unit to some milliseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A trained table of V pieces in D dimensions.

    `table` is (V, D), `field_weights` (len(FIELDS),), the other arrays are (V,).
    The vector of piece p is `table[p] * scales[p]`. It counts `query_weights[p]` times in
    a question and `document_weights[p]` times in a unit; a field counts
    softplus(`field_weights[f]`) times, in the order of FIELDS.
    """

    pieces: WordPiece
    table: NDArray[np.int8]
    scales: NDArray[np.float32]
    query_weights: NDArray[np.float32]
    document_weights: NDArray[np.float32]
    field_weights: NDArray[np.float32]
    name: str
    version: str

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.table.shape[1])


def load_weights(folder: Path | str) -> Weights:
    """Load the table in `folder`; `table.npy` is memory-mapped, so that processes share it.

    Raises EmbeddingError when a file is missing or cannot be read.
    """
    folder = Path(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        pieces = WordPiece((folder / VOCABULARY).read_bytes().decode().split("\n"))
        table = np.asarray(np.load(folder / TABLE, mmap_mode="r"))
        vectors = {key: np.load(folder / f"{key}.npy") for key in VECTORS}
        return Weights(
            pieces, table, **vectors, name=str(manifest["name"]), version=str(manifest["version"])
        )
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EmbeddingError(
            f"The embedding table cannot be read: {reason}.", "Install CodeQA again."
        ) from error


class TableEncoder:
    """Encodes with one table; may be shared by threads."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.dimension = weights.dimension
        self.query_factors = weights.scales * weights.query_weights
        self.document_factors = weights.scales * weights.document_weights
        """(V,) The weight of a row of the int8 table in a question, and in a unit."""
        self.field_shares = np.logaddexp(0, weights.field_weights).astype(np.float32)
        """(fields,) The weight of a field in a unit."""

    @property
    def unknown(self) -> NDArray[np.float32]:
        """The vector of a text without known pieces: far from everything, yet of length 1."""
        return np.full(self.dimension, self.dimension**-0.5, np.float32)

    def compute_query_embeddings(self, query: str) -> NDArray[np.float32]:
        """Return one vector (1, dimension); zeros for a question without a known word."""
        vector = self.encode_query(query)[None]
        return vector if self.knows(query) else np.zeros_like(vector)

    def compute_source_embeddings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors (n, dimension) of length 1 of serialised units (`unit_text.encode`).

        Any other text is taken as a body. Only a batch is decoded at a time.
        """
        starts = range(0, len(texts), BATCH_UNITS)
        parts = [self._encode(map(_unit, texts[at : at + BATCH_UNITS])) for at in starts]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector (dimension,) of length 1 of a question."""
        bag = query_ids(text, self.weights.pieces)
        vectors = self._sums([(bag,)], self.query_factors)[:, 0]
        self._normalise(vectors)
        vector: NDArray[np.float32] = vectors[0]
        return vector

    def knows(self, text: str) -> bool:
        """Return whether some word of a question is in the vocabulary, whole or in telling parts.

        Any word can be spelled with single letters; that says nothing of its meaning.
        """
        pieces = self.weights.pieces
        for word in set(split(text[:QUERY_CHARACTERS])):
            ids = pieces.ids(word)
            letters = sum(map(pieces.letters.__getitem__, ids))
            if letters == len(word) and letters >= min(SPEAKING_LETTERS, letters) * len(ids):
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
        """Return the weighted sums (units, bags, dimension) of the vectors in each unit's bags."""
        ids: list[int] = []
        counts: list[int] = []
        fields: list[int] = []
        ends = []
        for bags in units:
            for field, (bag_ids, bag_counts) in enumerate(bags):
                ids += bag_ids
                counts += bag_counts
                fields += [field] * len(bag_ids)
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


@dataclass(frozen=True, slots=True)
class Nearness:
    """Nearness of a unit to a question; both figures are at most 1."""

    passage: float
    """Cosine of the question and the nearest passage."""
    late: float
    """Late interaction: each piece of the question has the cosine of the nearest piece of the
    unit's body, and the mean is weighted by what the pieces count in the question's vector."""
    first_line: int
    last_line: int
    """The nearest passage, in lines of the unit, the first being 0."""


class QuestionMatcher:
    """A question, prepared for comparison with many units.

    Late interaction follows Khattab and Zaharia, "ColBERT", SIGIR 2020, with the table's
    vectors, which know no context, in the place of a language model's.
    """

    def __init__(self, encoder: TableEncoder, question: str) -> None:
        self._encoder = encoder
        self._vector = encoder.encode_query(question)
        ids, counts = query_ids(question, encoder.weights.pieces)
        self._pieces, lengths = _directions(encoder, ids)
        shares = encoder.query_factors[ids] * (1 + np.log(np.array(counts))) * lengths
        self._shares = shares / max(float(shares.sum()), NOTHING)
        """The share of each piece's direction in the question's vector."""
        self.empty = not encoder.knows(question)
        """True if the vocabulary has no word of the question: then no unit can be judged."""

    def nearness(self, unit: UnitText) -> Nearness:
        """Return how near `unit` is; 0 where it holds no known piece."""
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
        ids: list[int] = []
        line_ends = [0]
        for line in body[:READ_CHARACTERS].split("\n")[:READ_LINES]:
            ids.extend(chain.from_iterable(map(self._encoder.weights.pieces.of_run, runs(line))))
            line_ends.append(len(ids))
        lines = len(line_ends) - 1
        if self.empty or not ids:
            return 0.0, 0, lines - 1
        table, factors = self._encoder.weights.table, self._encoder.document_factors
        vectors = table[ids].astype(np.float32) * factors[ids][:, None]
        half = PASSAGE_LINES // 2
        bounds = np.array(line_ends)[np.minimum(np.arange(0, lines + half, half), lines)]
        nonempty = np.flatnonzero(np.diff(bounds))
        blocks = np.zeros((len(bounds) - 1, vectors.shape[1]), np.float32)
        blocks[nonempty] = np.add.reduceat(vectors, bounds[nonempty], axis=0)
        passages = blocks[:-1] + blocks[1:] if len(blocks) > 1 else blocks
        lengths = np.sqrt(np.einsum("ij,ij->i", passages, passages))
        cosines = np.divide(
            passages @ self._vector, lengths, out=np.zeros_like(lengths), where=lengths > NOTHING
        )
        best = int(cosines.argmax())
        last = min(best * half + PASSAGE_LINES, lines) - 1
        return max(0.0, float(cosines[best])), best * half, last


def _directions(
    encoder: TableEncoder, ids: list[int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the rows of the table at length 1, and their original lengths."""
    rows = encoder.weights.table[ids].astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.maximum(lengths, NOTHING)[:, None], lengths
