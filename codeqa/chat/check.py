"""What holds of an answer, and what may be asked next: the last stage of a turn before it is kept.

Questions to ask next are made from names that really stand in the code that was sent, so that a
search by name answers them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codeqa.chat.citations import CitedCode, find_citations, overlap, verify_all
from codeqa.chat.hooks import Hooks
from codeqa.chat.stored import read_turn_record
from codeqa.chat.stream import Stream
from codeqa.chat.values import Checked
from codeqa.code.tools import Toolbox
from codeqa.errors import CodeQAError
from codeqa.routing.intents import NEED_CODE
from codeqa.state import State
from codeqa.state.records import Turn
from codeqa.types import TEXT_KINDS, Chunk

SUGGESTIONS = 3

_TELLING_NAME = re.compile(r"[^\W\d_]\w{3,59}")
"""One that few other things have, and that still makes a question that reads well."""
_AS_CODE = re.compile(r"`([^`\n]{1,200})`")
_USES = re.compile(r"\b(?:us(?:e[sd]?|ages?|ing)|call|reference|invoke)", re.IGNORECASE)
_TESTS = re.compile(r"\btest", re.IGNORECASE)


def check(stream: Stream, hooks: Hooks, toolbox: Toolbox) -> Checked:
    """Read what `stream` has come to: it may have ended early."""
    gathered, written = stream.gathered, "".join(stream.pieces)
    if gathered is None:
        return Checked()
    revised, problems = written, tuple[str, ...]()
    if stream.finished and not gathered.reply:
        revised, problems = hooks.run("after_generation", written, asked=gathered)
    answer, revised = revised or written, revised if revised != written else ""
    try:
        citations = verify_all(answer, stream.cited_code(toolbox))
    except CodeQAError:  # the index is gone by now
        return Checked(revised, problems=problems)
    suggestions: tuple[str, ...] = ()
    if stream.finished and gathered.intent in NEED_CODE:
        suggestions = suggest(stream.question.text, stream.block.chunks, answer)
    return Checked(revised, citations, suggestions, problems)


def still_holds(past: Turn, state: State, toolbox: Toolbox, *, unrated: bool) -> bool:
    """Whether the answer `past` may be sent along elsewhere: it was finished, all its citations are
    right, the code that was sent of the cited files is as it was, and it has a thumb up, or with
    `unrated` none."""
    thumbs = state.feedback.of_conversation(past.conversation, past.user, past.repository)
    if thumbs.get(past.id, (0, ""))[0] < (0 if unrated else 1):
        return False
    kept = read_turn_record(past)
    if not (kept.finished and kept.citations and all(one.verified for one in kept.citations)):
        return False
    paths = {one.path for one in kept.citations}
    try:
        code = CitedCode(toolbox.files, toolbox.tables(), kept.chunks)
    except CodeQAError:
        return False
    return all(code.lines(path) is not None for path in paths) and not any(
        code.has_changed(chunk.path, chunk.start_line, chunk.end_line)
        for chunk in kept.chunks
        if chunk.path in paths
    )


def suggest(question: str, chunks: Sequence[Chunk], answer: str) -> tuple[str, ...]:
    """Up to SUGGESTIONS questions that follow from `chunks`, the context of `answer` to `question`.

    What the answer names as code comes first, then what it cites, then the rest of the context.
    What `question` asks is not asked again, and no question is of the kind of the one before it.
    """
    asked = {word.lower() for word in re.findall(r"\w+", question)}
    mentioned = {word for code in _AS_CODE.findall(answer) for word in re.findall(r"\w+", code)}
    cited = [(one.path, one.start, one.end) for one in find_citations(answer)]

    def place(chunk: Chunk) -> int:
        lines = (chunk.path, chunk.start_line, chunk.end_line)
        found = (number for number, one in enumerate(cited) if overlap(lines, one))
        return next(found, len(cited))

    names = dict.fromkeys(
        chunk.name
        for chunk in sorted(chunks, key=place)
        if chunk.role == "source" and chunk.kind not in TEXT_KINDS
        if _TELLING_NAME.fullmatch(chunk.name) and not chunk.why.startswith("uses ")
    )
    main, *rest = sorted(names, key=lambda name: name not in mentioned) or [""]
    others = [name for name in rest if name.lower() not in asked]
    found: list[str] = []
    if main and not (_USES.search(question) and main.lower() in asked):
        found.append(f"Where is `{main}` used?")
    found += [f"What does `{name}` do?" for name in others[:1]]
    if main and not _TESTS.search(question):
        found.append(f"Are there tests for `{main}`?")
    for name in others:
        found += [f"Where is `{name}` used?", f"What does `{name}` do?"]
    return tuple(dict.fromkeys(found))[:SUGGESTIONS]
