"""The generator of what the app answers itself, without any model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codeqa.account import (
    Privacy,
    StoredData,
    confirmed_scope,
    deletion_report,
    detect_facts,
    facts_to_forget,
)
from codeqa.chat.replies import Replies
from codeqa.errors import CodeQAError, NotFoundError, StorageError
from codeqa.extractive.generator import Asked, Generator, Piece
from codeqa.text.markdown import pieces

if TYPE_CHECKING:
    from codeqa.chat.conversations import Conversations
    from codeqa.chat.turns import Draft

APP = "app"
"""What the surfaces call it."""
NOT_KEPT_HERE = (
    "This conversation is not kept here, so there is nothing of it to delete; the program that "
    "shows it may keep it itself.\n"
)

NOT_REMEMBERED = (
    "I will not remember that: nothing of this conversation is kept here. Say it on the page, and "
    "it holds everywhere.\n"
)
ELSEWHERE = (
    "Nothing was deleted: other programs cannot delete what is stored. Open the page and send the "
    "same there, or use `codeqa privacy delete` in a terminal.\n"
)

log = logging.getLogger(__name__)


class Replying:
    """Writes the app's own replies for one repository, and does the deletions that it confirms."""

    def __init__(self, privacy: Privacy, replies: Replies, repository: str) -> None:
        self.privacy = privacy
        self._replies = replies
        self._repository = repository

    def writer(self, draft: Draft, conversations: Conversations) -> Generator:
        """What writes the reply that `draft.reply` names."""
        return _Reply(self, draft, conversations)

    def write(self, draft: Draft, conversations: Conversations) -> str:
        """The reply as Markdown. Raises StorageError when a deletion cannot be done."""
        if draft.reply == "privacy":
            conversations.flush()
            if scope := confirmed_scope(draft.text):
                return self._deleted(draft, scope, conversations)
        kinds = () if draft.foreign else facts_to_forget(draft.text)
        if draft.reply in ("privacy", "profile") and kinds:
            number = self.privacy.forget_facts(draft.user, kinds)
            return self._replies.forgotten(kinds, number)
        if draft.reply == "profile" and not draft.keep and detect_facts(draft.text):
            return NOT_REMEMBERED
        learnt = dict(draft.facts)
        return self._replies.reply(
            draft.reply,
            draft.text,
            profile=self._profile(draft),
            learnt=learnt,
            stored=self._stored(draft) if draft.reply == "privacy" else None,
            model=self._model(),
        )

    def _deleted(self, draft: Draft, scope: str, conversations: Conversations) -> str:
        """Delete, and say what came of it; the message that asks for it goes as well."""
        if draft.foreign:  # what speaks for its user may repeat whatever it has read
            return ELSEWHERE
        draft.keep = draft.keep and scope == "profile"
        if scope == "conversation" and not draft.conversation:
            return NOT_KEPT_HERE
        if scope != "profile":
            conversations.abandon(draft.user, draft.conversation if scope == "conversation" else "")
        try:
            erased = self.privacy.delete(scope, draft.user, draft.conversation, self._repository)
        except NotFoundError:
            return NOT_KEPT_HERE
        return deletion_report(erased)

    def _profile(self, draft: Draft) -> dict[str, str]:
        try:
            known = self.privacy.inventory.state.profile.facts(draft.user)
        except StorageError as error:
            log.warning("a profile could not be read: %s", error)
            return {}
        return {key: fact.value for key, fact in known.items()}

    def _stored(self, draft: Draft) -> StoredData | None:
        try:
            return self.privacy.inventory.stored(
                draft.user, draft.text, draft.conversation, self._repository
            )
        except CodeQAError as error:
            log.warning("what is stored could not be read: %s", error)
            return None

    def _model(self) -> str:
        try:
            return str(self.privacy.inventory.models.current() or "")
        except CodeQAError:
            return ""


class _Reply:
    """The generator of one reply."""

    name = APP
    needs_evidence = False

    def __init__(self, replying: Replying, draft: Draft, conversations: Conversations) -> None:
        self._replying = replying
        self._draft = draft
        self._conversations = conversations

    def generate(self, asked: Asked) -> Iterator[Piece]:
        """Yield the reply piece by piece."""
        yield from pieces(self._replying.write(self._draft, self._conversations))
