"""The trained table at work: units and questions into vectors of length 1, by looking up and adding
with numpy alone, and one question held against single units.

A folder holds the numbers: `table.npy` (int8, pieces × dimension) with one factor per row in
`scales.npy`, the weights of the pieces on either side, the weights of the fields, the pieces
themselves, one a line, a card for readers, and `manifest.json`, which names the table, its
version and the SHA-256 of every other file.

A unit is four bags of pieces (see `pieces`). Each bag becomes the sum of its pieces' vectors,
a piece that stands n times counting 1 + ln n times, brought to length 1; the four are added
with the fields' weights and the sum is brought to length 1. A question is one bag.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

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
CARD = "card.md"
VECTORS = ("scales", "query_weights", "document_weights", "field_weights")
FILES = (TABLE, *(f"{name}.npy" for name in VECTORS), VOCABULARY, CARD)

DAMAGED = "Install CodeQA again."

BATCH_UNITS = 16
"""Units whose pieces are weighed together: one by one a unit takes 35 µs, 17 µs with 16 together,
no less with more."""
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

PASSAGE_LINES = 12
"""Lines of a passage: a short block with what leads to it. Passages overlap by half."""
AT_ONCE = 48
"""Pieces of a body held against the question together: see `encoder.PIECES_AT_ONCE`."""
AT_ONCE_AT_MOST = 2**18
"""Multiplications in one product, for the same reason."""
READ_LINES = 300
READ_CHARACTERS = 16_000
"""Of a unit; bounds one unit to some milliseconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A trained table. Arrays are read-only; V pieces, D dimensions.

    The vector of piece p is `table[p] * scales[p]`. It counts `query_weights[p]` times in
    a question and `document_weights[p]` times in a unit, as these numbers stand; a field
    counts softplus(`field_weights[f]`) times, in the order of `fields.FIELDS`.
    """

    pieces: WordPiece
    table: NDArray[np.int8]
    """(V, D)"""
    scales: NDArray[np.float32]
    """(V,)"""
    query_weights: NDArray[np.float32]
    """(V,)"""
    document_weights: NDArray[np.float32]
    """(V,)"""
    field_weights: NDArray[np.float32]
    """(len(FIELDS),)"""
    name: str
    version: str

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.table.shape[1])


def load_weights(folder: Path | str) -> Weights:
    """Read the table in `folder`; `table.npy` is mapped, so that processes share it.

    Raises EmbeddingError when a file is missing or is not what the manifest says.
    """
    folder = Path(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        return _read(folder, manifest)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise EmbeddingError(f"The embedding table cannot be read: {reason}.", DAMAGED) from error


def _read(folder: Path, manifest: dict[str, Any]) -> Weights:
    # One mapping serves to verify and to encode, so that every page is fetched but once. What is
    # byte for byte what was shipped was checked when it was written.
    whole: NDArray[np.uint8] = np.asarray(np.memmap(folder / TABLE, mode="r"))
    for file in FILES:
        data: Any = whole if file == TABLE else (folder / file).read_bytes()
        if hashlib.sha256(data).hexdigest() != manifest["files"][file]:
            raise ValueError(f"{file} is not the one that was shipped")
    header = np.load(folder / TABLE, mmap_mode="r")
    table = whole[header.offset :].view(np.int8).reshape(header.shape)
    vectors = {key: np.load(folder / f"{key}.npy") for key in VECTORS}
    for values in vectors.values():
        values.setflags(write=False)
    pieces = WordPiece((folder / VOCABULARY).read_bytes().decode().split("\n"))
    return Weights(
        pieces, table, **vectors, name=str(manifest["name"]), version=str(manifest["version"])
    )


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

    def compute_source_embeddings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dimension), each of length 1, of serialised units (`unit_text.encode`).

        Any other text is taken as a body. Only a batch is taken apart at a time.
        """
        starts = range(0, len(texts), BATCH_UNITS)
        parts = [self._encode(map(_unit, texts[at : at + BATCH_UNITS])) for at in starts]
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
