"""Several repositories in one pair of tables."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codeqa.doctor import examine
from codeqa.engine import open_multi_repo
from codeqa.errors import IndexFormatError, IndexMissingError, NotFoundError, UsageError
from codeqa.indexing import Indexer
from codeqa.repositories import remove_repository, rename_repository
from codeqa.repositories.collection import MOST_CHOICES, WHOLE, Collection, collections
from codeqa.repositories.multi_repo import ALL, MultiRepoTables, locations_of
from codeqa.settings import Settings, load_settings
from codeqa.store import Filter, Location, Tables, list_locations, locate
from codeqa.store import tables as store_tables
from codeqa.store.location import connect, short_id
from codeqa.store.reader import TableReader, damage, run_on_loop
from codeqa.store.records import first_edge
from codeqa.store.schema import REFINED, REPOSITORY, TABLES, EmbeddingRecord
from codeqa.store.writer import TableWriter, existing_tables, write_descriptions
from codeqa.text.tokens import name_key
from codeqa.web.security import LOCAL
from codeqa.web.workspace import Workspace
from codeqa_server.access import Rules
from tests.kit.repositories import write
from tests.kit.waiting import PATIENCE

pytest_plugins = ("patient",)
pytestmark = pytest.mark.usefixtures("patient")

FILES = {
    "left": {
        "a.py": "def one():\n    return two()\n\n\ndef two():\n    return 2\n",
        "b.md": "# B\n\nWords.\n",
    },
    "right": {"a.py": "class Three:\n    def three(self):\n        return 3\n", "c.py": "X = 1\n"},
}  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("collection")
    settings = load_settings(data=base / "data")
    places = [locate(settings, write(base / name, files)) for name, files in FILES.items()]
    for one in places:
        Indexer(settings, one).run()
    together(settings, *places)
    return base


@pytest.fixture
def shop(prepared: Path, tmp_path: Path) -> tuple[Settings, Location, Location]:
    """Settings, and two repositories that are indexed and were asked together."""
    shutil.copytree(prepared / "data", tmp_path / "data")
    settings = load_settings(data=tmp_path / "data")
    for name, files in FILES.items():  # as they were, whatever the last test did
        for file in {*(prepared / name).iterdir()} - {prepared / name / path for path in files}:
            file.unlink()
        for path, text in files.items():
            if not (there := prepared / name / path).exists() or there.read_text() != text:
                there.write_text(text)
    left, right = (locate(settings, prepared / name) for name in FILES)
    return settings, left, right


def together(settings: Settings, *places: Location) -> MultiRepoTables:
    return MultiRepoTables(Collection(settings), "", places).opened()


def rows_of(location: Location, one: str = "", where: str = "") -> dict[str, list[Any]]:
    """The rows of each table; as a collection has them of `one`, where that is given."""
    reader, tables = TableReader(location), {}
    for table in TABLES:
        schema = run_on_loop(reader.snapshot().tables[table].schema())
        rows = reader.arrow(table, [*schema.names], where).to_pylist()
        for row in rows:
            row.pop(REPOSITORY, None)
            if one and table == "edges":
                row["id"] ^= first_edge(one)
            for key in ("path", "unit_id", "target", "id") if one else ():
                if isinstance(row.get(key), str) and row[key]:
                    row[key] = f"{one}/{row[key]}"
        tables[table] = sorted(rows, key=str)
    return tables


def assert_copied(settings: Settings, *places: Location) -> None:
    location = Collection(settings).location
    for one in places:
        mine = rows_of(location, where=f"{REPOSITORY} = '{short_id(one.id)}'")
        assert mine == rows_of(one, short_id(one.id)), f"{one.name} is not as in its own index"
    held = {short_id(one.id) for one in places}
    for table in TABLES:
        there = TableReader(location).arrow(table, (REPOSITORY,))[REPOSITORY].unique().to_pylist()
        assert {*there} <= held


def test_rows_are_those_of_each_repository_after_every_change_and_nothing_else_is_copied(
    shop: tuple[Settings, Location, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, left, right = shop
    before = rows_of(Collection(settings).location)["files"]
    assert_copied(settings, left, right)
    first = together(settings, left, right).version()
    assert together(settings, left, right).version() == first
    (left.root / "a.py").write_text("def one():\n    return 'changed'\n")
    (left.root / "b.md").unlink()
    Indexer(settings, left).run()
    written: list[str] = []

    def noted(
        self: TableWriter, table: str, rows: Any, replaced: Any, own: Any = TableWriter.put
    ) -> None:
        written.extend(rows["path"].to_pylist() if table == "files" else ())
        own(self, table, rows, replaced)

    with monkeypatch.context() as patch:
        patch.setattr(TableWriter, "put", noted)
        together(settings, left, right)
    assert {path.partition("/")[0] for path in written} == {short_id(left.id)}
    (right.root / "new.py").write_text("def fresh():\n    return X\n")
    Indexer(settings, right).run()
    tables = together(settings, left, right)
    assert_copied(settings, left, right)
    assert before != rows_of(Collection(settings).location)["files"]
    assert [unit.name for unit in tables.named(["one", "two", "fresh"])] == ["one", "fresh"]


def test_who_asks_some_reads_nothing_of_the_others(
    shop: tuple[Settings, Location, Location],
) -> None:
    settings, _, right = shop
    alone = together(settings, right)
    assert {unit.path.partition("/")[0] for unit in alone.units()} == {"right"}
    assert not alone.named(["one", "two"]) and not alone.in_file("left/a.py")
    assert not alone.references(name=["two"]) and alone.file("left/a.py") is None
    names, own = (one.catalogue().names for one in (alone, Tables(right)))
    assert {key: {*names[key]} for key in names} == {key: {*own[key]} for key in own}
    assert alone.counts() == Tables(right).counts()
    found = [unit.path for unit, _ in alone.find(store_tables.TextSearch("methods", "one two", 9))]
    assert not found


@pytest.mark.slow
def test_wherever_copying_is_killed_the_next_one_completes_it(
    shop: tuple[Settings, Location, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, left, right = shop
    shutil.rmtree(settings.data_dir / "collections")

    class Killed(BaseException):
        """What no code of ours catches."""

    calls = 0

    def dying(after: int, own: Callable[..., Any]) -> Callable[..., Any]:
        def write(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > after:
                raise Killed
            return own(*given, **named)

        return write

    put, invalidate = TableWriter.put, TableWriter.invalidate
    for after in range(6):
        calls = 0
        monkeypatch.setattr(TableWriter, "put", dying(after, put))
        monkeypatch.setattr(TableWriter, "invalidate", dying(after, invalidate))
        with pytest.raises(Killed):
            together(settings, left, right)
    monkeypatch.undo()
    together(settings, left, right)
    assert_copied(settings, left, right)


def test_descriptions_and_vectors_that_come_later_are_copied(
    shop: tuple[Settings, Location, Location],
) -> None:
    settings, left, right = shop
    record = EmbeddingRecord("chosen", "1", 8)
    for one in (left, right):
        meta = Tables(one).meta()
        writer = TableWriter.open(one, meta.parser, meta.vector)
        unit = next(unit for unit in Tables(one).units() if unit.is_method)
        with writer.growing():
            write_descriptions(writer, [(unit, "Says what it does.")])
        if one is left:
            writer.refine_with(record)
            writer.tables["methods"].update(values={REFINED: [0.5] * 8})
            writer.update_meta(dirty=False)
    tables = together(settings, left, right)
    mine = rows_of(tables.location, where=f"{REPOSITORY} = '{short_id(left.id)}'")
    assert mine == rows_of(left, short_id(left.id))
    texts = [row["llm_comment"] for row in rows_of(tables.location)["methods"]]
    assert texts.count("Says what it does.") == 2
    # One of them has no such vectors, so that none is searched by them.
    assert [column for column, _ in tables.vector_columns()] == ["vector"]
    assert REFINED in dict(together(settings, left).vector_columns())


def test_what_is_removed_leaves_the_collection_and_its_files(
    shop: tuple[Settings, Location, Location],
) -> None:
    settings, left, right = shop
    (right.root / "secret.py").write_text("def unspeakable_word():\n    return 1\n")
    Indexer(settings, right).run()
    tables = together(settings, left, right)
    remove_repository(settings, right)
    assert_copied(settings, left)
    folder = Path(tables.location.tables)
    for file in folder.rglob("*"):
        assert not file.is_file() or b"unspeakable_word" not in file.read_bytes()
    with pytest.raises(IndexMissingError):
        together(settings, replace(right, id="gone-00000000"))


def test_a_new_name_is_that_of_all_paths_and_rewrites_no_row(
    shop: tuple[Settings, Location, Location],
) -> None:
    settings, left, right = shop
    before = together(settings, left, right).version()
    rename_repository(settings, left, "other")
    tables = together(settings, left, right)
    assert {path.partition("/")[0] for path in tables.catalogue().paths} == {"other", "right"}
    assert {unit.id.partition("/")[0] for unit in tables.named(["one"])} == {"other"}
    (use,) = tables.references(name=["two"], path=["other/a.py"])
    assert use.target.startswith("other/") and use.unit_id.startswith("other/")
    assert tables.by_ids([use.target])[0].name == "two" and not tables.in_file("left/a.py")
    assert tables.version() == before
    assert_copied(settings, left, right)


def test_indices_are_built_behind_the_question_and_rows_may_be_copied_meanwhile(
    shop: tuple[Settings, Location, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, left, right = shop
    collection, going, on = Collection(settings), threading.Event(), threading.Event()
    asked = MultiRepoTables(collection, "", [left, right])
    asked.opened()
    collection.close(PATIENCE)

    def slowly(self: Collection, own: Callable[..., None] = Collection.tidy) -> None:
        going.set()
        assert on.wait(PATIENCE)
        own(self)

    monkeypatch.setattr(Collection, "tidy", slowly)
    many = "".join(f"def fresh_{number}():\n    pass\n\n\n" for number in range(60))
    (left.root / "a.py").write_text(many)
    Indexer(settings, left).run()
    asked.look_again()
    assert going.wait(PATIENCE)
    assert asked.named([name_key("fresh_0")]), "it is found while the indices are old"
    on.set()
    collection.close(PATIENCE)
    counts = [
        index.num_unindexed_rows
        for handle in existing_tables(connect(collection.location), 1).values()
        for index in handle.list_indices()
    ]
    assert counts and max(counts) <= 50
    assert len(asked.opened().find(store_tables.TextSearch("methods", "fresh", 500))) == 60
    assert not damage(collection.location), "what was built behind is no damage"


def test_damaged_tables_are_made_anew(shop: tuple[Settings, Location, Location]) -> None:
    settings, left, right = shop
    location = together(settings, left, right).location
    shutil.rmtree(Path(location.tables) / "methods.lance" / "_versions")
    together(settings, left, right)
    assert_copied(settings, left, right)


@pytest.mark.parametrize(
    ("part", "looked_at"),
    [("data/*", False), ("data/*", True), ("_indices/*/*tokens.lance", False)],
)
def test_a_damaged_file_costs_one_question_or_the_doctor_mends_it(
    part: str, looked_at: bool, shop: tuple[Settings, Location, Location]
) -> None:
    settings, left, right = shop
    tables = together(settings, left, right)
    for damaged in (Path(tables.location.tables) / "methods.lance").glob(part):
        damaged.write_bytes(b"\xff" * damaged.stat().st_size)
    if looked_at:
        found = [
            {one.name: one for one in examine(settings, repair=mend)} for mend in (False, True)
        ]
        assert not found[0]["collection all"].ok
        assert found[1]["collection all"].ok and found[1]["collection all"].repaired
    tables = MultiRepoTables(Collection(settings), "", [left, right]).opened()
    if not looked_at:
        with pytest.raises(IndexFormatError):
            tables.find(store_tables.TextSearch("methods", "one", 5))
            tables.units(Filter())
    tables.look_again()
    assert tables.counts().methods == 3
    assert_copied(settings, left, right)


def test_all_means_every_repository_of_now_under_the_names_of_those_asked(
    shop: tuple[Settings, Location, Location], tmp_path: Path
) -> None:
    settings, left, right = shop
    space = Workspace(settings)
    engine = space.engine(ALL, LOCAL)
    assert space.engine(ALL, LOCAL) is engine
    assert {one.id for one in engine.repositories} == {left.id, right.id}
    twin = locate(settings, write(tmp_path / "left", {"z.py": "def zed():\n    return 0\n"}))
    Indexer(settings, twin).run()
    assert locations_of(settings, ALL) == sorted((left, right, twin), key=lambda one: one.id)
    assert space.engine(ALL, LOCAL).search.search("zed").units[0].unit.path == f"{twin.id}/z.py"
    assert space.engine(ALL, LOCAL).location.id == ALL
    space.close()
    every, some = together(settings, left, right, twin), together(settings, left, right)
    named = {unit.path for unit in every.named(["one", "zed"])}
    assert named == {f"{left.id}/a.py", f"{twin.id}/z.py"}
    assert [unit.path for unit in some.named(["one"])] == ["left/a.py"]
    assert [unit.name for unit in some.units(Filter(paths=("left/a.py",)))] == ["one", "two"]
    assert every.version() == some.version()


def test_names_of_a_large_index_are_looked_up_where_they_lie(
    shop: tuple[Settings, Location, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.store.catalogue.MOST_NAMES", 1)
    settings, left, right = shop
    with open_multi_repo(settings, [left, right]) as engine:
        assert not engine.tables().catalogue().names
        assert engine.search.search("three").units[0].unit.name.lower() == "three"
        completed = [one.text for one in engine.completion.complete("thr")]
        assert {"Three", "three"} & {one.rpartition(".")[2] for one in completed}
        assert [one.path for one in engine.completion.complete("left/a")] == ["left/a.py"]


def test_all_may_be_more_than_can_be_chosen_also_where_rules_leave_some_out(
    shop: tuple[Settings, Location, Location], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, left, right = shop
    monkeypatch.setattr("codeqa.web.workspace.MOST_REPOSITORIES", 1)
    space = Workspace(settings)
    rules = Rules(repositories={"*": {"all"}})
    member = replace(LOCAL, sees=partial(rules.allow, frozenset({"all"})))
    assert {*space.engine(ALL, member).repositories} == {left, right}
    with pytest.raises(UsageError):
        space.engine(f"{left.id}~{right.id}", member)
    space.close()


def test_a_repository_that_another_process_removed_does_not_come_back_by_itself(
    shop: tuple[Settings, Location, Location],
) -> None:
    settings, left, _ = shop
    here, other = Workspace(settings), Workspace(settings)
    index = here.open(left.root, update=False).index
    index.run()
    assert here.engine(left.id, LOCAL).index is index
    other.remove(left)
    (left.root / "a.py").write_text("def again():\n    pass\n")
    assert not index.update_now()
    index.follow(lambda _: None)  # which ends by itself
    assert left.id not in {one.id for one in list_locations(settings)}
    with pytest.raises(NotFoundError):
        here.engine(left.id, LOCAL)
    here.open(left.root, update=False).index.run()  # by somebody who asks for it
    assert left.id in {one.id for one in list_locations(settings)}
    here.close()


def tables_of_choice(settings: Settings, others: Sequence[Collection]) -> list[str]:
    """Names of the collections of a choice, but for `others`."""
    names = {one.location.folder.name for one in collections(settings)}
    return sorted(names - {WHOLE} - {one.location.folder.name for one in others})


def test_what_somebody_may_not_see_changes_no_score_and_no_order(tmp_path: Path) -> None:
    words = [(f"apple{n}", f"melon{n}") for n in range(8)]
    files = {"open": {}, "more": {}, "hidden": {}}
    for n, (left, right) in enumerate(words):
        for name, word in (("open", left), ("more", right)):
            files[name][f"{n}.py"] = f"def f{n}():\n    return '{word} pear'\n"
    for n in range(40):
        text = f"def g{n}():\n    return '{words[n % 8][n % 2]} pear'\n"
        files["hidden"][f"{n}.py"] = text
    rules = Rules(repositories={"hidden": frozenset({"few"}), "*": frozenset({"*"})})
    member = replace(LOCAL, owner=False, sees=partial(rules.allow, frozenset({"*"})))
    told = []
    for names in (("open", "more"), ("open", "more", "hidden")):
        settings = load_settings(data=tmp_path / f"data of {len(names)}", workers=1)
        for name in names:
            root = write(tmp_path / name, files[name])
            Indexer(settings, locate(settings, root)).run()
        space = Workspace(settings)
        space.engine(ALL, LOCAL).search.search("pear")  # the others' rows are there as well
        search = space.engine(ALL, member).search.search
        found = [search(" ".join(pair)).units for pair in words]
        told.append([[(hit.unit.id, hit.score) for hit in units] for units in found])
        assert all(len(units) > 1 for units in told[-1])
        if "hidden" in names:
            every = [Collection(settings, f"{n}") for n in range(MOST_CHOICES)]
            for one in every:  # others make room
                one.copy({})
            assert not tables_of_choice(settings, every)
            assert [hit.unit.id for hit in search("apple0").units]
        space.close()
    assert told[0] == told[1]
