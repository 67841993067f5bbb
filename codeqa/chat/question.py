"""Parse the user's message: the first stage of a turn."""

from __future__ import annotations

from dataclasses import replace

from codeqa.chat.pinned import check_spans
from codeqa.chat.values import AskOptions, Question, masked_exchange
from codeqa.code.counted import counted_question
from codeqa.errors import UsageError
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import read
from codeqa.routing.mode import read_mode, read_whole
from codeqa.routing.personal import read_personal
from codeqa.search.query import parse_query
from codeqa.text import strip_tag
from codeqa.text.tokens import well_formed


def read_question(options: AskOptions) -> Question:
    """Parse and mask the message. Raises UsageError for an empty one, and for invalid spans."""
    history = None
    if options.history is not None:
        history = tuple(map(masked_exchange, options.history))
    options = replace(
        options,
        question=mask_secrets(well_formed(options.question)),
        conversation=well_formed(options.conversation),
        replaces=well_formed(options.replaces),
        after=well_formed(options.after),
        pin=check_spans(options.pin),
        exclude=check_spans(options.exclude),
        instructions=mask_secrets(well_formed(options.instructions)),
        history=history,
    )
    # What a task is about is no part of what is asked.
    untagged = "" if options.task else strip_tag(options.question)
    mode, text = read_mode(untagged, options.mode)
    whole_files, mask, _ = read_whole(untagged)
    if not text and not options.task:
        raise UsageError("The question is empty.", "Type a question.")
    return Question(
        options=options,
        typed=options.question,
        text=text or options.question,
        mode=mode,
        mode_chosen=bool(options.mode) or text != untagged,
        whole_files=whole_files,
        mask=mask,
        query=parse_query(text, path=mask),
        words=read(text),
        personal=read_personal(text),
        counted=counted_question(text),
    )
