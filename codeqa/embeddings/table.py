"""The trained table at work: units and questions into vectors of length 1, by looking up and adding
with numpy alone, and one question held against single units.

A folder holds the numbers: `table.npy` (int8, pieces × dimension) with one factor per row in
`scales.npy`, the weights of the pieces on either side, the weights of the fields, the pieces
themselves, one a line, a card for readers, and `manifest.json`, which names the table and its
version.

A unit is four bags of pieces, of its path, name, body and doc comment; a question is one. Each bag
becomes the sum of its pieces' vectors, a piece that stands n times counting 1 + ln n times, brought
to length 1; the four are added with the fields' weights and the sum is brought to length 1.

Training imports this module: the vocabulary is made of what `split` returns, the table's rows are
learnt for what `WordPiece` gives, and a row means the same there and here. The limits are those
with which the table was found to do well; changing one needs a new table.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from codeqa.errors import EmbeddingError
from codeqa.text.unit_text import UnitText, decode

UNKNOWN = "[UNK]"
UNKNOWN_ID = 0
CONTINUES = "##"
"""Marks a piece that does not begin a word, as in BERT's vocabularies."""
WORD_LETTERS = 40
"""Letters of a word that count. The longest English words in use have about 30; what goes on
without a break is data, and greedy matching of it would cost time and mean nothing."""
MEMO_RUNS = 100_000
"""Runs remembered, those met last: some 30 MB."""

_BLANKED = bytes(
    code if code > 127 or chr(code).isalnum() or code == ord("_") else ord(" ")
    for code in range(256)
)
_IDENTIFIER = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PART_ANY_SCRIPT = re.compile(rf"[{_IDEOGRAPHS}]|[^\W\d_{_IDEOGRAPHS}]+|[0-9]+")
"""Scripts without capitals know no camelCase; Chinese puts no blanks between its words, so
every ideograph is one."""
FIELDS = ("path", "name", "body", "doc")
PATH_SEGMENTS = 4
"""Last segments of the path; further up says little (as the full-text index does it)."""
BODY_CHARACTERS = 3_000
"""Characters of the body: about 80 lines, more than nine definitions in ten have."""
BODY_TOKENS = 160
"""Distinct pieces of the body, the most frequent ones: what stands once in a long body says
little about it."""
NAME_CHARACTERS = 300
"""Characters of the owner and of the name each; a heading may be as long as it likes."""
DOC_CHARACTERS = 700
"""Characters of the doc comment: its first paragraphs; behind come parameters and examples."""
DOC_SHARE = 2
"""Characters of source that one character of a doc comment takes, with markers and margin."""
QUERY_CHARACTERS = 3_000
"""Characters of a question, which may be a pasted piece of code: as much as of a body."""
SHORT_LINE = 8
"""Characters of a doc comment's line below which it is only looked for as a line of its own:
inside other lines something so short is found by chance."""

Bag = tuple[list[int], list[int]]
"""Ids of pieces in the order of their first place, and how often each stands there."""
_MARKS = " \t\r\f\v/*#!-\"'`;%<>{}|=.,:@()"
"""What stands around a line of a doc comment or a heading in its source."""
MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.txt"
TABLE = "table.npy"
VECTORS = ("scales", "query_weights", "document_weights", "field_weights")
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
"""Pieces of a body held against the question together: see PIECES_AT_ONCE."""
READ_LINES = 300
READ_CHARACTERS = 16_000
"""Of a unit; bounds one unit to some milliseconds."""


def split(text: str) -> list[str]:
    """Lower-case words of `text`, code or prose, in order.

    Identifiers are split: `getHTTPResponse_v2` → get, http, response, v, 2. Accents are
    taken off (`café` → cafe), and full-width letters are as the usual ones.
    """
    return [word for run in runs(text) for word in words_of(run)]


def runs(text: str) -> list[bytes]:
    """What stands between ASCII blanks and punctuation in `text`, in UTF-8 and in order.

    Most runs are identifiers; where a text is not ASCII a run may hold several. Bytes,
    because this is half of all the work, and with them it takes a third of the time.
    """
    return text.encode("utf-8", "replace").translate(_BLANKED).split()


def words_of(run: bytes) -> list[str]:
    """Lower-case words of one of `runs`, or of any text, each at most WORD_LETTERS long."""
    if run.isascii():
        return [part[:WORD_LETTERS].lower() for part in _PART.findall(run.decode())]
    decomposed = unicodedata.normalize("NFKD", run.decode())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return [
        part[:WORD_LETTERS].lower()
        for identifier in _IDENTIFIER.findall(plain)
        for part in (_PART if identifier.isascii() else _PART_ANY_SCRIPT).findall(identifier)
    ]


class WordPiece:
    """A vocabulary: piece → id by its place in `pieces`; UNKNOWN must be the first.

    Raises ValueError when it is not, or when a piece stands there twice.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        if not pieces or pieces[UNKNOWN_ID] != UNKNOWN:
            raise ValueError(f"the first piece is not {UNKNOWN}")
        cut = len(CONTINUES)
        later = {piece[cut:]: at for at, piece in enumerate(pieces) if piece.startswith(CONTINUES)}
        first = {piece: at for at, piece in enumerate(pieces) if not piece.startswith(CONTINUES)}
        if len(first) + len(later) != len(pieces):
            raise ValueError("a piece stands twice")
        del first[UNKNOWN]
        self.size = len(pieces)
        self.letters = (0, *(len(piece.removeprefix(CONTINUES)) for piece in pieces[1:]))
        """Letters of each piece; 0 for UNKNOWN."""
        self._first, self._later = first, later
        self._longest_first = max(map(len, first), default=0)
        self._longest_later = max(map(len, later), default=0)
        self.of_run = lru_cache(MEMO_RUNS)(self._of_run)
        """Ids of the known pieces of the words of a run, or of any short text, in UTF-8. Source
        repeats its words."""

    def ids(self, word: str) -> tuple[int, ...]:
        """Ids of the pieces of one lower-case word, longest match first.

        A letter that no piece begins with gives UNKNOWN_ID, once for several in a row, and
        the word goes on behind it.
        """
        ids: list[int] = []
        at, end = 0, len(word)
        pieces, longest = self._first, self._longest_first
        while at < end:
            for stop in range(min(end, at + longest), at, -1):
                found = pieces.get(word[at:stop])
                if found is not None:
                    ids.append(found)
                    at = stop
                    break
            else:
                if not ids or ids[-1] != UNKNOWN_ID:
                    ids.append(UNKNOWN_ID)
                at += 1
            pieces, longest = self._later, self._longest_later
        return tuple(ids)

    def _of_run(self, run: bytes) -> tuple[int, ...]:
        ids = [one for word in words_of(run) for one in self.ids(word)]
        return tuple(one for one in ids if one != UNKNOWN_ID)


def document_fields(text: UnitText, pieces: WordPiece) -> tuple[Bag, Bag, Bag, Bag]:
    """The bags of `text` in the order of FIELDS. A bag may be empty."""
    owner, name, doc = text.owner[:NAME_CHARACTERS], text.name[:NAME_CHARACTERS], text.doc_comment
    return (
        _bag([(_path_words(text.path), 1)], pieces),
        _bag([(owner.encode("utf-8", "replace"), 1), (name.encode("utf-8", "replace"), 1)], pieces),
        body_field(text, pieces),
        _bag(Counter(runs(doc[:DOC_CHARACTERS])).items(), pieces) if doc else ([], []),
    )


def _path_words(path: str) -> bytes:
    """The last PATH_SEGMENTS segments of `path`, without the ending."""
    folder, slash, name = "/".join(path.rsplit("/", PATH_SEGMENTS)[-PATH_SEGMENTS:]).rpartition("/")
    return (folder + slash + (name.rpartition(".")[0] or name)).encode("utf-8", "replace")


def body_field(text: UnitText, pieces: WordPiece) -> Bag:
    """Words of the body, its own name and its doc comment left out."""
    name, doc = text.name, text.doc_comment
    if doc or not name.isidentifier():
        room = BODY_CHARACTERS + DOC_SHARE * len(doc) + len(name)
        body = without_lines(text.body[:room], [*doc.split("\n"), name])[:BODY_CHARACTERS]
    else:
        body = text.body[:BODY_CHARACTERS]
    counted = Counter(runs(body))
    counted.pop(name.encode("utf-8", "replace"), None)
    ids, counts = bag = _bag(counted.items(), pieces)
    if len(ids) <= BODY_TOKENS:
        return bag
    order = sorted(range(len(ids)), key=lambda place: -counts[place])[:BODY_TOKENS]
    return [ids[place] for place in order], [counts[place] for place in order]


def query_ids(text: str, pieces: WordPiece) -> Bag:
    """The bag of a question."""
    return _bag(Counter(runs(text[:QUERY_CHARACTERS])).items(), pieces)


def without_lines(source: str, lines: Iterable[str]) -> str:
    """`source` without `lines`, whatever marks of comments stand around them there.

    A line of SHORT_LINE characters or more that has no line of its own is also taken out of
    the middle of others (`/** Opens the door. */ void open()`).
    """
    wanted = dict.fromkeys(line.strip(_MARKS) for line in lines)
    wanted.pop("", None)
    if not wanted:
        return source
    met = set()
    kept = []
    for line in source.split("\n"):
        bare = line.strip(_MARKS)
        if bare in wanted:
            met.add(bare)
        else:
            kept.append(line)
    text = "\n".join(kept)
    for line in wanted:
        if line not in met and len(line) >= SHORT_LINE:
            text = text.replace(line, " ")
    return text


def _bag(counted: Iterable[tuple[bytes, int]], pieces: WordPiece) -> Bag:
    """Pieces of runs (or of short texts, in UTF-8), each of which stands there so many times."""
    bag: dict[int, int] = {}
    have, ids_of = bag.get, pieces.of_run
    for run, times in counted:
        for piece in ids_of(run):
            bag[piece] = have(piece, 0) + times
    return list(bag), list(bag.values())


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """A trained table of V pieces in D dimensions: `table` is (V, D), `field_weights`
    (len(FIELDS),), the others are (V,).

    The vector of piece p is `table[p] * scales[p]`. It counts `query_weights[p]` times in
    a question and `document_weights[p]` times in a unit, as these numbers stand; a field
    counts softplus(`field_weights[f]`) times, in the order of FIELDS.
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
    """Read the table in `folder`; `table.npy` is mapped, so that processes share it. Raises
    EmbeddingError when a file is missing or cannot be read."""
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
        ids, counts = query_ids(question, encoder.weights.pieces)
        self._pieces, lengths = _directions(encoder, ids)
        shares = encoder.query_factors[ids] * (1 + np.log(np.array(counts))) * lengths
        self._shares = shares / max(float(shares.sum()), NOTHING)
        """Of the question's vector, what the direction of each piece makes."""
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
            [piece for run in runs(line) for piece in of_run(run)]
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


def _directions(
    encoder: TableEncoder, ids: list[int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The rows of the table at length 1, and their lengths before."""
    rows = encoder.weights.table[ids].astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.maximum(lengths, NOTHING)[:, None], lengths
