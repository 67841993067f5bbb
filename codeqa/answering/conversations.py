"""What was asked and answered before: conversations, their turns, and what those carry along."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from codeqa.answering.extractive import Extractive
from codeqa.answering.generator import Asked, Exchange, Sent
from codeqa.answering.memory import Memory
from codeqa.answering.messages import HISTORY_TURNS, as_sent, build_messages, count_tokens
from codeqa.answering.mode import DEFAULT, read_mode
from codeqa.answering.trace import Trace, read_trace
from codeqa.answering.turns import Draft, TurnView, block_of, sent_of, view_of
from codeqa.cache import Cache
from codeqa.errors import NotFoundError, SettingsError, StorageError
from codeqa.parsing.secrets import mask_secrets
from codeqa.settings import Settings
from codeqa.state import Conversation, Place, State, Turn
from codeqa.tag import strip_tag
from codeqa.tokens import well_formed
from codeqa.types import ContextBlock

USER = "local"
LOOKED_BACK = 4 * HISTORY_TURNS
"""Latest turns that are read for the history: those without an answer do not count."""
QUOTED = "(Answered without a language model, by quoting the code.)"
"""Stands in the history for an extractive answer: that is text of files, which has no place
among what the model itself is supposed to have said."""

log = logging.getLogger(__name__)


class Conversations:
    """The conversations of each user about one repository; `repository` is its id."""

    def __init__(self, state: State, cache: Cache, settings: Settings, repository: str) -> None:
        self._state = state
        self._memory = Memory(cache, repository)
        self._settings = settings
        self._repository = repository
        self._drafts: dict[str, Draft] = {}
        """Turns in the making by their id; their conversations may not be kept yet."""
        self._changing = threading.Lock()

    def conversations(self, user: str = USER) -> list[Conversation]:
        """Conversations of `user`, the latest first."""
        return self._state.conversations(self._repository, user)

    def conversation(self, conversation: str, user: str = USER) -> Conversation:
        """One conversation of `user`. Raises NotFoundError."""
        conversation = well_formed(conversation)
        found = self._state.conversation(conversation, user, self._repository)
        if found is None:
            raise NotFoundError("There is no such conversation.", "It may have been deleted.")
        return found

    def turns(self, conversation: str, user: str = USER) -> list[TurnView]:
        """Turns of a conversation, oldest first; none when there is no such conversation."""
        return [view_of(turn) for turn in self._turns(conversation, user)]

    def rename(self, conversation: str, title: str, user: str = USER) -> None:
        """Give a conversation another title. Raises NotFoundError."""
        found = self.conversation(conversation, user)
        self._state.rename_conversation(found.id, title, user, self._repository)

    def delete(self, conversation: str, user: str = USER) -> None:
        """Delete a conversation with its turns, those in the making too, and its cached context.

        Raises NotFoundError.
        """
        conversation = well_formed(conversation)
        with self._changing:
            place = (user, conversation)
            drafts = [d for d in [*self._drafts.values()] if (d.user, d.conversation) == place]
            for draft in drafts:
                draft.deleted = True
            if not drafts:
                self.conversation(conversation, user)
            self._state.delete_conversation(conversation, user, self._repository)
        self._memory.forget(user, conversation)

    def context(self, turn_id: str, user: str = USER) -> ContextBlock:
        """Exactly the context of a turn. Raises NotFoundError."""
        return block_of(self._find(turn_id, user))

    def trace(self, turn_id: str, user: str = USER) -> Trace:
        """How the context of a turn was found. Raises NotFoundError."""
        return read_trace(self._find(turn_id, user).details)

    def sent(self, turn_id: str, user: str = USER) -> Sent:
        """Exactly what was sent for a turn; no messages without a model. Raises NotFoundError."""
        return sent_of(self._find(turn_id, user))

    def rate(self, turn_id: str, value: int, reason: str = "", user: str = USER) -> str:
        """Give a turn a thumb: 1, -1, or 0 to take it back. Returns the reason as it is kept.

        Raises NotFoundError when `user` has no such turn here, UsageError as the state does.
        """
        turn = self._find(turn_id, user)
        masked, _ = mask_secrets(well_formed(reason.strip()))
        kept = masked if value else ""
        sent = [Place(c.path, c.start_line, c.end_line) for c in block_of(turn).chunks]
        self._state.save_feedback(turn.id, user, value, kept, sent=sent)
        return kept

    def thumbs(self, conversation: str, user: str = USER) -> dict[str, tuple[int, str]]:
        """Id of each turn of a conversation that has a thumb → its value and reason."""
        return self._state.thumbs(well_formed(conversation), user, self._repository)

    def has_context(self, conversation: str, user: str = USER) -> bool:
        """Whether a follow-up without `@codebase` has code to go on from."""
        return bool(self._memory.recall(user, well_formed(conversation)).chunks)

    def carries(self, conversation: str, user: str = USER) -> int:
        """Tokens, estimated, that a follow-up without `@codebase` sends besides its words.

        0 when a prompt override cannot be used: no model can be asked then, which is said when
        one is, and what there is can be read all the same.
        """
        block = self._memory.recall(user, well_formed(conversation))
        history = self._history(conversation, user)
        follow_up = Asked("", DEFAULT, block, searched=False, history=history)
        try:
            messages = build_messages(follow_up, self._settings.config_dir)
        except SettingsError:
            return 0
        return count_tokens(as_sent(messages))

    def _history(self, conversation: str, user: str, before: str = "") -> tuple[Exchange, ...]:
        """The latest answered questions, oldest first; only those before the turn `before`."""
        exchanges: list[Exchange] = []
        for turn in self._turns(conversation, user, LOOKED_BACK):
            if turn.id == before:
                break
            quoted = turn.details.get("generator") == Extractive.name
            if turn.answer:
                _, question = read_mode(strip_tag(turn.question))
                exchanges.append(Exchange(question, QUOTED if quoted else turn.answer))
        return tuple(exchanges)

    def _created(self, conversation: str, user: str) -> float:
        """When the conversation was created; 0 while there is none."""
        if not conversation:
            return 0.0
        found = self._state.conversation(conversation, user, self._repository)
        return found.created if found else 0.0

    def _keep(self, draft: Draft) -> bool:
        """Keep the turn, in place of the one that it replaces.

        False when its conversation was deleted meanwhile: then nothing of it is kept. Where
        the state cannot be written the answer is as good, and says so.
        """
        turn = draft.as_turn()
        try:
            if draft.replaces and not turn.answer:
                earlier = self._state.turn(draft.replaces, draft.user)
                if earlier is not None and earlier.answer:
                    # Better the answer that there is than none: this one is in no conversation.
                    turn = replace(turn, conversation="")
            with self._changing:
                kept = not draft.deleted and self._state.save_turn(
                    turn, draft.replaces, draft.continues
                )
            if not kept:
                self._memory.forget(draft.user, draft.conversation)
            return kept
        except StorageError as error:
            log.warning("an answer could not be kept: %s", error)
            draft.notices.append(f"This answer could not be kept. {error}")
            return True

    def _turns(self, conversation: str, user: str, last: int | None = None) -> list[Turn]:
        if not conversation:
            return []
        return self._state.turns(well_formed(conversation), user, self._repository, last)

    def _find(self, turn_id: str, user: str) -> Turn:
        turn = self._state.turn(well_formed(turn_id), user)
        if turn is None or turn.repository not in ("", self._repository):
            raise NotFoundError("There is no such answer.", "It may be too old: ask again.")
        return turn
