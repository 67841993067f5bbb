"""Tells whether a message leaves the topic of its conversation, and completes follow-ups.

"And who calls it?" finds nothing: what "it" means stands in an earlier turn. The completed question
is searched for, shown and stored with the turn; the question that is answered stays as typed.

Words decide; where they are unsure, a small model is asked once. The cosine of question vectors
does not tell changes of topic from follow-ups (research/benchmarks/results/topics.md).
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
from itertools import chain
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
from codeqa.types import NO_USAGE, Exchange, TokenUsage, Unit

HITS_COMPARED = 100
"""Hits of each table that are compared."""
HITS_READ = 20
"""Best hits whose text is read for the words of the message."""
LEAVES_BELOW = 0.4
"""A message leaves if the code at hand scores less than this share of the best hit. At this limit
26 of 29 real changes of topic leave, and 3 of 22 follow-ups do wrongly (topic_pairs.jsonl)."""
DOUBTFUL_BELOW = 0.6
"""Below this share words may be wrong, and a model is asked if there is one."""
MOST_CARRIED = 6
"""Most words that are carried into a follow-up. With them the definition was among the first five
hits for 23 of 26 follow-ups, without for 14; names from earlier hits instead place it lower."""
ENOUGH_WORDS = 3
"""A follow-up with so many words of its own is searched for as it is: others would dilute it."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """The direction in which a message leaves the topic, and the reason."""

    to: Literal["", "code", "elsewhere"] = ""
    """Other code of the repository, or no code at all; '' where it stays."""
    why: str = ""
    """The reason that the user reads."""
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
    """Decide by words whether a message leaves the topic: one full-text search, 3 to 4 ms.

    It stays if it needs an earlier turn to be understood, or if no code at hand could mislead.
    """
    words = query.words
    if not (words and context.chunks):
        return STAYS
    tokens = full_text_query(query)
    results = tables.best([TextSearch(table, tokens, HITS_COMPARED) for table in UNIT_TABLES])
    hits = sorted(chain.from_iterable(results), key=lambda hit: -hit[1])
    texts = [unit.path + unit.source_code for unit, _ in hits[:HITS_READ]]
    for exchange in history:
        texts += [exchange.question, exchange.answer]
    unknown = _missing(words, "\n".join(texts))
    if not stands_alone(message):
        return Leaving(doubtful=2 * len(unknown) >= len(words))
    if 2 * len(unknown) > len(words):
        return Leaving("elsewhere", f"neither code nor conversation has {', '.join(unknown)}", True)
    at_hand = next((score for unit, score in hits if _begins_in(unit, context)), 0.0)
    nearness = at_hand / hits[0][1] if hits else 1.0
    if nearness >= LEAVES_BELOW:
        return Leaving(doubtful=nearness < DOUBTFUL_BELOW)
    missing = ", ".join(_missing(words, context.text))
    why = f"the earlier code has no {missing}" if missing else "other code has more of its words"
    return Leaving("code", why, True)


def _begins_in(unit: Unit, context: ContextBlock) -> bool:
    line = unit.start_line  # a class of which the block has only a method does not count
    return any(chunk.holds(unit.path, line, line) for chunk in context.chunks)


def _missing(words: Sequence[str], text: str) -> list[str]:
    """Return the words of which `text` has no form."""
    lower = text.lower()
    return [word for word in words if not form_pattern(word).search(lower)]


def is_incomplete(query: Query, words: Reading, features: Features) -> bool:
    """Return whether a question says too little to be searched for without the conversation."""
    if query.traceback or features.off_topic or not features.conversation_length:
        return False
    if features.is_followup and points_back(words):
        return True
    short = features.is_followup and len(telling_words(query)) < ENOUGH_WORDS
    return (short or goes_on(words)) and not (code_names(query) or query.pointed)


def complete_by_words(text: str, history: Sequence[Exchange], names: Sequence[str]) -> str:
    """Add to `text` the few words of earlier questions that tell what it is about.

    These are the code that the last question names, else its words; where that is a follow-up
    itself, also those of the question before it. Without any, they are the first of `names`, which
    are those of earlier hits.
    """
    query = parse_query(text)
    topic: list[str] = []
    for exchange in reversed(history):
        earlier = parse_query(exchange.question)
        # "And its callers?" asks for a relation, but does not say of what.
        telling = telling_words(parse_query(without_relations(exchange.question)))
        topic += [_as_code(name) for name in code_names(earlier)] or telling
        if topic and by_words(read(exchange.question), has_history=True).name != "continuation":
            break
    typed = f"{text} {query.text}".lower().split()
    carried = [one for one in dict.fromkeys(topic or names) if one.strip("`").lower() not in typed]
    return " ".join([text] + carried[:MOST_CARRIED])


def telling_words(query: Query) -> list[str]:
    """Return the words of a question that do not only ask."""
    return [word for word in query.words if word not in QUESTION_WORDS]


def _as_code(name: str) -> str:
    """Return `name`, in backticks where it would be read as a word."""
    return name if code_names(parse_query(name)) else f"`{name}`"


def code_names(query: Query) -> list[str]:
    """Return what a question writes as code: whole dotted names, other identifiers, files."""
    inside = {name.rpartition(".")[2] for name in query.qualified}
    single = [name for name in query.names if name not in inside]
    return list(dict.fromkeys(list(query.qualified) + single + list(query.files)))


# The one call of a small model about a message. It raises nothing: without it words decide.

PROMPT_VERSION = 6
"""Part of the key of a cached intent: raise it with the prompt or the meaning of an intent."""
CACHE_SECONDS = 1_800.0
"""Lifetime of a cached intent."""
MODEL_SECONDS = 4.0
"""Deadline of the call: half of a draft's, as it comes before drafts."""
PAUSE_SECONDS = 30.0
"""How long a model is left alone after an answer of no use."""
MOST_TOKENS = 250
LONGEST_QUESTION = 400
"""Characters of a completed question; a longer one is an answer."""
LAST_QUESTIONS = 3
QUESTION_CHARACTERS = 300
ANSWER_CHARACTERS = 800
NAMES_SENT = 6
"""How much of earlier turns the model gets: enough to tell what "it" is."""

_TOPICS: Mapping[str, Leaving] = {
    "SAME": STAYS,
    "NEW": Leaving("code", "the model takes it for a question about other code"),
    "OTHER": Leaving("elsewhere", "the model finds that no code here is about it"),
}
_FORMATTED = re.compile(r"^(?:#|[-*+>]\s|\d+[.)]\s)|\*\*|__\w|\]\(|<\w+[ />]|\n")


@dataclass(frozen=True, slots=True)
class Understood:
    """The answer of a model about a message; None and '' for what it left out or cannot be used."""

    intent: Intent | None = None
    leaving: Leaving | None = None
    question: str = ""
    """The message as a question that stands alone."""
    usage: TokenUsage = NO_USAGE


@dataclass(slots=True)
class SmallCall:
    """Asks the small model about a message, and caches the intent."""

    cache: Cache
    connect: Callable[[], Model | None]
    """Return the model that is chosen now, None for none."""
    config_dir: Path | None
    seconds: float = MODEL_SECONDS
    _ask_again: float = field(default=0.0, init=False)

    def recall(self, user: str, text: str, has_history: bool) -> Intent | None:
        """Return the cached intent of the same message."""
        value = None
        with suppress(StorageError):  # a cache costs no answer
            value = self.cache.get(cache_key(user, text, has_history))
        intent = read_answer(value or "", text).intent
        return replace(intent, source="cache") if intent else None

    def ask(
        self,
        user: str,
        text: str,
        has_history: bool,
        history: Sequence[Exchange],
        names: Sequence[str],
        cancelled: Cancelled = never,
    ) -> Understood:
        """Ask about `text`, a message without tag and mode."""
        if cancelled() or time.monotonic() < self._ask_again:
            return Understood()
        answer, usage = Understood(), NO_USAGE
        with suppress(CodeQAError):  # who answers reports a wrong setting of the model
            model = self.connect()
            if model is None:
                return answer
            messages = partial(messages_for, text, has_history, history, names, self.config_dir)
            *_, stage = generate_bounded(
                "understand", model, messages, MOST_TOKENS, self.seconds, cancelled
            )
            answer, usage = read_answer(stage.text, text, history, names), stage.usage
        if answer == Understood() and not cancelled():
            self._ask_again = time.monotonic() + PAUSE_SECONDS
        intent = answer.intent
        if intent and intent.name == "continuation" and not has_history:
            intent = None
        if intent:
            value = json.dumps({"intent": intent.name, "confidence": intent.confidence})
            with suppress(StorageError):
                self.cache.set(cache_key(user, text, has_history), value, CACHE_SECONDS)
        return replace(answer, intent=intent, usage=usage)


def cache_prefix(user: str) -> str:
    """Return the prefix of the keys of all cached intents of `user`."""
    return f"intent:{hashlib.sha256(user.encode()).hexdigest()[:32]}:"


def cache_key(user: str, text: str, has_history: bool) -> str:
    """Return the key of a cached intent, which reveals neither user nor text."""
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
    """Return the request about `text`; its system message has no text of the conversation."""
    earlier = "It is the first message of a conversation."
    if has_history:
        earlier = "There are earlier turns."
    parts = []
    if history:
        parts.append("[EARLIER QUESTIONS]")
        parts += [turn.question[:QUESTION_CHARACTERS] for turn in history[-LAST_QUESTIONS:]]
        parts += ["[LAST ANSWER]", history[-1].answer[:ANSWER_CHARACTERS]]
    if names:
        parts += ["[NAMES]", ", ".join(names[:NAMES_SENT])]
    parts += ["[MESSAGE]", shortened(text)]
    return [
        {"role": "system", "content": render_prompt("understand", config_dir, earlier=earlier)},
        {"role": "user", "content": mask_secrets("\n".join(parts))},
    ]


def read_answer(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> Understood:
    """Read what can be used of the JSON object that a model wrote, text around it aside."""
    answer: Any = None
    with suppress(ValueError, RecursionError):
        answer, _ = json.JSONDecoder().raw_decode(written[written.find("{") :])
    if not isinstance(answer, dict):
        return Understood()
    name, confidence, intent = answer.get("intent"), answer.get("confidence"), None
    if name in INTENTS and isinstance(confidence, int | float) and 0 <= confidence <= 1:
        intent = Intent(name, round(confidence, 2), "model", "a language model was asked")
    question = usable_question(str(answer.get("question") or ""), text, history, names)
    return Understood(intent, _TOPICS.get(str(answer.get("topic")).upper()), question)


def usable_question(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> str:
    """Return what the model wrote as a question to search for, '' if it cannot be one.

    It must be a short line of plain text about the conversation, with all names, quotes, filters
    and `@names` that the user typed, and with no tag, mode, filter or `@name` beyond these.
    """
    line = mask_secrets(written).strip(" \n\"'“”«»")
    if not 3 <= len(line) <= LONGEST_QUESTION or _FORMATTED.search(line) or has_tag(line):
        return ""
    if read_mode(line, "explain") != ("explain", line):
        return ""
    typed, completed = parse_query(text), parse_query(line)
    if (typed.pointed, typed.filters) != (completed.pointed, completed.filters):
        return ""
    if any(name.lower() not in line.lower() for name in code_names(typed) + list(typed.phrases)):
        return ""
    questions = [exchange.question for exchange in history[-LAST_QUESTIONS:]]
    conversation = parse_query(" ".join([text, *names] + questions))
    return line if _tokens(conversation) & _tokens(completed) else ""


def _tokens(query: Query) -> set[str]:
    return {token for word in query.words for token in search_tokens(word)}
