"""The tool that finds code by meaning and by name.

It shows definitions whole, with what they call, what calls them and the constants that they use,
which saves an agent its next calls.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated

from pydantic import Field

from codeqa.code.calls import callees, callers, is_test
from codeqa.code.imports import IMPORTED, import_evidence
from codeqa.code.names import language_name
from codeqa.code.tools.tool import (
    LARGEST_TEXT,
    CodeSpan,
    Toolbox,
    ToolResult,
    fitting,
    list_result,
    numbered,
)
from codeqa.embeddings.registry import question_matcher
from codeqa.errors import CodeQAError
from codeqa.search.channels import nearest_names
from codeqa.search.mentions import resolve_mentions
from codeqa.search.query import QUESTION_WORDS, Query
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text import counted, some_of
from codeqa.text.declared import declaring_lines, declaring_pattern, indent_of
from codeqa.text.tokens import CHARACTERS_PER_TOKEN, form_pattern, name_key, search_tokens, variants
from codeqa.text.unit_text import fields_of
from codeqa.types import CLASS_KINDS, TEXT_KINDS, Hit, Unit, encloses

HIT_NEAR_BEST = 0.72
"""Part of the best score from which a hit is shown beside the best: below it, of 22 searches by an
agent, the second and third were mostly about something else (research/evals/tools)."""
NAMED_FROM = 0.5
"""Part of the best score from which a hit is named."""
NEARNESS_WEIGHT = 0.7
"""Weight of the nearest passage's cosine in a relevance; the rest is the share of the question's
words. Of the best hits of 73 questions about Flask and Gin 8 are below .3, of 40 that have nothing
to do with either 36."""
MOST_WITH_CODE, MOST_NAMED_BESIDE = 3, 12
"""Definitions shown with their code, and further ones that are named."""
LARGEST_CODE = LARGEST_TEXT - 2_000
"""Characters of one definition's code; the rest is for the lines below it."""
SHORT_LINES = 20
"""Lines of a function that is shown with its caller."""
LONG_CLASS = 60
"""Lines of a class from which on its members are listed rather than shown."""
MOST_MEMBERS = 40
MOST_EDGES = 6
"""Callees and callers that are named."""
MOST_VALUES, LONGEST_VALUE = 8, 600
"""Constants quoted with a definition, and characters of each."""
MOST_VALUED = 5
"""Assignments of one name that are shown."""
MOST_MEANT = 5
"""Definitions of one name that are shown or followed."""
WEAK_SHARE = 0.6
"""Part of the question's words missing in the code shown from which on it is called weak: so are 7
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


# In one piece, for what is shown first decides what still fits.
def search_code(
    box: Toolbox,
    query: Annotated[str, Field(description="What to find: a question, words or names.")],
    guess: Annotated[
        str, Field(description="4 to 12 lines of code as you expect the answer to look.")
    ] = "",
    path: Pattern = "",
    tokens: Annotated[int, Field(ge=200, le=8_000, description="How much code to show.")] = 2_000,
) -> ToolResult:
    """Find code by meaning and by name.

    Gives whole functions with lines, what they call, who calls them and their constants: seldom a
    file has to be opened after it. What has a relevance (0 to 1) below 0.3 is mostly about
    something else. Write a `guess` whenever you can imagine the code; its names need not be right.
    Example: query="where is the cookie of a session signed", guess="def save_session(self,
    session, response):\\n    data = self.signer.dumps(dict(session))\\n
    response.set_cookie(NAME, data, max_age=AGE)".
    """
    box.files_in(path)  # raises an error for a path without files
    drafts = (guess,) if guess.strip() else ()
    result = box.search.search(
        query, top=MOST_WITH_CODE + MOST_NAMED_BESIDE, path=path, drafts=drafts
    )
    if not result.units:
        return ToolResult(summary=f"searched “{query}”: nothing", text=NOTHING)
    excerpts = _Excerpts(box, room=int(tokens * CHARACTERS_PER_TOKEN))
    hits = _best(result.units)
    for hit in hits:
        excerpts.add(hit.unit, f"relevance: {_relevance(result.query, hit.unit):.2f}")
    best = hits[0].unit
    for call in callees(box.tables(), best):
        unit = call.called
        short = unit.is_method and unit.end_line - unit.start_line < SHORT_LINES
        if call.sure and short and unit.role == best.role:
            excerpts.add(unit, f"called in line {call.line}")
    text, fitted = fitting(excerpts.parts, "\n\n")
    parts = [text] + _named(result.units, excerpts.ids)
    first = result.units[0].unit
    if first.is_head and first.id not in excerpts.ids:
        parts += _listed(f"{first.path} defines", _members(box.tables(), first), MOST_MEMBERS)
    parts += _doubts(box.tables(), result.query.words, guess, excerpts.places)
    return ToolResult(
        summary=f"searched “{query}”: {counted(fitted, 'hit')}",
        text="\n\n".join(filter(None, parts)),
        total=len(excerpts.places),
        places=tuple(excerpts.places[:fitted]),
    )


class _Excerpts:
    """The definitions that a search shows, as far as they fit."""

    def __init__(self, box: Toolbox, room: int) -> None:
        self.box, self.room = box, room
        self.places: list[CodeSpan] = []
        self.parts: list[str] = []
        self.ids: set[str] = set()

    def add(self, unit: Unit, note: str) -> None:
        """Add `unit` if it fits or is the first one, and none of the others holds it."""
        span, text = whole(self.box, unit, note, self.places)
        fits = len(text) <= self.room or not self.places
        if fits and not any(_holds(other, unit) for other in self.places):
            self.places.append(span)
            self.parts.append(text)
            self.ids.add(unit.id)
            self.room -= len(text)


def _named(hits: Sequence[Hit], ids: Collection[str]) -> list[str]:
    """Return a line that names good hits whose id is not among `ids`."""
    least = NAMED_FROM * hits[0].score
    units = [hit.unit for hit in hits if hit.score >= least and not hit.unit.is_head]
    names = [f"{u.qualified_name or u.kind} [{u.span}]" for u in units if u.id not in ids]
    return _listed("Also found", names, len(names))


def _relevance(query: Query, unit: Unit) -> float:
    """Return how much `unit` is about the question, from 0 to 1, whatever the other hits."""
    text, near = f"{unit.path} {unit.source_code}".lower(), question_matcher(query.text)
    terms = [word for word in query.words if word not in QUESTION_WORDS] or query.words
    present = [word for word in terms if form_pattern(word).search(text)]
    share = len(present) / max(1, len(terms))
    if near is None or near.empty:
        return share
    return NEARNESS_WEIGHT * near.nearness(fields_of(unit)).passage + (1 - NEARNESS_WEIGHT) * share


def _best(hits: Sequence[Hit]) -> list[Hit]:
    """Return the best hits: definitions before heads of files, tests only where one leads."""
    first = hits[0].unit
    least = HIT_NEAR_BEST * hits[0].score
    apart: list[Hit] = []
    for hit in hits:
        unit = hit.unit
        near = hit.score >= least or (first.is_head and unit.path == first.path)
        if unit.is_head or not near or (is_test(unit) and not is_test(first)):
            continue
        if not any(_overlap(other.unit, unit) for other in apart):
            apart.append(hit)
    return apart[:MOST_WITH_CODE] or [hits[0]]


def _overlap(unit: Unit, other: Unit) -> bool:
    """Return whether one holds the other, unless that is a long class, whose head is shown."""
    return encloses(other, unit) or (encloses(unit, other) and not _is_long(unit))


def _is_long(unit: Unit) -> bool:
    """Return whether it is a class of which only the head and a list of members are shown."""
    long = unit.end_line - unit.start_line >= LONG_CLASS
    return long and unit.kind in CLASS_KINDS and bool(unit.head_end_line)


def _holds(span: CodeSpan, unit: Unit) -> bool:
    same = span.path == unit.path
    return same and span.start_line <= unit.start_line and unit.end_line <= span.end_line


def whole(
    box: Toolbox, unit: Unit, note: str = "", beside: Sequence[CodeSpan] = ()
) -> tuple[CodeSpan, str]:
    """Return the span of `unit`, and its text: code, callees not `beside`, callers, constants.

    Of a long class the code is the head, with a list of the members.
    """
    tables = box.tables()
    lines, members = unit.source_code.split("\n"), list[str]()
    if unit.is_head:
        lines = _without_imports(lines)
    elif _is_long(unit):
        lines = lines[: unit.head_end_line - unit.start_line + 1]
    if unit.is_head or _is_long(unit):
        members = _members(tables, unit)
    code, fitted = fitting(numbered(lines, unit.start_line), room=LARGEST_CODE)
    last = unit.start_line + fitted - 1
    text = "\n".join(lines[:fitted])[:LARGEST_TEXT]
    span = CodeSpan.of(unit, end_line=last, text=text, note=note)
    if last < unit.end_line and not unit.is_head:
        note = f"{note}, of {unit.start_line}-{unit.end_line}".lstrip(", ")
    detail = f"lines {unit.start_line}-{last}"
    if note:
        detail += f", {note}"
    parts = [f"--- {unit.path} ({detail}) ---"]
    parts += [code] + _listed("Members", members, MOST_MEMBERS)
    if unit.is_definition:
        parts += edges_of(tables, unit, beside)
        parts += _listed("Uses", _values(box, span), MOST_VALUES, "; ")
    return span, "\n".join(parts)


def _without_imports(lines: list[str]) -> list[str]:
    """Return the head of a file up to its imports, if anything stands there."""
    end = next((n for n, line in enumerate(lines) if n and _IMPORT.match(line)), len(lines))
    if not any(line.strip() for line in lines[:end]):
        end = len(lines)
    while end > 1 and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def _members(tables: Tables, unit: Unit) -> list[str]:
    """Return the definitions of a class or file, with lines."""
    owner = "" if unit.is_head else unit.qualified_name
    inside = [member for member in tables.in_file(unit.path) if member.class_name == owner]
    inside = [member for member in inside if member.id != unit.id and member.kind not in TEXT_KINDS]
    return [f"{member.name} [{member.start_line}-{member.end_line}]" for member in inside]


def edges_of(tables: Tables, unit: Unit, beside: Sequence[CodeSpan] = ()) -> list[str]:
    """Return a line of what `unit` surely calls, and one of what surely calls it."""

    def title(other: Unit, line: int) -> str:
        where = line if other.path == unit.path else f"{other.path}:{line}"
        return f"{other.qualified_name or other.path} [{where}]"

    targets = [call.called for call in callees(tables, unit) if call.sure]
    targets = [callee for callee in targets if not any(_holds(span, callee) for span in beside)]
    names = [title(callee, callee.start_line) for callee in targets]
    users, doubtful = callers(tables, unit)
    tests = sum(is_test(call.caller) for call in users)
    code = [title(call.caller, call.line) for call in users if not is_test(call.caller)]
    parts = _listed("Called by", code, MOST_EDGES)
    numbers: list[str] = []
    if tests and not is_test(unit):
        numbers.append(counted(tests, "test"))
    if doubtful:
        numbers.append(f"{counted(doubtful, 'place')} with only the name the same")
    if numbers:
        parts = parts or ["Called by nothing surely"]
    line = "; ".join(parts + numbers)
    return _listed("Calls", names, MOST_EDGES) + ([line] if line else [])


def _listed(title: str, items: Sequence[str], most: int, apart: str = ", ") -> list[str]:
    """Return a line of the first `most` items, none for none."""
    return [f"{title}: {some_of(items, most, apart)}"] if items else []


def _values(box: Toolbox, span: CodeSpan) -> list[str]:
    """Return the constants that `span` uses, of its file and those it imports, with values."""
    names = set(CAPITALS.findall(span.text))
    values: list[str] = []
    if not names:
        return values
    for path in [span.path] + _imported_from(box.tables(), span.path, names):
        try:
            lines = box.files.read(path).text.split("\n")
        except CodeQAError:
            continue
        for number, line in constants(lines):
            defined = names.intersection(CAPITALS.findall(line.split("=")[0]))
            inside = path == span.path and span.start_line <= number <= span.end_line
            if defined and not inside:
                names -= defined
                value = "\n".join(_value(lines, number))[:LONGEST_VALUE]
                where = number if path == span.path else f"{path}:{number}"
                values.append(f"{value} [{where}]")
    return values


def _imported_from(tables: Tables, path: str, names: Collection[str]) -> list[str]:
    """Return the files that `path` surely imports some of `names` from."""
    modules = set()
    for reference in tables.references(path=[path]):
        if reference.kind == "import" and reference.name in names and reference.module:
            modules.add(reference.module)
    language = language_name(path)
    ending = path[path.rindex(".") :] if "." in path else ""
    files: list[str] = []
    for module in sorted(modules):
        name = _STEM.split(module.removesuffix(ending))[-1] + ending
        same_name = tables.catalogue().by_file_name.get(name, ())
        files += [f for f in same_name if import_evidence(language, path, module, f) >= IMPORTED]
    return files


def constants(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return number and text of the lines that define a constant at top level."""
    return [(n, line) for n, line in enumerate(lines, 1) if _CONSTANT.match(line)]


def _value(lines: Sequence[str], number: int) -> list[str]:
    """Return line `number` with its indented or closing lines, or to the end of its quotes."""
    end, quoted = number, lines[number - 1].count('"""') % 2
    indent = lines[number - 1][: indent_of(lines[number - 1])]
    inside = tuple(indent + mark for mark in (" ", "\t", *_CLOSING))
    while end < len(lines) and (quoted or lines[end].startswith(inside)):
        quoted = (quoted + lines[end].count('"""')) % 2
        end += 1
    return list(lines[number - 1 : end])


def _doubts(
    tables: Tables, terms: Sequence[str], guess: str, places: Sequence[CodeSpan]
) -> Iterable[str]:
    """Yield a warning if `places` hold few of the `terms`, and the words that stand nowhere."""
    text = "\n".join(f"{span.path} {span.text}" for span in places).lower()
    missing = [word for word in terms if not form_pattern(word).search(text)]
    if len(missing) > WEAK_SHARE * len(terms):
        first = ", ".join(missing[:MOST_ABSENT])
        yield f"Weak: none of this code contains {first}. Try another guess."
    names = tables.catalogue().names
    unknown = [name for name in _CALLED.findall(guess) if name_key(name) not in names]
    words = list(dict.fromkeys(missing + unknown))
    searches = []
    for word in words:
        text = " ".join((*search_tokens(word)[-1:], *variants(word)))
        searches += [TextSearch(table, text, 1) for table in UNIT_TABLES]
    hits = tables.best(searches)
    per_word = len(UNIT_TABLES)
    absent = [word for n, word in enumerate(words) if not any(hits[n * per_word :][:per_word])]
    if absent:
        yield f"Found nowhere here: {', '.join(absent[:MOST_ABSENT])}."


def symbol_definition(box: Toolbox, name: str) -> ToolResult:
    """Return the definitions of `name` as `whole` gives them; stubs and overloads get a line."""
    units = definitions(box.tables(), name)
    if not units:
        return _assigned(box, name) or no_definition(box.tables(), name)
    first = [unit for unit in units[:MOST_MEANT] if not unit.is_stub] or units[:MOST_MEANT]
    places, parts = list[CodeSpan](), list[str]()
    for unit in first:
        span, text = whole(box, unit)
        places.append(span)
        parts.append(text)
    others = [f"{unit.qualified_name} [{unit.span}]" for unit in units if unit not in first]
    if others:
        parts.append(f"Also: {', '.join(others[:MOST_NAMED_BESIDE])}")
    summary = f"{name} has {counted(len(units), 'definition')}"
    return list_result(summary, parts, "Put its owner before the name.", total=len(units),
                       apart="\n\n", items=places)  # fmt: skip


def definitions(tables: Tables, name: str) -> list[Unit]:
    """Return the definitions of `name`: source first, members later, signatures last."""
    mentions, _ = resolve_mentions(tables, [name.removeprefix("@").removesuffix("()")])
    ids: list[str] = []
    for mention in mentions:
        ids += mention.units
    return sorted(
        tables.by_ids(ids), key=lambda u: (u.role != "source", u.is_stub, bool(u.class_name))
    )


def _assigned(box: Toolbox, name: str) -> ToolResult | None:
    """Return where a constant or variable of that name gets its value."""
    if not name.isidentifier():
        return None
    matches = box.files.find_lines(declaring_pattern(name), box.files.matching(), regex=True)
    spots: list[tuple[list[str], str, int]] = []
    for path in matches.lines:
        text = box.files.read(path).text.split("\n")
        spots += [(text, path, number) for number in declaring_lines(text, name)]
    if not spots:
        return None
    places, parts = list[CodeSpan](), list[str]()
    for text, path, number in spots[:MOST_VALUED]:
        lines = _value(text, number)
        last = number + len(lines) - 1
        head = f"--- {path} (lines {number}-{last}) ---"
        parts.append("\n".join([head] + numbered(lines, number)))
        places.append(
            CodeSpan(path=path, start_line=number, end_line=last, text="\n".join(lines),
                  language=language_name(path), name=name, kind="value")
        )  # fmt: skip
    summary = f"{name} is given a value in {counted(len(spots), 'place')}"
    left = len(spots) - len(parts)
    return list_result(summary, parts, "Use grep for all.", left=left, apart="\n\n", items=places)


def no_definition(tables: Tables, name: str) -> ToolResult:
    """Return that nothing has this name, and the nearest names."""
    summary = f"nothing here is called {name}"
    near = nearest_names(tables, re.split(r"\W+", name)[-1])
    hint = f"The nearest {'names are' if len(near) > 1 else 'name is'} {some_of(near, len(near))}."
    if not near:
        hint = "No name is near it; grep looks for it as text."
    text = f"{summary}. {hint}"
    return ToolResult(summary=summary, text=text, unknown=name, completeness=hint)
