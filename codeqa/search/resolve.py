"""A question against the index: what it points at, filters out, and misspells.

Of names only what is surely meant as one is repaired (written as code, or all there is to the
question), and only when neither a definition nor any text of the index holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from codeqa.search.channels import Candidates, QueryEncoder, filter_of, gather, patterns
from codeqa.search.mentions import Mention, frames_here, looks_like_path, resolve_mentions
from codeqa.search.query import KINDS, QUESTION_WORDS, Query, with_words
from codeqa.store import UNIT_TABLES, Filter, Tables, TextSearch
from codeqa.text.tokens import name_key, variants, words
from codeqa.types import ROLES

EDITS = ((16, 3), (8, 2), (4, 1))
"""Letters of a name from which on so many edits are forgiven; in fewer than four each counts."""
MOST_NAMES = 3
"""Equally near names that take the place of one; where more are as near, none is meant."""
INNER_FRAMES = 5
"""Frames of a traceback whose code is sure to be found, the innermost."""
WRITTEN_BY_HAND = tuple(role for role in ROLES if role not in ("vendored", "generated"))
"""Roles of files in which a word counts as known: translations hold any word."""


def find_candidates(
    tables: Tables, query: Query, encoders: Mapping[str, QueryEncoder] | None = None
) -> tuple[Query, Candidates, list[str]]:
    """`query` as the index understands it, what was found for it, and sentences that say what was
    understood otherwise than written.

    Where a name was misspelt every channel is asked once more. Raises what the tables and the
    encoders raise.
    """
    query, warnings = resolve_query(tables, query)
    found = gather(tables, query, encoders)
    if (respelled := repaired(tables, query, found)) is not None:
        query, warning = respelled
        found, warnings = gather(tables, query, encoders), [*warnings, warning]
    return query, found, warnings


def resolve_query(tables: Tables, query: Query) -> tuple[Query, list[str]]:
    """`query` with its mentions resolved, and what there is to say about them and its filters."""
    warnings: list[str] = []
    if query.pointed:
        mentions, unknown = resolve_mentions(tables, query.pointed)
        query = _without_places(replace(query, mentions=tuple(mentions)))
        for text in filter(looks_like_path, unknown):
            known = tables.catalogue().folders if text.endswith("/") else tables.catalogue().paths
            rest = _did_you_mean(text, known, "it was searched for as words.", "@")
            warnings.append(f"No indexed file or folder is called @{text}; {rest}")
        for mention in mentions:
            if len(places := mention.files or mention.folders) > 1:
                listed = ", ".join(places)
                warnings.append(f"@{mention.text} is {len(places)} places: {listed}.")
    if query.traceback:
        units = [unit for unit, _ in frames_here(tables, query.traceback.frames)]
        inner = tuple(Mention(unit.location, units=(unit.id,)) for unit in units[:INNER_FRAMES])
        query = replace(query, mentions=(*query.mentions, *inner))
    for kind in query.unknown_kinds:
        rest = _did_you_mean(kind.lower(), KINDS)
        warnings.append(f"kind:{kind} is no kind of unit and was searched for as a word; {rest}")
    return query, [*warnings, *filter_warnings(tables, query)]


def filter_warnings(tables: Tables, query: Query) -> list[str]:
    """Why the filters let nothing through, as sentences; [] when they let something through."""
    where = filter_of(query)
    if where is None or tables.holds(where):
        return []
    warnings = []
    catalogue = tables.catalogue()
    for value in query.filters.languages:
        if value not in catalogue.languages:
            rest = _did_you_mean(value, catalogue.languages)
            warnings.append(f"No indexed file is written in lang:{value}; {rest}")
    for path in query.filters.paths:
        if not tables.holds(Filter(paths=tuple(patterns(path, prefix=True)))):
            folders = {one.rstrip("/") for one in catalogue.folders}
            rest = _did_you_mean(path, catalogue.paths, "use another or leave it out.")
            rest = _did_you_mean(path.rstrip("/"), folders, rest)
            warnings.append(f"No indexed file's path matches path:{path}; {rest}")
    none = "No indexed code meets all filters of the question; use fewer of them."
    return warnings or [none]


def _did_you_mean(word: str, known: Iterable[str], otherwise: str = "", mark: str = "") -> str:
    from rapidfuzz import fuzz, process

    if near := process.extractOne(word, sorted(known), scorer=fuzz.ratio, score_cutoff=60):
        return f"did you mean {mark}{near[0]}?"
    return otherwise or f"there is {', '.join(sorted(known)) or 'nothing'}."


def _without_places(query: Query) -> Query:
    """`query` without the words of the files and folders that it points at, unless nothing would
    be left: they say where to look, not what for."""
    text = query.text
    for mention in query.mentions:
        if mention.files or mention.folders:
            text = text.replace(mention.text, " ")
    if not (text.strip() and text != query.text):
        return query
    less = with_words(query, text)
    return query if QUESTION_WORDS.issuperset(less.words) else less


def repaired(tables: Tables, query: Query, found: Candidates) -> tuple[Query, str] | None:
    """`query` with the nearest names in the place of misspelt ones, and sentences that say what
    was taken for what; None when none is misspelt.

    `found` is what `query` found: what stands there, in a name or in a text, is not misspelt.
    """
    tried = {name: nearest_names(tables, name) for name in suspects(query, found)}
    pairs = {name: nearest for name, nearest in tried.items() if nearest}
    if not pairs:
        return None
    text = query.text
    for name, nearest in pairs.items():
        whole = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
        text = re.sub(whole, nearest[0].replace("\\", r"\\"), text, flags=re.I)
    again = with_words(query, text)
    others = [name for nearest in pairs.values() for name in nearest]
    repaired = replace(
        again,
        text=text,
        names=tuple(dict.fromkeys((*again.names, *others))),
        joined=tuple(dict.fromkeys((*again.joined, *map(name_key, others)))),
        misspelt=tuple((name, near) for name, nearest in pairs.items() for near in nearest),
    )
    return repaired, " ".join(
        f"Nothing is called {name}; searched for the nearest name{'s' if len(near) > 1 else ''}"
        f" {', '.join(near)}."
        for name, near in pairs.items()
    )


def suspects(query: Query, found: Candidates) -> list[str]:
    """Names that the question looks up and that nothing in `found` holds."""
    names = list(query.names)
    if query.symbol_like and len(query.words) == 1:
        names += [word for word in words(query.text) if word.lower() == query.words[0]][:1]
    units = found.units.values()
    keys = {name_key(unit.name) for unit in units}

    def written(name: str) -> bool:
        by_hand = (unit.source_code for unit in units if unit.role in WRITTEN_BY_HAND)
        return name_key(name) in keys or any(name.lower() in code.lower() for code in by_hand)

    long = (name for name in dict.fromkeys(names) if allowed_edits(name_key(name)))
    return [name for name in long if not written(name)]


def nearest_names(tables: Tables, name: str) -> tuple[str, ...]:
    """The names of the index that `name` is a misspelling of; () when it is none."""
    key = name_key(name)
    names = tables.catalogue().names
    if key in names:
        return ()
    tokens, where = " ".join((key, *variants(key))), Filter(roles=WRITTEN_BY_HAND)
    if any(tables.best([TextSearch(table, tokens, 1, where) for table in UNIT_TABLES])):
        return ()  # a text holds it, as it is or in another form of the word
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
