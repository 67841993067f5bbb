"""What an answer may draw on, code and earlier answers: the third stage of a turn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from codeqa.chat.check import still_holds
from codeqa.chat.conversations import Conversations
from codeqa.chat.edges import referred, walk_edges, with_walk
from codeqa.chat.hooks import Hooks
from codeqa.chat.question import parse_place
from codeqa.chat.record import place_of_hit
from codeqa.chat.stream import Steps
from codeqa.chat.values import Gathered, Routed
from codeqa.chat.vectors import names_other_code, prune, similar_questions
from codeqa.code.counted import exact_answer
from codeqa.code.tools import Toolbox
from codeqa.context.block import NO_CONTEXT, ContextBlock, chunk_id
from codeqa.context.packing import pack
from codeqa.errors import NotFoundError
from codeqa.llm.client import Model
from codeqa.quoted import QuotedEvidence, gather_evidence
from codeqa.repositories.files import Files
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.routing.personal import preferences, profile_text
from codeqa.search.query import parse_query
from codeqa.search.result import SearchResult
from codeqa.selection import (
    POOL,
    UNITS_RANKED,
    Budget,
    best_files,
    budget_of,
    build_context,
    every_file,
    largest_block,
)
from codeqa.settings import Settings
from codeqa.types import Chunk, Event, Exchange, Hit, HydeMode, StageTime, Unit

HITS_SHOWN = 10
"""Hits that are kept with the turn."""
RETRIEVAL_K = 4
"""Methods and classes, at the effort *fast*, in the context of a question that is searched for
without its writer asking for it."""
PINNED = "pinned"
NEED_A_MODEL = ("review", "plan", "change")
"""Modes that a quoted answer does not really serve."""
CONTEXT_LOST = (
    "The cache, which would have the code of an earlier question, cannot be reached: this is "
    "answered without that code. Ask with @codebase to have it searched for."
)
QUOTED_ONLY = (
    "To review, plan or change something takes a language model: this quotes the code that was "
    "found for it."
)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Looks up what the plan asks for, and nothing else."""

    toolbox: Toolbox
    settings: Settings
    hooks: Hooks
    conversations: Conversations
    answer_model: Callable[[str], Model | None]
    """The model called so that answers, '' for the one in use; None for none."""

    def gather(
        self, routed: Routed, steps: Steps, *, given: bool = False
    ) -> Generator[Event, None, Gathered]:
        """Connect the model, and look up what it is to be told; tells of its steps and of what is
        found. With `given` something else writes in its place. Raises SettingsError for a model
        that cannot be asked."""
        # What is stored is told by the app, whatever model there is.
        ours = given or routed.decision.reply == "privacy"
        options = routed.question.options
        model = self.answer_model(options.with_model) if options.use_model and not ours else None
        with steps.time("prune"):
            told = routed.so_far.history if routed.decision.use_curated_history else ()
            history = prune(told, routed.vector, self.conversations.vectors)
        yield from steps.ended()
        with steps.time("retrieve"):
            gathered = yield from _Gathering(self, routed, model, given, history).retrieve()
        yield from steps.ended()
        if any(gathered.retrieved.values()):
            yield Event("retrieved", gathered.retrieved)
        with steps.time("before_generation"):
            ready, problems = self.hooks.run("before_generation", gathered)
            if ready.block != gathered.block:  # chunks of the index are masked already
                chunks = ready.block.chunks
                masked = tuple(replace(one, content=mask_secrets(one.content)) for one in chunks)
                quoted = QuotedEvidence(routed.question.query, cached=masked)
                block = ContextBlock(masked, ready.block.dropped)
                ready = replace(ready, block=block, evidence=ready.evidence and quoted)
        yield from steps.ended()
        return replace(ready.masked(), problems=problems)

    def context_for(self, question: str, rerank: bool = False) -> ContextBlock:
        """The context block of `question` alone, nothing cached and nothing answered.

        The language model helps to find as the settings say, where there is one.
        """
        effort = self.settings.effort
        fast = effort == "fast"
        result = self.toolbox.search.search(
            question, top=UNITS_RANKED, rerank=rerank, hyde="off" if fast else ""
        )
        budget = budget_of(effort, self.settings)
        return build_context(self.toolbox.tables(), result, self.settings, budget)


@dataclass(frozen=True)
class _Gathering:
    """What is looked up for one question."""

    by: Gatherer
    routed: Routed
    model: Model | None
    given: bool
    history: tuple[Exchange, ...]

    @cached_property
    def window(self) -> int:
        """Tokens that the model takes; 0 is unknown. A local server is asked for it once, and only
        when it is needed: it knows it once the model has been loaded."""
        return self.model.window() if self.model else 0

    @cached_property
    def budget(self) -> Budget:
        settings = self.by.settings
        effort = self.routed.question.options.effort or settings.effort
        return budget_of(effort, settings, self.window)

    @property
    def drafts(self) -> HydeMode:
        """How many drafts are searched by before the model is asked. At *normal* it looks further
        itself, which finds as much and begins sooner."""
        chosen, effort = self.routed.question.options.hyde, self.budget.effort
        if effort == "fast":  # one call, unless this very question asks for more
            return chosen or "off"
        return chosen or self.by.settings.hyde or ("two" if effort == "deep" else "off")

    @property
    def room(self) -> int:
        """Characters of the block; whole files may take all that the model leaves them."""
        whole = self.routed.question.whole_files
        return largest_block(self.window) if whole else self.budget.characters

    @property
    def only_quotes(self) -> bool:
        """Nothing else than the code itself can answer."""
        return self.model is None and not self.given and not self.reply

    @property
    def reply(self) -> str:
        """Which of the app's own replies the answer is; most are for want of a model."""
        reply, given = self.routed.decision.reply, self.given
        if reply == "privacy":  # what is stored is told by the app, whatever else there is
            return reply
        return "" if given or (self.model and reply != ISSUE) else reply

    def retrieve(self) -> Generator[Event, None, Gathered]:
        """Search, or pack anew what was found, or recall it, or do neither; yields what happens
        meanwhile."""
        question, so_far, decision = self.routed.question, self.routed.so_far, self.routed.decision
        options = question.options
        replaced = so_far.replaced if options.chooses_chunks else None
        if replaced and (replaced.chunks or replaced.dropped):
            found = replace(self._start(), block=self._chosen(replaced.block), searched=True)
        elif decision.inject_rag:
            found = yield from self._search()
        else:
            block = so_far.context if decision.use_cached_context else NO_CONTEXT
            if len(block.text) > (most := largest_block(self.window)):
                block = pack(block.chunks, most)  # it was made for a larger model
            found = replace(self._start(), block=self._chosen(block))
            if so_far.context_lost and self.routed.intent.name in NEED_CODE:
                found = replace(found, warnings=(CONTEXT_LOST,))
        chunks, chosen = found.block.chunks, options.chooses_chunks
        if self.only_quotes and (chosen or not found.evidence) and (found.searched or chunks):
            lead, whole = self.counted if chosen else ("", False)
            quoted = QuotedEvidence(question.query, lead, bool(lead), whole)
            found = replace(found, evidence=replace(quoted, cached=chunks, chosen=chosen))
        enough = found.evidence and found.evidence.whole
        if self.only_quotes and question.mode in NEED_A_MODEL and not enough:
            found = replace(found, warnings=(*found.warnings, QUOTED_ONLY))
        # Not where something is left out, which a look might bring back.
        complete = not (question.whole_files or options.exclude)
        return replace(
            found,
            similar=self._similar(),
            window=self.window,
            budget=self.budget,
            may_look=complete and bool(found.searched or chunks),
        )

    def _start(self) -> Gathered:
        """What is told whatever is found."""
        question, decision = self.routed.question, self.routed.decision
        known = {**self.routed.so_far.profile, **self.routed.facts}
        if not decision.inject_profile:
            known = {}
        elif decision.intent in NEED_CODE and not self.routed.features.references_profile:
            known = preferences(known)
        return Gathered(
            question.text,
            question.mode,
            intent=decision.intent,
            history=self.history,
            profile=profile_text(known),
            instructions=question.options.instructions,
            suggest=decision.suggest_codebase,
            reply=self.reply,
            strict=question.options.strict,
            cancelled=question.options.cancelled,
            model=self.model,
        )

    def _search(self) -> Generator[Event, None, Gathered]:
        """Search the code; yields what happens meanwhile."""
        question, so_far, routed = self.routed.question, self.routed.so_far, self.routed
        tables, files, block = self.by.toolbox.tables(), self.by.toolbox.files, NO_CONTEXT
        start = replace(self._start(), searched=True, effort=self.budget.effort)
        if question.whole_files == "all":
            block = every_file(tables, files, question.query, self.room)
            if block.chunks and not self.only_quotes:
                return replace(start, block=self._chosen(block), warnings=(block.note,))
        text = routed.standalone or question.text
        rewritten = text if routed.completed_by else ""
        if rewritten:
            yield Event("rewritten", {"question": text, "by": routed.completed_by})
        counted, enough = self.counted
        result = yield from self._results(ask_model=not enough)
        warnings = result.warnings
        # What was found before may be what a follow-up asks about.
        earlier = so_far.context.chunks if routed.standalone else ()
        if walked := walk_edges(tables, question.query, routed.query, so_far):
            result = with_walk(result, walked)
        if question.whole_files == "files":
            block = best_files(tables, files, result, self.room)
            paths = {chunk.path for chunk in block.chunks}
            units = tuple(hit for hit in result.units if hit.unit.path in paths)
            result = replace(result, units=units, files=()) if units else result
        if block.chunks:
            block = self._chosen(block)
        else:
            warnings = (*warnings, block.note)  # of whole files, none of which fits
            block = build_context(
                tables,
                result,
                self.by.settings,
                self.budget,
                most=RETRIEVAL_K if routed.decision.searched_automatically else None,
                earlier=earlier,
                pinned=self._pinned(),
                excluded=question.options.exclude,
            )
        if question.whole_files or not self.only_quotes:
            warnings = (*warnings, block.note)
        evidence = QuotedEvidence(question.query) if counted else None
        if self.only_quotes and not enough:
            evidence = gather_evidence(tables, result, walked)
            evidence = replace(evidence, whole_code=question.options.whole_code)
        result = result.head(HITS_SHOWN)
        if counted and evidence:
            evidence = replace(evidence, lead=counted, counted=True, whole=enough, weak=False)
        return replace(
            start,
            block=block,
            search=result,
            evidence=evidence,
            rewritten=rewritten,
            warnings=warnings,
        )

    def _results(self, ask_model: bool) -> Generator[Event, None, SearchResult]:
        """Return what a search finds; a model may help where it is to be asked at all."""
        question, options = self.routed.question, self.routed.question.options
        ask_model = ask_model and options.use_model and not options.with_model and not self.given
        stages = self.by.toolbox.search.steps(
            self.routed.query,
            top=POOL if question.whole_files else UNITS_RANKED,
            rerank=options.rerank,
            hyde=self.drafts if ask_model else "off",
            use_model=ask_model,
            cancelled=options.cancelled,
        )
        while True:
            try:
                stage = next(stages)
            except StopIteration as end:
                result: SearchResult = end.value
                return result
            yield _search_event(stage)

    @cached_property
    def counted(self) -> tuple[str, bool]:
        """What the index or git says to a question that they answer exactly, '' for others,
        and whether that is all that was asked."""
        question, so_far, exact = self.routed.question, self.routed.so_far, None
        if self.routed.decision.answer_exactly:
            exact = question.exact
        if exact is None:
            return "", False
        self.by.toolbox.keep_up()  # the search, which comes next, says where that takes too long
        tables = self.by.toolbox.tables()
        units: list[Unit] = []
        if so_far.history:
            units = referred(tables, question.query, self.routed.query, so_far)
        names = [unit.qualified_name for unit in units] or list(question.query.pointed)
        found = exact_answer(self.by.toolbox, exact, names)
        # What changed, a model tells better from the diff than a list does.
        tells = "commit" in exact.arguments and self.model is not None
        return found, bool(found) and not (exact.asks_more or tells or self.budget.effort == "deep")

    def _similar(self) -> tuple[Exchange, ...]:
        """Past questions like this one: of this conversation and of others."""
        question, decision = self.routed.question, self.routed.decision
        options, vector = question.options, self.routed.vector
        if vector is None or not (
            options.keep and (decision.inject_qa_history or decision.inject_rag)
        ):
            return ()
        by, state = self.by, self.by.conversations.state
        unrated = options.earlier_answers or by.settings.earlier_answers
        found = similar_questions(
            state,
            vector,
            embedding=by.conversations.vectors.name,
            user=options.user,
            repository=by.conversations.repository,
            conversation=options.conversation,
            skip={options.replaces, *(exchange.turn for exchange in self.history)},
            shows=by.conversations.shows,
            holds=lambda past: (
                decision.inject_rag and still_holds(past, state, by.toolbox, unrated=unrated)
            ),
        )
        # Of this conversation nothing that comes after the point where it is taken up.
        branches_off = options.replaces or options.after
        return tuple(
            one
            for one in found
            if (one.elsewhere or decision.inject_qa_history)
            and (one.elsewhere or not branches_off or one.turn in self.routed.so_far.path)
            and not names_other_code(question.query, parse_query(one.question))
        )

    def _chosen(self, block: ContextBlock) -> ContextBlock:
        """`block`, packed anew without what is excluded and with what is pinned first, which
        shares the room, so that all of it is there. Raises as `read_place` does."""
        options = self.routed.question.options
        if not options.chooses_chunks:
            return block
        found = (*block.chunks, *block.dropped)
        first = self._pinned(found)
        kept = [chunk for chunk in found if chunk.place not in options.exclude]
        packed = pack([*first, *kept], self.room, share=1 / max(2, len(first)))
        return replace(packed, note=block.note)

    def _pinned(self, found: Sequence[Chunk] = ()) -> list[Chunk]:
        """The places that are pinned, as they were `found` or as their files are now."""
        known = {chunk.place: chunk for chunk in found}
        places = self.routed.question.options.pin
        pinned = (known.get(place) or read_place(self.by.toolbox.files, place) for place in places)
        return [replace(chunk, why=PINNED) for chunk in pinned]


def _search_event(stage: StageTime | tuple[Hit, ...]) -> Event:
    """`hits` for what is found so far, `drafting` for a stage that begins, `drafted` for one that
    has ended."""
    if isinstance(stage, tuple):
        return Event("hits", {"hits": [place_of_hit(hit) for hit in stage]})
    if not stage.outcome:
        return Event("drafting", {"name": stage.name, "model": stage.model, "host": stage.host})
    about = {"name": stage.name, "outcome": stage.outcome, "text": stage.text}
    return Event("drafted", {**about, "took": round(stage.milliseconds)})


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


# What a follow-up is about by the code's edges: the definition that it refers to, the relation that
# it asks for, and where the edges lead.
