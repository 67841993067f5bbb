"""Code by meaning and by name, in the form that saves an agent its next calls: definitions whole,
with a line each of what they call, what calls them and the constants that they use."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

from pydantic import Field

from codeqa.code.calls import callees, callers, is_test
from codeqa.code.imports import IMPORTED, import_evidence
from codeqa.code.tools.tool import (
    LARGEST_TEXT,
    Place,
    Toolbox,
    ToolResult,
    fitting,
    list_result,
    numbered,
)
from codeqa.code.usages import language_name
from codeqa.embeddings.registry import question_matcher
from codeqa.errors import CodeQAError
from codeqa.search.channels import nearest_names
from codeqa.search.mentions import resolve_mentions
from codeqa.search.query import QUESTION_WORDS, Query
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text import counted, some_of
from codeqa.text.tokens import CHARACTERS_PER_TOKEN, form_pattern, name_key, search_tokens, variants
from codeqa.text.unit_text import fields_of
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Hit, Unit, encloses

NEAR_BEST = 0.72
"""Part of the best score from which a hit is shown beside the best: below it, of 22 searches by an
agent, the second and third were mostly about something else (research/evals/tools)."""
NAMED_FROM = 0.5
"""Part of the best score from which a hit is named."""
NEARNESS = 0.7
"""What the cosine of the nearest passage counts in a relevance; the rest is the share of the
question's words. Of the best hits of 73 questions about Flask and Gin 8 are below .3, of 40 that
have nothing to do with either 36."""
SHOWN, NAMED = 3, 12
"""Definitions shown with their code, and further ones that are named."""
LARGEST_CODE = LARGEST_TEXT - 2_000
"""Characters of one definition's code; the rest is for what is told with it."""
SHORT = 20
"""Lines of a function that is shown with the one that calls it."""
LONG_CLASS = 60
"""Lines of a class from which on its members are listed rather than shown."""
MOST_MEMBERS = 40
MOST_TOLD = 6
"""Names told of what a definition calls, and of what calls it."""
MOST_VALUES, LONGEST_VALUE = 8, 600
"""Constants told with a definition, and characters of each."""
MOST_VALUED = 5
"""Places where one name is given a value that are shown."""
MOST_MEANT = 5
"""Definitions of one name that are shown, followed or told apart."""
WEAK = 0.6
"""Part of the question's words that nothing shown holds from which on it is called weak: so are 7
of 11 questions that nothing in CodeQA answers, and of 19 others 3, two of which had missed."""
MOST_ABSENT = 8
NOTHING = "No relevant code found."
CAPITALS = re.compile(r"\b_?[A-Z][A-Z0-9_]{2,}\b")
_CONSTANT = re.compile(
    r"(?:(?:export|pub|static|public|private|final|const|val|let)\s+)*_?[A-Z][A-Z0-9_]{2,}\b[^=(]{0,60}="
)
_STEM = re.compile(r"[./\\:]+")
_CLOSING = (")", "]", "}", '"""', "'''")
_CALLED = re.compile(r"(?<!def )(?<!func )(?<!function )(?<!fn )\b([A-Za-z_]\w{3,})\s*\(")
_IMPORT = re.compile(r"(?:import|from|use|using|require|package|#include|const \w+ = require)\b")

Name = Annotated[
    str, Field(description="A function, class or constant, with its owner where needed: Flask.run.")
]
Pattern = Annotated[str, Field(description="Only paths that begin so (src/) or match (**/*.go).")]


def search_code(
    box: Toolbox,
    query: Annotated[str, Field(description="What to find: a question, words or names.")],
    guess: Annotated[
        str, Field(description="4 to 12 lines of code as you expect the answer to look.")
    ] = "",
    path: Pattern = "",
    tokens: Annotated[int, Field(ge=200, le=8_000, description="How much code to show.")] = 2_000,
) -> ToolResult:
    """Find code by meaning and by name. Gives whole functions with lines, what they call, who calls
    them and their constants: seldom a file has to be opened after it. What has a relevance (0 to 1)
    below 0.3 is mostly about something else. Write a `guess` whenever you
    can imagine the code; its names need not be right. Example: query="where is the cookie of a
    session signed", guess="def save_session(self, session, response):\\n    data =
    self.signer.dumps(dict(session))\\n    response.set_cookie(NAME, data, max_age=AGE)"."""
    box.files_in(path)  # else nothing is found, and nobody knows why
    drafts = (guess,) if guess.strip() else ()
    result = box.search.search(query, top=SHOWN + NAMED, path=path, drafts=drafts)
    if not result.units:
        return ToolResult(summary=f"searched “{query}”: nothing", text=NOTHING)
    shown = _best(result.units)
    room = int(tokens * CHARACTERS_PER_TOKEN)
    places, parts, known = list[Place](), list[str](), set[str]()

    def show(unit: Unit, note: str, *, whatever: bool = False) -> None:
        nonlocal room
        place, told = whole(box, unit, note, places)
        if any(_holds(one, unit) for one in places) or (len(told) > room and not whatever):
            return
        places.append(place)
        parts.append(told)
        known.add(unit.id)
        room -= len(told)

    for hit in shown:
        relevance = _relevance(result.query, hit.unit)
        show(hit.unit, f"relevance: {relevance:.2f}", whatever=not places)
    best = shown[0].unit
    for call in callees(box.tables(), best):
        one = call.called
        short = one.end_line - one.start_line < SHORT
        if call.sure and short and one.is_method and one.role == best.role:
            show(one, f"called in line {call.line}")
    weak = NAMED_FROM * result.units[0].score
    rest = [hit.unit for hit in result.units if hit.unit.id not in known and hit.score >= weak]
    first, rest = result.units[0].unit, [unit for unit in rest if not unit.is_head]
    told, fitted = fitting(parts, "\n\n")
    also = ", ".join(f"{unit.qualified_name or unit.kind} [{unit.place}]" for unit in rest)
    said = [told, f"Also found: {also}" if also else ""]
    if first.is_head and first.id not in known:
        said += _listed(f"{first.path} defines", _members(box.tables(), first), MOST_MEMBERS)
    said += _doubts(box.tables(), result.query.words, guess, places)
    return ToolResult(
        summary=f"searched “{query}”: {counted(fitted, 'hit')}",
        text="\n\n".join(filter(None, said)),
        total=len(places),
        places=tuple(places[:fitted]),
    )


def _relevance(query: Query, unit: Unit) -> float:
    """How much `unit` is about the question, from 0 to 1, whatever else was found."""
    text, near = f"{unit.path} {unit.source_code}".lower(), question_matcher(query.text)
    asked = [word for word in query.words if word not in QUESTION_WORDS] or query.words
    share = sum(bool(form_pattern(word).search(text)) for word in asked) / max(1, len(asked))
    if near is None or near.empty:
        return share
    return NEARNESS * near.nearness(fields_of(unit)).passage + (1 - NEARNESS) * share


def _best(hits: Sequence[Hit]) -> list[Hit]:
    """The hits that are shown: the best, and what is nearly as good, tests only where they lead.
    The head of a file says where to look: it gives way to what the file defines."""
    first = hits[0].unit
    least, meant = NEAR_BEST * hits[0].score, first.path if first.is_head else ""
    apart: list[Hit] = []
    for hit in (one for one in hits if not one.unit.is_head):
        inside = any(
            encloses(hit.unit, one.unit)
            or (encloses(one.unit, hit.unit) and not _is_long(one.unit))
            for one in apart
        )
        near = hit.score >= least or hit.unit.path == meant
        if near and not inside and is_test(hit.unit) <= is_test(first):
            apart.append(hit)
    return apart[:SHOWN] or [hits[0]]


def _is_long(unit: Unit) -> bool:
    """Whether it is a class of which the head is shown, and a list of its members."""
    long = unit.end_line - unit.start_line >= LONG_CLASS
    return long and unit.kind in CLASS_KINDS and bool(unit.head_end_line)


def _holds(place: Place, unit: Unit) -> bool:
    same = place.path == unit.path
    return same and place.start_line <= unit.start_line and unit.end_line <= place.end_line


def whole(
    box: Toolbox, unit: Unit, note: str = "", beside: Sequence[Place] = ()
) -> tuple[Place, str]:
    """`unit` as a place, and as it is told: its code, of a long class the head and the members,
    and below it what it calls that is not `beside`, what calls it, and the constants that it uses.
    """
    tables = box.tables()
    lines, members = unit.source_code.split("\n"), list[str]()
    long_class = _is_long(unit)
    if unit.is_head:
        imports = next((n for n, line in enumerate(lines) if n and _IMPORT.match(line)), len(lines))
        lines = lines[:imports] if any(map(str.strip, lines[:imports])) else lines
        while len(lines) > 1 and not lines[-1].strip():
            lines.pop()
    elif long_class:
        lines = lines[: unit.head_end_line - unit.start_line + 1]
    if unit.is_head or long_class:
        members = _members(tables, unit)
    code, fitted = fitting(_told(box, lines, unit.start_line), room=LARGEST_CODE)
    last = unit.start_line + fitted - 1
    text = "\n".join(lines[:fitted])[:LARGEST_TEXT]
    place = Place.of(unit, end_line=last, text=text, note=note)
    if last < unit.end_line and not unit.is_head:
        note = f"{note}, of {unit.start_line}-{unit.end_line}".lstrip(", ")
    head = f"--- {unit.path} (lines {unit.start_line}-{last}{note and f', {note}'}) ---"
    told = [head, code, *_listed("Members", members, MOST_MEMBERS)]
    if unit.is_definition:
        told += edges_of(tables, unit, beside)
        told += _listed("Uses", _values(box, place), MOST_VALUES, "; ")
    return place, "\n".join(told)


def _told(box: Toolbox, lines: Sequence[str], first: int) -> Sequence[str]:
    """`lines` as they are told, the first of which is `first` in its file."""
    return numbered(lines, first) if box.with_numbers else lines


def _members(tables: Tables, unit: Unit) -> list[str]:
    """What the class or file defines, with lines."""
    owner = "" if unit.is_head else unit.qualified_name
    inside = (one for one in tables.in_file(unit.path) if one.class_name == owner)
    return [
        f"{one.name} [{one.start_line}-{one.end_line}]"
        for one in inside
        if one.id != unit.id and one.kind not in TEXT_KINDS
    ]


def edges_of(tables: Tables, unit: Unit, beside: Sequence[Place] = ()) -> list[str]:
    """A line of what `unit` surely calls, and one of what surely calls it."""

    def at(one: Unit, line: int) -> str:
        place = line if one.path == unit.path else f"{one.path}:{line}"
        return f"{one.qualified_name or one.path} [{place}]"

    calls = [one.called for one in callees(tables, unit) if one.sure]
    told = [at(one, one.start_line) for one in calls if not any(_holds(p, one) for p in beside)]
    users, doubtful = callers(tables, unit)
    tests = sum(is_test(one.caller) for one in users)
    calling = [at(one.caller, one.line) for one in users if not is_test(one.caller)]
    by = _listed("Called by", calling, MOST_TOLD)
    also = [counted(tests, "test")] if tests and not is_test(unit) else []
    if doubtful:
        also.append(f"{counted(doubtful, 'place')} with only the name the same")
    if also:
        by = ["; ".join([*(by or ["Called by nothing surely"]), *also])]
    return [*_listed("Calls", told, MOST_TOLD), *by]


def _listed(title: str, items: Sequence[str], most: int, apart: str = ", ") -> list[str]:
    """A line of the first `most` items, none for none."""
    return [f"{title}: {some_of(items, most, apart)}"] if items else []


def _values(box: Toolbox, place: Place) -> list[str]:
    """The constants that `place` uses, of its file and of those that it imports them from, each
    with its whole value."""
    used = set(CAPITALS.findall(place.text))
    found = []
    for path in [place.path, *_imported_from(box.tables(), place.path, used)] if used else ():
        try:
            lines = box.files.read(path).text.split("\n")
        except CodeQAError:
            continue
        for number, line in constants(lines):
            names = used.intersection(CAPITALS.findall(line.split("=")[0]))
            inside = path == place.path and place.start_line <= number <= place.end_line
            if names and not inside:
                used -= names
                value = "\n".join(_value(lines, number))[:LONGEST_VALUE]
                found.append(f"{value} [{'' if path == place.path else path + ':'}{number}]")
    return found


def _imported_from(tables: Tables, path: str, names: Collection[str]) -> list[str]:
    """Files that `path` surely imports some of `names` from."""
    imports = {
        one.module
        for one in tables.references(path=[path])
        if one.kind == "import" and one.name in names and one.module
    }
    named, language = tables.catalogue().by_file_name, language_name(path)
    ending = path[path.rindex(".") :] if "." in path else ""
    return [
        file
        for module in sorted(imports)
        for file in named.get(_STEM.split(module.removesuffix(ending))[-1] + ending, ())
        if import_evidence(language, path, module, file) >= IMPORTED
    ]


def constants(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Number and text of the lines that give a value to a name in capitals at top level."""
    return [(n, line) for n, line in enumerate(lines, 1) if _CONSTANT.match(line)]


def _value(lines: Sequence[str], number: int) -> list[str]:
    """The lines of the value that begins in line `number`, and what is written below it in
    quotes: all that is indented or closes it."""
    end, quoted = number, lines[number - 1].count('"""') % 2
    while end < len(lines) and (quoted or lines[end].startswith((" ", "\t", *_CLOSING))):
        quoted = (quoted + lines[end].count('"""')) % 2
        end += 1
    return list(lines[number - 1 : end])


def _doubts(
    tables: Tables, asked: Sequence[str], guess: str, shown: Sequence[Place]
) -> Iterable[str]:
    """That little of the question stands in what is shown, where that is so; and which of its
    words, and of the names that the guess calls, stand nowhere at all."""
    text = "\n".join(f"{place.path} {place.text}" for place in shown).lower()
    missing = [word for word in asked if not form_pattern(word).search(text)]
    if len(missing) > WEAK * len(asked):
        yield f"Weak: nothing shown holds {', '.join(missing[:MOST_ABSENT])}. Try another guess."
    names = tables.catalogue().names
    called = (name for name in _CALLED.findall(guess) if name_key(name) not in names)
    words = list(dict.fromkeys((*missing, *called)))
    found = tables.best(
        [
            TextSearch(table, " ".join((*search_tokens(word)[-1:], *variants(word))), 1)
            for word in words
            for table in UNIT_TABLES
        ]
    )
    each = len(UNIT_TABLES)
    absent = [word for n, word in enumerate(words) if not any(found[n * each :][:each])]
    if absent:
        yield f"Stands nowhere here: {', '.join(absent[:MOST_ABSENT])}."


def symbol_definition(box: Toolbox, name: str) -> ToolResult:
    """Where a function, class or constant is defined, as `whole` tells it; overloads and stubs
    without code by their places where there is code."""
    units = definitions(box.tables(), name)
    if not units:
        return _assigned(box, name) or no_definition(box.tables(), name)
    first = [unit for unit in units[:MOST_MEANT] if not unit.is_stub] or units[:MOST_MEANT]
    told = [whole(box, unit) for unit in first]
    rest = [f"{unit.qualified_name} [{unit.place}]" for unit in units if unit not in first]
    parts = [text for _, text in told] + ([f"Also: {', '.join(rest[:NAMED])}"] if rest else [])
    return list_result(
        f"{name} has {counted(len(units), 'definition')}", parts, "Put its owner before the name.",
        total=len(units), apart="\n\n", items=[place for place, _ in told],
    )  # fmt: skip


def definitions(tables: Tables, name: str) -> list[Unit]:
    """The definitions that `name` stands for: those in source first, signatures without code last,
    and members of classes behind what has no owner."""
    mentions, _ = resolve_mentions(tables, [name.removeprefix("@").removesuffix("()")])
    ids = [id_ for mention in mentions for id_ in mention.units]
    found = tables.by_ids(ids)
    return sorted(found, key=lambda u: (u.role != "source", u.is_stub, bool(u.class_name)))


def _assigned(box: Toolbox, name: str) -> ToolResult | None:
    """Where a constant or variable of that name is given its value."""
    if not name.isidentifier():
        return None
    # A word or four before it: const, export, a type.
    pattern = rf"^[ \t]*(?:[\w.]+[ \t]+){{0,4}}{name}\b[^=(\n]{{0,80}}=(?:[^=]|$)"
    found = box.files.find_lines(pattern, box.files.matching(), regex=True)
    if not found.lines:
        return None
    places, parts = list[Place](), list[str]()
    at = [(path, number) for path, held in found.lines.items() for number, _ in held]
    for path, number in at[:MOST_VALUED]:
        lines = _value(box.files.read(path).text.split("\n"), number)
        last = number + len(lines) - 1
        parts.append(
            "\n".join((f"--- {path} (lines {number}-{last}) ---", *_told(box, lines, number)))
        )
        places.append(
            Place(path=path, start_line=number, end_line=last, text="\n".join(lines),
                  language=language_name(path), name=name, kind="value")
        )  # fmt: skip
    summary = f"{name} is given a value in {counted(found.total, 'place')}"
    left = found.total - len(parts)
    return list_result(summary, parts, "Use grep for all.", left=left, apart="\n\n", items=places)


def no_definition(tables: Tables, name: str) -> ToolResult:
    """That nothing is called so, and what is called nearly so."""
    summary = f"nothing here is called {name}"
    near = ", ".join(nearest_names(tables, re.split(r"\W+", name)[-1]))
    instead = (
        f"The nearest name is {near}." if near else "No name is near it; grep looks for it as text."
    )
    text = f"{summary}. {instead}"
    return ToolResult(summary=summary, text=text, unknown=name, completeness=instead)
