"""What of an answer holds: the last stage of a turn before it is kept."""

from __future__ import annotations

from contextlib import suppress

from codeqa.chat.citations import verify_all
from codeqa.chat.gather import Gatherer
from codeqa.chat.grounding import judge_all, what_is_not_known
from codeqa.chat.stream import Checked, Stream
from codeqa.chat.suggestions import suggest
from codeqa.errors import CodeQAError
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE


def check(stream: Stream, gatherer: Gatherer) -> Checked:
    """Read what `stream` has come to: it may have ended early."""
    gathered, written = stream.gathered, "".join(stream.pieces)
    if gathered is None:
        return Checked(judged=stream.judged)
    revised, problems = written, tuple[str, ...]()
    if stream.finished and not stream.reply:
        hooks = gatherer.hooks
        revised, problems = hooks.run("after_generation", written, asked=gathered)
    answer, revised = revised or written, revised if revised != written else ""
    chunks = stream.block.chunks
    try:
        citations = verify_all(answer, stream.shown(), gatherer.cited(chunks))
    except CodeQAError:  # the index is gone by now
        return Checked(revised, judged=stream.judged, problems=problems)
    judged, not_known = list(stream.judged), ""
    ours = stream.reply == ISSUE or gathered.counted or stream.request is None
    sent = () if ours or stream.request is None else stream.request.block.chunks
    if stream.finished and sent:
        if not gathered.strict or revised:
            judged = judge_all(answer, sent)
        not_known = what_is_not_known(judged, gathered.search, sent)
    suggestions: tuple[str, ...] = ()
    if stream.finished and gathered.intent in NEED_CODE:
        with suppress(CodeQAError):
            suggestions = suggest(stream.question.text, chunks, answer)
    return Checked(revised, citations, judged, not_known, suggestions, problems)
