"""Searching by drafts of the answer (HyDE), beside the question.

What would answer a question is worded like the code that does, which the question itself often
is not. So a language model writes what the answer might look like, from the question alone,
and that text is searched for as well: its words in the full text, its meaning among the
vectors. What is found then goes to the model for a second draft, which names things as this
code base does. A draft adds channels and takes none away.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from codeqa.errors import UsageError
from codeqa.llm import Cancelled, Model, never
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
from codeqa.search.ranking import FileHit, QueryFeatures, rank, rank_files
from codeqa.types import HYDE_MODES, Hit, HydeMode, StageTime

PREFIX = "hyde"
"""What the names of the drafts' channels begin with: `hyde-1 text`, `hyde-2 vector`."""
FIRST, SECOND = "hyde-1", "hyde-2"
FIRST_TOKENS, SECOND_TOKENS = 400, 768
"""Most tokens of each draft (S1)."""

LOOKED_AT = 5
AGREEING = 3
"""A second draft is not worth its seconds when the draft and the question have the same unit
first, and of the first LOOKED_AT of each AGREEING in common: what the model would be given to
improve on is then what the question finds without it."""

FIRST_STAYS = 3
"""The question's own first hit stays among the first so many: as many as a chat keeps of each
table, so that no draft takes it out of the context."""

DRAFTED = "found by a draft of the answer"

_ENDED = {TIMED_OUT: "took too long", STOPPED: "was stopped", EMPTY: "is empty"}

_T = TypeVar("_T", Hit, FileHit)

HydeSteps = Generator[StageTime, None, Candidates]


@dataclass(frozen=True, slots=True)
class HydeWriter:
    """What drafts are written with; `seconds` is the time of each."""

    model: Model
    mode: HydeMode
    seconds: float
    config_dir: Path | None = None
    cancelled: Cancelled = never


def parse_hyde(value: str, default: str = "off") -> HydeMode:
    """The mode that `value` names, '' for `default`. Raises UsageError for any other text."""
    mode = value.strip().lower() or default
    if mode not in HYDE_MODES:
        known = ", ".join(HYDE_MODES)
        raise UsageError("There is no such number of drafts.", f"Choose one: {known}.")
    return mode


def search_with_hyde(
    drafting: HydeWriter,
    asked: QueryFeatures,
    found: Candidates,
    hits: Sequence[Hit],
    search: Callable[[StageTime], Candidates],
    context: Callable[[Sequence[Hit]], str],
) -> HydeSteps:
    """`found` and what drafts find besides; yields each stage as it begins and as it ends.

    `hits` are those of `found`, ranked; `search` gives what a draft finds, `context` the block
    of the hits that the second draft is written with. Raises what these raise; whatever the
    model does is told by the stages.
    """
    query = asked.query
    if reason := needless(query, found):
        yield _skipped(FIRST, reason)
        if drafting.mode == "two":
            yield _skipped(SECOND, reason)
        return found
    text, settings = query.text, drafting.config_dir
    first = yield from generate_bounded(
        FIRST,
        drafting.model,
        lambda: first_messages(text, settings),
        FIRST_TOKENS,
        drafting.seconds,
        drafting.cancelled,
    )
    drafted = search(first) if first.text else Candidates()
    joined = _join(found, drafted)
    if drafting.mode == "one":
        return joined
    if first.outcome != DONE:
        yield _skipped(SECOND, f"the first draft {_ENDED.get(first.outcome, 'failed')}")
        return joined
    if agrees(hits, drafted):
        yield _skipped(SECOND, "the first draft found what the question finds")
        return joined
    block = context(rank(joined, asked))
    second = yield from generate_bounded(
        SECOND,
        drafting.model,
        lambda: second_messages(text, first.text, block, settings),
        SECOND_TOKENS,
        drafting.seconds,
        drafting.cancelled,
    )
    return _join(joined, search(second)) if second.text else joined


def noted(steps: HydeSteps, stages: list[StageTime]) -> HydeSteps:
    """`steps`, each stage that has ended put down in `stages`."""
    while True:
        try:
            stage = next(steps)
        except StopIteration as end:
            found: Candidates = end.value
            return found
        if stage.outcome:
            stages.append(stage)
        yield stage


def needless(query: Query, found: Candidates) -> str:
    """Why no draft is asked for; '' when one is.

    The definition of a name that is looked up is found in milliseconds, and no guess at its
    code finds it better.
    """
    if query.symbol_like and found.channels.get("symbol"):
        return "the question is a name that is defined here"
    return "" if query.text else "the question has no words"


def agrees(hits: Sequence[Hit], drafted: Candidates) -> bool:
    """Whether the draft found what the question found: see AGREEING."""
    own = [hit.unit.id for hit in hits[:LOOKED_AT]]
    scores = fuse(drafted.channels)
    by_draft = sorted(scores, key=lambda key: -scores[key])[:LOOKED_AT]
    same = set(own) & set(by_draft)
    enough = min(AGREEING, len(own))
    return bool(same) and own[0] == by_draft[0] and len(same) >= enough


def only_by_hypothesis(hit: Hit) -> bool:
    """Whether nothing but drafts found `hit`."""
    return bool(hit.channels) and all(name.startswith(PREFIX) for name in hit.channels)


def merge(
    hits: Sequence[Hit], own: Sequence[Hit], own_files: Sequence[FileHit], within: int
) -> tuple[list[Hit], list[FileHit]]:
    """The lists of units and files of a search with drafts.

    `hits` are ranked with the drafts' channels; `own` and `own_files` are what the question
    alone ranks: the first of each stays among the first FIRST_STAYS, and at most `within`.
    """
    merged = [replace(h, why=(*h.why, DRAFTED)) if only_by_hypothesis(h) else h for h in hits]
    if own:
        most = min(FIRST_STAYS, within)
        merged = keep_first(
            merged, own[0].unit.id, lambda hit: hit.unit.id, only_by_hypothesis, most
        )
    files = rank_files(merged)
    if own_files:
        literal = {hit.unit.path for hit in merged if not only_by_hypothesis(hit)}
        first = own_files[0].path
        files = keep_first(files, first, lambda f: f.path, lambda f: f.path not in literal)
    return merged, files


def keep_first(
    ranked: Sequence[_T],
    first: str,
    key: Callable[[_T], str],
    drafted: Callable[[_T], bool],
    within: int = FIRST_STAYS,
) -> list[_T]:
    """`ranked` with the item called `first` among the first `within` and before all `drafted`.

    Its score rises to that of the item whose place it takes; the others keep their order.
    """
    place = next((at for at, item in enumerate(ranked) if key(item) == first), None)
    if place is None:
        return list(ranked)
    guessed = next((at for at, item in enumerate(ranked) if drafted(item)), len(ranked))
    target = min(place, guessed, max(0, within - 1))
    if target == place:
        return list(ranked)
    items = list(ranked)
    item = items.pop(place)
    items.insert(target, replace(item, score=max(item.score, items[target].score)))
    return items


def _join(found: Candidates, drafted: Candidates) -> Candidates:
    """Everything of both, in a new object; the drafts' channels stand beside the others."""
    units = {**drafted.units, **found.units}
    return replace(found, units=units, channels={**found.channels, **drafted.channels})


def _skipped(name: str, reason: str) -> StageTime:
    return StageTime(name, outcome=f"skipped: {reason}")
