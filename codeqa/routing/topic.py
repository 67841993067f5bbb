"""Whether a message leaves what its conversation was about, by its words and the index.

What leaves is understood by itself, and there is code that holds far more of it than the code at
hand. What was tried instead: the cosine of its vector to the topic's, by the shipped table, does
not tell changes from follow-ups (benchmarks/results/topics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codeqa.routing.words import Reading, stands_alone
from codeqa.search import Query
from codeqa.search.channels import full_text_query
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text.tokens import form_pattern
from codeqa.types import ContextBlock, Exchange

Destination = Literal["", "code", "elsewhere"]
"""Where a message goes that leaves the topic: to other code of the repository, or to what no code
is about; '' for one that stays."""
SEARCHED = 100
"""Units of each table that are looked at."""
READ = 20
"""The best of them, whose text is read for the words of the message."""
NEAR = 0.4
"""The best of the code at hand scores so much of the best anywhere, or a message leaves. Of 29
changes that are whole questions 26 lie below, of 22 such follow-ups 3 (half `tune` of
evals/intents/topic_pairs.jsonl and others, written for this); most follow-ups are no such."""
DOUBTFUL = 0.6
"""Up to here words may be wrong, and a model is asked where there is one."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Whether a message leaves the topic, and why it was found to."""

    to: Destination = ""
    why: str = ""
    """For the reader; '' where it stays."""
    doubtful: bool = False
    """A model may know better."""


STAYS = Leaving()


def leaving_by_words(
    query: Query,
    message: Reading,
    history: Sequence[Exchange],
    context: ContextBlock,
    tables: Tables,
) -> Leaving:
    """What the words of a message say, by one search of the full text: 3 to 4 ms.

    It stays where it needs an earlier turn to be understood, or where there is no code at hand
    that could mislead. Raises what the tables raise.
    """
    words = query.words
    if not (words and context.chunks):
        return STAYS
    tokens = full_text_query(query)
    found = tables.best([TextSearch(table, tokens, SEARCHED) for table in UNIT_TABLES])
    hits = sorted((hit for hits in found for hit in hits), key=lambda hit: -hit[1])
    said = "\n".join(part for one in history for part in (one.question, one.answer))
    known = "\n".join((said, *(unit.path + unit.source_code for unit, _ in hits[:READ])))
    unknown = _missing(words, known)
    if not stands_alone(message):
        return Leaving(doubtful=2 * len(unknown) >= len(words))
    if 2 * len(unknown) > len(words):
        return Leaving("elsewhere", f"neither code nor conversation has {', '.join(unknown)}", True)
    shown = (  # not of a class of which there is only a method
        score
        for unit, score in hits
        if any(one.holds(unit.path, unit.start_line, unit.start_line) for one in context.chunks)
    )
    at_hand = max(shown, default=0.0)
    nearness = at_hand / hits[0][1] if hits else 1.0
    if nearness >= NEAR:
        return Leaving(doubtful=nearness < DOUBTFUL)
    missing = ", ".join(_missing(words, context.text))
    why = f"the earlier code has no {missing}" if missing else "other code has more of its words"
    return Leaving("code", why, True)


def _missing(words: Sequence[str], text: str) -> list[str]:
    """Those of `words` that `text` holds in no form."""
    lower = text.lower()
    return [word for word in words if not form_pattern(word).search(lower)]
