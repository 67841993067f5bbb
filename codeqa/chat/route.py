"""What a question is, and what is to be done about it: the second stage of a turn."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeqa.chat.features import Features, extract_features, is_greeting
from codeqa.chat.followup import Standalone, needs_rewriting, rewrite
from codeqa.chat.generation import NEED_CODE
from codeqa.chat.hooks import Hooks
from codeqa.chat.policy import PolicyDecision, decide
from codeqa.chat.question import ConversationSoFar, Question
from codeqa.chat.steps import Steps
from codeqa.chat.topic import STAYS, Leaving, leaving_by_words
from codeqa.chat.vectors import Vector
from codeqa.errors import CodeQAError
from codeqa.intents import ISSUE, MODEL_BELOW, Classifier, Intent, by_heuristics
from codeqa.llm import Model
from codeqa.settings import Settings
from codeqa.store import Tables
from codeqa.text.tag import strip_tag
from codeqa.types import Event


@dataclass(frozen=True, slots=True)
class Routed:
    """A question with its place in the conversation, and what is to be done about it."""

    question: Question
    so_far: ConversationSoFar
    vector: Vector | None
    """Of the question; None for one that the embedding knows no word of."""
    intent: Intent
    leaving: Leaving
    """Whether it leaves what the conversation was about."""
    standalone: Standalone | None
    """What a model made of the question, where it was asked for its topic."""
    features: Features
    decision: PolicyDecision
    facts: Mapping[str, str]
    """About its writer, that are to be kept."""
    problems: tuple[str, ...]
    """Hooks whose part was left out, a sentence each."""

    def classification(self) -> dict[str, Any]:
        """Data of the `classified` event: what the message is taken for, and why."""
        decision = self.decision
        return {
            "intent": decision.intent,
            "confidence": self.intent.confidence,
            "source": self.intent.source,
            "reason": self.intent.reason,
            "rules": list(decision.rules),
            "searched_automatically": decision.searched_automatically,
            "searches": decision.inject_rag,
            "goes_on": decision.use_cached_context,
            "left_out": self.leaving.why,
            "suggest_codebase": decision.suggest_codebase,
        }


@dataclass(frozen=True, slots=True)
class Router:
    """Routes questions about one repository."""

    classifier: Classifier
    hooks: Hooks
    settings: Settings
    open_tables: Callable[[], Tables]
    small_model: Callable[[], Model | None]
    """The model that completes follow-ups; None for none."""
    classify_by_model: bool = True

    def route(
        self, question: Question, vector: Vector | None, so_far: ConversationSoFar, steps: Steps
    ) -> Generator[Event, None, Routed]:
        """Take the question for what it is, and decide; tells of its steps."""
        rules = by_heuristics(question.text, has_history=so_far.messages > 0)
        question, intent = yield from steps.do(
            "classify", lambda: self._classify(question, so_far, rules)
        )
        staying = _features(question, so_far, intent, rules, STAYS)
        planned = self._decision(question, staying, intent)
        leaving, standalone = yield from steps.do(
            "topic", lambda: self._gate_topic(question, so_far, intent, staying, planned)
        )
        leaves = bool(leaving.to)  # else what is planned holds
        features = yield from steps.do(
            "features",
            lambda: _features(question, so_far, intent, rules, leaving) if leaves else staying,
        )
        decision, problems = yield from steps.do(
            "policy",
            lambda: self.hooks.run(
                "policy_override",
                self._decision(question, features, intent) if leaves else planned,
                features=features,
                intent=intent,
                question=question.text,
            ),
        )
        keeps_facts = decision.save_profile and question.options.keep
        facts = question.personal.facts if keeps_facts else {}
        return Routed(
            question, so_far, vector, intent, leaving, standalone, features, decision, facts,
            problems,
        )  # fmt: skip

    def complete(self, question: Question, so_far: ConversationSoFar) -> Standalone:
        """The question made complete by the small model, where there is one and it may be asked,
        else by the words of earlier ones."""
        model = None
        with suppress(CodeQAError):  # whoever answers says what is wrong with it
            model = self.small_model() if question.options.use_model else None
        return rewrite(
            question.text,
            so_far.history,
            so_far.names,
            model,
            self._config_dir,
            cancelled=question.options.cancelled,
        )

    @property
    def _config_dir(self) -> Path | None:
        return self.settings.config_dir

    def _classify(
        self, question: Question, so_far: ConversationSoFar, rules: Intent
    ) -> tuple[Question, Intent]:
        options = question.options
        if options.tag_is_default and question.tagged:
            sure = rules.name in ("profile", "privacy") and rules.confidence >= MODEL_BELOW
            # Not all that counts as general: whether a question is about the code is hard to
            # tell, and a needless search costs less than leaving out one that was wanted.
            if sure or is_greeting(question.text):
                return replace(question, typed=strip_tag(question.typed)), rules
        if options.chooses_chunks or question.mode_chosen or question.query.points_at_code:
            # A mode, a place or an `@name` that the user chose is about the code.
            return question, Intent("knowledge_base", 1.0, "user", "chosen by the user")
        if question.personal.deletes and not question.tagged:
            # Deletion is decided by exact words, never by a guess of rules or of a model.
            why = "the words that delete something"
            return question, Intent("privacy", 1.0, "heuristics", why)
        intent = self.classifier.classify(
            question.text,
            tagged=question.tagged,
            has_history=so_far.messages > 0,
            user=options.user,
            use_model=options.use_model and self.classify_by_model,
            cancelled=options.cancelled,
            by_rules=rules,
        )
        return question, intent

    def _gate_topic(
        self,
        question: Question,
        so_far: ConversationSoFar,
        intent: Intent,
        staying: Features,
        planned: PolicyDecision,
    ) -> tuple[Leaving, Standalone | None]:
        """What leaves the topic gets no earlier code. A model has the last word, in the one call
        that also completes the question: where one is due anyway, or where words may be wrong.
        `staying` and `planned` are what it is, and what is done about it, if it stays."""
        chosen = staying.tagged or intent.source == "user"
        at_hand = so_far.messages and so_far.context.chunks
        if chosen or intent.name not in NEED_CODE or not at_hand:
            return STAYS, None
        leaving = STAYS
        with suppress(CodeQAError):  # without an index it goes on from what is cached
            tables = self.open_tables()
            leaving = leaving_by_words(question.query, so_far.history, so_far.context, tables)
        due = planned.inject_rag and needs_rewriting(question.query, staying)
        if not (due or leaving.doubtful):
            return leaving, None
        standalone = self.complete(question, so_far)
        return standalone.leaving or leaving, standalone

    def _decision(self, question: Question, features: Features, intent: Intent) -> PolicyDecision:
        if question.mode == ISSUE:  # whoever reviews it searches for itself
            return PolicyDecision("knowledge_base", reply=ISSUE, rules=(ISSUE,))
        retrieval = question.options.retrieval or self.settings.retrieval
        return decide(features, intent, auto=retrieval == "auto")


def _features(
    question: Question,
    so_far: ConversationSoFar,
    intent: Intent,
    rules: Intent,
    leaving: Leaving,
) -> Features:
    return extract_features(
        question.text,
        question.query,
        question.personal,
        tagged=question.tagged or bool(question.whole_files),
        intent=intent,
        by_rules=rules,
        leaves_for=leaving.to,
        profile=so_far.profile,
        messages=so_far.messages,
        has_context=bool(so_far.context.chunks),
    )
