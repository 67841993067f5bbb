"""Many repositories in one set of tables: what is copied there of each one's own index.

Its rows lie there as they do in their own tables, vectors included, but that each has the end of
its repository's id in a column, by which searches are narrowed before they begin, and before its
paths and ids, where who asks reads a name (`reader.Scope`). What is copied is a copy: a file is
replaced when it, a description or a vector of it differs, in the write order of `writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError
from codeqa.store.location import Location, connect
from codeqa.store.reader import Reader
from codeqa.store.records import FileRecord, first_edge
from codeqa.store.schema import (
    ALL_ROWS,
    PREFIXED,
    REFINED,
    REPOSITORY,
    TABLES,
    UNIT_TABLES,
    Copied,
    one_of,
    quote,
    read_meta,
    record_of,
)
from codeqa.store.writer import Writer, existing_tables, tidy_tables
from codeqa.types import Progress

if TYPE_CHECKING:
    import pyarrow as pa

COMMIT_EDGES = 100_000
"""References, of which there are most, that are committed together, of one repository or many."""
COMMIT_FILES = 1_000
"""Files that are read together, at most: they are named in one condition."""
_Rows = dict[str, "pa.Table"]
LAYOUT = "2"
"""Raised whenever rows of a collection become others than before: it is then filled anew."""


def stamp_of(location: Location) -> int:
    """What is another number after each run over that index; 0 where there is none."""
    last = location.folder / "progress.json"
    if location.tables_are_local:
        last = Path(location.tables) / "meta.lance/_versions"
    try:
        return last.stat().st_mtime_ns
    except OSError:
        return 0


def stale(held: Mapping[str, Copied], asked: Mapping[str, Location]) -> list[str]:
    """Those of `asked` whose own indices hold something else than was copied of them."""
    return [
        one
        for one, location in asked.items()
        if one not in held or not 0 < held[one].stamp == stamp_of(location)
    ]


def fill(
    collection: Location,
    asked: Mapping[str, Location],
    known: Container[str],
    embedding: str,
    progress: Callable[[Progress], None],
) -> dict[str, str]:
    """Bring what `collection` holds of the repositories `asked` up to their own indices, and remove
    what is of none that is `known`. Gives why some could not be read.

    Repositories are named by what they have in REPOSITORY; `embedding` is the name of the one that
    the user chose, '' for none. Who calls holds the index of the collection. Indices are only built
    with the first rows; later `tidy` does. Raises what `progress` and LanceDB raise; what was
    committed stays valid.
    """
    vector = record_of(fast_embedding())
    writer = Writer.open(collection, LAYOUT, vector, collection=True)
    before = {} if writer.fresh else writer.meta.members
    gone = [one for one in before if one not in known]
    wanted = stale(before, asked)
    if not (wanted or gone or writer.meta.dirty):
        return {}
    if writer.meta.dirty and not writer.fresh:
        writer.begin(writer.manifest())
    held = {one: copied for one, copied in before.items() if one in known}
    held |= {one: replace(held.get(one, Copied()), stamp=0) for one in wanted}
    # From now on they are there, in part, also when this is killed.
    writer.update_meta(dirty=True, members=held)
    for handle in writer.tables.values() if gone else ():
        handle.delete(one_of(REPOSITORY, gone))
    waiting, left_out = list[_Rows](), dict[str, str]()
    for number, one in enumerate(wanted):
        # Without its name: others ask other repositories, and see how far this is.
        progress(Progress("putting repositories together", number, len(wanted)))
        stamp = stamp_of(asked[one])
        try:
            own = Reader(asked[one])
            meta = own.snapshot().meta
            record, ours = meta.refined, writer.meta.refined
            if record and record != ours and (ours is None or record.name == embedding):
                _commit(writer, waiting)
                writer.refine_with(record)
                # Of the others those vectors are gone: all of them are looked at again.
                held = {key: replace(each, stamp=0, columns=()) for key, each in held.items()}
            made = {"vector": (meta.vector, vector), REFINED: (record, writer.meta.refined)}
            columns = tuple(key for key, (has, ours) in made.items() if has and has == ours)
            for rows in _changed(writer, own, one, columns, new=one not in before):
                waiting.append(rows)
                if sum(len(each["edges"]) for each in waiting) >= COMMIT_EDGES:
                    _commit(writer, waiting)
        except CodeQAError as error:
            left_out[one] = str(error)
            continue
        done = meta.complete and not meta.dirty
        held[one] = Copied(stamp if done else 0, meta.complete, meta.expected, columns)
    _commit(writer, waiting)
    if writer.first_build:
        progress(Progress("building the text index", 0, 0))
        writer.tidy()
    if gone:
        writer.forget_old_versions()
    writer.update_meta(members=held)
    writer.finish(0, LAYOUT, vector)
    return left_out


def tidy(collection: Location) -> None:
    """Build the indices of `collection` anew and merge its fragments, where that pays; rows may be
    copied meanwhile. Raises what LanceDB raises when that is in the way."""
    database = connect(collection, read_consistency_interval=timedelta(0))
    if meta := read_meta(database):
        tidy_tables(database, existing_tables(database, meta.generation))


def _commit(writer: Writer, waiting: list[_Rows]) -> None:
    import pyarrow as pa

    if waiting:
        rows = {table: pa.concat_tables([one[table] for one in waiting]) for table in TABLES}
        paths = rows["files"]["path"].to_pylist()
        writer.copy(rows, [path for path in paths if path in writer.known])
        waiting.clear()


def _changed(
    writer: Writer, own: Reader, one: str, columns: Sequence[str], *, new: bool
) -> Iterator[_Rows]:
    """What differs between a repository's `own` index and the rows of `one`, some files at a time;
    what is gone is removed."""
    changed, gone = set[str](), set[str]()
    for table in ("files", *UNIT_TABLES):
        wanted: dict[str, Any] = {key: f"`{key}`" for key in FileRecord.__slots__}
        if table in UNIT_TABLES:
            wanted = {key: key for key in ("path", "id", "llm_comment")}
            wanted |= {key: f"{key} IS NOT NULL" for key in columns}
        here = _prefixed(own.arrow(table, wanted), one)
        there = here.slice(0, 0)
        if not new:
            query = writer.tables[table].search().where(f"{REPOSITORY} = {quote(one)}")
            there = query.select(wanted).limit(ALL_ROWS).to_arrow()
        keys = [*wanted]
        changed |= {*here.join(there, keys, join_type="left anti")["path"].to_pylist()}
        gone |= {*there.join(here, keys, join_type="left anti")["path"].to_pylist()}
        if table == "files":
            present = {*here["path"].to_pylist()}
            writer.known |= {*there["path"].to_pylist()}
    writer.remove(sorted(gone - present))
    paths = sorted(changed | gone & present)
    for at in range(0, len(paths), COMMIT_FILES):
        part = paths[at : at + COMMIT_FILES]
        inside = one_of("path", (path[len(one) + 1 :] for path in part))
        inside = "" if len(part) == len(present) else inside
        # The manifest first: what is written meanwhile then differs from it, and is copied next.
        yield {table: _rows(writer, own, table, inside, one, columns) for table in TABLES[::-1]}


def _rows(
    writer: Writer, own: Reader, table: str, inside: str, one: str, columns: Sequence[str]
) -> pa.Table:
    """The rows of `table` that are `inside`, as the collection has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schema = writer.tables[table].schema
    left = {REPOSITORY, "vector", REFINED}.difference(columns).intersection(schema.names)
    rows = own.arrow(table, [key for key in schema.names if key not in left], inside)
    rows = _prefixed(rows, one)
    if table == "edges":  # numbered by their paths, which others have as well
        rows = rows.set_column(0, "id", pc.bit_wise_xor(rows["id"], first_edge(one)))
    for key in left:
        kind = schema.field(key).type
        given = pa.repeat(one, len(rows)) if key == REPOSITORY else pa.nulls(len(rows), kind)
        rows = rows.append_column(key, given)
    return rows.select(schema.names).cast(schema)


def _prefixed(rows: pa.Table, one: str) -> pa.Table:
    """`rows` with paths and ids as the collection has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, column in enumerate(rows.schema):
        if column.name in PREFIXED and column.type == pa.string():
            joined = pc.binary_join_element_wise(one, rows[place], "/")
            joined = pc.if_else(pc.equal(rows[place], ""), "", joined)
            rows = rows.set_column(place, column, joined)
    return rows
