"""The catalogues of several repositories, with joined paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from codeqa.store.catalogue import REMEMBERED, Catalogue, Names
from codeqa.store.meta import EmbeddingRecord
from codeqa.store.records import FileRecord, IndexCounts
from codeqa.store.tables import Tables
from codeqa.types import Reference, Unit

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_VALUES, _PLACE = attrgetter(*Unit.__slots__), attrgetter(*Reference.__slots__)


@dataclass(frozen=True, slots=True)
class Member:
    """One of the repositories, under the name that its paths begin with."""

    name: str
    tables: Tables

    def joined(self, path: str) -> str:
        return f"{self.name}/{path}"

    def unit(self, unit: Unit) -> Unit:
        # A third of what `replace` takes: a search makes some five hundred.
        values: list[Any] = list(_VALUES(unit))
        values[0], values[-1] = self.joined(unit.path), self.joined(unit.id)
        return Unit(*values)

    def reference(self, place: Reference) -> Reference:
        path, line, column, name, kind, unit, receiver, module, target, sure = _PLACE(place)
        unit, target = unit and self.joined(unit), target and self.joined(target)
        path = self.joined(path)
        return Reference(path, line, column, name, kind, unit, receiver, module, target, sure)

    def record(self, record: FileRecord) -> FileRecord:
        return replace(record, path=self.joined(record.path))


class JointCatalogue(Catalogue):
    """The catalogues of several repositories, with joined paths."""

    def __init__(self, parts: Mapping[Member, Catalogue]) -> None:
        self.parts = parts
        self.references = lru_cache(REMEMBERED)(self._references)

    def nearness(self, vector: np.ndarray) -> dict[Member, float]:
        """How near the file that is nearest to `vector` is, of each repository; of one without
        vectors, of which nothing is known, 1."""
        import numpy as np

        found = dict.fromkeys(self.parts, 1.0)
        members, starts, every = self._file_vectors
        if members:
            nearest = np.maximum.reduceat(every @ vector, starts)
            found |= zip(members, nearest.tolist(), strict=True)
        return found

    @cached_property
    def _file_vectors(self) -> tuple[list[Member], list[int], np.ndarray]:
        """Repositories with vectors, the first row of each, and the vectors of all their files."""
        import numpy as np

        each = {m: own.file_vectors for m, own in self.parts.items() if len(own.file_vectors)}
        ends = list(accumulate(map(len, each.values())))
        return list(each), [0, *ends[:-1]], np.concatenate([*each.values()] or [np.zeros(0)])

    @cached_property
    def vector_columns(self) -> list[tuple[str, EmbeddingRecord]]:
        """Those that all have alike: vectors of different embeddings cannot be compared."""
        every = [member.tables.vector_columns() for member in self.parts]
        return [one for one in every[0] if all(one in others for others in every)]

    @cached_property
    def counts(self) -> IndexCounts:
        each = [astuple(catalogue.counts) for catalogue in self.parts.values()]
        return IndexCounts(*map(sum, zip(*each, strict=True)))

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(m.joined(path) for m, own in self.parts.items() for path in own.paths)

    @cached_property
    def languages(self) -> frozenset[str]:
        return frozenset().union(*(own.languages for own in self.parts.values()))

    @cached_property
    def names(self) -> Names:
        return Names.joined(own.names for own in self.parts.values())

    def roles(self) -> dict[str, str]:
        each = ((m, own.roles()) for m, own in self.parts.items())
        return {m.joined(path): role for m, roles in each for path, role in roles.items()}

    def definitions(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        found = []
        for member, own in self.parts.items():
            rows = own.definitions()
            paths = pc.binary_join_element_wise(member.name, rows["path"], "/")
            found.append(rows.set_column(rows.schema.get_field_index("path"), "path", paths))
        return pa.concat_tables(found)

    def _references(self, condition: str, limit: int) -> tuple[Reference, ...]:
        each = ((m, own.references(condition, limit)) for m, own in self.parts.items())
        return tuple(m.reference(place) for m, places in each for place in places)[:limit]
