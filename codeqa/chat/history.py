"""What of earlier turns goes with a question: the latest, and those that resemble it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence

import numpy as np

from codeqa.chat.generation import EXTRACTIVE, Exchange, answer_for_history
from codeqa.chat.record import TurnRecord
from codeqa.chat.vectors import Vector, cosine
from codeqa.errors import StorageError
from codeqa.intents import read_mode
from codeqa.search import Query
from codeqa.state import PastExchange, PastQuestion, State
from codeqa.text.tag import strip_tag

HISTORY_MESSAGES = 20
"""Latest messages, questions and answers alike, that are loaded."""
RECENCY_WINDOW = 6
"""Latest messages that a model always sees."""
SEMANTIC_K = 3
"""And older questions, with their answers, that it sees when they resemble this one."""
QA_K = 4
"""Most past questions that are found for one."""
CANDIDATES = 32
"""The most similar past questions whose answers are read: not all of them count."""

Embed = Callable[[str], Vector | None]
"""A question's vector; None for one that the embedding knows no word of, and without one."""

log = logging.getLogger(__name__)


def exchanges_of(turns: Sequence[TurnRecord]) -> tuple[Exchange, ...]:
    """The answered questions of `turns`, as a model may see them.

    The app's own account of what is stored stays out: it is for its reader alone.
    """
    return tuple(
        Exchange(read_mode(one.question)[1], answer_for_history(one.answer, one.generator), one.id)
        for one in turns
        if one.answer and one.reply != "privacy"
    )


def prune(
    history: Sequence[Exchange], question: Vector | None, embed: Embed, threshold: float
) -> tuple[Exchange, ...]:
    """The window of the latest exchanges, and before it those older ones whose question is more
    similar to this one than `threshold`; oldest first.

    A question always keeps its answer: neither says much without the other.
    """
    recent = RECENCY_WINDOW // 2
    older, latest = history[:-recent], history[-recent:]
    if question is None or not older:
        return tuple(latest)
    vectors = (embed(exchange.question) for exchange in older)
    scores = [0.0 if vector is None else cosine(question, vector) for vector in vectors]
    best = sorted(range(len(older)), key=lambda number: -scores[number])[:SEMANTIC_K]
    return (*(older[number] for number in sorted(best) if scores[number] > threshold), *latest)


def names_other_code(one: Query, other: Query) -> bool:
    """Whether two questions name different code: `load_page` and `load_user` are not alike,
    however alike their vectors are."""
    named, also = ({n.lower() for n in (*q.names, *q.qualified, *q.files)} for q in (one, other))
    return bool(named and also) and named.isdisjoint(also)


def similar_questions(
    state: State,
    vector: Vector,
    *,
    user: str,
    repository: str,
    conversation: str,
    embedding: str,
    threshold: float,
    same: bool,
    skip: Collection[str] = (),
) -> list[Exchange]:
    """At most `QA_K` past exchanges whose question has a cosine above `threshold` to `vector`
    (d,), the most similar first.

    With `same` those of the conversation, else those of any other one. Left out are turns
    in `skip`, answers that quote, were stopped, failed or come from the app itself, those
    that another branch took the place of, and all but the latest of the same question.
    None come while the state cannot be read: an answer does without them.
    """
    try:
        # Read anew each time: 2,000 questions take a few milliseconds.
        asked = state.turns.past_questions(user, repository, embedding)
        turns = [
            one.turn
            for one in _most_similar(asked, vector, threshold)
            if (one.conversation == conversation != "") == same and one.turn not in skip
        ][:CANDIDATES]
        read = state.turns.exchanges(turns, user)  # without those deleted meanwhile
        found: dict[str, Exchange] = {}
        """By the question: the most similar come first, of equal ones the latest."""
        for past in filter(_counts, (read[turn] for turn in turns if turn in read)):
            _, question = read_mode(strip_tag(past.question))
            exchange = Exchange(question, past.answer, turn=past.turn, elsewhere=not same)
            found.setdefault(question.casefold(), exchange)
        return list(found.values())[:QA_K]
    except StorageError as error:
        log.warning("earlier questions could not be read: %s", error)
        return []


def _most_similar(
    asked: Sequence[PastQuestion], vector: Vector, threshold: float
) -> list[PastQuestion]:
    """Those of `asked` whose cosine to `vector` is above `threshold`, the most similar first, the
    latest of equal ones first."""
    asked = [one for one in asked if len(one.vector) == 2 * len(vector)]  # float16
    flat = np.frombuffer(b"".join(one.vector for one in asked), "<f2").astype(np.float32)
    rows = flat.reshape(-1, len(vector))
    with np.errstate(all="ignore"):  # of a vector without length, the cosine is above nothing
        scores = rows @ vector / (np.linalg.norm(rows, axis=1) * np.linalg.norm(vector))
    found = np.flatnonzero(scores > threshold)
    return [asked[number] for number in found[np.lexsort((-found, -scores[found]))]]


def _counts(past: PastExchange) -> bool:
    """Whether a model may see this answer: one that a model gave, in full, and that stands."""
    whole = past.answer and past.finished and past.active
    return bool(whole) and not past.reply and past.generator != EXTRACTIVE
