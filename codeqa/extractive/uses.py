"""Where a definition is used, in words: what reads that which it registers, then the source that
calls it, then tests."""

from __future__ import annotations

import re

from codeqa.extractive.cited import NOTHING, Cited, cited_list, line_item, together
from codeqa.extractive.doc_comment import inline
from codeqa.repository.roles import role_of
from codeqa.store import Filter, Tables, TextSearch
from codeqa.symbols import UsageSite, usages
from codeqa.symbols.surroundings import CANDIDATES
from codeqa.text import counted
from codeqa.text.markdown import code_span
from codeqa.text.tokens import search_tokens, words
from codeqa.types import TEXT_KINDS, Unit

USES = 5
USES_ASKED = 20
"""Places of use listed, and when the question asks for them."""
TESTS = 3
"""Tests among them, unless there is little else."""
READERS = 5
"""Units that are named; a collection is read in one or two places."""
NAMED = 50
"""Units with the name of a collection among which its readers are looked for."""
LONGEST_LINE = 300
"""Characters of a line that are looked at."""

_KEEPS = (
    r"(?:\w(?:\.|->)|@)(\w{{3,}})(?:\[[^\]]*\]|(?:\.|->)\w+\([^()]*\))*"
    r"(?:(?:\.|->)(?:append|add|push|push_back|insert|put|set|extend|unshift|emplace)"
    r"\((?:[^()]*[,\s&])?{0}\s*\)|(?<=\])\s*=\s*{0}\s*;?\s*$|\s*=\s*append\([^()]*,\s*{0}\s*\))"
)
"""A line that puts the parameter `{0}` into an attribute of something: `self.callbacks.append(f)`,
`s->handlers[name] = f`, `s.hooks = append(s.hooks, f)`."""
_GOES_THROUGH = (
    r"\b(?:for|foreach|range|while)\b.*(?:\.|->|@){0}\b"
    r"|(?:\.|->|@){0}\b.*(?:\.(?:for)?[eE]ach|\.(?:into_)?iter|\.map|\[.+\]\)?\()"
)
"""A line that takes what is in the collection `{0}`, one after another or by its key."""


def uses_section(tables: Tables, unit: Unit, *, listed: bool, asked: bool = False) -> Cited:
    """How often `unit` is used, and where `listed` in which places: the surest, source before
    tests. '' for nowhere, unless that was `asked` for."""
    kept = _readers(tables, unit) if asked else NOTHING
    sites = _sites(tables, unit)
    tests = [site for site in sites if role_of(site.reference.path) == "test"]
    times = counted(len(sites), "place")
    if tests:
        times += ", in tests" if len(tests) == len(sites) else f", {len(tests):,} of them in tests"
    if not sites:
        return kept if kept.text or not asked else Cited("No place that uses it was found.")
    if not listed:
        return Cited(f"Used in {times}.")
    # What calls it before what only imports it, source before examples.
    source = [site for site in sites if role_of(site.reference.path) != "test"]
    source.sort(key=lambda o: (role_of(o.reference.path) != "source", o.reference.kind == "import"))
    source_shown = source[: USES_ASKED if asked else USES]
    shown = [*source_shown, *tests[: TESTS if source else USES]]
    around = {
        one.id: one.qualified_name
        for one in tables.by_ids([site.reference.unit_id for site in shown])
        if one.kind not in TEXT_KINDS
    }
    items = [_item(site, around.get(site.reference.unit_id, "")) for site in shown]
    note = ", in tests" if len(source_shown) == len(source) else ""
    used = cited_list(f"**Used in {times}**:", items, len(sites) - len(shown), note)
    return together([kept, used])


def _sites(tables: Tables, unit: Unit) -> list[UsageSite]:
    """The places of use; two uses on one line are one place to read."""
    lines: dict[tuple[str, int], UsageSite] = {}
    for site in usages(tables, unit, limit=CANDIDATES).references:
        lines.setdefault((site.reference.path, site.reference.line), site)
    return list(lines.values())


def _item(site: UsageSite, inside: str) -> Cited:
    around = f" in {code_span(inside)}" if inside else ""
    told = f"{around}, {site.sureness}: {inline(site.reason)}"
    return line_item(site.reference.path, site.reference.line, told, inside)


def _readers(tables: Tables, unit: Unit) -> Cited:
    """What goes through the collections that `unit` puts its parameters in: who calls the callbacks
    that `on_close(callback)` appends to `self.close_callbacks`. No edge leads from the one to the
    other, only the collection's name does.
    """
    taken = "|".join(map(re.escape, words(unit.signature.partition("(")[2])))
    keeps = re.compile(_KEEPS.format(f"(?:{taken})"))
    lines = unit.source_code.split("\n") if taken else []
    kept = [match[1] for line in lines if (match := keeps.search(line[:LONGEST_LINE]))]
    names: dict[str, None] = {}
    items: list[Cited] = []
    for name in filter(search_tokens, dict.fromkeys(kept)):  # of `___` there is nothing to find
        through = re.compile(_GOES_THROUGH.format(re.escape(name)))
        where = Filter(roles=("source",))
        for one, _ in tables.find(TextSearch("methods", search_tokens(name)[-1], NAMED, where)):
            numbered = enumerate(one.source_code.split("\n"), one.start_line)
            reads = ((n, text) for n, text in numbered if through.search(text[:LONGEST_LINE]))
            line, text = next(reads, (0, ""))
            if line and one.id != unit.id and len(items) < READERS:
                names[name] = None
                told = f" in {code_span(one.qualified_name)}: {code_span(text)}"
                items.append(line_item(one.path, line, told, one.qualified_name))
    kept_in = ", ".join(map(code_span, names))
    return cited_list(f"**It keeps what it is given in {kept_in}, which is read in**:", items)
