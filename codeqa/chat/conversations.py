"""What was asked and answered before: conversations, their turns, and what those carry along."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from codeqa.chat.citations import files_in, files_shown, find_citations
from codeqa.chat.events import as_json
from codeqa.chat.record import TurnRecord, read_values
from codeqa.chat.stored import as_turn, read_turn_record
from codeqa.chat.stream import Stream
from codeqa.chat.values import ConversationSoFar, Question
from codeqa.chat.vectors import QuestionVectors, write_vector
from codeqa.context.block import NO_CONTEXT, ContextBlock
from codeqa.errors import NotFoundError, StorageError, places_of
from codeqa.repository.secrets import mask_secrets
from codeqa.routing.mode import read_mode
from codeqa.state import State
from codeqa.state.cache import Cache, context_key
from codeqa.state.database import GoneError
from codeqa.state.records import LOCAL_USER, Conversation, ConversationMatch, Turn, TurnExtras
from codeqa.types import EXTRACTIVE, Chunk, Exchange

HISTORY_MESSAGES = 20
"""Latest messages, questions and answers alike, that are loaded."""
LOOKED_BACK = HISTORY_MESSAGES // 2 + 2
"""Latest turns that are read for the history: those without an answer do not count."""

FLUSH_SECONDS = 25.0
"""Longest wait for what is being kept, to read it or to say so: the state itself waits up to twenty
for a lock."""

CONTEXT_SECONDS = 24 * 3600.0
"""Lifetime of a cached context: a working day and the night after it."""
QUOTED = "(Answered without a language model, by quoting the code.)"
"""Stands in the history for a quoted answer: that is text of files, which has no place among
what the model itself is supposed to have said."""

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Conversations:
    """The conversations of each user about one repository, whose id is `repository`; or about all,
    of which `asked` are those that the user may see now and `hidden` those that they may not, each
    by the end of its id. What was asked of a hidden one is out of reach as long as it is."""

    state: State
    cache: Cache
    repository: str
    vectors: QuestionVectors
    asked: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._saving = ThreadPoolExecutor(1, thread_name_prefix="saving")
        """Saves behind the answers, in their order; a process that ends waits for it."""

    def flush(self) -> None:
        """Wait until everything that was answered is kept, or FLUSH_SECONDS are over."""
        wait([self._saving.submit(int)], FLUSH_SECONDS)

    @property
    def _kept(self) -> State:
        """The state, once all that was answered is there."""
        self.flush()
        return self.state

    # What is kept.

    def all(self, user: str = LOCAL_USER) -> list[Conversation]:
        """Conversations of `user`, the latest first."""
        found = self._kept.conversations.latest(self.repository, user)
        return [one for one in found if self._reaches(one.id, user)]

    def find(self, text: str, user: str = LOCAL_USER) -> list[ConversationMatch]:
        """Conversations of `user` whose title, questions or answers hold `text`, and where."""
        found = self._kept.conversations.find(text, self.repository, user)
        return [one for one in found if self._reaches(one.conversation.id, user)]

    def get(self, conversation: str, user: str = LOCAL_USER) -> Conversation:
        """One conversation of `user`. Raises NotFoundError."""
        found = self._kept.conversations.get(conversation, user, self.repository)
        if found and self._reaches(conversation, user):
            return found
        raise NotFoundError("There is no such conversation.", "It may have been deleted.")

    def turns(self, conversation: str, user: str = LOCAL_USER) -> list[TurnRecord]:
        """Turns of a conversation, oldest first; none when there is no such conversation.

        Of a question that was asked again only the branch that is in use.
        """
        self.flush()
        return self._read(conversation, user)

    def other_turns(self, conversation: str, user: str = LOCAL_USER) -> list[TurnRecord]:
        """Turns of a conversation that are not on the branch in use, oldest first."""
        found = self._kept.turns.inactive(conversation, user, self.repository)
        return [read_turn_record(turn) for turn in filter(self.shows, found)]

    def branches(self, conversation: str, user: str = LOCAL_USER) -> dict[str, tuple[str, ...]]:
        """Id of each turn of the branch in use → itself and what was asked instead of it, the
        oldest first."""
        return self._kept.turns.branches(conversation, user, self.repository)

    def turn(self, turn_id: str, user: str = LOCAL_USER) -> TurnRecord:
        """One turn of `user`. Raises NotFoundError."""
        found = self._kept.turns.get(turn_id, user)
        here = found is not None and found.repository in ("", self.repository)
        if found is None or not here or not self.shows(found):
            raise NotFoundError("There is no such answer.", "It may be too old: ask again.")
        return read_turn_record(found)

    def thumbs(self, conversation: str, user: str = LOCAL_USER) -> dict[str, tuple[int, str]]:
        """Id of each turn of a conversation that has a thumb → its value and reason."""
        return self._kept.feedback.of_conversation(conversation, user, self.repository)

    # What is done to it.

    def choose_branch(self, conversation: str, turn_id: str, user: str = LOCAL_USER) -> None:
        """Go on from `turn_id` and what followed it; a follow-up has the context it had there.

        Raises NotFoundError.
        """
        self._kept.turns.choose_branch(conversation, turn_id, user, self.repository)

    def rename(self, conversation: str, title: str, user: str = LOCAL_USER, was: str = "") -> None:
        """Give it another title, with `was` only in place of that. Raises NotFoundError."""
        self._kept.conversations.rename(conversation, title, user, self.repository, was)

    def delete(self, conversation: str, user: str = LOCAL_USER) -> None:
        """Delete a conversation with its turns and its cached context; what is being answered in
        it is not kept.

        Raises NotFoundError.
        """
        self.get(conversation, user)
        self.state.conversations.delete(conversation, user, self.repository)
        self.cache.delete(context_key(user, conversation))

    def rate(self, turn_id: str, value: int, reason: str = "", user: str = LOCAL_USER) -> str:
        """Give a turn a thumb: 1, -1, or 0 to take it back. Returns the reason as it is kept.

        Raises NotFoundError when `user` has no such turn here.
        """
        turn = self.turn(turn_id, user)
        kept = mask_secrets(reason.strip()) if value else ""
        sent = [(c.path, c.start_line, c.end_line) for c in turn.chunks]
        self.state.feedback.save(turn.id, user, value, kept, sent=sent)
        return kept

    # What a follow-up goes on from.

    def has_context(self, conversation: str, user: str = LOCAL_USER) -> bool:
        """Whether a follow-up without `@codebase` has code to go on from."""
        self.flush()
        turns = self._read(conversation, user, LOOKED_BACK)
        return bool(self._context(turns, conversation, user).chunks)

    def load(self, question: Question) -> ConversationSoFar:
        """The conversation so far as `question` continues it, and what its user told of themselves.

        Raises StorageError, and NotFoundError for a turn to follow that is not there.
        """
        options = question.options
        profile = self.state.profile.facts(options.user)
        if (history := options.history) is not None:
            # Of what the client does not tell, only the profile. What the answers cite was shown by
            # what is kept elsewhere.
            files = partial(files_in, "\n".join(one.answer for one in history))
            cites, length = any(find_citations(one.answer) for one in history), 2 * len(history)
            return ConversationSoFar(history, profile, length, shown=files, cites_code=cites)
        self.flush()  # a follow-up may come before the answer to it is kept
        found = self.state.turns.get(options.replaces, options.user)
        place = found and (found.repository, found.conversation)
        here = place == (self.repository, options.conversation)
        replaced = read_turn_record(found) if found and here and self.shows(found) else None
        leaf, before = replaced.parent if replaced else options.after, list[TurnRecord]()

        def shown() -> Iterator[str]:
            for turn in self._read(options.conversation, options.user, leaf=leaf) if before else ():
                yield from files_shown(turn)

        if leaf or not replaced:  # the latest turns of the branch that is continued
            before = self._read(options.conversation, options.user, LOOKED_BACK, leaf)
        if leaf and not before:
            raise NotFoundError(
                "The answer that this question follows is gone.", "It may have been deleted."
            )
        return ConversationSoFar(
            history=exchanges_of(before)[-HISTORY_MESSAGES // 2 :],
            profile=profile,
            messages=2 * len(before),
            context=self._context(before, options.conversation, options.user),
            context_lost=bool(not options.conversation and self.cache.problem),
            shown=shown,
            names=next(filter(None, (one.found_names for one in reversed(before))), ()),
            path=tuple(record.id for record in before),
            # The conversation may go on elsewhere while this is answered.
            parent=options.after or (before[-1].id if before else ""),
            replaced=replaced,
        )

    # Turns in the making.

    def keep(self, turn: Stream) -> Future[str]:
        """Keep the turn as it is now, behind the answer, or take it back where it is no longer to
        be kept; gives what stood in the way as sentences, '' for nothing.

        The code that it was answered from becomes the conversation's context. Nothing is kept
        when its conversation was deleted meanwhile.
        """
        options, ended, kept = turn.question.options, turn.concluded, turn.keep
        user, conversation = options.user, options.conversation
        record = replace(turn.record(), asked=self.asked)
        row = as_turn(record, user, self.repository, conversation)
        extras = TurnExtras(begun=turn.begun)
        if ended:
            routed = turn.routed
            vector = write_vector(routed.vector) if routed and routed.vector is not None else None
            facts = dict(routed.facts) if routed else {}
            extras = TurnExtras(self.vectors.name, vector, facts, turn.begun)

        def save(last: bool = False) -> str:
            try:
                if turn.concluded and not ended:
                    return ""  # what is kept next says more
                if not kept:
                    self.state.turns.take_back(row, options.replaces)
                    return ""
                saved = self.state.turns.save(row, options.replaces, extras, again=turn.stored)
                turn.stored |= saved
            except StorageError as error:
                if isinstance(error, GoneError) and not last:  # in the middle, so begin once more
                    return save(last=True)
                log.warning("an answer could not be kept: %s", error)
                return str(error)
            except Exception as error:  # a future that nobody asks keeps it to itself
                log.error("an answer could not be kept: %s", places_of(error))
                return "The log says why."
            if not saved:
                self.cache.delete(context_key(user, conversation))
            elif ended and (record.chunks or record.searches):
                self._cache_context(user, conversation, record)
            return ""

        return self._saving.submit(save)

    def keep_text(self, turn: Stream) -> Future[str]:
        """Keep what was answered so far of a turn that is kept but for that: the code that it is
        answered from is many times as long."""
        answer, user = turn.answer, turn.question.options.user

        def save() -> str:
            if not turn.concluded:
                with suppress(StorageError):  # its end says so
                    self.state.turns.go_on(turn.id, answer, user)
            return ""

        return self._saving.submit(save)

    def _context(self, turns: Sequence[TurnRecord], conversation: str, user: str) -> ContextBlock:
        """Return the code that a follow-up of `turns` goes on from: that of the latest turn that
        was answered from any, or searched for it in vain, as the cache has it; where the cache has
        another turn's or none, as the turn itself keeps it. A client that names no conversation has
        no turns, but what is cached."""
        latest = next((t for t in reversed(turns) if t.chunks or (t.searches and t.finished)), None)
        if conversation and latest is None:
            return NO_CONTEXT
        turn, block = self.cached_context(user, conversation)
        if latest is None or turn == latest.id:
            return block
        self._cache_context(user, conversation, latest)
        return latest.block

    def _cache_context(self, user: str, conversation: str, record: TurnRecord) -> None:
        """Make the code of `record` the context of the conversation, in place of what it had."""
        value = {
            "repository": self.repository,
            "asked": self.asked,
            "turn": record.id,
            "chunks": as_json(record.chunks),
        }
        try:
            self.cache.set(context_key(user, conversation), json.dumps(value), CONTEXT_SECONDS)
        except StorageError as error:
            log.warning("a context could not be cached: %s", error)

    def cached_context(self, user: str, conversation: str = "") -> tuple[str, ContextBlock]:
        """Return the id of the turn whose code is cached, and that code: both empty when it was
        lost, or is another repository's."""
        try:
            value = self.cache.get(context_key(user, conversation))
            stored = json.loads(value) if value else {}
            here = stored.get("repository") == self.repository
            if here and self.hidden.isdisjoint(stored.get("asked", ())):
                block = ContextBlock(tuple(read_values(Chunk, stored.get("chunks", ()))))
                if block.text or not block.chunks:  # it cannot be written where lines do not add up
                    return str(stored.get("turn", "")), block
        # Whatever may stand there instead, deep JSON too: losing it costs a follow-up its code.
        except (StorageError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            log.warning("a cached context could not be read: %s", type(error).__name__)
        return "", NO_CONTEXT

    def _read(
        self, conversation: str, user: str, last: int | None = None, leaf: str = ""
    ) -> list[TurnRecord]:
        if not conversation:
            return []
        found = self.state.turns.active(conversation, user, self.repository, last, until=leaf)
        return [read_turn_record(turn) for turn in filter(self.shows, found)]

    def shows(self, turn: Turn) -> bool:
        """Whether a turn of this user was asked of nothing that is hidden from them now."""
        return self.hidden.isdisjoint(turn.details.get("asked", ()))

    def _reaches(self, conversation: str, user: str) -> bool:
        """Whether all turns of it are shown."""
        if not self.hidden:
            return True
        group, turns = (conversation, user, self.repository), self.state.turns
        return all(map(self.shows, (*turns.active(*group), *turns.inactive(*group))))


def exchanges_of(turns: Sequence[TurnRecord]) -> tuple[Exchange, ...]:
    """The answered questions of `turns`, as a model may see them.

    The app's own account of what is stored stays out: it is for its reader alone.
    """
    return tuple(
        Exchange(
            read_mode(one.question)[1],
            QUOTED if one.generator == EXTRACTIVE else one.answer,
            one.id,
        )
        for one in turns
        if one.answer and one.reply != "privacy"
    )
