"""Several repositories that are asked as one: which are meant, what they are called, and how their
indices are read and kept up to date.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. Whatever reads an
index can read this.
"""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from codeqa.errors import (
    CodeQAError,
    IndexFormatError,
    IndexMissingError,
    NotFoundError,
    UsageError,
)
from codeqa.indexing import Indexer
from codeqa.indexing.runs import read_status
from codeqa.settings import Settings
from codeqa.store import (
    EmbeddingRecord,
    FileRecord,
    Filter,
    Location,
    Tables,
    TextSearch,
    VectorSearch,
    list_locations,
)
from codeqa.store.records import IndexCounts
from codeqa.store.schema import ALL_ROWS, Meta
from codeqa.store.tables import Catalogue
from codeqa.text import counted
from codeqa.types import IndexStatus, Reference, Unit

if TYPE_CHECKING:
    import pyarrow as pa

LOOK_INTERVAL = 0.04
"""Seconds for each repository until all of them are looked at for new commits, which takes .2 ms
each; one that is searched is looked at every `reader.READ_INTERVAL` besides."""
ID_SEPARATOR = "~"
"""Between the ends of their ids: `3fa2b1c0~8d21e6aa` stands for two repositories."""
MOST_REPOSITORIES = 50
NAMED = 3
"""Repositories whose names stand for all of them."""
RETRY_SECONDS = 5.0
"""After which a repository whose index could not be opened is tried again."""

_UNSAFE = re.compile(r"[^\w.-]+")

T = TypeVar("T")


def end_of(id_: str) -> str:
    """The end of a repository's id, which no other repository's has."""
    return id_.rpartition("-")[2]


def member_names(locations: Sequence[Location]) -> dict[str, Location]:
    """What each is called among the others, by name: where two are called alike, by its id."""
    called = [_UNSAFE.sub("-", one.name).strip("-.") for one in locations]
    alone = Counter(called)
    pairs = zip(called, locations, strict=True)
    return dict(sorted((name if alone[name] == 1 and name else one.id, one) for name, one in pairs))


def multi_repo_location(
    settings: Settings, members: Mapping[str, Location], id_: str = ""
) -> Location:
    """What stands for all of `members` where one repository is meant; nothing lies there. Its id is
    `id_`, where some are gone by now, else made of theirs.

    Raises UsageError for too many.
    """
    if len(members) > MOST_REPOSITORIES:
        raise UsageError(
            f"{len(members)} repositories are more than can be asked at once.",
            f"Choose up to {MOST_REPOSITORIES}.",
        )
    id_ = id_ or ID_SEPARATOR.join(sorted(end_of(one.id) for one in members.values()))
    folder, name = settings.data_dir / "repos" / ID_SEPARATOR, " + ".join(members)
    name = name if len(members) <= NAMED else f"{len(members)} repositories"
    return Location(folder / name, id_, folder, str(folder))


def locations_of(
    settings: Settings, id_: str, among: Callable[[Location], bool] = lambda _: True
) -> list[Location]:
    """The repositories that `id_` stands for, those that are indexed and `among`.

    Raises NotFoundError when none is.
    """
    wanted = {end_of(one) for one in id_.split(ID_SEPARATOR)}
    every = (*list_locations(settings), *list_locations(settings, "revs/*"))
    found = [one for one in every if end_of(one.id) in wanted and among(one)]
    if not found:
        raise NotFoundError("None of these repositories is indexed.", "Choose from the list.")
    return found


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

        found = []
        for member, own in self.parts.items():
            with contextlib.suppress(IndexFormatError):  # who searches it says so
                found.append(member.rows(own._defined(columns)))
        return pa.concat_tables(found)


class MultiRepoTables(Tables):
    """What the indices at `places` (name → place) hold, for reading, once they are `opened`."""

    def __init__(self, location: Location, places: Mapping[str, Location]) -> None:
        self.location = location
        self.members: dict[str, Member] = {}
        self.left_out: dict[str, str] = {}
        """Name of a repository that cannot be read → why."""
        self._places = places
        self._lock, self._tried = threading.Lock(), 0.0
        self._joined: MultiRepoCatalogue | None = None
        self._seen: dict[Member, tuple[Meta, list[tuple[str, EmbeddingRecord]]]] = {}
        self._looked = 0.0

    def opened(self) -> MultiRepoTables:
        """These tables, with every index open that can be: one that cannot is left out, and tried
        again after RETRY_SECONDS. Raises IndexMissingError where none can be opened."""
        with self._lock:
            missing = [name for name in self._places if name not in self.members]
            if missing and time.monotonic() - self._tried >= RETRY_SECONDS:
                for name in missing:
                    try:
                        self.members[name] = Member(name, Tables(self._places[name]))
                        self.left_out.pop(name, None)
                    except CodeQAError as error:
                        self.left_out[name] = str(error)
                self._tried = time.monotonic()
            if not self.members:
                raise IndexMissingError(
                    "None of these repositories can be read.", " ".join(self.notices)
                )
            return self

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
        if not (member := self.members.get(path.partition("/")[0])):
            return self
        alone = MultiRepoTables(self.location, {})
        alone.members[member.name] = member
        return alone

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
        for member in list(self.members.values()):
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


class MultiRepoIndexer(Indexer):
    """Keeps the indices of `members` (name → place) up to date for who asks all of them.

    They are not watched: that takes a thread and handles for each. They are looked at when they
    are opened, and a file that a question finds changed has its repository caught up.
    """

    def __init__(
        self,
        settings: Settings,
        location: Location,
        members: Mapping[str, Location],
        tables: MultiRepoTables,
    ) -> None:
        super().__init__(settings, location, tables.opened)
        self._follows = False

        def opened(name: str, one: Location) -> Tables:
            """The index of one of them, as it is read for all where it is: it is opened once."""
            with contextlib.suppress(CodeQAError):  # none of them has an index yet
                if member := tables.opened().members.get(name):
                    return member.tables
            return Tables(one)

        self._members = {
            name: Indexer(settings, one, partial(opened, name, one))
            for name, one in members.items()
        }
        for own in self._members.values():
            own._stop = self._stop  # they end together

    def catch_up(self, changed: Iterable[str] = ()) -> bool:
        names = {path.partition("/")[0] for path in changed}
        caught = [own.catch_up() for name, own in self._members.items() if name in names]
        return any(caught)

    def start_background(self, *_: object) -> None:
        if not self._alive():
            self._thread = threading.Thread(target=self._look, name="codeqa-index", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        for own in self._members.values():
            own.pause()

    def resume(self) -> None:
        for own in self._members.values():
            own.resume()

    def cancel(self) -> bool:
        return any([own.cancel() for own in self._members.values()])  # noqa: C419 - each of them

    def _look(self) -> None:
        for own in self._members.values():
            if not self._stop.is_set():
                with contextlib.suppress(Exception):  # its own status tells
                    own.run(behind=True)

    def status(self) -> IndexStatus:
        return read_status(self.settings, self.location, self._open)
