"""Indexing runs: what is new, changed, renamed, deleted or newly ignored, and nothing else."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT
from waiting import PATIENCE, until

from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError, IndexBusyError, RepositoryError
from codeqa.indexing import BackgroundIndexer, Indexer
from codeqa.indexing.passes import make_plan
from codeqa.indexing.runs import hold, holder_of, read_run
from codeqa.repositories import last_used
from codeqa.repository.walk import FileEntry, Walk
from codeqa.settings import Settings, load_settings
from codeqa.store import (
    Location,
    Tables,
    TextSearch,
    VectorSearch,
    list_locations,
    locate,
    reader,
)
from codeqa.store.schema import TABLES
from codeqa.types import Progress
from tests.kit.index_rows import age, clean_rows, rows, versions
from tests.kit.indexed import copied, emptied, indexed, write

FILES: dict[str, str | bytes] = {
    "app.py": '"""The app."""\n\nfrom helpers import load\n\n\ndef main():\n    return load("x")\n',
    "helpers.py": "def load(path):\n    return open(path).read()\n\n\n"
    "class Store:\n    def get(self):\n        return load(self)\n",
    "web/page.py": "def render(x):\n    return draw(x)\n",
    "README.md": "# Title\n\nWhat it is.\n\n## Use\n\nRun it.\n",
    "tests/test_app.py": "from app import main\n\n\ndef test_main():\n    main()\n",
    "conf.toml": "[tool]\nname = 'x'\n",
    "image.png": b"\x89PNG\r\n\x1a\n\0\0\0",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = write(tmp_path / "repo", FILES)
    age(root)
    return root


@pytest.fixture
def indexer(settings: Settings, repository: Path) -> Indexer:
    return Indexer(settings, locate(settings, repository))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """The repository, indexed once."""
    folder = tmp_path_factory.mktemp("made")
    age(write(folder / "repo", FILES))
    return indexed(folder, {}).location


@pytest.fixture
def built(settings: Settings, made: Location, tmp_path: Path) -> Indexer:
    """An indexer that has run once."""
    return Indexer(settings, copied(made, settings, tmp_path / "repo"))


def test_a_first_run_indexes_or_lists_every_file(indexer: Indexer, repository: Path) -> None:
    assert indexer.status().state == "missing"
    before, began, states = sorted(repository.rglob("*")), time.time(), []

    def listen(step: Progress) -> None:
        other = Indexer(indexer.settings, indexer.location)  # as another process has it
        states.append((other.status().state, holder_of(indexer.location)))

    summary = indexer.run(listen)
    assert {state for state, _ in states} == {"indexing"}
    assert all(f"process {os.getpid()} on" in holder for _, holder in states)
    assert not holder_of(indexer.location)
    assert read_run(indexer.location).state == "ready"
    assert sorted(repository.rglob("*")) == before, "nothing is written into the repository"
    tables = Tables(indexer.location)
    assert (summary.files, summary.changed, summary.removed, summary.unchanged) == (6, 6, 0, 0)
    assert summary.skipped == {"binary": 1}
    assert [(one.path, one.reason) for one in tables.skipped()] == [("image.png", "binary")]
    assert summary.methods >= 5 and summary.classes >= 1 and summary.documents >= 2
    assert summary.references == tables.counts().references > 3
    assert summary.bytes_on_disk > 1000 and summary.seconds > 0
    assert [unit.path for unit in tables.named(["load"])] == ["helpers.py"]
    assert {one.path for one in tables.references(name=["load"])} == {"app.py", "helpers.py"}
    record = tables.file("app.py")
    assert record and (record.language, record.role) == ("python", "source")
    assert record.size == (repository / "app.py").stat().st_size
    status, fast = indexer.status(), fast_embedding()
    assert (status.state, status.files, status.skipped) == ("ready", 6, {"binary": 1})
    assert status.units == summary.methods + summary.classes + summary.documents
    assert fast and (status.embedded, status.embedding) == (status.units, fast.name)
    assert began <= status.updated_at <= time.time()
    assert status.progress is None and status.error == ""


def test_what_has_its_size_and_time_is_not_opened_and_what_was_touched_keeps_its_rows(
    built: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.indexing.passes.TIME_RESOLUTION_NS", LONG_BEFORE)
    repository, before = built.location.root, versions(built.location)
    swap_a_name(repository / "app.py")
    summary = built.run()
    assert versions(built.location) == before
    assert (summary.changed, summary.removed, summary.unchanged) == (0, 0, 6)
    assert Tables(built.location).named(["niam"]) == []
    os.utime(repository / "helpers.py", (1_600_000_000, 1_600_000_000))
    assert built.run().changed == 0
    after = versions(built.location)
    assert [after[table] for table in TABLES[:3]] == [before[table] for table in TABLES[:3]]
    record = Tables(built.location).file("helpers.py")
    assert record is not None and record.mtime_ns == 1_600_000_000 * 10**9


LONG_BEFORE = -(10**12)
"""With it files are as if they had changed long before the last run."""


def swap_a_name(file: Path) -> None:
    """Write another content of the same size at the same time."""
    status = file.stat()
    file.write_bytes(file.read_bytes().replace(b"main", b"niam"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_file_changed_right_after_it_was_read_is_compared_by_content_and_then_trusted(
    indexer: Indexer, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolution = "codeqa.indexing.passes.TIME_RESOLUTION_NS"
    monkeypatch.setattr(resolution, 3_600 * 10**9)  # however long the first run takes to begin
    os.utime(repository / "app.py")
    indexer.run()
    swap_a_name(repository / "app.py")
    indexer.run()
    assert Tables(indexer.location).named(["niam"])
    monkeypatch.setattr("codeqa.indexing.passes.TIME_RESOLUTION_NS", LONG_BEFORE)
    before, steps = versions(indexer.location), list[Progress]()
    indexer.run(steps.append)
    assert versions(indexer.location) == before
    assert max(step.total for step in steps) == 0


def test_what_changes_gives_the_rows_of_a_clean_index(built: Indexer, tmp_path: Path) -> None:
    repository = built.location.root
    (repository / "app.py").write_text("def main():\n    return 2\n\n\ndef more():\n    main()\n")
    (repository / "helpers.py").rename(repository / "web" / "help.py")
    (repository / "README.md").unlink()
    (repository / "new.py").write_text("def Load():\n    return 1\n")
    (repository / "web/page.py").write_bytes(b"\0\1binary\0" * 100)
    (repository / "tests/test_app.py").write_text("x = 1\n" * 400_000)
    summary = built.run()
    assert (summary.changed, summary.removed, summary.unchanged) == (4, 2, 1)
    assert rows(built.location) == clean_rows(repository, tmp_path)
    tables = Tables(built.location)
    reasons = {item.path: item.reason for item in tables.skipped()}
    assert reasons["web/page.py"] == "binary"
    assert reasons["tests/test_app.py"].startswith("larger than")
    for path in ("README.md", "web/page.py", "tests/test_app.py"):
        assert tables.in_file(path) == [] and tables.references(path=[path]) == []
    assert tables.file("helpers.py") is None
    assert [unit.path for unit in tables.named(["load"])] == ["new.py", "web/help.py"]


def test_changed_ignore_rules_remove_and_bring_back_files(built: Indexer) -> None:
    repository, before = built.location.root, rows(built.location)
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    ignored = {".gitignore": "web/page.py", ".codeqaignore": "conf.toml"}
    write(repository, ignored)
    built.run()
    assert not any(Tables(built.location).in_file(path) for path in ignored.values())
    for name in ignored:
        (repository / name).unlink()
    built.run()
    assert rows(built.location) == before


def test_other_rules_rebuild_beside(built: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Tables(built.location)
    monkeypatch.setattr("codeqa.indexing.indexer.ROWS_VERSION", "other")
    summary = built.run()
    assert summary.changed == 6
    assert Tables(built.location).meta().generation == 2
    assert built.run().changed == 0
    assert reader.named(["load"])


def test_source_is_read_first_and_vendored_code_last() -> None:
    paths = ["README.md", "node_modules/x/a.js", "src/z.py", "tests/test_a.py", "vendor/b.go"]
    found = Walk(Path("/"), tuple(FileEntry(path, 1, 1) for path in paths), ())
    order = [entry.path for entry in make_plan(found, {}, 0)[0]]
    assert order[0] == "src/z.py"
    assert set(order[1:3]) == {"README.md", "tests/test_a.py"}
    assert set(order[3:]) == {"node_modules/x/a.js", "vendor/b.go"}


def test_a_repository_whose_files_are_gone_says_so_and_finds_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    tables = emptied(tmp_path)
    indexer = Indexer(settings, tables.location)
    status = indexer.status()
    assert (status.state, status.files) == ("ready", 0) and "No source files here" in status.error
    assert tables.find(TextSearch("methods", "gone", 5)) == []
    assert last_used(load_settings(data=tmp_path / "data")) is None
    write(tables.location.root, {"README.md": "# Shop\n\nIt sells.\n"})
    assert indexer.run().documents == 1, "documents alone can be asked about"
    assert indexer.status().error == ""


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ({}, "folder is empty, or git ignores everything in it"),
        ({"a.bin": b"\0\0", "b.png": b"\x89PNG", "c": b"\0"}, r"folder are left out \(3 binary\)"),
        ({"yarn.lock": "a", "b": b"\0", "c.png": b"\x89PNG"}, r"\(2 binary, 1 lock file\)"),
        ({".gitignore": "*\n", "a.py": "x = 1\n"}, "or git ignores everything in it"),
    ],
)
def test_a_folder_without_source_is_refused_and_noted_nowhere(
    settings: Settings, tmp_path: Path, files: dict[str, str | bytes], what: str
) -> None:
    root = write(tmp_path / "folder", files)
    with pytest.raises(RepositoryError, match=f"^No source files here: .*{what}"):
        Indexer(settings, locate(settings, root)).run()
    assert last_used(settings) is None and not list_locations(settings)


def test_the_state_is_told_without_the_tables(built: Indexer, settings: Settings) -> None:
    """As the page needs it, which is there before the database is loaded."""
    built.run()
    stranger = Indexer(settings, built.location, lambda: pytest.fail("The tables were opened."))
    assert stranger.state() == built.status().state == "ready"
    with hold(built.location):
        assert stranger.state() == "indexing"
    stranger.pause()
    assert stranger.state() == "paused"
    root = write(built.location.root.parent / "new", {"a.py": "x = 1\n"})
    new = Indexer(settings, locate(settings, root), stranger._open)
    assert new.state() == "missing"


def test_a_second_run_waits_or_does_not_and_says_for_whom(built: Indexer) -> None:
    steps: list[Progress] = []
    with ThreadPoolExecutor(1) as thread:
        with hold(built.location):
            with pytest.raises(IndexBusyError, match=str(os.getpid())):
                built.run(wait=False)
            second = thread.submit(built.run, steps.append)
            until(lambda: len(steps) > 1)  # it looked twice
            assert {step.phase for step in steps} == {"waiting"}
            assert str(os.getpid()) in steps[0].detail
        assert second.result(PATIENCE).unchanged == 6
    assert built.status().state == "ready"


def test_a_background_run_can_be_stopped(settings: Settings, tmp_path: Path) -> None:
    root = write(tmp_path / "many", {f"m{n}.py": f"def f{n}(): ...\n" for n in range(12)})
    small_batches = settings.model_copy(update={"batch_files": 4})
    indexer = BackgroundIndexer(small_batches, locate(settings, root))
    halfway, stopped = threading.Event(), threading.Event()

    def listen(step: Progress) -> None:
        if step.done == 8:
            halfway.set()
            assert stopped.wait(PATIENCE)

    indexer.start(listen)
    indexer.start(lambda step: pytest.fail("a second one runs"))
    assert halfway.wait(PATIENCE)
    threading.Thread(target=indexer.stop).start()
    until(indexer.signals.stop.is_set)
    stopped.set()
    until(lambda: indexer.status().state == "stopped")
    assert 0 < indexer.status().files < 12
    assert indexer.run().files == 12
    assert indexer.status().state == "ready"


def test_an_interrupted_run_is_said_and_completed(indexer: Indexer, made: Location) -> None:
    def interrupt(step: Progress) -> None:
        if step.phase == "indexing" and step.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        indexer.run(interrupt)
    assert not holder_of(indexer.location)
    assert indexer.status().state == "stopped"
    assert "interrupted" in indexer.status().error
    indexer.run()
    assert indexer.status().error == ""
    assert rows(indexer.location) == rows(made)


def test_a_repository_that_vanished_is_an_error_not_an_empty_index(built: Indexer) -> None:
    repository = built.location.root
    repository.rename(repository.with_name("gone"))
    with pytest.raises(CodeQAError, match="repo"):
        built.run()
    assert Tables(built.location).counts().files == 6


def test_a_reader_follows_a_rebuild(built: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    real, rebuilds = reader.read_meta, [built.run]

    def read_meta(database: object) -> object:
        meta = real(database)
        if rebuilds:  # what was just read is out of date before it is used
            rebuilds.pop()(full=True)
        return meta

    monkeypatch.setattr(reader, "read_meta", read_meta)
    assert Tables(built.location).counts().files == 6
    assert not rebuilds


def test_an_index_in_its_own_repository_is_left_out(repository: Path, settings: Settings) -> None:
    inside = settings.model_copy(
        update={"data": repository / "own", "tables": str(repository / "own-tables")}
    )
    vars(inside).pop("data_dir", None)
    indexer = Indexer(inside, locate(inside, repository))
    indexer.run()
    summary = indexer.run()
    assert (summary.files, summary.changed) == (6, 0)
    assert summary.skipped["CodeQA's own data"] == 2


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path, settings: Settings) -> None:
    odd = tmp_path / os.fsdecode(b"bad\xff")
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(RepositoryError, match="not in UTF-8"):
        locate(settings, odd)


def test_the_index_of_an_earlier_version_is_used(settings: Settings, tmp_path: Path) -> None:
    """The commit before piece 6 wrote it."""
    with zipfile.ZipFile(ROOT / "tests" / "fixtures" / "piece5.zip") as archive:
        archive.extractall(tmp_path)
    location = locate(settings, tmp_path / "repository")
    location.folder.mkdir(parents=True)
    (tmp_path / "tables").rename(location.tables)
    tables, fast = Tables(location), fast_embedding()
    assert [unit.span for unit in tables.named(["closeday"])] == ["till.py:16-19"]
    assert tables.find(TextSearch("methods", "evening", 5))[0][0].name == "close_day"
    assert fast
    vector = fast.embed_query("empty the till in the evening")
    assert tables.find(VectorSearch("methods", "vector", vector, 1))[0][0].name == "close_day"
    summary = Indexer(settings, location).run()
    assert (summary.files, summary.methods) == (2, 3)
    assert Tables(location).find(TextSearch("methods", "evening", 5))[0][0].name == "close_day"
