"""The reading side of the tables: units, references, files and numbers by what is asked.

A search names rows and scores only: LanceDB reads a row's columns in many small pieces, which
costs more than to find it, so each row is read once for all the searches that found it. To read
the 230 candidates of one search from LanceDB takes 10 to 15 ms of processor time, and each of the
dozen looks for references that a question needs 3 to 8 ms; of a copy in memory nothing needs to be
made anew.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.errors import EmbeddingError, IndexFormatError
from codeqa.store.location import Location
from codeqa.store.reader import Key, Reader, Snapshot, give_back_memory, run_on_loop
from codeqa.store.records import INDEXED, SKIPPED, FileRecord, IndexCounts, columns_of, units_of
from codeqa.store.schema import (
    ALL_ROWS,
    REBUILD_HINT,
    REFERENCE_COLUMNS,
    REFINED,
    UNIT_TABLES,
    EmbeddingRecord,
    Filter,
    Meta,
    all_of,
    one_of,
    plain_path,
    quote,
    record_of,
)
from codeqa.types import TEXT_KINDS, Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MOST_BYTES = 80_000_000
"""Text of all indexed files up to which their units are kept in memory. The copy takes about three
times as much: 85 MB for Jenkins, 28 MB of text in 12,100 files."""

MOST_NAMES = 300_000
"""Definitions whose names are held in memory, 0.25 kB each. Of more a name is looked up in the
tables, and a misspelt one is not repaired."""

NARROWED = 2_000
"""Definitions and files that are read of so many for what is typed behind `@`."""

KEEP_AFTER = 1.0
"""Seconds that a version has been searched before it is copied: a command that searches once is
over by then, and what an indexing run is still writing has another version."""

LOOKED_UP_BY = ("id", "path", "name_key")
"""Columns by whose values units are found in the copy as well."""

NPROBES = 50
"""Partitions searched of a vector index, which has one per 4,096 rows: all of them up to 200,000
rows. Of 16 partitions 8 hold only 91 % of the 70 nearest units of a question."""

REFINE = 2
"""Candidates that are compared exactly, as a multiple of the limit, where some rows are not in
the index yet. Where all are the index's own distances do: 8 bits a dimension, .0007 off, 99 of
the 100 nearest; to refine them would take 2 ms more of a table's 2 ms."""

DEFINITION_COLUMNS = ("path", "name", "qualified_name", "kind", "role", "start_line", "end_line")
REMEMBERED = 32
"""Answers about references that are kept: what calls a definition and what it calls are looked up
for several units of a question, in the same files and under the same names."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextSearch:
    """BM25 over `search_text`: units of `table` that hold any token of `query`."""

    table: str
    query: str
    """Tokens joined by blanks (`tokens.search_tokens`); any text is safe."""
    limit: int
    where: Filter | None = None


@dataclass(frozen=True, slots=True)
class VectorSearch:
    """Units of `table` whose `column` lies nearest to `vector`; those without one are left out."""

    table: str
    column: str
    vector: np.ndarray
    limit: int
    where: Filter | None = None


class Tables:
    """One repository's index, for reading.

    To open it raises IndexMissingError when nothing was indexed and IndexFormatError when the
    index is of another format or damaged.
    """

    def __init__(self, location: Location, reader: Reader | None = None) -> None:
        self.location = location
        self._reader = reader or Reader(location)
        self._cache = CopyCache()
        self._catalogue: tuple[object, Catalogue] | None = None

    def meta(self) -> Meta:
        """The database's account of itself, at most `reader.READ_INTERVAL` old."""
        return self._reader.snapshot().meta

    def version(self) -> object:
        """Equal as long as nothing was written; as old as what is asked now."""
        return self._reader.snapshot().key

    @property
    def notices(self) -> tuple[str, ...]:
        """What every answer from here must say, as sentences."""
        return ()

    def around(self, path: str) -> Tables:
        """What holds all that code in `path` can refer to by name: its repository."""
        return self

    def place_of(self, path: str) -> tuple[Path, str]:
        """The folder of the repository that `path` lies in, and the path there.

        Raises NotFoundError where that is not one repository.
        """
        return self.location.root, path

    def plain_path(self, written: str) -> str:
        """Return a path, as people and models write it, as the index has it: '' for the root."""
        if written in self.catalogue().paths:
            return written
        return plain_path(written, self.location.root)

    def plain_filter(self, where: Filter) -> Filter:
        """Return `where` with its paths as the index has them; the root restricts nothing."""
        return replace(
            where,
            paths=tuple(filter(None, map(self.plain_path, where.paths))),
            excluded_paths=tuple(filter(None, map(self.plain_path, where.excluded_paths))),
        )

    def look_again(self) -> None:
        """See at the next question what was written until now, however short ago."""
        self._reader.look_again()

    # Units

    def find(self, search: TextSearch | VectorSearch) -> list[tuple[Unit, float]]:
        """What one search finds, best first."""
        return self.best([search])[0]

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[list[tuple[Unit, float]]]:
        """What each of `searches` finds, best first, all asked at the same time.

        Raises IndexFormatError when a vector does not have its column's dimension.
        """

        async def action(snapshot: Snapshot) -> list[list[tuple[Unit, float]]]:
            found = await asyncio.gather(
                *(scored(snapshot, one, self._sql(one.where)) for one in searches)
            )
            asked = list(zip(searches, found, strict=True))
            if copy := self._cache.of(snapshot):
                return [_ranked(rows, copy.units[one.table].units) for one, rows in asked]
            wanted: dict[str, set[int]] = {table: set() for table in UNIT_TABLES}
            for one, rows in asked:
                wanted[one.table] |= rows.keys()
            units = await read_units(snapshot, wanted)
            return [_ranked(rows, units[one.table]) for one, rows in asked]

        return self._reader.ask(action)

    def named(
        self, keys: Sequence[str], limit: int = 200, where: Filter | None = None
    ) -> list[Unit]:
        """Units of both tables whose name has one of `keys` (`tokens.name_key`)."""
        return self._having("name_key", keys, limit, where)

    def in_file(self, path: str) -> list[Unit]:
        """Units of one file, by line."""
        return self._having("path", [path])

    def by_ids(self, ids: Sequence[str]) -> list[Unit]:
        """Units with these ids, in the order of `ids`; unknown ids are left out."""
        found = {unit.id: unit for unit in self._having("id", ids)}
        return [found[identity] for identity in dict.fromkeys(ids) if identity in found]

    def units(self, where: Filter | None = None) -> list[Unit]:
        """All units that `where` lets through, by path and line; holds them all in memory."""
        return self._units(self._sql(where))

    def _sql(self, where: Filter | None) -> str:
        """`where` as a condition on the rows, '' for none."""
        return self._reader.scope.filtered(where).sql() if where else ""

    def _having(
        self, column: str, values: Sequence[str], limit: int = ALL_ROWS, where: Filter | None = None
    ) -> list[Unit]:
        if not values:
            return []
        narrowed = self._sql(where)
        if not narrowed and (copy := self._cache.of(self._reader.snapshot())):
            tables = copy.units.values()
            found = [one for own in tables for one in own.having(column, values, limit)]
            return _placed(found)[:limit]
        return self._units(all_of(self._reader.one_of(column, values), narrowed), limit)

    def _units(self, condition: str, limit: int = ALL_ROWS) -> list[Unit]:
        units = [
            unit
            for table in UNIT_TABLES
            for unit in units_of(self._reader.arrow(table, columns_of(table), condition, limit))
        ]
        return _placed(units)[:limit]

    # References

    def references(self, *, limit: int = ALL_ROWS, **wanted: Sequence[str]) -> list[Reference]:
        """Up to `limit` references that have in each of these columns one of the values, by place:
        `references(name=["run"], path=["a.py"])`."""
        copy = self._cache.of(self._reader.snapshot())
        if copy and not wanted.keys().isdisjoint(CachedReferences.LOOKED_UP_BY):
            return copy.references.having(wanted, limit)
        condition = all_of(*starmap(self._reader.one_of, wanted.items()))
        return list(self.catalogue().references(condition, limit))

    def imported(self, limit: int) -> set[tuple[str, str, str]]:
        """Up to `limit` places that name something of another module, each as (path, name, module
        without the class in it)."""
        columns = ("path", "name", "module")
        rows = self._reader.arrow("edges", columns, "module != ''", limit).to_pylist()
        return {(one["path"], one["name"], one["module"].partition("#")[0]) for one in rows}

    def reference_rows(self, columns: Sequence[str], limit: int) -> pa.Table:
        """These columns of up to `limit` references, in no order."""
        return self._reader.arrow("edges", columns, "", limit)

    # Files and numbers

    def files(self) -> list[FileRecord]:
        """The manifest by path: indexed and skipped files."""
        rows = self.catalogue().manifest.to_pylist()
        return sorted((FileRecord(**row) for row in rows), key=lambda record: record.path)

    def skipped(self) -> list[FileRecord]:
        """The rows of the manifest that are of skipped files, by path."""
        return self.catalogue().skipped

    def indexed_files(self, where: Filter, limit: int = ALL_ROWS) -> list[FileRecord]:
        """Up to `limit` of the indexed files that `where`, which has no kinds, lets through."""
        if where.roles and where == Filter(roles=where.roles):  # as every question asks
            import pyarrow.compute as pc

            role = pc.field("role").isin(list(where.roles))
            rows = self.catalogue().files.filter(role).slice(0, limit)
        else:
            condition = all_of(f"status = {quote(INDEXED)}", self._sql(where))
            rows = self._reader.arrow("files", FileRecord.__slots__, condition, limit)
        return [FileRecord(**row) for row in rows.to_pylist()]

    def file(self, path: str) -> FileRecord | None:
        """The manifest's row of `path`; None when it is unknown."""
        return self.files_at([path]).get(path)

    def files_at(self, paths: Sequence[str]) -> dict[str, FileRecord]:
        """The manifest's rows of several files by path; unknown ones are left out."""
        return self.catalogue().records(paths) if paths else {}

    def counts(self) -> IndexCounts:
        """What the index holds; remembered until a table changes."""
        return self.catalogue().counts

    def catalogue(self) -> Catalogue:
        """All paths, languages and names, in memory; remembered until a table changes."""
        snapshot = self._reader.snapshot()
        key = (snapshot.key, snapshot.meta.vector, snapshot.meta.refined)
        known = self._catalogue
        if known is None or known[0] != key:
            self._catalogue = known = (key, Catalogue(self._reader))
        return known[1]

    def holds(self, where: Filter) -> bool:
        """Whether `where` lets any unit through."""
        condition = self._sql(where)
        found = (self._reader.arrow(table, ("id",), condition, 1) for table in UNIT_TABLES)
        return any(rows.num_rows for rows in found)

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """Columns that hold vectors, each with the embedding that made them.

        A column of the fast embedding in another version than this one is left out: its
        vectors cannot be compared with a question's. The next indexing run rebuilds it.
        """
        from codeqa.embeddings.registry import fast_embedding

        meta = self.meta()
        try:
            fast = record_of(fast_embedding())
        except EmbeddingError:
            fast = None  # whoever asks for its query side hears why
        columns = {"vector": meta.vector, REFINED: meta.refined}
        if fast and meta.vector and fast.name == meta.vector.name and fast != meta.vector:
            del columns["vector"]
        return [(column, record) for column, record in columns.items() if record]


def _ranked(scores: dict[int, float], units: dict[int, Unit]) -> list[tuple[Unit, float]]:
    """Best first; equal scores by place, so that the same index gives the same list."""
    found = [(units[row], score) for row, score in scores.items() if row in units]
    return sorted(found, key=lambda pair: (-pair[1], pair[0].path, pair[0].start_line))


def _placed(units: list[Unit]) -> list[Unit]:
    """By path and line, so that the same index gives the same list."""
    return sorted(units, key=lambda unit: (unit.path, unit.start_line, -unit.end_line, unit.id))


def open_once(location: Location) -> Callable[[], Tables]:
    """Give a function that opens the index on its first call and hands out the same tables ever
    after. It raises what `Tables` does, until the index is there."""
    return functools.cache(lambda: Tables(location))


async def scored(
    snapshot: Snapshot, search: TextSearch | VectorSearch, condition: str
) -> dict[int, float]:
    """Row id → score of what `search` finds where `condition` holds: BM25, or 1 - cosine distance.

    Raises IndexFormatError when a vector does not have its column's dimension.
    """
    query: Any = snapshot.tables[search.table].query()
    whole = False
    if search.limit < 1:
        return {}
    if isinstance(search, TextSearch):
        from lancedb.query import MatchQuery

        if not search.query.strip():
            return {}
        match: Any = MatchQuery
        query, column = query.nearest_to_text(match(search.query, "search_text")), "_score"
    else:
        record = snapshot.meta.vector if search.column == "vector" else snapshot.meta.refined
        if record is None or not search.vector.any():
            return {}
        if search.vector.shape != (record.dimension,):
            raise IndexFormatError(
                f"The question's vector has {search.vector.size} dimensions, "
                f"the index holds vectors of {record}.",
                REBUILD_HINT,
            )
        # Of a million rows the index alone finds .954 of the ten nearest, refined .996.
        whole = (search.table, search.column) in snapshot.indexed and not snapshot.scope.names
        query = query.nearest_to(search.vector.astype("float32")).column(search.column)
        query, column = query.distance_type("cosine").nprobes(NPROBES), "_distance"
        if snapshot.scope.names:  # whose rows may lie in other partitions than the nearest
            query = query.maximum_nprobes(0)
        query = query if whole else query.refine_factor(REFINE)
    if condition := all_of(snapshot.scope.condition, condition):
        query = query.where(condition)
    rows = await query.select([column]).with_row_id().limit(search.limit).to_arrow()
    found = zip(rows["_rowid"].to_pylist(), rows[column].to_pylist(), strict=True)
    if column == "_score":
        return dict(found)
    # IVF_SQ gives the squared distance of the unit vectors, which is twice the cosine distance.
    part = 0.5 if whole else 1.0
    return {row: 1.0 - part * distance for row, distance in found if distance is not None}


async def read_units(
    snapshot: Snapshot, wanted: Mapping[str, Iterable[int]]
) -> dict[str, dict[int, Unit]]:
    """Table → row id → unit, read from the tables."""

    async def read(table: str, rows: Iterable[int]) -> dict[int, Unit]:
        if not (places := sorted(rows)):
            return {}
        query = snapshot.tables[table].take_row_ids(places).select(list(columns_of(table)))
        found = snapshot.scope.told(await query.with_row_id().to_arrow())
        return dict(zip(found["_rowid"].to_pylist(), units_of(found), strict=True))

    units = await asyncio.gather(*(read(table, rows) for table, rows in wanted.items()))
    return dict(zip(wanted, units, strict=True))


class CopyCache:
    """A copy of the version that is searched, made in the background once that pays; another
    version has it put away."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: Key | None = None
        self._first = 0.0
        """When this version was first searched; infinite once copying it has begun."""
        self._copy: Copy | None = None

    def of(self, snapshot: Snapshot) -> Copy | None:
        """The copy of exactly this snapshot; None while there is none."""
        with self._lock:
            now = time.monotonic()
            if self._key != snapshot.key:
                # Also by a search that is late with an older version: the newer is copied again.
                self._key, self._first, self._copy = snapshot.key, now, None
            elif now - self._first >= KEEP_AFTER:
                self._first = math.inf
                threading.Thread(target=self._fill, args=(snapshot,), name="copy").start()
            return self._copy

    def _fill(self, snapshot: Snapshot) -> None:
        """Read all of it unless that is too much: 0.4 s for 60,000 units."""
        try:
            rows = run_on_loop(_all_rows(snapshot))
        except Exception:  # a rebuild dropped its tables; searches read LanceDB as before
            _log.debug("the index was not copied into memory", exc_info=True)
            return
        if rows:
            references = CachedReferences(rows.pop("edges"))
            copy = Copy({table: CachedUnits(own) for table, own in rows.items()}, references)
            with self._lock:
                if self._key == snapshot.key:
                    self._copy = copy
        give_back_memory()  # what was only read to be copied


async def _all_rows(snapshot: Snapshot) -> dict[str, pa.Table]:
    files = await snapshot.rows("files", ["size"], f"status = {quote(INDEXED)}")
    if sum(files["size"].to_pylist()) > MOST_BYTES:
        return {}
    wanted = {one: [*columns_of(one), "name_key"] for one in UNIT_TABLES}
    wanted["edges"] = [*REFERENCE_COLUMNS]
    read = (snapshot.rows(one, columns, ids=True) for one, columns in wanted.items())
    return dict(zip(wanted, await asyncio.gather(*read), strict=True))


@dataclass(frozen=True, slots=True)
class Copy:
    """One version of an index in memory."""

    units: Mapping[str, CachedUnits]
    """By their table."""
    references: CachedReferences


class CachedUnits:
    """The units of one table, by row id and by what they are looked up by."""

    def __init__(self, rows: pa.Table) -> None:
        ids = rows["_rowid"].to_pylist()
        self.units = dict(zip(ids, units_of(rows), strict=True))
        self._rows: dict[str, dict[str, list[int]]] = {}
        for column in LOOKED_UP_BY:
            own = self._rows[column] = {}
            for row, value in zip(ids, rows[column].to_pylist(), strict=True):
                own.setdefault(value, []).append(row)

    def having(self, column: str, values: Sequence[str], limit: int) -> list[Unit]:
        """The first units with one of `values` in `column`, which is one of LOOKED_UP_BY."""
        known = self._rows[column]
        rows = sorted(row for value in set(values) for row in known.get(value, ()))
        return [self.units[row] for row in rows[:limit]]


class CachedReferences:
    """The references of one version, in columns, each text held once."""

    LOOKED_UP_BY = ("path", "name")

    def __init__(self, rows: pa.Table) -> None:
        import numpy as np
        import pyarrow as pa

        self._plain = rows.select(REFERENCE_COLUMNS).schema
        held = [one.dictionary_encode() if one.type == pa.string() else one for one in rows.columns]
        rows = pa.table(held, rows.column_names).combine_chunks().unify_dictionaries()
        self._rows = rows.select(REFERENCE_COLUMNS)
        self._places: dict[str, dict[str, np.ndarray]] = {}
        for column in self.LOOKED_UP_BY:
            texts = rows[column].combine_chunks()
            values = texts.dictionary.to_pylist()
            codes = texts.indices.to_numpy()
            order = np.lexsort((rows["_rowid"].to_numpy(), codes))
            ends = np.bincount(codes, minlength=len(values)).cumsum()
            self._places[column] = dict(zip(values, np.split(order, ends[:-1]), strict=False))

    def having(self, wanted: Mapping[str, Sequence[str]], limit: int) -> list[Reference]:
        """The first references that have in each column one of the values, by place; one of the
        columns at least is one of LOOKED_UP_BY."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        first = next(column for column in self.LOOKED_UP_BY if column in wanted)
        known = self._places[first]
        found = [known[value] for value in {*wanted[first]} if value in known]
        if not found:
            return []
        rows = self._rows.take(pa.array(np.concatenate(found))).cast(self._plain)
        for column in wanted.keys() - {first}:
            rows = rows.filter(pc.field(column).isin([*wanted[column]]))
        return _by_place(rows.slice(0, limit))


class Catalogue:
    """What one version of an index holds; each part is read when it is first asked for.

    A hundred thousand names take 25 MB, as many files 60 MB: names are bounded by MOST_NAMES.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # Of the reader alone: what refers to itself keeps its memory until Python looks for that.
        self.references = functools.lru_cache(REMEMBERED)(functools.partial(_references, reader))

    @functools.cached_property
    def counts(self) -> IndexCounts:
        """How much it is."""
        return self._reader.ask(_count)

    @functools.cached_property
    def paths(self) -> frozenset[str]:
        """Every indexed file."""
        return frozenset(self.files["path"].to_pylist())

    @functools.cached_property
    def by_file_name(self) -> Mapping[str, Sequence[str]]:
        """The paths of the indexed files that are called so, whatever folder they are in."""
        found: dict[str, list[str]] = {}
        for path in self.paths:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    @functools.cached_property
    def languages(self) -> frozenset[str]:
        """Languages that at least one indexed file is written in."""
        return frozenset(self.files["language"].unique().to_pylist()) - {""}

    @functools.cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds an indexed file at any depth, with a `/` at the end."""
        found: set[str] = set()
        for path in self.paths:
            folder = path.rpartition("/")[0]
            while folder and folder + "/" not in found:
                found.add(folder + "/")
                folder = folder.rpartition("/")[0]
        return frozenset(found)

    @functools.cached_property
    def names(self) -> Mapping[str, Sequence[str]]:
        """Key (`tokens.name_key`) → the names of definitions that have it; none where `large`."""
        if self.large:
            return {}
        rows = self._defined(("name", "name_key")).group_by(["name", "name_key"]).aggregate([])
        found: dict[str, list[str]] = {}
        for name, key in zip(rows["name"].to_pylist(), rows["name_key"].to_pylist(), strict=True):
            found.setdefault(key, []).append(name)
        return found

    @property
    def large(self) -> bool:
        """There are more definitions than are held in memory."""
        return self.counts.methods + self.counts.classes > MOST_NAMES

    def roles(self, holding: str = "") -> dict[str, str]:
        """What each indexed file is for; where `large`, of some whose path is `holding` that."""
        files = self.files
        if self.large:
            import pyarrow.compute as pc

            near = pc.match_substring(files["path"], holding, ignore_case=True)
            files = files.filter(near).slice(0, NARROWED)
        return dict(zip(files["path"].to_pylist(), files["role"].to_pylist(), strict=True))

    def definitions(self, holding: str = "") -> pa.Table:
        """Name and place of every definition: DEFINITION_COLUMNS, in no order; where `large`, of
        some whose name is `holding` that.

        Read at each call: 0.1 s for a hundred thousand, which take 20 MB.
        """
        if not self.large:
            return self._defined(DEFINITION_COLUMNS)
        narrowed = f"contains(lower(name), {quote(holding.lower())})"
        return self._defined(DEFINITION_COLUMNS, narrowed, NARROWED)

    def _defined(
        self, columns: Sequence[str], narrowed: str = "", limit: int = ALL_ROWS
    ) -> pa.Table:
        import pyarrow as pa

        condition = all_of(f"NOT ({one_of('kind', sorted(TEXT_KINDS))})", narrowed)
        return pa.concat_tables(
            [self._reader.arrow(table, columns, condition, limit) for table in UNIT_TABLES]
        )

    def records(self, paths: Iterable[str]) -> dict[str, FileRecord]:
        """The manifest's rows of `paths`; unknown ones are left out."""
        import pyarrow as pa

        places = sorted({self._rows[path] for path in paths if path in self._rows})
        rows = self.manifest.take(pa.array(places, pa.int64())).to_pylist()
        return {row["path"]: FileRecord(**row) for row in rows}

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {path: row for row, path in enumerate(self.manifest["path"].to_pylist())}

    @functools.cached_property
    def manifest(self) -> pa.Table:
        """A row for each indexed or skipped file, as `FileRecord`."""
        return self._reader.arrow("files", FileRecord.__slots__).combine_chunks()

    @functools.cached_property
    def files(self) -> pa.Table:
        """The rows of the manifest that are of indexed files."""
        import pyarrow.compute as pc

        return self.manifest.filter(pc.field("status") == INDEXED)

    @functools.cached_property
    def skipped(self) -> list[FileRecord]:
        """Those of skipped files, by path."""
        import pyarrow.compute as pc

        rows = self.manifest.filter(pc.field("status") == SKIPPED).to_pylist()
        return sorted((FileRecord(**row) for row in rows), key=lambda record: record.path)


def _references(reader: Reader, condition: str, limit: int) -> tuple[Reference, ...]:
    """References that meet `condition`, by place."""
    return tuple(_by_place(reader.arrow("edges", REFERENCE_COLUMNS, condition, limit)))


def _by_place(rows: pa.Table) -> list[Reference]:
    """The reference of each of `rows`, by place."""
    found = list(map(Reference, *(rows[name].to_pylist() for name in REFERENCE_COLUMNS)))
    return sorted(found, key=lambda one: (one.path, one.line, one.column, one.kind))


async def _count(snapshot: Snapshot) -> IndexCounts:
    async def rows(table: str, where: str = "") -> int:
        condition = all_of(snapshot.scope.condition, where)
        return int(await snapshot.tables[table].count_rows(condition or None))

    async def vectors(column: str, record: EmbeddingRecord | None) -> int:
        where = f"{column} IS NOT NULL"
        return sum([await rows(table, where) for table in UNIT_TABLES]) if record else 0

    documents = await rows("classes", one_of("kind", sorted(TEXT_KINDS)))
    return IndexCounts(
        files=await rows("files", f"status = {quote(INDEXED)}"),
        methods=await rows("methods"),
        classes=await rows("classes") - documents,
        documents=documents,
        references=await rows("edges"),
        embedded=await vectors("vector", snapshot.meta.vector),
        refined=await vectors(REFINED, snapshot.meta.refined),
    )


def nearest(names: Mapping[str, Sequence[str]], key: str, most: int) -> list[str]:
    """Of `names` by their keys those whose key is fewest edits, at most `most`, from `key`.

    An edit inserts, deletes or replaces a letter or swaps two neighbours. Names of equal
    distance come with those first that begin as `key` does, then by the alphabet.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    known = [*filter(None, names)]
    alike = process.extract(key, known, scorer=OSA.distance, score_cutoff=most, limit=None)
    least = min((distance for _, distance, _ in alike), default=0)
    best = [one for one, distance, _ in alike if distance == least]
    best.sort(key=lambda one: (one[0] != key[0], one))
    return [name for one in best for name in sorted(names[one])]
