"""The twelve steps from a question to a kept answer, as a stream of events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from codeqa.account.facts import preferences, profile_text
from codeqa.account.privacy import Privacy
from codeqa.chat.agent import model_generator
from codeqa.chat.citations import verify_all
from codeqa.chat.conversations import Conversations
from codeqa.chat.features import extract_features, is_greeting
from codeqa.chat.followup import needs_rewriting
from codeqa.chat.generation import NEED_CODE, AnswerGenerator, Exchange, answer_for_history
from codeqa.chat.generators import AppGenerator, QuotingGenerator
from codeqa.chat.grounding import judge_all, only_supported, what_is_not_known
from codeqa.chat.options import AskOptions
from codeqa.chat.policy import PolicyDecision, decide
from codeqa.chat.retrieval import Retrieval
from codeqa.chat.suggestions import suggest
from codeqa.chat.topic import leaving_by_words
from codeqa.chat.turn import TurnState, begin_turn
from codeqa.chat.vectors import prune
from codeqa.errors import CodeQAError
from codeqa.intents import ISSUE, MODEL_BELOW, Classifier, Intent, by_heuristics
from codeqa.llm import Model
from codeqa.text.tag import strip_tag
from codeqa.types import ContextBlock, Event

HEARD_SECONDS = 0.25
"""How long the end of an answer waits to hear that it was kept: saving takes some milliseconds."""
NEED_A_MODEL = ("review", "plan", "change")
"""Modes that a quoted answer does not really serve."""
QUOTED_ONLY = (
    "To review, plan or change something takes a language model: this quotes the code that was "
    "found for it."
)
NOT_SHOWN = "Answered without the language model, for the code that was found shows too little."


@dataclass(frozen=True, slots=True)
class Chat:
    """Answers questions about one repository; nothing of one turn is left for the next."""

    repository_name: str
    classifier: Classifier
    retrieval: Retrieval
    conversations: Conversations
    privacy: Privacy
    connect: Callable[[], Model | None]
    """The model of the moment, None for none."""
    review: Callable[[Model | None], AnswerGenerator]
    """What answers an issue, given the model, if any."""
    generator: AnswerGenerator | None = None
    """Writes every answer instead, and no model is asked: for tests, and for who embeds CodeQA."""

    def warm_up(self) -> None:
        """Read what the first question would have to wait for: lexicon and embedding."""
        by_heuristics("", has_history=False)
        self.conversations.vectors("warm")

    def build_context(self, question: str, rerank: bool = False) -> ContextBlock:
        """As `Retrieval.build_context`."""
        return self.retrieval.build_context(question, rerank)

    def ask(self, options: AskOptions) -> Iterator[Event]:
        """Yield the events of an answer, as `types.Event` lists them.

        What was answered so far is kept as a turn even when the model fails, or the caller stops
        or goes away.
        """
        try:
            turn = begin_turn(options)
            with self.conversations.answering(turn):
                yield from self._answer(turn)
        except CodeQAError as error:
            yield Event("error", error.as_data())

    def _answer(self, turn: TurnState) -> Iterator[Event]:
        """All steps; the turn is kept however they end: also when its reader goes away, which ends
        this at a `yield`."""
        try:
            yield from _step(turn, "embed", self._embed)
            yield from _step(turn, "load", self._load)
            yield Event("asked", {"turn": turn.id if turn.keep else ""})
            yield from _step(turn, "classify", self._classify)
            yield from _step(turn, "topic", self._gate_topic)
            yield from _step(turn, "features", self._extract_features)
            yield from _step(turn, "policy", self._decide)
            yield Event("classified", turn.classification())
            if not turn.stopped():
                generator = self._choose_generator(turn)
                needs_evidence = generator.needs_evidence or turn.options.strict
                yield from _step(turn, "prune", self._prune)
                yield from _step(
                    turn, "retrieve", lambda turn: self.retrieval.retrieve(turn, needs_evidence)
                )
                if any(turn.retrieved.values()):
                    yield Event("retrieved", turn.retrieved)
                yield from _step(turn, "before_generation", self._prepare_generation)
                generator = self._only_what_is_shown(turn, generator)
                yield from _step(turn, "generate", lambda turn: self._generate(turn, generator))
        except CodeQAError as error:
            turn.error = error.as_data()
        finally:
            # Collected and told below: a generator that is being closed must not yield here.
            ended: list[Event] = []
            if turn.loaded:
                ended += _step(turn, "after_generation", self._finish)
                ended += _step(turn, "persist", self._keep)
        yield from ended
        kept_as = turn.id if turn.loaded and turn.keep else ""
        if turn.error:
            yield Event("error", {**turn.error, "turn": kept_as})
        elif not turn.finished:
            yield Event("stopped", {"turn": kept_as})
        else:
            yield self._done(turn)

    # 1 to 6: what the message is, and what is to be done about it.

    def _embed(self, turn: TurnState) -> None:
        turn.vector = self.conversations.vectors(turn.text)

    def _load(self, turn: TurnState) -> None:
        turn.so_far = self.conversations.load(turn)
        turn.loaded = True
        if turn.keep:
            self.conversations.keep(turn)

    def _classify(self, turn: TurnState) -> None:
        options = turn.options
        has_history = turn.so_far.messages > 0
        turn.by_rules = rules = by_heuristics(turn.text, has_history=has_history)
        if options.tag_is_default and turn.tagged:
            sure = rules.name in ("profile", "privacy") and rules.confidence >= MODEL_BELOW
            # Not all that counts as general: whether a question is about the code is hard to
            # tell, and a needless search costs less than leaving out one that was wanted.
            if sure or is_greeting(turn.text):
                turn.question, turn.intent = strip_tag(turn.question), rules
                return
        if options.chooses_chunks or turn.mode_chosen or turn.query.points_at_code:
            # A mode, a place or an `@name` that the user chose is about the code.
            turn.intent = Intent("knowledge_base", 1.0, "user", "chosen by the user")
        elif turn.personal.deletes and not turn.tagged:
            # Deletion is decided by exact words, never by a guess of rules or of a model.
            turn.intent = Intent("privacy", 1.0, "heuristics", "the words that delete something")
        else:
            turn.intent = self.classifier.classify(
                turn.text,
                tagged=turn.tagged,
                has_history=has_history,
                user=options.user,
                use_model=options.use_model and self.generator is None,
                cancelled=options.cancelled,
                by_rules=rules,
            )

    def _gate_topic(self, turn: TurnState) -> None:
        """What leaves the topic gets no earlier code. A model has the last word, in the one call
        that also completes the question: where one is due anyway, or where words may be wrong."""
        so_far = turn.so_far
        self._extract_features(turn)
        chosen = turn.features.tagged or turn.intent.source == "user"
        if (
            chosen
            or turn.intent.name not in NEED_CODE
            or not (so_far.messages and so_far.context.chunks)
        ):
            return
        due = self._decision(turn).inject_rag and needs_rewriting(turn.query, turn.features)
        with suppress(CodeQAError):  # without an index it goes on from what is cached
            tables = self.retrieval.open_tables()
            turn.leaving = leaving_by_words(turn.query, so_far.history, so_far.context, tables)
        if due or turn.leaving.doubtful:
            turn.standalone = self.retrieval.complete(turn)
            turn.leaving = turn.standalone.leaving or turn.leaving

    def _extract_features(self, turn: TurnState) -> None:
        turn.features = extract_features(
            turn.text,
            turn.query,
            turn.personal,
            tagged=turn.tagged or bool(turn.whole),
            intent=turn.intent,
            by_rules=turn.by_rules,
            leaves_for=turn.leaving.to,
            profile=turn.so_far.profile,
            messages=turn.so_far.messages,
            has_context=bool(turn.so_far.context.chunks),
        )

    def _decide(self, turn: TurnState) -> None:
        turn.decision, problems = self.retrieval.hooks.run(
            "policy_override",
            self._decision(turn),
            features=turn.features,
            intent=turn.intent,
            question=turn.text,
        )
        turn.hook_problems += problems
        if turn.decision.save_profile and turn.keep:
            turn.facts = turn.personal.facts

    def _decision(self, turn: TurnState) -> PolicyDecision:
        if turn.mode == ISSUE:  # whoever reviews it searches for itself
            return PolicyDecision("knowledge_base", reply=ISSUE, rules=(ISSUE,))
        retrieval = turn.options.retrieval or self.conversations.settings.retrieval
        return decide(turn.features, turn.intent, auto=retrieval == "auto")

    # 7 to 9: what the answer may draw on.

    def _choose_generator(self, turn: TurnState) -> AnswerGenerator:
        """What writes the answer. Raises SettingsError for a model that cannot be asked."""
        reply = turn.decision.reply
        generator: AnswerGenerator | None = None
        if reply != "privacy":  # that is told by the app, whatever model there is
            generator = self.generator
            model = self.connect() if turn.options.use_model and generator is None else None
            if reply == ISSUE and generator is None:
                turn.reply, generator = reply, self.review(model)
            elif model:
                generator = model_generator(turn, model, self.retrieval)
        if generator is None and reply:
            turn.reply = reply
            generator = AppGenerator(turn, self.conversations, self.privacy, self.repository_name)
        if generator is None:
            generator = QuotingGenerator()
            if turn.mode in NEED_A_MODEL:
                turn.warnings.append(QUOTED_ONLY)
        turn.generator = generator.name
        return generator

    def _prune(self, turn: TurnState) -> None:
        if turn.decision.use_curated_history:
            threshold = self.conversations.vectors.similar_above
            history = prune(turn.so_far.history, turn.vector, self.conversations.vectors, threshold)
            turn.asked = replace(turn.asked, history=history)

    def _prepare_generation(self, turn: TurnState) -> None:
        decision = turn.decision
        known = {**turn.so_far.profile, **turn.facts} if decision.inject_profile else {}
        if decision.intent in NEED_CODE and not turn.features.references_profile:
            known = preferences(known)
        asked = replace(
            turn.asked,
            intent=decision.intent,
            profile=profile_text(known),
            suggest=decision.suggest_codebase,
        )
        asked, problems = self.retrieval.hooks.run("before_generation", asked)
        turn.asked = asked.masked()  # whatever a hook has added
        turn.hook_problems += problems
        turn.block = turn.asked.block

    def _only_what_is_shown(self, turn: TurnState, generator: AnswerGenerator) -> AnswerGenerator:
        """In strict mode nothing is written about code that was not found; what was counted needs
        no model."""
        asked, evidence = turn.asked, turn.asked.evidence
        whole = evidence is not None and evidence.whole and generator is not self.generator
        weak = evidence is None or (evidence.weak and not evidence.cached)
        if not whole and (not (asked.strict and weak and asked.intent in NEED_CODE) or turn.reply):
            return generator
        if not (whole or generator.needs_evidence):
            turn.warnings.append(NOT_SHOWN)
        quoting = QuotingGenerator()
        turn.generator = quoting.name
        return quoting

    # 10 to 12: the answer, and what is kept of it.

    def _generate(self, turn: TurnState, generator: AnswerGenerator) -> Iterator[Event]:
        if turn.stopped():
            return
        yield Event("generating")
        try:
            with closing(generator.generate(turn.asked)) as written:
                strict = turn.asked.strict and not turn.asked.counted
                pieces = only_supported(written, turn.judged, turn.left_out) if strict else written
                for piece in pieces:
                    if turn.stopped():
                        return
                    yield from turn.take(piece, self.retrieval.cited)
            turn.finished = not turn.stopped()
        except CodeQAError as error:
            turn.error = error.as_data()

    def _finish(self, turn: TurnState) -> None:
        turn.end_thought()
        asked = turn.asked
        if turn.finished and not turn.reply:
            answer = turn.answer
            revised, problems = self.retrieval.hooks.run("after_generation", answer, asked=asked)
            turn.revised = revised if revised != answer else ""
            turn.hook_problems += problems
        with suppress(CodeQAError):  # the index may be gone by now
            code = self.retrieval.cited(turn.block.chunks)
            turn.citations = verify_all(turn.answer, turn.shown(), code)
            sent = () if turn.reply == ISSUE or asked.counted else turn.request.block.chunks
            if turn.finished and sent:
                if not asked.strict or turn.revised:
                    turn.judged = judge_all(turn.answer, sent)
                turn.warnings.append(what_is_not_known(turn.judged, turn.search, sent))
            if turn.finished and asked.intent in NEED_CODE:
                turn.suggestions = suggest(turn.text, turn.block.chunks, turn.answer)

    def _keep(self, turn: TurnState) -> None:
        turn.concluded = True
        replaced = turn.so_far.replaced
        if replaced and replaced.answer and not turn.pieces:
            turn.keep = False  # the earlier answer stays: better than an empty one
        if turn.options.keep:
            saving = self.conversations.keep(turn)
            with suppress(TimeoutError):  # whoever reads it waits for the rest
                if problem := saving.result(HEARD_SECONDS):
                    turn.warnings.append(f"This answer could not be kept. {problem}")

    def _done(self, turn: TurnState) -> Event:
        exchange = Exchange(turn.text, answer_for_history(turn.answer, turn.generator))
        before = turn.so_far
        history = before.history if turn.reply == "privacy" else (*before.history, exchange)
        block = turn.block if turn.asked.searched else before.context
        return Event(
            "done",
            {
                **turn.record().told(),
                "query_tags": ["codebase"] if turn.tagged else [],
                "turn": turn.id if turn.keep else "",
                "carries": self.conversations.weight(block, history),
                "revised": turn.revised,
                "profile": dict(turn.facts),
            },
        )


def _step(
    turn: TurnState, name: str, work: Callable[[TurnState], Iterable[Event] | None]
) -> Iterator[Event]:
    """Do `work` as the step `name`: its own events, and at last that it has ended."""
    started = time.perf_counter()
    yield from work(turn) or ()
    yield turn.end_step(name, started)
