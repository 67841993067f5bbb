"""The catalogues of several repositories, with joined paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from codeqa.store.catalogue import REMEMBERED, Catalogue
from codeqa.store.records import FileRecord, IndexCounts
from codeqa.store.tables import Tables
from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Member:
    """One of the repositories, under the name that its paths begin with."""

    name: str
    tables: Tables

    def joined(self, path: str) -> str:
        return f"{self.name}/{path}"

    def unit(self, unit: Unit) -> Unit:
        return replace(unit, path=self.joined(unit.path), id=self.joined(unit.id))

    def reference(self, place: Reference) -> Reference:
        unit, target = place.unit_id and self.joined(place.unit_id), place.target
        target = target and self.joined(target)
        return replace(place, path=self.joined(place.path), unit_id=unit, target=target)

    def record(self, record: FileRecord) -> FileRecord:
        return replace(record, path=self.joined(record.path))

    def rows(self, rows: pa.Table) -> pa.Table:
        import pyarrow.compute as pc

        place = rows.schema.get_field_index("path")
        if place < 0:
            return rows
        paths = pc.binary_join_element_wise(self.name, rows["path"], "/")
        return rows.set_column(place, "path", paths)


class JointCatalogue(Catalogue):
    """The catalogues of several repositories, with joined paths."""

    def __init__(self, parts: Mapping[Member, Catalogue]) -> None:
        self.parts = parts
        self.references = lru_cache(REMEMBERED)(self._references)

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

    def _references(self, condition: str, limit: int) -> tuple[Reference, ...]:
        each = ((m, own.references(condition, limit)) for m, own in self.parts.items())
        return tuple(m.reference(place) for m, places in each for place in places)[:limit]
