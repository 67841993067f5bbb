"""One draft of an answer: what a model is asked, what it writes, and what that finds.

A draft is a guess by a machine that may have read hostile code: it is bounded, and only ever
searched by, shown as plain text, or given to the same model as data.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.errors import CodeQAError, EmbeddingError, IndexFormatError
from codeqa.llm import Cancelled, Message, Model
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.search.channels import Candidates, Found, QueryEncoder, length_factor
from codeqa.search.vocabulary import QUESTION_WORDS
from codeqa.store import UNIT_TABLES, Filter, Tables
from codeqa.text.tokens import search_tokens, well_formed, words
from codeqa.types import StageTime

HYPOTHESIS_CHARACTERS = 4_000
"""Longest draft that is used, whatever a server sends: 768 tokens of code and a good third."""
HYPOTHESIS_WORDS = 48
"""Distinct tokens of a draft that are searched for, as of a question."""
HYPOTHESIS_CANDIDATES = 30
"""Units fetched per table and channel: what lies deep in the list of a guess says nothing."""

DONE, TIMED_OUT, STOPPED, EMPTY = "done", "timed out", "stopped", "empty"

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_CODE_LIKE = re.compile(r"[a-z0-9][A-Z]|[^\W_]_+[^\W_]")
_WORDS_OF_LANGUAGES = """
abstract async await bool boolean break case catch class const continue def default elif else
enum except export extends false final finally fn foreach func function impl implements import
include instanceof int interface internal lambda let namespace new nil none null override
package private protected public raise require return self static str string struct super
switch this throw throws trait true try type typeof undefined unsigned var void yield
"""
_KEYWORDS = frozenset(_WORDS_OF_LANGUAGES.split())
"""Words that all code is made of: they name nothing, and each costs time in the full text."""


def first_messages(question: str, config_dir: Path | None = None) -> list[Message]:
    """What the model is asked for the first draft: the question and nothing else (S1.24, S1.25).

    Raises SettingsError for a prompt override that cannot be used.
    """
    return [
        {"role": "system", "content": render_prompt("hyde_system", config_dir)},
        {
            "role": "user",
            "content": render_prompt("hyde_user", config_dir, query=mask_secrets(question)),
        },
    ]


def second_messages(
    question: str, draft: str, context: str, config_dir: Path | None = None
) -> list[Message]:
    """And for the second: `context` is the block of what was found so far (S1.28, S1.29).

    No text of the repository goes into the system message. Raises as `first_messages`.
    """
    system = render_prompt("hyde_v2_system", config_dir, query=mask_secrets(question))
    user = render_prompt(
        "hyde_v2_user", config_dir, context=context.rstrip(), hyde_query=mask_secrets(draft)
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def generate_bounded(
    name: str,
    model: Model,
    messages: Callable[[], Sequence[Message]],
    most_tokens: int,
    seconds: float,
    cancelled: Cancelled,
) -> Generator[StageTime, None, StageTime]:
    """Ask `model` for a draft: yields the stage as it begins and as it ends, and returns that.

    The request is closed after `seconds`, once `cancelled()` is true, and when the text is long
    enough; what has come by then is the draft. Raises nothing: the outcome says what failed.
    """
    begun = StageTime(name, model=model.name, host=model.host)
    yield begun
    started = time.monotonic()
    until = started + seconds

    def over() -> bool:
        return time.monotonic() >= until or cancelled()

    text, outcome = "", DONE
    try:
        stream = model.stream(messages(), max_tokens=most_tokens, cancelled=over)
        with closing(stream) as pieces:
            for piece in pieces:
                text += piece if isinstance(piece, str) else ""
                if len(text) > HYPOTHESIS_CHARACTERS:
                    break
            else:
                outcome = STOPPED if cancelled() else TIMED_OUT if over() else DONE
    except CodeQAError as error:
        outcome = f"failed: {error.message}"
    text = clean_hypothesis(text)
    if outcome == DONE and not hypothesis_tokens(text):
        text, outcome = "", EMPTY
    took = (time.monotonic() - started) * 1000
    ended = replace(begun, milliseconds=took, outcome=outcome, text=text)
    yield ended
    return ended


def clean_hypothesis(text: str) -> str:
    """`text` as it is searched by and shown: bounded, no fences, nothing that cannot be seen."""
    text = _FENCE.sub("", well_formed(text[:HYPOTHESIS_CHARACTERS]))
    return _UNSEEN.sub("", text.replace("\r\n", "\n")).strip()


def hypothesis_tokens(text: str) -> list[str]:
    """What full-text search is asked for a draft: its identifiers first, then other words."""
    found = [word for word in dict.fromkeys(words(text)) if len(word) > 1]
    found = [w for w in found if w.lower() not in _KEYWORDS and w.lower() not in QUESTION_WORDS]
    found.sort(key=lambda word: not _CODE_LIKE.search(word))  # stable: else as they come
    tokens: dict[str, None] = {}
    for word in found:
        tokens.update(dict.fromkeys(search_tokens(word)))
        if len(tokens) >= HYPOTHESIS_WORDS:
            break
    return list(tokens)[:HYPOTHESIS_WORDS]


def search_hypothesis(
    tables: Tables,
    draft: StageTime,
    where: Filter | None,
    encoders: Mapping[str, QueryEncoder],
) -> Candidates:
    """What the draft finds by its words and by its meaning, within the question's filter.

    By its words alone when an embedding fails for it, or when the index was rebuilt for another
    one while the draft was written: the question has its answer without. Raises what the tables
    raise.
    """
    try:
        return _search(tables, draft, where, encoders)
    except (EmbeddingError, IndexFormatError):
        return _search(tables, draft, where, {})


def _search(
    tables: Tables,
    draft: StageTime,
    where: Filter | None,
    encoders: Mapping[str, QueryEncoder],
) -> Candidates:
    text = " ".join(hypothesis_tokens(draft.text))
    tasks: list[Callable[[], list[Found]]] = [
        partial(_by_words, tables, table, draft.name, text, where) for table in UNIT_TABLES
    ]
    tasks += [
        partial(_by_meaning, tables, column, encoder, draft, where)
        for column, encoder in encoders.items()
    ]
    found = Candidates()
    with ThreadPoolExecutor(max_workers=len(tasks)) as pool:
        for part in pool.map(lambda task: task(), tasks):
            for channel, unit, score in part:
                found.add(channel, unit, score)
    return found


def _by_words(
    tables: Tables, table: str, name: str, text: str, where: Filter | None
) -> list[Found]:
    hits = tables.full_text(table, text, HYPOTHESIS_CANDIDATES, where) if text else []
    return [(f"{name} text", unit, score) for unit, score in hits]


def _by_meaning(
    tables: Tables, column: str, encoder: QueryEncoder, draft: StageTime, where: Filter | None
) -> list[Found]:
    vector = encoder.embed_query(draft.text)
    if not vector.any():
        return []
    return [
        (f"{draft.name} {column}", unit, score * length_factor(unit))
        for table in UNIT_TABLES
        for unit, score in tables.nearest(table, column, vector, HYPOTHESIS_CANDIDATES, where)
    ]
