"""The tables: what is written comes back, by every way of reading, also from memory."""

from __future__ import annotations

import gc
import statistics
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from waiting import AT_ONCE, Clock

from codeqa.errors import IndexFormatError, IndexMissingError, NotFoundError, UsageError
from codeqa.settings import Settings, load_settings
from codeqa.store import (
    EmbeddingRecord,
    FileRecord,
    Filter,
    Location,
    Tables,
    TextSearch,
    VectorSearch,
    list_locations,
    locate,
    reader,
)
from codeqa.store.location import local_bytes, remove, save_location
from codeqa.store.records import Batch, pack_rows
from codeqa.store.schema import write_meta
from codeqa.store.writer import Writer
from codeqa.text.tokens import search_tokens
from codeqa.types import ParsedFile, Reference, Unit
from tests.index_rows import read_meanwhile

SMALL = EmbeddingRecord("test/small", "1", 4)
Index = Callable[..., Writer]


def unit(name: str, path: str = "src/app.py", kind: str = "function", line: int = 1) -> Unit:
    return Unit(
        path=path,
        language="python",
        kind=kind,
        name=name,
        qualified_name=name,
        source_code=f"def {name}():\n    return 'body of {name}'",
        start_line=line,
        end_line=line + 1,
        signature=f"def {name}():",
        id=f"{path}:{name}",
    )


def reference(name: str, path: str = "src/app.py", line: int = 3) -> Reference:
    return Reference(path, line, 5, name, "call", receiver="self", confidence=0.5)


def batch_of(*files: tuple[str, list[Unit], list[Reference]], digest: str = "h1") -> Batch:
    batch = Batch()
    for path, units, references in files:
        parsed = ParsedFile(path, "python", tuple(units), tuple(references))
        record = FileRecord(path, digest, 10, 20, role="source")
        batch.add(record, pack_rows(parsed))
    return batch


def run(
    location: Location,
    *batches: Batch,
    vector: EmbeddingRecord | None = None,
    vectors: dict[str, np.ndarray] | None = None,
    removed: tuple[str, ...] = (),
    rebuild: bool = False,
) -> Writer:
    """Index the batches as one complete run."""
    save_location(location)
    writer = Writer.open(location, "parser", vector, rebuild=rebuild)
    writer.begin(writer.manifest())
    writer.remove(removed)
    for batch in batches:
        writer.write(batch, vectors)
    writer.tidy()
    writer.finish(1, "parser", vector)
    return writer


@pytest.fixture
def location(settings: Settings, tmp_path: Path) -> Location:
    root = tmp_path / "a repository"
    root.mkdir()
    return locate(settings, root)


@pytest.fixture
def write(location: Location) -> Index:
    """`write(batch, …)` indexes the batches as one complete run."""
    return partial(run, location)


FUNCTION = unit("getUser")
WHOLE = replace(
    unit("Store", kind="class"),
    constructor_declaration="def __init__(self)",
    method_declarations=("def a(self)", "def b(self)"),
    head_end_line=1,
    doc_comment="Keeps things.",
    class_name="Outer",
    role="test",
)
WORDS = ["getHTTPResponse", "parse_config", "is_not", "running"]
ODD_PATHS = ["it's.py", "a%b_c.py", "back\\slash.py", "x' OR '1'='1.py", "[a](b){c}+^$.py",
             "näme 漢.py", 'a"b;--.py', "dir/né|x.py"]  # fmt: skip
LOADERS = [*(f"src/m{n}.py" for n in range(30)), "lib/deep/x.go"]
KINDS = ["method", "enum", "document", "config", "chunk"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """An index that the tests only read: some units have vectors, those of another run none."""
    folder = tmp_path_factory.mktemp("store")
    location = locate(load_settings(data=folder / "data"), folder)
    vectors = np.array([[1, 0, 0, 0], [0, 2, 0, 0], [3, 3, 0, 0]], dtype="float32")
    near = [unit(name, "src/near.py") for name in ("x", "y", "both")]
    run(location, batch_of(("src/near.py", near, [])), vector=SMALL, vectors={"methods": vectors})
    kinds = [unit(f"n{kind}", "kinds", kind=kind) for kind in KINDS]
    files = batch_of(
        ("src/app.py", [FUNCTION, WHOLE], [reference("run")]),
        ("words.py", [unit(word, "words.py") for word in WORDS], []),
        ("kinds", kinds, []),
        *((path, [unit("load", path)], []) for path in LOADERS),
        *((path, [unit("f", path)], []) for path in ODD_PATHS),
    )
    run(location, files, vector=SMALL)
    return Tables(location)


def test_a_unit_comes_back_as_it_was_written(made: Tables) -> None:
    assert set(made.in_file("src/app.py")) == {FUNCTION, WHOLE}
    assert made.by_ids([WHOLE.id, "unknown", FUNCTION.id]) == [WHOLE, FUNCTION]
    assert made.named(["getuser"]) == [FUNCTION]
    assert made.references(path=["src/app.py"]) == [reference("run")]
    assert made.references(name=["run"]) == [reference("run")]
    assert made.file("src/app.py") in made.files()
    assert {file.status for file in made.files()} == {"indexed"}
    assert made.file("src/other.py") is None


def test_counts_tell_methods_classes_and_documents_apart(made: Tables) -> None:
    counts = made.counts()
    functions = 3 + 1 + len(WORDS) + 1 + len(LOADERS) + len(ODD_PATHS)
    assert (counts.methods, counts.classes, counts.documents) == (functions, 2, 3)
    files = 4 + len(LOADERS) + len(ODD_PATHS)
    assert (counts.files, counts.references, counts.embedded) == (files, 1, 3)


def names(tables: Tables, question: str) -> list[str]:
    query = " ".join(search_tokens(question))
    return [hit.name for hit, _ in tables.find(TextSearch("methods", query, 10))]


def test_full_text_finds_parts_of_identifiers_and_whole_ones(made: Tables) -> None:
    assert names(made, "response") == ["getHTTPResponse"]
    assert names(made, "parseConfig") == ["parse_config"]
    assert names(made, "getUser")[0] == "getUser"
    assert names(made, "the") == []
    # Words are searched as they are.
    assert [hit.name for hit, _ in made.find(TextSearch("methods", "not", 5))] == ["is_not"]
    assert made.find(TextSearch("methods", "run", 5)) == []


def test_no_text_breaks_the_full_text_search(made: Tables) -> None:
    hostile = ('"', '"quoted"', "a'b", "x AND (y", "*", "-", "", "  ", "\\", "\0", "né 漢字")
    for text in (*hostile, "a" * 5000):
        assert isinstance(made.find(TextSearch("methods", text, 5)), list), text


def test_filters_apply_before_the_limit(made: Tables) -> None:
    def paths(where: Filter) -> list[str]:
        return [hit.path for hit, _ in made.find(TextSearch("methods", "load", 1, where))]

    assert paths(Filter(paths=("lib/",))) == ["lib/deep/x.go"]
    assert paths(Filter(paths=("**/*.go",))) == ["lib/deep/x.go"]
    assert paths(Filter(paths=("lib/*.go",))) == []
    assert paths(Filter(paths=("lib/d??p/*",))) == ["lib/deep/x.go"]
    assert paths(Filter(excluded_paths=("src/",))) == ["lib/deep/x.go"]
    assert paths(Filter(languages=("go",))) == []
    assert paths(Filter(kinds=("method",))) == []
    assert paths(Filter(roles=("test", "example"))) == []
    assert len(made.named(["load"], limit=200, where=Filter(paths=("src/",)))) == 30


def test_no_path_breaks_out_of_a_condition(made: Tables, write: Index, location: Location) -> None:
    def paths(**where: tuple[str, ...]) -> list[str]:
        return [hit.path for hit in made.named(["f"], where=Filter(**where))]

    for path in ODD_PATHS:
        assert [hit.path for hit in made.in_file(path)] == [path]
        assert paths(paths=(path,)) == paths(paths=(path[:-2] + "?y",)) == [path]
        assert paths(excluded_paths=(path,)) == sorted({*ODD_PATHS} - {path})
    write(batch_of(*((path, [unit("f", path)], []) for path in (*ODD_PATHS, "z.py"))))
    write(removed=tuple(ODD_PATHS))
    assert [file.path for file in Tables(location).files()] == ["z.py"]


def test_nearest_gives_cosine_similarity_and_skips_units_without_vectors(made: Tables) -> None:
    def nearest(vector: Any, column: str = "vector") -> list[tuple[str, float]]:
        search = VectorSearch("methods", column, np.array(vector, dtype="float32"), 10)
        return [(hit.name, round(score, 2)) for hit, score in made.find(search)]

    assert nearest([1, 0, 0, 0]) == [("x", 1.0), ("both", 0.71), ("y", 0.0)]
    assert made.vector_columns() == [("vector", SMALL)]
    assert nearest([1, 1, 1, 1], "vector_refined") == nearest([0, 0, 0, 0]) == []
    with pytest.raises(IndexFormatError, match="3 dimensions"):
        nearest([1, 1, 1])


def test_rows_of_a_replaced_file_that_are_gone_are_deleted_with_the_upsert(
    location: Location, write: Index
) -> None:
    other = ("src/b.py", [unit("kept", "src/b.py")], [reference("x", "src/b.py")])
    first = ("src/app.py", [unit("a"), unit("b")], [reference("x"), reference("y", line=4)])
    write(batch_of(first, other))
    write(batch_of(("src/app.py", [unit("b", line=7)], [reference("y", line=9)]), digest="h2"))
    tables = Tables(location)
    assert [(u.name, u.start_line) for u in tables.in_file("src/app.py")] == [("b", 7)]
    assert [r.line for r in tables.references(path=["src/app.py"])] == [9]
    assert [u.name for u in tables.in_file("src/b.py")] == ["kept"]
    assert len(tables.references(name=["x"])) == 1
    assert tables.counts().files == 2


def test_another_format_is_said_and_a_rebuild_replaces_it(location: Location, write: Index) -> None:
    writer = write(batch_of(("src/app.py", [unit("old")], [])))
    write_meta(writer.database, replace(writer.meta, format=0))
    with pytest.raises(IndexFormatError, match="format 0"):
        Tables(location)
    write(batch_of(("src/app.py", [unit("new")], [])))
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["new"]


def test_a_rebuild_is_invisible_until_it_is_complete(location: Location, write: Index) -> None:
    write(batch_of(("src/app.py", [unit("old")], [])))
    reader = Tables(location)
    writer = Writer.open(location, "parser", rebuild=True)
    writer.begin(writer.manifest())
    writer.write(batch_of(("src/app.py", [unit("new")], [])))
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["old"]
    resumed = Writer.open(location, "parser")
    assert resumed.generation == writer.generation
    resumed.begin(resumed.manifest())
    resumed.tidy()
    resumed.finish(1, "parser", None)
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["new"]
    Writer.open(location, "parser")
    assert [u.name for u in reader.in_file("src/app.py")] == ["new"]


@pytest.mark.parametrize("left", ["", "methods.lance/_versions", "files.lance/data"])
def test_a_run_that_died_before_its_tables_were_made_is_completed_by_the_next(
    left: str, location: Location, write: Index
) -> None:
    save_location(location)
    writer = Writer.open(location, "parser")
    for table in writer.tables.values():
        writer.database.drop_table(table.name)
    (Path(location.tables) / left).mkdir(parents=True, exist_ok=True)
    if not left:
        with pytest.raises(IndexMissingError, match="not been indexed"):
            Tables(location)
    write(batch_of(("src/app.py", [unit("new")], [])))
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["new"]


@pytest.mark.usefixtures("at_once")
def test_many_small_updates_leave_no_more_files_and_descriptors_than_few(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.writer.KEEP_VERSIONS", timedelta.resolution)
    monkeypatch.setattr("codeqa.store.writer.OLD_VERSIONS", (2, 2))
    monkeypatch.setattr("codeqa.store.reader.VERSIONS_PER_CONNECTION", 2)
    write(batch_of(*[(f"f{n}.py", [unit("a", f"f{n}.py")], []) for n in range(3)]))
    tables = Tables(location)
    files, descriptors = [], []
    for number in range(10):
        path = f"f{number % 3}.py"
        writer = write(batch_of((path, [unit("a", path, line=number)], []), digest=f"h{number}"))
        assert len(tables.find(TextSearch("methods", "a", 50))) == 3
        files.append(sum(1 for file in Path(location.tables).rglob("*") if file.is_file()))
        descriptors.append(
            len([*Path("/proc/self/fd").iterdir()]) if sys.platform == "linux" else 0
        )
    # Ten updates without a clean-up leave twice the files of five.
    assert max(files[7:]) < 1.5 * max(files[:5])
    assert max(descriptors[7:], default=0) <= max(descriptors[:5], default=0) + 5
    assert writer.tables["methods"].stats()["fragment_stats"]["num_fragments"] <= 3
    # Arrow's own allocator keeps what nobody uses any more.
    assert pa.default_memory_pool().backend_name == "system"


def test_new_rows_are_found_before_and_after_they_are_in_the_text_index(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(batch_of(("a.py", [unit("apple", "a.py")], [])))
    writer = write(batch_of(("b.py", [unit("apple", "b.py")], [])))
    index = next(i for i in writer.tables["methods"].list_indices() if "search" in i.name)
    assert index.num_unindexed_rows == 1
    assert len(Tables(location).find(TextSearch("methods", "apple", 5))) == 2
    monkeypatch.setattr("codeqa.store.writer.UNINDEXED_ROWS", 0)
    writer = write(batch_of(("c.py", [unit("apple", "c.py")], [])))
    index = next(i for i in writer.tables["methods"].list_indices() if "search" in i.name)
    assert index.num_unindexed_rows == 0
    assert len(Tables(location).find(TextSearch("methods", "apple", 5))) == 3


def test_a_version_serves_some_seconds_while_a_run_commits_time_and_again(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(reader, "time", clock)
    writer = write(batch_of(("a.py", [unit("a", "a.py")], [])))
    writer.update_meta(refining=True)
    tables = Tables(location)
    before = tables.version()
    writer.write(batch_of(("b.py", [unit("b", "b.py")], [])))
    clock.advance(reader.GROWING_INTERVAL - 1)
    assert tables.version() == before and not tables.named(["b"])
    clock.advance(1)
    assert tables.named(["b"])
    # Where that run was killed the next one ends it.
    write(batch_of(("c.py", [unit("c", "c.py")], [])))
    assert not tables.named(["c"])
    tables.look_again()
    assert tables.named(["c"]) and not tables.meta().growing
    write(batch_of(("d.py", [unit("d", "d.py")], [])))
    assert not tables.named(["d"])
    clock.advance(2 * reader.READ_INTERVAL)
    assert tables.named(["d"])


def test_readers_never_see_an_error_while_a_writer_writes(location: Location, write: Index) -> None:
    write(batch_of(*[(f"f{n}.py", [unit("a", f"f{n}.py")], []) for n in range(20)]))
    tables = Tables(location)

    def read() -> None:
        assert tables.find(TextSearch("methods", "a", 50))
        assert tables.named(["a"])
        tables.counts()
        assert tables.files()

    with read_meanwhile(read, threads=2):
        for round_ in range(2):
            files = [(f"f{n}.py", [unit("a", f"f{n}.py", line=round_ + 2)], []) for n in range(20)]
            write(batch_of(*files, digest=f"h{round_}"), rebuild=round_ % 2 == 1)
    fresh = Tables(location)
    assert {u.start_line for u in fresh.named(["a"])} == {3}


def test_locations_are_readable_distinct_and_outside_the_repository(
    settings: Settings, tmp_path: Path
) -> None:
    first, second = tmp_path / "x" / "my app", tmp_path / "y" / "my app"
    first.mkdir(parents=True)
    second.mkdir(parents=True)
    (tmp_path / "link").symlink_to(first)
    one, two = locate(settings, first), locate(settings, second)
    assert one.id.startswith("my-app-") and two.id.startswith("my-app-")
    assert one.folder != two.folder
    assert locate(settings, tmp_path / "link") == one
    assert not one.folder.is_relative_to(first)
    save_location(one)
    save_location(two)
    assert list_locations(settings) == sorted((one, two), key=lambda place: place.id)
    assert local_bytes(one) > 0
    remove(settings, one)
    assert list_locations(settings) == [two]
    with pytest.raises(NotFoundError):
        remove(settings, one)
    with pytest.raises(UsageError, match="not a folder"):
        locate(settings, tmp_path / "absent")


def test_the_tables_alone_can_lie_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    there = load_settings(data=tmp_path / "data", tables=str(tmp_path / "elsewhere"))
    remote = load_settings(data=tmp_path / "data", tables="s3://bucket/codeqa/")
    assert Path(locate(there, root).tables).parent == tmp_path / "elsewhere"
    assert locate(there, root).folder.is_relative_to(tmp_path / "data")
    assert locate(remote, root).tables.startswith("s3://bucket/codeqa/repo-")
    assert not locate(remote, root).tables_are_local


# A copy of the units in memory, and an index over the vectors

X = np.array([1, 0, 0, 0], dtype="float32")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search looks for new commits, and the second one has the units copied."""
    monkeypatch.setattr(reader, "READ_INTERVAL", AT_ONCE)
    monkeypatch.setattr("codeqa.store.tables.KEEP_AFTER", AT_ONCE)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that searches read from the tables, in turn."""
    from codeqa.store import tables

    numbers: list[int] = []
    read_units = tables.read_units

    async def counting(snapshot: Any, wanted: dict[str, list[int]]) -> Any:
        numbers.append(sum(map(len, wanted.values())))
        return await read_units(snapshot, wanted)

    monkeypatch.setattr(tables, "read_units", counting)
    return numbers


def search(tables: Tables) -> Any:
    """What three ways of searching answer."""
    searches = [
        TextSearch("methods", "body", 10),
        TextSearch("classes", "body store", 10),
        VectorSearch("methods", "vector", X, 10),
        TextSearch("methods", "nothing", 10),
    ]
    return tables.best(searches), tables.named(["a", "store", "unknown", "a"])


def warm(tables: Tables) -> None:
    """Search until the units are in memory."""
    search(tables)
    search(tables)
    for thread in threading.enumerate():
        if thread.name == "copy":
            thread.join()


def two_files() -> Batch:
    store = Unit(
        path="src/store.py",
        language="python",
        kind="class",
        name="Store",
        qualified_name="Store",
        source_code="class Store:\n    body = 1",
        start_line=1,
        end_line=2,
        constructor_declaration="def __init__(self)",
        method_declarations=("def a(self)", "def b(self)"),
        id="store",
    )
    return batch_of(
        ("src/app.py", [unit("a"), unit("b", line=4)], []),
        ("src/store.py", [store, unit("a", "src/store.py", line=9)], []),
    )


def vectors_of(*rows: list[float]) -> dict[str, np.ndarray]:
    return {"methods": np.array(rows, dtype="float32"), "classes": np.zeros((1, 4), "float32")}


@pytest.mark.usefixtures("at_once")
def test_units_in_memory_answer_as_the_tables_do(
    location: Location, write: Index, read: list[int]
) -> None:
    vectors = vectors_of([1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0])
    write(two_files(), vector=SMALL, vectors=vectors)
    tables = Tables(location)
    before = search(tables)
    assert read == [4] and [len(found) for found in before[0]] == [3, 1, 3, 0]
    assert [one.place for one in before[1]] == [
        "src/app.py:1-2",
        "src/store.py:1-2",
        "src/store.py:9-10",
    ]
    warm(tables)
    del read[:]
    assert search(tables) == before
    assert read == []
    assert len(tables.named(["a"], limit=1)) == 1
    assert tables.named(["a"], where=Filter(paths=("src/store.py",))) == before[1][2:]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("held", [0, 3])
def test_references_in_memory_answer_as_the_tables_do(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    app = [reference("a", line=7), reference("a", line=2), reference("run")][:held]
    store = [Reference("src/store.py", 4, 1, "a", "import", module=".app", target="id of a")]
    write(batch_of(("src/app.py", [unit("a")], app), ("src/store.py", [], store[:held])))
    wanted: list[dict[str, list[str]]] = [
        {"name": ["a"]},
        {"name": ["a", "run", "a"], "kind": ["call"]},
        {"path": ["src/store.py", "src/app.py", "none.py"]},
        {"path": ["src/app.py"], "name": ["run"]},
        {"path": ["src/store.py"], "target": ["id of a", "another"]},
        {"name": ["none"]},
    ]
    tables = Tables(location)
    before = [tables.references(**one) for one in wanted]
    assert list(map(len, before)) == ([3, 3, 4, 1, 1, 0] if held else [0] * 6)
    warm(tables)
    monkeypatch.setattr("codeqa.store.tables.Reader.arrow", None)
    assert [tables.references(**one) for one in wanted] == before
    assert len(tables.references(name=["a"], limit=2)) == min(held, 2)


@pytest.mark.usefixtures("at_once")
def test_what_was_written_since_is_found_and_what_was_removed_is_not(
    location: Location, write: Index
) -> None:
    write(two_files())
    tables = Tables(location)
    warm(tables)
    fresh = batch_of(("src/new.py", [unit("a", "src/new.py")], []), digest="h2")
    write(fresh, removed=("src/app.py",))
    for _ in range(2):
        (texts, *_), named = search(tables)
        assert {one.path for one, _ in texts} == {"src/new.py", "src/store.py"}
        assert [one.path for one in named] == ["src/new.py", "src/store.py", "src/store.py"]
        warm(tables)


@pytest.mark.usefixtures("at_once")
def test_nothing_holds_what_was_remembered_of_an_older_version(
    location: Location, write: Index
) -> None:
    write(two_files())
    tables = Tables(location)
    gc.disable()  # what holds itself would be found by it, at some time
    try:
        tables.references(name=["a"])
        older = weakref.ref(tables.catalogue())
        write(batch_of(("src/new.py", [unit("a", "src/new.py")], []), digest="h2"))
        assert "src/new.py" in tables.catalogue().paths and older() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("at_once")
def test_an_index_that_was_deleted_and_made_again_is_another_one(
    location: Location, write: Index, settings: Settings
) -> None:
    write(two_files())
    tables = Tables(location)
    warm(tables)
    remove(settings, location)
    other = batch_of(
        ("lib/a.py", [unit("a", "lib/a.py"), unit("c", "lib/a.py", line=4)], []),
        ("lib/b.py", [unit("Store", "lib/b.py", "class"), unit("d", "lib/b.py", line=9)], []),
    )
    write(other)
    (texts, *_), named = search(tables)
    assert {one.path for one, _ in texts} == {"lib/a.py", "lib/b.py"}
    assert {one.path for one in named} == {"lib/a.py", "lib/b.py"}


@pytest.mark.usefixtures("at_once")
def test_a_large_index_is_not_copied_into_memory(
    location: Location, write: Index, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.tables.MOST_BYTES", 19)  # two files of 10
    write(two_files())
    tables = Tables(location)
    warm(tables)
    search(tables)
    assert read == [4, 4, 4]


def test_searches_within_a_second_copy_nothing(
    made: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.tables.time", Clock())
    for _ in range(3):
        search(made)
    assert "copy" not in {thread.name for thread in threading.enumerate()}


def test_the_vector_index_finds_what_comparing_all_finds_and_new_rows_besides(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.writer.VECTOR_INDEX_ROWS", 1_000)
    random = np.random.default_rng(3)
    wide = EmbeddingRecord("test/wide", "1", 64)
    centres = random.normal(size=(40, 64))
    vectors = (centres[np.arange(1_100) % 40] + 0.6 * random.normal(size=(1_100, 64))).astype("f4")
    units = [unit(f"f{number}", line=number + 1) for number in range(1_100)]
    writer = write(
        batch_of(("src/app.py", units, [])),
        vector=wide,
        vectors={"methods": vectors},
    )

    def unindexed() -> int | None:
        indices = writer.tables["methods"].list_indices()
        return next(one.num_unindexed_rows for one in indices if one.columns == ["vector"])

    assert unindexed() == 0
    tables = Tables(location)
    exact = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = []
    for question in vectors[:20] + 0.4 * random.normal(size=(20, 64)):
        best = np.argsort(-(exact @ question))[:70]
        answer = tables.find(VectorSearch("methods", "vector", question.astype("float32"), 70))
        for one, score in answer:
            cosine = float(exact[int(one.name[1:])] @ question / np.linalg.norm(question))
            assert score == pytest.approx(cosine, abs=0.02)
        shares.append(len({one.name for one, _ in answer} & {f"f{row}" for row in best}) / 70)
    assert statistics.mean(shares) >= 0.98
    late = [unit(f"late{number}", "src/late.py", line=number + 1) for number in range(30)]
    writer = write(
        batch_of(("src/late.py", late, [])),
        vector=wide,
        vectors={"methods": vectors[:30]},
    )
    assert unindexed() == 30
    question = vectors[7] + vectors[8]
    scores = dict(Tables(location).find(VectorSearch("methods", "vector", question, 70)))
    by_name = {one.name: score for one, score in scores.items()}
    for name, row in (("f7", 7), ("late7", 7), ("f8", 8), ("late8", 8)):
        cosine = float(exact[row] @ question / np.linalg.norm(question))
        assert by_name[name] == pytest.approx(cosine, abs=0.02)
    filtered = Filter(paths=("src/late.py",))
    answer = Tables(location).find(VectorSearch("methods", "vector", vectors[7], 70, filtered))
    assert len(answer) == 30 and answer[0][0].name == "late7"
