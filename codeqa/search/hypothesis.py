"""One hypothesis (HyDE): what a model is asked for, what it writes, and what that text finds.

It is a guess by a machine that may have read hostile code: it is bounded, and only ever
searched by, shown as plain text, or given to the same model as data.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.errors import CodeQAError, EmbeddingError, IndexFormatError
from codeqa.llm import Cancelled, Message, Model
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.search.channels import Candidates, QueryEncoder, search_words
from codeqa.search.vocabulary import QUESTION_WORDS
from codeqa.store import Filter, Tables
from codeqa.text.tokens import search_tokens, well_formed, words
from codeqa.types import StageTime

HYPOTHESIS_CHARACTERS = 4_000
"""Longest text that is used, whatever a server sends: 768 tokens of code and a good third."""
HYPOTHESIS_WORDS = 48
"""Distinct tokens of it that are searched for, as of a question."""
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
    """What the model is asked for the first hypothesis: the question and nothing else.

    Raises SettingsError for a prompt override that cannot be used.
    """
    render = partial(render_prompt, config_dir=config_dir)
    user = render("hyde_user", query=mask_secrets(question))
    return [{"role": "system", "content": render("hyde_system")}, {"role": "user", "content": user}]


def second_messages(
    question: str, first: str, context: str, config_dir: Path | None = None
) -> list[Message]:
    """And for the second: `context` is the block of what was found so far.

    No text of the repository goes into the system message. Raises as `first_messages`.
    """
    render = partial(render_prompt, config_dir=config_dir)
    system = render("hyde_v2_system", query=mask_secrets(question))
    user = render("hyde_v2_user", context=context.rstrip(), hyde_query=mask_secrets(first))
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def generate_bounded(
    name: str,
    model: Model,
    messages: Callable[[], Sequence[Message]],
    most_tokens: int,
    seconds: float,
    cancelled: Cancelled,
) -> Generator[StageTime, None, StageTime]:
    """Ask `model` for a short text: yields the stage as it begins and as it ends, and returns
    that.

    The request is closed after `seconds`, once `cancelled()` is true, and when the text is long
    enough; what has come by then is used. Raises nothing: the outcome says what failed.
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


def search_hypothesis(
    tables: Tables,
    hypothesis: StageTime,
    where: Filter | None,
    encoders: Mapping[str, QueryEncoder],
) -> Candidates:
    """What its text finds by words and by meaning, within the question's filter, in channels of
    its own (`hyde-1 text`).

    By words alone when an embedding fails for it, or when the index was rebuilt for another one
    while it was written: the question has its answer without. Raises what the tables raise.
    """
    find = partial(
        search_words,
        tables,
        " ".join(hypothesis_tokens(hypothesis.text)),
        hypothesis.text,
        where,
        limit=HYPOTHESIS_CANDIDATES,
        prefix=f"{hypothesis.name} ",
    )
    try:
        return Candidates.of(find(encoders))
    except (EmbeddingError, IndexFormatError):
        return Candidates.of(find({}))
