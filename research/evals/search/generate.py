"""Questions about any repository, made from what it says of itself.

Three kinds, each with the lines that answer it: the first sentence of a doc comment (emptied in
the copy that is searched) asks for its definition; a name asks for itself; "what calls …" asks
for the callers that are certain.
The same files give the same questions. They are easier than what people ask, and
share words with their answers: they compare settings, and say little of absolute quality.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

from codeqa.code.usages import usages
from codeqa.languages import detect
from codeqa.parsing import parse_file
from codeqa.store import Tables
from codeqa.text.tokens import name_key
from codeqa.types import CLASS_KINDS, METHOD_KINDS, ParsedFile, Unit, encloses
from research.evals.search.questions import MAIN, SECONDARY, Question, Target
from research.evals.search.sentences import comment_lines, leaks, question_of

T = TypeVar("T")

SHARES = {"comment": 0.5, "symbol": 0.25, "callers": 0.25}
"""Part of the questions of each kind; the rest of a kind that has fewer is not made up for."""
PER_FILE = 2
"""Questions of a kind about one file: a well documented one must not be all that is asked."""
MIN_CODE_LINES = 3
"""Lines of a definition beside its comment: less has nothing to be found by."""
MIN_NAME = 4
"""Letters of a name that is asked for; shorter ones mean many things."""
CERTAIN = 0.8
"""Confidence from which a place counts as a call of the definition (`structure`)."""
MAX_CALLERS = 6
LOOKED_AT = 8
"""Definitions of a file that are looked at for PER_FILE questions."""


def drawn(values: Sequence[T], salt: str) -> list[T]:
    """`values` in an order that only they and `salt` decide."""
    return random.Random(f"1 {salt}").sample(values, len(values))


# --- doc comments: before the copy is indexed -------------------------------------------------


def comment_questions(folder: Path, files: Iterable[str]) -> Iterator[Question]:
    """Questions from doc comments of `files` below `folder`, which are emptied there."""
    for path in files:
        language = detect(path)
        if language is not None and language.grammar:
            yield from _of_file(folder, path)


def _of_file(folder: Path, path: str) -> list[Question]:
    data = (folder / path).read_bytes()
    parsed = parse_file(path, data)
    units = [unit for unit in parsed.units if unit.doc_comment and _is_definition(unit)]
    made: list[tuple[str, str]] = []
    for unit in drawn(units, path):
        if len(made) == PER_FILE:
            break
        question = question_of(unit.doc_comment, unit.name)
        emptied = _emptied(data, unit) if question else None
        if emptied is None:
            continue
        after = parse_file(path, emptied)
        if _still_there(unit, parsed, after) and not leaks(question, emptied.decode("utf-8")):
            data, parsed = emptied, after
            made.append((question, unit.id))
    if made:
        (folder / path).write_bytes(data)
    by_id = {unit.id: unit for unit in parsed.units}
    return [_question(question, [by_id[key]]) for question, key in made]


def _emptied(data: bytes, unit: Unit) -> bytes | None:
    """The file with the unit's doc comment emptied, line for line; None where it cannot be."""
    lines = data.split(b"\n")
    try:
        source = b"\n".join(lines[unit.start_line - 1 : unit.end_line]).decode("utf-8")
    except UnicodeDecodeError:
        return None
    place = comment_lines(source, unit.doc_comment)
    if place is None:
        return None
    first, last = (unit.start_line - 1 + line for line in place)
    rest = [
        line
        for number, line in enumerate(lines[unit.start_line - 1 : unit.end_line])
        if not place[0] <= number <= place[1] and line.strip()
    ]
    if len(rest) < MIN_CODE_LINES:
        return None
    for at in range(first, last + 1):
        lines[at] = b"\r" if lines[at].endswith(b"\r") else b""
    return b"\n".join(lines)


def _still_there(unit: Unit, before: ParsedFile, after: ParsedFile) -> bool:
    """Whether the file without the comment holds the same definitions, this one bare."""
    same = next((one for one in after.units if one.id == unit.id), None)
    return (
        same is not None
        and same.end_line == unit.end_line
        and not same.doc_comment
        and after.has_errors <= before.has_errors
    )


# --- names, callers: from the index of the copy --------------------------------------


def symbol_questions(tables: Tables, files: Iterable[str]) -> Iterator[Question]:
    """Names that only one definition of the repository has, each asking for it."""

    def made(unit: Unit) -> Question | None:
        return _question(_asked_name(unit), [unit]) if _is_only_one(tables, unit) else None

    return _of_definitions(tables, files, made)


def caller_questions(tables: Tables, files: Iterable[str]) -> Iterator[Question]:
    """ "what calls x?" with the functions that certainly do as main targets."""

    def made(unit: Unit) -> Question | None:
        if unit.kind not in METHOD_KINDS or not _is_only_one(tables, unit):
            return None
        calls = [
            use.reference.unit_id
            for use in usages(tables, unit)[:50]
            if use.reference.kind == "call" and use.confidence >= CERTAIN
        ]
        callers = [
            one
            for one in tables.by_ids([key for key in dict.fromkeys(calls) if key])
            if one.role == "source" and one.kind in METHOD_KINDS and not encloses(one, unit)
        ]
        if not 1 <= len(callers) <= MAX_CALLERS:
            return None
        return _question(f"what calls {_asked_name(unit)}?", callers, [unit])

    return _of_definitions(tables, files, made)


def _of_definitions(
    tables: Tables, files: Iterable[str], made: Callable[[Unit], Question | None]
) -> Iterator[Question]:
    """Questions that `made` gives for definitions of `files`."""
    for path in files:
        units = [unit for unit in tables.in_file(path) if _is_definition(unit)]
        named = [unit for unit in units if len(unit.name) >= MIN_NAME]
        some = (made(unit) for unit in drawn(named, path)[:LOOKED_AT])
        yield from islice((question for question in some if question is not None), PER_FILE)


def _is_definition(unit: Unit) -> bool:
    """Whether a unit is a named piece of source code, and no test that stands among it."""
    words = f"{unit.class_name} {unit.name}".lower()
    return (
        unit.kind in METHOD_KINDS | CLASS_KINDS - {"module"}
        and unit.role == "source"
        and "test" not in words
        and not unit.name.startswith("__")
    )


def _is_only_one(tables: Tables, unit: Unit) -> bool:
    return [one.id for one in tables.named([name_key(unit.name)]) if one.kind != "module"] == [
        unit.id
    ]


def _asked_name(unit: Unit) -> str:
    """A name as people write it: with the class of a method."""
    owner = unit.class_name.replace("::", ".").rpartition(".")[2]
    return f"{owner}.{unit.name}" if owner else unit.name


def _question(text: str, main: Iterable[Unit], secondary: Iterable[Unit] = ()) -> Question:
    targets = [(unit, MAIN) for unit in main] + [(unit, SECONDARY) for unit in secondary]
    return Question(
        "?",
        "",
        text,
        tuple(
            Target(unit.path, grade, unit.start_line, unit.end_line, unit.qualified_name)
            for unit, grade in targets
        ),
        language=targets[0][0].language,
        source="generated",
    )
