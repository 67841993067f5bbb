"""What one version of an index holds: its files, folders, languages, names and numbers."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from codeqa.store.copies import by_place
from codeqa.store.reader import Reader, Snapshot
from codeqa.store.records import INDEXED, SKIPPED, FileRecord, IndexCounts
from codeqa.store.schema import (
    ALL_ROWS,
    REFERENCE_COLUMNS,
    REFINED,
    UNIT_TABLES,
    EmbeddingRecord,
    all_of,
    one_of,
    quote,
)
from codeqa.types import TEXT_KINDS, Reference

if TYPE_CHECKING:
    import pyarrow as pa

MOST_NAMES = 300_000
"""Definitions whose names are held in memory, 0.25 kB each. Of more a name is looked up in the
tables, and a misspelt one is not repaired."""

NARROWED = 2_000
"""Definitions and files that are read of so many for what is typed behind `@`."""

DEFINITION_COLUMNS = ("path", "name", "qualified_name", "kind", "role", "start_line", "end_line")
REMEMBERED = 32
"""Answers about references that are kept: what calls a definition and what it calls are looked up
for several units of a question, in the same files and under the same names."""


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
    return tuple(by_place(reader.arrow("edges", REFERENCE_COLUMNS, condition, limit)))


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
