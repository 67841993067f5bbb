"""What an answer may draw on, code and earlier answers: the third stage of a turn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from codeqa.chat.conversations import Conversations
from codeqa.chat.hooks import Hooks, Retrieved
from codeqa.chat.near import referred, walk_edges, with_near, with_walk
from codeqa.chat.question import parse_place
from codeqa.chat.record import place_of_hit
from codeqa.chat.stream import Steps
from codeqa.chat.values import NO_CONTEXT, AskOptions, Gathered, Routed
from codeqa.chat.vectors import names_other_code, prune, similar_questions
from codeqa.code.counted import exact_answer, exact_question
from codeqa.code.tools import Toolbox
from codeqa.context.blocks import chunk_id, pack
from codeqa.errors import NotFoundError
from codeqa.llm.client import Model
from codeqa.quoted.evidence import QuotedEvidence, gather_evidence
from codeqa.repositories.files import Files
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.routing.personal import preferences, profile_text
from codeqa.search.query import parse_query
from codeqa.selection import (
    POOL,
    UNITS_RANKED,
    Budget,
    best_files,
    budget_of,
    build_context,
    every_file,
    largest_block,
    parse_effort,
)
from codeqa.settings import Settings
from codeqa.types import Chunk, ContextBlock, Effort, Event, Exchange, Hit, StageTime

HITS_SHOWN = 10
"""Hits that are kept with the turn, and that a quoted answer is made from."""
RETRIEVAL_K = 4
"""Methods and classes, at the effort *fast*, in the context of a question that is searched for
without its writer asking for it."""
PINNED = "pinned"


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Looks up what the plan asks for, and nothing else."""

    toolbox: Toolbox
    settings: Settings
    hooks: Hooks
    conversations: Conversations
    answer_model: Callable[[], Model | None]
    """The model that answers; None for none."""

    def gather(
        self, routed: Routed, steps: Steps, *, given: bool = False
    ) -> Generator[Event, None, Gathered]:
        """Connect the model, and look up what it is to be told; tells of its steps and of what is
        found. With `given` something else writes in its place. Raises SettingsError for a model
        that cannot be asked."""
        # What is stored is told by the app, whatever model there is.
        ours = given or routed.decision.reply == "privacy"
        model = self.answer_model() if routed.question.options.use_model and not ours else None
        with steps.time("prune"):
            told = routed.so_far.history if routed.decision.use_curated_history else ()
            history = prune(told, routed.vector, self.conversations.vectors)
        yield from steps.ended()
        with steps.time("retrieve"):
            gathered = yield from self._retrieve(routed, model, history, given)
        yield from steps.ended()
        if any(gathered.retrieved.values()):
            yield Event("retrieved", gathered.retrieved)
        with steps.time("before_generation"):
            ready = self._ready(gathered, routed)
        yield from steps.ended()
        return ready

    def _retrieve(
        self, routed: Routed, model: Model | None, history: tuple[Exchange, ...], given: bool
    ) -> Generator[Event, None, Gathered]:
        """Search, or recall, or do neither; yields what happens meanwhile."""
        question, decision, so_far = routed.question, routed.decision, routed.so_far
        options = question.options
        quoted = model is None and not given and not decision.reply
        needs_evidence = quoted or options.strict
        replaced = so_far.replaced if options.chooses_chunks else None
        room = _Room(self.settings, parse_effort(options.effort, self.settings.effort), model)
        whole = bool(question.whole_files)
        found = Gathered(
            question.text,
            question.mode,
            history=history,
            instructions=options.instructions,
            strict=options.strict and question.mode != ISSUE,  # a review is checked as it is made
            cancelled=options.cancelled,
            model=model,
        )
        if replaced and (replaced.chunks or replaced.dropped):
            block = choose_chunks(
                self.toolbox.files, replaced.block, options, room.characters(whole)
            )
            found = replace(found, block=block, searched=True)
        elif decision.inject_rag:
            found = replace(found, effort=room.effort)
            found = yield from self._search(routed, found, room, needs_evidence, given)
            if question.whole_files or not quoted:
                found = replace(found, warnings=(*found.warnings, found.block.note))
        else:
            block = so_far.context if decision.use_cached_context else NO_CONTEXT
            if len(block.text) > room.characters():  # it was made for a larger model
                block = pack(block.chunks, room.characters())
            block = choose_chunks(self.toolbox.files, block, options, room.characters(whole))
            found = replace(found, block=block)
        before = Retrieved(question.text, found.block.chunks, self._similar(routed, history))
        after, problems = self.hooks.run("after_retrieval", before)
        evidence = None if options.chooses_chunks else found.evidence
        if after.chunks != before.chunks:
            # Chunks of the index are masked already; those that a hook brings may not be.
            masked = [replace(one, content=mask_secrets(one.content)) for one in after.chunks]
            found, evidence = replace(found, block=pack(masked, room.characters(whole))), None
        if needs_evidence and evidence is None and (found.searched or found.block.chunks):
            chunks, chosen = found.block.chunks, options.chooses_chunks
            evidence = QuotedEvidence(question.query, cached=chunks, chosen=chosen)
        return replace(
            found,
            similar=after.similar,
            evidence=evidence,
            budget=room.budget,
            window=room.window,
            warnings=tuple(filter(None, found.warnings)),
            problems=problems,
        )

    def _search(
        self, routed: Routed, before: Gathered, room: _Room, needs_evidence: bool, given: bool
    ) -> Generator[Event, None, Gathered]:
        """`before` with what a search finds; yields what happens meanwhile."""
        question, so_far, options = routed.question, routed.so_far, routed.question.options
        tables, block = self.toolbox.tables(), NO_CONTEXT
        if question.whole_files == "all":
            block = every_file(tables, self.toolbox.files, question.query, room.characters())
            if block.chunks and not needs_evidence:
                block = choose_chunks(self.toolbox.files, block, options, room.characters())
                return replace(before, block=block, searched=True)
        text, earlier = routed.standalone or question.text, list[Chunk]()
        rewritten = text if routed.completed_by else ""
        if rewritten:
            yield Event("rewritten", {"question": text, "by": routed.completed_by})
        counted, whole = self._counted(routed, text, before.model, room)
        asks_model = not given and options.use_model and not whole
        stages = self.toolbox.search.steps(
            text,
            top=POOL if question.whole_files else UNITS_RANKED,
            path=question.mask,
            rerank=options.rerank,
            hyde=options.hyde if asks_model else "off",
            order=asks_model and room.effort != "fast",
            use_model=asks_model,
            cancelled=options.cancelled,
        )
        try:
            while True:
                yield _search_event(next(stages))
        except StopIteration as end:
            result = end.value
        warnings = list(result.warnings)
        if routed.standalone:  # what was found before may be what is asked about
            result, earlier = with_near(tables, result, question.query, so_far)
        if walked := walk_edges(tables, question.query, text, so_far):
            result = with_walk(result, walked)
        if question.whole_files == "files":
            block = best_files(tables, self.toolbox.files, result, room.characters())
            paths = {chunk.path for chunk in block.chunks}
            units = tuple(hit for hit in result.units if hit.unit.path in paths)
            result = replace(result, units=units, files=()) if units else result
        if block.chunks:
            block = choose_chunks(self.toolbox.files, block, options, room.characters())
        else:
            warnings.append(block.note)  # of whole files, none of which fits
            block = build_context(
                tables,
                result,
                self.settings,
                room.budget,
                most=RETRIEVAL_K if routed.decision.searched_automatically else None,
                earlier=earlier,
                pinned=pinned_chunks(self.toolbox.files, options),
                excluded=options.exclude,
            )
        result = result.head(HITS_SHOWN)
        evidence = None
        if needs_evidence and not whole:
            evidence = gather_evidence(tables, result, walked)
        if counted:
            evidence = evidence or QuotedEvidence(question.query)
            evidence = replace(evidence, lead=counted, counted=True, whole=whole, weak=False)
        return replace(
            before,
            block=block,
            searched=True,
            search=result,
            evidence=evidence,
            rewritten=rewritten,
            warnings=tuple(warnings),
        )

    def _counted(
        self, routed: Routed, standalone: str, model: Model | None, room: _Room
    ) -> tuple[str, bool]:
        """What the index or git says to a question that they answer exactly, '' for others,
        and whether that is all that was asked. `standalone` is the question made so."""
        question, so_far = routed.question, routed.so_far
        exact = exact_question(question.text) if routed.decision.answer_exactly else None
        if exact is None:
            return "", False
        tables, whole = self.toolbox.tables(), parse_query(standalone)
        units = referred(tables, question.query, whole, so_far) if so_far.history else []
        names = [unit.qualified_name for unit in units] or list(question.query.pointed)
        found = exact_answer(self.toolbox, exact, names)
        # What changed, a model tells better from the diff than a list does.
        tells = "commit" in exact.arguments and model is not None
        return found, bool(found) and not (exact.asks_more or tells or room.effort == "deep")

    def _similar(self, routed: Routed, history: Sequence[Exchange]) -> tuple[Exchange, ...]:
        """Past questions like this one: of this conversation and of others."""
        question, decision, options = routed.question, routed.decision, routed.question.options
        if routed.vector is None or not (
            options.keep and (decision.inject_qa_history or decision.inject_rag)
        ):
            return ()
        found = similar_questions(
            self.conversations.state,
            routed.vector,
            embedding=self.conversations.vectors.name,
            user=options.user,
            repository=self.conversations.repository,
            conversation=options.conversation,
            skip={options.replaces, *(exchange.turn for exchange in history)},
        )
        # Of this conversation nothing that comes after the point where it is taken up.
        branches_off = options.replaces or options.after
        return tuple(
            one
            for one in found
            if (decision.inject_rag if one.elsewhere else decision.inject_qa_history)
            and (one.elsewhere or not branches_off or one.turn in routed.so_far.path)
            and not names_other_code(question.query, parse_query(one.question))
        )

    def _ready(self, gathered: Gathered, routed: Routed) -> Gathered:
        """With what is known of the user, as hooks change it, secrets masked."""
        decision = routed.decision
        known = {**routed.so_far.profile, **routed.facts} if decision.inject_profile else {}
        if decision.intent in NEED_CODE and not routed.features.references_profile:
            known = preferences(known)
        told = replace(
            gathered,
            intent=decision.intent,
            profile=profile_text(known),
            suggest=decision.suggest_codebase,
        )
        told, problems = self.hooks.run("before_generation", told)
        return replace(told.masked(), problems=(*gathered.problems, *problems))

    def context_for(self, question: str, rerank: bool = False) -> ContextBlock:
        """The context block of `question` alone, nothing cached and nothing answered.

        The language model helps to find as the settings say, where there is one.
        """
        effort = self.settings.effort
        result = self.toolbox.search.search(
            question, top=UNITS_RANKED, rerank=rerank, hyde="", order=effort != "fast"
        )
        budget = budget_of(effort, self.settings)
        return build_context(self.toolbox.tables(), result, self.settings, budget)


@dataclass(frozen=True)
class _Room:
    """How much code the answer may be given. The window is asked for once, and only when it is
    needed: a local server knows it once the model has been loaded."""

    settings: Settings
    effort: Effort
    model: Model | None

    @cached_property
    def window(self) -> int:
        """Tokens that the model takes; 0 is unknown."""
        return self.model.window() if self.model else 0

    @property
    def budget(self) -> Budget:
        return budget_of(self.effort, self.settings, self.window)

    def characters(self, whole_files: bool = True) -> int:
        """Of a block; whole files may take all that the model leaves them."""
        return largest_block(self.window) if whole_files else self.budget.characters


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
    """`block`, packed anew without what `options` exclude and with what they pin first, which
    shares the room, so that all of it is there. Raises as `read_place` does."""
    if not options.chooses_chunks:
        return block
    found = (*block.chunks, *block.dropped)
    first = pinned_chunks(files, options, found)
    kept = [chunk for chunk in found if chunk.place not in options.exclude]
    packed = pack([*first, *kept], budget, share=1 / max(2, len(first)))
    return replace(packed, note=block.note)


def pinned_chunks(files: Files, options: AskOptions, found: Sequence[Chunk] = ()) -> list[Chunk]:
    """The places that `options` pin, as they were `found` or as their files are now."""
    known = {chunk.place: chunk for chunk in found}
    pinned = (known.get(place) or read_place(files, place) for place in options.pin)
    return [replace(chunk, why=PINNED) for chunk in pinned]


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
