"""The eighth step: the code, and the earlier answers, that an answer may draw on (S3.18)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codeqa.chat.context_selection import build_context, repack
from codeqa.chat.features import Features
from codeqa.chat.followup import needs_rewriting, rewrite
from codeqa.chat.history import Loaded
from codeqa.chat.hooks import Hooks, Retrieved
from codeqa.chat.pins import read_place
from codeqa.chat.policy import PolicyDecision
from codeqa.chat.steps import Stepped
from codeqa.chat.trace import told
from codeqa.chat.turns import Draft
from codeqa.context import pack
from codeqa.errors import CodeQAError
from codeqa.extractive.evidence import QuotedEvidence, gather_evidence
from codeqa.extractive.generator import NO_CONTEXT, Exchange
from codeqa.files import Files
from codeqa.llm import Model
from codeqa.search import Search, parse_query
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.types import Chunk, ContextBlock, Event

if TYPE_CHECKING:
    from codeqa.chat.conversations import Conversations
    from codeqa.chat.pipeline import Wishes

RETRIEVAL_K = 4
"""Methods and classes in the context of a question that is searched for without its writer
asking for it (S3.18, C-06)."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What there is for an answer."""

    block: ContextBlock = NO_CONTEXT
    searched: bool = False
    """For this question, now; else the block is an earlier one's."""
    evidence: QuotedEvidence | None = None
    """Only where it was asked for."""
    similar: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieving:
    """Looks up what the policy asks for, and nothing else.

    `connect` gives the model that rewrites follow-ups, None for none.
    """

    search: Search
    open_tables: Callable[[], Tables]
    files: Files
    settings: Settings
    hooks: Hooks
    conversations: Conversations
    connect: Callable[[], Model | None]

    def look(
        self,
        draft: Draft,
        loaded: Loaded,
        features: Features,
        decision: PolicyDecision,
        wishes: Wishes,
        needs_evidence: bool,
    ) -> Stepped[Looked]:
        """Search, or recall, or do neither; yields what happens meanwhile."""
        reused = self.conversations.found_for(draft) if wishes.repacks else None
        if reused is not None and not reused.chunks and not reused.dropped:
            reused = None
        if reused is not None:
            looked = Looked(reused, searched=True)
        elif decision.inject_rag:
            looked = yield from self._search(
                draft, loaded, features, decision, wishes, needs_evidence
            )
        elif decision.use_cached_context:
            looked = Looked(loaded.context)
            if draft.branches and draft.keep:
                self.conversations.remember(draft, loaded.context)
        else:
            return Looked()
        if wishes.repacks:
            found = (*looked.block.chunks, *looked.block.dropped)
            pinned = [read_place(self.files, place, found) for place in wishes.pin]
            budget = self.settings.context_characters
            block = repack(found, pinned, wishes.exclude, budget)
            # What the search itself found is no longer what the answer is to be made from.
            looked = replace(looked, block=block, evidence=None)
        if looked.searched:
            draft.found = len(looked.block.chunks)
            if draft.keep:
                self.conversations.remember(draft, looked.block)
        if needs_evidence and looked.evidence is None:
            query, chunks = parse_query(draft.text), looked.block.chunks
            evidence = QuotedEvidence(draft.text, query, cached=chunks, chosen=wishes.repacks)
            looked = replace(looked, evidence=evidence)
        return looked

    def hooked(self, question: str, looked: Looked) -> tuple[Looked, tuple[str, ...]]:
        """`looked` as the hooks leave it; chunks that they changed are packed anew."""
        before = Retrieved(question, looked.block.chunks, looked.similar)
        after, problems = self.hooks.run_after_retrieval(before)
        if after.chunks != before.chunks:
            block = pack(after.chunks, self.settings.context_characters)
            looked = replace(looked, block=block, evidence=_cached(looked.evidence, block.chunks))
        return replace(looked, similar=after.similar), problems

    def _search(
        self,
        draft: Draft,
        loaded: Loaded,
        features: Features,
        decision: PolicyDecision,
        wishes: Wishes,
        needs_evidence: bool,
    ) -> Stepped[Looked]:
        question = draft.text
        earlier: tuple[Chunk, ...] = ()
        if loaded.history and needs_rewriting(draft.text, features):
            question, by = rewrite(
                draft.text,
                loaded.history,
                loaded.names,
                self._model(wishes),
                self.settings.config_dir,
                cancelled=wishes.stop,
            )
            if by:
                draft.rewritten = question
                yield Event("rewritten", {"question": question, "by": by})
            # What was found before stays in the running: it may be what is asked about.
            earlier = loaded.context.chunks
        tables = self.open_tables()
        steps = self.search.steps(
            question, rerank=wishes.rerank, hyde=wishes.hyde, cancelled=wishes.stop
        )
        result = yield from told(steps)
        draft.note(result)
        most = RETRIEVAL_K if decision.searched_automatically else None
        block = build_context(tables, result, self.settings, most=most, earlier=earlier)
        evidence = gather_evidence(tables, result) if needs_evidence else None
        return Looked(block, searched=True, evidence=evidence)

    def _model(self, wishes: Wishes) -> Model | None:
        try:
            return self.connect() if wishes.use_model else None
        except CodeQAError:  # whoever answers says what is wrong with it
            return None


def _cached(evidence: QuotedEvidence | None, chunks: tuple[Chunk, ...]) -> QuotedEvidence | None:
    if evidence is None:
        return None
    return QuotedEvidence(evidence.question, evidence.query, cached=chunks)
