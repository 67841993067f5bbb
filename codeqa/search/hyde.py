"""Searching by hypothetical answers (HyDE), beside the question.

What would answer a question is worded like the code that does, which the question itself often
is not. So a language model writes what the answer might look like, from the question alone,
and that text is searched for as well: its words in the full text, its meaning among the
vectors. What is found then goes to the model for a second hypothesis, which names things as this
code base does. A hypothesis adds channels and takes none away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from codeqa.errors import UsageError
from codeqa.llm import Cancelled, Message, Model
from codeqa.search.channels import Candidates
from codeqa.search.fusion import fuse
from codeqa.search.hypothesis import (
    DONE,
    EMPTY,
    STOPPED,
    TIMED_OUT,
    first_messages,
    generate_bounded,
    second_messages,
)
from codeqa.search.query import Query
from codeqa.search.ranking import FileHit, rank, rank_files
from codeqa.settings import Settings
from codeqa.types import HYDE_MODES, Hit, HydeMode, StageTime

PREFIX = "hyde"
"""What the names of these channels begin with: `hyde-1 text`, `hyde-2 vector`."""
FIRST, SECOND = "hyde-1", "hyde-2"
FIRST_TOKENS, SECOND_TOKENS = 400, 768
"""Most tokens of each hypothesis."""

LOOKED_AT = 5
AGREEING = 3
"""A second hypothesis is not worth its seconds when the first and the question have the same unit
at the top, and of the first LOOKED_AT of each AGREEING in common: what the model would be given
to improve on is then what the question finds without it."""

FIRST_STAYS = 3
"""The question's own first hit stays among the first so many: as many as a chat keeps of each
table, so that no hypothesis takes it out of the context."""

FOUND_BY_HYDE = "found by a draft of the answer"
"""What the code calls a hypothesis is a draft to the user, in messages and on the page."""

_ENDED = {TIMED_OUT: "took too long", STOPPED: "was stopped", EMPTY: "is empty"}

_T = TypeVar("_T", Hit, FileHit)
_log = logging.getLogger(__name__)


def parse_hyde(value: str, default: str = "off") -> HydeMode:
    """The mode that `value` names, '' for `default`. Raises UsageError for any other text."""
    mode = value.strip().lower() or default
    if mode not in HYDE_MODES:
        known = ", ".join(HYDE_MODES)
        raise UsageError("There is no such number of drafts.", f"Choose one: {known}.")
    return mode


@dataclass(slots=True)
class HydeSearch:
    """The part of a search that goes by hypotheses."""

    model: Model
    mode: HydeMode
    settings: Settings
    cancelled: Cancelled
    query: Query
    found: Candidates
    """What the question found; after `run` also what the hypotheses found."""
    hits: Sequence[Hit]
    """Those of the question, ranked."""
    search: Callable[[StageTime], Candidates]
    """Gives what a hypothesis finds."""
    context: Callable[[Sequence[Hit]], str]
    """Gives the block of hits that the second hypothesis is written with."""
    stages: list[StageTime] = field(default_factory=list)
    """What was done."""

    def run(self) -> Iterator[StageTime]:
        """Yields each stage as it begins and as it ends.

        Raises what `search` and `context` raise; whatever the model does is told by the stages.
        """
        query, config_dir = self.query, self.settings.config_dir
        two = self.mode == "two"
        if reason := needless(query, self.found):
            for name in (FIRST, SECOND) if two else (FIRST,):
                yield self._skip(name, reason)
            return
        ask = partial(first_messages, query.text, config_dir)
        first = yield from self._write(FIRST, ask, FIRST_TOKENS)
        by_first = self.search(first) if first.text else Candidates()
        self.found = _join(self.found, by_first)
        if not two:
            return
        if first.outcome != DONE:
            ended = _ENDED.get(first.outcome, "failed")
            yield self._skip(SECOND, f"the first draft {ended}")
            return
        if agrees(self.hits, by_first):
            yield self._skip(SECOND, "the first draft found what the question finds")
            return
        block = self.context(rank(self.found, query))
        ask = partial(second_messages, query.text, first.text, block, config_dir)
        second = yield from self._write(SECOND, ask, SECOND_TOKENS)
        if second.text:
            _log.debug("-query_v2- %s", second.text)
            self.found = _join(self.found, self.search(second))

    def _write(
        self, name: str, messages: Callable[[], list[Message]], most_tokens: int
    ) -> Generator[StageTime, None, StageTime]:
        seconds = self.settings.hyde_seconds
        stage = yield from generate_bounded(
            name, self.model, messages, most_tokens, seconds, self.cancelled
        )
        self.stages.append(stage)
        return stage

    def _skip(self, name: str, reason: str) -> StageTime:
        self.stages.append(StageTime(name, outcome=f"skipped: {reason}"))
        return self.stages[-1]


def needless(query: Query, found: Candidates) -> str:
    """Why no hypothesis is asked for; '' when one is.

    The definition of a name that is looked up is found in milliseconds, and no guess at its
    code finds it better.
    """
    if query.symbol_like and found.channels.get("symbol"):
        return "the question is a name that is defined here"
    return "" if query.text else "the question has no words"


def agrees(hits: Sequence[Hit], by_first: Candidates) -> bool:
    """Whether the first hypothesis found what the question found: see AGREEING."""
    own = [hit.unit.id for hit in hits[:LOOKED_AT]]
    scores = fuse(by_first.channels)
    theirs = sorted(scores, key=lambda key: -scores[key])[:LOOKED_AT]
    same = set(own) & set(theirs)
    enough = min(AGREEING, len(own))
    return bool(same) and own[0] == theirs[0] and len(same) >= enough


def only_by_hypothesis(hit: Hit) -> bool:
    """Whether nothing but hypotheses found `hit`."""
    return bool(hit.channels) and all(name.startswith(PREFIX) for name in hit.channels)


def merge(
    hits: Sequence[Hit], own: Sequence[Hit], own_files: Sequence[FileHit], within: int
) -> tuple[list[Hit], list[FileHit]]:
    """The lists of units and files of a search with hypotheses.

    `hits` are ranked with their channels; `own` and `own_files` are what the question alone
    ranks: the first of each stays among the first FIRST_STAYS, and at most `within`.
    """
    merged = [
        replace(hit, why=(*hit.why, FOUND_BY_HYDE)) if only_by_hypothesis(hit) else hit
        for hit in hits
    ]
    if own:
        most = min(FIRST_STAYS, within)
        merged = keep_first(merged, own[0].unit.id, lambda h: h.unit.id, only_by_hypothesis, most)
    files = rank_files(merged)
    if own_files:
        by_question = {hit.unit.path for hit in merged if not only_by_hypothesis(hit)}
        first = own_files[0].path
        files = keep_first(files, first, lambda f: f.path, lambda f: f.path not in by_question)
    return merged, files


def keep_first(
    ranked: Sequence[_T],
    first: str,
    key: Callable[[_T], str],
    guessed: Callable[[_T], bool],
    within: int = FIRST_STAYS,
) -> list[_T]:
    """`ranked` with the item called `first` among the first `within` and before all `guessed`.

    Its score rises to that of the item whose place it takes; the others keep their order.
    """
    items = list(ranked)
    place = next((at for at, item in enumerate(items) if key(item) == first), None)
    if place is None:
        return items
    guess = next((at for at, item in enumerate(items) if guessed(item)), len(items))
    target = min(place, guess, max(0, within - 1))
    if target < place:
        item = items.pop(place)
        items.insert(target, replace(item, score=max(item.score, items[target].score)))
    return items


def _join(found: Candidates, more: Candidates) -> Candidates:
    """Everything of both, in a new object; the channels of both stand beside each other."""
    return Candidates({**more.units, **found.units}, {**found.channels, **more.channels})
