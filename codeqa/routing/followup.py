"""A message in its conversation: whether it leaves what that was about, and, where it says too
little alone, what makes it complete; by words, and by one call of a small model where these doubt.

What leaves is understood by itself, and there is code that holds far more of it than the code at
hand. What was tried instead: the cosine of its vector to the topic's, by the shipped table, does
not tell changes from follow-ups (research/benchmarks/results/topics.md).

"And who calls it?" finds nothing: what it means stands in an earlier turn. What is made of it is
only searched for, shown, and kept with the turn; the question that is answered stays as typed.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from codeqa.code.calls import without_relations
from codeqa.context.block import ContextBlock
from codeqa.errors import CodeQAError, StorageError
from codeqa.llm.client import Model, generate_bounded
from codeqa.llm.values import Cancelled, Message, never
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import (
    INTENTS,
    Intent,
    Reading,
    by_words,
    goes_on,
    points_back,
    read,
    shortened,
    stands_alone,
)
from codeqa.routing.mode import read_mode
from codeqa.routing.policy import Features
from codeqa.search.channels import full_text_query
from codeqa.search.query import QUESTION_WORDS, Query, parse_query
from codeqa.state.cache import Cache
from codeqa.store import UNIT_TABLES, Tables, TextSearch
from codeqa.text import has_tag
from codeqa.text.tokens import form_pattern, search_tokens, well_formed
from codeqa.types import NO_USAGE, Exchange, TokenUsage

SEARCHED = 100
"""Units of each table that are looked at."""
READ = 20
"""The best of them, whose text is read for the words of the message."""
NEAR = 0.4
"""The best of the code at hand scores so much of the best anywhere, or a message leaves. Of 29
changes that are whole questions 26 lie below, of 22 such follow-ups 3 (half `tune` of
research/evals/intents/topic_pairs.jsonl and others, written for this); most follow-ups are no
such."""
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
    return [word for word in query.words if word not in QUESTION_WORDS]


def _as_code(name: str) -> str:
    """`name`, marked as code where it could be any word."""
    return name if code_names(parse_query(name)) else f"`{name}`"


def code_names(query: Query) -> list[str]:
    """What is written as code: dotted names whole, files, other identifiers."""
    inside = {name.rpartition(".")[2] for name in query.qualified}
    single = [name for name in query.names if name not in inside]
    return list(dict.fromkeys((*query.qualified, *single, *query.files)))


# The one call of a small model about a message: what it is for, whether it leaves the topic, and
# the message made complete. It is made where words doubt any of the three, and once at most.
# It raises nothing: whatever becomes of the model, or of what it writes, the words have an answer.

PROMPT_VERSION = 6
"""Part of the key under which a model's word on an intent is cached: raise it when the
prompt, or what an intent means, changes."""
CACHE_SECONDS = 1_800.0
"""Lifetime of a cached intent."""
MODEL_SECONDS = 4.0
"""Time that a model has: half of what a draft may take, for it comes before them."""
PAUSE_SECONDS = 30.0
"""A model that said nothing of use is not asked again for so long."""
MOST_TOKENS = 250
LONGEST = 400
"""Characters of a completed question; what is longer is an answer or a rant."""
LAST_QUESTIONS = 3
QUESTION_CHARACTERS = 300
ANSWER_CHARACTERS = 800
NAMES = 6
"""Earlier turns as a model sees them: enough to tell what "it" is."""

_TOPICS: Mapping[str, Leaving] = {
    "SAME": STAYS,
    "NEW": Leaving("code", "the model takes it for a question about other code"),
    "OTHER": Leaving("elsewhere", "the model finds that no code here is about it"),
}
_FORMATTED = re.compile(r"^(?:#|[-*+>]\s|\d+[.)]\s)|\*\*|__\w|\]\(|<\w+[ />]|\n")


@dataclass(frozen=True, slots=True)
class Understood:
    """What a model said of a message; None and '' for what it did not say in a usable form."""

    intent: Intent | None = None
    leaving: Leaving | None = None
    question: str = ""
    """The message as a question that stands alone."""
    usage: TokenUsage = NO_USAGE
    """What asking took."""


@dataclass(slots=True)
class SmallCall:
    """Asks the small model of the moment, and keeps what it said of intents for half an hour."""

    cache: Cache
    connect: Callable[[], Model | None]
    """None for no model."""
    config_dir: Path | None
    seconds: float = MODEL_SECONDS
    _ask_again: float = field(default=0.0, init=False)

    def recall(self, user: str, text: str, has_history: bool) -> Intent | None:
        """What it said lately of the same message."""
        kept = None
        with suppress(StorageError):  # a cache costs no answer, whatever lies in it
            kept = self.cache.get(cache_key(user, text, has_history))
        found = read_answer(kept or "", text).intent
        return found and replace(found, source="cache")

    def ask(
        self,
        user: str,
        text: str,
        has_history: bool,
        history: Sequence[Exchange],
        names: Sequence[str],
        cancelled: Cancelled = never,
    ) -> Understood:
        """What the model says of `text` in time, which comes without tag and mode."""
        if cancelled() or time.monotonic() < self._ask_again:
            return Understood()
        said, usage = Understood(), NO_USAGE
        with suppress(CodeQAError):  # a model that is badly set is told where it is to answer
            model = self.connect()
            if model is None:
                return said
            ask = partial(messages_for, text, has_history, history, names, self.config_dir)
            *_, stage = generate_bounded(
                "understand", model, ask, MOST_TOKENS, self.seconds, cancelled
            )
            said, usage = read_answer(stage.text, text, history, names), stage.usage
        if said == Understood() and not cancelled():
            self._ask_again = time.monotonic() + PAUSE_SECONDS
        if said.intent and said.intent.name == "continuation" and not has_history:
            said = replace(said, intent=None)
        if intent := said.intent:
            value = json.dumps({"intent": intent.name, "confidence": intent.confidence})
            with suppress(StorageError):
                self.cache.set(cache_key(user, text, has_history), value, CACHE_SECONDS)
        return replace(said, usage=usage)


def cache_prefix(user: str) -> str:
    """How the keys of all intents begin that are cached for `user`."""
    return f"intent:{hashlib.sha256(user.encode()).hexdigest()[:32]}:"


def cache_key(user: str, text: str, has_history: bool) -> str:
    """Key of a cached intent; neither the user nor the text can be read from it."""
    normal = " ".join(well_formed(text).casefold().split())
    parts = json.dumps([user, normal, has_history, PROMPT_VERSION])
    return f"{cache_prefix(user)}{hashlib.sha256(parts.encode()).hexdigest()}"


def messages_for(
    text: str,
    has_history: bool,
    history: Sequence[Exchange],
    names: Sequence[str],
    config_dir: Path | None = None,
) -> list[Message]:
    """What the model is sent; no text of the conversation stands in the system message.

    Raises SettingsError for a prompt override that cannot be used.
    """
    first = "It is the first message of a conversation."
    earlier = "There are earlier turns." if has_history else first
    parts = [one.question[:QUESTION_CHARACTERS] for one in history[-LAST_QUESTIONS:]]
    if history:
        parts = ["[EARLIER QUESTIONS]", *parts]
        parts += ["[LAST ANSWER]", history[-1].answer[:ANSWER_CHARACTERS]]
    if names:
        parts += ["[NAMES]", ", ".join(names[:NAMES])]
    parts += ["[MESSAGE]", shortened(text)]
    return [
        {"role": "system", "content": render_prompt("understand", config_dir, earlier=earlier)},
        {"role": "user", "content": mask_secrets("\n".join(parts))},
    ]


def read_answer(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> Understood:
    """What of a model's JSON can be used; nothing of what is none."""
    said: Any = None
    with suppress(ValueError, RecursionError):
        said, _ = json.JSONDecoder().raw_decode(written[max(0, written.find("{")) :])
    if not isinstance(said, dict):
        return Understood()
    name, sure, intent = said.get("intent"), said.get("confidence"), None
    if name in INTENTS and isinstance(sure, int | float) and 0 <= sure <= 1:
        intent = Intent(name, round(sure, 2), "model", "a language model was asked")
    question = usable_question(str(said.get("question") or ""), text, history, names)
    return Understood(intent, _TOPICS.get(str(said.get("topic")).upper()), question)


def usable_question(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> str:
    """What the model wrote, as a question to search for; '' when it cannot be one.

    It is one short line of plain text. It has no tag, mode, filter or `@name` that its user did
    not type, keeps those, and every name of theirs; and it is about something that was said.
    """
    line = mask_secrets(written).strip(" \n\"'“”«»")
    if not 3 <= len(line) <= LONGEST or _FORMATTED.search(line) or has_tag(line):
        return ""
    mode, rest = read_mode(line, "explain")
    if rest != line or mode != "explain":
        return ""
    typed, made = parse_query(text), parse_query(line)
    # What restricts a search, or guarantees a place in it.
    if (typed.pointed, typed.filters) != (made.pointed, made.filters):
        return ""
    if any(name.lower() not in line.lower() for name in (*code_names(typed), *typed.phrases)):
        return ""
    said = " ".join((text, *names, *(one.question for one in history[-LAST_QUESTIONS:])))
    known = {token for word in parse_query(said).words for token in search_tokens(word)}
    return line if known.intersection(t for w in made.words for t in search_tokens(w)) else ""
