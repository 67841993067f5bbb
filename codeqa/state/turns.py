"""Store turns and read them by branch; list, rename, delete and search conversations."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from codeqa.errors import NotFoundError
from codeqa.state.database import Connection, StateTable
from codeqa.state.records import (
    LOCAL_USER,
    NO_EXTRAS,
    Conversation,
    ConversationMatch,
    Group,
    PastQuestion,
    Turn,
    TurnExtras,
    one_line,
    title_of,
)
from codeqa.state.user_data import deleted_since, put_fact
from codeqa.text import json_object, strip_tag

CONVERSATIONS_LISTED = 200
MATCHES_LISTED = 50
SNIPPET_CHARACTERS = 160
BEFORE_HIT = 50  # characters of a snippet before what was looked for: a short clause

OF_GROUP = "user = ? AND repository = ? AND conversation = ?"  # turns of one conversation
OF_CONVERSATION = "user = ? AND repository = ? AND id = ?"

_CONVERSATIONS = """
    SELECT id, user, repository, title, created, updated, (SELECT count(*) FROM turn WHERE
        turn.user = c.user AND turn.repository = c.repository AND turn.conversation = c.id),
        (SELECT count(*) FROM pin WHERE (pin.user, pin.repository, pin.id) = (c.user, c.repository,
        c.id)) AS pinned
    FROM conversation AS c WHERE user = ? AND {} ORDER BY {} updated DESC, rowid DESC LIMIT ?"""

LINKS = (
    f"SELECT id, parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} ORDER BY created, rowid"
)
"""From an index that holds nothing else: the rows of the turns carry whole contexts."""

_TURN = ", ".join(Turn.__slots__)
_OF_IDS = "id IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class _Branches:
    """Which turn follows which in one conversation, and where its active branch ends."""

    parents: dict[str, str]  # id of each turn, the oldest first → the turn before it, '' for none
    leaf: str  # '' when there is no turn

    def path(self, end: str) -> list[str]:
        """Return the ids from the first turn to `end`."""
        path: dict[str, None] = {}
        while end in self.parents and end not in path:  # a damaged file may hold a circle
            path[end] = None
            end = self.parents[end]
        return list(reversed(path))

    def active(self) -> list[str]:
        """Return the ids on the active branch, from the first turn on."""
        return self.path(self.leaf)

    def last_after(self, turn_id: str) -> str:
        """Return the latest end of a branch with this turn; '' without it."""
        inner = set(self.parents.values())
        for turn in reversed(self.parents):
            if turn not in inner and turn_id in self.path(turn):
                return turn
        return ""


def _branches(connection: Connection, group: Group) -> _Branches:
    parents = dict(connection.execute(LINKS, group).fetchall())
    query = f"SELECT leaf FROM conversation WHERE {OF_CONVERSATION}"
    row = connection.execute(query, group).fetchone()
    if row is None:
        return _Branches(parents, "")
    (leaf,) = row
    if leaf not in parents:
        leaf = next(reversed(parents), "")
    return _Branches(parents, leaf)


class TurnStore(StateTable):
    """The turns of all conversations.

    Each turn follows another one, and of several that follow the same one at most one is on
    the active branch, which ends with the conversation's leaf.
    """

    def save(
        self, turn: Turn, replaces: str = "", extras: TurnExtras = NO_EXTRAS, *, again: bool = False
    ) -> bool:
        """Store `turn` with its `extras`, and the conversation with its first turn.

        A new turn ends the active branch. It follows the same turn as `replaces`, which stays
        beside it; else `turn.parent`; else the last turn of the active branch. A turn that exists
        keeps its place and gets the new texts and details, and extras are added.

        Returns False and stores nothing where the turn was deleted meanwhile: it is saved `again`
        and is gone, or its user has deleted everything since it began (`extras.begun`).
        """
        created = turn.created or time.time()
        group = (turn.user, turn.repository, turn.conversation)
        texts = (turn.question, turn.answer, turn.context, json.dumps(dict(turn.details)))
        with self._database.writing(turn.user) as connection:
            if deleted_since(connection, turn.user, "everything", extras.begun):
                return False
            update = connection.execute(
                "UPDATE turn SET question = ?, answer = ?, context = ?, details = ? "
                "WHERE id = ? AND user = ?",
                (*texts, turn.id, turn.user),
            )
            if update.rowcount:
                _put_extras(connection, turn.id, group, extras, created)
                return True
            if again:
                return False
            parent = ""
            if turn.conversation:
                branches = _branches(connection, group)
                parent = turn.parent if turn.parent in branches.parents else branches.leaf
                parent = branches.parents.get(replaces, parent)
                connection.execute(
                    "INSERT INTO conversation "
                    "(user, repository, id, title, created, updated, leaf) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (user, repository, id) DO UPDATE "
                    "SET leaf = excluded.leaf, updated = CASE WHEN excluded.updated > "
                    "conversation.updated THEN excluded.updated ELSE conversation.updated END",
                    (*group, title_of(turn.question), created, created, turn.id),
                )
            connection.execute(
                f"INSERT INTO turn ({_TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (turn.id, turn.conversation, *texts, created, turn.user, turn.repository, parent),
            )
            _put_extras(connection, turn.id, group, extras, created)
        return True

    def go_on(self, turn_id: str, answer: str, user: str = LOCAL_USER) -> bool:
        """Store the answer so far; return False where there is no such turn any more."""
        change = "UPDATE turn SET answer = ? WHERE id = ? AND user = ?"
        return self._database.change(change, (answer, turn_id, user)) > 0

    def take_back(self, turn: Turn, replaced: str) -> None:
        """Delete a turn that was stored too early; make the branch of `replaced` active again."""
        self._database.change("DELETE FROM turn WHERE id = ? AND user = ?", (turn.id, turn.user))
        with suppress(NotFoundError):
            self.choose_branch(turn.conversation, replaced, turn.user, turn.repository)

    def get(self, turn_id: str, user: str = LOCAL_USER) -> Turn | None:
        with self._database.reading() as connection:
            return next(iter(_turns(connection, "id = ? AND user = ?", turn_id, user)), None)

    def active(
        self,
        conversation: str,
        user: str = LOCAL_USER,
        repository: str = "",
        last: int | None = None,
        *,
        until: str | None = None,
    ) -> list[Turn]:
        """Return the turns of a conversation's active branch, oldest first; none without one.

        `last`: only so many of the latest. `until`: instead the branch that ends with this turn.
        """
        with self._database.reading() as connection:
            branches = _branches(connection, (user, repository, conversation))
            path = branches.path(until or branches.leaf)
            ids = json.dumps(path if last is None else path[-last:])
            return _turns(connection, _OF_IDS, ids)

    def inactive(self, conversation: str, user: str, repository: str) -> list[Turn]:
        """Return the turns of a conversation beside its active branch, oldest first."""
        group = (user, repository, conversation)
        with self._database.reading() as connection:
            ids = json.dumps(_branches(connection, group).active())
            return _turns(connection, f"{OF_GROUP} AND NOT {_OF_IDS}", *group, ids)

    def branches(self, conversation: str, user: str, repository: str) -> dict[str, tuple[str, ...]]:
        """Return each turn on the active branch → all turns with its parent, as ids in order."""
        with self._database.reading() as connection:
            branches = _branches(connection, (user, repository, conversation))
        siblings: dict[str, list[str]] = {}
        for turn, parent in branches.parents.items():
            siblings.setdefault(parent, []).append(turn)
        return {turn: tuple(siblings[branches.parents[turn]]) for turn in branches.active()}

    def choose_branch(self, conversation: str, turn_id: str, user: str, repository: str) -> None:
        """Make the latest branch with the turn active. Raises NotFoundError without the turn."""
        group = (user, repository, conversation)
        with self._database.writing(user) as connection:
            leaf = _branches(connection, group).last_after(turn_id)
            if not leaf:
                raise NotFoundError("There is no such answer.", "It may have been deleted.")
            change = f"UPDATE conversation SET leaf = ? WHERE {OF_CONVERSATION}"
            connection.execute(change, (leaf, *group))

    def standing(self, turn_ids: Sequence[str], user: str = LOCAL_USER) -> dict[str, Turn]:
        """Return those of these turns, by id, that no other branch has replaced."""
        active: set[str] = set()
        with self._database.reading() as connection:
            turns = _turns(connection, f"user = ? AND {_OF_IDS}", user, json.dumps(list(turn_ids)))
            for group in {(user, turn.repository, turn.conversation) for turn in turns}:
                active.update(_branches(connection, group).active())
        return {turn.id: turn for turn in turns if not turn.conversation or turn.id in active}

    def past_questions(self, user: str, repository: str, embedding: str) -> list[PastQuestion]:
        """Return the vectors that `embedding` made of the user's questions, the oldest first."""
        rows = self._database.rows(
            "SELECT turn, conversation, vector FROM question WHERE user = ? "
            "AND repository = ? AND embedding = ? ORDER BY number",
            (user, repository, embedding),
        )
        return [PastQuestion(*row) for row in rows]


def _turns(connection: Connection, where: str, *parameters: Any) -> list[Turn]:
    """Return the turns that meet a condition, oldest first."""
    query = f"SELECT {_TURN} FROM turn WHERE {where} ORDER BY created, rowid"
    rows = connection.execute(query, parameters)
    return [
        Turn(turn, conversation, question, answer, context, json_object(details) or {}, *rest)
        for turn, conversation, question, answer, context, details, *rest in rows
    ]


def _put_extras(
    connection: Connection, turn_id: str, group: Group, extras: TurnExtras, created: float
) -> None:
    if extras.question is not None:
        connection.execute(
            "INSERT INTO question (turn, user, repository, conversation, embedding, vector) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (turn) DO NOTHING",
            (turn_id, *group, extras.embedding, extras.question),
        )
    if not deleted_since(connection, group[0], "profile", extras.begun):
        for key, value in extras.facts.items():
            put_fact(connection, group[0], key, value, turn_id, created)


# Conversations.


class ConversationStore(StateTable):
    """The conversations of all users."""

    def latest(self, repository: str, user: str = LOCAL_USER) -> list[Conversation]:
        """Return conversations of `user` about `repository`, pinned ones and the latest first."""
        query = _CONVERSATIONS.format("repository = ?", "pinned DESC,")
        rows = self._database.rows(query, (user, repository, CONVERSATIONS_LISTED))
        return list(map(_conversation, rows))

    def get(
        self, conversation: str, user: str = LOCAL_USER, repository: str | None = None
    ) -> Conversation | None:
        """Return a conversation; without a repository the one of that id continued last."""
        query = _CONVERSATIONS.format("id = ? AND repository = coalesce(?, repository)", "")
        row = self._database.row(query, (user, conversation, repository, 1))
        return None if row is None else _conversation(row)

    def find(self, text: str, repository: str, user: str = LOCAL_USER) -> list[ConversationMatch]:
        """Return conversations with all words of `text` in one turn or the title.

        Pinned ones and the latest are first.
        A word may be a part of another one; upper and lower case are the same in every script.
        Turns of all branches are searched.
        """
        words = text.casefold().split()
        if not words:
            return []
        with self._database.reading() as connection:
            query = _CONVERSATIONS.format("repository = ?", "pinned DESC,")
            rows = connection.execute(query, (user, repository, 1 << 62))
            matches = (_match(connection, _conversation(row), words) for row in rows)
            return list(islice(filter(None, matches), MATCHES_LISTED))

    def second_question(self, conversation: str, user: str, repository: str) -> str:
        """Return the second question of a conversation as a title, '' for none."""
        query = f"SELECT question FROM turn WHERE {OF_GROUP} ORDER BY created, rowid LIMIT 2"
        rows = self._database.rows(query, (user, repository, conversation))
        return title_of(rows[1][0]) if len(rows) > 1 else ""

    def rename(
        self, conversation: str, title: str, user: str, repository: str = "", was: str = ""
    ) -> None:
        """Give a conversation another title, cut as `title_of` does.

        `was`: only where it still has that title. Raises NotFoundError where nothing was renamed.
        """
        values = (title_of(title), user, repository, conversation, was)
        which = f"{OF_CONVERSATION} AND title = coalesce(nullif(?, ''), title)"
        if not self._database.change(f"UPDATE conversation SET title = ? WHERE {which}", values):
            raise NotFoundError(
                "There is no such conversation.", "It may have been deleted: reload the list."
            )

    def pin(self, conversation: str, pinned: bool, user: str, repository: str = "") -> None:
        """List a conversation before those that are not pinned, or no longer."""
        group = (user, repository, conversation)
        with self._database.writing(user) as connection:
            connection.execute(f"DELETE FROM pin WHERE {OF_CONVERSATION}", group)
            if pinned:
                row = f"SELECT user, repository, id FROM conversation WHERE {OF_CONVERSATION}"
                connection.execute(f"INSERT INTO pin (user, repository, id) {row}", group)

    def delete(self, conversation: str, user: str = LOCAL_USER, repository: str = "") -> None:
        """Delete a conversation and its turns; nothing happens when there is none."""
        if not conversation:  # turns without one are no conversation
            return
        group = (user, repository, conversation)
        with self._database.writing(user) as connection:  # triggers take the rest along
            connection.execute(f"DELETE FROM turn WHERE {OF_GROUP}", group)
            connection.execute(f"DELETE FROM conversation WHERE {OF_CONVERSATION}", group)


def _conversation(row: Sequence[Any]) -> Conversation:
    values = (*row[:-1], bool(row[-1]))
    return Conversation(*values)


def _match(
    connection: Connection, conversation: Conversation, words: Sequence[str]
) -> ConversationMatch | None:
    """Return the latest turn of the conversation with `words`, else its title with them."""
    turns = connection.execute(
        f"SELECT id, question, answer FROM turn WHERE {OF_GROUP} ORDER BY created DESC, rowid DESC",
        (conversation.user, conversation.repository, conversation.id),
    )
    for turn_id, question, answer in chain(turns, [("", conversation.title, "")]):
        question = strip_tag(question) if "@" in question else question
        if _holds(f"{question}\n{answer}", words):
            text = question if _holds(question, words) else answer
            return ConversationMatch(conversation, turn_id, snippet(text, words))
    return None


def _holds(text: str, words: Sequence[str]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)


def snippet(text: str, words: Sequence[str]) -> str:
    """Return about SNIPPET_CHARACTERS of `text` around `words`, on one line.

    That is around all words in a row, else around the first that occurs, cut at words if possible.
    """
    line = one_line(re.sub(r"[*`#]+", "", text))  # without the marks of Markdown
    for phrase in (" ".join(words), *words, ""):
        around = rf".{{0,{BEFORE_HIT}}}{re.escape(phrase)}.{{0,{SNIPPET_CHARACTERS - BEFORE_HIT}}}"
        for pattern in (rf"(?<!\S){around}(?!\S)", around):
            if match := re.search(pattern, line, re.IGNORECASE):
                start = "…" if match.start() else ""
                end = "…" if match.end() < len(line) else ""
                return f"{start}{match[0].strip()}{end}"
    return ""
