"""The indices of several repositories, read as one.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. Whatever reads an
index can read this.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from codeqa.errors import IndexFormatError, IndexMissingError, NotFoundError
from codeqa.store.catalogue import Catalogue
from codeqa.store.filters import Filter
from codeqa.store.location import Location
from codeqa.store.lookups import TextSearch, VectorSearch
from codeqa.store.meta import EmbeddingRecord, Meta
from codeqa.store.records import FileRecord, IndexCounts
from codeqa.store.schema import ALL_ROWS
from codeqa.store.tables import Tables
from codeqa.text import counted
from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import pyarrow as pa

SEARCHED = 3
"""Repositories that are searched for a question that is asked of more: those with the files nearest
to it, by the vectors. To search one takes 6 ms of processor time, to see how near it is .05 ms."""
LOOK_INTERVAL = 0.04
"""Seconds for each repository until all of them are looked at for new commits, which takes .2 ms
each; one that is searched is looked at every `reader.READ_INTERVAL` besides."""
ID_SEPARATOR = "~"
"""Between the ends of their ids: `3fa2b1c0~8d21e6aa` stands for two repositories."""

T = TypeVar("T")


class Member:
    """One of the repositories, under the name that its paths begin with."""

    def __init__(self, name: str, tables: Tables) -> None:
        self.name, self.tables = name, tables

    def joined(self, path: str) -> str:
        return path and f"{self.name}/{path}"

    def own(self, keys: Iterable[str]) -> list[str]:
        """Those of `keys`, paths or ids, that are of this repository, as it has them."""
        start = f"{self.name}/"
        return [key.removeprefix(start) for key in keys if key.startswith(start)]

    def unit(self, unit: Unit) -> Unit:
        return replace(unit, path=self.joined(unit.path), id=self.joined(unit.id))

    def reference(self, place: Reference) -> Reference:
        unit, target = self.joined(place.unit_id), self.joined(place.target)
        return replace(place, path=self.joined(place.path), unit_id=unit, target=target)

    def rows(self, rows: pa.Table) -> pa.Table:
        import pyarrow.compute as pc

        place = rows.schema.get_field_index("path")
        if place < 0:
            return rows
        paths = pc.binary_join_element_wise(self.name, rows["path"], "/")
        return rows.set_column(place, "path", paths)


class MultiRepoCatalogue(Catalogue):
    """The catalogues of several repositories, with joined paths."""

    def __init__(self, parts: Mapping[Member, Catalogue]) -> None:
        self.parts = parts

    @cached_property
    def counts(self) -> IndexCounts:
        each = [astuple(own.counts) for own in self.parts.values()]
        return IndexCounts(*map(sum, zip(*each, strict=True)))

    @cached_property
    def manifest(self) -> pa.Table:
        import pyarrow as pa

        every = [member.rows(own.manifest) for member, own in self.parts.items()]
        return pa.concat_tables(every).combine_chunks()

    def _defined(self, columns: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables([m.rows(own._defined(columns)) for m, own in self.parts.items()])


class MultiRepoTables(Tables):
    """What the indices of several repositories hold, for reading."""

    def __init__(self, location: Location, members: Iterable[Member]) -> None:
        self.location = location
        self.members = {member.name: member for member in members}
        self.left_out: dict[str, str] = {}
        """Name of a repository that cannot be read → why."""
        self._joined: MultiRepoCatalogue | None = None
        self._seen: dict[Member, tuple[Meta, list[tuple[str, EmbeddingRecord]]]] = {}
        self._looked = 0.0

    @property
    def notices(self) -> tuple[str, ...]:
        told = [f"{name} is left out. {why}" for name, why in sorted(self.left_out.items())]
        gone = self.location.id.count(ID_SEPARATOR) + 1 - len(self.members) - len(self.left_out)
        if gone > 0:
            told.append(f"{counted(gone, 'repository', 'repositories')} of before: no index now.")
        for member, (meta, _) in self._seen.items():
            if member.name in self.members and not meta.complete:
                files, name = member.tables.counts().files, member.name
                told.append(f"Of {name} {files:,} of {meta.expected:,} files are indexed so far.")
        return tuple(told)

    def around(self, path: str) -> Tables:
        member = self.members.get(path.partition("/")[0])
        return MultiRepoTables(self.location, [member]) if member else self

    def place_of(self, path: str) -> tuple[Path, str]:
        name, _, inside = path.partition("/")
        if name not in self.members:
            raise NotFoundError(
                "That is asked of one repository at a time.",
                f"Here are several: {', '.join(self.members)}.",
            )
        return self.members[name].tables.place_of(inside)

    def meta(self) -> Meta:
        self.catalogue()
        # What is not complete is told by name, in `notices`.
        return replace(next(iter(self._seen.values()))[0], complete=True)

    def version(self) -> object:
        return self.catalogue()

    def look_again(self) -> None:
        self._looked = 0.0
        for member in list(self.members.values()):
            member.tables.look_again()

    # Units

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[list[tuple[Unit, float]]]:
        merged: list[list[tuple[float, Member, Unit]]] = [[] for _ in searches]
        for member in self._nearest(searches):
            asked = {
                number: replace(one, where=where)
                for number, one in enumerate(searches)
                if (where := self._within(member, one.where or Filter()))
            }
            found = self._guarded(member, lambda m, own: m.tables.best(own), [*asked.values()])
            for number, units in zip(asked, found, strict=False):  # none of one that is left out
                # The score of a text grows with the size of the index.
                by_text = isinstance(searches[number], TextSearch)
                weight = math.log(1 + member.tables.counts().units) if by_text else 1.0
                merged[number] += [(score / weight, member, unit) for unit, score in units]
        for every in merged:
            every.sort(key=lambda one: (-one[0], one[1].name, one[2].path, one[2].start_line))
        return [
            [(member.unit(unit), score) for score, member, unit in every[: search.limit]]
            for search, every in zip(searches, merged, strict=True)
        ]

    def _nearest(self, searches: Sequence[TextSearch | VectorSearch]) -> list[Member]:
        """The repositories that are searched, all where no vector says which; one without vectors,
        of which nothing is known, goes before others."""
        vectors = [s for s in searches if isinstance(s, VectorSearch) and s.column == "vector"]
        if not vectors or len(self.members) <= SEARCHED:
            return list(self.members.values())
        vector, parts = vectors[0].vector, self.catalogue().parts

        def nearness(member: Member, _: Filter) -> Iterator[tuple[float, Member]]:
            if member in parts:
                files = parts[member].file_vectors
                yield float((files @ vector).max()) if len(files) else 1.0, member

        near = heapq.nlargest(
            SEARCHED, self._all(nearness, vectors[0].where), key=lambda one: one[0]
        )
        return [member for _, member in near]

    def _within(self, member: Member, where: Filter) -> Filter | None:
        """`where` as `member` reads it, None where that lets nothing through."""
        if not (where.paths or where.excluded_paths):
            return where

        def inside(patterns: Iterable[str]) -> Iterable[str]:
            for pattern in patterns:
                name, slash, rest = pattern.partition("/")
                if name == member.name and slash:
                    yield rest
                elif name not in self.members:
                    yield pattern

        paths = tuple(inside(where.paths))
        excluded = tuple(inside(where.excluded_paths))
        if (where.paths and not paths) or "" in excluded:
            return None
        return replace(where, paths=paths, excluded_paths=excluded)

    def _having(
        self, column: str, values: Sequence[str], limit: int = ALL_ROWS, where: Filter | None = None
    ) -> list[Unit]:
        parts = self.catalogue().parts

        def ask(member: Member, own: Filter) -> Iterable[Unit]:
            if column == "name_key":
                names = parts[member].names if member in parts else ()
                asked = [key for key in values if key in names]
            else:
                asked = member.own(values)
            return map(member.unit, member.tables._having(column, asked, limit, own))

        return self._all(ask, where, limit)

    def units(self, where: Filter | None = None) -> list[Unit]:
        return self._all(lambda m, own: map(m.unit, m.tables.units(own)), where)

    # References

    def references(self, *, limit: int = ALL_ROWS, **wanted: Sequence[str]) -> list[Reference]:
        def ask(member: Member, _: Filter) -> Iterable[Reference]:
            own = {
                column: member.own(values) if column in ("path", "target") else values
                for column, values in wanted.items()
            }
            if all(own.values()):
                yield from map(member.reference, member.tables.references(limit=limit, **own))

        return self._all(ask, limit=limit)

    def imported(self, limit: int) -> set[tuple[str, str, str]]:
        every = self._all(lambda m, _: ((m, place) for place in m.tables.imported(limit)))
        return {(member.joined(path), name, module) for member, (path, name, module) in every}

    # Files and numbers

    def indexed_files(self, where: Filter, limit: int = ALL_ROWS) -> list[FileRecord]:
        def ask(member: Member, own: Filter) -> Iterable[FileRecord]:
            for record in member.tables.indexed_files(own, limit):
                yield replace(record, path=member.joined(record.path))

        return self._all(ask, where, limit)

    def catalogue(self) -> MultiRepoCatalogue:
        known = self._joined
        fresh = time.monotonic() - self._looked < LOOK_INTERVAL * len(self.members)
        if known and fresh and len(known.parts) == len(self.members):
            return known
        seen = self._all(
            lambda m, _: [(m, m.tables.catalogue(), m.tables.meta(), m.tables.vector_columns())]
        )
        self._seen = {member: (meta, columns) for member, _, meta, columns in seen}
        parts = {member: own for member, own, _, _ in seen}
        if known is None or known.parts != parts:
            self._joined = known = MultiRepoCatalogue(parts)
        self._looked = time.monotonic()
        return known

    def holds(self, where: Filter) -> bool:
        return bool(self._all(lambda m, own: filter(None, [m.tables.holds(own)]), where, limit=1))

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        self.catalogue()
        # Those that all have alike: vectors of different embeddings cannot be compared.
        every = [columns for _, columns in self._seen.values()]
        return [one for one in every[0] if all(one in others for others in every)]

    # The repositories

    def _all(
        self,
        ask: Callable[[Member, Filter], Iterable[T]],
        where: Filter | None = None,
        limit: int = ALL_ROWS,
    ) -> list[T]:
        """What `ask` gives of one repository after another, the first `limit`: of those in which
        `where` lets something through, which it gets as they read it. One that cannot be read any
        more is left out; raises what the last one raises."""
        found: list[T] = []
        for member in list(self.members.values()):
            if len(found) < limit and (own := self._within(member, where or Filter())):
                found += self._guarded(member, ask, own)
        return found[:limit]

    def _guarded(self, member: Member, ask: Callable[..., Iterable[T]], *given: object) -> list[T]:
        try:
            return list(ask(member, *given))
        except (IndexFormatError, IndexMissingError) as error:
            if len(self.members) == 1:
                raise
            self.members.pop(member.name, None)
            self.left_out[member.name] = str(error)
            return []
