"""Branches as SQL and lists of links: what stands before a turn, and what follows it.

Only ids and parents are read for this, from an index that holds nothing else: the rows of the
turns carry whole contexts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from codeqa.state.records import Group

OF_GROUP = "user = ? AND repository = ? AND conversation = ?"
PATH = (
    f"WITH RECURSIVE path (id, parent) AS ("
    f"SELECT id, parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} AND id = ? "
    f"UNION SELECT before.id, before.parent FROM path "
    f"CROSS JOIN turn AS before INDEXED BY turn_branch "
    f"ON {OF_GROUP} AND before.id = path.parent LIMIT ?) "
)
"""The turns from a leaf backwards, as a table; `UNION` ends it even if a damaged file goes in
circles. Its parameters are those of `path_parameters`."""


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
    if _parent_of(connection, group, row[0]) is not None:
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


def parent_for(connection: sqlite3.Connection, group: Group, given: str, replaces: str) -> str:
    """What a new turn follows: the same as `replaces`, else `given`, else the active leaf.

    What is no turn of the conversation, or no longer one, counts as not given.
    """
    beside = _parent_of(connection, group, replaces) if replaces else None
    if beside is not None:
        return beside
    if given and _parent_of(connection, group, given) is not None:
        return given
    return leaf_of(connection, group)


def _parent_of(connection: sqlite3.Connection, group: Group, turn_id: str) -> str | None:
    """What the turn follows; None when the conversation has no such turn."""
    row = connection.execute(
        f"SELECT parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} AND id = ?",
        (*group, turn_id),
    ).fetchone()
    return None if row is None else str(row[0])


def links_of(connection: sqlite3.Connection, group: Group) -> list[tuple[str, str]]:
    """Id and parent of each turn, the oldest first."""
    return connection.execute(
        f"SELECT id, parent FROM turn INDEXED BY turn_branch WHERE {OF_GROUP} "
        "ORDER BY created, rowid",
        group,
    ).fetchall()


def path_to(leaf: str, parents: dict[str, str]) -> list[str]:
    """Ids from the first turn to `leaf`."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


def latest_after(turn_id: str, links: Sequence[tuple[str, str]]) -> str:
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
