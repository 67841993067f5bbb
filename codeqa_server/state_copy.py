"""Copy the state from one place to another: `codeqa state copy`."""

from __future__ import annotations

from codeqa.errors import StorageError, UsageError
from codeqa.state.database import NAMES, Database


def copy_state(source: Database, target: Database, replace: bool = False) -> dict[str, int]:
    """Copy all rows as they are now, all or none, and return their number for each table.

    Raises UsageError for a target that holds rows, unless `replace`, and StorageError.
    """
    counts: dict[str, int] = {}
    with source.reading() as there, target.writing() as here:
        for table in NAMES:
            if here.execute(f"SELECT * FROM {table} LIMIT 1").fetchone() and not replace:
                hint = "Name another target, or add --replace to lose what it holds."
                raise UsageError(f"{target.place} is not empty.", hint)
            here.execute(f"DELETE FROM {table}")
        for table in NAMES:
            description = here.execute(f"SELECT * FROM {table} LIMIT 0").description
            names = [column[0] for column in description]
            columns = [name for name in names if name not in ("rowid", "number")]  # own to each
            some, marks, last = ", ".join(columns), ", ".join("?" * len(columns)), 0
            query = f"SELECT rowid, {some} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 200"
            while rows := there.execute(query, (last,)).fetchall():
                for last, *row in rows:  # noqa: B007
                    here.execute(f"INSERT INTO {table} ({some}) VALUES ({marks})", row)
            count = f"SELECT count(*) FROM {table}"
            (counts[table],) = there.execute(count).fetchone()
            if here.execute(count).fetchone() != (counts[table],):
                raise StorageError("Rows were lost while they were copied; nothing was changed.")
    return counts
