"""Text into pieces: split code and prose into words, words into pieces, units into bags of pieces.

A unit is four bags, of its path, name, body and doc comment; a question is one.

Training imports this module: the vocabulary consists of what `split` returns, the table's rows are
learnt for the pieces of `WordPiece`, and a row means the same there and here. The limits are those
with which the table was found to do well; changing one needs a new table.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

from codeqa.text.unit_text import UnitText

UNKNOWN = "[UNK]"
UNKNOWN_ID = 0
CONTINUES = "##"
"""Marks a piece that does not begin a word, as in BERT's vocabularies."""
WORD_LETTERS = 40
"""Letters of a word that count. The longest English words in use have about 30; longer ones are
data, and matching them would cost time and mean nothing."""
MEMO_RUNS = 100_000
"""Most recent runs that are cached: some 30 MB."""

_BLANKED = bytes(
    code if code > 127 or chr(code).isalnum() or code == ord("_") else ord(" ")
    for code in range(256)
)
_IDENTIFIER = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_PART_ANY_SCRIPT = re.compile(rf"[{_IDEOGRAPHS}]|[^\W\d_{_IDEOGRAPHS}]+|[0-9]+")
"""Scripts without capitals have no camelCase; Chinese puts no blanks between its words, so
every ideograph is one."""
FIELDS = ("path", "name", "body", "doc")
PATH_SEGMENTS = 4
"""Last segments of the path; those before say little (the full-text index does the same)."""
BODY_CHARACTERS = 3_000
"""Characters of the body: about 80 lines, more than nine definitions in ten have."""
BODY_TOKENS = 160
"""Distinct pieces of the body, the most frequent ones: a word that occurs once in a long body says
little about it."""
NAME_CHARACTERS = 300
"""Characters of the owner and of the name each; a heading may be of any length."""
DOC_CHARACTERS = 700
"""Characters of the doc comment: its first paragraphs; parameters and examples come later."""
DOC_SHARE = 2
"""Characters of source for one character of a doc comment, with markers and margin."""
QUERY_CHARACTERS = 3_000
"""Characters of a question, which may be pasted code: as many as of a body."""
SHORT_LINE = 8
"""Characters of a doc comment's line below which it is only looked for as a line of its own:
inside other lines something so short is found by chance."""

Bag = tuple[list[int], list[int]]
"""Ids of pieces in order of first appearance, and how often each appears."""
_MARKS = " \t\r\f\v/*#!-\"'`;%<>{}|=.,:@()"
"""Characters around a line of a doc comment or a heading in its source."""


def split(text: str) -> list[str]:
    """Return the lower-case words of `text`, code or prose, in order.

    Identifiers are split: `getHTTPResponse_v2` → get, http, response, v, 2. Accents are removed
    (`café` → cafe), and full-width letters become the usual ones.
    """
    return list(chain.from_iterable(map(words_of, runs(text))))


def runs(text: str) -> list[bytes]:
    """Return the text between ASCII blanks and punctuation in `text`, in UTF-8 and in order.

    Most runs are identifiers; where a text is not ASCII a run may hold several. Bytes,
    because this is half of all the work, and with them it takes a third of the time.
    """
    return text.encode("utf-8", "replace").translate(_BLANKED).split()


def words_of(run: bytes) -> list[str]:
    """Return the lower-case words of one of `runs`, or of any text, up to WORD_LETTERS long."""
    if run.isascii():
        return [part[:WORD_LETTERS].lower() for part in _PART.findall(run.decode())]
    decomposed = unicodedata.normalize("NFKD", run.decode())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    parts: list[str] = []
    for identifier in _IDENTIFIER.findall(plain):
        parts += (_PART if identifier.isascii() else _PART_ANY_SCRIPT).findall(identifier)
    return [part[:WORD_LETTERS].lower() for part in parts]


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
                piece_id = pieces.get(word[at:stop])
                if piece_id is not None:
                    ids.append(piece_id)
                    at = stop
                    break
            else:
                if not ids or ids[-1] != UNKNOWN_ID:
                    ids.append(UNKNOWN_ID)
                at += 1
            pieces, longest = self._later, self._longest_later
        return tuple(ids)

    def _of_run(self, run: bytes) -> tuple[int, ...]:
        ids = chain.from_iterable(map(self.ids, words_of(run)))
        return tuple(piece_id for piece_id in ids if piece_id != UNKNOWN_ID)


def document_fields(text: UnitText, pieces: WordPiece) -> tuple[Bag, Bag, Bag, Bag]:
    """Return the bags of `text` in the order of FIELDS. A bag may be empty."""
    owner, name, doc = text.owner[:NAME_CHARACTERS], text.name[:NAME_CHARACTERS], text.doc_comment
    return (
        _bag([(_path_words(text.path), 1)], pieces),
        _bag([(owner.encode("utf-8", "replace"), 1), (name.encode("utf-8", "replace"), 1)], pieces),
        body_field(text, pieces),
        _bag(Counter(runs(doc[:DOC_CHARACTERS])).items(), pieces) if doc else ([], []),
    )


def _path_words(path: str) -> bytes:
    """Return the last PATH_SEGMENTS segments of `path`, without the ending."""
    folder, slash, name = "/".join(path.rsplit("/", PATH_SEGMENTS)[-PATH_SEGMENTS:]).rpartition("/")
    return (folder + slash + (name.rpartition(".")[0] or name)).encode("utf-8", "replace")


def body_field(text: UnitText, pieces: WordPiece) -> Bag:
    """Return the bag of the body, its own name and its doc comment left out."""
    name, doc = text.name, text.doc_comment
    if doc or not name.isidentifier():
        room = BODY_CHARACTERS + DOC_SHARE * len(doc) + len(name)
        body = without_lines(text.body[:room], doc.split("\n") + [name])[:BODY_CHARACTERS]
    else:
        body = text.body[:BODY_CHARACTERS]
    run_counts = Counter(runs(body))
    run_counts.pop(name.encode("utf-8", "replace"), None)
    ids, counts = bag = _bag(run_counts.items(), pieces)
    if len(ids) <= BODY_TOKENS:
        return bag
    order = sorted(range(len(ids)), key=lambda index: -counts[index])[:BODY_TOKENS]
    return list(map(ids.__getitem__, order)), list(map(counts.__getitem__, order))


def query_ids(text: str, pieces: WordPiece) -> Bag:
    """Return the bag of a question."""
    return _bag(Counter(runs(text[:QUERY_CHARACTERS])).items(), pieces)


def without_lines(source: str, lines: Iterable[str]) -> str:
    """Return `source` without `lines`, whatever comment marks are around them there.

    A line of SHORT_LINE characters or more that has no line of its own is also removed from the
    middle of others (`/** Opens the door. */ void open()`).
    """
    bare_lines = dict.fromkeys(line.strip(_MARKS) for line in lines)
    bare_lines.pop("", None)
    if not bare_lines:
        return source
    removed = set()
    others = []
    for line in source.split("\n"):
        bare = line.strip(_MARKS)
        if bare in bare_lines:
            removed.add(bare)
        else:
            others.append(line)
    text = "\n".join(others)
    for line in bare_lines:
        if line not in removed and len(line) >= SHORT_LINE:
            text = text.replace(line, " ")
    return text


def _bag(run_counts: Iterable[tuple[bytes, int]], pieces: WordPiece) -> Bag:
    """Return the pieces of runs (or of short texts, in UTF-8), each with its count."""
    bag: dict[int, int] = {}
    count_of, ids_of = bag.get, pieces.of_run
    for run, count in run_counts:
        for piece in ids_of(run):
            bag[piece] = count_of(piece, 0) + count
    return list(bag), list(bag.values())
