"""Reads what is asked: the first stage of a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from codeqa.chat.values import AskOptions, Question
from codeqa.code.counted import exact_question
from codeqa.errors import UsageError
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import read
from codeqa.routing.mode import read_mode, read_whole
from codeqa.routing.personal import read_personal
from codeqa.search.query import parse_query
from codeqa.text import strip_tag
from codeqa.text.tokens import well_formed

PLACES = 200
"""Places that may be pinned, or excluded, at once: more than any context holds."""

_PLACE = re.compile(r"(.+):(\d{1,9})-(\d{1,9})", re.DOTALL)


def read_question(asked: AskOptions) -> Question:
    """Parse and mask what is asked. Raises UsageError for what cannot be asked, for a place that is
    none, and for too many of them."""
    options = replace(
        asked,
        question=mask_secrets(well_formed(asked.question)),
        conversation=well_formed(asked.conversation),
        replaces=well_formed(asked.replaces),
        after=well_formed(asked.after),
        pin=check_places(asked.pin),
        exclude=check_places(asked.exclude),
        instructions=well_formed(asked.instructions),
    )
    untagged = strip_tag(options.question)
    mode, text = read_mode(untagged, options.mode)
    whole_files, mask, _ = read_whole(untagged)
    if not text:
        raise UsageError("The question is empty.", "Type a question.")
    return Question(
        options=options,
        typed=options.question,
        text=text,
        mode=mode,
        mode_chosen=bool(options.mode) or text != untagged,
        whole_files=whole_files,
        mask=mask,
        query=parse_query(text, path=mask),
        words=read(text),
        personal=read_personal(text),
        exact=exact_question(text),
    )


def check_places(places: Iterable[str]) -> tuple[str, ...]:
    """`places` as they are, each once. Raises UsageError for one that is none, or too many."""
    checked = tuple(dict.fromkeys(places))
    if len(checked) > PLACES:
        raise UsageError(f"More than {PLACES} places were given.", "Give fewer.")
    for place in checked:
        parse_place(place)
    return checked


def parse_place(place: str) -> tuple[str, int, int]:
    """Path, first and last line. Raises UsageError."""
    match = _PLACE.fullmatch(place)
    if match is None:
        raise UsageError(f"{place[:80]!r} is no place.", "Write it as path:first-last.")
    return match[1], int(match[2]), int(match[3])
