"""Names of a question that are misspelt: nothing is called so, something is called nearly so.

Only what is surely meant as a name is repaired (written as code, or all there is to the
question), and only when neither a definition nor any text of the index holds it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from codeqa.search.channels import Candidates
from codeqa.search.query import Query, with_words
from codeqa.search.word_forms import variants
from codeqa.store import UNIT_TABLES, Filter, Tables, TextSearch
from codeqa.text.tokens import name_key, words
from codeqa.types import ROLES, Unit

EDITS = ((16, 3), (8, 2), (4, 1))
"""Letters of a name from which on so many edits are forgiven; in fewer than four each counts."""
MOST_NAMES = 3
"""Equally near names that take the place of one; where more are as near, none is meant."""
WRITTEN_BY_HAND = tuple(role for role in ROLES if role not in ("vendored", "generated"))
"""Roles of files in which a word counts as known: translations hold any word."""


def repaired(tables: Tables, query: Query, found: Candidates) -> Query | None:
    """`query` with the nearest names in the place of misspelt ones; None when none is.

    `found` is what `query` found: what stands there, in a name or in a text, is not misspelt.
    """
    pairs: dict[str, tuple[str, ...]] = {}
    for name in suspects(query, found):
        if nearest := nearest_names(tables, name):
            pairs[name] = nearest
    if not pairs:
        return None
    text = query.text
    for name, nearest in pairs.items():
        whole = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
        text = re.sub(whole, nearest[0].replace("\\", r"\\"), text, flags=re.I)
    again = with_words(query, text)
    others = [name for nearest in pairs.values() for name in nearest]
    return replace(
        again,
        text=text,
        names=tuple(dict.fromkeys((*again.names, *others))),
        joined=tuple(dict.fromkeys((*again.joined, *map(name_key, others)))),
        misspelt=tuple((name, near) for name, nearest in pairs.items() for near in nearest),
    )


def suspects(query: Query, found: Candidates) -> list[str]:
    """Names that the question looks up and that nothing in `found` holds."""
    names = list(query.names)
    if query.symbol_like and len(query.words) == 1:
        names += [word for word in words(query.text) if word.lower() == query.words[0]][:1]
    if not names:
        return []
    keys = {name_key(unit.name) for unit in found.units.values()}
    missing = [
        name
        for name in dict.fromkeys(names)
        if allowed_edits(name_key(name)) and name_key(name) not in keys
    ]
    if not missing:
        return []
    units = [unit for unit in found.units.values() if unit.role in WRITTEN_BY_HAND]
    texts = [unit.source_code.lower() for unit in units]
    return [name for name in missing if not any(name.lower() in text for text in texts)]


def nearest_names(tables: Tables, name: str) -> tuple[str, ...]:
    """The names of the index that `name` is a misspelling of; () when it is none."""
    key = name_key(name)
    names = tables.catalogue().names
    if key in names or _is_written(tables, name):
        return ()
    nearest = names.nearest(key, allowed_edits(key))
    if len({name_key(one) for one in nearest}) > MOST_NAMES:
        return ()
    from rapidfuzz.distance import OSA

    # `get_user` and `_getUser` have one key: the one that is spelled most alike is meant.
    alike: dict[str, str] = {}
    for one in sorted(nearest, key=lambda near: OSA.distance(name, near)):
        alike.setdefault(name_key(one), one)
    return tuple(alike.values())


def allowed_edits(key: str) -> int:
    """Edits that are forgiven in a name of that key (`tokens.name_key`)."""
    return next((forgiven for letters, forgiven in EDITS if len(key) >= letters), 0)


def _is_written(tables: Tables, name: str) -> bool:
    """Whether any text of the index holds `name`, as it is or in another form of the word."""
    whole = name_key(name)
    tokens = " ".join((whole, *variants(whole)))
    where = Filter(roles=WRITTEN_BY_HAND).sql()
    return any(tables.best([TextSearch(table, tokens, 1, where) for table in UNIT_TABLES]))


def nearest_name_reason(unit: Unit, query: Query) -> str:
    """What of the question was taken for the name of `unit`; '' when it was written as it is."""
    key = name_key(unit.name) if query.misspelt else ""
    written = next((name for name, near in query.misspelt if name_key(near) == key), "")
    return f"nothing is called {written}; the nearest name is {unit.name}" if written else ""


def spelling_warning(query: Query) -> str:
    """What was taken for what, as sentences; '' when nothing was misspelt."""
    told: dict[str, list[str]] = {}
    for name, nearest in query.misspelt:
        told.setdefault(name, []).append(nearest)
    return " ".join(
        f"Nothing is called {name}; searched for the nearest name{'s' if len(near) > 1 else ''}"
        f" {', '.join(near)}."
        for name, near in told.items()
    )
