"""Follow-ups made complete before the code is searched, by the words of earlier questions.

"And who calls it?" finds nothing: what it means stands in an earlier turn. What is made of it is
only searched for, shown, and kept with the turn; the question that is answered stays as typed.
"""

from __future__ import annotations

from collections.abc import Sequence

from codeqa.code.calls import without_relations
from codeqa.routing.features import Features
from codeqa.routing.intents import by_words
from codeqa.routing.words import Reading, goes_on, points_back, read
from codeqa.search import Query, parse_query
from codeqa.search.query import QUESTION_WORDS
from codeqa.types import Exchange

CARRIED = 6
"""Words that are carried into a follow-up at most. Of 26 follow-ups about one repository, written
for this, the definition asked for was then among the first five hits for 23, alone for 14; mean
reciprocal rank .68 against .37. Names of what had been found, carried instead, place it lower."""
ENOUGH_WORDS = 3
"""A question with as many words of its own, and none that refers elsewhere, is searched for as it
is, whatever else it was taken for: words of another matter would only dilute it."""


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
