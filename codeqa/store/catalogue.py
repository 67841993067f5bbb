"""Summarise one version of an index: its files, folders, languages, names and counts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from codeqa.store.copies import by_place
from codeqa.store.reader import Snapshot, TableReader
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
"""Definitions whose names are held in memory, 0.25 kB each. In a larger index each name is looked
up in the tables, and a misspelt name is not corrected."""

NARROWED = 2_000
"""Definitions and files read from such an index to complete what is typed after `@`."""

DEFINITION_COLUMNS = ("path", "name", "qualified_name", "kind", "role", "start_line", "end_line")
CACHED_LOOKUPS = 32
"""Lookups of references that are cached: several units of a question have their callers and callees
looked up, in the same files and under the same names."""


class Catalogue:
    """Contents of one version of an index; each part is read when it is first used.

    A hundred thousand names take 25 MB, as many files 60 MB: names are bounded by MOST_NAMES.
    """

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        # Not a bound method: its cycle would keep the memory until Python collects garbage.
        look_up = functools.partial(_references, reader)
        self.references = functools.lru_cache(CACHED_LOOKUPS)(look_up)

    @functools.cached_property
    def counts(self) -> IndexCounts:
        """Return the number of files, units and references."""
        return self._reader.ask(_count)

    @functools.cached_property
    def paths(self) -> frozenset[str]:
        """Return the path of every indexed file."""
        return frozenset(self.files["path"].to_pylist())

    @functools.cached_property
    def by_file_name(self) -> Mapping[str, Sequence[str]]:
        """Map each file name, without its folder, to the paths of the indexed files called so."""
        paths_by_name: dict[str, list[str]] = {}
        for path in self.paths:
            paths_by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return paths_by_name

    @functools.cached_property
    def whole_imports(self) -> Mapping[str, Sequence[Reference]]:
        """Map the last word of an address to the imports of whole files by addresses that end so.

        The word is without the file's ending; '' for `.`, `..` and addresses that end in a slash.
        """
        imports: dict[str, list[Reference]] = {}
        for edge in _references(self._reader, "kind = 'import' AND name = module", MOST_NAMES):
            imports.setdefault(file_word(edge.module), []).append(edge)
        return imports

    @functools.cached_property
    def languages(self) -> frozenset[str]:
        """Return the languages that at least one indexed file is written in."""
        return frozenset(self.files["language"].unique().to_pylist()) - {""}

    @functools.cached_property
    def folders(self) -> frozenset[str]:
        """Return every folder that holds an indexed file at any depth, each ending in `/`."""
        folders: set[str] = set()
        for path in self.paths:
            folder = path.rpartition("/")[0]
            while folder and folder + "/" not in folders:
                folders.add(folder + "/")
                folder = folder.rpartition("/")[0]
        return frozenset(folders)

    @functools.cached_property
    def names(self) -> Mapping[str, Sequence[str]]:
        """Map keys (`tokens.name_key`) to the names of definitions; empty for a `large` index."""
        if self.large:
            return {}
        rows = self._defined(("name", "name_key")).group_by(["name", "name_key"]).aggregate([])
        names_by_key: dict[str, list[str]] = {}
        for name, key in zip(rows["name"].to_pylist(), rows["name_key"].to_pylist(), strict=True):
            names_by_key.setdefault(key, []).append(name)
        return names_by_key

    @property
    def large(self) -> bool:
        """Return whether there are more definitions than are held in memory."""
        return self.counts.methods + self.counts.classes > MOST_NAMES

    def roles(self, holding: str = "") -> dict[str, str]:
        """Map each indexed file to its role; in a `large` index some whose path holds `holding`."""
        files = self.files
        if self.large:
            import pyarrow.compute as pc

            near = pc.match_substring(files["path"], holding, ignore_case=True)
            files = files.filter(near).slice(0, NARROWED)
        return dict(zip(files["path"].to_pylist(), files["role"].to_pylist(), strict=True))

    def definitions(self, holding: str = "") -> pa.Table:
        """Return the DEFINITION_COLUMNS of every definition, in no order.

        In a `large` index only of some whose name holds `holding`. Read at each call: 0.1 s for a
        hundred thousand, which take 20 MB.
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
        parts = [self._reader.arrow(table, columns, condition, limit) for table in UNIT_TABLES]
        return pa.concat_tables(parts)

    def records(self, paths: Iterable[str]) -> dict[str, FileRecord]:
        """Return the manifest's rows of `paths`; unknown paths are left out."""
        import pyarrow as pa

        numbers = sorted({self._rows[path] for path in paths if path in self._rows})
        rows = self.manifest.take(pa.array(numbers, pa.int64())).to_pylist()
        return {row["path"]: FileRecord(**row) for row in rows}

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {path: number for number, path in enumerate(self.manifest["path"].to_pylist())}

    @functools.cached_property
    def manifest(self) -> pa.Table:
        """Return a row for each indexed or skipped file, as `FileRecord`."""
        return self._reader.arrow("files", FileRecord.__slots__).combine_chunks()

    @functools.cached_property
    def files(self) -> pa.Table:
        """Return the manifest's rows of indexed files."""
        import pyarrow.compute as pc

        return self.manifest.filter(pc.field("status") == INDEXED)

    @functools.cached_property
    def skipped(self) -> list[FileRecord]:
        """Return the manifest's rows of skipped files, sorted by path."""
        import pyarrow.compute as pc

        return file_records(self.manifest.filter(pc.field("status") == SKIPPED))


def file_records(rows: pa.Table) -> list[FileRecord]:
    """Return rows of the manifest as records, sorted by path."""
    records = [FileRecord(**row) for row in rows.to_pylist()]
    return sorted(records, key=lambda record: record.path)


def file_word(path: str) -> str:
    """Return the first word of a file's name: `count` for `lib/count.service.ts`."""
    return path.rpartition("/")[2].lstrip("@~#$").partition(".")[0]


def _references(reader: TableReader, condition: str, limit: int) -> tuple[Reference, ...]:
    """Return references that meet `condition`, sorted by path and line."""
    return tuple(by_place(reader.arrow("edges", REFERENCE_COLUMNS, condition, limit)))


async def _count(snapshot: Snapshot) -> IndexCounts:
    async def rows(table: str, where: str = "") -> int:
        condition = all_of(snapshot.scope.condition, where)
        return int(await snapshot.tables[table].count_rows(condition or None))

    async def vectors(column: str, record: EmbeddingRecord | None) -> int:
        if record is None:
            return 0
        return sum([await rows(table, f"{column} IS NOT NULL") for table in UNIT_TABLES])

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
    """Return the names whose key is the fewest edits from `key`, `most` edits at most.

    `names` maps keys to names. An edit inserts, deletes or replaces a letter or swaps two
    neighbours. Names that begin as `key` does come first, then alphabetical order decides.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    keys = list(filter(None, names))
    alike = process.extract(key, keys, scorer=OSA.distance, score_cutoff=most, limit=None)
    least = min((distance for _, distance, _ in alike), default=0)
    best = [other for other, distance, _ in alike if distance == least]
    best.sort(key=lambda other: (other[0] != key[0], other))
    return list(chain.from_iterable(sorted(names[other]) for other in best))
