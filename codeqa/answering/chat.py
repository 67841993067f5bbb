"""A question to an answer, as a stream of events (S3.27 to S3.32)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from codeqa.answering.citations import Span, verify_all
from codeqa.answering.conversations import USER, Conversations
from codeqa.answering.evidence import Evidence, build_context, gather_evidence
from codeqa.answering.extractive import Extractive
from codeqa.answering.generator import Asked, Generator, closed_after
from codeqa.answering.mode import read_mode
from codeqa.answering.model_answer import ModelAnswer
from codeqa.answering.trace import Told, told
from codeqa.answering.turns import Draft
from codeqa.cache import Cache
from codeqa.errors import CodeQAError, UsageError
from codeqa.llm import Cancelled, Model, never
from codeqa.parsing.secrets import mask_secrets
from codeqa.retrieval import parse_hyde, parse_query
from codeqa.search import Search
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Tables
from codeqa.tag import strip_tag
from codeqa.tokens import well_formed
from codeqa.types import ContextBlock, Event

TAGGED = 1.0
"""Confidence of the intent when `@codebase` decides it."""
UNTAGGED = 0.5
"""And when only the presence of an earlier context does."""

NEED_A_MODEL = ("review", "plan", "change")
QUOTED_ONLY = (
    "To review, plan or change something takes a language model: this quotes the code that was "
    "found for it."
)


class Chat(Conversations):
    """Answers questions about one repository, and keeps the conversations about it.

    `connect` gives the model of the moment, None for none; a `generator` that is given takes
    the place of all models. `line_count` gives the lines of an indexed file as it is now, None
    when there is none; `repository` is the id under which conversations are kept.
    """

    def __init__(
        self,
        search: Search,
        open_tables: Callable[[], Tables],
        state: State,
        cache: Cache,
        settings: Settings,
        *,
        repository: str,
        line_count: Callable[[str], int | None],
        connect: Callable[[], Model | None],
        generator: Generator | None = None,
    ) -> None:
        super().__init__(state, cache, settings, repository)
        self._search = search
        self._open_tables = open_tables
        self._line_count = line_count
        self._connect = connect
        self._generator = generator

    def ask(
        self,
        question: str,
        *,
        rerank: bool = False,
        hyde: str = "",
        conversation: str = "",
        user: str = USER,
        mode: str = "",
        replaces: str = "",
        use_model: bool = True,
        cancelled: Cancelled | None = None,
    ) -> Iterator[Event]:
        """Yield the events of an answer: `classified`, `drafting` and `drafted` for each draft
        that is searched by, `retrieved` when something was, `generating`, `token`…, `done`; or
        `error`, or `stopped` once `cancelled()` is true.

        A question with `@codebase` is searched for; without it the context that the
        conversation already has is used. `mode` is one of `mode.MODES`, '' leaves it to the
        question; `hyde` is how many drafts there are to be, '' leaves it to the setting, and
        without a model there are none; `replaces` is the turn that this one takes the place of.
        What was answered so far is kept as a turn even when the model fails, or the caller stops
        or goes away.
        """
        asked, _ = mask_secrets(well_formed(question))
        try:
            mode, text = read_mode(strip_tag(asked), mode)
            drafts = self._drafts_wished(hyde, use_model)
            if not text:
                raise UsageError("The question is empty.", "Type a question.")
            conversation = well_formed(conversation)
            draft = Draft(
                question=asked,
                text=text,
                mode=mode,
                user=user,
                conversation=conversation,
                repository=self._repository,
                replaces=well_formed(replaces),
                continues=self._created(conversation, user),
            )
            self._drafts[draft.id] = draft
            try:
                yield from self._turn(draft, rerank, drafts, use_model, cancelled or never)
            finally:
                del self._drafts[draft.id]
        except CodeQAError as error:
            yield Event("error", error.as_data())

    def _turn(
        self, draft: Draft, rerank: bool, hyde: str, use_model: bool, stop: Cancelled
    ) -> Iterator[Event]:
        generator = self._writer(use_model)
        draft.generator = generator.name
        if generator.name == Extractive.name and draft.mode in NEED_A_MODEL:
            draft.notices.append(QUOTED_ONLY)
        if draft.tagged:
            draft.intent, draft.confidence = "knowledge_base", TAGGED
            yield Event("classified", draft.classification())
            if stop():
                yield Event("stopped")
                return
            evidence = yield from self._look_up(draft, rerank, hyde, generator.needs_evidence, stop)
            if draft.block.chunks:
                yield Event("retrieved", draft.retrieval())
        else:
            evidence = self._recall(draft, generator.needs_evidence)
            draft.intent = "continuation" if draft.block.chunks else "general"
            draft.confidence = UNTAGGED
            yield Event("classified", draft.classification())
        asked = Asked(
            question=draft.text,
            mode=draft.mode,
            block=draft.block,
            searched=draft.tagged,
            history=self._history(draft.conversation, draft.user, before=draft.replaces),
            evidence=evidence,
            cancelled=stop,
        )
        yield from self._answer(draft, asked, generator, stop)

    def _writer(self, use_model: bool) -> Generator:
        """What writes the answer: the generator that was given, the model of the moment, or none.

        Raises SettingsError when a model is chosen that cannot be asked.
        """
        if self._generator is not None:
            return self._generator
        model = self._connect() if use_model else None
        return ModelAnswer(model, self._settings.config_dir) if model else Extractive()

    def _drafts_wished(self, hyde: str, use_model: bool) -> str:
        """`hyde`, and `off` for a turn that is to ask no model. Raises UsageError."""
        parse_hyde(hyde, self._settings.hyde)
        return hyde if use_model and self._generator is None else "off"

    def _look_up(
        self, draft: Draft, rerank: bool, hyde: str, needs_evidence: bool, stop: Cancelled
    ) -> Told[Evidence | None]:
        """Search for the question, pack what is found, and keep it for follow-ups; yields what
        is drafted meanwhile."""
        tables = self._open_tables()
        steps = self._search.steps(draft.text, rerank=rerank, hyde=hyde, cancelled=stop)
        result = yield from told(steps)
        draft.note(result)
        draft.block = build_context(tables, result, self._settings)
        draft.found = len(draft.block.chunks)
        self._memory.keep(draft.user, draft.conversation, draft.block)
        return gather_evidence(tables, result) if needs_evidence else None

    def _recall(self, draft: Draft, needs_evidence: bool) -> Evidence | None:
        """Take what was found for an earlier question of the conversation."""
        draft.block = self._memory.recall(draft.user, draft.conversation)
        if not needs_evidence:
            return None
        return Evidence(draft.text, parse_query(draft.text), cached=draft.block.chunks)

    def _answer(
        self, draft: Draft, asked: Asked, generator: Generator, stop: Cancelled
    ) -> Iterator[Event]:
        """Generate, piece by piece; the turn is kept however this ends."""
        kept = False
        try:
            if not stop():
                yield Event("generating")
                with closed_after(generator.generate(asked)) as pieces:
                    for piece in pieces:
                        if stop():
                            break
                        if text := draft.take(piece):
                            yield Event("token", {"text": text})
            draft.finished = not stop()
        except CodeQAError as error:
            draft.fail(error)
        finally:
            with suppress(CodeQAError):  # the index may be gone by now
                spans = _spans(draft, asked)
                draft.citations = verify_all("".join(draft.answer), spans, self._line_count)
            kept = self._keep(draft)
        if draft.error:
            yield Event("error", {**draft.error, "turn": draft.id})
        elif not draft.finished:
            yield Event("stopped", {"turn": draft.id})
        else:
            if kept and draft.block is not asked.block:  # this much is what the model can read
                self._memory.keep(draft.user, draft.conversation, draft.block)
            yield Event("done", self._done(draft))

    def _done(self, draft: Draft) -> dict[str, Any]:
        """Data of the `done` event."""
        tags = ["codebase"] if draft.tagged else []
        carries = self.carries(draft.conversation, draft.user)
        return {**draft.told(), "query_tags": tags, "turn": draft.id, "carries": carries}

    def build_context(self, question: str, rerank: bool = False) -> ContextBlock:
        """The context block of `question`, nothing cached and nothing answered.

        Drafts of the answer are searched by as the setting says, where there is a model.
        """
        result = self._search.search(question, rerank=rerank, hyde="")
        return build_context(self._open_tables(), result, self._settings)


def _spans(draft: Draft, asked: Asked) -> list[Span]:
    """Every line that the answer may cite: what was sent, or what the evidence holds."""
    shown = asked.evidence.spans() if asked.evidence else []
    return [*shown, *(Span(c.path, c.start_line, c.end_line) for c in draft.block.chunks)]
