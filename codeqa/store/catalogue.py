"""All paths, languages and names of an index, in memory, for what an index on a column does not
answer: what ends so, what is nearest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from codeqa.store.filters import one_of, quote
from codeqa.store.meta import EmbeddingRecord
from codeqa.store.reader import Reader, Snapshot
from codeqa.store.records import INDEXED, FileRecord, IndexCounts
from codeqa.store.schema import REFERENCE_COLUMNS, REFINED, UNIT_TABLES
from codeqa.types import TEXT_KINDS, Reference

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

DEFINITION_COLUMNS = ("path", "name", "qualified_name", "kind", "role", "start_line", "end_line")
REMEMBERED = 32
"""Answers about references that are kept: what calls a definition and what it calls are looked up
for several units of a question, in the same files and under the same names."""


class Catalogue:
    """What one version of an index holds; each part is read when it is first asked for.

    A hundred thousand names take 20 MB.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.references = lru_cache(REMEMBERED)(self._references)

    @cached_property
    def counts(self) -> IndexCounts:
        """How much it is."""
        return self._reader.ask(_count)

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every indexed file."""
        return frozenset(self._files["path"].to_pylist())

    @cached_property
    def by_file_name(self) -> Mapping[str, Sequence[str]]:
        """The paths of the indexed files that are called so, whatever folder they are in."""
        found: dict[str, list[str]] = {}
        for path in self.paths:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    @cached_property
    def languages(self) -> frozenset[str]:
        """Languages that at least one indexed file is written in."""
        return frozenset(self._files["language"].unique().to_pylist()) - {""}

    @cached_property
    def file_vectors(self) -> np.ndarray:
        """What each file is about, as a unit vector a row: the mean of its units' fast vectors, of
        those that have one. A thousand files take 1 MB."""
        import numpy as np
        import pyarrow as pa

        columns, filled = ("path", "vector"), "vector IS NOT NULL"
        rows = pa.concat_tables([self._reader.arrow(t, columns, filled) for t in UNIT_TABLES])
        if not rows.num_rows:
            return np.zeros((0, 0), "float32")
        vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(rows.num_rows, -1)
        _, file = np.unique(rows["path"].to_pylist(), return_inverse=True)
        sums = np.zeros((file.max() + 1, vectors.shape[1]), "float32")
        np.add.at(sums, file, vectors)
        return np.asarray(sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9))

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds an indexed file at any depth, with a `/` at the end."""
        found: set[str] = set()
        for path in self.paths:
            folder = path.rpartition("/")[0]
            while folder and folder + "/" not in found:
                found.add(folder + "/")
                folder = folder.rpartition("/")[0]
        return frozenset(found)

    @cached_property
    def names(self) -> Names:
        """Every name of a definition."""
        rows = self._defined(("name", "name_key")).group_by(["name", "name_key"]).aggregate([])
        pairs = zip(rows["name"].to_pylist(), rows["name_key"].to_pylist(), strict=True)
        return Names(dict(pairs))

    def roles(self) -> dict[str, str]:
        """What each indexed file is for."""
        files = self._files
        return dict(zip(files["path"].to_pylist(), files["role"].to_pylist(), strict=True))

    def definitions(self) -> pa.Table:
        """Name and place of every definition: DEFINITION_COLUMNS, in no order.

        Read at each call: 0.1 s for a hundred thousand, which take 20 MB.
        """
        return self._defined(DEFINITION_COLUMNS)

    def _defined(self, columns: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        condition = f"NOT ({one_of('kind', sorted(TEXT_KINDS))})"
        return pa.concat_tables(
            [self._reader.arrow(table, columns, condition) for table in UNIT_TABLES]
        )

    def _references(self, condition: str, limit: int) -> tuple[Reference, ...]:
        """References that meet `condition`, by place."""
        rows = self._reader.arrow("edges", REFERENCE_COLUMNS, condition, limit).to_pylist()
        rows.sort(key=lambda row: (row["path"], row["line"], row["column"], row["kind"]))
        return tuple(Reference(**row) for row in rows)

    def indexed_in(self, roles: Iterable[str]) -> pa.Table:
        """The manifest's rows of the indexed files that are for one of `roles`."""
        import pyarrow.compute as pc

        return self._files.filter(pc.field("role").isin(list(roles)))

    def records(self, paths: Iterable[str]) -> dict[str, FileRecord]:
        """The manifest's rows of `paths`; unknown ones are left out."""
        import pyarrow as pa

        places = sorted({self._rows[path] for path in paths if path in self._rows})
        rows = self.manifest.take(pa.array(places, pa.int64())).to_pylist()
        return {row["path"]: FileRecord(**row) for row in rows}

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {path: row for row, path in enumerate(self.manifest["path"].to_pylist())}

    @cached_property
    def manifest(self) -> pa.Table:
        """A row for each indexed or skipped file, as `FileRecord`."""
        return self._reader.arrow("files", FileRecord.__slots__).combine_chunks()

    @cached_property
    def _files(self) -> pa.Table:
        import pyarrow.compute as pc

        return self.manifest.filter(pc.field("status") == INDEXED)


async def _count(snapshot: Snapshot) -> IndexCounts:
    async def rows(table: str, where: str | None = None) -> int:
        return await snapshot.tables[table].count_rows(where)

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


class Names:
    """Names with their keys (`tokens.name_key`), for finding the one that is meant by a misspelt
    one: `spelled` maps name → key."""

    def __init__(self, spelled: Mapping[str, str]) -> None:
        self._names: dict[str, list[str]] = {}
        for name, key in spelled.items():
            self._names.setdefault(key, []).append(name)

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def nearest(self, key: str, most: int) -> list[str]:
        """Names whose keys are fewest edits from `key`, at most `most`; [] when none is.

        An edit inserts, deletes or replaces a letter or swaps two neighbours. Names of equal
        distance come with those first that begin as `key` does, then by the alphabet.
        """
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        if not key or most < 1:
            return []
        alike = process.extract(
            key, [*filter(None, self._names)], scorer=OSA.distance, score_cutoff=most, limit=None
        )
        least = min((distance for _, distance, _ in alike), default=0)
        best = [one for one, distance, _ in alike if distance == least]
        best.sort(key=lambda one: (one[0] != key[0], one))
        return [name for one in best for name in sorted(self._names[one])]


def nearest_words(word: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Of a short list the words most like `word`, for "did you mean"; often none."""
    from rapidfuzz import fuzz, process

    found = process.extract(word, sorted(known), scorer=fuzz.ratio, score_cutoff=60, limit=most)
    return [one for one, _, _ in found]
