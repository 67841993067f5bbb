"""Conversations: listed, renamed, deleted, and found by what was said in them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from itertools import chain, islice

from codeqa.errors import NotFoundError
from codeqa.state.database import StateTable
from codeqa.state.records import (
    LOCAL_USER,
    Conversation,
    ConversationMatch,
    one_line,
    title_of,
)
from codeqa.text import strip_tag

CONVERSATIONS_LISTED = 200
MATCHES_LISTED = 50
SNIPPET_CHARACTERS = 160
BEFORE_HIT = 50
"""Characters of a snippet before what was looked for: a short clause."""
WORDS_LOOKED_FOR = 20
"""Words of a search that count; who pastes a page looks for its beginning."""

OF_GROUP = "user = ? AND repository = ? AND conversation = ?"
"""Turns of one conversation."""
OF_CONVERSATION = "user = ? AND repository = ? AND id = ?"

_CONVERSATION = (
    "id, user, repository, title, created, updated, (SELECT count(*) FROM turn WHERE "
    "turn.user = c.user AND turn.repository = c.repository AND turn.conversation = c.id)"
)


class ConversationStore(StateTable):
    """The list of conversations."""

    def latest(self, repository: str, user: str = LOCAL_USER) -> list[Conversation]:
        """Conversations of `user` about `repository`, the latest first."""
        rows = self._database.rows(
            f"SELECT {_CONVERSATION} FROM conversation AS c WHERE user = ? "
            "AND repository = ? ORDER BY updated DESC, rowid DESC LIMIT ?",
            (user, repository, CONVERSATIONS_LISTED),
        )
        return [Conversation(*row) for row in rows]

    def get(
        self, conversation: str, user: str = LOCAL_USER, repository: str | None = None
    ) -> Conversation | None:
        """The conversation of `user`, or None; without a repository the one last continued of
        that id."""
        row = self._database.row(
            f"SELECT {_CONVERSATION} FROM conversation AS c WHERE user = ? AND id = ? "
            "AND (repository = ? OR ? IS NULL) ORDER BY updated DESC, rowid DESC LIMIT 1",
            (user, conversation, repository, repository),
        )
        return None if row is None else Conversation(*row)

    def find(self, text: str, repository: str, user: str = LOCAL_USER) -> list[ConversationMatch]:
        """Conversations with all words of `text` in one turn, or in the title; the latest first.

        A word may be a part of another one, every character stands for itself, and upper and
        lower case are the same in every script. All branches are looked through.
        """
        words = text.casefold().split()[:WORDS_LOOKED_FOR]
        if not words:
            return []
        with self._database.reading() as connection:
            rows = connection.execute(
                f"SELECT {_CONVERSATION} FROM conversation AS c WHERE user = ? "
                "AND repository = ? ORDER BY updated DESC, rowid DESC",
                (user, repository),
            )
            found = (_match(connection, Conversation(*row), words) for row in rows)
            return list(islice(filter(None, found), MATCHES_LISTED))

    def rename(
        self, conversation: str, title: str, user: str = LOCAL_USER, repository: str = ""
    ) -> None:
        """Give a conversation another title, cut as `title_of` does.

        Raises NotFoundError when there is no such conversation.
        """
        group = (user, repository, conversation)
        if not self._database.change(
            f"UPDATE conversation SET title = ? WHERE {OF_CONVERSATION}", (title_of(title), *group)
        ):
            raise NotFoundError(
                "There is no such conversation.", "It may have been deleted: load the list."
            )

    def delete(self, conversation: str, user: str = LOCAL_USER, repository: str = "") -> None:
        """Delete a conversation and its turns; nothing happens when there is none."""
        if not conversation:  # turns without one are no conversation
            return
        group = (user, repository, conversation)
        with self._database.writing() as connection:  # triggers take along what belongs to turns
            connection.execute(f"DELETE FROM turn WHERE {OF_GROUP}", group)
            connection.execute(f"DELETE FROM conversation WHERE {OF_CONVERSATION}", group)


def _match(
    connection: sqlite3.Connection, conversation: Conversation, words: Sequence[str]
) -> ConversationMatch | None:
    """The latest turn of the conversation with `words`, else its title if that has them."""
    turns = connection.execute(
        f"SELECT id, question, answer FROM turn WHERE {OF_GROUP} ORDER BY created DESC, rowid DESC",
        (conversation.user, conversation.repository, conversation.id),
    )
    for turn_id, question, answer in chain(turns, [("", conversation.title, "")]):
        asked = strip_tag(question) if "@" in question else question
        if _holds(f"{asked}\n{answer}", words):
            # The answer is what is longer to read: it is quoted where the question says less.
            shown = asked if _holds(asked, words) else answer
            return ConversationMatch(conversation, turn_id, snippet(shown, words))
    return None


def _holds(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def snippet(text: str, words: Sequence[str]) -> str:
    """About `SNIPPET_CHARACTERS` of `text` as one line, cut at words where there are some: around
    all of the folded `words` where they stand in a row, else around the first that is there."""
    line = one_line(text)
    for hit in map(re.escape, (" ".join(words), *words, "")):
        around = rf".{{0,{BEFORE_HIT}}}{hit}.{{0,{SNIPPET_CHARACTERS - BEFORE_HIT}}}"
        for pattern in (rf"(?<!\S){around}(?!\S)", around):
            if found := re.search(pattern, line, re.IGNORECASE):
                before = "…" if found.start() else ""
                after = "…" if found.end() < len(line) else ""
                return f"{before}{found[0].strip()}{after}"
    return ""
