"""An answer at once, or one more search first: the model that answers says which.

It is given what the plain search found, so where that holds the answer the first word takes one
call. Where it does not, the model writes what it wants to see and lines of code as it expects them:
a draft of the answer (HyDE) by who knows what was found already. What that finds goes behind the
first block, whose beginning a server may have kept, with numbers that go on.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from codeqa.chat.messages import (
    LONGEST_REQUEST,
    ModelGenerator,
    ask_model,
    build_messages,
    characters_left,
)
from codeqa.chat.values import Gathered, Piece, ToolStep
from codeqa.code.tools import Toolbox
from codeqa.context import ContextBlock, format_block
from codeqa.errors import CodeQAError, ContextLengthError
from codeqa.llm.client import clean_text
from codeqa.prompts import render_prompt
from codeqa.search.mentions import as_mention, looks_like_path
from codeqa.search.query import parse_query, restrictions
from codeqa.selection import UNITS_RANKED, Budget, build_context
from codeqa.text.markdown import code_block, code_span
from codeqa.types import Chunk, encloses

ASKS = "SEARCH:"
"""What a model writes instead of an answer begins so."""
ALSO_FOUND = "[ALSO FOUND]\nNot shown above, the best first:\n"
ALSO_LISTED = 40
"""Places listed that did not fit: about 1,000 tokens."""
MOST_WANTED = 8
"""Names and paths of a request that are looked up."""
ASKED_AGAIN = "What was found, also by a second search, does not show this. What is missing: {}.\n"
SUMMARY = 120
NOTHING = "Nothing else was found."
_BEFORE = " \n\r\t`*#>"
"""What may stand before the mark."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model wants to see before it answers."""

    wanted: str
    """Names and paths, in its own words."""
    guess: str
    """Lines of code as it expects them."""


def may_ask(text: str) -> bool:
    """Whether `text`, the beginning of what a model writes, is a request or may become one."""
    bare = text.lstrip(_BEFORE)
    return bare.startswith(ASKS) or ASKS.startswith(bare)


def read_request(text: str) -> Request | None:
    """The request that `text` is; None for an answer."""
    bare = text.lstrip(_BEFORE)
    if not bare.startswith(ASKS):
        return None
    wanted, _, guess = bare.removeprefix(ASKS)[:LONGEST_REQUEST].strip().partition("\n")
    return Request(clean_text(wanted), clean_text(guess))


def search_again(
    toolbox: Toolbox, budget: Budget, question: str, request: Request, known: Sequence[Chunk] = ()
) -> list[Chunk]:
    """What `request` finds by its words and its guess, and what it names, in turn; within the
    filters of `question`, and without `known`. Raises what the search raises."""
    find, within = partial(toolbox.search.search, top=UNITS_RANKED), restrictions(question)
    result = find(f"{request.wanted} {within}", drafts=(request.guess,))
    wanted = parse_query(request.wanted)
    paths = [word for word in request.wanted.split() if looks_like_path(word)]
    names = [*dict.fromkeys((*paths, *wanted.qualified, *wanted.names, *wanted.files))]
    pointed = " ".join(f"@{one}" for name in names[:MOST_WANTED] if (one := as_mention(name)))
    found = find(f"{pointed} {within}").mentioned if pointed else ()
    shown = {chunk.unit_id for chunk in known}
    named = [hit for hit in found if hit.unit.id not in shown][:MOST_WANTED]
    # Each shares the place of a hit, so that neither crowds the other out.
    hits = {hit.unit.id: hit for pair in zip_longest(named, result.units) for hit in pair if hit}
    scores = sorted((hit.score for hit in result.units), reverse=True) or [1.0]
    ranked = [
        replace(hit, score=scores[min(place // 2, len(scores) - 1)])
        for place, hit in enumerate(hits.values())
    ]
    result = replace(result, units=tuple(ranked), mentioned=())
    places = [chunk.place for chunk in known]
    block = build_context(
        toolbox.tables(), result, toolbox.search.settings, budget, excluded=places
    )
    return [
        replace(chunk, why="; ".join(filter(None, (chunk.why, "looked for by the model"))))
        for chunk in block.chunks
        if not any(encloses(one, chunk) for one in known)
    ]


class AskingGenerator(ModelGenerator):
    """Lets `model` answer, or ask for one more search and answer then."""

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        """Answer in one call or in two. Raises ModelError, also after some text."""
        offered = build_messages(asked, self.config_dir)
        offered[0]["content"] += f"\n{render_prompt('ask', self.config_dir)}"
        offered[-1]["content"] += _also_found(asked)
        budget = asked.budget
        if budget is None or characters_left(offered, asked.window) < budget.characters:
            yield from super().generate(asked)  # there is no room for what would be found
            return
        # A request is for us; all else goes on to the reader.
        ask = partial(ask_model, self.model, is_request=may_ask)
        try:
            _, said, _ = yield from ask(offered, asked.block, self.toolbox, asked.cancelled)
        except ContextLengthError:
            yield from super().generate(asked)
            return
        request = read_request(said)
        if request is None or asked.cancelled():
            return
        before, started = asked.block.chunks, time.perf_counter()
        step, chunks = self._search(asked, budget, request)
        yield replace(step, milliseconds=(time.perf_counter() - started) * 1000)
        found = (render_prompt("ask_found", self.config_dir), format_block(chunks, len(before) + 1))
        parts = [{"type": "text", "text": part} for part in found if part]
        offered += [{"role": "assistant", "content": said}, {"role": "user", "content": parts}]
        together = (*before, *chunks)
        block = ContextBlock(together)
        _, said, _ = yield from ask(offered, block, self.toolbox, asked.cancelled)
        if again := read_request(said):
            yield ASKED_AGAIN.format(code_span(again.wanted or asked.question))

    def _search(
        self, asked: Gathered, budget: Budget, request: Request
    ) -> tuple[ToolStep, list[Chunk]]:
        """What the model looked for, as its reader sees it, and what was found."""
        given = f"{request.wanted}\n{request.guess}".strip()
        summary = (
            f"Searched once more: {textwrap.shorten(request.wanted, SUMMARY, placeholder=' …')}"
        )
        text = asked.rewritten or asked.question
        try:
            chunks = search_again(self.toolbox, budget, text, request, asked.block.chunks)
        except CodeQAError as error:
            return ToolStep("search", given, summary, str(error), failed=True), []
        places = "\n".join(chunk.place for chunk in chunks)
        return ToolStep("search", given, summary, f"{given}\n\n{places or NOTHING}"), chunks


def _also_found(asked: Gathered) -> list[dict[str, str]]:
    """What the search found besides, by place and name, as a part of the message."""
    shown = asked.block.chunks
    others = [one for one in asked.block.dropped if not any(encloses(one, c) for c in shown)]
    listed = [f"{one.place} {one.name}".rstrip() for one in others[:ALSO_LISTED]]
    text = ALSO_FOUND + code_block("\n".join(listed))
    return [{"type": "text", "text": text}] if listed else []
