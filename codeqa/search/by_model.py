"""Let a language model write drafts of the answer to search by (HyDE).

The code that answers a question is often worded differently from the question. So a language
model drafts what the answer might look like, from the question alone, and that text is searched
for as well: its words in the full text, its meaning among the vectors. The hits then go to the
model for a second draft, which uses the names of this code base. A draft adds channels and takes
none away. It is made up by a machine that may have read hostile code: it is bounded, and only ever
searched by, shown as plain text, or given to the same model as data.
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
from codeqa.types import Hit, HydeMode, StageTime, Unit

FIRST, SECOND = "hyde-1", "hyde-2"
"""Names of the drafts, with which the names of their channels begin: `hyde-1 text`."""
FIRST_TOKENS, SECOND_TOKENS = 400, 768
"""Most tokens of each draft."""
SECOND_CHARACTERS = 12_000
"""Most characters of code that the second draft is written from."""
DRAFT_WORDS = 48
"""Distinct tokens of a draft that are searched for, as many as of a question."""
DRAFT_CANDIDATES = 30
"""Units fetched per table and channel: hits far down the list of a draft say nothing."""

FIRST_STAYS = 3
"""The question's own first hit stays among the first so many: as many as a chat keeps of each
table, so that no draft takes it out of the context."""

FOUND_BY_HYDE = "found by a draft of the answer"
"""The reason that the user reads at a hit that only drafts found."""

_CODE_LIKE = re.compile(r"[a-z0-9][A-Z]|[^\W_]_+[^\W_]")
_KEYWORDS = word_set("""
abstract async await bool boolean break case catch class const continue def default elif else
enum except export extends false final finally fn foreach func function impl implements import
include instanceof int interface internal lambda let namespace new nil none null override
package private protected public raise require return self static str string struct super
switch this throw throws trait true try type typeof undefined unsigned var void yield
""")
"""Words that all code consists of: they name nothing, and each costs time in the full text."""

Stages = Generator[StageTime, None, StageTime]
_T = TypeVar("_T", Hit, FileHit)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FirstSearch:
    """The result of searching for the question alone, and the means of that search."""

    tables: Tables
    encoders: Mapping[str, Embedding]
    """Vector column → the embedding that encodes a text for it."""
    trouble: str
    """Why an embedding could not be used; '' where all could."""
    query: Query
    """The question, resolved against the index."""
    candidates: Candidates
    hits: Sequence[Hit]
    """The candidates, ranked."""
    warnings: Sequence[str]


def search_by_model_drafts(
    first: FirstSearch, model: Model, mode: HydeMode, settings: Settings, cancelled: Cancelled
) -> Generator[StageTime, None, tuple[Candidates, list[StageTime]]]:
    """Return the candidates of the question and of the drafts of `model`, and the stages.

    Yield each stage as it begins and as it ends. Raises what the tables raise; a failure of the
    model is the outcome of a stage.
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
        return generate_bounded(name, model, ask, tokens, seconds, cancelled, draft_tokens)

    draft = yield from write(FIRST, FIRST_TOKENS, "hyde", query=query.text)
    by_draft = search_by_draft(first, draft)
    candidates = join(first.candidates, by_draft)
    if mode != "two":
        return candidates, [draft]
    if draft.outcome != DONE:
        reason = f"the first draft is not there ({draft.outcome.partition(':')[0]})"
        second = _skipped(SECOND, reason)
        yield second
        return candidates, [draft, second]
    # Hits of the first draft alternate with hits of the question: cut off, the question's own list
    # alone would often leave out the very code that was predicted.
    units: dict[str, Unit] = {}
    for by_table in zip(best_of_each(rank(by_draft, query)), best_of_each(first.hits), strict=True):
        for hit in chain.from_iterable(zip_longest(*by_table)):
            if hit is not None:
                units[hit.unit.id] = hit.unit
    block = pack(list(map(unit_chunk, units.values())), SECOND_CHARACTERS).text
    fields = {"query": query.text, "context": block.rstrip(), "hyde_query": draft.text}
    second = yield from write(SECOND, SECOND_TOKENS, "hyde_v2", **fields)
    if second.text:
        _log.debug("-query_v2- %s", second.text)
    return join(candidates, search_by_draft(first, second)), [draft, second]


def search_by_drafts(
    first: FirstSearch, drafts: Sequence[str]
) -> tuple[Candidates, list[StageTime]]:
    """Return the candidates of the question and of the caller's `drafts`, and a stage for each."""
    candidates, stages = first.candidates, list[StageTime]()
    for number, draft in enumerate(drafts, 1):
        stages.append(StageTime(f"hyde-{number}", outcome="done", text=clean_text(draft)))
        candidates = join(candidates, search_by_draft(first, stages[-1]))
    return candidates, stages


def _skipped(name: str, reason: str) -> StageTime:
    return StageTime(name, outcome=f"skipped: {reason}")


def search_by_draft(first: FirstSearch, draft: StageTime) -> Candidates:
    """Return the candidates that the text of a draft finds by words and by meaning.

    They lie within the question's filters and in channels of their own (`hyde-1 text`, for the name
    `hyde-1`); there are none for a draft without words. Nothing in a draft is understood as a
    filter or as a mention. Raises what the tables raise.
    """
    text, where = " ".join(draft_tokens(draft.text)), filter_of(first.query)
    if not text:
        return Candidates()
    prefix = f"{draft.name} "
    find = partial(search_words, first.tables, text, draft.text, where, prefix=prefix)
    try:
        hits = find(first.encoders, limit=DRAFT_CANDIDATES)
    except (EmbeddingError, IndexFormatError):  # the embedding failed, or the index was replaced
        hits = find({}, limit=DRAFT_CANDIDATES)
    return Candidates.of(hits)


def needless(query: Query, candidates: Candidates) -> str:
    """Return why no model is asked for help with a question; '' when one is."""
    if query.symbol_like and candidates.channels.get("symbol"):
        # It is found in milliseconds, and no draft of its code finds it better.
        return "the question is a name that is defined here"
    return "" if query.text else "the question has no words"


def prompted(prompt: str, folder: Path | None = None, **fields: str) -> list[Message]:
    """Return the messages of the prompts `<prompt>_system` and `<prompt>_user`.

    Secret-looking strings in `fields` are masked, and no text of the repository goes into a system
    message. Raises SettingsError for a prompt override that cannot be used.
    """
    masked = {name: mask_secrets(text) for name, text in fields.items()}
    system = render_prompt(f"{prompt}_system", folder, **masked)
    user = render_prompt(f"{prompt}_user", folder, **masked)
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def draft_tokens(text: str) -> list[str]:
    """Return the tokens of a draft for full-text search: identifiers first, then other words."""
    ignored = _KEYWORDS | QUESTION_WORDS
    distinct = dict.fromkeys(words(text))
    telling = [word for word in distinct if len(word) > 1 and word.lower() not in ignored]
    telling.sort(key=lambda word: not _CODE_LIKE.search(word))  # stable: else in their order
    tokens: dict[str, None] = {}
    for word in telling:
        tokens.update(dict.fromkeys(search_tokens(word)))
        if len(tokens) >= DRAFT_WORDS:
            break
    return list(tokens)[:DRAFT_WORDS]


def only_by_draft(hit: Hit) -> bool:
    """Return whether drafts alone found `hit`."""
    return bool(hit.channels) and all(name.startswith("hyde-") for name in hit.channels)


def merge(
    hits: Sequence[Hit], own: Sequence[Hit], own_files: Sequence[FileHit], top: int
) -> tuple[list[Hit], list[FileHit]]:
    """Return the lists of units and files of a search with drafts.

    `hits` are ranked with all channels, `own` and `own_files` by the question alone: the first of
    each of these stays among the first FIRST_STAYS, and at most `top`.
    """
    merged = list(hits)
    for index, hit in enumerate(hits):
        if only_by_draft(hit):
            merged[index] = replace(hit, why=hit.why + (FOUND_BY_HYDE,))
    if own:
        rank_before = [hit.unit.id for hit in merged].index(own[0].unit.id)
        _keep_first(merged, rank_before, list(map(only_by_draft, merged)), min(FIRST_STAYS, top))
    files = rank_files(merged)
    if own_files:
        by_question = {hit.unit.path for hit in merged if not only_by_draft(hit)}
        rank_before = [file.path for file in files].index(own_files[0].path)
        by_draft = [file.path not in by_question for file in files]
        _keep_first(files, rank_before, by_draft, FIRST_STAYS)
    return merged, files


def _keep_first(ranked: list[_T], index: int, by_draft: Sequence[bool], within: int) -> None:
    """Move the item at `index` among the first `within` and before every item found `by_draft`.

    Its score rises to that of the item that it moves before; the others keep their order.
    """
    first_by_draft = by_draft.index(True) if True in by_draft else len(by_draft)
    target = min(index, first_by_draft, within - 1)
    score = max(ranked[index].score, ranked[target].score)
    ranked.insert(target, replace(ranked.pop(index), score=score))


def join(candidates: Candidates, others: Candidates) -> Candidates:
    """Return the units and the channels of both in a new object."""
    units = {**others.units, **candidates.units}
    return Candidates(units, {**candidates.channels, **others.channels})
