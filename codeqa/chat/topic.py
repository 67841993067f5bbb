"""Whether a message leaves what its conversation was about, by its words and the index.

What leaves is understood by itself, and there is code that holds far more of it than the code at
hand. What was tried instead: the cosine of its vector to the topic's, by the shipped table, does
not tell changes from follow-ups (benchmarks/results/topics.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from codeqa.chat.generation import Exchange
from codeqa.intents import stands_alone
from codeqa.search import Query, form_pattern
from codeqa.search.channels import full_text_query
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.types import ContextBlock, Unit

Destination = Literal["", "code", "elsewhere"]
"""Where a message goes that leaves the topic: to other code of the repository, or to what no code
is about; '' for one that stays."""
SEARCHED = 100
"""Units of each table that are looked at."""
READ = 20
"""The best of them, whose text is read for the words of the message."""
NEAR = 0.4
"""A message is nearer to the code at hand than this, or it leaves. Set on the half `tune` of
evals/intents/topic_pairs.jsonl and 22 more follow-ups that are whole questions, of which it drops
one: to lose the code of a follow-up is worse than to show old code."""
DOUBTFUL = 0.65
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
LEAVING_BY_MODEL: Mapping[Destination, Leaving] = {
    "": STAYS,
    "code": Leaving("code", "the model takes it for a question about other code"),
    "elsewhere": Leaving("elsewhere", "the model finds that no code here is about it"),
}


def leaving_by_words(
    query: Query, history: Sequence[Exchange], context: ContextBlock, tables: Tables
) -> Leaving:
    """What the words of a message say, by one search of the full text: 3 to 4 ms.

    It stays where it needs an earlier turn to be understood, or where there is no code at hand
    that could mislead. Raises what the tables raise.
    """
    words = query.words
    if not (words and context.chunks and stands_alone(query.text)):
        return STAYS
    tokens = full_text_query(query)
    found = tables.best([TextSearch(table, tokens, SEARCHED) for table in UNIT_TABLES])
    hits = sorted((hit for hits in found for hit in hits), key=lambda hit: -hit[1])
    said = "\n".join(part for one in history for part in (one.question, one.answer))
    known = "\n".join((said, *(unit.path + unit.source_code for unit, _ in hits[:READ])))
    unknown = _missing(words, known)
    if 2 * len(unknown) > len(words):
        return Leaving("elsewhere", f"neither code nor conversation has {_listed(unknown)}", True)
    missing = _missing(words, context.text + said)
    at_hand = max((score for unit, score in hits if _holds(context, unit)), default=0.0)
    ratio = at_hand / hits[0][1] if hits else 0.0
    nearness = (ratio + 1 - len(missing) / len(words)) / 2
    if nearness >= NEAR:
        return Leaving(doubtful=nearness < DOUBTFUL)
    which = f"has no {_listed(missing)}" if missing else "is not where these words are"
    return Leaving("code", f"the earlier code {which}", True)


def _missing(words: Sequence[str], text: str) -> list[str]:
    """Those of `words` that `text` holds in no form."""
    lower = text.lower()
    return [word for word in words if not form_pattern(word).search(lower)]


def _holds(context: ContextBlock, unit: Unit) -> bool:
    return any(
        chunk.path == unit.path
        and chunk.start_line <= unit.end_line
        and unit.start_line <= chunk.end_line
        for chunk in context.chunks
    )


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words)
