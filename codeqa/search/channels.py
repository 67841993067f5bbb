"""Resolve a question against the index, and find units by text, symbols, paths and vectors.

Every channel is bounded. A misspelt name is repaired only where it is surely meant as a name
(written as code, or all there is to the question), and only when neither a definition nor any text
of the index holds it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from codeqa.asked import asks
from codeqa.embeddings.registry import Embedding
from codeqa.search.mentions import Mention, frames_here, looks_like_path, resolve_mentions
from codeqa.search.query import QUESTION_WORDS, Query, is_foreign, with_words
from codeqa.store import UNIT_TABLES, Filter, Tables, TextSearch, VectorSearch, path_patterns
from codeqa.store.catalogue import nearest
from codeqa.store.schema import plain_path
from codeqa.text.tokens import (
    last_word,
    name_key,
    search_tokens,
    split_identifier,
    variants,
    words,
)
from codeqa.types import KINDS, ROLES, TEXT_KINDS, Unit

CANDIDATES_PER_CHANNEL = 120
"""Units fetched per table and channel. 70 loses .015 ndcg@10 and .03 recall@10 of files, since
what is far down in one channel may be first in another; fetching all loses .01 again."""
NAMED_LIMIT = 200
"""Definitions fetched by name; a name with more (`__init__`, `get`) says little."""
NAMED_FILES = 5
"""Most files of which all units become candidates when the question names them."""

OVERVIEW_FILES = ("README*", "readme*", "Readme*", "ARCHITECTURE*", "docs/README*")
MANIFESTS = (
    "pyproject.toml", "setup.cfg", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml",
    "build.gradle*", "composer.json", "*.gemspec", "build.sbt", "Package.swift", "CMakeLists.txt",
)  # fmt: skip

ChannelHit = tuple[str, Unit, float]
"""Channel, unit, score in that channel."""

QUALIFIED_STRENGTH = 1.0
"""Strength of a symbol match: owner and name as written (`Flask.route`)."""
NAMED_STRENGTH = 0.8
"""A name written as code, or a name that is the whole question or its subject: "how does
simplify decide …" asks for the function of that name, not for what speaks of simplifying."""
RESPELLED_STRENGTH = 0.6
"""A name written as code, with letters in another case: `newAPI` is not the `NewAPI` that is
asked for, where there are both (+.02 ndcg@10 on the development questions about symbols)."""
JOINED_STRENGTH = 0.5
"""Neighbouring words of the question joined are the name ("path router" → PathRouter)."""
IN_MENTIONED_FILE = 0.25
"""Strength of a unit in a file that `@` points at, against 1 for a definition: all units of the
file are lifted alike, and its best are guaranteed anyway."""


LENGTH_WEIGHT = 0.1
LONGEST_WEIGHED = 100
"""A cosine is multiplied by 1 + LENGTH_WEIGHT · ln(lines), of at most LONGEST_WEIGHED lines: very
short texts match easily, and people ask for code that does something."""

NAMESAKE_SHARE = 0.5
"""Factor for the head of a file that is called like the file, and a constructor that is called
like its class: the class of that name is what people mean."""
MANIFEST_STRENGTH = 0.3
"""Strength of a manifest, which says the supported versions; a README of an overview has 1."""

EDITS_BY_LENGTH = ((16, 3), (8, 2), (4, 1))
"""(letters, edits): a name of at least so many letters may differ by so many edits."""
LEAST_COGNATE, COGNATE_ENDING = 5, 4
"""Letters that a foreign word must share with a name, and those that may differ at its end."""
MOST_EQUALLY_NEAR = 3
"""If more names than this are equally near, the misspelt one is left alone."""
LEAST_LIKENESS = 60
"""Least likeness (0 to 100) of a path or word for "did you mean …?"."""
INNER_FRAMES = 5
"""Innermost frames of a traceback whose code is sure to be found."""
WRITTEN_BY_HAND = tuple(role for role in ROLES if role not in ("vendored", "generated"))
"""Roles of files in which a word counts as known: generated translations hold any word."""


@dataclass(slots=True)
class Candidates:
    """Units that channels found, with the score of each per channel (higher is better)."""

    units: dict[str, Unit] = field(default_factory=dict)
    channels: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, hits: Iterable[ChannelHit]) -> Candidates:
        """Collect `hits`; of several scores of a unit in one channel the highest counts."""
        candidates = cls()
        for channel, unit, score in hits:
            candidates.units.setdefault(unit.id, unit)
            scores = candidates.channels.setdefault(channel, {})
            scores[unit.id] = max(score, scores.get(unit.id, score))
        return candidates


def filter_of(query: Query) -> Filter | None:
    """Return the index filter for the question's `lang:`, `kind:`, `path:` and `@folder/`."""
    if not query.filtered:
        return None
    paths: list[str] = []
    for path in query.filters.paths:
        paths += path_patterns(path)
    for mention in query.mentions:
        paths += mention.folders
    excluded: list[str] = []
    for path in query.filters.excluded_paths:
        excluded += path_patterns(path, prefix=False)
    return replace(query.filters, paths=tuple(paths), excluded_paths=tuple(excluded))


def gather(
    tables: Tables, query: Query, encoders: Mapping[str, Embedding] | None = None
) -> Candidates:
    """Return the candidates of every channel that the index and the question allow.

    `encoders`: vector column → the encoder of the embedding that filled it. Raises what
    the tables and the encoders raise.
    """
    where = filter_of(query)
    hits = search_words(tables, full_text_query(query), query.text, where, encoders or {})
    hits += search_symbols(tables, query, where)
    for path in query.files:
        hits += search_file(tables, query, path, where)
    for mention in query.mentions:
        hits += search_mention(tables, query, mention)
    if query.overview:
        hits += search_overview(tables)
    if asks("supported_version", query.text):
        manifests = tables.units(Filter(paths=MANIFESTS))
        hits += [("overview", unit, MANIFEST_STRENGTH) for unit in manifests]
    return Candidates.of(hits)


def search_words(
    tables: Tables,
    text: str,
    meaning: str,
    where: Filter | None,
    encoders: Mapping[str, Embedding],
    *,
    limit: int = CANDIDATES_PER_CHANNEL,
    prefix: str = "",
) -> list[ChannelHit]:
    """Search both tables by words and by meaning, all at the same time.

    By words is BM25 of `text` over identifier-split text, in the channel `text`. By meaning are the
    units nearest to `meaning` by the vectors of each column with an encoder, in the channel of the
    column's name. `prefix` stands before the channels' names.
    """
    searches: list[tuple[str, TextSearch | VectorSearch]] = [
        ("text", TextSearch(table, text, limit, where)) for table in UNIT_TABLES
    ]
    for column, encoder in encoders.items():
        # The embedding gives zeros for a text of which it knows nothing; these find nothing.
        vector = encoder.embed_query(meaning)
        searches += [
            (column, VectorSearch(table, column, vector, limit, where)) for table in UNIT_TABLES
        ]
    hits: list[ChannelHit] = []
    results = tables.best([search for _, search in searches])
    for (channel, _), scored_units in zip(searches, results, strict=True):
        for unit, score in scored_units:
            factor = 1.0 if channel == "text" else length_factor(unit)
            hits.append((prefix + channel, unit, score * factor))
    return hits


def full_text_query(query: Query) -> str:
    """Return the tokens of the question twice and their other forms once.

    A repeated token counts twice, so a form weighs half of the word as typed; that measures
    better than forms of equal weight and than none (+.02 ndcg@10, +.03 recall@10).
    """
    forms = dict.fromkeys(chain.from_iterable(map(variants, query.words)))
    others = [form for form in forms if form not in query.tokens]
    return " ".join(query.tokens + query.tokens + tuple(others))


def search_symbols(tables: Tables, query: Query, where: Filter | None) -> list[ChannelHit]:
    """Return the definitions whose name the question holds, with the strength of the match.

    Units that share a name share its strength: `RequestContext` defined once is an answer, `set_up`
    defined ninety times is a coincidence.
    """
    names = frozenset(map(name_key, query.names))
    keys = list(dict.fromkeys(tuple(names) + query.joined))
    units = [u for u in tables.named(keys, NAMED_LIMIT, where) if u.kind not in TEXT_KINDS]
    namesakes = Counter(name_key(unit.name) for unit in units)
    hits: list[ChannelHit] = []
    for unit in units:
        strength = symbol_strength(unit, query, names)
        stem = unit.path.rpartition("/")[2].split(".", 1)[0]
        namesake = {"constructor": last_word(unit.class_name), "module": stem}.get(unit.kind)
        if unit.name == namesake and strength < QUALIFIED_STRENGTH:
            strength *= NAMESAKE_SHARE
        if strength < NAMED_STRENGTH:
            strength /= namesakes[name_key(unit.name)] ** 0.5
        if strength:
            hits.append(("symbol", unit, strength))
    return hits


def symbol_strength(unit: Unit, query: Query, names: frozenset[str]) -> float:
    """Return how strongly the question names `unit`: one of the *_STRENGTH above, or 0.

    `names` are the keys of the names written as code. A plain word that is also a name is a word:
    "what happens when a view raises" asks for no View.
    """
    dotted = "." + re.sub(r"::|#", ".", unit.qualified_name).lower()
    if any(dotted.endswith("." + name.lower()) for name in query.qualified):
        return QUALIFIED_STRENGTH
    key = name_key(unit.name)
    owners: set[str] = set()
    for name in query.qualified:
        owners.update(map(name_key, name.split(".")[:-1]))
    if key in owners:
        return 0.0  # `Flask` of `Flask.route` says where to look, not what is asked for
    if key in names:
        return NAMED_STRENGTH if unit.name in query.names else RESPELLED_STRENGTH
    if query.symbol_like and key in query.joined:
        return NAMED_STRENGTH
    if unit.name in query.subjects and not unit.class_name:
        return NAMED_STRENGTH
    return 0.0 if key in map(name_key, query.words) else JOINED_STRENGTH


def search_file(tables: Tables, query: Query, path: str, where: Filter | None) -> list[ChannelHit]:
    """Return units of a file or folder that the question names: all of a few files, and by words.

    Units that match the other words of the question are also hits of the channel `text`.
    """
    if where is not None and where.paths:  # the question asks for other paths
        return []
    within = replace(where or Filter(), paths=path_patterns(plain_path(path), prefix=False))
    text_hits = search_words(tables, full_text_query(query), query.text, within, {})
    units = [unit for _, unit, _ in text_hits]
    if not path.endswith("/"):  # a file belongs there even where no word of it matches
        in_files = tables.units(within)
        files = list(dict.fromkeys(unit.path for unit in in_files))[:NAMED_FILES]
        units += [unit for unit in in_files if unit.path in files]
    return text_hits + [("path", unit, 1.0) for unit in units]


def search_mention(tables: Tables, query: Query, mention: Mention) -> list[ChannelHit]:
    """Return the units that `@` points at, whatever paths the question is restricted to.

    Of a file, return the units of the languages and kinds asked for, all of them where it has none.
    """
    if mention.units:
        return [("mention", unit, 1.0) for unit in tables.by_ids(mention.units)]
    units = list(chain.from_iterable(map(tables.in_file, mention.files)))
    matching_units = [unit for unit in units if _passes(unit, query.filters)]
    return [("mention", unit, IN_MENTIONED_FILE) for unit in matching_units or units]


def _passes(unit: Unit, filters: Filter) -> bool:
    if filters.kinds and unit.kind not in filters.kinds:
        return False
    return not filters.languages or unit.language in filters.languages


def search_overview(tables: Tables) -> list[ChannelHit]:
    """Return what the repository says about itself: the README and its like at the root."""
    units = tables.units(Filter(kinds=tuple(sorted(TEXT_KINDS)), paths=OVERVIEW_FILES))
    texts = [unit for unit in units if len(unit.source_code.split()) > 8]
    return [
        ("overview", unit, 1 / rank) for rank, unit in enumerate(texts[:CANDIDATES_PER_CHANNEL], 1)
    ]


def length_factor(unit: Unit) -> float:
    """Return the factor on a cosine with `unit` for its length."""
    lines = min(unit.end_line - unit.start_line + 1, LONGEST_WEIGHED)
    return 1 + LENGTH_WEIGHT * math.log(lines)


# The question and the index


def resolve_query(tables: Tables, query: Query) -> tuple[Query, list[str]]:
    """Return `query` resolved against the index, and warnings about its names and filters.

    Mentions are looked up, and misspelt names are replaced by the nearest.
    """
    warnings: list[str] = []
    query = replace(query, filters=tables.plain_filter(query.filters))
    if query.pointed:
        mentions, unknown = resolve_mentions(tables, query.pointed)
        query = _without_places(replace(query, mentions=tuple(mentions)))
        for text in filter(looks_like_path, unknown):
            paths = tables.catalogue().folders if text.endswith("/") else tables.catalogue().paths
            rest = _did_you_mean(text, paths, "it was searched for as words.", "@")
            warnings.append(f"No indexed file or folder is called @{text}; {rest}")
        for mention in mentions:
            matches = mention.files or mention.folders
            if len(matches) > 1:
                warnings.append(f"@{mention.text} is {len(matches)} places: {', '.join(matches)}.")
    if query.traceback:
        units = [unit for unit, _ in frames_here(tables, query.traceback.frames)]
        innermost = tuple(Mention(unit.span, units=(unit.id,)) for unit in units[:INNER_FRAMES])
        query = replace(query, mentions=query.mentions + innermost)
    query, replacements = _respelled(tables, query)
    return query, warnings + filter_warnings(tables, query) + replacements


def filter_warnings(tables: Tables, query: Query) -> list[str]:
    """Return sentences on why the filters let nothing through; [] when they do let something."""
    where = filter_of(query)
    if where is None or tables.holds(where):
        return []
    warnings = []
    languages, filters = tables.catalogue().languages, query.filters
    for key, values, choices in (
        ("lang", filters.languages, languages),
        ("kind", filters.kinds, KINDS),
    ):
        for value in set(values) - choices:
            rest = _did_you_mean(value, choices)
            warnings.append(f"No indexed code is {key}:{value}; {rest}")
    for path in filters.paths:
        if not tables.holds(Filter(paths=path_patterns(path))):
            hint = near_path(tables, path) or "Use another or leave it out."
            warnings.append(f"No indexed file's path matches path:{path}. {hint}")
    return warnings or ["No indexed code meets all filters of the question; use fewer of them."]


def near_path(tables: Tables, path: str) -> str:
    """Return "Did you mean …?" with the indexed path most like `path`; '' where none is."""
    catalogue = tables.catalogue()
    paths = catalogue.paths.union(folder.rstrip("/") for folder in catalogue.folders)
    choices = {path.rpartition("/")[2]: path for path in sorted(paths, reverse=True)}
    choices.update(zip(paths, paths, strict=True))
    near = _most_like(path.rstrip("/"), choices)
    return f"Did you mean {choices[near]}?" if near else ""


def _did_you_mean(word: str, choices: Iterable[str], otherwise: str = "", mark: str = "") -> str:
    if near := _most_like(word, choices):
        return f"did you mean {mark}{near}?"
    return otherwise or f"there is {', '.join(sorted(choices)) or 'nothing'}."


def _most_like(word: str, choices: Iterable[str]) -> str:
    """Return the one of `choices` most like `word`; '' where none has LEAST_LIKENESS."""
    from rapidfuzz import fuzz, process

    match = process.extractOne(
        word, sorted(choices), scorer=fuzz.ratio, score_cutoff=LEAST_LIKENESS
    )
    return match[0] if match else ""


def _without_places(query: Query) -> Query:
    """Return `query` without the words of the files and folders that it points at.

    They say where to look, not what for. They stay where nothing else would be left.
    """
    text = query.text
    for mention in query.mentions:
        if mention.files or mention.folders:
            text = text.replace(mention.text, " ")
    if not text.strip() or text == query.text:
        return query
    shorter = with_words(query, text)
    return query if QUESTION_WORDS.issuperset(shorter.words) else shorter


def _respelled(tables: Tables, query: Query) -> tuple[Query, list[str]]:
    """Return `query` with misspelt names replaced by the nearest, and a sentence for each."""
    names = list(query.names)
    if query.symbol_like and len(query.words) == 1:
        names += [word for word in words(query.text) if word.lower() == query.words[0]]
    text, warnings = query.text, []
    if is_foreign(text):
        text = _in_code(tables, query) or text
    for name in dict.fromkeys(names):
        if near := nearest_names(tables, name):
            whole_name = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
            text = re.sub(whole_name, " ".join(near).replace("\\", r"\\"), text, flags=re.I)
            noun = "names" if len(near) > 1 else "name"
            rest = f"searched for the nearest {noun} {', '.join(near)}."
            warnings.append(f"Nothing is called {name}; {rest}")
    if text != query.text:
        query = with_words(replace(query, text=text), text)
    return query, warnings


def _in_code(tables: Tables, query: Query) -> str:
    """Return the words of a question in another language that the index can find.

    These are the words that it holds, and for each other word the names that begin alike:
    `exponentiel` → exponential.
    """
    names = chain.from_iterable(tables.catalogue().names.values())
    parts = sorted(set(chain.from_iterable(map(split_identifier, names))))
    indexed_words, cognates = {name.lower() for name in query.names}, list[str]()
    for word in query.words:
        bare = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
        start = bare[: max(LEAST_COGNATE, len(bare) - COGNATE_ENDING)]
        if any(tables.best([TextSearch(table, word, 1) for table in UNIT_TABLES])):
            indexed_words.add(word)
        elif len(start) >= LEAST_COGNATE:
            cognates += [part for part in parts if part.startswith(start)][:MOST_EQUALLY_NEAR]
    if not indexed_words and not cognates:
        return ""
    text = query.text
    for word in set(words(text)):
        if word.lower() not in indexed_words:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "", text)
    return " ".join(text.split() + cognates)


def nearest_names(tables: Tables, name: str) -> tuple[str, ...]:
    """Return the names of the index that `name` is a misspelling of; () when it is none."""
    key = name_key(name)
    catalogue = tables.catalogue()
    if key in catalogue.names or not allowed_edits(key):
        return ()
    parts = [key] if key.isascii() else search_tokens(key)
    tokens, where = " ".join([*parts, *variants(key)]), Filter(roles=WRITTEN_BY_HAND)
    if any(tables.best([TextSearch(table, tokens, 1, where) for table in UNIT_TABLES])):
        return ()  # a text holds it, as it is or in another form of the word
    names = nearest(catalogue.names, key, allowed_edits(key))
    return tuple(names) if len(names) <= MOST_EQUALLY_NEAR else ()


def allowed_edits(key: str) -> int:
    """Return how many edits are forgiven in a name of that key (`tokens.name_key`)."""
    return next((edits for letters, edits in EDITS_BY_LENGTH if len(key) >= letters), 0)
