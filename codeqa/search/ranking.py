"""Code-aware ranking: scores of several channels into a list of units and a list of files.

Each channel is normalised to z-scores over the units it returned and the channels are added with
their weights; a unit that a channel did not return counts as a little worse than its worst. The
sum is scaled to 0..1. Scores rather than ranks, because the gap between the first and the second
hit is evidence that reciprocal ranks throw away (measured on the development questions: line
ndcg@10 .417 against .380 for the same channels).

Signals are added to this fused score: round weights, each with its reason. `channels` says how
strongly a unit matches a name (QUALIFIED_STRENGTH, NAMED_STRENGTH, …).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from codeqa.search.channels import JOINED_STRENGTH, NAMED_STRENGTH, QUALIFIED_STRENGTH, Candidates
from codeqa.search.query import Query
from codeqa.text.declared import declaring_lines
from codeqa.text.tokens import written_forms
from codeqa.types import Hit, Unit

WEIGHTS = {"text": 0.5, "vector": 1.0, "vector_refined": 1.0}
"""Weight of each scored channel. A vector sees the meaning of a question in plain words,
full text only its letters, so it counts double where there is one (measured)."""
DRAFT_WEIGHT = 1.0
"""Weight of each channel of a draft of the answer (their names begin with `hyde`). Measured with
first drafts written from the question alone (research/evals/drafts), hit@1 of files without
drafts, with those of a model that knows much, and with those of a hurried small one: development
.76, .90, .76; tuning .51, .85, .67; code that no model has read .26, .51, .48. At 2 the first
model gains .01 to .05 more and the small one loses .01 on development; at .3 both give less."""
MISSING = 0.5
"""A unit that a channel did not return counts this many standard deviations less than the
channel's worst: being found by a channel at all is worth something."""

SYMBOL_WEIGHT = 1.0
"""The definition of what the question names stands before everything that mentions it."""
PATH_WEIGHT = 0.5
"""A file that the question names outranks the same match elsewhere, not a named symbol."""
COVERAGE_WEIGHT = 0.75
"""Added to a unit that holds all words of the question. BM25 adds words up, so that one rare word
can outweigh all the others together."""
COVERED_CHARACTERS = 4_000
"""Characters of a unit in which words are looked for: bounds the time, and keeps long
units from covering every question."""
MENTION_WEIGHT = 2.0
"""Units that `@` points at are as sure as the README is for the whole repository."""
OVERVIEW_WEIGHT = 2.0
"""For a question about the whole repository its README comes first, whatever the words."""
PHRASE_WEIGHT = 0.5
"""Quoted text found literally: the user asked for exactly this."""
ROLE_FACTOR = 0.4
"""Tests, examples, benchmarks, documents, vendored and generated code repeat the words of
the code they are about; pushing them back was the largest single gain measured."""
ASKED_ROLE_FACTOR = 0.7
"""The same factor if the question has a word for them. "The test that checks how X is done" asks
for the test and for X, "how do I do X in tests" for X alone: they still repeat its words."""
TYPE_PENALTY = 0.2
"""Subtracted from a class that the question does not name, since it holds the words of all its
methods, each of which answers in fewer lines; and from a constant: its few words fit by chance."""
STUB_FACTOR = 0.5
"""A signature alone gives way to the definition that has the code."""
FILE_LIFT = 0.2
"""Each of a file's next three units adds this part of its score to the file: several hits
make the file more likely."""
LIFTING_UNITS = 3

PER_TABLE = 5
"""Hits kept per table."""

DIRECT_CHANNELS = frozenset({"symbol", "path", "overview", "mention"})
"""Channels whose score is a strength of its own rather than one to be fused."""

NAMED_KINDS = frozenset({"class", "struct", "enum", "trait", "interface", "constant"})
"""Kinds that people ask for by name rather than by content."""


@dataclass(frozen=True, slots=True)
class FileHit:
    """A file, its score, and its best unit."""

    path: str
    score: float
    best: Hit


class RankingSignals:
    """Facts about a question and all its candidates, computed once per ranking."""

    def __init__(self, candidates: Candidates, query: Query) -> None:
        self.query = query
        self.patterns = [(word, written_forms(word)) for word in query.words]
        self.channels = {name: candidates.channels.get(name, {}) for name in DIRECT_CHANNELS}
        """DIRECT_CHANNELS → unit id → strength."""
        looked_up = query.symbol_like and not self.channels["symbol"]
        self.undefined = query.names if looked_up else ()
        """Names that the question looks up and that no unit is called by."""
        self.literal = query.phrases + tuple(self.undefined)

    def explain(self, hit: Hit, changed: str = "") -> Hit:
        """Return `hit` with the reasons for its rank in words, strongest first.

        `changed` says how its file differs from what was indexed, '' for not at all.
        """
        unit, symbol = hit.unit, self.channels["symbol"].get(hit.unit.id, 0.0)
        matches = matching_words(unit, self.patterns)
        verb = "defines" if symbol >= NAMED_STRENGTH else "is named"
        name = unit.qualified_name if symbol >= QUALIFIED_STRENGTH else unit.name
        words = {
            "coverage": f"matches {', '.join(matches[:6])}" if matches else "its meaning is near",
            "symbol": f"{verb} {name}",
            "path": "lies in a file that the question names",
            "mention": "mentioned",
            "overview": "is the repository's account of itself",
            "phrase": "holds the text as it was written",
            "declared": "declares the name",
        }
        signals = unit_signals(unit, self)
        if set(hit.channels) - DIRECT_CHANNELS:  # full text or vectors found it
            signals.append((1.0, "coverage"))
        signals.sort(key=lambda signal: -signal[0])
        why = list(dict.fromkeys(words[signal] for _, signal in signals if signal in words))
        why += [text for _, text in penalties(unit, self)]
        if changed:
            why.append(f"file {changed} since it was indexed")
        return replace(hit, why=tuple(why) + hit.why)


def rank(candidates: Candidates, query: Query) -> list[Hit]:
    """Return all candidates as hits, best first; ties are in the order path, line.

    `RankingSignals.explain` fills in `why`: finding the words costs more than ranking.
    """
    scored = dict(candidates.channels)
    ranks: dict[str, dict[str, int]] = {key: {} for key in candidates.units}
    for name, scores in candidates.channels.items():
        if name in DIRECT_CHANNELS:
            del scored[name]
        ordered = sorted(scores, key=scores.__getitem__, reverse=True)
        for rank_in_channel, key in enumerate(ordered, 1):
            ranks[key][name] = rank_in_channel
    fused = fuse(scored)
    signals = RankingSignals(candidates, query)
    hits = []
    for key, unit in candidates.units.items():
        score = fused.get(key, 0.0)
        for value, _ in unit_signals(unit, signals):
            score += value
        score = max(0.0, score)
        for factor, _ in penalties(unit, signals):
            score *= factor
        hits.append(Hit(unit, score, (), ranks[key]))
    hits.sort(key=lambda hit: (-hit.score, hit.unit.path, hit.unit.start_line))
    return hits


def unit_signals(unit: Unit, signals: RankingSignals) -> list[tuple[float, str]]:
    """Return what is added to the fused score of a unit: values, each with its signal's name."""
    channels, key = signals.channels, unit.id
    symbol, matches = channels["symbol"].get(key, 0.0), matching_words(unit, signals.patterns)
    values = [
        (COVERAGE_WEIGHT * len(matches) / max(1, len(signals.patterns)), "coverage"),
        (SYMBOL_WEIGHT * symbol, "symbol"),
        (PATH_WEIGHT * channels["path"].get(key, 0.0), "path"),
        (MENTION_WEIGHT * channels["mention"].get(key, 0.0), "mention"),
        (OVERVIEW_WEIGHT * channels["overview"].get(key, 0.0), "overview"),
    ]
    if unit.kind in NAMED_KINDS and symbol < JOINED_STRENGTH:
        values.append((-TYPE_PENALTY, "type"))
    if holds_any(unit, signals.literal):
        values.append((PHRASE_WEIGHT, "phrase"))
        lines = unit.source_code.split("\n") if signals.undefined else []
        if any(declared for name in signals.undefined for declared in declaring_lines(lines, name)):
            values.append((PHRASE_WEIGHT, "declared"))
    return [signal for signal in values if signal[0]]


def penalties(unit: Unit, signals: RankingSignals) -> list[tuple[float, str]]:
    """Return the factors that lower a candidate's score, each with the words for it.

    Two kinds of units have none: those that the question points at with `@`, and, where the
    question looks up a name that nothing defines, those that contain that name. Such a name may be
    a setting or part of a message, which only a document mentions.
    """
    if unit.id in signals.channels["mention"] or holds_any(unit, signals.undefined):
        return []
    return role_penalties(unit, signals.query)


def role_penalties(unit: Unit, query: Query) -> list[tuple[float, str]]:
    """Return the penalties for tests and the like, and for a signature without its body."""
    factors = []
    if unit.role != "source":
        factor = ASKED_ROLE_FACTOR if unit.role in query.roles else ROLE_FACTOR
        factors.append((factor, f"behind source code: {unit.role}"))
    if unit.is_stub:
        factors.append((STUB_FACTOR, "behind code: a signature alone"))
    return factors


def rank_files(hits: Iterable[Hit]) -> list[FileHit]:
    """Return the files by their best unit, lifted by their next three; best first."""
    by_file: dict[str, list[Hit]] = {}
    for hit in hits:
        by_file.setdefault(hit.unit.path, []).append(hit)
    files = []
    for path, file_hits in by_file.items():
        file_hits.sort(key=lambda hit: -hit.score)
        best, lift = file_hits[0], sum(hit.score for hit in file_hits[1 : 1 + LIFTING_UNITS])
        files.append(FileHit(path, best.score + FILE_LIFT * lift, best))
    files.sort(key=lambda file: (-file.score, file.path))
    return files


def best_of_each(hits: Sequence[Hit]) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the first PER_TABLE of `hits` that are methods, and that are classes or text."""
    methods = [hit for hit in hits if hit.unit.is_method][:PER_TABLE]
    classes = [hit for hit in hits if not hit.unit.is_method][:PER_TABLE]
    return tuple(methods), tuple(classes)


def holds_any(unit: Unit, texts: tuple[str, ...]) -> bool:
    """Return whether the code of `unit` holds one of `texts` literally."""
    return bool(texts) and any(text in unit.source_code for text in texts)


def matching_words(unit: Unit, patterns: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
    """Return the words of the question that `unit` holds in any form, in the question's order."""
    text = f"{unit.path}\n{unit.qualified_name}\n{unit.source_code[:COVERED_CHARACTERS]}".lower()
    matches = []
    for word, forms in patterns:
        for form in forms:  # a plain loop: this is half of the time that ranking takes
            if form in text:
                matches.append(word)
                break
    return matches


def fuse(channels: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Fuse channel name → unit id → score into unit id → 0..1 (1 is the best of this search).

    A single channel keeps its proportions (its score over its best), so that a weak tail
    stays weak; several are added as z-scores.
    """
    nonempty = {name: scores for name, scores in channels.items() if scores}
    if not nonempty:
        return {}
    if len(nonempty) == 1:
        (scores,) = nonempty.values()
        best = max(scores.values())
        return {key: score / best if best > 0 else 0.0 for key, score in scores.items()}
    total = dict.fromkeys(chain.from_iterable(nonempty.values()), 0.0)
    for name, scores in nonempty.items():
        z = z_scores(scores)
        missing = min(z.values()) - MISSING
        weight = DRAFT_WEIGHT if name.startswith("hyde") else WEIGHTS.get(name, 1.0)
        for key in total:
            total[key] += weight * (z.get(key, missing) - missing)
    best = max(total.values())
    return {key: score / best if best > 0 else 0.0 for key, score in total.items()}


def z_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores as standard deviations from their mean; all 0 when they are equal."""
    if min(scores.values()) == max(scores.values()):
        return dict.fromkeys(scores, 0.0)
    mean = statistics.fmean(scores.values())
    # `statistics.pstdev` counts in exact fractions: half a millisecond of every search.
    deviation = math.sqrt(statistics.fmean((score - mean) ** 2 for score in scores.values()))
    return {key: (score - mean) / deviation for key, score in scores.items()}
