"""The eighth step: the code, and the earlier answers, that an answer may draw on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from codeqa.chat.cited_code import CitedCode
from codeqa.chat.conversations import Conversations
from codeqa.chat.followup import Standalone, needs_rewriting, rewrite
from codeqa.chat.generation import EXTRACTIVE, NO_CONTEXT, Exchange
from codeqa.chat.hooks import Hooks, Retrieved
from codeqa.chat.near import referred, walk_edges, with_near, with_walk
from codeqa.chat.options import AskOptions, parse_place
from codeqa.chat.record import place_of_hit
from codeqa.chat.turn import TurnState
from codeqa.chat.vectors import names_other_code, similar_questions
from codeqa.code.cited import NOTHING, Cited
from codeqa.code.counted import exact_answer, exact_question
from codeqa.code.tools import Toolbox
from codeqa.context import chunk_id, pack
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.extractive.evidence import QuotedEvidence, gather_evidence
from codeqa.llm import Model, context_window
from codeqa.repositories.files import Files
from codeqa.repository.secrets import mask_secrets
from codeqa.search import Search, parse_query
from codeqa.selection import (
    UNITS_RANKED,
    Budget,
    budget_of,
    build_context,
    largest_block,
    parse_effort,
)
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.types import Chunk, ContextBlock, Effort, Event, Hit, StageTime
from codeqa.whole_files import POOL, best_files, every_file

HITS_SHOWN = 10
"""Hits that are kept with the turn, and that a quoted answer is made from."""
RETRIEVAL_K = 4
"""Methods and classes, at the effort *fast*, in the context of a question that is searched for
without its writer asking for it."""
PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Looks up what the policy asks for, and nothing else.

    `connect` gives the model that rewrites follow-ups and orders files, `answers` the one that
    answers, None for none; `hypotheses` is whether
    the search may ask one for hypothetical answers.
    """

    search: Search
    open_tables: Callable[[], Tables]
    files: Files
    settings: Settings
    hooks: Hooks
    conversations: Conversations
    connect: Callable[[], Model | None]
    answers: Callable[[], Model | None]
    hypotheses: bool

    def retrieve(self, turn: TurnState, needs_evidence: bool) -> Iterator[Event]:
        """Search, or recall, or do neither; yields what happens meanwhile."""
        options, decision = turn.options, turn.decision
        replaced = turn.so_far.replaced if options.chooses_chunks else None
        if replaced and (replaced.chunks or replaced.dropped):
            turn.asked = replace(turn.asked, block=replaced.block, searched=True)
        elif decision.inject_rag:
            yield from self._search(turn, needs_evidence)
            if turn.whole or turn.generator != EXTRACTIVE:
                turn.warnings += filter(None, [turn.asked.block.note])
        elif decision.use_cached_context:
            turn.asked = replace(turn.asked, block=self._fitting(turn, turn.so_far.context))
            if options.branches_off:
                self.conversations.remember(turn, turn.so_far.context)
        asked = turn.asked
        if options.chooses_chunks:
            # What the search itself found is no longer what the answer is to be made from.
            block = choose_chunks(self.files, asked.block, options, self._room(turn))
            asked = replace(asked, block=block, evidence=None)
        if asked.searched:
            self.conversations.remember(turn, asked.block)
        num_docs = len(asked.block.chunks) if asked.searched else 0
        before = Retrieved(turn.text, asked.block.chunks, self._similar(turn))
        after, problems = self.hooks.run("after_retrieval", before)
        turn.hook_problems += problems
        asked = replace(asked, similar=after.similar)
        if after.chunks != before.chunks:
            # Chunks of the index are masked already; those that a hook brings may not be.
            masked = [replace(one, content=mask_secrets(one.content)) for one in after.chunks]
            asked = replace(asked, block=pack(masked, self._room(turn)), evidence=None)
        if needs_evidence and asked.evidence is None and (asked.searched or asked.block.chunks):
            chunks, chosen = asked.block.chunks, options.chooses_chunks
            asked = replace(
                asked, evidence=QuotedEvidence(turn.query, cached=chunks, chosen=chosen)
            )
        turn.asked, turn.block = asked, asked.block
        turn.retrieved = {"num_docs": num_docs, "similar_queries": len(asked.similar)}

    def _search(self, turn: TurnState, needs_evidence: bool) -> Iterator[Event]:
        options, so_far = turn.options, turn.so_far
        turn.effort = self._effort(turn)
        tables, block = self.open_tables(), NO_CONTEXT
        if turn.whole == "all":
            block = every_file(tables, self.files, turn.query, self._room(turn))
            if block.chunks and not needs_evidence:
                turn.asked = replace(turn.asked, block=block, searched=True)
                return
        question, earlier = turn.text, list[Chunk]()
        goes_on = so_far.history and needs_rewriting(turn.query, turn.features)
        if goes_on:
            made = turn.standalone or self.complete(turn)
            question = made.question
            if made.by:
                turn.rewritten = question
                yield Event("rewritten", {"question": question, "by": made.by})
        counted, whole = self._counted(turn, question)
        asks_model = self.hypotheses and options.use_model and not whole
        stages = self.search.steps(
            question,
            top=POOL if turn.whole else UNITS_RANKED,
            path=turn.mask,
            rerank=options.rerank,
            hyde=options.hyde if asks_model else "off",
            order=asks_model and turn.effort != "fast",
            use_model=asks_model,
            cancelled=options.cancelled,
        )
        try:
            while True:
                yield _search_event(next(stages))
        except StopIteration as end:
            result = end.value
        turn.warnings.extend(result.warnings)
        if goes_on:  # what was found before may be what is asked about
            result, earlier = with_near(tables, result, turn.query, so_far)
        walked = walk_edges(tables, turn.query, question, so_far) if so_far.history else None
        if walked:
            result = with_walk(result, walked)
        most = RETRIEVAL_K if turn.decision.searched_automatically else None
        # Asked for only now: a local server knows its window once the model has been loaded.
        budget = self.budget(turn)
        if turn.whole == "files":
            block = best_files(tables, self.files, result, self._room(turn))
            paths = {chunk.path for chunk in block.chunks}
            units = tuple(hit for hit in result.units if hit.unit.path in paths)
            result = replace(result, units=units, files=()) if units else result
        if not block.chunks:
            turn.warnings += filter(None, [block.note])  # of whole files, none of which fits
            block = build_context(tables, result, self.settings, budget, most=most, earlier=earlier)
        turn.search = result = result.head(HITS_SHOWN)
        evidence = None
        if needs_evidence and not whole:
            evidence = gather_evidence(tables, result, walked)
        if counted.text:
            evidence = evidence or QuotedEvidence(turn.query)
            evidence = replace(evidence, lead=counted, counted=True, whole=whole, weak=False)
        turn.asked = replace(turn.asked, block=block, searched=True, evidence=evidence)

    def _counted(self, turn: TurnState, standalone: str) -> tuple[Cited, bool]:
        """What the index or git says to a question that they answer exactly, NOTHING for others,
        and whether that is all that was asked. `standalone` is the question made so."""
        asked = exact_question(turn.text) if turn.decision.answer_exactly else None
        if asked is None:
            return NOTHING, False
        tables, so_far = self.open_tables(), turn.so_far
        whole = parse_query(standalone)
        units = referred(tables, turn.query, whole, so_far, several=False) if so_far.history else []
        names = [unit.qualified_name for unit in units] or list(turn.query.pointed)
        toolbox = Toolbox(self.search, self.files, self.open_tables)
        found = exact_answer(toolbox, asked, names)
        # What changed, a model tells better from the diff than a list does.
        tells = asked.tool == "changes" and self._model(turn, self.answers) is not None
        return found, bool(found.text) and not (asked.asks_more or tells or turn.effort == "deep")

    def complete(self, turn: TurnState) -> Standalone:
        """The question made complete by the small model, where there is one and it may be asked,
        else by the words of earlier ones."""
        return rewrite(
            turn.text,
            turn.so_far.history,
            turn.so_far.names,
            self._model(turn, self.connect),
            self.settings.config_dir,
            cancelled=turn.options.cancelled,
        )

    def build_context(self, question: str, rerank: bool = False) -> ContextBlock:
        """The context block of `question` alone, nothing cached and nothing answered.

        The language model helps to find as the settings say, where there is one.
        """
        effort = self.settings.effort
        result = self.search.search(
            question, top=UNITS_RANKED, rerank=rerank, hyde="", order=effort != "fast"
        )
        budget = budget_of(effort, self.settings)
        return build_context(self.open_tables(), result, self.settings, budget)

    def cited(self, chunks: Sequence[Chunk]) -> CitedCode:
        """What citations of an answer that was given `chunks` are checked against."""
        return CitedCode(self.files, self.open_tables(), chunks)

    def budget(self, turn: TurnState) -> Budget:
        """How much code the answer of `turn` may be given."""
        return budget_of(self._effort(turn), self.settings, self._window(turn))

    def _room(self, turn: TurnState) -> int:
        """Characters of the block; whole files may take all that the model leaves them."""
        return largest_block(self._window(turn)) if turn.whole else self.budget(turn).characters

    def _window(self, turn: TurnState) -> int:
        model = self._model(turn, self.answers)
        return context_window(model.endpoint) if model else 0

    def _effort(self, turn: TurnState) -> Effort:
        return parse_effort(turn.options.effort, self.settings.effort)

    def _fitting(self, turn: TurnState, block: ContextBlock) -> ContextBlock:
        """`block` of an earlier question, packed anew where it was made for a larger model."""
        room = largest_block(self._window(turn))
        return block if len(block.text) <= room else pack(block.chunks, room)

    def _similar(self, turn: TurnState) -> tuple[Exchange, ...]:
        """Past questions like this one: of this conversation and of others."""
        if turn.vector is None or not turn.keep:
            return ()
        options, decision = turn.options, turn.decision
        found: list[Exchange] = []
        for same, wanted in ((True, decision.inject_qa_history), (False, decision.inject_rag)):
            if not wanted:
                continue
            similar = similar_questions(
                self.conversations.state,
                turn.vector,
                user=options.user,
                repository=self.conversations.repository,
                conversation=options.conversation,
                embedding=self.conversations.vectors.name,
                threshold=self.conversations.vectors.similar_above,
                same=same,
                skip={options.replaces, *(exchange.turn for exchange in turn.asked.history)},
            )
            # Of this conversation nothing that comes after the point where it is taken up.
            later = same and options.branches_off
            found += [one for one in similar if not later or one.turn in turn.so_far.path]
        return tuple(
            one for one in found if not names_other_code(turn.query, parse_query(one.question))
        )

    def _model(self, turn: TurnState, connect: Callable[[], Model | None]) -> Model | None:
        try:
            return connect() if turn.options.use_model else None
        except CodeQAError:  # whoever answers says what is wrong with it
            return None


def _search_event(stage: StageTime | tuple[Hit, ...]) -> Event:
    """`hits` for what is found so far, `drafting` for a stage that begins, `drafted` for one that
    has ended."""
    if isinstance(stage, tuple):
        return Event("hits", {"hits": [place_of_hit(hit) for hit in stage]})
    if not stage.outcome:
        return Event("drafting", {"name": stage.name, "model": stage.model, "host": stage.host})
    about = {"name": stage.name, "outcome": stage.outcome, "text": stage.text}
    return Event("drafted", {**about, "took": round(stage.milliseconds)})


def choose_chunks(
    files: Files, block: ContextBlock, options: AskOptions, budget: int
) -> ContextBlock:
    """What was found, packed anew without what `options` exclude and with what they pin first,
    which shares the room, so that all of it is there.

    Raises NotFoundError for a pinned place that its file does not have.
    """
    found = [(place_of(chunk), chunk) for chunk in (*block.chunks, *block.dropped)]
    known = dict(found)
    pinned = [known.get(place) or read_place(files, place) for place in options.pin]
    kept = [chunk for place, chunk in found if place not in options.exclude]
    first = [replace(chunk, why=PINNED) for chunk in pinned]
    return pack([*first, *kept], budget, share=1 / max(2, len(first)))


def place_of(chunk: Chunk) -> str:
    """`path:first-last`, the form in which a chunk is pinned and excluded."""
    return f"{chunk.path}:{chunk.start_line}-{chunk.end_line}"


def read_place(files: Files, place: str) -> Chunk:
    """The chunk of `place` as the file is now. Raises NotFoundError when it does not have it."""
    path, start, end = parse_place(place)
    file = files.read(path)
    lines = file.text.split("\n")
    if not 1 <= start <= end <= len(lines):
        raise NotFoundError(
            f"{path} has no lines {start}-{end}.", f"It has {len(lines):,} lines now."
        )
    content = "\n".join(lines[start - 1 : end])
    return Chunk(chunk_id(path, place, content), path, start, end, file.language, content)
