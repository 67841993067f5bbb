"""Tell what chat programs and agents ask on their own, or add to a question, from the question."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from codeqa.asked import asks, question_pattern
from codeqa.state.records import title_of
from codeqa.types import Exchange

HEAD_CHARACTERS, RULES_CHARACTERS, TURN_CHARACTERS = 600, 150, 2_000
"""Characters of a message, at both ends, and of a system message that may ask for a task; those of
a turn that a task is about."""
MOST_CHARACTERS = 8_000
"""Characters at both ends of what a task is about."""
TITLE_WORDS = 6

_FIELD = re.compile(r'"?\b(\w+)"?\s*:\s*(["\[])[^:]*[\]}]')
_TITLES = ("title", "name", "topic", "summary")


def question_in(message: str) -> str:
    """Return the question in a message in which an agent has wrapped it; others as they are.

    The wrapping is tags at the beginnings of lines: around the question, and around surroundings
    such as open files and the time.
    """
    rest: list[str] = []
    inside: dict[bool, list[str]] = {True: [], False: []}  # questions, and surroundings
    unclosed: set[str] = set()
    at = end = 0
    while match := question_pattern("wrapping").search(message, at):
        name, at = match[1] or match[2], match.end()
        close = message.find(f"</{name}>", at) if name not in unclosed else -1
        if close < 0:
            unclosed.add(name)
            continue
        rest.append(message[end : match.start()])
        inside[bool(match[1])].append(message[at:close].strip())
        at = end = close + len(name) + 3
    around = "".join([*rest, message[end:]]).strip()
    if inside[True] and (inside[False] or not around):
        return "\n\n".join(inside[True])
    return around if inside[False] and not inside[True] and around else message


def is_task(message: str, rules: str = "") -> bool:
    """Return whether a chat program asks for a title, tags, a summary … of a conversation."""
    ends = (message[:HEAD_CHARACTERS], message[-HEAD_CHARACTERS:], rules[:RULES_CHARACTERS])
    return any(asks("client_task", end) for end in ends)


def task_text(message: str, rules: str, history: Sequence[Exchange]) -> str:
    """Return all that a task consists of as one message: rules, conversation and order."""
    turns = [
        f"USER: {turn.question[:TURN_CHARACTERS]}\nASSISTANT: {turn.answer[:TURN_CHARACTERS]}"
        for turn in [*history[:1], *history[-3:][1:]]
    ]
    ends = (message[:MOST_CHARACTERS], message[MOST_CHARACTERS:][-MOST_CHARACTERS:])
    return "\n\n".join(filter(None, (rules[:MOST_CHARACTERS], *turns, "".join(ends))))


def task_reply(text: str) -> str:
    """Return the result of a task without a model: a title from the first question, else nothing.

    It has the form of JSON that `text` asks for.
    """
    turn = asks("wrapped_turn", text)
    paragraphs = re.split(r"\n\s*\n|:\s*\n", text.strip())
    title = title_of((turn[turn.lastindex or 0] if turn else paragraphs[-1]).strip("\"'` \n"))
    title = " ".join(title.split()[:TITLE_WORDS]).rstrip(".,;:?!")
    field = _FIELD.search(text)
    if not field:
        return title
    value: object = [] if field[2] == "[" else title if field[1] in _TITLES else ""
    return json.dumps({field[1]: value}, ensure_ascii=False)
