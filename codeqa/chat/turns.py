"""One turn: while it is being answered (`Draft`), as it is kept, and as it is shown again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from codeqa.chat.citations import Citation
from codeqa.chat.messages import count_tokens
from codeqa.chat.policy import PolicyDecision
from codeqa.chat.steps import Steps
from codeqa.chat.topic import Vector
from codeqa.chat.trace import Trace, read_trace, trace_of
from codeqa.chat.vectors import write_vector
from codeqa.context import notes_of, parse_block, with_notes
from codeqa.errors import CodeQAError
from codeqa.extractive.generator import NO_CONTEXT, Piece, Sent, Used
from codeqa.llm import estimate_tokens
from codeqa.search import SearchResult
from codeqa.state import Turn, TurnExtras
from codeqa.text.tag import has_tag, strip_tag
from codeqa.text.tokens import well_formed
from codeqa.types import Chunk, ContextBlock

CUT_ANSWER = "The answer reached the model's limit of length and ends there."
NO_REASONS: Mapping[str, Any] = {
    "source": "", "reason": "", "rules": (), "searched_automatically": False,
    "searches": False, "goes_on": False, "suggest_codebase": False,
}  # fmt: skip
NO_TOKENS: Mapping[str, Any] = {"prompt": 0, "completion": 0, "estimated": False}


@dataclass(slots=True)
class Draft:
    """A turn in the making; `chat` fills it in from top to bottom."""

    question: str
    """As typed, secret-looking strings masked."""
    text: str
    """Without tag and mode."""
    mode: str
    user: str
    conversation: str
    repository: str
    replaces: str = ""
    continues: float = 0.0
    """When the conversation was created, in seconds since the epoch; 0 while there is none."""
    deleted: bool = False
    """The conversation was deleted while this turn was in the making."""
    begun: float = field(default_factory=time.time)
    """In seconds since the epoch."""
    foreign: bool = False
    """It comes from a program that keeps the conversation itself, and speaks for its user."""
    keep: bool = True
    """Whether it is to be stored, and its context to become the conversation's."""
    branches: bool = False
    """Whether it takes up the conversation at another point than its latest turn."""
    parent: str = ""
    """Id of the turn that it follows; '' for the latest that there is."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    loaded: bool = False
    """What it starts from is known: from here on it is kept however it ends."""
    concluded: bool = False
    """It has been handed over to be kept."""
    steps: Steps = field(default_factory=Steps)
    vector: Vector | None = None
    """Of the question; None for one that the embedding knows no word of."""
    topic: Vector | None = None
    """What the conversation is about, this question included."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the user told of themselves in it."""
    intent: str = ""
    confidence: float = 0.0
    source: str = ""
    """What decided the intent: `tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    decision: PolicyDecision | None = None
    rewritten: str = ""
    """What was searched for instead of a follow-up that says too little alone."""
    found: int = 0
    """Chunks that were retrieved for this question."""
    similar: int = 0
    """Earlier questions that resemble it, and were told with their answers."""
    coverage: str = ""
    reranker: str = ""
    trace: Trace = field(default_factory=Trace)
    notices: list[str] = field(default_factory=list)
    block: ContextBlock = NO_CONTEXT

    generator: str = ""
    reply: str = ""
    """Which of the app's own replies the answer is, '' when it is none."""
    hook_problems: list[str] = field(default_factory=list)
    """Hooks whose part was left out, and why, as sentences."""
    revised: str = ""
    """The answer as a hook changed it after it was read; '' when none did."""
    suggestions: tuple[str, ...] = ()
    """Questions that may come next."""
    sent: Sent = field(default_factory=Sent)
    used: Used | None = None
    answer: list[str] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    finished: bool = False
    error: Mapping[str, str] | None = None

    @property
    def tagged(self) -> bool:
        return has_tag(self.question)

    def take(self, piece: Piece) -> str:
        """Note `piece`; its text for the reader, '' when it has none."""
        if isinstance(piece, Sent):
            self.sent, self.block = piece, piece.block
        elif isinstance(piece, Used):
            self.used = piece
        else:
            text = well_formed(piece)
            self.answer.append(text)
            return text
        return ""

    def note(self, result: SearchResult) -> None:
        """Note how the context was found."""
        self.coverage, self.reranker = result.coverage, result.reranker
        self.trace = trace_of(result)
        self.notices.extend(result.warnings)

    def fail(self, error: CodeQAError) -> None:
        """Note why the answer ends here."""
        self.error = error.as_data()

    def classification(self) -> dict[str, Any]:
        """Data of the `classified` event."""
        return {"intent": self.intent, "confidence": self.confidence}

    def reasons(self) -> dict[str, Any]:
        """Why the turn went as it did."""
        decision = self.decision
        return {
            "source": self.source,
            "reason": self.reason,
            "rules": list(decision.rules) if decision else [],
            "searched_automatically": bool(decision and decision.searched_automatically),
            "searches": bool(decision and decision.inject_rag),
            "goes_on": bool(decision and decision.use_cached_context),
            "suggest_codebase": self.suggests,
        }

    @property
    def suggests(self) -> bool:
        """Whether asking again with `@codebase` would be the next step."""
        return bool(self.decision and self.decision.suggest_codebase and not self.block.chunks)

    @property
    def text_of_answer(self) -> str:
        """The answer as it is kept."""
        return self.revised or "".join(self.answer)

    def retrieval(self) -> dict[str, int]:
        """Data of the `retrieved` event."""
        return {"num_docs": self.found, "similar_queries": self.similar}

    def tokens(self) -> Mapping[str, Any]:
        """What the provider counted; an estimate when it did not say or was not heard out."""
        used = self.used
        if used and (used.prompt or used.completion):
            return {"prompt": used.prompt, "completion": used.completion, "estimated": False}
        if not self.sent.messages:
            return NO_TOKENS
        return {
            "prompt": count_tokens(self.sent.messages),
            "completion": estimate_tokens("".join(self.answer)),
            "estimated": True,
        }

    def notice(self) -> str:
        """Everything about this answer that its reader should know, as sentences."""
        cut = CUT_ANSWER if self.used and self.used.cut else ""
        return " ".join(filter(None, [*self.notices, self.sent.notice, cut]))

    def told(self) -> dict[str, Any]:
        """What both the `done` event and the kept turn say."""
        return {
            **self.classification(),
            **self.reasons(),
            "mode": self.mode,
            "retrieval_info": self.retrieval(),
            "coverage": self.coverage,
            "generator": self.generator,
            "model": self.sent.model,
            "host": self.sent.host,
            "reranker": self.reranker,
            **self.trace.brief(),
            "notice": self.notice(),
            "cut": bool(self.used and self.used.cut),
            "tokens": self.tokens(),
            "citations": [citation.as_dict() for citation in self.citations],
            "rewritten": self.rewritten,
            "reply": self.reply,
            "suggestions": list(self.suggestions),
            "hook_problems": list(self.hook_problems),
            "steps": self.steps.as_data(),
        }

    def extras(self, embedding: str) -> TurnExtras:
        """What is kept beside the turn, for later ones."""
        return TurnExtras(
            embedding=embedding,
            question=None if self.vector is None else write_vector(self.vector),
            topic=None if self.topic is None else write_vector(self.topic),
            facts=dict(self.facts),
            begun=self.begun,
        )

    def as_turn(self) -> Turn:
        """The turn as it is kept, from which it can be shown exactly as it was."""
        details = {
            **self.told(),
            "stages": list(self.trace.stages),
            "hits": list(self.trace.hits),
            "finished": self.finished,
            "error": self.error,
            "chunks": notes_of(self.block.chunks),
            "dropped": [asdict(chunk) for chunk in self.block.dropped],
            "messages": _without_block(self.sent.messages, self.block.text),
        }
        return Turn(
            id=self.id,
            conversation=self.conversation,
            question=self.question,
            answer=self.text_of_answer,
            context=self.block.text,
            details=details,
            created=time.time(),
            user=self.user,
            repository=self.repository,
            parent=self.parent,
        )


@dataclass(frozen=True, slots=True)
class TurnView:
    """A kept turn, for a surface to show."""

    id: str
    question: str
    """Without its tag."""
    tagged: bool
    answer: str
    citations: list[Mapping[str, Any]]
    finished: bool
    """Neither stopped nor failed."""
    error: Mapping[str, str] | None
    """`message`, `hint` and `code` of what ended it, None when nothing did."""
    generator: str
    """The model's name, or `extractive`."""
    model: str
    host: str
    reranker: str
    hyde: str
    """`off`, `one` or `two`; '' where nothing was searched."""
    stages: list[Mapping[str, Any]]
    """What the search did: `name`, `milliseconds`, `outcome`."""
    notice: str
    tokens: Mapping[str, Any]
    coverage: str
    mode: str
    created: float
    """Seconds since the epoch."""
    parent: str = ""
    """Id of the turn before it; '' for the first."""
    intent: str = ""
    confidence: float = 0.0
    reasons: Mapping[str, Any] = field(default_factory=dict)
    """`source`, `reason`, `rules`, `searched_automatically`, `searches`, `goes_on`,
    `suggest_codebase`."""
    steps: list[Mapping[str, Any]] = field(default_factory=list)
    """The steps of the turn: `name`, `milliseconds`."""
    rewritten: str = ""
    suggestions: list[str] = field(default_factory=list)
    hook_problems: list[str] = field(default_factory=list)


def view_of(turn: Turn) -> TurnView:
    """`turn` as it was; one that an earlier version kept says less."""
    told = turn.details
    return TurnView(
        id=turn.id,
        question=strip_tag(turn.question),
        tagged=has_tag(turn.question),
        answer=turn.answer,
        citations=list(told.get("citations", ())),
        finished=bool(told.get("finished", True)),
        error=told.get("error"),
        generator=told.get("generator", ""),
        model=told.get("model", ""),
        host=told.get("host", ""),
        reranker=told.get("reranker", ""),
        **read_trace(told).brief(),
        notice=told.get("notice", ""),
        tokens=told.get("tokens") or NO_TOKENS,
        coverage=told.get("coverage", ""),
        mode=told.get("mode", ""),
        created=turn.created,
        parent=turn.parent,
        intent=told.get("intent", ""),
        confidence=told.get("confidence", 0.0),
        reasons={name: told.get(name, default) for name, default in NO_REASONS.items()},
        steps=list(told.get("steps", ())),
        rewritten=told.get("rewritten", ""),
        suggestions=list(told.get("suggestions", ())),
        hook_problems=list(told.get("hook_problems", ())),
    )


def block_of(turn: Turn) -> ContextBlock:
    """Exactly the context of a turn, and why each chunk is in it."""
    chunks = with_notes(parse_block(turn.context), turn.details.get("chunks", ()))
    dropped = tuple(Chunk(**chunk) for chunk in turn.details.get("dropped", ()))
    return ContextBlock(turn.context, chunks, dropped)


def sent_of(turn: Turn) -> Sent:
    """Exactly what was sent for a turn; nothing when no model was asked."""
    told = turn.details
    messages = tuple(
        {
            "role": message["role"],
            "parts": [turn.context if part is None else part for part in message["parts"]],
        }
        for message in told.get("messages", ())
    )
    return Sent(
        model=told.get("model", ""),
        host=told.get("host", ""),
        messages=messages,
        block=block_of(turn),
        tokens=told.get("tokens") or NO_TOKENS,
        notice=told.get("notice", ""),
    )


def _without_block(messages: tuple[Mapping[str, Any], ...], block: str) -> list[dict[str, Any]]:
    """`messages` with None for the block, which the turn keeps anyway."""
    return [
        {"role": m["role"], "parts": [None if block and p == block else p for p in m["parts"]]}
        for m in messages
    ]
