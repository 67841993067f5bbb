"""Rows of one repository: a query and the unit that it asks for, the query taken out of it.

What the unit shows must be what it would show had nobody written the sentence: a model
that finds the query's words in the document learns nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from codeqa.text.unit_text import unit_text
from codeqa.types import CLASS_KINDS, METHOD_KINDS, ParsedFile, Unit
from research.training import cleaning

MIN_BODY = 40
"""Characters that an undocumented function has at least, for its name to say something."""
MIN_SECTION = 80
"""Characters below a heading."""
MAX_SOURCE = 8_000
"""Characters of source that a row keeps; the encoder reads 3,000, after taking comments out."""
HEADING_WITHIN = 8
"""First lines of a section among which its heading stands; headings above it may come first."""
LEAK = 5
"""Words in a row of the query that may stand nowhere in its unit."""
AHEAD = 4
"""Lines of a comment among which the next one is looked for; some read otherwise in the source."""

Row = dict[str, Any]

_TEST_MARK = re.compile(
    r"#\[(?:\w+::)*(?:test|rstest|bench)\b|@(?:Test|ParameterizedTest)\b|\[Test"
)
_TEST_NAME = re.compile(r"(?:test|Test|bench)(?:[_A-Z0-9]|$)|.*_(?:test|spec)$|.*Tests?$")
_TEST_OWNER = re.compile(r"(?:^|[.:])(?:tests?|.*Tests?|.*Spec)$")
_WORDS = re.compile(r"[A-Za-z0-9]+")
_IDENTIFIER = re.compile(r"\w+")
_COMMENT_LINE = re.compile(r"\s*(?://|/\*|\*|#(?![\[!]|\w)|--(?!\w)|;|%)")
_QUOTES = re.compile(r"([\"']{3})\s*\1")


def is_test(unit: Unit) -> bool:
    """Whether a unit is a test, also one that stands in a source file (Rust)."""
    return bool(
        unit.role == "test"
        or _TEST_NAME.match(unit.name)
        or _TEST_OWNER.search(unit.class_name)
        or _TEST_MARK.search(unit.source_code[:300])
    )


# --- taking the query out of its unit ---------------------------------------------------------


def without_comment(source: str, comment: str) -> str:
    """Source of a unit without the text of its own doc comment, wherever it stands.

    The comment's lines are found again by their words, in order; what remains of a line is
    its comment mark. Comments in front of the first line of code go as a whole.
    """
    wanted = [words for line in comment.split("\n") if (words := _words(line))]
    kept: list[str] = []
    at_front = True
    place = 0
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if place == len(wanted) and not at_front:
            kept += lines[number:]
            break
        if at_front and (not line.strip() or _COMMENT_LINE.match(line)):
            # A line of a comment, or of code that looks like one; only the first is known.
            place = _next(_words(line), wanted, place) or place
            continue
        found = _next(_words(line), wanted, place)
        if found:
            place = found
            line = _cut(line, wanted[found - 1])
            if not line.strip("\"'*/#- \t\r"):
                line = re.sub(r"[^\"'*/#-]", "", line)
        elif line.strip() and not line.lstrip().startswith(("@", "#[", "[")):
            at_front = False
        kept.append(line)
    return _QUOTES.sub("", "\n".join(kept))


def _next(line: str, wanted: list[str], place: int) -> int:
    """Behind which of the next wanted lines `line` stands; 0: it is none of them."""
    for at in range(place, min(place + AHEAD, len(wanted))):
        if f" {wanted[at]} " in f" {line} ":
            return at + 1
    return 0


def _words(text: str) -> str:
    return " ".join(_WORDS.findall(text))


def _cut(line: str, words: str) -> str:
    """`line` without the first place where `words` stand, whatever stands between them."""
    found = list(_WORDS.finditer(line))
    wanted = words.split(" ")
    for at in range(len(found) - len(wanted) + 1):
        stretch = found[at : at + len(wanted)]
        if [word[0] for word in stretch] == wanted:
            return line[: stretch[0].start()] + line[stretch[-1].end() :]
    return line


def without_own_name(unit: Unit) -> Unit:
    """The unit as if it had no name: for queries that were made from the name."""
    name = unit.name

    def without(text: str) -> str:
        if not name.isidentifier():  # Ruby's `is_it_open?`
            return text.replace(name, "")
        return _IDENTIFIER.sub(lambda found: "" if found[0] == name else found[0], text)

    return replace(
        unit,
        name="",
        qualified_name="",
        signature=without(unit.signature),
        doc_comment=without(unit.doc_comment),
        source_code=without(unit.source_code[:MAX_SOURCE]),
    )


def without_heading(text: str, heading: str) -> str:
    """A section without the line that is its heading; '' when there is none near its top."""
    lines = text.split("\n")
    for number, line in enumerate(lines[:HEADING_WITHIN]):
        if _words(line) == _words(heading):
            return "\n".join(lines[:number] + lines[number + 1 :])
    return ""


def leaks(query: str, unit: Unit) -> bool:
    """Whether five words of the query in a row still stand in the unit."""
    asked = query.lower().split()
    if len(asked) < LEAK:
        return False
    shown = f"{unit.doc_comment}\n{unit.source_code[:MAX_SOURCE]}"
    text = " ".join(_WORDS.findall(shown.lower()))
    joined = [" ".join(_WORDS.findall(" ".join(asked[at : at + LEAK])))
              for at in range(len(asked) - LEAK + 1)]  # fmt: skip
    return any(piece and f" {piece} " in f" {text} " for piece in joined)


# --- rows -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rows:
    """Makes the rows of one repository, and counts what was refused and why."""

    repository: str
    refused: dict[str, int] = field(default_factory=dict)

    def of_code(self, parsed: ParsedFile) -> Iterator[Row]:
        """Rows of a source file: doc comments and, where there is none, names of three words."""
        for unit in parsed.units:
            if (unit.kind not in METHOD_KINDS and unit.kind not in CLASS_KINDS) or is_test(unit):
                continue
            if unit.doc_comment:
                row = self._documented(unit)
            elif unit.kind in ("function", "method"):  # a constructor is named like its owner
                row = self._named(unit)
            else:
                row = None
            if row is not None:
                yield row

    def of_document(self, parsed: ParsedFile) -> Iterator[Row]:
        """Rows of a document: a section's heading and what stands below it."""
        for unit in parsed.units:
            if unit.kind != "document" or " > " not in f"{unit.class_name} > {unit.qualified_name}":
                continue
            query = cleaning.heading_query(unit.name)
            below = without_heading(unit.source_code, unit.name)
            if not query or len(below.strip()) < MIN_SECTION:
                self._refuse("heading")
                continue
            shown = replace(unit, name="", qualified_name="", source_code=below)
            yield self._row("section", query, unit, shown)

    def of_test(self, name: str, unit: Unit) -> Row | None:
        """The row of a test's name and the function that it tests."""
        query = cleaning.test_query(name)
        return self._row("test", query, unit, unit) if query else self._refuse("test_name")

    def _documented(self, unit: Unit) -> Row | None:
        names = (unit.qualified_name, f"{unit.class_name}.{unit.name}", unit.name)
        query, rest, why = cleaning.query_of(unit.doc_comment, *names)
        if why:
            return self._refuse(why)
        room = MAX_SOURCE + 2 * len(unit.doc_comment)
        source = without_comment(unit.source_code[:room], unit.doc_comment)
        shown = replace(unit, doc_comment=rest, source_code=source)
        if leaks(query, shown):
            return self._refuse("leaks")
        return self._row("doc" if unit.is_method else "class", query, unit, shown)

    def _named(self, unit: Unit) -> Row | None:
        query = cleaning.name_query(unit.name)
        if not query or len(unit.source_code) - len(unit.signature) < MIN_BODY:
            return self._refuse("name")
        return self._row("name", query, unit, without_own_name(unit))

    def _row(self, source: str, query: str, unit: Unit, shown: Unit) -> Row:
        shown = replace(shown, source_code=shown.source_code[:MAX_SOURCE])
        return {
            "repo": self.repository,
            "path": unit.path,
            "line": unit.start_line,
            "language": unit.language,
            "kind": unit.kind,
            "source": source,
            "query": query,
            "unit": unit_text(shown),
        }

    def _refuse(self, why: str) -> Row | None:
        self.refused[why] = self.refused.get(why, 0) + 1
        return None


# --- over rows ----------------------------------------------------------------------------------


def text_key(text: str) -> int:
    """A number for the words of a text, case and everything between them aside."""
    words = " ".join(_WORDS.findall(text.lower())).encode()
    return int.from_bytes(blake2b(words, digest_size=8).digest(), "big")


def distinct(rows: Iterable[Row], seen: set[int]) -> Iterator[Row]:
    """Rows whose unit's text was not seen before, case and blanks aside."""
    for row in rows:
        key = text_key(row["unit"].partition("\nsignature: ")[2])
        if key not in seen:
            seen.add(key)
            yield row


def languages_of(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Language → source → number of rows."""
    counted: dict[str, dict[str, int]] = {}
    for row in rows:
        per = counted.setdefault(row["language"], {})
        per[row["source"]] = per.get(row["source"], 0) + 1
    return counted
