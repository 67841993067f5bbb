"""What the table sees of a unit: four bags of pieces; and of a question: one.

Training imports this module, so that a row of the table means the same there and here. The
limits are those with which the table was found to do well; changing one needs a new table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from codeqa.embeddings.table.wordpiece import WordPiece, runs
from codeqa.text.unit_text import UnitText

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
    have, known = bag.get, pieces.of_run
    for run, times in counted:
        for piece in known[run]:
            bag[piece] = have(piece, 0) + times
    return list(bag), list(bag.values())
