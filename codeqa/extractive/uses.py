"""Where a definition is used, in words: what reads that which it registers, then the source that
calls it, then tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from codeqa.extractive.doc_comment import inline
from codeqa.repository.roles import role_of
from codeqa.store import Filter, Tables, TextSearch
from codeqa.symbols import UsageSite, usages
from codeqa.symbols.surroundings import CANDIDATES
from codeqa.text.citation_format import ShownLines
from codeqa.text.markdown import cite, code_span
from codeqa.text.tokens import name_key, search_tokens, words
from codeqa.types import TEXT_KINDS, Hit, Unit

USES = 5
USES_ASKED = 20
"""Places of use listed, and when the question asks for them."""
TESTS = 3
"""Tests among them, unless there is little else."""
READERS = 5
"""Units that are named; a collection is read in one or two places."""
NAMESAKES = 20
"""Definitions of one name whose uses are listed together."""
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
_SURE = ((0.9, "certain"), (0.6, "likely"), (0.0, "possible"))
"""Confidence from which a place of use is called so."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Places that use a definition."""

    sites: tuple[tuple[UsageSite, str], ...] = ()
    """The surest, source before tests, each with the name of the unit around it, '' for none."""
    total: int = 0
    in_tests: int = 0
    """Lines, and those of them that are in tests."""
    readers: tuple[tuple[str, Unit, int], ...] = ()
    """Names of collections that it puts its parameters in, each with a unit that goes through it
    and the line."""

    def spans(self) -> list[ShownLines]:
        """The lines that are cited."""
        places = [(site.reference.path, site.reference.line, inside) for site, inside in self.sites]
        places += [(unit.path, line, unit.qualified_name) for _, unit, line in self.readers]
        return [ShownLines(path, line, line, inside) for path, line, inside in places]


def find_uses(
    tables: Tables, hit: Hit, *, listed: bool, asked: bool = False, namesakes: bool = False
) -> Uses:
    """Where `hit`, and with `namesakes` all that is called so, is used: how often, and where
    `listed`, in which places."""
    # Two uses on one line are one place to read.
    lines: dict[tuple[str, int], UsageSite] = {}
    for site in usages(tables, hit.unit, limit=CANDIDATES).references:
        lines.setdefault((site.reference.path, site.reference.line), site)
    if namesakes and listed:
        own, source_only = hit.unit, Filter(roles=("source",))
        for one in tables.named([name_key(own.name)], NAMESAKES, source_only):
            if one.name == own.name and one.is_method and own.is_method and one.id != own.id:
                for site in usages(tables, one, limit=CANDIDATES).references:
                    told = replace(site, reason=f"{one.qualified_name}, {site.reason}")
                    lines.setdefault((site.reference.path, site.reference.line), told)
    roles = [(role_of(path), site) for (path, _), site in lines.items()]
    tests = [site for role, site in roles if role == "test"]
    if not listed:
        return Uses(total=len(lines), in_tests=len(tests))
    # What calls it before what only imports it, source before examples.
    roles.sort(key=lambda one: (one[0] != "source", one[1].reference.kind == "import"))
    source = [site for role, site in roles if role != "test"]
    kept = source[: USES_ASKED if asked else USES]
    kept += tests[: max(TESTS, 0 if source else USES)]
    around = {
        unit.id: unit.qualified_name
        for unit in tables.by_ids([site.reference.unit_id for site in kept])
        if unit.kind not in TEXT_KINDS
    }
    sites = tuple((site, around.get(site.reference.unit_id, "")) for site in kept)
    read = tuple(islice(_readers(tables, hit.unit), READERS)) if asked else ()
    return Uses(sites, len(lines), len(tests), read)


def uses_section(uses: Uses, *, asked: bool) -> str:
    """Markdown of `uses`; '' where there are none and they were not `asked` for."""
    blocks = []
    if uses.readers:
        names = ", ".join(code_span(name) for name in dict.fromkeys(r[0] for r in uses.readers))
        items = []
        for _, unit, line in uses.readers:
            text = unit.source_code.split("\n")[line - unit.start_line]
            place = f"{cite(unit.path, line, line)} in {code_span(unit.qualified_name)}"
            items.append(f"- {place}: {code_span(text)}")
        title = f"**It keeps what it is given in {names}, which is read in**"
        blocks.append(f"{title}:\n\n" + "\n".join(items))
    times = f"{uses.total:,} place{'s' if uses.total != 1 else ''}"
    if uses.in_tests:
        all_of = uses.in_tests == uses.total
        times += ", in tests" if all_of else f", {uses.in_tests:,} of them in tests"
    if not uses.total:
        blocks += ["No place that uses it was found."] if asked and not blocks else []
    elif not uses.sites:
        blocks.append(f"Used in {times}.")
    else:
        more = uses.total - len(uses.sites)
        items = [_site(site, inside) for site, inside in uses.sites]
        shown = sum(role_of(site.reference.path) == "test" for site, _ in uses.sites)
        tests = ", in tests" if more == uses.in_tests - shown else ""
        items += [f"- and {more:,} more{tests}"] if more else []
        blocks.append(f"**Used in {times}**:\n\n" + "\n".join(items))
    return "\n\n".join(blocks)


def _site(site: UsageSite, inside: str) -> str:
    place = cite(site.reference.path, site.reference.line, site.reference.line)
    around = f" in {code_span(inside)}" if inside else ""
    sure = next(word for least, word in _SURE if site.confidence >= least)
    return f"- {place}{around}, {sure}: {inline(site.reason)}"


def _readers(tables: Tables, unit: Unit) -> Iterator[tuple[str, Unit, int]]:
    """What goes through the collections that `unit` puts its parameters in: who calls the callbacks
    that `on_close(callback)` appends to `self.close_callbacks`. No edge leads from the one to the
    other, only the collection's name does.
    """
    taken = "|".join(map(re.escape, words(unit.signature.partition("(")[2])))
    keeps = re.compile(_KEEPS.format(f"(?:{taken})"))
    lines = unit.source_code.split("\n") if taken else []
    kept = [match[1] for line in lines if (match := keeps.search(line[:LONGEST_LINE]))]
    for name in dict.fromkeys(kept):
        through = re.compile(_GOES_THROUGH.format(re.escape(name)))
        where = Filter(roles=("source",)).sql()
        for one, _ in tables.find(TextSearch("methods", search_tokens(name)[-1], NAMED, where)):
            numbered = enumerate(one.source_code.split("\n"), one.start_line)
            line = next((n for n, text in numbered if through.search(text[:LONGEST_LINE])), 0)
            if line and one.id != unit.id:
                yield name, one, line
