"""Writes what the app answers itself, without any model, and does the deletions it is told to."""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import dataclass

from codeqa.account import Privacy, StoredData, deletion_report
from codeqa.chat.conversations import Conversations
from codeqa.chat.generation import GenerationInput, Piece
from codeqa.chat.replies import forgotten_reply, general_reply, privacy_reply, profile_reply
from codeqa.chat.turn import TurnState
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.text.markdown import pieces

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


@dataclass(frozen=True, slots=True)
class AppGenerator:
    """Writes the reply that `turn.reply` names."""

    turn: TurnState
    conversations: Conversations
    privacy: Privacy
    repository_name: str

    name = "app"
    needs_evidence = False

    def generate(self, asked: GenerationInput) -> Generator[Piece, None, None]:
        """Yield the reply piece by piece. Raises StorageError when a deletion cannot be done."""
        yield from pieces(self._write())

    def _write(self) -> str:
        turn, personal = self.turn, self.turn.personal
        program = turn.options.from_program
        if turn.reply == "privacy" and personal.confirmed:
            # What speaks for its user may repeat whatever it has read.
            return ELSEWHERE if program else self._delete(personal.confirmed)
        if turn.reply in ("privacy", "profile") and personal.forget and not program:
            number = self.privacy.forget_facts(turn.options.user, personal.forget)
            return forgotten_reply(personal.forget, number)
        if turn.reply == "privacy":
            return privacy_reply(turn.text, personal, self._stored())
        known = turn.so_far.profile
        if turn.reply == "profile":
            if personal.facts and not turn.keep:
                return NOT_REMEMBERED
            return profile_reply(
                turn.text, personal, known=known, learnt=turn.facts, model=self._model()
            )
        name = {**known, **turn.facts}.get("name", "")
        return general_reply(turn.text, self.repository_name, name=name, model=self._model())

    def _delete(self, scope: str) -> str:
        """Delete, and say what came of it; the message that asks for it goes as well."""
        turn, options = self.turn, self.turn.options
        self.conversations.flush()
        turn.keep = turn.keep and scope == "profile"
        if scope == "conversation" and not options.conversation:
            return NOT_KEPT_HERE
        if scope != "profile":
            conversation = options.conversation if scope == "conversation" else ""
            self.conversations.abandon(options.user, conversation)
        repository = self.conversations.repository
        try:
            done = self.privacy.delete(scope, options.user, options.conversation, repository)
        except NotFoundError:
            return NOT_KEPT_HERE
        return deletion_report(done)

    def _stored(self) -> StoredData | None:
        options = self.turn.options
        self.conversations.flush()
        try:
            return self.privacy.inventory.stored(
                options.user, options.conversation, self.conversations.repository
            )
        except CodeQAError as error:
            log.warning("what is stored could not be read: %s", error)
            return None

    def _model(self) -> str:
        try:
            return str(self.privacy.inventory.models.current() or "")
        except CodeQAError:
            return ""
