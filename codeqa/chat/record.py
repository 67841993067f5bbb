"""What is kept of a turn, to be shown and gone on from: the last of its values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from codeqa.context.block import ContextBlock
from codeqa.search.result import SearchResult
from codeqa.state.records import Turn
from codeqa.text import has_tag, strip_tag
from codeqa.text.tokens import last_word
from codeqa.types import Chunk, Hit

NOTHING_RETRIEVED: Mapping[str, int] = {"num_docs": 0, "similar_queries": 0}
NO_TOKENS: Mapping[str, Any] = {"prompt": 0, "completion": 0, "estimated": False, "cost": 0.0}

BROKE_OFF: Mapping[str, str] = {
    "message": "The answer broke off.",
    "hint": "CodeQA ended while it was written. What had come is kept.",
    "code": "broke_off",
}
"""Kept as the error of a turn until that has ended: should the process die, it is true."""

JUDGED_BY_WORDS = ("these lines do not show ", "other lines show what this says")
"""How problems began that version 0.1.0 saw in citations, by the words before them."""
JUDGED_ANSWER = re.compile(
    r" ?(?:Most of what this answer says is not backed|This answer cites lines that do not show)"
    r".*?Found first: (?:.*?\]\.|.*)"
)
"""What the same version said of whole answers."""

EARLIER = ("question", "answer", "turn", "conversation")
"""What is kept of an earlier answer that was sent along."""

Values = Mapping[str, Any]
"""An object of JSON."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A question, its answer and how that came about.

    What has a default is kept as JSON in the turn's details, each under its own name: one that an
    earlier version kept has fewer. `messages` hold None for the context block.
    """

    id: str
    typed: str
    """The question with its tag, secret-looking strings masked."""
    answer: str
    created: float
    """Seconds since the epoch."""
    parent: str
    """Id of the turn before it; '' for the first."""

    mode: str = ""
    intent: str = ""
    confidence: float = 0.0
    source: str = ""
    """What decided the intent: `tag`, `user`, `cache`, `heuristics` or `model`."""
    reason: str = ""
    rules: Sequence[str] = ()
    """Of the policy, that decided."""
    searched_automatically: bool = False
    searches: bool = False
    goes_on: bool = False
    """From the code of an earlier question."""
    left_out: str = ""
    """Why the code of earlier questions was left out; '' where it was not."""
    suggest_codebase: bool = False
    retrieval_info: Values = field(default_factory=lambda: NOTHING_RETRIEVED)
    coverage: str = ""
    generator: str = ""
    """The model's name, `extractive` or `app`."""
    reply: str = ""
    """Which of the app's own replies the answer is; '' when it is none."""
    model: str = ""
    host: str = ""
    effort: str = ""
    """`fast`, `normal` or `deep`, chosen or by the setting; '' where nothing was searched."""
    reranker: str = ""
    hyde: str = ""
    """`off`, `one` or `two`; '' where nothing was searched."""
    stages: Sequence[Values] = ()
    """What the search did: {name, milliseconds, outcome, text, model, host, usage}."""
    hits: Sequence[Values] = ()
    """What it found, best first: {unit_id, path, start_line, end_line, kind, name, score, why,
    channels (name → rank)}."""
    notice: str = ""
    """What the reader should know, as sentences."""
    cut: bool = False
    tokens: Values = field(default_factory=lambda: NO_TOKENS)
    """Of all requests for it: {prompt, completion, estimated, cost (US dollars, 0: unknown)}."""
    looked_up: Sequence[Values] = ()
    """What the model called tools for, and what it thought meanwhile: {tool ('' for reasoning),
    arguments, summary, text, said, milliseconds, failed}."""
    citations: Sequence[Values] = ()
    """{path, start, end, verified, exists, problem, changed}, as `values.Citation`."""
    earlier: Sequence[Values] = ()
    """Answers of other conversations that were sent along: {question, answer, turn,
    conversation}."""
    rewritten: str = ""
    """What was searched for instead of a follow-up that says too little alone."""
    suggestions: Sequence[str] = ()
    hook_problems: Sequence[str] = ()
    """Hooks whose part was left out, and why, as sentences."""
    steps: Sequence[Values] = ()
    """{name, milliseconds}."""
    finished: bool = True
    """Neither stopped nor failed."""
    error: Mapping[str, str] | None = None
    """`message`, `hint` and `code` of what ended it."""
    messages: Sequence[Values] = ()
    """What was sent to a model: {role, parts}."""
    asked: Sequence[str] = ()
    """Ends of the ids of the repositories that it was asked of, where that was of all."""
    chunks: tuple[Chunk, ...] = ()
    dropped: tuple[Chunk, ...] = ()
    """The context, and what had no room in it."""

    @property
    def question(self) -> str:
        """Without its tag."""
        return strip_tag(self.typed)

    @property
    def tagged(self) -> bool:
        return has_tag(self.typed)

    @property
    def block(self) -> ContextBlock:
        return ContextBlock(self.chunks, self.dropped)

    @property
    def sent(self) -> list[dict[str, Any]]:
        """`messages` exactly as they were sent; none when no model was asked."""
        block = self.block.text
        return [
            {"role": m["role"], "parts": [block if part is None else part for part in m["parts"]]}
            for m in self.messages
        ]

    @property
    def short_stages(self) -> list[dict[str, Any]]:
        """What is told with an answer: no hypothetical answers, which are long."""
        names = ("name", "milliseconds", "outcome")
        return [{name: stage.get(name) for name in names} for stage in self.stages]

    @property
    def found_names(self) -> tuple[str, ...]:
        """Definitions that the search found: those that its answer speaks of first, in its order;
        where edges were walked, what they led to first."""
        names = list(dict.fromkeys(str(hit["name"]) for hit in self.hits if hit.get("name")))
        if any("edges" in hit.get("channels", ()) for hit in self.hits):
            return tuple(names)
        return tuple(sorted(names, key=lambda name: place_of_name(name, self.answer)))

    @property
    def hits_shown(self) -> list[dict[str, Any]]:
        """The hits, each with whether it is among the chunks that were sent."""
        sent = {(chunk.unit_id, chunk.start_line) for chunk in self.chunks}
        chosen = [chunk for chunk in self.chunks if not chunk.unit_id]
        shown = []
        for hit in self.hits:
            end = (hit["path"], hit["end_line"], hit["end_line"])
            told = {name: value for name, value in hit.items() if name != "unit_id"}
            told["sent"] = (hit["unit_id"], hit["start_line"]) in sent or any(
                chunk.holds(*end) for chunk in chosen
            )
            shown.append(told)
        return shown

    def hit_of(self, chunk: Chunk) -> Values | None:
        """The hit that `chunk` shows, whole or cut; None for a place of use."""
        place = (chunk.unit_id, chunk.start_line)
        found = (hit for hit in self.hits if (hit["unit_id"], hit["start_line"]) == place)
        return next(found, None)

    def told(self) -> dict[str, Any]:
        """Return what the `done` event says of it."""
        return _without(self, NOT_IN_EVENT) | {"stages": self.short_stages}

    def page(self) -> dict[str, Any]:
        """Return what the page shows of it; the answer is rendered there."""
        shown = _without(self, NOT_ON_PAGE)
        return shown | {
            "question": self.question,
            "tagged": self.tagged,
            "stages": self.short_stages,
        }

    def as_turn(self, user: str, repository: str, conversation: str) -> Turn:
        details = {name: getattr(self, name) for name in DETAILS}
        details |= {name: chunks_as_data(getattr(self, name)) for name in CHUNKS}
        return Turn(
            id=self.id,
            conversation=conversation,
            question=self.typed,
            answer=self.answer,
            context="",
            details=details,
            created=self.created,
            user=user,
            repository=repository,
            parent=self.parent,
        )


COLUMNS = ("id", "typed", "answer", "created", "parent")
CHUNKS = ("chunks", "dropped")
DETAILS = tuple(f.name for f in fields(TurnRecord) if f.name not in (*COLUMNS, *CHUNKS))
"""What is kept as it is under its own name."""

# Who is told which of them.

NOT_IN_EVENT = (*COLUMNS, *CHUNKS, "hits", "finished", "error", "messages", "asked")
NOT_ON_PAGE = ("typed", "reply", "hits", "cut", "messages", "asked", *CHUNKS)
IN_ONE_PIECE = ("turn", "intent", "confidence", "retrieval_info", "citations", "notice")
"""What programs are told that ask for an answer in one piece."""
AT_THE_END = ("intent", "confidence", "retrieval_info", "query_tags")
"""What programs are told at the end of a stream."""


def _without(record: TurnRecord, names: Collection[str]) -> dict[str, Any]:
    every = (field.name for field in fields(TurnRecord))
    return {name: getattr(record, name) for name in every if name not in names}


def read_turn_record(turn: Turn) -> TurnRecord:
    """Inverse of `TurnRecord.as_turn`; what an earlier version did not keep has its default."""
    details = turn.details
    kept = {name: details[name] for name in DETAILS if details.get(name) not in (None, {})}
    kept["citations"] = [read_citation(one) for one in details.get("citations", ())]
    kept["notice"] = JUDGED_ANSWER.sub("", details.get("notice", "")).strip()
    return TurnRecord(
        id=turn.id,
        typed=turn.question,
        answer=turn.answer,
        created=turn.created,
        parent=turn.parent,
        chunks=read_chunks(details.get("chunks", ())),
        dropped=read_chunks(details.get("dropped", ())),
        **kept,
    )


def read_citation(stored: Values) -> Values:
    """Return a citation as it was kept; one that was struck for the words before it counts as
    right: of 30 that were, none was wrong."""
    if str(stored.get("problem", "")).startswith(JUDGED_BY_WORDS):
        return {**stored, "verified": True, "exists": True, "problem": ""}
    return stored


def place_of_name(name: str, answer: str) -> int:
    """Where `answer` first speaks of the definition `name`, as code, whole or by its last word;
    behind its end where it does not. `Flask.run` does not speak of `Flask`."""
    for written in (name, last_word(name)):
        if found := re.search(rf"`{re.escape(written)}(?!\w|[.#]\w|::)", answer):
            return found.start()
    return len(answer)


def chunks_as_data(chunks: Iterable[Chunk]) -> list[dict[str, Any]]:
    # `asdict` copies each value deeply, which takes ten times as long.
    return [{name: getattr(chunk, name) for name in Chunk.__slots__} for chunk in chunks]


def read_chunks(stored: Iterable[Values]) -> tuple[Chunk, ...]:
    """Inverse of `chunks_as_data`; those that an earlier version kept otherwise are left out."""
    return tuple(Chunk(**chunk) for chunk in stored if "content" in chunk)


def place_of_hit(hit: Hit) -> dict[str, Any]:
    """Where a hit lies, and what it is called."""
    place = {name: getattr(hit.unit, name) for name in ("path", "start_line", "end_line", "kind")}
    return {**place, "name": hit.unit.qualified_name or hit.unit.name}


def search_as_data(result: SearchResult) -> dict[str, Any]:
    """What a record says of a search: all that it returned, and what it kept of each table."""
    hits = {hit.unit.id: hit for hit in (*result.units, *result.methods, *result.classes)}
    return {
        "coverage": result.coverage,
        "reranker": result.reranker,
        "hyde": result.hyde,
        "stages": [
            {**asdict(stage), "milliseconds": round(stage.milliseconds)} for stage in result.stages
        ],
        "hits": [
            {
                "unit_id": hit.unit.id,
                **place_of_hit(hit),
                "score": round(hit.score, 4),
                "why": list(hit.why),
                "channels": dict(hit.channels),
            }
            for hit in sorted(hits.values(), key=lambda hit: -hit.score)
        ],
    }
