"""A question against the index: what it points at, filters out, and misspells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from codeqa.search.channels import Candidates, QueryEncoder, filter_of, gather, patterns
from codeqa.search.mentions import Mention, looks_like_path, resolve_mentions
from codeqa.search.query import Query, with_words
from codeqa.search.query_filters import KINDS
from codeqa.search.question_languages import asking_words
from codeqa.search.spelling import repaired, spelling_warning
from codeqa.search.vocabulary import QUESTION_WORDS
from codeqa.store import Filter, Tables, nearest_words


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
    respelled = repaired(tables, query, found)
    if respelled is not None:
        query, found = respelled, gather(tables, respelled, encoders)
        warnings.append(spelling_warning(query))
    return query, found, warnings


def resolve_query(tables: Tables, query: Query) -> tuple[Query, list[str]]:
    """`query` with its mentions resolved, and what there is to say about them and its filters."""
    warnings: list[str] = []
    if query.pointed:
        mentions, unknown = resolve_mentions(tables, query.pointed)
        query = _without_places(replace(query, mentions=tuple(mentions)))
        warnings += [_not_there(tables, text) for text in unknown if looks_like_path(text)]
        warnings += [text for mention in mentions if (text := _several(mention))]
    if query.filtered or query.unknown_kinds:
        warnings += filter_warnings(tables, query)
    return query, warnings


def filter_warnings(tables: Tables, query: Query) -> list[str]:
    """Why the filters let nothing through, as sentences; [] when they let something through."""
    warnings = [_no_kind(kind) for kind in query.unknown_kinds]
    where = filter_of(query)
    if where is None or tables.holds(where):
        return warnings
    catalogue = tables.catalogue()
    before = len(warnings)
    for value in query.languages:
        if value not in catalogue.languages:
            rest = _meant(nearest_words(value, catalogue.languages), _listed(catalogue.languages))
            warnings.append(f"No indexed file is written in lang:{value}; {rest}")
    for path in query.paths:
        if not tables.holds(Filter(paths=tuple(patterns(path, prefix=True)))):
            near = nearest_words(path.rstrip("/"), [one.rstrip("/") for one in catalogue.folders])
            near = near or nearest_words(path, catalogue.paths)
            rest = _meant(near, "use another or leave it out.")
            warnings.append(f"No indexed file's path matches path:{path}; {rest}")
    if len(warnings) == before:
        warnings.append("No indexed code meets all filters of the question; use fewer of them.")
    return warnings


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
    describing = set(less.words) - asking_words(less.words, QUESTION_WORDS)
    return less if describing else query


def _several(mention: Mention) -> str:
    places = mention.files or mention.folders
    if len(places) < 2:
        return ""
    return f"@{mention.text} is {len(places)} places: {', '.join(places)}."


def _not_there(tables: Tables, text: str) -> str:
    catalogue = tables.catalogue()
    known: Iterable[str] = catalogue.folders if text.endswith("/") else catalogue.paths
    near = [f"@{one}" for one in nearest_words(text, known)]
    rest = _meant(near, "it was searched for as words.")
    return f"No indexed file or folder is called @{text}; {rest}"


def _no_kind(value: str) -> str:
    rest = _meant(nearest_words(value.lower(), KINDS), _listed(KINDS))
    return f"kind:{value} is no kind of unit and was searched for as a word; {rest}"


def _meant(near: list[str], otherwise: str) -> str:
    return f"did you mean {near[0]}?" if near else otherwise


def _listed(values: Iterable[str]) -> str:
    return f"there is {', '.join(sorted(values)) or 'nothing'}."
