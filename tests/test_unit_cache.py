"""Searching with a copy of the units in memory, and with an index over the vectors."""

from __future__ import annotations

import statistics
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codeqa.search.ranking import z_scores
from codeqa.settings import Settings
from codeqa.store import (
    EmbeddingRecord,
    Filter,
    Location,
    Tables,
    TextSearch,
    VectorSearch,
    locate,
    remove,
    save_location,
)
from codeqa.store.records import Batch
from codeqa.store.writer import Writer
from codeqa.types import Unit
from tests.test_store import SMALL, batch_of, unit

X = np.array([1, 0, 0, 0], dtype="float32")


@pytest.fixture
def location(settings: Settings, tmp_path: Path) -> Location:
    root = tmp_path / "repository"
    root.mkdir()
    return locate(settings, root)


def index(
    location: Location,
    *batches: Batch,
    vector: EmbeddingRecord = SMALL,
    vectors: dict[str, np.ndarray] | None = None,
    removed: tuple[str, ...] = (),
) -> Writer:
    """One complete run."""
    save_location(location)
    writer = Writer.open(location, "parser", vector)
    writer.begin(writer.manifest())
    writer.remove(removed)
    for batch in batches:
        writer.write(batch, vectors)
    writer.tidy()
    writer.finish(1, "parser", vector)
    return writer


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every search looks for new commits, and the second one has the units copied."""
    monkeypatch.setattr("codeqa.store.reader.READ_INTERVAL", 0.0)
    monkeypatch.setattr("codeqa.store.tables.KEEP_AFTER", 0.0)


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
        if thread.name == "units":
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
def test_units_in_memory_answer_as_the_tables_do(location: Location, read: list[int]) -> None:
    index(location, two_files(), vectors=vectors_of([1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]))
    tables = Tables.open(location)
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
def test_what_was_written_since_is_found_and_what_was_removed_is_not(location: Location) -> None:
    index(location, two_files())
    tables = Tables.open(location)
    warm(tables)
    fresh = batch_of(("src/new.py", [unit("a", "src/new.py")], []), digest="h2")
    index(location, fresh, removed=("src/app.py",))
    for _ in range(2):
        (texts, *_), named = search(tables)
        assert {one.path for one, _ in texts} == {"src/new.py", "src/store.py"}
        assert [one.path for one in named] == ["src/new.py", "src/store.py", "src/store.py"]
        warm(tables)


@pytest.mark.usefixtures("at_once")
def test_an_index_that_was_deleted_and_made_again_is_another_one(
    location: Location, settings: Settings
) -> None:
    index(location, two_files())
    tables = Tables.open(location)
    warm(tables)
    remove(settings, location)
    other = batch_of(
        ("lib/a.py", [unit("a", "lib/a.py"), unit("c", "lib/a.py", line=4)], []),
        ("lib/b.py", [unit("Store", "lib/b.py", "class"), unit("d", "lib/b.py", line=9)], []),
    )
    index(location, other)
    (texts, *_), named = search(tables)
    assert {one.path for one, _ in texts} == {"lib/a.py", "lib/b.py"}
    assert {one.path for one in named} == {"lib/a.py", "lib/b.py"}


@pytest.mark.usefixtures("at_once")
def test_a_large_index_is_not_copied_into_memory(
    location: Location, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.tables.MOST_BYTES", 19)  # two files of 10
    index(location, two_files())
    tables = Tables.open(location)
    warm(tables)
    search(tables)
    assert read == [4, 4, 4]


def test_one_search_alone_copies_nothing(location: Location) -> None:
    index(location, two_files())
    tables = Tables.open(location)
    for _ in range(3):
        search(tables)
    assert "units" not in {thread.name for thread in threading.enumerate()}


def test_the_vector_index_finds_what_comparing_all_finds_and_new_rows_besides(
    location: Location,
) -> None:
    random = np.random.default_rng(3)
    wide = EmbeddingRecord("test/wide", "1", 64)
    centres = random.normal(size=(40, 64))
    vectors = (centres[np.arange(5_400) % 40] + 0.6 * random.normal(size=(5_400, 64))).astype("f4")
    units = [unit(f"f{number}", line=number + 1) for number in range(5_400)]
    writer = index(
        location,
        batch_of(("src/app.py", units, [])),
        vector=wide,
        vectors={"methods": vectors},
    )

    def unindexed() -> int | None:
        indices = writer.tables["methods"].list_indices()
        return next(one.num_unindexed_rows for one in indices if one.columns == ["vector"])

    assert unindexed() == 0
    tables = Tables.open(location)
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
    writer = index(
        location,
        batch_of(("src/late.py", late, [])),
        vector=wide,
        vectors={"methods": vectors[:30]},
    )
    assert unindexed() == 30
    question = vectors[7] + vectors[8]
    scores = dict(Tables.open(location).find(VectorSearch("methods", "vector", question, 70)))
    by_name = {one.name: score for one, score in scores.items()}
    for name, row in (("f7", 7), ("late7", 7), ("f8", 8), ("late8", 8)):
        cosine = float(exact[row] @ question / np.linalg.norm(question))
        assert by_name[name] == pytest.approx(cosine, abs=0.02)
    filtered = Filter(paths=("src/late.py",))
    answer = Tables.open(location).find(VectorSearch("methods", "vector", vectors[7], 70, filtered))
    assert len(answer) == 30 and answer[0][0].name == "late7"


def test_scores_are_measured_in_standard_deviations() -> None:
    scores = {"a": 3.0, "b": 1.5, "c": 0.25}
    deviation = statistics.pstdev(scores.values())
    mean = statistics.fmean(scores.values())
    assert z_scores(scores) == pytest.approx({k: (v - mean) / deviation for k, v in scores.items()})
    assert z_scores({"a": 0.1, "b": 0.1, "c": 0.1}) == {"a": 0.0, "b": 0.0, "c": 0.0}
