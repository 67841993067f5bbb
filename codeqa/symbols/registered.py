"""Where that is read which a definition keeps for later: who calls the callbacks that
`on_close(callback)` appends to `self.close_callbacks`.

No edge leads from the registration to the call, only the name of the collection does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeqa.store import Filter, Tables, TextSearch
from codeqa.text.tokens import search_tokens, words
from codeqa.types import Unit

READERS = 5
"""Units that are named; a collection is read in one or two places."""
CANDIDATES = 50
"""Units with the name of the collection among which the readers are looked for."""

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


@dataclass(frozen=True, slots=True)
class Reader:
    """A unit that goes through the collection `name`, and the line where it does."""

    name: str
    unit: Unit
    line: int


def readers(tables: Tables, unit: Unit) -> list[Reader]:
    """The source that goes through what `unit` keeps its parameters in; [] where it keeps none."""
    found: list[Reader] = []
    for name in kept_in(unit):
        search = TextSearch("methods", search_tokens(name)[-1], CANDIDATES, _SOURCE)
        through = re.compile(_GOES_THROUGH.format(re.escape(name)))
        for one, _ in tables.find(search):
            lines = enumerate(one.source_code.split("\n"), one.start_line)
            first = next((number for number, line in lines if through.search(line)), 0)
            if first and one.id != unit.id:
                found.append(Reader(name, one, first))
    return found[:READERS]


def kept_in(unit: Unit) -> list[str]:
    """Names of the attributes into which `unit` puts one of its parameters."""
    taken = dict.fromkeys(words(unit.signature.partition("(")[2]))
    names: dict[str, None] = {}
    for line in unit.source_code.split("\n"):
        for parameter in taken:
            if stored := re.search(_KEEPS.format(re.escape(parameter)), line):
                names[stored[1]] = None
    return list(names)


_SOURCE = Filter(roles=("source",)).sql()
