"""List the uses of a definition, each with how sure it is, and say what a name in a line means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pydantic import BaseModel

from codeqa.code.calls import is_test, unread
from codeqa.code.evidence import LIKELY, MOST_EDGES, SURENESS, UsageSite, sureness
from codeqa.code.tools.search import MOST_MEANT, definitions, no_definition
from codeqa.code.tools.tool import (
    Arrow,
    CodeSpan,
    Toolbox,
    ToolResult,
    by_file,
    list_result,
)
from codeqa.code.usages import meant_at, reads_of, usages
from codeqa.repository.classify import role_of
from codeqa.store import Tables
from codeqa.text import counted, some_of
from codeqa.text.tokens import last_word
from codeqa.types import Unit

MOST_REFERENCES = 50
MOST_USES = 200
"""Places listed that use the definition of a name in a line."""
MOST_ALSO = 12
"""Further lines that are named for one function."""
CERTAIN, POSSIBLE = SURENESS[0][1], SURENESS[-1][1]
AT_LEAST = "at least "
UNSEEN = "Calls by a computed name (reflection, a table of functions) are not seen."


def references(box: Toolbox, name: str, kind: str = "") -> ToolResult:
    """Return the places that call, use, import or inherit a definition, by the function around.

    A function has its first line and the numbers of further ones, marked where a use is not
    certain. For a `kind` (`call`) those in tests and the possible ones are counted, not listed.
    """
    tables = box.tables()
    units = definitions(tables, name)
    plain_name = name.removesuffix("()")
    edges = tables.references(name=[last_word(plain_name)], limit=MOST_EDGES)
    edges = [edge for edge in edges if edge.kind != "import" or edge.module]  # no exports
    meanings = _meanings(tables, units)
    if not units:  # of what is defined elsewhere no more is known than its name
        owner = plain_name.rpartition(".")[0]
        edges += reads_of(tables, last_word(plain_name), edges)
        same_owner = [edge for edge in edges if owner in ("", edge.receiver)]
        meanings = {UsageSite(edge, 0.0): "" for edge in same_owner}
    sites = [site for site in meanings if kind in ("", site.reference.kind)]
    verb = "called" if kind else "referred to"
    if kind and not sites:  # nothing calls it by name: who hands it on is nearest to a caller
        sites = [site for site in meanings if site.reference.kind == "use"]
        verb = "never called by name, but used as a value" if sites else verb
    if not units and not sites:
        return no_definition(tables, name)
    groups = use_spans(tables, sites, kind)
    shown_spans = _listed(groups, kind)
    parts = by_file((span.path, _use_line(span)) for span in shown_spans[:MOST_REFERENCES])
    sentences = _how_sure(sites, groups)
    if not units:
        sentences.append(f"{name} is not defined here.")
    if len({(unit.path, unit.qualified_name) for unit in units}) > 1:  # overloads are one
        sentences.append(_shares(units, Counter(meanings[site] for site in sites)))
    further = len({*edges}.difference(site.reference for site in meanings))
    sentences += _left_out(len(meanings) - len(sites), further)
    at_least = ""
    if max(len(edges), len(meanings)) >= MOST_EDGES:
        at_least = AT_LEAST
        sentences.append(f"Only the first {MOST_EDGES:,} places of that name were looked at.")
    first = [span for span, _ in groups[:MOST_REFERENCES]]
    end = units[0].qualified_name if len(units) == 1 else last_word(name)
    sentences.append(UNSEEN if sites else unread(tables, units) + UNSEEN)
    return list_result(
        f"{name} is {verb} in {at_least}{counted(len(sites), 'place')}", parts,
        "grep finds all lines that hold the name.", total=len(sites),
        left=len(shown_spans) - len(parts), places=tuple(first), edges=_edges_to(end, first),
        completeness=" ".join(sentences),
    )  # fmt: skip


def _left_out(others: int, further: int) -> list[str]:
    """Return sentences that count the places of another kind, and those of another meaning."""
    sentences: list[str] = []
    if others:
        places = counted(others, "place")
        sentences.append(f"Not counted: {places} of another kind, such as imports.")
    if further > 0:
        places = counted(further, "further place")
        sentences.append(f"{places} of that name may mean something else.")
    return sentences


def _listed(groups: Iterable[tuple[CodeSpan, bool]], kind: str) -> list[CodeSpan]:
    """Return the places to list: for a `kind` those outside tests that are at least likely."""
    places, surer = list[CodeSpan](), list[CodeSpan]()
    for span, in_test in groups:
        places.append(span)
        if kind and not in_test and POSSIBLE not in span.note:
            surer.append(span)
    return surer or places


def _use_line(span: CodeSpan) -> str:
    text = str(span.start_line)
    if span.name:
        text += f" in {span.name}"
    if span.note:
        text += f", {span.note}"
    return f"{text}: {span.text}"


def _how_sure(sites: Iterable[UsageSite], groups: Iterable[tuple[CodeSpan, bool]]) -> list[str]:
    """Return sentences that count the places of each level of sureness, and those in tests."""
    sentences: list[str] = []
    levels = Counter(sureness(site.confidence) for site in sites)
    numbers = [f"{levels[word]:,} {word}" for _, word in SURENESS if levels[word]]
    if len(levels) == 1:
        numbers = [f"all {next(iter(levels))}"]
    if levels:
        text = ", ".join(numbers)
        by_name = " (only the name is the same)" if levels[POSSIBLE] else ""
        sentences.append(f"{text[0].upper()}{text[1:]}{by_name}.")
    in_tests = sum(span.times for span, in_test in groups if in_test)
    if in_tests:
        sentences.append(f"{in_tests:,} of these in tests.")
    return sentences


def _shares(units: Sequence[Unit], numbers: Mapping[str, int]) -> str:
    """Say how many of the places mean each of `units`; `numbers` are by the unit's id."""
    first = sorted(units, key=lambda unit: -numbers[unit.id])[:MOST_MEANT]
    shares = [f"{unit.qualified_name} [{unit.span}] {numbers[unit.id]:,}" for unit in first]
    text = ", ".join(shares)
    if len(units) > MOST_MEANT:
        text += ", the others fewer or none"
    if numbers[""]:
        text += f"; {numbers['']:,} may mean any of them"
    return f"{len(units):,} definitions have this name: {text}."


def _edges_to(end: str, places: Iterable[CodeSpan]) -> tuple[Arrow, ...]:
    """Return an edge to `end` from each definition with a use that is at least likely."""
    starts = [span.name or span.path for span in places if POSSIBLE not in span.note]
    return tuple(Arrow(start=start, end=end) for start in dict.fromkeys(starts))


def _meanings(tables: Tables, units: Iterable[Unit]) -> dict[UsageSite, str]:
    """Return the places that use one of `units`, the surest first, with the id of that unit.

    A reference that may mean several of them comes once, with '' if it means none of them surest.
    """
    once: dict[tuple[str, int, int], tuple[UsageSite, str]] = {}
    for unit in units:
        for site in usages(tables, unit, reads=True):
            position = (site.reference.path, site.reference.line, site.reference.column)
            best, _ = once.get(position, (site, ""))
            if position not in once or site.confidence > best.confidence:
                once[position] = (site, unit.id)
            elif site.confidence == best.confidence:
                once[position] = (best, "")
    return dict(sorted(once.values(), key=lambda pair: -pair[0].confidence))


def use_spans(
    tables: Tables, sites: Sequence[UsageSite], kind: str = ""
) -> list[tuple[CodeSpan, bool]]:
    """Group `sites` by the definition around them and by how sure they are.

    Return each group as a span, with whether it is in a test: what is at least likely first, then
    source before tests. `kind` is the one that was asked for, which the notes need not name.
    """
    around = _units_around(tables, sites)
    groups: dict[tuple[str, str, str, str], list[UsageSite]] = {}
    for site in sites:
        reference, level = site.reference, sureness(site.confidence)
        key = (reference.path, reference.unit_id, reference.kind, f"{level} {site.through}")
        groups.setdefault(key, []).append(site)
    ranked_spans: list[tuple[tuple[bool, bool, float], CodeSpan]] = []
    for group in groups.values():
        first, confidence = group[0].reference, group[0].confidence
        unit = around.get(first.unit_id)
        in_test = is_test(unit) if unit else role_of(first.path) == "test"
        rank = (confidence < LIKELY, in_test, -confidence)
        ranked_spans.append((rank, _use_span(group, unit, kind)))
    ranked_spans.sort(key=lambda pair: pair[0])
    return [(span, in_test) for (_, in_test, _), span in ranked_spans]


def _units_around(tables: Tables, sites: Iterable[UsageSite]) -> dict[str, Unit]:
    """Return id → unit of the units that the places are in."""
    units = tables.by_ids([site.reference.unit_id for site in sites])
    return {unit.id: unit for unit in units}


def _use_span(sites: Sequence[UsageSite], around: Unit | None, kind: str = "") -> CodeSpan:
    """Return the first of `sites`, which are in one definition, with the lines of the others."""
    first = sites[0].reference
    line, *others = sorted({site.reference.line for site in sites})
    notes = [] if first.kind == kind else [first.kind]
    if sites[0].through:
        notes.append(f"through {sites[0].through}")
    notes.append(_doubt(sites[0].confidence))
    if others:
        lines = some_of(list(map(str, others)), MOST_ALSO)
        notes.append(f"also {'lines' if len(others) > 1 else 'line'} {lines}")
    return CodeSpan(
        path=first.path,
        start_line=line,
        end_line=line,
        text=code_line(around, line).strip() if around else "",
        name=around.qualified_name if around else "",
        kind=first.kind,
        note=", ".join(filter(None, notes)),
        times=len(sites),
    )


def _doubt(confidence: float) -> str:
    """Return `confidence` as a word, '' when it is certain."""
    word = sureness(confidence)
    return "" if word == CERTAIN else word


def code_line(unit: Unit, line: int) -> str:
    """Return a line of `unit` by its number in the file, '' when it does not have that line."""
    lines, index = unit.source_code.split("\n"), line - unit.start_line
    return lines[index] if 0 <= index < len(lines) else ""


class NameReport(BaseModel, frozen=True):
    """The meanings of a name in a line of a file, and where they are used."""

    definitions: tuple[CodeSpan, ...]
    """The likeliest first, `text` the first line of the signature; `note` where it is unsure."""
    uses: tuple[CodeSpan, ...]
    """Each line once, the surest first, source before tests."""
    total: int
    """Lines where it is used, listed or not."""


def name_at(box: Toolbox, path: str, line: int, name: str) -> NameReport:
    """Return what `name` in a line of a file means, and where that is used."""
    tables = box.tables()
    meant = meant_at(tables, path, line, name)[:MOST_MEANT]
    definitions: list[CodeSpan] = []
    for unit, confidence in meant:
        head = unit.signature.strip().partition("\n")[0]
        definitions.append(CodeSpan.of(unit, text=head, note=_doubt(confidence)))
    sites: dict[tuple[str, int], UsageSite] = {}
    for site in _meanings(tables, [unit for unit, _ in meant]):
        sites[site.reference.path, site.reference.line] = site
    first = list(sites.values())[:MOST_USES]
    around = _units_around(tables, first)
    uses = [_use_span([site], around.get(site.reference.unit_id)) for site in first]
    return NameReport(definitions=tuple(definitions), uses=tuple(uses), total=len(sites))
