"""Branches: each turn follows another one, and of several that follow the same one at most one
is on the active branch, which ends with the conversation's leaf.

Only ids and parents are read for this, from an index that holds nothing else: the rows of the
turns carry whole contexts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from codeqa.errors import NotFoundError
from codeqa.state.database import Database
from codeqa.state.records import Group, Turn
from codeqa.state.rows import OF_GROUP, TURN, turn_of

PATH = (
    f"WITH RECURSIVE path (id, parent) AS ("
    f"SELECT id, parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} AND id = ? "
    f"UNION SELECT before.id, before.parent FROM path "
    f"CROSS JOIN turn AS before INDEXED BY turn_branch "
    f"ON {OF_GROUP} AND before.id = path.parent LIMIT ?) "
)
"""The turns from a leaf backwards, as a table; `UNION` ends it even if a damaged file goes in
circles. Its parameters are those of `path_parameters`."""


class BranchTable:
    """The part of the state that tells and changes which branch is the active one."""

    _database: Database

    def branches(self, conversation: str, user: str, repository: str) -> dict[str, tuple[str, ...]]:
        """Id of each turn on the active branch, from the first on → ids of all turns that
        follow the same one, itself among them, the oldest first."""
        group = (user, repository, conversation)
        with self._database.reading() as connection:
            leaf = leaf_of(connection, group)
            links = _links(connection, group)
        parents = dict(links)
        siblings: dict[str, list[str]] = {}
        for turn, parent in links:
            siblings.setdefault(parent, []).append(turn)
        path = _walk(leaf, parents)
        return {turn: tuple(siblings[parents[turn]]) for turn in reversed(path)}

    def other_turns(self, conversation: str, user: str, repository: str) -> list[Turn]:
        """Turns of a conversation that are not on its active branch, oldest first."""
        group = (user, repository, conversation)
        with self._database.reading() as connection:
            active = active_turns(connection, group)
            rows = connection.execute(
                f"SELECT {TURN} FROM turn WHERE {OF_GROUP} ORDER BY created, rowid", group
            )
            return [turn_of(row) for row in rows if row[0] not in active]

    def choose_branch(self, conversation: str, turn_id: str, user: str, repository: str) -> None:
        """Make the branch with the turn active, up to the latest of the turns that follow it.

        Raises NotFoundError when the conversation has no such turn.
        """
        group = (user, repository, conversation)
        with self._database.writing() as connection:
            links = _links(connection, group)
            leaf = _latest_after(turn_id, links)
            if not leaf:
                raise NotFoundError("There is no such answer.", "It may have been deleted.")
            connection.execute(
                "UPDATE conversation SET leaf = ? WHERE user = ? AND repository = ? AND id = ?",
                (leaf, *group),
            )


def path_parameters(group: Group, leaf: str, last: int | None) -> tuple[str | int, ...]:
    """Parameters of `PATH`: at most `last` turns up to `leaf`."""
    return (*group, leaf, *group, -1 if last is None else last)


def leaf_of(connection: sqlite3.Connection, group: Group) -> str:
    """The last turn of the active branch, '' when there is no turn."""
    row = connection.execute(
        "SELECT leaf FROM conversation WHERE user = ? AND repository = ? AND id = ?", group
    ).fetchone()
    if row is None:
        return ""
    if parent_of(connection, group, row[0]) is not None:
        return str(row[0])
    latest = connection.execute(
        f"SELECT id FROM turn WHERE {OF_GROUP} ORDER BY created DESC, rowid DESC LIMIT 1", group
    ).fetchone()
    return str(latest[0]) if latest else ""


def active_turns(connection: sqlite3.Connection, group: Group) -> frozenset[str]:
    """Ids of the turns on the active branch."""
    leaf = leaf_of(connection, group)
    rows = connection.execute(f"{PATH} SELECT id FROM path", path_parameters(group, leaf, None))
    return frozenset(row[0] for row in rows)


def parent_of(connection: sqlite3.Connection, group: Group, turn_id: str) -> str | None:
    """What the turn follows; None when the conversation has no such turn."""
    row = connection.execute(
        f"SELECT parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} AND id = ?",
        (*group, turn_id),
    ).fetchone()
    return None if row is None else str(row[0])


def parent_for(connection: sqlite3.Connection, group: Group, given: str, replaces: str) -> str:
    """What a new turn follows: the same as `replaces`, else `given`, else the active leaf.

    What is no turn of the conversation, or no longer one, counts as not given.
    """
    beside = parent_of(connection, group, replaces) if replaces else None
    if beside is not None:
        return beside
    if given and parent_of(connection, group, given) is not None:
        return given
    return leaf_of(connection, group)


def _links(connection: sqlite3.Connection, group: Group) -> list[tuple[str, str]]:
    """Id and parent of each turn, the oldest first."""
    return connection.execute(
        f"SELECT id, parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} "
        "ORDER BY created, rowid",
        group,
    ).fetchall()


def _walk(leaf: str, parents: dict[str, str]) -> list[str]:
    """Ids from `leaf` back to the first."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)


def _latest_after(turn_id: str, links: Sequence[tuple[str, str]]) -> str:
    """The latest of those that nothing follows among the turn and all behind it; '' without it."""
    children: dict[str, list[str]] = {turn: [] for turn, _ in links}
    for turn, parent in links:
        children.setdefault(parent, []).append(turn)
    behind, waiting = set(), [turn_id] if turn_id else []
    while waiting:
        turn = waiting.pop()
        if turn not in behind:
            behind.add(turn)
            waiting += children.get(turn, ())
    ends = [turn for turn, _ in links if turn in behind and not children[turn]]
    return ends[-1] if ends else ""
