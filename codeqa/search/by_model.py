"""What a language model does for a search: it writes drafts of the answer to search by (HyDE).

What would answer a question is worded like the code that does, which the question itself often
is not. So a language model writes what the answer might look like, from the question alone,
and that text is searched for as well: its words in the full text, its meaning among the
vectors. What is found then goes to the model for a second hypothesis, which names things as this
code base does. A hypothesis adds channels and takes none away. It is a guess by a machine that may
have read hostile code: it is bounded, and only ever searched by, shown as plain text, or given to
the same model as data.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeVar

from codeqa.context.block import unit_chunk
from codeqa.context.packing import pack
from codeqa.embeddings.registry import Embedding
from codeqa.errors import EmbeddingError, IndexFormatError
from codeqa.llm.client import DONE, Model, generate_bounded
from codeqa.llm.values import Cancelled, Message, clean_text
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.search.channels import Candidates, filter_of, search_words
from codeqa.search.query import QUESTION_WORDS, Query
from codeqa.search.ranking import FileHit, best_of_each, rank, rank_files
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.text.tokens import search_tokens, word_set, words
from codeqa.types import Hit, HydeMode, StageTime

FIRST, SECOND = "hyde-1", "hyde-2"
"""What the names of the channels begin with: `hyde-1 text`, `hyde-2 vector`."""
FIRST_TOKENS, SECOND_TOKENS = 400, 768
"""Most tokens of each hypothesis."""
SECOND_CHARACTERS = 12_000
"""Most of the code that the second is written from."""
HYPOTHESIS_WORDS = 48
"""Distinct tokens of it that are searched for, as of a question."""
HYPOTHESIS_CANDIDATES = 30
"""Units fetched per table and channel: what lies deep in the list of a guess says nothing."""

FIRST_STAYS = 3
"""The question's own first hit stays among the first so many: as many as a chat keeps of each
table, so that no hypothesis takes it out of the context."""

FOUND_BY_HYDE = "found by a draft of the answer"
"""What the code calls a hypothesis is a draft to the user, in messages and on the page."""

_CODE_LIKE = re.compile(r"[a-z0-9][A-Z]|[^\W_]_+[^\W_]")
_KEYWORDS = word_set("""
abstract async await bool boolean break case catch class const continue def default elif else
enum except export extends false final finally fn foreach func function impl implements import
include instanceof int interface internal lambda let namespace new nil none null override
package private protected public raise require return self static str string struct super
switch this throw throws trait true try type typeof undefined unsigned var void yield
""")
"""Words that all code is made of: they name nothing, and each costs time in the full text."""

Stages = Generator[StageTime, None, StageTime]
_T = TypeVar("_T", Hit, FileHit)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FirstSearch:
    """What the question alone found, and what it was searched with."""

    tables: Tables
    encoders: Mapping[str, Embedding]
    """Vector column → what encodes a text for it."""
    trouble: str
    """Why an embedding could not be used; '' where all could."""
    query: Query
    """As the index understands it."""
    candidates: Candidates
    hits: Sequence[Hit]
    """The candidates, ranked."""
    warnings: Sequence[str]


def search_by_hypotheses(
    first: FirstSearch, model: Model, mode: HydeMode, settings: Settings, cancelled: Cancelled
) -> Generator[StageTime, None, tuple[Candidates, list[StageTime]]]:
    """Return what the question and hypotheses of `model` find, and the stages.

    Yields each stage as it begins and as it ends. Raises what the tables raise; whatever the model
    does is told by the stages.
    """
    query = first.query
    if reason := needless(query, first.candidates):
        names = (FIRST, SECOND) if mode == "two" else (FIRST,)
        stages = [_skipped(name, reason) for name in names]
        yield from stages
        return first.candidates, stages

    def write(name: str, tokens: int, prompt: str, **fields: str) -> Stages:
        ask = partial(prompted, prompt, settings.config_dir, **fields)
        seconds = settings.hyde_seconds
        return generate_bounded(name, model, ask, tokens, seconds, cancelled, hypothesis_tokens)

    draft = yield from write(FIRST, FIRST_TOKENS, "hyde", query=query.text)
    by_draft = search_by_draft(first, draft)
    candidates = join(first.candidates, by_draft)
    if mode != "two":
        return candidates, [draft]
    if draft.outcome != DONE:
        reason = f"the first draft is not there ({draft.outcome.partition(':')[0]})"
        yield (second := _skipped(SECOND, reason))
        return candidates, [draft, second]
    # What the first hypothesis led to, beside what the question did: cut off, the question's own
    # list alone would often leave out the very code that was predicted.
    best = zip(best_of_each(rank(by_draft, query)), best_of_each(first.hits), strict=True)
    pairs = chain.from_iterable(zip_longest(*of_table) for of_table in best)
    units = {hit.unit.id: hit.unit for pair in pairs for hit in pair if hit is not None}
    block = pack([*map(unit_chunk, units.values())], SECOND_CHARACTERS).text
    fields = {"query": query.text, "context": block.rstrip(), "hyde_query": draft.text}
    second = yield from write(SECOND, SECOND_TOKENS, "hyde_v2", **fields)
    if second.text:
        _log.debug("-query_v2- %s", second.text)
    return join(candidates, search_by_draft(first, second)), [draft, second]


def search_by_drafts(
    first: FirstSearch, drafts: Sequence[str]
) -> tuple[Candidates, list[StageTime]]:
    """Return what the question and the caller's own `drafts` find, and a stage for each."""
    candidates, stages = first.candidates, list[StageTime]()
    for number, draft in enumerate(drafts, 1):
        stages.append(StageTime(f"hyde-{number}", outcome="done", text=clean_text(draft)))
        candidates = join(candidates, search_by_draft(first, stages[-1]))
    return candidates, stages


def _skipped(name: str, reason: str) -> StageTime:
    return StageTime(name, outcome=f"skipped: {reason}")


def search_by_draft(first: FirstSearch, draft: StageTime) -> Candidates:
    """Return what the text of a draft finds by words and by meaning, within the question's filters,
    in channels of its own (`hyde-1 text`, for the name `hyde-1`); nothing for one without words.

    Nothing in it is understood as a filter or as a mention. Raises what the tables raise.
    """
    text, where = " ".join(hypothesis_tokens(draft.text)), filter_of(first.query)
    if not text:
        return Candidates()
    prefix = f"{draft.name} "
    find = partial(search_words, first.tables, text, draft.text, where, prefix=prefix)
    try:
        hits = find(first.encoders, limit=HYPOTHESIS_CANDIDATES)
    except (EmbeddingError, IndexFormatError):  # it refused, or the index was made anew
        hits = find({}, limit=HYPOTHESIS_CANDIDATES)
    return Candidates.of(hits)


def needless(query: Query, found: Candidates) -> str:
    """Why no model is asked for help with a question; '' when one is."""
    if query.symbol_like and found.channels.get("symbol"):
        # It is found in milliseconds, and no guess at its code finds it better.
        return "the question is a name that is defined here"
    return "" if query.text else "the question has no words"


def prompted(prompt: str, folder: Path | None = None, **fields: str) -> list[Message]:
    """What the model is asked by the prompts `<prompt>_system` and `<prompt>_user`, with what looks
    like a secret masked in `fields`.

    No text of the repository goes into a system message. Raises SettingsError for a prompt
    override that cannot be used.
    """
    masked = {name: mask_secrets(text) for name, text in fields.items()}
    names = (f"{prompt}_system", f"{prompt}_user")
    system, user = (render_prompt(name, folder, **masked) for name in names)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def hypothesis_tokens(text: str) -> list[str]:
    """What full-text search is asked for: the identifiers of `text` first, then other words."""
    found = [word for word in dict.fromkeys(words(text)) if len(word) > 1]
    found = [w for w in found if w.lower() not in _KEYWORDS and w.lower() not in QUESTION_WORDS]
    found.sort(key=lambda word: not _CODE_LIKE.search(word))  # stable: else as they come
    tokens: dict[str, None] = {}
    for word in found:
        tokens.update(dict.fromkeys(search_tokens(word)))
        if len(tokens) >= HYPOTHESIS_WORDS:
            break
    return list(tokens)[:HYPOTHESIS_WORDS]


def only_by_hypothesis(hit: Hit) -> bool:
    """Whether nothing but hypotheses found `hit`."""
    return bool(hit.channels) and all(name.startswith("hyde-") for name in hit.channels)


def merge(
    hits: Sequence[Hit], own: Sequence[Hit], own_files: Sequence[FileHit], top: int
) -> tuple[list[Hit], list[FileHit]]:
    """The lists of units and files of a search with hypotheses.

    `hits` are ranked with their channels; `own` and `own_files` are what the question alone
    ranks: the first of each stays among the first FIRST_STAYS, and at most `top`.
    """
    merged = [
        replace(hit, why=(*hit.why, FOUND_BY_HYDE)) if only_by_hypothesis(hit) else hit
        for hit in hits
    ]
    if own:
        place = [hit.unit.id for hit in merged].index(own[0].unit.id)
        _keep_first(merged, place, [*map(only_by_hypothesis, merged)], min(FIRST_STAYS, top))
    files = rank_files(merged)
    if own_files:
        by_question = {hit.unit.path for hit in merged if not only_by_hypothesis(hit)}
        place = [file.path for file in files].index(own_files[0].path)
        guessed = [file.path not in by_question for file in files]
        _keep_first(files, place, guessed, FIRST_STAYS)
    return merged, files


def _keep_first(ranked: list[_T], place: int, guessed: Sequence[bool], within: int) -> None:
    """Move the item at `place` among the first `within` and before all `guessed`.

    Its score rises to that of the item whose place it takes; the others keep their order.
    """
    target = min(place, [*guessed, True].index(True), within - 1)
    score = max(ranked[place].score, ranked[target].score)
    ranked.insert(target, replace(ranked.pop(place), score=score))


def join(found: Candidates, more: Candidates) -> Candidates:
    """Everything of both, in a new object; the channels of both stand beside each other."""
    return Candidates({**more.units, **found.units}, {**found.channels, **more.channels})
