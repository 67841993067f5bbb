"""Stored conversations and their turns, and what a new question takes from them."""

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
from codeqa.chat.values import AskOptions, ConversationSoFar, Question
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
"""Latest messages that are loaded: questions and answers."""
LOOKED_BACK = HISTORY_MESSAGES // 2 + 2
"""Latest turns that are read for the history; some have no answer and do not count."""

FLUSH_SECONDS = 25.0
"""Longest wait until turns are saved; the database itself waits up to 20 seconds for a lock."""

CONTEXT_SECONDS = 24 * 3600.0
"""Lifetime of a cached context block: a working day and the night after it."""
QUOTED = "(Answered without a language model, by quoting the code.)"
"""Replaces a quoted answer in the history: it is text of files, which a model must not take for its
own words."""

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Conversations:
    """The conversations of all users about one repository, or about all repositories.

    `repository` is its id. For conversations about all repositories, `visible` are the ends of
    the ids that the user may see now, and `hidden` those that they may not: turns about those stay
    hidden too.
    """

    state: State
    cache: Cache
    repository: str
    vectors: QuestionVectors
    visible: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._saving = ThreadPoolExecutor(1, thread_name_prefix="saving")
        """Saves turns in the background, in order; a process waits for it before it ends."""

    def flush(self) -> None:
        """Wait until all turns are saved, but no longer than FLUSH_SECONDS."""
        wait([self._saving.submit(int)], FLUSH_SECONDS)

    @property
    def _saved_state(self) -> State:
        """The database, after all turns have been saved."""
        self.flush()
        return self.state

    # Reading.

    def all(self, user: str = LOCAL_USER) -> list[Conversation]:
        """Return the conversations of `user`, pinned ones and the latest first."""
        latest = self._saved_state.conversations.latest(self.repository, user)
        return [conversation for conversation in latest if self._may_show(conversation.id, user)]

    def find(self, text: str, user: str = LOCAL_USER) -> list[ConversationMatch]:
        """Return the conversations of `user` whose title or texts contain `text`, and where."""
        matches = self._saved_state.conversations.find(text, self.repository, user)
        return [match for match in matches if self._may_show(match.conversation.id, user)]

    def get(self, conversation: str, user: str = LOCAL_USER) -> Conversation:
        """Return one conversation of `user`. Raises NotFoundError."""
        stored = self._saved_state.conversations.get(conversation, user, self.repository)
        if stored and self._may_show(conversation, user):
            return stored
        raise NotFoundError("This conversation does not exist.", "It may have been deleted.")

    def turns(self, conversation: str, user: str = LOCAL_USER) -> list[TurnRecord]:
        """Return the turns of a conversation on its active branch, oldest first.

        There are none if the conversation does not exist.
        """
        self.flush()
        return self._read(conversation, user)

    def other_turns(self, conversation: str, user: str = LOCAL_USER) -> list[TurnRecord]:
        """Return the turns of a conversation on its other branches, oldest first."""
        turns = self._saved_state.turns.inactive(conversation, user, self.repository)
        return [read_turn_record(turn) for turn in filter(self.shows, turns)]

    def branches(self, conversation: str, user: str = LOCAL_USER) -> dict[str, tuple[str, ...]]:
        """Return the ids of all versions of each turn on the active branch, the oldest first."""
        return self._saved_state.turns.branches(conversation, user, self.repository)

    def turn(self, turn_id: str, user: str = LOCAL_USER) -> TurnRecord:
        """Return one turn of `user`. Raises NotFoundError."""
        turn = self._saved_state.turns.get(turn_id, user)
        if turn and turn.repository in ("", self.repository) and self.shows(turn):
            return read_turn_record(turn)
        raise NotFoundError("This answer does not exist.", "It may have been deleted: ask again.")

    def thumbs(self, conversation: str, user: str = LOCAL_USER) -> dict[str, tuple[int, str]]:
        """Return the value and reason of each thumb in a conversation, by the id of its turn."""
        return self._saved_state.feedback.of_conversation(conversation, user, self.repository)

    # Changing.

    def choose_branch(self, conversation: str, turn_id: str, user: str = LOCAL_USER) -> None:
        """Make the branch of `turn_id` the active one. Raises NotFoundError."""
        self._saved_state.turns.choose_branch(conversation, turn_id, user, self.repository)

    def rename(self, conversation: str, title: str, user: str = LOCAL_USER, was: str = "") -> None:
        """Give a conversation another title; with `was`, only if that is its title.

        Raises NotFoundError.
        """
        self._saved_state.conversations.rename(conversation, title, user, self.repository, was)

    def pin(self, conversation: str, pinned: bool, user: str = LOCAL_USER) -> None:
        """List a conversation before those that are not pinned, or no longer."""
        self._saved_state.conversations.pin(conversation, pinned, user, self.repository)

    def second_question(self, conversation: str, user: str = LOCAL_USER) -> str:
        """Return the second question of a conversation, '' if it has one or none."""
        conversations = self._saved_state.conversations
        return conversations.second_question(conversation, user, self.repository)

    def delete(self, conversation: str, user: str = LOCAL_USER) -> None:
        """Delete a conversation with its turns and its cached context. Raises NotFoundError.

        A running answer in it will not be stored.
        """
        self.get(conversation, user)
        self.state.conversations.delete(conversation, user, self.repository)
        self.cache.delete(context_key(user, conversation))

    def rate(self, turn_id: str, value: int, reason: str = "", user: str = LOCAL_USER) -> str:
        """Give a turn a thumb (1, -1, or 0 to remove it), and return the reason as it is stored.

        Raises NotFoundError.
        """
        turn = self.turn(turn_id, user)
        masked_reason = mask_secrets(reason.strip()) if value else ""
        spans = [(chunk.path, chunk.start_line, chunk.end_line) for chunk in turn.chunks]
        self.state.feedback.save(turn.id, user, value, masked_reason, sent=spans)
        return masked_reason

    # Continuing.

    def has_context(self, conversation: str, user: str = LOCAL_USER) -> bool:
        """Return whether a follow-up without `@codebase` has code to go on from."""
        self.flush()
        turns = self._read(conversation, user, LOOKED_BACK)
        return bool(self._context(turns, conversation, user).chunks)

    def load(self, question: Question) -> ConversationSoFar:
        """Return the conversation so far, as `question` continues it, and the user's profile.

        Raises StorageError, and NotFoundError if the turn to continue from does not exist.
        """
        options = question.options
        profile = self.state.profile.facts(options.user)
        history = options.history
        if history is not None:  # the client keeps the conversation
            answers = [exchange.answer for exchange in history]
            return ConversationSoFar(
                history,
                profile,
                messages=2 * len(history),
                shown_files=partial(
                    files_in, "\n".join(answers)
                ),  # the client has seen what they cite
                cites_code=any(map(find_citations, answers)),
            )
        self.flush()  # a follow-up may come before the answer to it is saved
        replaced = self._replaced_turn(options)
        leaf, earlier = replaced.parent if replaced else options.after, list[TurnRecord]()

        def shown_files() -> Iterator[str]:
            if earlier:
                for turn in self._read(options.conversation, options.user, leaf=leaf):
                    yield from files_shown(turn)

        if leaf or not replaced:  # the latest turns of the branch that is continued
            earlier = self._read(options.conversation, options.user, LOOKED_BACK, leaf)
        if leaf and not earlier:
            raise NotFoundError(
                "The answer that this question follows is gone.", "It may have been deleted."
            )
        return ConversationSoFar(
            history=exchanges_of(earlier)[-HISTORY_MESSAGES // 2 :],
            profile=profile,
            messages=2 * len(earlier),
            context=self._context(earlier, options.conversation, options.user),
            context_lost=bool(not options.conversation and self.cache.problem),
            shown_files=shown_files,
            names=next(filter(None, (turn.found_names for turn in reversed(earlier))), ()),
            path=tuple(turn.id for turn in earlier),
            # The conversation may go on elsewhere while this is answered.
            parent=options.after or (earlier[-1].id if earlier else ""),
            replaced=replaced,
        )

    def _replaced_turn(self, options: AskOptions) -> TurnRecord | None:
        """Return the turn of this conversation that the new one is another version of."""
        turn = self.state.turns.get(options.replaces, options.user)
        if turn is None or not self.shows(turn):
            return None
        is_here = (turn.repository, turn.conversation) == (self.repository, options.conversation)
        return read_turn_record(turn) if is_here else None

    # Saving.

    def keep(self, stream: Stream) -> Future[str]:
        """Save the turn as it is now in the background, or delete it if it must not be stored.

        The future gives a sentence on what went wrong, or ''. The code of a complete turn becomes
        the context of its conversation. Nothing is saved if the conversation has been deleted.
        """
        options, is_complete, keep = stream.question.options, stream.concluded, stream.keep
        user, conversation = options.user, options.conversation
        record = replace(stream.record(), asked=self.visible)
        row = as_turn(record, user, self.repository, conversation)
        extras = TurnExtras(begun=stream.begun)
        routed = stream.routed
        if is_complete and routed:
            vector = None if routed.vector is None else write_vector(routed.vector)
            extras = TurnExtras(self.vectors.name, vector, dict(routed.facts), stream.begun)

        def save(last: bool = False) -> str:
            try:
                if stream.concluded and not is_complete:
                    return ""  # the next save has more
                if not keep:
                    self.state.turns.take_back(row, options.replaces)
                    return ""
                saved = self.state.turns.save(row, options.replaces, extras, again=stream.stored)
                stream.stored |= saved
            except StorageError as error:
                if isinstance(error, GoneError) and not last:  # the database was lost: try again
                    return save(last=True)
                log.warning("an answer could not be saved: %s", error)
                return str(error)
            except Exception as error:  # otherwise it would be lost in a future that nobody reads
                log.error("an answer could not be saved: %s", places_of(error))
                return "The reason is in the server's log."
            if not saved:
                self.cache.delete(context_key(user, conversation))
            elif is_complete and (record.chunks or record.searches):
                self._cache_context(user, conversation, record)
            return ""

        return self._saving.submit(save)

    def keep_text(self, turn: Stream) -> Future[str]:
        """Save only the text of a turn whose other parts are saved: its code is much longer."""
        answer, user = turn.answer, turn.question.options.user

        def save() -> str:
            if not turn.concluded:
                with suppress(StorageError):  # the last save reports it
                    self.state.turns.go_on(turn.id, answer, user)
            return ""

        return self._saving.submit(save)

    def _context(self, turns: Sequence[TurnRecord], conversation: str, user: str) -> ContextBlock:
        """Return the code that a follow-up of `turns` goes on from.

        That is the code of the latest turn that used code or searched for it, from the cache or
        else from the turn. A client without a conversation has no turns, only the cached code.
        """
        latest = None
        for turn in reversed(turns):
            if turn.chunks or (turn.searches and turn.finished):
                latest = turn
                break
        if conversation and latest is None:
            return NO_CONTEXT
        turn_id, block = self.cached_context(user, conversation)
        if latest is None or turn_id == latest.id:
            return block
        self._cache_context(user, conversation, latest)
        return latest.block

    def _cache_context(self, user: str, conversation: str, record: TurnRecord) -> None:
        """Store the code of `record` in the cache as the context of the conversation."""
        value = {
            "repository": self.repository,
            "asked": self.visible,
            "turn": record.id,
            "chunks": as_json(record.chunks),
        }
        try:
            self.cache.set(context_key(user, conversation), json.dumps(value), CONTEXT_SECONDS)
        except StorageError as error:
            log.warning("a context could not be cached: %s", error)

    def cached_context(self, user: str, conversation: str = "") -> tuple[str, ContextBlock]:
        """Return the id of the turn whose code is cached, and that code.

        Both are empty if the cache has lost it, or has that of another repository.
        """
        try:
            value = self.cache.get(context_key(user, conversation))
            stored = json.loads(value) if value else {}
            here = stored.get("repository") == self.repository
            if here and self.hidden.isdisjoint(stored.get("asked", ())):
                block = ContextBlock(tuple(read_values(Chunk, stored.get("chunks", ()))))
                if block.text or not block.chunks:  # chunks with wrong line numbers have no text
                    return str(stored.get("turn", "")), block
        # Anything may be stored there, even deep JSON. Without it a follow-up only lacks its code.
        except (StorageError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            log.warning("a cached context could not be read: %s", type(error).__name__)
        return "", NO_CONTEXT

    def _read(
        self, conversation: str, user: str, last: int | None = None, leaf: str = ""
    ) -> list[TurnRecord]:
        if not conversation:
            return []
        turns = self.state.turns.active(conversation, user, self.repository, last, until=leaf)
        return [read_turn_record(turn) for turn in filter(self.shows, turns)]

    def shows(self, turn: Turn) -> bool:
        """Return whether a turn was about no repository that is hidden from its user now."""
        return self.hidden.isdisjoint(turn.details.get("asked", ()))

    def _may_show(self, conversation: str, user: str) -> bool:
        """Return whether all turns of a conversation may be shown."""
        if not self.hidden:
            return True
        group, turns = (conversation, user, self.repository), self.state.turns
        return all(map(self.shows, turns.active(*group) + turns.inactive(*group)))


def exchanges_of(turns: Sequence[TurnRecord]) -> tuple[Exchange, ...]:
    """Return the answered questions of `turns`, as a model may see them.

    The app's report on stored data is left out: it is for the user alone.
    """
    exchanges = []
    for turn in turns:
        if turn.answer and turn.reply != "privacy":
            answer = QUOTED if turn.generator == EXTRACTIVE else turn.answer
            exchanges.append(Exchange(read_mode(turn.question)[1], answer, turn.id))
    return tuple(exchanges)
