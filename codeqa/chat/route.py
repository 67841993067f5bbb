"""What a question is, and what is to be done about it: the second stage of a turn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from codeqa.chat.hooks import Hooks
from codeqa.chat.stream import Steps
from codeqa.chat.values import ConversationSoFar, Question, Routed, Vector
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
    small_call: SmallCall
    hooks: Hooks
    settings: Settings
    tables: Callable[[], Tables]

    def route(
        self, question: Question, vector: Vector | None, so_far: ConversationSoFar, steps: Steps
    ) -> Routed:
        """Take the question for what it is, and decide."""
        with steps.time("classify"):
            plain = by_words(question.words, has_history=so_far.begun)
            question, intent, said = self._classify(question, so_far, plain)
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
                asks_exactly=question.exact is not None,
            )
            planned = self._decision(question, features, intent)
            leaving, said = self._gate_topic(question, so_far, intent, features, planned, said)
        with steps.time("features"):
            if leaving.to:
                features = features.leaving(leaving.to)
        with steps.time("policy"):
            if leaving.to:  # else what is planned holds
                planned = self._decision(question, features, intent)
            decision, problems = self.hooks.run(
                "policy_override", planned, features=features, intent=intent, question=question.text
            )
        standalone, by = "", ""
        if _needs_completing(question, so_far, features, decision):
            standalone, by = (said.question, "model") if said else ("", "")
            if not standalone:
                by = "carried"
                standalone = complete_by_words(question.text, so_far.history, so_far.names)
            by = by if standalone != question.text else ""
        query = parse_query(standalone, path=question.mask) if standalone else question.query
        keeps_facts = decision.save_profile and question.options.keep
        facts = question.personal.facts if keeps_facts else {}
        return Routed(
            question, so_far, vector, intent, leaving, features, decision, standalone, query,
            by, facts, problems, said.usage if said else NO_USAGE,
        )  # fmt: skip

    def _classify(
        self, question: Question, so_far: ConversationSoFar, plain: Intent
    ) -> tuple[Question, Intent, Understood | None]:
        """The intent, and what a model said where it was asked for it."""
        options = question.options
        if options.tag_is_default and question.tagged:
            sure = plain.name in ("profile", "privacy") and plain.confidence >= MODEL_BELOW
            # Not all that counts as general: whether a question is about the code is hard to
            # tell, and a needless search costs less than leaving out one that was wanted.
            if sure or is_greeting(question.text):
                return replace(question, typed=strip_tag(question.typed)), plain, None
        if options.chooses_chunks or question.mode_chosen or question.query.points_at_code:
            # A mode, a place or an `@name` that the user chose is about the code.
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
        if known := self.small_call.recall(options.user, question.text, so_far.begun):
            return question, known, None
        if plain.confidence >= MODEL_BELOW:
            return question, plain, None
        said = self._ask(question, so_far)
        return question, said.intent or plain, said

    def _asks_of_code(self, question: Question) -> bool:
        """Whether it asks about something that the repository defines: "what do you know about
        load_order?" is not about what the app knows of its writer."""
        with suppress(CodeQAError):  # there is no index yet
            return asks_of_code(question.text, question.words, self.tables())
        return False

    def _gate_topic(
        self,
        question: Question,
        so_far: ConversationSoFar,
        intent: Intent,
        staying: Features,
        planned: PolicyDecision,
        said: Understood | None,
    ) -> tuple[Leaving, Understood | None]:
        """What leaves the topic gets no earlier code. A model has the last word: where it was asked
        already, where the question is to be completed anyway, or where words may be wrong.
        `staying` and `planned` are what it is, and what is done about it, if it stays."""
        chosen = staying.tagged or intent.source == "user"
        # A client without a conversation has the code of its last question, too.
        at_hand = bool(so_far.context.chunks)
        gated, leaving = at_hand and not chosen and intent.name in NEED_CODE, STAYS
        if gated:
            with suppress(CodeQAError):  # without an index it goes on from what is cached
                tables = self.tables()
                leaving = leaving_by_words(
                    question.query, question.words, so_far.history, so_far.context, tables
                )
        due = _needs_completing(question, so_far, staying, planned)
        if said is None and (due or leaving.doubtful):
            said = self._ask(question, so_far)
        if gated and said and said.leaving:
            leaving = said.leaving
        return leaving, said

    def _ask(self, question: Question, so_far: ConversationSoFar) -> Understood:
        """What the small model says of it, where there is one and it may be asked."""
        options = question.options
        fast = (options.effort or self.settings.effort) == "fast"
        # One call is made at `fast`, and that answers; the small model is that of the one in use.
        if not options.use_model or fast or options.with_model:
            return Understood()
        earlier = (so_far.begun, so_far.history, so_far.names)
        return self.small_call.ask(options.user, question.text, *earlier, options.cancelled)

    def _decision(self, question: Question, features: Features, intent: Intent) -> PolicyDecision:
        if question.mode == ISSUE:  # whoever reviews it searches for itself
            return PolicyDecision("knowledge_base", reply=ISSUE, rules=(ISSUE,))
        retrieval = question.options.retrieval or self.settings.retrieval
        return decide(features, intent, auto=retrieval == "auto")


def _needs_completing(
    question: Question, so_far: ConversationSoFar, features: Features, decision: PolicyDecision
) -> bool:
    """Whether it is searched for and says too little alone."""
    searched = decision.inject_rag and bool(so_far.history)
    return searched and is_incomplete(question.query, question.words, features)
