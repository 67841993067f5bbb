"""Gather the code and the earlier answers for an answer: the third stage of a turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from codeqa.chat.check import still_holds
from codeqa.chat.conversations import Conversations
from codeqa.chat.edges import referred, walk_edges, with_walk
from codeqa.chat.events import Drafted, Drafting, Event, Hits, HitSummary, Retrieved, Rewritten
from codeqa.chat.hooks import Hooks
from codeqa.chat.pinned import choose_chunks, read_pinned
from codeqa.chat.stream import Steps
from codeqa.chat.values import Gathered, Routed
from codeqa.chat.vectors import names_other_code, prune, similar_questions
from codeqa.code.calls import RelationWalk
from codeqa.code.counted import counted_answer
from codeqa.code.tools import Toolbox
from codeqa.context.block import NO_CONTEXT, ContextBlock
from codeqa.context.packing import pack
from codeqa.llm.client import Model
from codeqa.quoted import QuotedEvidence, gather_evidence
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.intents import NEED_CODE
from codeqa.routing.mode import ISSUE
from codeqa.routing.personal import preferences, profile_text
from codeqa.search.query import parse_query
from codeqa.search.result import SearchResult
from codeqa.selection import UNITS_RANKED, Budget, budget_of, build_context, largest_block
from codeqa.settings import Settings
from codeqa.types import Exchange, Hit, HydeMode, StageTime, Unit
from codeqa.whole_files import CANDIDATE_UNITS, best_files, every_file

HITS_SHOWN = 10
"""Hits that are stored with the turn."""
RETRIEVAL_K = 4
"""Methods and classes, at the effort *fast*, in the context of a question that the app searches for
on its own."""
NEED_A_MODEL = ("review", "plan", "change")
"""Modes for which a quoted answer is little use."""
CONTEXT_LOST = (
    "The cache with the code of an earlier question cannot be reached, so this answer was made "
    "without that code. Ask with @codebase to search for it again."
)
QUOTED_ONLY = (
    "Reviewing, planning or changing code needs a language model. Without one, this answer only "
    "quotes the code that the search found."
)


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Gathers what the decision asks for, and nothing else."""

    toolbox: Toolbox
    settings: Settings
    hooks: Hooks
    conversations: Conversations
    answer_model: Callable[[str], Model | None]
    """Returns the model of that name for answers, '' for the one in use; None for none."""

    def gather(
        self, routed: Routed, steps: Steps, *, other_responder: bool = False
    ) -> Generator[Event, None, Gathered]:
        """Connect the model and gather what it is sent; yield the steps and progress.

        With `other_responder`, a generator of the caller answers in place of the model. Raises
        SettingsError for a model that cannot be asked.
        """
        options, model = routed.question.options, None
        # A reply about stored data is the app's own, whatever model there is.
        if options.use_model and not other_responder and routed.decision.reply != "privacy":
            model = self.answer_model(options.with_model)
        with steps.time("prune"):
            history = routed.so_far.history if routed.decision.use_curated_history else ()
            history = prune(history, routed.vector, self.conversations.vectors)
        yield from steps.ended()
        with steps.time("retrieve"):
            gathering = _Gathering(self, routed, model, other_responder, history)
            gathered = yield from gathering.retrieve()
        yield from steps.ended()
        if gathered.retrieved != Retrieved():
            yield gathered.retrieved
        with steps.time("before_generation"):
            ready, problems = self.hooks.run("before_generation", gathered)
            if ready.block != gathered.block:  # a hook's chunks; those of the index are masked
                masked = tuple(
                    replace(chunk, content=mask_secrets(chunk.content))
                    for chunk in ready.block.chunks
                )
                block = ContextBlock(masked, ready.block.dropped)
                evidence = ready.evidence and QuotedEvidence(routed.question.query, cached=masked)
                ready = replace(ready, block=block, evidence=evidence)
        yield from steps.ended()
        return replace(ready.masked(), problems=problems)

    def context_for(self, question: str, rerank: bool = False) -> ContextBlock:
        """Return the context block of `question` alone, without a conversation or an answer.

        A language model writes drafts as the settings say, where there is one.
        """
        budget = budget_of(self.settings.effort, self.settings)
        hyde = "off" if budget.effort == "fast" else ""
        search = self.toolbox.search
        result = search.search(question, top=UNITS_RANKED, rerank=rerank, hyde=hyde)
        return build_context(self.toolbox.tables(), result, self.settings, budget)


class Counted(NamedTuple):
    """The exact answer of the index or of git."""

    text: str
    """'' if nothing was counted."""
    is_complete: bool
    """True if it answers the whole question."""


NOT_COUNTED = Counted("", False)


@dataclass(frozen=True)
class _Gathering:
    """Gathers the material for one question."""

    gatherer: Gatherer
    routed: Routed
    model: Model | None
    other_responder: bool
    """True if a generator of the calling program writes the answer."""
    history: tuple[Exchange, ...]

    @cached_property
    def window(self) -> int:
        """Tokens that the model takes; 0 if unknown.

        Asked lazily: a local server knows its window only after it has loaded the model.
        """
        return self.model.window() if self.model else 0

    @cached_property
    def budget(self) -> Budget:
        settings = self.gatherer.settings
        effort = self.routed.question.options.effort or settings.effort
        return budget_of(effort, settings, self.window)

    @property
    def drafts(self) -> HydeMode:
        """Number of drafts to search by before the model is asked.

        At *normal* the model looks further itself, which finds as much and begins sooner.
        """
        option, effort = self.routed.question.options.hyde, self.budget.effort
        if effort == "fast":  # one call, unless this very question asks for more
            return option or "off"
        return option or self.gatherer.settings.hyde or ("two" if effort == "deep" else "off")

    @property
    def room(self) -> int:
        """Most characters of the block; whole files may fill the window of the model."""
        if self.routed.question.whole_files:
            return largest_block(self.window)
        return self.budget.characters

    @property
    def only_quotes(self) -> bool:
        """True if the answer can only quote code."""
        return self.model is None and not self.other_responder and not self.reply

    @property
    def reply(self) -> str:
        """Name of the app's own reply, '' for none; most are given only without a model."""
        reply = self.routed.decision.reply
        if reply == "privacy":  # the app says what is stored, whatever else there is
            return reply
        return "" if self.other_responder or (self.model and reply != ISSUE) else reply

    def retrieve(self) -> Generator[Event, None, Gathered]:
        """Run a search, pack earlier hits anew, or reuse the cached context; yield progress."""
        question, options = self.routed.question, self.routed.question.options
        by_hand, counted = options.chooses_chunks, NOT_COUNTED
        replaced = self.routed.so_far.replaced if by_hand else None
        if replaced and (replaced.chunks or replaced.dropped):
            gathered = replace(self._start(), block=self._chosen(replaced.block), searched=True)
        elif self.routed.decision.inject_rag:
            counted = self._count()
            gathered = yield from self._search(counted)
        else:
            gathered = self._recall()
        chunks, evidence, warnings = gathered.block.chunks, gathered.evidence, gathered.warnings
        if self.only_quotes and (by_hand or not evidence) and (gathered.searched or chunks):
            if not by_hand:
                counted = NOT_COUNTED
            elif counted is NOT_COUNTED:
                counted = self._count()
            evidence = QuotedEvidence(
                question.query,
                counted.text,
                counted=bool(counted.text),
                is_whole_answer=counted.is_complete,
                cached=chunks,
                chosen=by_hand,
            )
        is_whole = evidence is not None and evidence.is_whole_answer
        if self.only_quotes and question.mode in NEED_A_MODEL and not is_whole:
            warnings += (QUOTED_ONLY,)
        # Where something is left out on purpose, a look might bring it back.
        may_look = not question.whole_files and not options.exclude
        return replace(
            gathered,
            evidence=evidence,
            warnings=warnings,
            similar=self._similar(),
            window=self.window,
            budget=self.budget,
            may_look=may_look and bool(gathered.searched or chunks),
        )

    def _start(self) -> Gathered:
        """Return the values that do not depend on the search."""
        question, decision = self.routed.question, self.routed.decision
        facts = {**self.routed.so_far.profile, **self.routed.facts}
        if not decision.inject_profile:
            facts = {}
        elif decision.intent in NEED_CODE and not self.routed.features.references_profile:
            facts = preferences(facts)
        return Gathered(
            question,
            question.text,
            intent=decision.intent,
            history=self.history,
            profile=profile_text(facts),
            instructions=question.options.instructions,
            suggest=decision.suggest_codebase,
            reply=self.reply,
            strict=question.options.strict,
            model=self.model,
        )

    def _recall(self) -> Gathered:
        """Reuse the code of an earlier question, if the decision says so."""
        so_far, block, warnings = self.routed.so_far, NO_CONTEXT, tuple[str, ...]()
        if self.routed.decision.use_cached_context:
            block = so_far.context
        most = largest_block(self.window)
        if len(block.text) > most:
            block = pack(block.chunks, most)  # it was made for a larger model
        if so_far.context_lost and self.routed.intent.name in NEED_CODE:
            warnings = (CONTEXT_LOST,)
        return replace(self._start(), block=self._chosen(block), warnings=warnings)

    def _search(self, counted: Counted) -> Generator[Event, None, Gathered]:
        """Search the code; yield progress. A `counted` answer is quoted before the hits."""
        question, so_far, routed = self.routed.question, self.routed.so_far, self.routed
        tables, whole_files = self.gatherer.toolbox.tables(), NO_CONTEXT
        start = replace(self._start(), searched=True, effort=self.budget.effort)
        if question.whole_files == "all":
            whole_files = every_file(tables, self.gatherer.toolbox.files, question.query, self.room)
            if whole_files.chunks and not self.only_quotes:
                return replace(start, block=self._chosen(whole_files), warnings=(whole_files.note,))
        text = routed.standalone or question.text
        rewritten = text if routed.completed_by else ""
        if rewritten:
            yield Rewritten(text, by=routed.completed_by)
        result = yield from self._results(ask_model=not counted.is_complete)
        warnings = result.warnings
        walk = walk_edges(tables, question.query, routed.query, so_far)
        if walk:
            result = with_walk(result, walk)
        if question.whole_files == "files":
            whole_files = best_files(tables, self.gatherer.toolbox.files, result, self.room)
            result = _of_files(result, {chunk.path for chunk in whole_files.chunks})
        if whole_files.chunks:
            block = self._chosen(whole_files)
        else:
            warnings += (whole_files.note,)  # none of the files fits
            block = self._packed(result)
        if question.whole_files or not self.only_quotes:
            warnings += (block.note,)
        return replace(
            start,
            block=block,
            search=result.head(HITS_SHOWN),
            evidence=self._evidence(result, walk, counted),
            rewritten=rewritten,
            warnings=warnings,
        )

    def _packed(self, result: SearchResult) -> ContextBlock:
        """Return the context block for the result of a search."""
        routed = self.routed
        return build_context(
            self.gatherer.toolbox.tables(),
            result,
            self.gatherer.settings,
            self.budget,
            most=RETRIEVAL_K if routed.decision.searched_automatically else None,
            # A follow-up may be about the code of the earlier question.
            earlier=routed.so_far.context.chunks if routed.standalone else (),
            pinned=read_pinned(self.gatherer.toolbox.files, routed.question.options.pin),
            excluded=routed.question.options.exclude,
        )

    def _evidence(
        self, result: SearchResult, walk: RelationWalk | None, counted: Counted
    ) -> QuotedEvidence | None:
        """Return the quotes for an answer without a model, and the counted list for any answer."""
        question, evidence = self.routed.question, None
        if self.only_quotes and not counted.is_complete:
            evidence = gather_evidence(self.gatherer.toolbox.tables(), result, walk)
            evidence = replace(evidence, whole_code=question.options.whole_code)
        if counted.text:
            evidence = replace(
                evidence or QuotedEvidence(question.query),
                lead=counted.text,
                counted=True,
                is_whole_answer=counted.is_complete,
                weak=False,
            )
        return evidence

    def _results(self, ask_model: bool) -> Generator[Event, None, SearchResult]:
        """Return the result of a search, by drafts of a model too if one may be asked."""
        question, options = self.routed.question, self.routed.question.options
        if not options.use_model or options.with_model or self.other_responder:
            ask_model = False
        phases = self.gatherer.toolbox.search.phases(
            self.routed.query,
            top=CANDIDATE_UNITS if question.whole_files else UNITS_RANKED,
            rerank=options.rerank,
            hyde=self.drafts if ask_model else "off",
            use_model=ask_model,
            cancelled=options.cancelled,
        )
        while True:
            try:
                stage = next(phases)
            except StopIteration as end:
                result: SearchResult = end.value
                return result
            yield _search_event(stage)

    def _count(self) -> Counted:
        """Bring the index up to date and answer exactly from it, if the question asks for that."""
        question, so_far = self.routed.question, self.routed.so_far
        counted = question.counted if self.routed.decision.answer_exactly else None
        if counted is None:
            return NOT_COUNTED
        toolbox = self.gatherer.toolbox
        toolbox.update_index()  # the search, which comes next, warns if that takes long
        tables = toolbox.tables()
        units: list[Unit] = []
        if so_far.history:
            units = referred(tables, question.query, self.routed.query, so_far)
        names = [unit.qualified_name for unit in units] or list(question.query.pointed)
        answer = counted_answer(toolbox, counted, names)
        # A model explains better from the diff what changed than a list does.
        reads_diff = "commit" in counted.arguments and self.model is not None
        asks_more = counted.asks_more or reads_diff or self.budget.effort == "deep"
        return Counted(answer, bool(answer) and not asks_more)

    def _similar(self) -> tuple[Exchange, ...]:
        """Return similar past questions of this conversation and of others."""
        question, decision = self.routed.question, self.routed.decision
        options, vector = question.options, self.routed.vector
        if vector is None or not options.keep:
            return ()
        if not decision.inject_qa_history and not decision.inject_rag:
            return ()
        conversations, toolbox = self.gatherer.conversations, self.gatherer.toolbox
        state = conversations.state
        unrated = options.earlier_answers or self.gatherer.settings.earlier_answers
        exchanges = similar_questions(
            state,
            vector,
            embedding=conversations.vectors.name,
            user=options.user,
            repository=conversations.repository,
            conversation=options.conversation,
            skip={options.replaces, *(exchange.turn for exchange in self.history)},
            shows=conversations.shows,
            holds=lambda past: (
                decision.inject_rag and still_holds(past, state, toolbox, unrated=unrated)
            ),
        )
        return tuple(
            past
            for past in exchanges
            if (past.elsewhere or self._may_recall(past))
            and not names_other_code(question.query, parse_query(past.question))
        )

    def _may_recall(self, past: Exchange) -> bool:
        """Return whether an exchange of this conversation may be sent: never of another branch."""
        options = self.routed.question.options
        if not self.routed.decision.inject_qa_history:
            return False
        branches_off = options.replaces or options.after
        return not branches_off or past.turn in self.routed.so_far.path

    def _chosen(self, block: ContextBlock) -> ContextBlock:
        options = self.routed.question.options
        return choose_chunks(block, options, self.gatherer.toolbox.files, self.room)


def _of_files(result: SearchResult, paths: Collection[str]) -> SearchResult:
    """Return `result` with only its units in `paths`; all of it where there are none."""
    units = tuple(hit for hit in result.units if hit.unit.path in paths)
    return replace(result, units=units, files=()) if units else result


def _search_event(stage: StageTime | tuple[Hit, ...]) -> Event:
    """Return `Hits` for hits so far, `Drafting` for the start of a stage, `Drafted` for its end."""
    if isinstance(stage, tuple):
        return Hits(tuple(map(HitSummary.of, stage)))
    if not stage.outcome:
        return Drafting(stage.name, stage.model, stage.host)
    return Drafted(stage.name, stage.outcome, stage.text, round(stage.milliseconds))
