"""What was asked and answered before: conversations, their turns, and what those carry along."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from codeqa.chat.history import HISTORY_MESSAGES, RECENCY_WINDOW, Loaded
from codeqa.chat.memory import Memory
from codeqa.chat.messages import as_sent, build_messages, count_tokens
from codeqa.chat.persistence import Persistence, Saving
from codeqa.chat.topic import Vector
from codeqa.chat.trace import Trace, read_trace
from codeqa.chat.turns import Draft, TurnView, block_of, sent_of, view_of
from codeqa.chat.vectors import QuestionVectors, read_vector
from codeqa.errors import NotFoundError, SettingsError, StorageError
from codeqa.extractive.extractive import Extractive
from codeqa.extractive.generator import NO_CONTEXT, Asked, Exchange, Sent
from codeqa.intents import DEFAULT_MODE, read_mode
from codeqa.repository.secrets import mask_secrets
from codeqa.settings import Settings
from codeqa.state import CitedLines, Conversation, ConversationMatch, State, Turn
from codeqa.state.cache import Cache
from codeqa.text.tag import strip_tag
from codeqa.text.tokens import well_formed
from codeqa.types import ContextBlock

USER = "local"
LOOKED_BACK = HISTORY_MESSAGES // 2 + 2
"""Latest turns that are read for the history: those without an answer do not count."""
QUOTED = "(Answered without a language model, by quoting the code.)"
"""Stands in the history for an extractive answer: that is text of files, which has no place
among what the model itself is supposed to have said."""

log = logging.getLogger(__name__)


class Conversations:
    """The conversations of each user about one repository; `repository` is its id."""

    def __init__(
        self,
        state: State,
        cache: Cache,
        settings: Settings,
        repository: str,
        vectors: QuestionVectors,
    ) -> None:
        self._state = state
        self._memory = Memory(cache, repository)
        self._settings = settings
        self._repository = repository
        self._vectors = vectors
        self._drafts: dict[str, Draft] = {}
        """Turns in the making by their id; their conversations may not be kept yet."""
        self._changing = threading.Lock()
        self._persistence = Persistence()

    def flush(self) -> None:
        """Wait until everything that was answered is kept."""
        self._persistence.flush()

    def conversations(self, user: str = USER) -> list[Conversation]:
        """Conversations of `user`, the latest first."""
        self.flush()
        return self._state.conversations.latest(self._repository, user)

    def find(self, text: str, user: str = USER) -> list[ConversationMatch]:
        """Conversations of `user` whose title, questions or answers hold `text`, and where."""
        self.flush()
        return self._state.conversations.find(well_formed(text), self._repository, user)

    def conversation(self, conversation: str, user: str = USER) -> Conversation:
        """One conversation of `user`. Raises NotFoundError."""
        self.flush()
        conversation = well_formed(conversation)
        found = self._state.conversations.get(conversation, user, self._repository)
        if found is None:
            raise _no_conversation()
        return found

    def turns(self, conversation: str, user: str = USER) -> list[TurnView]:
        """Turns of a conversation, oldest first; none when there is no such conversation.

        Of a question that was asked again only the branch that is in use.
        """
        self.flush()
        return [view_of(turn) for turn in self._turns(conversation, user)]

    def branches(self, conversation: str, user: str = USER) -> dict[str, tuple[str, ...]]:
        """Id of each turn of the branch in use → itself and what was asked instead of it, the
        oldest first."""
        self.flush()
        return self._state.turns.branches(well_formed(conversation), user, self._repository)

    def other_turns(self, conversation: str, user: str = USER) -> list[TurnView]:
        """Turns of a conversation that are not on the branch in use, oldest first."""
        self.flush()
        found = self._state.turns.inactive(well_formed(conversation), user, self._repository)
        return [view_of(turn) for turn in found]

    def choose_branch(self, conversation: str, turn_id: str, user: str = USER) -> None:
        """Go on from `turn_id` and what followed it; a follow-up has the context it had there.

        Raises NotFoundError.
        """
        self.flush()
        conversation = well_formed(conversation)
        self._state.turns.choose_branch(conversation, well_formed(turn_id), user, self._repository)
        turns = self._turns(conversation, user)
        block = next((block_of(turn) for turn in reversed(turns) if turn.context), None)
        if block is None:
            self._memory.forget(user, conversation)
        else:
            self._memory.keep(user, conversation, block)

    def rename(self, conversation: str, title: str, user: str = USER) -> None:
        """Give a conversation another title. Raises NotFoundError."""
        found = self.conversation(conversation, user)
        self._state.conversations.rename(found.id, title, user, self._repository)

    def delete(self, conversation: str, user: str = USER) -> None:
        """Delete a conversation with its turns, those in the making too, and its cached context.

        Raises NotFoundError.
        """
        self.flush()
        conversation = well_formed(conversation)
        in_the_making = self.abandon(user, conversation)
        with self._changing:
            if not in_the_making and not self._created(conversation, user):
                raise _no_conversation()
            self._state.conversations.delete(conversation, user, self._repository)
        self._memory.forget(user, conversation)

    def abandon(self, user: str, conversation: str = "") -> int:
        """Keep nothing of what is being answered for `user` in the conversation, in any without
        one; how many turns that are."""
        with self._changing:
            mine = [draft for draft in [*self._drafts.values()] if draft.user == user]
            mine = [one for one in mine if not conversation or one.conversation == conversation]
            for draft in mine:
                draft.deleted = True
        return len(mine)

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
        masked = mask_secrets(well_formed(reason.strip()))
        kept = masked if value else ""
        sent = [CitedLines(c.path, c.start_line, c.end_line) for c in block_of(turn).chunks]
        self._state.feedback.save(turn.id, user, value, kept, sent=sent)
        return kept

    def thumbs(self, conversation: str, user: str = USER) -> dict[str, tuple[int, str]]:
        """Id of each turn of a conversation that has a thumb → its value and reason."""
        return self._state.feedback.of_conversation(
            well_formed(conversation), user, self._repository
        )

    def has_context(self, conversation: str, user: str = USER) -> bool:
        """Whether a follow-up without `@codebase` has code to go on from."""
        return bool(self._memory.recall(user, well_formed(conversation)).chunks)

    def carries(self, conversation: str, user: str = USER) -> int:
        """Tokens, estimated, that a follow-up without `@codebase` sends besides its words.

        0 when a prompt override cannot be used: no model can be asked then, which is said when
        one is, and what there is can be read all the same.
        """
        self.flush()
        block = self._memory.recall(user, well_formed(conversation))
        history = exchanges_of(self._turns(conversation, user, LOOKED_BACK))
        return self.weight(block, history)

    def weight(self, block: ContextBlock, history: tuple[Exchange, ...]) -> int:
        """Tokens of a follow-up without words of its own."""
        latest = history[-(RECENCY_WINDOW // 2) :]
        follow_up = Asked("", DEFAULT_MODE, block, searched=False, history=latest)
        try:
            messages = build_messages(follow_up, self._settings.config_dir)
        except SettingsError:
            return 0
        return count_tokens(as_sent(messages))

    def load(self, draft: Draft) -> Loaded:
        """The conversation so far as `draft` continues it, and what its user told of themselves.

        Both are read side by side (S3.10). What of it cannot be read is left out: an answer
        without it is better than none. Raises StorageError when not even the turns can be.
        """
        self.flush()  # a follow-up may come before the answer to it is kept
        with ThreadPoolExecutor(1) as pool:
            profile = pool.submit(self.profile, draft.user)
            turns = self._before(draft)
            # The topic of a conversation is that of its latest turn, on whatever branch.
            topic = None if draft.branches else self._topic(draft)
            last = turns[-1] if turns else None
            return Loaded(
                history=exchanges_of(turns)[-HISTORY_MESSAGES // 2 :],
                profile=profile.result(),
                messages=2 * len(turns),
                topic=topic,
                context=self._context_of(draft, turns),
                names=names_of(last) if last else (),
                path=tuple(turn.id for turn in turns),
            )

    def _before(self, draft: Draft) -> list[Turn]:
        """The latest turns of the branch that `draft` continues, oldest first."""
        leaf = draft.parent
        earlier = self._replaced(draft)
        if earlier is not None:
            leaf = earlier.parent
            if not leaf:
                return []
        turns = self._turns(draft.conversation, draft.user, LOOKED_BACK, leaf)
        if leaf and not turns:
            raise NotFoundError(
                "The answer that this was to follow is not there.", "It may have been deleted."
            )
        # The conversation may go on elsewhere while this is answered.
        draft.parent = draft.parent or (turns[-1].id if turns else "")
        return turns

    def _replaced(self, draft: Draft) -> Turn | None:
        """The turn of this conversation that `draft` takes the place of, None for none."""
        turn = self._state.turns.get(draft.replaces, draft.user) if draft.replaces else None
        place = (self._repository, draft.conversation)
        return turn if turn and (turn.repository, turn.conversation) == place else None

    def profile(self, user: str) -> dict[str, str]:
        """What `user` told of themselves; nothing while it cannot be read."""
        try:
            return {key: fact.value for key, fact in self._state.profile.facts(user).items()}
        except StorageError as error:
            log.warning("a profile could not be read: %s", error)
            return {}

    def _context_of(self, draft: Draft, before: Sequence[Turn]) -> ContextBlock:
        """What was found for an earlier question (S1.37): as it is cached, or as the branch had
        it where the conversation is taken up at an earlier point."""
        if not draft.branches:
            return self._memory.recall(draft.user, draft.conversation)
        found = (block_of(turn) for turn in reversed(before) if turn.context)
        return next(found, NO_CONTEXT)

    def remember(self, draft: Draft, block: ContextBlock) -> None:
        """Make `block` the context of the conversation, unless that was deleted meanwhile."""
        with self._changing:
            if not draft.deleted:
                self._memory.keep(draft.user, draft.conversation, block)

    def found_for(self, draft: Draft) -> ContextBlock | None:
        """What was found for the turn that `draft` replaces; None when it replaces none."""
        turn = self._replaced(draft)
        return block_of(turn) if turn else None

    def _topic(self, draft: Draft) -> Vector | None:
        if not draft.conversation:
            return None
        kept = self._state.conversations.topic(draft.conversation, draft.user, self._repository)
        if kept is None or kept[0] != self._vectors.name:
            return None
        return read_vector(kept[1])

    def _created(self, conversation: str, user: str) -> float:
        """When the conversation was created; 0 while there is none."""
        if not conversation:
            return 0.0
        found = self._state.conversations.get(conversation, user, self._repository)
        return found.created if found else 0.0

    def is_worse(self, draft: Draft) -> bool:
        """Whether `draft` says nothing where the turn that it replaces has an answer: better the
        answer that there is than none."""
        earlier = None if draft.answer else self._replaced(draft)
        return earlier is not None and bool(earlier.answer)

    def keep(self, draft: Draft, whole: ContextBlock) -> Saving:
        """Keep the turn behind the answer (S3.25). `whole` is the block that was packed for it:
        if the model could only read a part, that becomes the conversation's context.

        Nothing of it is kept when its conversation was deleted meanwhile.
        """
        turn, extras = draft.as_turn(), draft.extras(self._vectors.name)

        def save() -> None:
            with self._changing:
                saved = not draft.deleted and self._state.turns.save(
                    turn, draft.replaces, draft.continues, extras
                )
            if not saved:
                self._memory.forget(draft.user, draft.conversation)
            elif draft.finished and draft.block is not whole:
                self._memory.keep(draft.user, draft.conversation, draft.block)

        return self._persistence.submit(save)

    def _turns(
        self, conversation: str, user: str, last: int | None = None, leaf: str = ""
    ) -> list[Turn]:
        if not conversation:
            return []
        conversation = well_formed(conversation)
        return self._state.turns.active(conversation, user, self._repository, last, until=leaf)

    def _find(self, turn_id: str, user: str) -> Turn:
        self.flush()
        turn = self._state.turns.get(well_formed(turn_id), user)
        if turn is None or turn.repository not in ("", self._repository):
            raise NotFoundError("There is no such answer.", "It may be too old: ask again.")
        return turn


def _no_conversation() -> NotFoundError:
    return NotFoundError("There is no such conversation.", "It may have been deleted.")


def exchanges_of(turns: Sequence[Turn]) -> tuple[Exchange, ...]:
    """The answered questions of `turns`, as a model may see them.

    The app's own account of what is stored stays out: it is for its reader alone.
    """
    exchanges = []
    for turn in turns:
        if not turn.answer or turn.details.get("reply") == "privacy":
            continue
        _, question = read_mode(strip_tag(turn.question))
        answer = told_answer(turn.answer, str(turn.details.get("generator", "")))
        exchanges.append(Exchange(question, answer, turn.id))
    return tuple(exchanges)


def told_answer(answer: str, generator: str) -> str:
    """`answer` as a model may see it: what quotes files is not told."""
    return QUOTED if generator == Extractive.name else answer


def names_of(turn: Turn) -> tuple[str, ...]:
    """Definitions that the search for `turn` found, best first."""
    names = (str(hit.get("name", "")) for hit in read_trace(turn.details).hits)
    return tuple(dict.fromkeys(name for name in names if name))
