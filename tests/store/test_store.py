"""The tables: what is written comes back, by every way of reading, also from memory."""

from __future__ import annotations

import gc
import statistics
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
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
from codeqa.store.writer import TableWriter
from codeqa.text.tokens import search_tokens
from codeqa.types import ParsedFile, Reference, Unit
from tests.kit.index_rows import read_meanwhile

SMALL = EmbeddingRecord("test/small", "1", 4)
Index = Callable[..., TableWriter]


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


File = tuple[str, list[Unit], list[Reference]]


def file(path: str, *names: str, line: int = 1, references: Sequence[Reference] = ()) -> File:
    """A file of functions, all of them at `line`."""
    return path, [unit(name, path, line=line) for name in names], [*references]


def batch_of(*files: File, digest: str = "h1") -> Batch:
    batch = Batch()
    for path, units, references in files:
        parsed = ParsedFile(path, "python", tuple(units), tuple(references))
        batch.add(FileRecord(path, digest, 10, 20, role="source"), pack_rows(parsed))
    return batch


def run(
    location: Location,
    *files: File,
    digest: str = "h1",
    vector: EmbeddingRecord | None = None,
    vectors: dict[str, np.ndarray] | None = None,
    removed: tuple[str, ...] = (),
    rebuild: bool = False,
) -> TableWriter:
    """Index `files` as one complete run."""
    save_location(location)
    writer = TableWriter.open(location, "parser", vector, rebuild=rebuild)
    writer.begin(writer.manifest())
    writer.remove(removed)
    if files:
        writer.write(batch_of(*files, digest=digest), vectors)
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
    """`write(file, …)` indexes the files as one complete run."""
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
    near = file("src/near.py", "x", "y", "both")
    run(location, near, vector=SMALL, vectors={"methods": vectors})
    run(
        location,
        ("src/app.py", [FUNCTION, WHOLE], [reference("run")]),
        file("words.py", *WORDS),
        ("kinds", [unit(f"n{kind}", "kinds", kind=kind) for kind in KINDS], []),
        *(file(path, "load") for path in LOADERS),
        *(file(path, "f") for path in ODD_PATHS),
        vector=SMALL,
    )
    return Tables(location)


def test_a_unit_comes_back_as_it_was_written(made: Tables) -> None:
    assert set(made.in_file("src/app.py")) == {FUNCTION, WHOLE}
    assert made.by_ids([WHOLE.id, "unknown", FUNCTION.id]) == [WHOLE, FUNCTION]
    assert made.named(["getuser"]) == [FUNCTION]
    assert made.references(path=["src/app.py"]) == [reference("run")]
    assert made.references(name=["run"]) == [reference("run")]
    assert made.file("src/app.py") in made.files()
    assert {record.status for record in made.files()} == {"indexed"}
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
    write(*(file(path, "f") for path in (*ODD_PATHS, "z.py")))
    write(removed=tuple(ODD_PATHS))
    assert [one.path for one in Tables(location).files()] == ["z.py"]


def test_nearest_gives_cosine_similarity_and_skips_units_without_vectors(made: Tables) -> None:
    def nearest(vector: Any, column: str = "vector") -> list[tuple[str, float]]:
        search = VectorSearch("methods", column, np.array(vector, dtype="float32"), 10)
        return [(hit.name, round(score, 2)) for hit, score in made.find(search)]

    assert nearest([1, 0, 0, 0]) == [("x", 1.0), ("both", 0.71), ("y", 0.0)]
    assert made.vector_columns() == [("vector", SMALL)]
    assert nearest([1, 1, 1, 1], "vector_refined") == nearest([0, 0, 0, 0]) == []
    with pytest.raises(IndexFormatError, match="3 dimensions"):
        nearest([1, 1, 1])


def test_rows_that_a_file_has_lost_are_deleted(location: Location, write: Index) -> None:
    other = file("src/b.py", "kept", references=[reference("x", "src/b.py")])
    write(file("src/app.py", "a", "b", references=[reference("x"), reference("y", line=4)]), other)
    changed = file("src/app.py", "b", line=7, references=[reference("y", line=9)])
    write(changed, digest="h2")
    tables = Tables(location)
    assert [(u.name, u.start_line) for u in tables.in_file("src/app.py")] == [("b", 7)]
    assert [r.line for r in tables.references(path=["src/app.py"])] == [9]
    assert [u.name for u in tables.in_file("src/b.py")] == ["kept"]
    assert len(tables.references(name=["x"])) == 1
    assert tables.counts().files == 2


def test_another_format_is_said_and_a_rebuild_replaces_it(location: Location, write: Index) -> None:
    writer = write(file("src/app.py", "old"))
    write_meta(writer.database, replace(writer.meta, format=0))
    with pytest.raises(IndexFormatError, match="format 0"):
        Tables(location)
    write(file("src/app.py", "new"))
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["new"]


def test_a_rebuild_is_invisible_until_it_is_complete(location: Location, write: Index) -> None:
    write(file("src/app.py", "old"))
    reader = Tables(location)
    writer = TableWriter.open(location, "parser", rebuild=True)
    writer.begin(writer.manifest())
    writer.write(batch_of(file("src/app.py", "new")))
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["old"]
    resumed = TableWriter.open(location, "parser")
    assert resumed.generation == writer.generation
    resumed.begin(resumed.manifest())
    resumed.tidy()
    resumed.finish(1, "parser", None)
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["new"]
    TableWriter.open(location, "parser")
    assert [u.name for u in reader.in_file("src/app.py")] == ["new"]


@pytest.mark.parametrize("left", ["", "methods.lance/_versions"])
def test_a_run_that_died_early_is_completed(left: str, location: Location, write: Index) -> None:
    save_location(location)
    writer = TableWriter.open(location, "parser")
    for table in writer.tables.values():
        writer.database.drop_table(table.name)
    (Path(location.tables) / left).mkdir(parents=True, exist_ok=True)
    if not left:
        with pytest.raises(IndexMissingError, match="not been indexed"):
            Tables(location)
    write(file("src/app.py", "new"))
    assert [u.name for u in Tables(location).in_file("src/app.py")] == ["new"]


@pytest.mark.usefixtures("at_once")
def test_many_small_updates_leave_no_more_files_and_descriptors_than_few(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.writer.KEEP_VERSIONS", timedelta.resolution)
    monkeypatch.setattr("codeqa.store.writer.OLD_VERSIONS", (2, 2))
    monkeypatch.setattr("codeqa.store.reader.VERSIONS_PER_CONNECTION", 2)
    write(*(file(f"f{n}.py", "a") for n in range(3)))
    tables = Tables(location)
    files, descriptors = [], []
    for number in range(8):
        writer = write(file(f"f{number % 3}.py", "a", line=number), digest=f"h{number}")
        assert len(tables.find(TextSearch("methods", "a", 50))) == 3
        files.append(sum(1 for path in Path(location.tables).rglob("*") if path.is_file()))
        if sys.platform == "linux":
            descriptors.append(len([*Path("/proc/self/fd").iterdir()]))
    # Eight updates without a clean-up leave twice the files of four.
    assert max(files[5:]) < 1.5 * max(files[:4])
    assert max(descriptors[5:], default=0) <= max(descriptors[:4], default=0) + 5
    assert writer.tables["methods"].stats()["fragment_stats"]["num_fragments"] <= 3
    # Arrow's own allocator keeps what nobody uses any more.
    assert pa.default_memory_pool().backend_name == "system"


def test_new_rows_are_found_before_and_after_they_are_in_the_text_index(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file("a.py", "apple"))
    writer = write(file("b.py", "apple"))
    index = next(i for i in writer.tables["methods"].list_indices() if "search" in i.name)
    assert index.num_unindexed_rows == 1
    assert len(Tables(location).find(TextSearch("methods", "apple", 5))) == 2
    monkeypatch.setattr("codeqa.store.writer.UNINDEXED_ROWS", 0)
    writer = write(file("c.py", "apple"))
    index = next(i for i in writer.tables["methods"].list_indices() if "search" in i.name)
    assert index.num_unindexed_rows == 0
    assert len(Tables(location).find(TextSearch("methods", "apple", 5))) == 3


def test_a_version_serves_some_seconds_while_a_run_commits_time_and_again(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(reader, "time", clock)
    writer = write(file("a.py", "a"))
    writer.update_meta(refining=True)
    tables = Tables(location)
    before = tables.version()
    writer.write(batch_of(file("b.py", "b")))
    clock.advance(reader.GROWING_INTERVAL - 1)
    assert tables.version() == before and not tables.named(["b"])
    clock.advance(1)
    assert tables.named(["b"])
    # Where that run was killed the next one ends it.
    write(file("c.py", "c"))
    assert not tables.named(["c"])
    tables.look_again()
    assert tables.named(["c"]) and not tables.meta().growing
    write(file("d.py", "d"))
    assert not tables.named(["d"])
    clock.advance(2 * reader.READ_INTERVAL)
    assert tables.named(["d"])


def test_readers_never_see_an_error_while_a_writer_writes(location: Location, write: Index) -> None:
    write(*(file(f"f{n}.py", "a") for n in range(6)))
    tables = Tables(location)

    def read() -> None:
        assert tables.find(TextSearch("methods", "a", 50))
        assert tables.named(["a"])
        tables.counts()
        assert tables.files()

    with read_meanwhile(read, threads=2):
        for round_ in range(2):
            files = [file(f"f{n}.py", "a", line=round_ + 2) for n in range(6)]
            write(*files, digest=f"h{round_}", rebuild=round_ % 2 == 1)
    fresh = Tables(location)
    assert {u.start_line for u in fresh.named(["a"])} == {3}


def test_locations_are_readable_and_distinct_and_tables_may_lie_elsewhere(
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

    there = load_settings(data=tmp_path / "data", tables=str(tmp_path / "elsewhere"))
    remote = load_settings(data=tmp_path / "data", tables="s3://bucket/codeqa/")
    assert Path(locate(there, first).tables).parent == tmp_path / "elsewhere"
    assert locate(there, first).folder.is_relative_to(tmp_path / "data")
    assert locate(remote, first).tables.startswith("s3://bucket/codeqa/my-app-")
    assert not locate(remote, first).tables_are_local


# A copy of the units in memory, and an index over the vectors

X = np.array([1, 0, 0, 0], dtype="float32")


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search looks for new commits, and the second one has the units copied."""
    monkeypatch.setattr(reader, "READ_INTERVAL", AT_ONCE)
    monkeypatch.setattr("codeqa.store.copies.KEEP_AFTER", AT_ONCE)


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


def two_files() -> tuple[File, File]:
    store = replace(
        WHOLE, path="src/store.py", source_code="class Store:\n    body = 1", id="store"
    )
    path, units, _ = file("src/store.py", "a", line=9)
    return file("src/app.py", "a", "b"), (path, [store, *units], [])


@pytest.mark.usefixtures("at_once")
def test_units_and_references_in_memory_answer_as_the_tables_do(
    location: Location, write: Index, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, (store, units, _) = two_files()
    app[2].extend([reference("a", line=7), reference("a", line=2), reference("run")])
    imported = Reference("src/store.py", 4, 1, "a", "import", module=".app", target="id of a")
    vectors = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]], dtype="float32")
    both = {"methods": vectors, "classes": np.zeros((1, 4), "float32")}
    write(app, (store, units, [imported]), vector=SMALL, vectors=both)
    wanted: list[tuple[int, dict[str, list[str]]]] = [
        (3, {"name": ["a"]}),
        (3, {"name": ["a", "run", "a"], "kind": ["call"]}),
        (4, {"path": ["src/store.py", "src/app.py", "none.py"]}),
        (1, {"path": ["src/app.py"], "name": ["run"]}),
        (1, {"path": ["src/store.py"], "target": ["id of a", "another"]}),
        (0, {"name": ["none"]}),
    ]
    tables = Tables(location)
    before = search(tables)
    assert read == [4] and [len(hits) for hits in before[0]] == [3, 1, 3, 0]
    places = ["src/app.py:1-2", "src/store.py:1-2", "src/store.py:9-10"]
    assert [hit.span for hit in before[1]] == places
    references = [tables.references(**one) for _, one in wanted]
    assert list(map(len, references)) == [count for count, _ in wanted]
    warm(tables)
    del read[:]
    assert search(tables) == before
    assert read == []
    assert len(tables.named(["a"], limit=1)) == 1
    assert tables.named(["a"], where=Filter(paths=("src/store.py",))) == before[1][2:]
    with monkeypatch.context() as patched:
        patched.setattr("codeqa.store.tables.TableReader.arrow", None)
        assert [tables.references(**one) for _, one in wanted] == references
        assert len(tables.references(name=["a"], limit=2)) == 2

    monkeypatch.setattr("codeqa.store.copies.MOST_BYTES", 19)  # two files of 10: a large index
    tables = Tables(location)
    warm(tables)
    search(tables)
    assert read == [4, 4, 4]


@pytest.mark.usefixtures("at_once")
def test_what_was_written_since_is_found_and_nothing_of_an_older_version_is_held(
    location: Location, write: Index, settings: Settings
) -> None:
    write(*two_files())
    tables = Tables(location)
    gc.disable()  # what holds itself would be found by it, at some time
    try:
        warm(tables)
        assert tables.references(name=["a"]) == []
        older = weakref.ref(tables.catalogue())
        write(file("src/new.py", "a"), digest="h2", removed=("src/app.py",))
        assert "src/new.py" in tables.catalogue().paths and older() is None
    finally:
        gc.enable()
    for _ in range(2):
        (texts, *_), units = search(tables)
        assert {hit.path for hit, _ in texts} == {"src/new.py", "src/store.py"}
        assert [hit.path for hit in units] == ["src/new.py", "src/store.py", "src/store.py"]
        warm(tables)

    remove(settings, location)  # what is made again is another index
    write(file("lib/a.py", "a", "c"), file("lib/b.py", "store", "d"))
    (texts, *_), units = search(tables)
    paths = {hit.path for hit, _ in texts}
    assert paths == {hit.path for hit in units} == {"lib/a.py", "lib/b.py"}


def test_one_search_copies_nothing(made: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codeqa.store.copies.time", Clock())
    for _ in range(3):
        search(made)
    assert "copy" not in {thread.name for thread in threading.enumerate()}


def test_the_vector_index_finds_what_comparing_all_finds_and_new_rows_besides(
    location: Location, write: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.writer.VECTOR_INDEX_ROWS", 600)
    random = np.random.default_rng(3)
    wide = EmbeddingRecord("test/wide", "1", 64)
    centres = random.normal(size=(40, 64))
    vectors = (centres[np.arange(700) % 40] + 0.6 * random.normal(size=(700, 64))).astype("f4")
    units = [unit(f"f{number}", line=number + 1) for number in range(700)]
    writer = write(("src/app.py", units, []), vector=wide, vectors={"methods": vectors})

    def unindexed() -> int | None:
        indices = writer.tables["methods"].list_indices()
        return next(one.num_unindexed_rows for one in indices if one.columns == ["vector"])

    assert unindexed() == 0
    tables = Tables(location)
    exact = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = []
    for question in vectors[:10] + 0.4 * random.normal(size=(10, 64)):
        best = np.argsort(-(exact @ question))[:70]
        answer = tables.find(VectorSearch("methods", "vector", question.astype("float32"), 70))
        for one, score in answer:
            cosine = float(exact[int(one.name[1:])] @ question / np.linalg.norm(question))
            assert score == pytest.approx(cosine, abs=0.02)
        shares.append(len({one.name for one, _ in answer} & {f"f{row}" for row in best}) / 70)
    assert statistics.mean(shares) >= 0.98
    late = [unit(f"late{number}", "src/late.py", line=number + 1) for number in range(30)]
    writer = write(("src/late.py", late, []), vector=wide, vectors={"methods": vectors[:30]})
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
