"""The fifth stage of a turn: check the citations of the answer, and suggest further questions.

The suggestions are made of names in the code that was sent, so that a search by name answers them.
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

MOST_SUGGESTIONS = 3

_TELLING_NAME = re.compile(r"[^\W\d_]\w{3,59}")
"""A name that is rare enough to be searched for, and short enough to read well in a question."""
_AS_CODE = re.compile(r"`([^`\n]{1,200})`")
_USES = re.compile(r"\b(?:us(?:e[sd]?|ages?|ing)|call|reference|invoke)", re.IGNORECASE)
_TESTS = re.compile(r"\btest", re.IGNORECASE)


def check(stream: Stream, hooks: Hooks, toolbox: Toolbox) -> Checked:
    """Return the checks of the answer in `stream`, which may have ended early."""
    gathered, answer = stream.gathered, "".join(stream.pieces)
    if gathered is None:
        return Checked()
    revised, problems = "", tuple[str, ...]()
    if stream.finished and not gathered.reply:
        text, problems = hooks.run("after_generation", answer, asked=gathered)
        if text != answer:
            revised = text
    answer = revised or answer
    try:
        citations = verify_all(answer, stream.cited_code(toolbox))
    except CodeQAError:  # the index was removed meanwhile
        return Checked(revised, problems=problems)
    suggestions: tuple[str, ...] = ()
    if stream.finished and gathered.intent in NEED_CODE:
        suggestions = suggest(stream.question.text, stream.block.chunks, answer)
    return Checked(revised, citations, suggestions, problems)


def still_holds(past: Turn, state: State, toolbox: Toolbox, *, unrated: bool) -> bool:
    """Return whether the answer `past` may be sent along in another conversation.

    It must be complete, with right citations, to files whose sent code is unchanged, and have a
    thumb up; with `unrated`, no thumb is enough.
    """
    thumbs = state.feedback.of_conversation(past.conversation, past.user, past.repository)
    value, _ = thumbs.get(past.id, (0, ""))
    if value < (0 if unrated else 1):
        return False
    record = read_turn_record(past)
    if not (record.finished and record.citations):
        return False
    if not all(citation.verified for citation in record.citations):
        return False
    paths = {citation.path for citation in record.citations}
    try:
        code = CitedCode(toolbox.files, toolbox.tables(), record.chunks)
    except CodeQAError:
        return False
    if any(code.lines(path) is None for path in paths):
        return False
    return not any(
        code.has_changed(chunk.path, chunk.start_line, chunk.end_line)
        for chunk in record.chunks
        if chunk.path in paths
    )


def suggest(question: str, chunks: Sequence[Chunk], answer: str) -> tuple[str, ...]:
    """Return up to MOST_SUGGESTIONS further questions about `chunks`, the context of `answer`.

    Names that the answer writes as code come first, then those it cites, then all others. The
    suggestions vary in kind, and none repeats `question`.
    """
    names = _names_to_ask_about(chunks, answer)
    if not names:
        return ()
    main, *rest = names
    question_words = {word.lower() for word in re.findall(r"\w+", question)}
    others = [name for name in rest if name.lower() not in question_words]
    suggestions: list[str] = []
    if not (_USES.search(question) and main.lower() in question_words):
        suggestions.append(f"Where is `{main}` used?")
    suggestions += [f"What does `{name}` do?" for name in others[:1]]
    if not _TESTS.search(question):
        suggestions.append(f"Are there tests for `{main}`?")
    for name in others:
        suggestions += [f"Where is `{name}` used?", f"What does `{name}` do?"]
    return tuple(dict.fromkeys(suggestions))[:MOST_SUGGESTIONS]


def _names_to_ask_about(chunks: Sequence[Chunk], answer: str) -> list[str]:
    """Return names of definitions in `chunks`: mentioned ones first, then in order of citation."""
    citations = [(cited.path, cited.start, cited.end) for cited in find_citations(answer)]

    def rank(chunk: Chunk) -> int:
        span = (chunk.path, chunk.start_line, chunk.end_line)
        for number, citation in enumerate(citations):
            if overlap(span, citation):
                return number
        return len(citations)

    names: dict[str, None] = {}
    for chunk in sorted(chunks, key=rank):
        is_definition = chunk.role == "source" and chunk.kind not in TEXT_KINDS
        is_use = chunk.why.startswith("uses ")
        if is_definition and not is_use and _TELLING_NAME.fullmatch(chunk.name):
            names[chunk.name] = None
    mentioned = set(re.findall(r"\w+", " ".join(_AS_CODE.findall(answer))))
    return sorted(names, key=lambda name: name not in mentioned)
