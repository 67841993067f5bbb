"""What a reranker takes and gives, and any model that scores hits as one: bounded candidates,
bounded time, half of the say."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from codeqa.errors import RerankerError
from codeqa.llm import within
from codeqa.search.query import Query
from codeqa.search.ranking import role_penalties
from codeqa.types import Hit, Unit

BUILT_IN = "built-in"
BY_MODEL = "model"
"""Name in the setting when the language model puts the files in order: done by the search."""
CANDIDATES = 50
"""Hits that any reranker reads at most; deeper ones are rarely the answer, and each costs its
length."""
CHARACTERS = 2_000
"""Of a unit that a model is given: the tokens that models of this size read are fewer."""
MODEL_SHARE = 0.5
"""Half of the new score is the model's, half the first stage's, which knows definitions,
file names and roles that the model does not see. Not tuned: late interaction added about
.01 MRR to a fusion of channels like ours, so it should not overrule it."""

ScoreHits = Callable[[Sequence[Hit], Query], Sequence[float | None]]
"""Relevance of each hit, in their order; None for one that was not read."""


@dataclass(frozen=True, slots=True)
class Reranked:
    """All hits in their new order, and who ordered them."""

    hits: list[Hit]
    reranker: str
    """Name of the reranker that did it; '' when there was nothing to order."""
    warnings: tuple[str, ...] = ()
    """What the user should know: why another reranker was used than the one asked for, that not
    all hits were read, or where code was sent."""


class Reranker(Protocol):
    """Orders the best of the hits anew; what it does not read stays behind, in its order."""

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """Every one of `hits` once. Raises RerankerError when it cannot work."""


@dataclass(frozen=True, slots=True)
class ModelReranker:
    """Orders the best hits by half their own score and half what `score` says of them.

    The first `candidates` are read, and after `seconds` they are not waited for any longer.
    `host` is where they are sent, which a warning then says; '' when they stay on this machine.
    """

    name: str
    score: ScoreHits
    candidates: int
    seconds: float
    host: str = ""

    @property
    def place(self) -> str:
        """A failure, too, says where code may have been sent."""
        return f"{self.name} at {self.host}" if self.host else self.name

    def rerank(self, hits: Sequence[Hit], query: Query) -> Reranked:
        """What is not read stays behind, in its order.

        Raises RerankerError when the model fails, is too slow or gives no usable score.
        """
        if not hits or not query.text:
            return Reranked(list(hits), self.name if hits else "")
        head = hits[: self.candidates]
        started = time.monotonic()
        scored = list(zip(head, self._scores(head, query), strict=True))
        seconds = time.monotonic() - started
        read = [(hit, score) for hit, score in scored if score is not None]
        if not read:
            raise RerankerError(
                f"{self.place} read nothing within {seconds:.1f} seconds.",
                "Ask again when the machine is less busy.",
            )
        warnings = unread_warnings(self.name, len(read), len(head), seconds)
        if self.host:
            count = f"{len(head)} piece{'s' if len(head) > 1 else ''} of code"
            warnings += (f"The question and {count} were sent to {self.host} to be ordered.",)
        unread = [hit for hit, score in scored if score is None]
        rest = [*unread, *hits[len(head) :]]
        return Reranked(in_front(combined(read, query, self.name), rest), self.name, warnings)

    def _scores(self, head: Sequence[Hit], query: Query) -> Sequence[float | None]:
        try:
            scores = within(self.seconds, lambda: self.score(head, query))
        except RerankerError:
            raise
        except TimeoutError:
            said = f"did not answer within {self.seconds:g} seconds"
        except Exception as error:  # anybody's code; its text may hold the question or the code
            said = f"failed while reading ({type(error).__name__})"
        else:
            if all(score is None or math.isfinite(score) for score in scores):
                return scores
            said = "gives scores that are no numbers"
        hint = "Ask again in a moment, or set CODEQA_RERANKER=built-in."
        raise RerankerError(f"{self.place} {said}.", hint)


def combined(read: Sequence[tuple[Hit, float]], query: Query, name: str) -> list[Hit]:
    """Hits with scores of which MODEL_SHARE is the model's, on the scale of the old ones.

    A model's scores lie close together or on a scale of its own, so that they are spread
    over 0..1 first; tests and the like are pushed back as in the first stage.
    """
    low, high = min(score for _, score in read), max(score for _, score in read)
    best = max(hit.score for hit, _ in read)
    found = []
    for hit, score in read:
        relevant = (score - low) / (high - low) if high > low else 1.0
        for factor, _ in role_penalties(hit.unit, query):
            relevant *= factor
        mixed = MODEL_SHARE * relevant * best + (1 - MODEL_SHARE) * hit.score
        why = f"reranked by {name}: {score:.2f}"
        found.append(replace(hit, score=mixed, why=(*hit.why, why)))
    return found


def parse_rerank(value: object) -> bool:
    """The switch as clients send it: true for True, 'true', 'True', '1' and so for 1."""
    return value in (True, "true", "True", "1")


def document(unit: Unit) -> str:
    """What a model reads of a unit: where it is, what it is called, how its code begins."""
    return f"{unit.path} {unit.qualified_name}\n{unit.source_code}"[:CHARACTERS]


def in_front(rescored: Sequence[Hit], rest: Sequence[Hit]) -> list[Hit]:
    """`rescored` by score and `rest` behind it in its order, no score above one before it."""
    head = sorted(rescored, key=lambda hit: -hit.score)
    floor = head[-1].score if head else float("inf")
    return head + [replace(hit, score=min(hit.score, floor)) for hit in rest]


def unread_warnings(name: str, read: int, candidates: int, seconds: float) -> tuple[str, ...]:
    """What to say when the time was over before all candidates were read; () when they were."""
    if read == candidates:
        return ()
    return (
        f"{name} read {read} of {candidates} hits in {seconds:.1f} seconds; "
        "the others stand behind them.",
    )
