"""A message in its conversation: whether it leaves what that was about, and, where it says too
little alone, the words of earlier questions that make it complete.

What leaves is understood by itself, and there is code that holds far more of it than the code at
hand. What was tried instead: the cosine of its vector to the topic's, by the shipped table, does
not tell changes from follow-ups (benchmarks/results/topics.md).

"And who calls it?" finds nothing: what it means stands in an earlier turn. What is made of it is
only searched for, shown, and kept with the turn; the question that is answered stays as typed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codeqa.code.calls import without_relations
from codeqa.routing.intents import by_words
from codeqa.routing.policy import Features
from codeqa.routing.words import Reading, goes_on, points_back, read, stands_alone
from codeqa.search.channels import full_text_query
from codeqa.search.query import QUESTION_WORDS, Query, parse_query
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text.tokens import form_pattern
from codeqa.types import ContextBlock, Exchange

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
CARRIED = 6
"""Words that are carried into a follow-up at most. Of 26 follow-ups about one repository, written
for this, the definition asked for was then among the first five hits for 23, alone for 14; mean
reciprocal rank .68 against .37. Names of what had been found, carried instead, place it lower."""
ENOUGH_WORDS = 3
"""A question with as many words of its own, and none that refers elsewhere, is searched for as it
is, whatever else it was taken for: words of another matter would only dilute it."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """Whether a message leaves the topic, and why it was found to."""

    to: Literal["", "code", "elsewhere"] = ""
    """To other code of the repository, or to what no code is about; '' where it stays."""
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


def is_incomplete(query: Query, words: Reading, features: Features) -> bool:
    """Whether a question, if it is searched for, says too little without the conversation: it
    refers to something else, or neither names code nor says enough."""
    if query.traceback or features.off_topic or not features.conversation_length:
        return False
    if features.is_followup and points_back(words):
        return True
    short = features.is_followup and len(telling_words(query)) < ENOUGH_WORDS
    return (short or goes_on(words)) and not (code_names(query) or query.pointed)


def complete_by_words(text: str, history: Sequence[Exchange], names: Sequence[str]) -> str:
    """`text`, which says too little, with the few words that tell what it is about.

    These are what the last question names as code, else its own words; of a question that is a
    follow-up itself, those of the one before as well. Where neither has any, the first of
    `names`, which were found for it.
    """
    query = parse_query(text)
    topic: list[str] = []
    for exchange in reversed(history):
        earlier = parse_query(exchange.question)
        # "And its callers?" says what is asked, but not of what.
        telling = telling_words(parse_query(without_relations(exchange.question)))
        topic += [_as_code(name) for name in code_names(earlier)] or telling
        if topic and by_words(read(exchange.question), has_history=True).name != "continuation":
            break
    said = {word for name in (text, query.text) for word in name.lower().split()}
    new = [name for name in dict.fromkeys(topic or names) if name.strip("`").lower() not in said]
    return " ".join((text, *new[:CARRIED]))


def telling_words(query: Query) -> list[str]:
    """Words that say what the question is about."""
    return [word for word in query.words if word not in QUESTION_WORDS]


def _as_code(name: str) -> str:
    """`name`, marked as code where it could be any word."""
    return name if code_names(parse_query(name)) else f"`{name}`"


def code_names(query: Query) -> list[str]:
    """What is written as code: dotted names whole, files, other identifiers."""
    inside = {name.rpartition(".")[2] for name in query.qualified}
    single = [name for name in query.names if name not in inside]
    return list(dict.fromkeys((*query.qualified, *single, *query.files)))
