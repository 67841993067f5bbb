"""Code-aware ranking: fused scores into a list of units and a list of files.

All weights are here, round, each with its reason. They stand on the fused score, which
runs from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from codeqa.retrieval.channels import NAMED, QUALIFIED, Candidates
from codeqa.retrieval.forms import variants, written_forms
from codeqa.retrieval.fusion import fuse, ranks
from codeqa.retrieval.query import Query
from codeqa.tokens import split_identifier, words
from codeqa.types import TEXT_KINDS, Hit, Unit

SYMBOL_WEIGHT = 1.0
"""The definition of what the question names stands before everything that mentions it."""
PATH_WEIGHT = 0.5
"""A file that the question names outranks the same match elsewhere, not a named symbol."""
COVERAGE_WEIGHT = 0.5
"""A unit that holds all words of the question against one that holds none. BM25 adds words
up, so that one rare word can stand before all of them together; anything from .4 to 1
measures the same (+.02 ndcg@10, +.06 hit@1 on the development questions)."""
COVERED_CHARACTERS = 4_000
"""Characters of a unit in which words are looked for: bounds the time, and keeps long
units from covering every question."""
OVERVIEW_WEIGHT = 2.0
"""For a question about the whole repository its README stands first, whatever the words."""
PHRASE_WEIGHT = 0.5
"""Quoted text found literally: the user asked for exactly this."""
STEM_WEIGHT = 0.3
"""Words of the question in the file's name or its folder: a file is named after what it
is for, and its text may say so only once. Vectors read the path as well: beside them it would
count twice (.3 loses .01 ndcg@10 and .02 hit@1 there, .15 measures as 0 does)."""
ROLE_PENALTY = 0.5
"""Tests, examples, benchmarks, documents, vendored and generated code repeat the words of
the code they are about; halving them was the largest single gain measured."""
REEXPORT_PENALTY = 0.5
"""`__init__.py`, `index.ts`, `.d.ts` name everything and define nothing."""
FILE_LIFT = 0.1
"""Each of a file's next three units adds this part of its score to the file: several hits
speak for the file (0 loses .02 ndcg@10 of files, more than .1 nothing more)."""
LIFTING_UNITS = 3

DIRECT_CHANNELS = frozenset({"symbol", "path", "overview"})
"""Channels whose score is a strength of its own rather than one to be fused."""

NAMELESS_STEMS = frozenset({"__init__", "mod", "index", "lib", "main", "doc"})
"""File names that say nothing: the folder says what the file is about."""

REEXPORT_FILES = frozenset(
    {"__init__.py", "index.ts", "index.js", "index.tsx", "package-info.java"}
)


@dataclass(frozen=True, slots=True)
class FileScore:
    """A file, its score, and its best unit."""

    path: str
    score: float
    best: Hit


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a question the signals look at, worked out once per search."""

    query: Query
    forms: frozenset[str]
    """The question's words, their parts and their other forms."""
    patterns: tuple[tuple[str, tuple[str, ...]], ...]
    """Each word with the forms under which a text may hold it."""
    overlaps: dict[str, float]
    """Path → its overlap, filled as paths come up."""

    @classmethod
    def of(cls, query: Query) -> Asked:
        return cls(query, word_forms(query.words), word_patterns(query.words), {})


def rank(found: Candidates, asked: Asked) -> list[Hit]:
    """All candidates as hits, best first; ties keep the order path, line.

    `why` is left to `explain`: finding the words costs more than ranking does.
    """
    scored = {name: s for name, s in found.channels.items() if name not in DIRECT_CHANNELS}
    fused = fuse(scored)
    positions = {name: ranks(scores) for name, scores in found.channels.items()}
    hits = []
    for key, unit in found.units.items():
        signals = unit_signals(unit, asked, fused.get(key, 0.0), found)
        score = sum(value for value, _ in signals)
        for factor, _ in pushed_back(unit, asked, found):
            score *= factor
        channels = {name: rank[key] for name, rank in positions.items() if key in rank}
        hits.append(Hit(unit, score, (), channels))
    hits.sort(key=lambda hit: (-hit.score, hit.unit.path, hit.unit.start_line))
    return hits


def unit_signals(
    unit: Unit, asked: Asked, fused: float, found: Candidates
) -> list[tuple[float, str]]:
    """What speaks for a candidate: its value on the score, and the name of the signal."""
    signals = [(fused, "words")] if fused else []
    coverage = word_coverage(unit, asked.patterns)
    if coverage:
        signals.append((COVERAGE_WEIGHT * coverage, "coverage"))
    symbol = found.channels.get("symbol", {}).get(unit.id, 0.0)
    if symbol:
        signals.append((SYMBOL_WEIGHT * symbol, "symbol"))
    if unit.id in found.channels.get("path", {}):
        signals.append((PATH_WEIGHT, "path"))
    overview = found.channels.get("overview", {}).get(unit.id, 0.0)
    if overview:
        signals.append((OVERVIEW_WEIGHT * overview, "overview"))
    literal = (*asked.query.phrases, *_uncalled(asked.query, found))
    if any(text in unit.source_code for text in literal):
        signals.append((PHRASE_WEIGHT, "phrase"))
    if unit.path not in asked.overlaps:
        asked.overlaps[unit.path] = path_overlap(unit.path, asked.forms)
    if asked.overlaps[unit.path] and not found.by_vectors:
        signals.append((STEM_WEIGHT * asked.overlaps[unit.path], "stem"))
    return signals


def penalties(unit: Unit, query: Query) -> list[tuple[float, str]]:
    """What pushes a candidate back: a factor on the score, and the words for it."""
    found = []
    if unit.role != "source" and unit.role not in query.roles:
        found.append((ROLE_PENALTY, f"behind source code: {unit.role}"))
    if is_reexport(unit.path) and unit.kind in ("module", *TEXT_KINDS):
        found.append((REEXPORT_PENALTY, "behind definitions: re-exports"))
    return found


def pushed_back(unit: Unit, asked: Asked, found: Candidates) -> list[tuple[float, str]]:
    """`penalties`, but none for what holds a looked-up name that nothing here is called by: a
    setting or a part of a message may be written in a document alone."""
    if any(name in unit.source_code for name in _uncalled(asked.query, found)):
        return []
    return penalties(unit, asked.query)


def _uncalled(query: Query, found: Candidates) -> tuple[str, ...]:
    """Names that the question looks up and that no unit has."""
    looked_up = query.symbol_like and not found.channels.get("symbol")
    return query.names if looked_up else ()


def explain(hit: Hit, found: Candidates, asked: Asked, changed: str = "") -> Hit:
    """`hit` with the reasons for its place in words, strongest first.

    `changed` says how its file differs from what was indexed, '' for not at all.
    """
    unit = hit.unit
    # Full text or vectors found it when a channel that is not direct ranks it.
    fused = 1.0 if set(hit.channels) - DIRECT_CHANNELS else 0.0
    symbol = found.channels.get("symbol", {}).get(unit.id, 0.0)
    matched = matching_words(unit, asked.patterns)
    matches = f"matches {', '.join(matched[:6])}" if matched else "its meaning is near"
    words = {
        "words": matches,
        "coverage": matches,
        "symbol": f"{'defines' if symbol >= NAMED else 'is named'} "
        f"{unit.qualified_name if symbol >= QUALIFIED else unit.name}",
        "path": "lies in a file that the question names",
        "overview": "is the repository's account of itself",
        "phrase": "holds the text as it was written",
        "stem": f"its path says {', '.join(_stem_words(unit.path, asked.forms))}",
    }
    signals = sorted(unit_signals(unit, asked, fused, found), key=lambda signal: -signal[0])
    why = list(dict.fromkeys(words[name] for _, name in signals))
    why += [text for _, text in pushed_back(unit, asked, found)]
    if changed:
        why.append(f"file {changed} since it was indexed")
    return replace(hit, why=(*why, *hit.why))


def rank_files(hits: Iterable[Hit]) -> list[FileScore]:
    """Files by their best unit, lifted by their next three; best first."""
    by_file: dict[str, list[Hit]] = {}
    for hit in hits:
        by_file.setdefault(hit.unit.path, []).append(hit)
    files = []
    for path, own in by_file.items():
        own.sort(key=lambda hit: -hit.score)
        lift = sum(hit.score for hit in own[1 : 1 + LIFTING_UNITS])
        files.append(FileScore(path, own[0].score + FILE_LIFT * lift, own[0]))
    files.sort(key=lambda file: (-file.score, file.path))
    return files


def matching_words(unit: Unit, patterns: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Words of the question that `unit` holds in any form, in the question's order."""
    text = f"{unit.path}\n{unit.qualified_name}\n{unit.source_code[:COVERED_CHARACTERS]}".lower()
    return [word for word, forms in patterns if any(form in text for form in forms)]


def word_coverage(unit: Unit, patterns: tuple[tuple[str, tuple[str, ...]], ...]) -> float:
    """Part of the question's words that `unit` holds, 0..1."""
    return len(matching_words(unit, patterns)) / len(patterns) if patterns else 0.0


def word_patterns(question: Iterable[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each word of a question with the forms that count as holding it."""
    return tuple((word, written_forms(word)) for word in question)


def word_forms(question: Iterable[str]) -> frozenset[str]:
    """The words of a question with their parts and their other forms."""
    return frozenset(
        form
        for word in question
        for part in (word, *split_identifier(word))
        for form in (part, *variants(part))
    )


def path_overlap(path: str, forms: frozenset[str]) -> float:
    """Part of the file's name that the question's words make up, 0..1."""
    parts = set(_stem_parts(path))
    return len(parts & forms) / len(parts) if parts else 0.0


def is_reexport(path: str) -> bool:
    """Whether the file's name says that it only gives names on."""
    file = path.rpartition("/")[2]
    return file in REEXPORT_FILES or file.endswith(".d.ts")


def _stem_words(path: str, forms: frozenset[str]) -> list[str]:
    return [part for part in dict.fromkeys(_stem_parts(path)) if part in forms]


def _stem_parts(path: str) -> list[str]:
    """Words of the file's name, or of its folder's where the file is called as all are."""
    folder, _, file = path.rpartition("/")
    stem = file.split(".", 1)[0] or file
    if stem in NAMELESS_STEMS:
        stem = folder.rpartition("/")[2]
    return [part for word in words(stem) for part in split_identifier(word) if len(part) > 1]
