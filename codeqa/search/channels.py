"""A question against the index: what it points at, filters out and misspells, and the ways in
which units are found for it, each bounded: text, symbols, paths, vectors.

Of names only what is surely meant as one is repaired (written as code, or all there is to the
question), and only when neither a definition nor any text of the index holds it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from codeqa.embeddings.registry import Embedding
from codeqa.search.mentions import Mention, frames_here, looks_like_path, resolve_mentions
from codeqa.search.query import QUESTION_WORDS, Query, is_foreign, with_words
from codeqa.store import UNIT_TABLES, Filter, Tables, TextSearch, VectorSearch, path_patterns
from codeqa.store.catalogue import nearest
from codeqa.store.schema import plain_path
from codeqa.text.tokens import last_word, name_key, split_identifier, variants, words
from codeqa.types import KINDS, ROLES, TEXT_KINDS, Unit

CANDIDATES = 120
"""Units fetched per table and channel. 70 loses .015 ndcg@10 and .03 recall@10 of files, for what
one channel has far down the other may have first; all that there are lose .01 again."""
NAMED_LIMIT = 200
"""Definitions fetched by name; a name with more (`__init__`, `get`) says little."""
NAMED_FILES = 5
"""Files of which all units are read when the question names them."""

OVERVIEW_FILES = ("README*", "readme*", "Readme*", "ARCHITECTURE*", "docs/README*")
MANIFESTS = (
    "pyproject.toml", "setup.cfg", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml",
    "build.gradle*", "composer.json", "*.gemspec", "build.sbt", "Package.swift", "CMakeLists.txt",
)  # fmt: skip
_VERSIONS = re.compile(
    r"(?i)\b(?:what|which|minimum|lowest|oldest)\b[^.?!]{0,40}\bversions?\b[^.?!]*"
    r"\b(?:support|requir|need|run|work|compatible)|\b(?:minimum|supported) [\w. ]{,20}version"
)

ChannelHit = tuple[str, Unit, float]
"""Channel, unit, score there."""

QUALIFIED = 1.0
"""Strength of a symbol match: owner and name as written (`Flask.route`)."""
NAMED = 0.8
"""A name written as code, or the whole question is that name, or what it is about: "how does
simplify decide …" asks for the function of that name, not for what speaks of simplifying."""
RESPELLED = 0.6
"""A name written as code, in other letters than here: `newAPI` is not the `NewAPI` that is
asked for, where there are both (+.02 ndcg@10 on the development questions about symbols)."""
JOINED = 0.5
"""Neighbouring words of the question joined are the name ("path router" → PathRouter)."""
IN_MENTIONED_FILE = 0.25
"""Strength of a unit in a file that `@` points at, against 1 for a definition: all of a file
are lifted alike, and its best are guaranteed besides."""


LENGTH_WEIGHT = 0.1
LONGEST = 100
"""A cosine counts 1 + LENGTH_WEIGHT · ln(lines), lines up to LONGEST: of two words in a text of
three both easily fit, and people ask for what does something."""

NAMESAKE_SHARE = 0.5
"""The head of a file is called as the file, and in some languages a constructor as its class: the
class of that name is what is meant."""
MANIFEST = 0.3
"""Strength of what says which versions are supported, against 1 for the README of an overview."""

EDITS = ((16, 3), (8, 2), (4, 1))
"""Letters of a name from which on so many edits are forgiven; in fewer than four each counts."""
LEAST_COGNATE, COGNATE_ENDING = 5, 4
"""Letters that a word of another language shares with a name at least, and those that may differ at
its end."""
MOST_NAMES = 3
"""Equally near names that take the place of one; where more are as near, none is meant."""
LIKENESS = 60
"""Of 100: how like a path or a word is what is asked back for it."""
INNER_FRAMES = 5
"""Frames of a traceback whose code is sure to be found, the innermost."""
WRITTEN_BY_HAND = tuple(role for role in ROLES if role not in ("vendored", "generated"))
"""Roles of files in which a word counts as known: translations hold any word."""


@dataclass(slots=True)
class Candidates:
    """Units found, and per channel the score that each got there (higher is better)."""

    units: dict[str, Unit] = field(default_factory=dict)
    channels: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, hits: Iterable[ChannelHit]) -> Candidates:
        """Of two scores of a unit in the same channel the higher one counts."""
        found = cls()
        for channel, unit, score in hits:
            found.units.setdefault(unit.id, unit)
            scores = found.channels.setdefault(channel, {})
            scores[unit.id] = max(score, scores.get(unit.id, score))
        return found


def filter_of(query: Query) -> Filter | None:
    """The SQL filter that the question's `lang:`, `kind:`, `path:` and `@folder/` ask for."""
    if not query.filtered:
        return None
    folders = (folder for mention in query.mentions for folder in mention.folders)
    asked = (p for path in query.filters.paths for p in path_patterns(path))
    without = query.filters.excluded_paths
    excluded = (p for path in without for p in path_patterns(path, prefix=False))
    return replace(query.filters, paths=(*asked, *folders), excluded_paths=tuple(excluded))


def gather(
    tables: Tables, query: Query, encoders: Mapping[str, Embedding] | None = None
) -> Candidates:
    """Ask every channel that the index and the question allow.

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
    if _VERSIONS.search(query.text):
        hits += [("overview", unit, MANIFEST) for unit in tables.units(Filter(paths=MANIFESTS))]
    return Candidates.of(hits)


def search_words(
    tables: Tables,
    text: str,
    meaning: str,
    where: Filter | None,
    encoders: Mapping[str, Embedding],
    *,
    limit: int = CANDIDATES,
    prefix: str = "",
) -> list[ChannelHit]:
    """By text, in both tables: BM25 of `text` over identifier-split text, and the units nearest
    to `meaning` by the vectors of each column that there is an encoder for, all at the same time.

    The channels are `text` and the columns' names, with `prefix` before them.
    """
    searches: list[tuple[str, TextSearch | VectorSearch]] = [
        ("text", TextSearch(table, text, limit, where)) for table in UNIT_TABLES
    ]
    for column, encoder in encoders.items():
        # A vector of zeros, for a text of which the embedding knows nothing, finds nothing.
        vector = encoder.embed_query(meaning)
        searches += [
            (column, VectorSearch(table, column, vector, limit, where)) for table in UNIT_TABLES
        ]
    hits: list[ChannelHit] = []
    found = tables.best([search for _, search in searches])
    for (channel, _), units in zip(searches, found, strict=True):
        for unit, score in units:
            factor = 1.0 if channel == "text" else length_factor(unit)
            hits.append((prefix + channel, unit, score * factor))
    return hits


def full_text_query(query: Query) -> str:
    """The tokens of the question twice and their other forms once.

    A token that stands twice counts twice, so a form weighs half of what was asked; that
    measures better than forms of equal weight and than none (+.02 ndcg@10, +.03 recall@10).
    """
    forms = dict.fromkeys(form for word in query.words for form in variants(word))
    others = [form for form in forms if form not in query.tokens]
    return " ".join([*query.tokens, *query.tokens, *others])


def search_symbols(tables: Tables, query: Query, where: Filter | None) -> list[ChannelHit]:
    """Definitions whose name the question holds, with the strength of the match.

    Words that many units are called by are divided among them: `RequestContext` defined once is an
    answer, `set_up` defined ninety times is a coincidence.
    """
    named = frozenset(name_key(name) for name in query.names)
    wanted = list(dict.fromkeys((*named, *query.joined)))
    found = tables.named(wanted, NAMED_LIMIT, where)
    units = [unit for unit in found if unit.kind not in TEXT_KINDS]
    namesakes = Counter(name_key(unit.name) for unit in units)
    hits: list[ChannelHit] = []
    for unit in units:
        strength = symbol_strength(unit, query, named)
        stem = unit.path.rpartition("/")[2].split(".", 1)[0]
        meant = {"constructor": last_word(unit.class_name), "module": stem}.get(unit.kind)
        if unit.name == meant and strength < QUALIFIED:
            strength *= NAMESAKE_SHARE
        if strength < NAMED:
            strength /= namesakes[name_key(unit.name)] ** 0.5
        if strength:
            hits.append(("symbol", unit, strength))
    return hits


def symbol_strength(unit: Unit, query: Query, named: frozenset[str]) -> float:
    """How the question names `unit`: QUALIFIED, NAMED, RESPELLED or JOINED; 0 when it does not.

    A plain word that is also a name is a word: "what happens when a view raises" asks for no View.
    """
    dotted = "." + re.sub(r"::|#", ".", unit.qualified_name).lower()
    if any(dotted.endswith("." + name.lower()) for name in query.qualified):
        return QUALIFIED
    key = name_key(unit.name)
    owners = {name_key(part) for name in query.qualified for part in name.split(".")[:-1]}
    if key in owners:
        return 0.0  # `Flask` of `Flask.route` says where to look, not what is asked for
    if key in named:
        return NAMED if unit.name in query.names else RESPELLED
    if query.symbol_like and key in query.joined:
        return NAMED
    if unit.name in query.subjects and not unit.class_name:
        return NAMED
    single = {name_key(word) for word in query.words}
    return 0.0 if key in single else JOINED


def search_file(tables: Tables, query: Query, path: str, where: Filter | None) -> list[ChannelHit]:
    """Units of a file or folder that the question names, by its other words and all of them."""
    if where is not None and where.paths:  # it asks for other paths
        return []
    within = replace(where or Filter(), paths=path_patterns(plain_path(path), prefix=False))
    found = search_words(tables, full_text_query(query), query.text, within, {})
    hits: list[ChannelHit] = [("path", unit, 1.0) for _, unit, _ in found]
    hits += found
    if not path.endswith("/"):  # a file is wanted even where no word of it matches
        units = tables.units(within)
        files = list(dict.fromkeys(unit.path for unit in units))[:NAMED_FILES]
        hits += [("path", unit, 1.0) for unit in units if unit.path in files]
    return hits


def search_mention(tables: Tables, query: Query, mention: Mention) -> list[ChannelHit]:
    """What `@` points at, whatever paths the question is restricted to.

    Of a file the units of the languages and kinds asked for, all of them where it has none.
    """
    if mention.units:
        return [("mention", unit, 1.0) for unit in tables.by_ids(mention.units)]
    units = [unit for path in mention.files for unit in tables.in_file(path)]
    asked = [
        unit
        for unit in units
        if (not query.filters.kinds or unit.kind in query.filters.kinds)
        and (not query.filters.languages or unit.language in query.filters.languages)
    ]
    return [("mention", unit, IN_MENTIONED_FILE) for unit in asked or units]


def search_overview(tables: Tables) -> list[ChannelHit]:
    """The repository's own account of itself: the README and its like at the root."""
    units = tables.units(Filter(kinds=tuple(sorted(TEXT_KINDS)), paths=OVERVIEW_FILES))
    first: list[Unit] = [unit for unit in units if len(unit.source_code.split()) > 8]
    return [("overview", unit, 1 / rank) for rank, unit in enumerate(first[:CANDIDATES], 1)]


def length_factor(unit: Unit) -> float:
    """What a cosine with `unit` is multiplied by for the length of it."""
    lines = min(unit.end_line - unit.start_line + 1, LONGEST)
    return 1 + LENGTH_WEIGHT * math.log(lines)


# The question and the index


def resolve_query(tables: Tables, query: Query) -> tuple[Query, list[str]]:
    """`query` as the index understands it, with its mentions resolved and misspelt names in the
    spelling of the nearest; and what there is to say about these and its filters."""
    warnings: list[str] = []
    query = replace(query, filters=tables.plain_filter(query.filters))
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
        inner = tuple(Mention(unit.place, units=(unit.id,)) for unit in units[:INNER_FRAMES])
        query = replace(query, mentions=(*query.mentions, *inner))
    query, respelled = _respelled(tables, query)
    return query, [*warnings, *filter_warnings(tables, query), *respelled]


def filter_warnings(tables: Tables, query: Query) -> list[str]:
    """Why the filters let nothing through, as sentences; [] when they let something through."""
    where = filter_of(query)
    if where is None or tables.holds(where):
        return []
    warnings = []
    catalogue = tables.catalogue()
    languages, kinds = query.filters.languages, query.filters.kinds
    for key, values, known in (("lang", languages, catalogue.languages), ("kind", kinds, KINDS)):
        for value in {*values} - known:
            warnings.append(f"No indexed code is {key}:{value}; {_did_you_mean(value, known)}")
    for path in query.filters.paths:
        if not tables.holds(Filter(paths=path_patterns(path))):
            hint = near_path(tables, path) or "Use another or leave it out."
            warnings.append(f"No indexed file's path matches path:{path}. {hint}")
    none = "No indexed code meets all filters of the question; use fewer of them."
    return warnings or [none]


def near_path(tables: Tables, path: str) -> str:
    """Return the question whether the indexed file or folder was meant that is called most like
    `path`; '' where none is."""
    from rapidfuzz import fuzz, process

    catalogue = tables.catalogue()
    places = {*catalogue.paths, *(folder.rstrip("/") for folder in catalogue.folders)}
    named = {place.rpartition("/")[2]: place for place in sorted(places, reverse=True)}
    choices = {**named, **{place: place for place in places}}
    near = process.extractOne(
        path.rstrip("/"), sorted(choices), scorer=fuzz.ratio, score_cutoff=LIKENESS
    )
    return f"Did you mean {choices[near[0]]}?" if near else ""


def _did_you_mean(word: str, known: Iterable[str], otherwise: str = "", mark: str = "") -> str:
    from rapidfuzz import fuzz, process

    if near := process.extractOne(word, sorted(known), scorer=fuzz.ratio, score_cutoff=LIKENESS):
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


def _respelled(tables: Tables, query: Query) -> tuple[Query, list[str]]:
    """`query` with the nearest names in the place of misspelt ones, and what was taken for what."""
    names = list(query.names)
    if query.symbol_like and len(query.words) == 1:
        names += [word for word in words(query.text) if word.lower() == query.words[0]]
    text, warnings = query.text, []
    if is_foreign(text):
        text = _in_code(tables, query) or text
    for name in dict.fromkeys(names):
        if near := nearest_names(tables, name):
            whole = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
            text = re.sub(whole, " ".join(near).replace("\\", r"\\"), text, flags=re.I)
            said = f"searched for the nearest name{'s' if len(near) > 1 else ''} {', '.join(near)}"
            warnings.append(f"Nothing is called {name}; {said}.")
    return with_words(replace(query, text=text), text) if text != query.text else query, warnings


def _in_code(tables: Tables, query: Query) -> str:
    """What of a question in another language the index holds, and for the rest the names that begin
    alike: `exponentiel` → exponential. What is nowhere says nothing here."""
    named = tables.catalogue().names.values()
    parts = sorted({p for same in named for name in same for p in split_identifier(name)})
    held, alike = {name.lower() for name in query.names}, list[str]()
    for word in query.words:
        bare = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
        start = bare[: max(LEAST_COGNATE, len(bare) - COGNATE_ENDING)]
        if any(tables.best([TextSearch(table, word, 1) for table in UNIT_TABLES])):
            held.add(word)
        elif len(start) >= LEAST_COGNATE:
            alike += [part for part in parts if part.startswith(start)][:MOST_NAMES]
    text = query.text
    for word in set(words(text)):
        if word.lower() not in held:
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "", text)
    return " ".join([*text.split(), *alike]) if held or alike else ""


def nearest_names(tables: Tables, name: str) -> tuple[str, ...]:
    """The names of the index that `name` is a misspelling of; () when it is none."""
    key = name_key(name)
    catalogue = tables.catalogue()
    if key in catalogue.names or not allowed_edits(key):
        return ()
    tokens, where = " ".join((key, *variants(key))), Filter(roles=WRITTEN_BY_HAND)
    if any(tables.best([TextSearch(table, tokens, 1, where) for table in UNIT_TABLES])):
        return ()  # a text holds it, as it is or in another form of the word
    found = nearest(catalogue.names, key, allowed_edits(key))
    return tuple(found) if len(found) <= MOST_NAMES else ()


def allowed_edits(key: str) -> int:
    """Edits that are forgiven in a name of that key (`tokens.name_key`)."""
    return next((forgiven for letters, forgiven in EDITS if len(key) >= letters), 0)
