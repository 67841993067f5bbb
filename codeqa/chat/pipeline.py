"""The twelve steps from a question to a kept answer, in S3's order (S3.08).

Each is a pure function or a part that is handed in, and is told with its time as it ends. What
the steps decide is written into the turn's draft, from top to bottom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from codeqa.account import (
    confirmed_scope,
    detect_facts,
    facts_to_forget,
    preferences,
    profile_text,
)
from codeqa.chat.citations import verify_all
from codeqa.chat.conversations import Conversations, told_answer
from codeqa.chat.features import Features, extract_features, is_greeting
from codeqa.chat.history import Loaded, other_names, prune, touches
from codeqa.chat.hooks import Hooks
from codeqa.chat.model_answer import ModelAnswer
from codeqa.chat.policy import BehaviorPolicy, PolicyDecision
from codeqa.chat.prior import Prior
from codeqa.chat.replying import Replying
from codeqa.chat.retrieving import Looked, Retrieving
from codeqa.chat.steps import Stepped
from codeqa.chat.suggestions import suggest
from codeqa.chat.topic import Thresholds, next_topic, off_topic, thresholds_of
from codeqa.chat.turns import Draft
from codeqa.chat.vectors import QuestionVectors
from codeqa.errors import CodeQAError
from codeqa.extractive.extractive import Extractive
from codeqa.extractive.generator import Asked, Exchange, Generator, closed_after
from codeqa.files import Files
from codeqa.intents import MODEL_BELOW, Classifier, Intent, by_heuristics
from codeqa.llm import Cancelled, Model, never
from codeqa.search import parse_query
from codeqa.settings import Settings
from codeqa.text.citation_format import ShownLines
from codeqa.text.tag import strip_tag
from codeqa.types import Event

NEED_A_MODEL = ("review", "plan", "change")
QUOTED_ONLY = (
    "To review, plan or change something takes a language model: this quotes the code that was "
    "found for it."
)
NOT_SHOWN = "Answered without the language model, for the code that was found shows too little."
NEED_CODE = ("knowledge_base", "continuation")


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a question is to be answered; what is not wished for is left to settings and policy."""

    rerank: bool = False
    hyde: str = ""
    retrieval: str = ""
    """`explicit` or `auto`: whether an untagged question may search; '' for the setting."""
    mode: str = ""
    """The mode that the user chose; '' when the words did."""
    tag_is_default: bool = False
    """The surface put `@codebase` there, not the user: small talk and the like go without it."""
    use_model: bool = True
    strict: bool = False
    pin: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Places (`path:12-34`) that must be, and must not be, in the context."""
    history: tuple[Exchange, ...] | None = None
    """The conversation so far, from a client that keeps it itself."""
    instructions: str = ""
    """What that client asks of its answers."""
    stop: Cancelled = never

    @property
    def repacks(self) -> bool:
        return bool(self.pin or self.exclude)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the pipeline works with."""

    settings: Settings
    files: Files
    classifier: Classifier
    hooks: Hooks
    prior: Prior
    retrieving: Retrieving
    replying: Replying
    vectors: QuestionVectors
    connect: Callable[[], Model | None]
    """The model of the moment, None for none."""
    generator: Generator | None = None
    """Takes the place of all models."""
    policy: BehaviorPolicy = field(default_factory=BehaviorPolicy)

    @property
    def thresholds(self) -> Thresholds:
        return thresholds_of(self.vectors.name)


class Pipeline:
    """Answers one question after the other; nothing of one turn is left for the next."""

    def __init__(self, parts: Parts, conversations: Conversations) -> None:
        self._parts = parts
        self._conversations = conversations

    def run(self, draft: Draft, wishes: Wishes) -> Iterator[Event]:
        """The events of an answer, as `types.Event` lists them.

        The turn is kept however it ends, also before the answer has begun.
        """
        try:
            yield from self._run(draft, wishes)
        except CodeQAError as error:
            draft.fail(error)
            raise
        finally:
            if draft.loaded and not draft.concluded and draft.keep:
                self._conversations.keep(draft, draft.block)

    def _run(self, draft: Draft, wishes: Wishes) -> Iterator[Event]:
        parts, run, follow = self._parts, draft.steps.run, draft.steps.follow
        draft.vector = yield from run("embed", lambda: parts.vectors(draft.text))
        loaded = yield from run("load", lambda: self._load(draft, wishes))
        draft.loaded = True
        intent = yield from run("classify", lambda: self._classify(draft, loaded, wishes))
        away = yield from run("topic", lambda: self._topic(draft, loaded, intent))
        features = yield from run("features", lambda: self._features(draft, loaded, intent, away))
        decision = yield from run("policy", lambda: self._decide(draft, features, intent, wishes))
        yield Event("classified", {**draft.classification(), **draft.reasons()})
        if wishes.stop():
            yield Event("stopped")
            return
        writer = self._writer(draft, decision, wishes)
        history = yield from run("prune", lambda: self._prune(draft, loaded, decision))
        looked = yield from follow(
            "retrieve", self._retrieve(draft, loaded, history, features, decision, writer, wishes)
        )
        if draft.found or draft.similar:
            yield Event("retrieved", draft.retrieval())
        asked = yield from run(
            "before_generation",
            lambda: self._before(draft, loaded, history, looked, features, decision, wishes),
        )
        writer = self._strict(draft, asked, writer)
        yield from self._answer(draft, loaded, asked, writer, wishes.stop)

    # 2 to 6: what the message is, and what is to be done about it.

    def _load(self, draft: Draft, wishes: Wishes) -> Loaded:
        if wishes.history is None:
            loaded = self._conversations.load(draft)
        else:  # of what the client does not tell, only the profile is known
            profile = self._conversations.profile(draft.user)
            loaded = Loaded(wishes.history, profile, 2 * len(wishes.history))
        return loaded

    def _classify(self, draft: Draft, loaded: Loaded, wishes: Wishes) -> Intent:
        if wishes.tag_is_default and draft.tagged:
            intent = by_heuristics(draft.text, has_history=loaded.messages > 0)
            sure = intent.name in ("profile", "privacy") and intent.confidence >= MODEL_BELOW
            # Not all that counts as general: whether a question is about the code is hard to
            # tell, and a search for nothing costs less than none for what was meant.
            if sure or is_greeting(draft.text):
                draft.question = strip_tag(draft.question)
                return intent
        if wishes.repacks or wishes.mode or parse_query(draft.text).pointed:
            # A mode, a place or an `@name` that the user chose is about the code.
            return Intent("knowledge_base", 1.0, "user", "chosen by the user")
        if not draft.tagged and (confirmed_scope(draft.text) or facts_to_forget(draft.text)):
            # What deletes something must never be left to a guess, nor to a model's words.
            return Intent("privacy", 1.0, "heuristics", "the words that delete something")
        return self._parts.classifier.classify(
            draft.text,
            tagged=draft.tagged,
            has_history=loaded.messages > 0,
            user=draft.user,
            use_model=wishes.use_model and self._parts.generator is None,
            cancelled=wishes.stop,
        )

    def _topic(self, draft: Draft, loaded: Loaded, intent: Intent) -> bool:
        draft.topic = next_topic(loaded.topic, draft.vector)
        away = off_topic(intent.name, draft.vector, loaded.topic, self._parts.thresholds)
        return away and not touches(draft.text, loaded.context)

    def _features(self, draft: Draft, loaded: Loaded, intent: Intent, away: bool) -> Features:
        return extract_features(
            draft.text,
            # An `@name` asks for a search as the tag does: what is mentioned is to be there.
            tagged=draft.tagged or bool(parse_query(draft.text).pointed),
            intent=intent,
            off_topic=away,
            profile=loaded.profile,
            messages=loaded.messages,
            has_context=bool(loaded.context.chunks),
        )

    def _decide(
        self, draft: Draft, features: Features, intent: Intent, wishes: Wishes
    ) -> PolicyDecision:
        retrieval = wishes.retrieval or self._parts.settings.retrieval
        decision = self._parts.policy.resolve(features, intent, retrieval=retrieval)
        decision, problems = self._parts.hooks.run_policy_override(
            decision, features, intent, draft.text
        )
        draft.hook_problems += problems
        draft.decision, draft.intent = decision, decision.intent
        draft.confidence, draft.source, draft.reason = (
            intent.confidence,
            intent.source,
            intent.reason,
        )
        if decision.save_profile and draft.keep:
            draft.facts = detect_facts(draft.text)
        return decision

    def _writer(self, draft: Draft, decision: PolicyDecision, wishes: Wishes) -> Generator:
        """What writes the answer. Raises SettingsError for a model that cannot be asked."""
        parts = self._parts
        writer: Generator = Extractive()
        if decision.reply != "privacy":  # that is told by the app, whatever model there is
            model = parts.connect() if wishes.use_model and parts.generator is None else None
            if model:
                writer = ModelAnswer(model, parts.settings.config_dir)
            writer = parts.generator or writer
        if isinstance(writer, Extractive) and decision.reply:
            draft.reply = decision.reply
            writer = parts.replying.writer(draft, self._conversations)
        elif isinstance(writer, Extractive) and draft.mode in NEED_A_MODEL:
            draft.notices.append(QUOTED_ONLY)
        draft.generator = writer.name
        return writer

    # 7 to 9: what the answer may draw on.

    def _prune(
        self, draft: Draft, loaded: Loaded, decision: PolicyDecision
    ) -> tuple[Exchange, ...]:
        if not decision.use_curated_history:
            return ()
        parts = self._parts
        return prune(loaded.history, draft.vector, parts.vectors, parts.thresholds.similar)

    def _retrieve(
        self,
        draft: Draft,
        loaded: Loaded,
        history: Sequence[Exchange],
        features: Features,
        decision: PolicyDecision,
        writer: Generator,
        wishes: Wishes,
    ) -> Stepped[Looked]:
        looked = yield from self._parts.retrieving.look(
            draft, loaded, features, decision, wishes, writer.needs_evidence or wishes.strict
        )
        similar = self._similar(draft, loaded, history, decision)
        looked, problems = self._parts.retrieving.hooked(
            draft.text, replace(looked, similar=similar)
        )
        draft.hook_problems += problems
        draft.block, draft.similar = looked.block, len(looked.similar)
        return looked

    def _similar(
        self, draft: Draft, loaded: Loaded, history: Sequence[Exchange], decision: PolicyDecision
    ) -> tuple[Exchange, ...]:
        """Past questions like this one: of this conversation and of others (S3.18, S3.19)."""
        if draft.vector is None or not draft.keep:
            return ()
        parts = self._parts
        found: list[Exchange] = []
        wanted = ((True, decision.inject_qa_history), (False, decision.inject_rag))
        for same in (same for same, wished in wanted if wished):
            similar = parts.prior.similar(
                draft.vector,
                user=draft.user,
                repository=draft.repository,
                conversation=draft.conversation,
                embedding=parts.vectors.name,
                threshold=parts.thresholds.similar,
                same=same,
                skip={draft.replaces, *(exchange.turn for exchange in history)},
            )
            # Of this conversation nothing that comes after the point where it is taken up.
            later = same and draft.branches
            found += [one for one in similar if not later or one.turn in loaded.path]
        return tuple(one for one in found if not other_names(draft.text, one.question))

    def _before(
        self,
        draft: Draft,
        loaded: Loaded,
        history: tuple[Exchange, ...],
        looked: Looked,
        features: Features,
        decision: PolicyDecision,
        wishes: Wishes,
    ) -> Asked:
        known = {**loaded.profile, **draft.facts} if decision.inject_profile else {}
        if decision.intent in NEED_CODE and not features.references_profile:
            known = preferences(known)
        asked = Asked(
            question=draft.text,
            mode=draft.mode,
            block=looked.block,
            searched=looked.searched,
            intent=decision.intent,
            history=history,
            similar=looked.similar,
            profile=profile_text(known),
            suggest=decision.suggest_codebase,
            instructions=wishes.instructions,
            strict=wishes.strict,
            evidence=looked.evidence,
            cancelled=wishes.stop,
        )
        asked, problems = self._parts.hooks.run_before_generation(asked)
        draft.hook_problems += problems
        draft.block = asked.block
        return asked

    def _strict(self, draft: Draft, asked: Asked, writer: Generator) -> Generator:
        """In strict mode nothing is written about code that was not found."""
        weak = asked.evidence is None or (asked.evidence.weak and not asked.evidence.cached)
        if not (asked.strict and weak and asked.intent in NEED_CODE) or draft.reply:
            return writer
        if not writer.needs_evidence:
            draft.notices.append(NOT_SHOWN)
        draft.generator = Extractive.name
        return Extractive()

    # 10 to 12: the answer, and what is kept of it.

    def _answer(
        self, draft: Draft, loaded: Loaded, asked: Asked, writer: Generator, stop: Cancelled
    ) -> Iterator[Event]:
        """Generate, piece by piece; the turn is kept however this ends."""
        started = time.perf_counter()
        ends: list[Event] = []
        saving = None
        try:
            if not stop():
                yield Event("generating")
                with closed_after(writer.generate(asked)) as pieces:
                    for piece in pieces:
                        if stop():
                            break
                        if text := draft.take(piece):
                            yield Event("token", {"text": text})
            draft.finished = not stop()
        except CodeQAError as error:
            draft.fail(error)
        finally:
            ends.append(draft.steps.note("generate", started))
            ends += self._after(draft, asked)
            started = time.perf_counter()
            draft.concluded = True
            draft.keep = draft.keep and not self._conversations.is_worse(draft)
            saving = self._conversations.keep(draft, asked.block) if draft.keep else None
            ends.append(draft.steps.note("persist", started))
        yield from ends
        if saving and (problem := saving.heard()):
            draft.notices.append(f"This answer could not be kept. {problem}")
        if draft.error:
            yield Event("error", {**draft.error, "turn": draft.id if draft.keep else ""})
        elif not draft.finished:
            yield Event("stopped", {"turn": draft.id} if draft.keep else {})
        else:
            yield Event("done", self._done(draft, loaded, asked))

    def _after(self, draft: Draft, asked: Asked) -> list[Event]:
        started = time.perf_counter()
        answer = "".join(draft.answer)
        if draft.finished and not draft.reply:
            revised, problems = self._parts.hooks.run_after_generation(answer, asked)
            draft.revised = revised if revised != answer else ""
            draft.hook_problems += problems
        with suppress(CodeQAError):  # the index may be gone by now
            shown = asked.evidence.spans() if asked.evidence else []
            chunks = (ShownLines(c.path, c.start_line, c.end_line) for c in draft.block.chunks)
            spans = [*shown, *chunks]
            answer = draft.text_of_answer
            draft.citations = verify_all(answer, spans, self._parts.files.line_count)
            if draft.finished and asked.intent in NEED_CODE:
                found = draft.block.chunks
                units = self._parts.retrieving.open_tables().by_ids([c.unit_id for c in found])
                draft.suggestions = suggest(draft.text, found, answer, units)
        return [draft.steps.note("after_generation", started)]

    def _done(self, draft: Draft, loaded: Loaded, asked: Asked) -> dict[str, Any]:
        """Data of the `done` event."""
        exchange = Exchange(draft.text, told_answer(draft.text_of_answer, draft.generator))
        history = loaded.history if draft.reply == "privacy" else (*loaded.history, exchange)
        block = draft.block if asked.searched else loaded.context
        return {
            **draft.told(),
            "query_tags": ["codebase"] if draft.tagged else [],
            "turn": draft.id if draft.keep else "",
            "carries": self._conversations.weight(block, history),
            "revised": draft.revised,
            "profile": dict(draft.facts),
        }
