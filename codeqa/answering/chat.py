"""A question to an answer, as a stream of events (S3.27 to S3.32)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from codeqa.answering.citations import Citation, Span, verify_all
from codeqa.answering.evidence import Evidence, build_context, gather_evidence
from codeqa.answering.extractive import NOTHING_LOOKED_UP, Extractive
from codeqa.answering.generator import Generator
from codeqa.answering.markdown import pieces
from codeqa.context import parse_block
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.retrieval import has_tag, parse_query, strip_tag
from codeqa.search import Search
from codeqa.settings import Settings
from codeqa.state import State, Turn
from codeqa.store import Tables
from codeqa.tokens import well_formed
from codeqa.types import Chunk, ContextBlock, Event

USER = "local"
CONTEXT_SECONDS = 24 * 3600.0
"""Lifetime of a conversation's cached context: a working day and the night after it."""
TAGGED = 1.0
"""Confidence of the intent when `@codebase` decides it."""
UNTAGGED = 0.5
"""And when only the presence of an earlier context does."""

Cancelled = Callable[[], bool]


class Chat:
    """Answers questions about one repository.

    `line_count` gives the lines of an indexed file as it is now, None when there is none;
    `repository` is the id under which contexts are cached.
    """

    def __init__(
        self,
        search: Search,
        open_tables: Callable[[], Tables],
        state: State,
        settings: Settings,
        *,
        repository: str,
        line_count: Callable[[str], int | None],
        generator: Generator | None = None,
    ) -> None:
        self._search = search
        self._open_tables = open_tables
        self._state = state
        self._settings = settings
        self._repository = repository
        self._line_count = line_count
        self._generator: Generator = generator or Extractive()

    def ask(
        self,
        question: str,
        *,
        rerank: bool = False,
        conversation: str = "",
        cancelled: Cancelled | None = None,
    ) -> Iterator[Event]:
        """Yield the events of an answer: `classified`, `retrieved` when something was,
        `generating`, `token`…, `done`; or `error`, or `stopped` once `cancelled()` is true.

        A question with `@codebase` is searched for; without it the context that the
        conversation already has is used. What was answered so far is kept as a turn even
        when the caller stops or goes away.
        """
        stop = cancelled or _never
        question, conversation = well_formed(question), well_formed(conversation)
        text = strip_tag(question)
        if not text:
            yield Event("error", {"message": "The question is empty.", "hint": "Type a question."})
            return
        try:
            if has_tag(question):
                yield from self._answer(question, text, rerank, conversation, stop)
            else:
                yield from self._continue(question, text, conversation, stop)
        except CodeQAError as error:
            yield Event("error", {"message": error.message, "hint": error.hint})

    def context(self, turn_id: str) -> ContextBlock:
        """Exactly the context that was packed for a turn. Raises NotFoundError."""
        turn = self._state.turn(turn_id)
        if turn is None:
            raise NotFoundError("There is no such answer.", "It may be too old: ask again.")
        dropped = [Chunk(**chunk) for chunk in turn.details.get("dropped", ())]
        notes = {note["id"]: note for note in turn.details.get("chunks", ())}
        chunks = []
        for chunk in parse_block(turn.context):
            note: Mapping[str, str] = notes.get(chunk.id, {})
            known = {
                **asdict(chunk),
                "unit_id": note.get("unit_id", ""),
                "why": note.get("why", ""),
            }
            chunks.append(Chunk(**known))
        return ContextBlock(turn.context, tuple(chunks), tuple(dropped))

    def build_context(self, question: str, rerank: bool = False) -> ContextBlock:
        """The context block of `question`, nothing cached and nothing answered."""
        result = self._search.search(question, rerank=rerank)
        return build_context(self._open_tables(), result, self._settings)

    def _answer(
        self, question: str, text: str, rerank: bool, conversation: str, stop: Cancelled
    ) -> Iterator[Event]:
        about: dict[str, Any] = {"intent": "knowledge_base", "confidence": TAGGED}
        yield Event("classified", about)
        if stop():
            yield Event("stopped")
            return
        tables = self._open_tables()
        result = self._search.search(text, rerank=rerank)
        block = build_context(tables, result, self._settings)
        evidence = gather_evidence(tables, result)
        info = {"num_docs": len(block.chunks), "similar_queries": 0}
        self._remember(conversation, block)
        if block.chunks:
            yield Event("retrieved", info)
        about = {**about, "retrieval_info": info, "coverage": result.coverage}
        yield from self._stream(question, conversation, evidence, block, about, stop)

    def _continue(
        self, question: str, text: str, conversation: str, stop: Cancelled
    ) -> Iterator[Event]:
        block = self._remembered(conversation)
        intent = "continuation" if block.chunks else "general"
        about: dict[str, Any] = {"intent": intent, "confidence": UNTAGGED}
        yield Event("classified", about)
        evidence = Evidence(question, parse_query(text), cached=block.chunks)
        about = {**about, "retrieval_info": {"num_docs": 0, "similar_queries": 0}, "coverage": ""}
        yield from self._stream(question, conversation, evidence, block, about, stop)

    def _stream(
        self,
        question: str,
        conversation: str,
        evidence: Evidence,
        block: ContextBlock,
        about: Mapping[str, Any],
        stop: Cancelled,
    ) -> Iterator[Event]:
        """Generate, piece by piece; the turn is kept however this ends."""
        turn = uuid.uuid4().hex
        answer: list[str] = []
        citations: list[Citation] = []
        finished = False
        try:
            if stop():
                yield Event("stopped", {"turn": turn})
                return
            yield Event("generating")
            for piece in self._generated(evidence, block):
                if stop():
                    yield Event("stopped", {"turn": turn})
                    return
                answer.append(piece)
                yield Event("token", {"text": piece})
            spans = [*evidence.spans(), *(_span(chunk) for chunk in block.chunks)]
            citations = verify_all("".join(answer), spans, self._line_count)
            finished = True
        finally:
            details = {
                **about,
                "finished": finished,
                "generator": self._generator.name,
                "repository": self._repository,
                "citations": [citation.as_dict() for citation in citations],
                "chunks": [{"id": c.id, "unit_id": c.unit_id, "why": c.why} for c in block.chunks],
                "dropped": [asdict(chunk) for chunk in block.dropped],
            }
            self._state.save_turn(
                Turn(turn, conversation, question, "".join(answer), block.text, details)
            )
        yield Event(
            "done",
            {
                **about,
                "query_tags": ["codebase"] if has_tag(question) else [],
                "turn": turn,
                "citations": [citation.as_dict() for citation in citations],
                "generator": self._generator.name,
            },
        )

    def _generated(self, evidence: Evidence, block: ContextBlock) -> Iterator[str]:
        if block.chunks or evidence.coverage:
            yield from self._generator.generate(evidence, block)
        else:  # nothing was searched and nothing is cached: there is nothing to answer from
            yield from pieces(NOTHING_LOOKED_UP)

    def _remember(self, conversation: str, block: ContextBlock) -> None:
        value = json.dumps({"repository": self._repository, "context": block.text})
        self._state.set(_key(conversation), value, CONTEXT_SECONDS)

    def _remembered(self, conversation: str) -> ContextBlock:
        """The conversation's context; empty when there is none, or of another repository."""
        value = self._state.get(_key(conversation))
        stored = json.loads(value) if value else {}
        if stored.get("repository") != self._repository:
            return ContextBlock("", ())
        text = str(stored.get("context", ""))
        return ContextBlock(text, tuple(parse_block(text)))


def _key(conversation: str) -> str:
    """Key of a cached context; without a conversation it is the user's (S1.38, C-35)."""
    middle = f":conversation:{conversation}" if conversation else ""
    return f"user:{USER}{middle}:chat_context"


def _span(chunk: Chunk) -> Span:
    return Span(chunk.path, chunk.start_line, chunk.end_line)


def _never() -> bool:
    return False
