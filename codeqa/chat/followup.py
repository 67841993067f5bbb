"""Follow-ups made complete before the code is searched: by a small model, or by carrying names.

In the same call the model says whether the message leaves the topic.

"And who calls it?" finds nothing: what it means stands in an earlier turn. What is made of it is
only searched for, shown, and kept with the turn; the question that is answered stays as typed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codeqa.chat.features import Features
from codeqa.chat.generation import Exchange
from codeqa.chat.topic import LEAVING_BY_MODEL, Leaving
from codeqa.code import without_relations
from codeqa.intents import by_heuristics, goes_on, points_back, read_mode
from codeqa.llm import DONE, Cancelled, Message, Model, generate_bounded, never
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.search import Query, parse_query
from codeqa.search.question_words import QUESTION_WORDS
from codeqa.text.tag import has_tag
from codeqa.text.tokens import search_tokens

REWRITE_SECONDS = 4.0
"""How long a model may take: half of what a draft may, for it comes before them."""
REWRITE_TOKENS = 200
LONGEST = 400
"""Characters of a rewritten question; what is longer is an answer or a rant."""
CARRIED = 6
"""Words that are carried into a follow-up at most. Of 26 follow-ups about one repository, written
for this, the definition asked for was then among the first five hits for 23, alone for 14; mean
reciprocal rank .68 against .37. Names of what had been found, carried instead, place it lower."""

ENOUGH_WORDS = 3
"""A question with as many words of its own, and none that refers elsewhere, is searched for as it
is, whatever else it was taken for: words of another matter would only dilute it."""

LAST_QUESTIONS = 3
QUESTION_CHARACTERS = 300
ANSWER_CHARACTERS = 800
"""Earlier turns as a model sees them: enough to tell what "it" is."""

_LABEL = re.compile(
    r"^(?:(?:the )?(?:standalone|rewritten|complete[d]?|follow-?up) ?)*(?:question|query)?:\s+",
    re.IGNORECASE,
)
_VERDICT = re.compile(r"\W*(SAME|NEW|OTHER)\W*(?:[:—–-]\s*|\n|$)", re.IGNORECASE)
_FORMATTED = re.compile(r"^(?:#|[-*+>]\s|\d+[.)]\s)|\*\*|__\w|\]\(|<\w+[ />]|\n")


def needs_rewriting(query: Query, features: Features) -> bool:
    """Whether a question, if it is searched for, says too little without the conversation: it
    refers to something else, or neither names code nor says enough."""
    if query.traceback or features.off_topic or not features.conversation_length:
        return False
    if features.is_followup and points_back(query.text):
        return True
    short = features.is_followup and len(told(query)) < ENOUGH_WORDS
    return (short or goes_on(query.text)) and not (code_names(query) or query.pointed)


def carried(text: str, history: Sequence[Exchange], names: Sequence[str]) -> str:
    """`text`, which says too little, with the few words that tell what it is about.

    These are what the last question names as code, else its own words; of a question that is a
    follow-up itself, those of the one before as well. Where neither has any, the first of
    `names`, which were found for it.
    """
    query = parse_query(text)
    topic: list[str] = []
    for exchange in reversed(history):
        asked = parse_query(exchange.question)
        # "And its callers?" says what is asked, but not of what.
        telling = told(parse_query(without_relations(exchange.question)))
        topic += [_as_code(name) for name in code_names(asked)] or telling
        if topic and by_heuristics(exchange.question, has_history=True).name != "continuation":
            break
    said = {word for name in (text, query.text) for word in name.lower().split()}
    new = [name for name in dict.fromkeys(topic or names) if name.strip("`").lower() not in said]
    return " ".join((text, *new[:CARRIED]))


@dataclass(frozen=True, slots=True)
class Standalone:
    """A message as a question that stands alone."""

    question: str
    by: str = ""
    """What made it so: `model`, `carried`, or '' where it is unchanged."""
    leaving: Leaving | None = None
    """Whether it leaves the topic; None where no model said so."""


def rewrite(
    text: str,
    history: Sequence[Exchange],
    names: Sequence[str],
    model: Model | None,
    config_dir: Path | None = None,
    *,
    cancelled: Cancelled = never,
    seconds: float = REWRITE_SECONDS,
) -> Standalone:
    """`text` as a question that stands alone, and whether `model` says that it leaves the topic.

    Raises nothing: whatever goes wrong with the model, or with what it writes, names are carried.
    """
    leaving: Leaving | None = None
    if model is not None:
        ask = partial(standalone_messages, text, history, names, config_dir)
        drafting = generate_bounded("standalone", model, ask, REWRITE_TOKENS, seconds, cancelled)
        *_, stage = drafting
        leaving, written = read_verdict(stage.text) if stage.outcome == DONE else (None, "")
        if rewritten := usable(written, text, history, names):
            return Standalone(rewritten, "" if rewritten == text else "model", leaving)
    question = carried(text, history, names)
    return Standalone(question, "" if question == text else "carried", leaving)


def read_verdict(written: str) -> tuple[Leaving | None, str]:
    """Whether the model says that the topic is left, None where it does not say, and the rest."""
    found = _VERDICT.match(written)
    if not found:
        return None, written
    return LEAVING_BY_MODEL[found[1].upper()], written[found.end() :]


def standalone_messages(
    text: str,
    history: Sequence[Exchange],
    names: Sequence[str],
    config_dir: Path | None = None,
) -> list[Message]:
    """What the model is asked; no text of the conversation stands in the system message.

    Raises SettingsError for a prompt override that cannot be used.
    """
    earlier = [one.question[:QUESTION_CHARACTERS] for one in history[-LAST_QUESTIONS:]]
    parts = ["[EARLIER QUESTIONS]", *earlier]
    if history:
        parts += ["[LAST ANSWER]", history[-1].answer[:ANSWER_CHARACTERS]]
    if names:
        parts += ["[NAMES]", ", ".join(names[:CARRIED])]
    parts += ["[MESSAGE]", text]
    return [
        {"role": "system", "content": render_prompt("standalone", config_dir)},
        {"role": "user", "content": mask_secrets("\n".join(parts))},
    ]


def usable(
    written: str, text: str, history: Sequence[Exchange] = (), names: Sequence[str] = ()
) -> str:
    """What the model wrote, as a question to search for; '' when it cannot be one.

    It is one short line of plain text. It has no tag, mode, filter or `@name` that its user did
    not type, keeps those, and every name of theirs; and it is about something that was said.
    """
    line = mask_secrets(_LABEL.sub("", written.strip())).strip(" \"'“”«»")
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


def told(query: Query) -> list[str]:
    """Words that say what the question is about."""
    return [word for word in query.words if word not in QUESTION_WORDS]


def _as_code(name: str) -> str:
    """`name`, marked as code where it could be any word."""
    return name if code_names(parse_query(name)) else f"`{name}`"


def code_names(query: Query) -> list[str]:
    """What is written as code: dotted names whole, files, other identifiers."""
    inside = {name.rpartition(".")[2] for name in query.qualified}
    single = [name for name in query.names if name not in inside]
    return list(dict.fromkeys((*query.qualified, *single, *query.files)))
