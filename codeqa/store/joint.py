"""The indices of several repositories, read as one.

A path begins with the name of its repository, and so does the id of a unit:
`flask/src/flask/app.py` is `src/flask/app.py` of the repository called `flask`. Whatever reads an
index can read this.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from codeqa.errors import CodeQAError, IndexFormatError, IndexMissingError, NotFoundError
from codeqa.store.filters import Filter
from codeqa.store.joint_catalogue import JointCatalogue, Member
from codeqa.store.location import Location
from codeqa.store.lookups import TextSearch, VectorSearch
from codeqa.store.meta import EmbeddingRecord, Meta
from codeqa.store.reader import READ_INTERVAL
from codeqa.store.records import FileRecord
from codeqa.store.schema import ALL_ROWS
from codeqa.store.tables import Tables
from codeqa.text import counted
from codeqa.types import Reference, Unit

SEARCHED = 4
"""Repositories that are searched for a question that is asked of more: those with the files nearest
to it, by the vectors. To search one takes 6 ms of processor time, to see how near it is .05 ms."""
TOGETHER = "~"
"""Between the ends of their ids: `3fa2b1c0~8d21e6aa` stands for two repositories."""
RETRY_SECONDS = 5.0
"""After which a repository whose index could not be opened is tried again."""

T = TypeVar("T")
Scored = list[tuple[Unit, float]]

_threads = ThreadPoolExecutor(SEARCHED, "joint")


class JointTables(Tables):
    """What the indices of several repositories hold, for reading."""

    def __init__(self, location: Location, members: Iterable[Member]) -> None:
        self.location = location
        self.members = {member.name: member for member in members}
        self.left_out: dict[str, str] = {}
        """Name of a repository that cannot be read → why."""
        self._joined: JointCatalogue | None = None
        self._looked = 0.0

    @property
    def notices(self) -> tuple[str, ...]:
        told = [f"{name} is left out. {why}" for name, why in sorted(self.left_out.items())]
        gone = self.location.id.count(TOGETHER) + 1 - len(self.members) - len(self.left_out)
        if gone > 0:
            told.append(f"{counted(gone, 'repository', 'repositories')} of before: no index now.")
        for name, member in self.members.items():
            if not (meta := member.tables.meta()).complete:
                files = member.tables.counts().files
                told.append(f"Of {name} {files:,} of {meta.expected:,} files are indexed so far.")
        return tuple(told)

    def around(self, path: str) -> Tables:
        member = self.members.get(path.partition("/")[0])
        return JointTables(self.location, [member]) if member else self

    def place_of(self, path: str) -> tuple[Path, str]:
        name, _, inside = path.partition("/")
        if name not in self.members:
            raise NotFoundError(
                "That is asked of one repository at a time.",
                f"Here are several: {', '.join(self.members)}.",
            )
        return self.members[name].tables.place_of(inside)

    def meta(self) -> Meta:
        # What is not complete is told by name, in `notices`.
        return replace(self._all(lambda member: [member.tables.meta()])[0], complete=True)

    def version(self) -> object:
        return self.catalogue()

    def look_again(self) -> None:
        self._looked = 0.0
        for member in list(self.members.values()):
            member.tables.look_again()

    # Units

    def best(self, searches: Sequence[TextSearch | VectorSearch]) -> list[Scored]:
        def ask(member: Member) -> Iterator[tuple[int, float, Member, Unit]]:
            asked = {
                number: replace(one, where=where)
                for number, one in enumerate(searches)
                if (where := self._within(member, one.where or Filter()))
            }
            found = member.tables.best([*asked.values()]) if asked else []
            # The score of a text grows with the size of the index.
            size = math.log(1 + member.tables.counts().units)
            for (number, search), units in zip(asked.items(), found, strict=True):
                weight = size if isinstance(search, TextSearch) else 1.0
                yield from ((number, score / weight, member, unit) for unit, score in units)

        merged: list[list[tuple[float, Member, Unit]]] = [[] for _ in searches]
        for own in _threads.map(lambda m: self._guarded(m, ask), self._nearest(searches)):
            for number, score, member, unit in own:
                merged[number].append((score, member, unit))
        for every in merged:
            every.sort(key=lambda one: (-one[0], one[1].name, one[2].path, one[2].start_line))
        return [
            [(member.unit(unit), score) for score, member, unit in every[: search.limit]]
            for search, every in zip(searches, merged, strict=True)
        ]

    def _nearest(self, searches: Sequence[TextSearch | VectorSearch]) -> list[Member]:
        """The repositories that are searched, all where no vector says which; one without vectors,
        of which nothing is known, goes before others."""
        members = list(self.members.values())
        vectors = [s for s in searches if isinstance(s, VectorSearch) and s.column == "vector"]
        if not vectors or len(members) <= SEARCHED:
            return members
        where, vector = vectors[0].where or Filter(), vectors[0].vector

        def nearness(member: Member) -> Iterator[tuple[float, Member]]:
            if self._within(member, where):
                files = member.tables.catalogue().file_vectors
                yield float((files @ vector).max()) if len(files) else 1.0, member

        nearest = heapq.nlargest(SEARCHED, self._all(nearness), key=lambda one: one[0])
        return [member for _, member in nearest]

    def _within(self, member: Member, where: Filter) -> Filter | None:
        """`where` as `member` reads it, None where that lets nothing through."""

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
        if column != "name_key":  # a path or an id, which tells its repository
            return self._at(values, lambda m, own: map(m.unit, m.tables._having(column, own)))

        def ask(member: Member) -> Iterable[Unit]:
            own = where and self._within(member, where)
            names = member.tables.catalogue().names
            if (where and not own) or not any(key in names for key in values):
                return ()
            return map(member.unit, member.tables._having(column, values, limit, own))

        return self._all(ask)[:limit]

    def units(self, where: Filter | None = None) -> list[Unit]:
        def ask(member: Member) -> Iterable[Unit]:
            own = self._within(member, where or Filter())
            return map(member.unit, member.tables.units(own)) if own else ()

        return self._all(ask)

    # References

    def references_named(self, name: str, limit: int = 500) -> list[Reference]:
        return self._all(lambda m: map(m.reference, m.tables.references_named(name, limit)))[:limit]

    def references_decided(self, units: Sequence[Unit]) -> list[Reference]:
        def ask(member: Member, ids: list[str]) -> Iterable[Reference]:
            own = member.tables.by_ids(ids)
            return map(member.reference, member.tables.references_decided(own))

        return self._at([unit.id for unit in units], ask)

    def references_in(self, path: str) -> list[Reference]:
        return self._at([path], lambda m, own: map(m.reference, m.tables.references_in(own[0])))

    def imported(self, limit: int) -> set[tuple[str, str, str]]:
        def ask(member: Member) -> Iterable[tuple[str, str, str]]:
            places = member.tables.imported(limit)
            return ((member.joined(path), name, module) for path, name, module in places)

        return set(self._all(ask))

    # Files and numbers

    def indexed_files(self, where: Filter, limit: int = ALL_ROWS) -> list[FileRecord]:
        def ask(member: Member) -> Iterable[FileRecord]:
            own = self._within(member, where)
            return map(member.record, member.tables.indexed_files(own, limit)) if own else ()

        return self._all(ask)[:limit]

    def catalogue(self) -> JointCatalogue:
        known = self._joined
        if (
            known
            and time.monotonic() - self._looked < READ_INTERVAL
            and len(known.parts) == len(self.members)
        ):
            return known
        parts = dict(self._all(lambda m: [(m, m.tables.catalogue())]))
        if known is None or known.parts != parts:
            self._joined = known = JointCatalogue(parts)
        self._looked = time.monotonic()
        return known

    def holds(self, where: Filter) -> bool:
        members = list(self.members.values())
        return any(m.tables.holds(own) for m in members if (own := self._within(m, where)))

    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        # Those that all have alike: vectors of different embeddings cannot be compared.
        every = self._all(lambda m: [m.tables.vector_columns()])
        return [one for one in every[0] if all(one in others for others in every)]

    # The repositories

    def _all(self, ask: Callable[[Member], Iterable[T]]) -> list[T]:
        """What `ask` gives of each repository. One that cannot be read any more is left out; raises
        what the last one raises."""
        return [one for m in list(self.members.values()) for one in self._guarded(m, ask)]

    def _guarded(
        self, member: Member, ask: Callable[..., Iterable[T]], *keys: list[str]
    ) -> list[T]:
        try:
            return list(ask(member, *keys))
        except (IndexFormatError, IndexMissingError) as error:
            if len(self.members) == 1:
                raise
            self.members.pop(member.name, None)
            self.left_out[member.name] = str(error)
            return []

    def _at(self, keys: Iterable[str], ask: Callable[[Member, list[str]], Iterable[T]]) -> list[T]:
        """What `ask` gives of those repositories that `keys`, paths or ids, begin with."""
        inside: defaultdict[str, list[str]] = defaultdict(list)
        for key in keys:
            name, _, rest = key.partition("/")
            inside[name].append(rest)
        asked = [(m, own) for name, own in inside.items() if (m := self.members.get(name))]
        return [one for m, own in asked for one in self._guarded(m, ask, own)]


def open_joint(location: Location, places: Mapping[str, Location]) -> Callable[[], Tables]:
    """Give a function that opens the indices at `places` (name → place) as one.

    One that cannot be opened is left out, and tried again after RETRY_SECONDS. Raises what opening
    the last one raised where none can be opened.
    """
    joint, lock, tried = JointTables(location, ()), threading.Lock(), 0.0

    def opened() -> Tables:
        nonlocal tried
        with lock:
            missing = [name for name in places if name not in joint.members]
            if missing and time.monotonic() - tried >= RETRY_SECONDS:
                for name in missing:
                    try:
                        joint.members[name] = Member(name, Tables.open(places[name]))
                        joint.left_out.pop(name, None)
                    except CodeQAError as error:
                        joint.left_out[name] = str(error)
                tried = time.monotonic()
            if not joint.members:
                raise IndexMissingError(
                    "None of these repositories can be read.", " ".join(joint.notices)
                )
            return joint

    return opened
