"""Classify a question and decide what to do about it: the second stage of a turn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from codeqa.chat.hooks import Hooks
from codeqa.chat.stream import Steps
from codeqa.chat.values import CompletedBy, ConversationSoFar, Question, Routed, Vector
from codeqa.errors import CodeQAError
from codeqa.routing.followup import (
    STAYS,
    Leaving,
    SmallCall,
    Understood,
    complete_by_words,
    is_incomplete,
    leaving_by_words,
)
from codeqa.routing.intents import MODEL_BELOW, NEED_CODE, Intent, asks_of_code, by_words
from codeqa.routing.mode import ISSUE
from codeqa.routing.policy import Features, PolicyDecision, decide, extract_features, is_greeting
from codeqa.search.query import parse_query
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.text import strip_tag
from codeqa.types import NO_USAGE


@dataclass(frozen=True, slots=True)
class Router:
    """The stage of a turn that decides what a question is and what is done about it."""

    small_call: SmallCall
    hooks: Hooks
    settings: Settings
    tables: Callable[[], Tables]

    def route(
        self, question: Question, vector: Vector | None, so_far: ConversationSoFar, steps: Steps
    ) -> Routed:
        """Classify the question, and decide what to do."""
        with steps.time("classify"):
            plain = by_words(question.words, has_history=so_far.begun)
            question, intent, understood = self._classify(question, so_far, plain)
        with steps.time("topic"):
            features = extract_features(
                question.text,
                question.words,
                question.query,
                question.personal,
                tagged=question.tagged or bool(question.whole_files),
                intent=intent,
                by_words=plain,
                profile=so_far.profile,
                messages=so_far.messages,
                has_context=bool(so_far.context.chunks) or so_far.cites_code,
                asks_exactly=question.counted is not None,
            )
            planned = self._decision(question, features, intent)
            leaving, understood = self._gate_topic(
                question, so_far, intent, features, planned, understood
            )
        with steps.time("features"):
            if leaving.to:
                features = features.leaving(leaving.to)
        with steps.time("policy"):
            if leaving.to:  # else the plan holds
                planned = self._decision(question, features, intent)
            decision, problems = self.hooks.run(
                "policy_override", planned, features=features, intent=intent, question=question.text
            )
        standalone = ""
        completed_by: CompletedBy = ""
        if _needs_completing(question, so_far, features, decision):
            standalone, completed_by = _completed(question, so_far, understood)
        query = parse_query(standalone, path=question.mask) if standalone else question.query
        keeps_facts = decision.save_profile and question.options.keep
        facts = question.personal.facts if keeps_facts else {}
        usage = understood.usage if understood else NO_USAGE
        return Routed(
            question, so_far, vector, intent, leaving, features, decision, standalone, query,
            completed_by, facts, problems, usage,
        )  # fmt: skip

    def _classify(
        self, question: Question, so_far: ConversationSoFar, plain: Intent
    ) -> tuple[Question, Intent, Understood | None]:
        """Return the question, its intent, and the reply of a model where one was asked."""
        options = question.options
        if options.task:
            why = "a title or the like for the client's program"
            return question, Intent("general", 1.0, "user", why), None
        if options.tag_is_default and question.tagged:
            sure = plain.name in ("profile", "privacy") and plain.confidence >= MODEL_BELOW
            # Not for every general question: whether one is about the code is hard to tell, and a
            # needless search costs less than a missing one.
            if sure or is_greeting(question.text):
                return replace(question, typed=strip_tag(question.typed)), plain, None
        if options.chooses_chunks or question.mode_chosen or question.query.points_at_code:
            # A mode, a span or an `@name` that the user chose is about the code.
            return question, Intent("knowledge_base", 1.0, "user", "chosen by the user"), None
        if question.tagged:
            return question, Intent("knowledge_base", 1.0, "tag", "the tag @codebase"), None
        if question.personal.confirmed:
            # Deletion is decided by exact words, never by a guess of rules or of a model.
            why = "the words that delete something"
            return question, Intent("privacy", 1.0, "heuristics", why), None
        if plain.name not in NEED_CODE and self._asks_of_code(question):
            why = "it asks about something that this repository defines"
            return question, Intent("knowledge_base", 1.0, "heuristics", why), None
        if intent := self.small_call.recall(options.user, question.text, so_far.begun):
            return question, intent, None
        if plain.confidence >= MODEL_BELOW:
            return question, plain, None
        understood = self._ask(question, so_far)
        return question, understood.intent or plain, understood

    def _asks_of_code(self, question: Question) -> bool:
        """Return whether the question is about something that the repository defines.

        "What do you know about load_order?" is not about what the app knows of the user.
        """
        with suppress(CodeQAError):  # there is no index yet
            return asks_of_code(question.text, question.words, self.tables())
        return False

    def _gate_topic(
        self,
        question: Question,
        so_far: ConversationSoFar,
        intent: Intent,
        features: Features,
        planned: PolicyDecision,
        understood: Understood | None,
    ) -> tuple[Leaving, Understood | None]:
        """Return whether the question leaves the topic, which then gets no earlier code.

        A model has the last word: where it was asked already, where the question needs completing
        anyway, or where words may be wrong. `features` and `planned` hold if the question stays.
        """
        explicit = features.tagged or intent.source == "user"
        # A client without a conversation also has the code of its last question.
        has_code = bool(so_far.context.chunks)
        may_leave, leaving = has_code and not explicit and intent.name in NEED_CODE, STAYS
        if may_leave:
            with suppress(CodeQAError):  # without an index the cached code is used
                tables = self.tables()
                leaving = leaving_by_words(
                    question.query, question.words, so_far.history, so_far.context, tables
                )
        incomplete = _needs_completing(question, so_far, features, planned)
        if understood is None and (incomplete or leaving.doubtful):
            understood = self._ask(question, so_far)
        if may_leave and understood and understood.leaving:
            leaving = understood.leaving
        return leaving, understood

    def _ask(self, question: Question, so_far: ConversationSoFar) -> Understood:
        """Return the reply of the small model; an empty one where it may not be asked."""
        options = question.options
        fast = (options.effort or self.settings.effort) == "fast"
        # At `fast` the only call is the answer; the small model belongs to the model in use.
        if not options.use_model or fast or options.with_model:
            return Understood()
        history = so_far.history
        return self.small_call.ask(
            options.user, question.text, so_far.begun, history, so_far.names, options.cancelled
        )

    def _decision(self, question: Question, features: Features, intent: Intent) -> PolicyDecision:
        if question.mode == ISSUE:  # the review searches for itself
            return PolicyDecision("knowledge_base", reply=ISSUE, rules=(ISSUE,))
        retrieval = question.options.retrieval or self.settings.retrieval
        return decide(features, intent, auto=retrieval == "auto")


def _completed(
    question: Question, so_far: ConversationSoFar, understood: Understood | None
) -> tuple[str, CompletedBy]:
    """Return a follow-up as a standalone question, and how it was made."""
    completed_by: CompletedBy = "model"
    standalone = understood.question if understood else ""
    if not standalone:
        completed_by = "carried"
        standalone = complete_by_words(question.text, so_far.history, so_far.names)
    return standalone, "" if standalone == question.text else completed_by


def _needs_completing(
    question: Question, so_far: ConversationSoFar, features: Features, decision: PolicyDecision
) -> bool:
    """Return whether the question will be searched for and says too little alone."""
    if not decision.inject_rag or not so_far.history:
        return False
    return is_incomplete(question.query, question.words, features)
