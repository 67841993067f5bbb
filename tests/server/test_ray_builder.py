"""An index that is built on a Ray cluster: the same rows, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeqa.cli import main
from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import ClusterError, IndexMissingError, SettingsError, UsageError
from codeqa.indexing import Indexer
from codeqa.indexing.runs import read_run
from codeqa.settings import Settings, load_settings
from codeqa.store import Location, Tables, TextSearch, VectorSearch, locate
from codeqa.store.records import units_of
from codeqa.store.writer import write_descriptions
from codeqa.types import IndexSummary
from codeqa_server import ray_builder
from codeqa_server.ray_builder import RayBuilder
from tests.indexing.test_kill import mutate, wait_until_free, write_module
from tests.kit.index_rows import clean_rows, opened, rows
from tests.kit.s3_server import BUCKET, ENVIRONMENT, s3_stores

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own, and LanceDB's on what Ray forks
SMALL = {"include_dashboard": False, "object_store_memory": 80_000_000}


class Machines:
    """A head without processors and some machines of one each, as processes of this one."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.address = str(cluster.address)
        self.lost: list[Any] = []

    def start(self, count: int) -> None:
        """Have `count` machines again."""
        nodes = self.cluster.worker_nodes
        while len(nodes) < count:
            self.cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
        self.cluster.wait_for_nodes()

    def kill(self, chance: random.Random) -> None:
        self.cluster.remove_node(
            chance.choice(sorted(self.cluster.worker_nodes, key=id)), allow_graceful=False
        )


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    """Three processors on as many machines, which need a token."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_AUTH_MODE", "token")  # before Ray is imported
        environment.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("PYTHONPATH", str(ROOT))
        pytest.importorskip("lance_ray", reason="Ray is not here: `make test-cluster` installs it.")
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
        try:
            made = Machines(cluster)
            made.start(3)
            ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
            yield made
        finally:
            ray.shutdown()
            cluster.shutdown()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Some files, of which each chunk has a few."""
    monkeypatch.setattr(ray_builder, "CHUNK_BYTES", (2_000, 2_000))
    root = tmp_path / "repo"
    for number in range(24):
        write_module(root, number, 0)
    (root / "notes.md").write_text("# Notes\n\nWhat the steps are for.\n")
    (root / "empty.py").write_text("")
    return root


@pytest.fixture
def location(repository: Path, settings: Settings) -> Location:
    return locate(settings, repository)


def build(settings: Settings, location: Location, **options: Any) -> IndexSummary:
    """One run on the cluster that this process is connected to."""
    return Indexer(settings, location).run(refine=False, builder=RayBuilder("ray"), **options)


def unnamed_files(location: Location) -> set[str]:
    """Files of rows that no version of a table names: what nobody will ever read."""
    import lance

    found = set()
    for name in Path(location.tables).glob("*.lance"):
        dataset = lance.dataset(name)
        versions = [lance.dataset(name, version=one["version"]) for one in dataset.versions()]
        named = {
            file.path
            for one in versions
            for part in one.get_fragments()
            for file in part.data_files()
        }
        found |= {str(one) for one in (name / "data").glob("*.lance") if one.name not in named}
    return found


def test_a_cluster_builds_the_same_rows_and_later_reads_only_what_changed(
    machines: Machines, settings: Settings, location: Location, tmp_path: Path
) -> None:
    machines.start(3)
    build(settings, location)
    assert rows(location) == clean_rows(location.root, tmp_path)
    before = {one.path: one.indexed_at for one in Tables(location).files()}
    kept = rows(location)["methods"]
    (location.root / "src/module_1.py").write_text("def changed():\n    return 1\n")
    (location.root / "src/module_2.py").unlink()
    write_module(location.root, 99, 1)
    summary = build(settings, location)
    assert (summary.changed, summary.removed) == (2, 1)
    assert rows(location) == clean_rows(location.root, tmp_path)
    after = {one.path: one.indexed_at for one in Tables(location).files()}
    rewritten = {path for path in after if after[path] != before.get(path)}
    assert rewritten == {"src/module_1.py", "tests/module_99.py"}
    assert len(rows(location)["methods"]) > len(kept) - 12


def test_indices_that_are_built_across_machines_find_what_others_find(
    machines: Machines,
    settings: Settings,
    location: Location,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machines.start(3)
    monkeypatch.setattr(ray_builder, "DISTRIBUTED_ROWS", 60)
    monkeypatch.setattr("codeqa.store.writer.VECTOR_INDEX_ROWS", 256)
    monkeypatch.setattr("codeqa.store.writer._COLUMNS", COLUMNS)
    monkeypatch.setattr(ray_builder, "CHUNK_BYTES", (20_000, 20_000))
    for number in range(100, 180):  # a partition is trained on 256 vectors
        write_module(location.root, number, 0)
    build(settings, location)
    other = locate(load_settings(data=tmp_path / "other", workers=1), location.root)
    Indexer(load_settings(data=tmp_path / "other", workers=1), other).run(refine=False)
    segments = opened(location).tables["methods"].list_indices()
    assert {one.columns[0]: (one.index_type, one.num_unindexed_rows) for one in segments} == {
        "search_text": ("FTS", 0), "path": ("BTree", 0), "kind": ("Bitmap", 0),
        "vector": ("IvfSq", 0),
    }  # fmt: skip
    import lance

    parts = lance.dataset(f"{location.tables}/methods_2.lance").describe_indices()
    assert all(len(one.segments) > 1 for one in parts)
    fast = fast_embedding()
    assert fast is not None
    asked = [
        TextSearch("methods", "step 7 value", 10),
        VectorSearch("methods", "vector", fast.embed_query("what step 5 returns"), 10),
    ]
    here, there = Tables(location).best(asked), Tables(other).best(asked)
    assert [(one.id, round(score, 4)) for one, score in here[0]] == [
        (one.id, round(score, 4)) for one, score in there[0]
    ]
    assert here[1][0][1] == pytest.approx(there[1][0][1], abs=0.01)


COLUMNS = {
    "methods": ("search_text", "path", "kind"),
    "classes": ("search_text",),
    "edges": (),
    "files": (),
}


def test_a_machine_that_is_killed_changes_no_row(
    machines: Machines, settings: Settings, location: Location, tmp_path: Path
) -> None:
    machines.start(3)
    chance = random.Random(3)

    def kill(step: Any) -> None:
        if step.phase == "indexing" and step.done > 4 and not killed:
            killed.append(step.done)
            machines.kill(chance)

    killed: list[int] = []
    build(settings, location, progress=kill)
    assert killed
    assert rows(location) == clean_rows(location.root, tmp_path)
    assert unnamed_files(location) == set()


@pytest.mark.parametrize("step", ["before the commit", "between two tables"])
def test_a_run_whose_driver_is_killed_shows_nothing_and_is_completed_by_the_next(
    step: str, machines: Machines, settings: Settings, location: Location, tmp_path: Path
) -> None:
    machines.start(2)
    kill_driver({"before the commit": 1, "between two tables": 2}[step], machines, location)
    with pytest.raises(IndexMissingError):
        Tables(location).files()
    assert unnamed_files(location)
    build(settings, location)
    assert rows(location) == clean_rows(location.root, tmp_path)
    assert unnamed_files(location) == set()
    assert len(list(Path(location.tables).glob("methods*"))) == 1


@pytest.mark.parametrize("commit", [1, 3, 4])
def test_edits_whose_driver_is_killed_in_the_middle_are_completed_by_the_next(
    commit: int, machines: Machines, settings: Settings, location: Location, tmp_path: Path
) -> None:
    machines.start(2)
    build(settings, location)
    mutate(location.root, random.Random(commit))
    kill_driver(commit, machines, location)
    build(settings, location)
    assert rows(location) == clean_rows(location.root, tmp_path)
    assert unnamed_files(location) == set()


def kill_driver(commit: int, machines: Machines, location: Location) -> None:
    """One run, which is killed before that commit of the rows that the cluster wrote."""
    driver = subprocess.run(
        [sys.executable, "-c", KILLED, str(location.root), machines.address, str(commit)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CODEQA_DATA": str(location.folder.parents[1])},
        capture_output=True,
        timeout=300,
    )
    assert driver.returncode == -signal.SIGKILL, driver.stderr.decode()
    wait_until_free(location)


KILLED = """
import os, signal, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import lance
from codeqa_server import ray_builder
from create_tables import create_tables
ray_builder.CHUNK_BYTES = 2_000, 2_000
calls, commit = [], lance.LanceDataset.commit
def killed(*given, **named):
    calls.append(given)
    if len(calls) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    commit(*given, **named)
lance.LanceDataset.commit = killed
create_tables(sys.argv[1], engine=f"ray={sys.argv[2]}", refine=False)
"""


def test_an_edited_file_keeps_what_was_paid_for(
    machines: Machines, settings: Settings, location: Location
) -> None:
    """Descriptions of methods that stay as they are, which tasks carry over."""
    machines.start(2)
    build(settings, location)
    before = opened(location)
    units = before.tables["methods"].search().where("path = 'src/module_1.py'").limit(99)
    first, *_ = sorted(units_of(units.to_arrow()), key=lambda unit: unit.start_line)
    with before.growing():
        write_descriptions(before, [(first, "What the zeppelin does.")], fast_embedding())
    with (location.root / first.path).open("a") as file:
        file.write("\n\ndef added():\n    return 1\n")
    build(settings, location)
    found = Tables(location).best([TextSearch("methods", "zeppelin", 5)])
    assert [one.id for one, _ in found[0]] == [first.id]
    assert "added" in {row["name"] for row in rows(location)["methods"]}


def test_listed_repositories_are_built_together_and_fail_alone(
    machines: Machines,
    settings: Settings,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    machines.start(3)
    roots = [tmp_path / name for name in ("one", "two", "three")]
    for root in roots:
        shutil.copytree(repository, root)
        (root / f"{root.name}.py").write_text(f"def of_{root.name}():\n    return 1\n")
    together, read = threading.Barrier(3, timeout=120), RayBuilder.read

    def reading(*given: Any) -> Any:
        together.wait()  # which breaks where they are read one after the other
        return read(*given)

    monkeypatch.setattr(RayBuilder, "read", reading)
    monkeypatch.setenv("CODEQA_DATA", str(settings.data_dir))
    names = tmp_path / "names.txt"
    names.write_text("\n".join(map(str, [roots[0], tmp_path / "nowhere", "", *roots[1:]])))
    assert main(["index", str(names), "--engine", "ray"]) == 1
    printed = capsys.readouterr()
    assert "3 of 4 repositories were indexed" in printed.out
    assert f"Not indexed: {tmp_path / 'nowhere'}." in printed.err
    for root in roots:
        assert rows(locate(settings, root)) == clean_rows(root, tmp_path)


def test_a_cluster_that_loses_its_head_ends_the_run_with_a_sentence(
    machines: Machines, settings: Settings, location: Location, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEADLESS, str(location.root)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CODEQA_DATA": str(settings.data_dir),
             "TMPDIR": "/tmp"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "The head of the cluster is gone" in done.stdout, done.stdout + done.stderr
    wait_until_free(location)
    with pytest.raises(IndexMissingError):
        Tables(location).files()
    machines.start(2)
    build(settings, location)
    assert rows(location) == clean_rows(location.root, tmp_path)
    assert unnamed_files(location) == set()


HEADLESS = """
import logging, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import ray
from ray.cluster_utils import Cluster
from codeqa_server import ray_builder
from codeqa.errors import ClusterError
from codeqa.indexing import Indexer
from codeqa.settings import load_settings
from codeqa.store import locate
ray_builder.CHUNK_BYTES, ray_builder.SILENT_SECONDS = (2_000, 2_000), 30
small = {"include_dashboard": False, "object_store_memory": 80_000_000}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
ray.init(cluster.address, log_to_driver=False, logging_level=logging.ERROR)
alive = [True]
def kill(step):
    if step.phase == "indexing" and step.done and alive:
        alive.clear()
        cluster.head_node.kill_gcs_server()
        for node in cluster.worker_nodes:  # which end themselves later
            node.kill_all_processes(check_alive=False, allow_graceful=False)
settings = load_settings()
try:
    Indexer(settings, locate(settings, Path(sys.argv[1]))).run(
        kill, refine=False, builder=ray_builder.RayBuilder("ray")
    )
    print("nothing was noticed", flush=True)
except ClusterError as error:
    print(error, flush=True)
for node in cluster.list_all_nodes():
    node.kill_all_processes(check_alive=False, allow_graceful=False)
"""


def test_tables_on_s3_hold_the_same_rows_and_take_an_edit(
    repository: Path, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lance_ray", reason="Ray is not here: `make test-cluster` installs it.")
    with s3_stores() as stores:
        given = {**ENVIRONMENT, "AWS_ENDPOINT_URL": stores.careful,
                 "AWS_EC2_METADATA_DISABLED": "true", "CODEQA_DATA": str(settings.data_dir),
                 "CODEQA_TABLES": f"s3://{BUCKET}/tables", "PYTHONPATH": str(ROOT),
                 "TMPDIR": "/tmp"}  # fmt: skip
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        for number in (0, 1):
            write_module(repository, 1, number)
            done = subprocess.run(
                [sys.executable, "-m", "codeqa", "index", str(repository), "--engine", "ray"],
                cwd=tmp_path, capture_output=True, text=True, timeout=400,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            here = locate(load_settings(), repository)
            there = rows(here)
            monkeypatch.delenv("CODEQA_TABLES")
            assert there == clean_rows(repository, tmp_path)
            monkeypatch.setenv("CODEQA_TABLES", given["CODEQA_TABLES"])


def test_a_cluster_that_stands_still_ends_the_run_and_says_what_to_do(
    machines: Machines, settings: Settings, location: Location
) -> None:
    import ray

    machines.start(2)

    @ray.remote(num_cpus=1)
    class Busy:
        def is_there(self) -> bool:
            return True

    count = int(ray.cluster_resources()["CPU"])
    others = [Busy.remote() for _ in range(count)]  # type: ignore[attr-defined]
    try:
        ray.get([one.is_there.remote() for one in others])
        with pytest.raises(ClusterError, match=r"no progress for 2 seconds.*`ray status`"):
            Indexer(settings, location).run(builder=RayBuilder("ray", stalled=2))
    finally:
        for one in others:
            ray.kill(one)
    assert read_run(location).state == "failed"
    assert build(settings, location).changed == 25


def test_who_has_another_token_is_refused(
    machines: Machines, settings: Settings, location: Location
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "codeqa", "index", str(location.root), "--engine",
         f"ray={machines.address}"],
        env={**os.environ, "RAY_AUTH_TOKEN": "1" * 32, "CODEQA_DATA": str(settings.data_dir),
             "RAY_NUM_REDIS_GET_RETRIES": "2"},
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Ray does not answer" in done.stderr and "token" in done.stderr


def test_a_ray_of_this_machine_knows_no_key_and_not_the_working_directory(
    machines: Machines, location: Location, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(location.root)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "sk-none-of-your-business",
             "CODEQA_DATA": str(tmp_path / "data"), "TMPDIR": "/tmp"},
        cwd=location.root, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    variables, path, mode = json.loads(done.stdout.splitlines()[-1])
    assert "OPENAI_API_KEY" not in variables
    assert str(location.root) not in path
    assert mode == "token"


ALONE = """
import json, os, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from codeqa_server.ray_builder import RayBuilder
from codeqa.settings import load_settings
from codeqa.store import locate

def seen():
    import os, sys
    return sorted(os.environ), sys.path, os.environ.get("RAY_AUTH_MODE")

location = locate(load_settings(), Path(sys.argv[1]))
with RayBuilder("ray").running(location):
    import ray
    print(json.dumps(ray.get(ray.remote(seen).remote())))
assert os.environ["OPENAI_API_KEY"]
"""


# Without Ray


def job_of(location: Location, **others: Any) -> tuple[Any, ...]:
    writer = opened(location)
    made = {
        "location": location,
        "identity": writer.meta.identity,
        "generation": writer.generation,
        "made_with": ray_builder._made_with(),
    }
    return tuple((made | others).values())


def test_a_machine_that_is_not_like_the_others_says_why(
    settings: Settings, location: Location
) -> None:
    Indexer(settings, location).run()
    for others, why in (
        ({"identity": "another"}, "sees other tables"),
        ({"made_with": ("0.1", "1", None)}, "has another CodeQA"),
    ):
        with pytest.raises(ClusterError, match=why):
            ray_builder._writer(*job_of(location, **others))


def test_a_machine_that_does_not_see_the_files_says_so(
    settings: Settings, location: Location, tmp_path: Path
) -> None:
    pytest.importorskip("lance_ray", reason="Ray is not here: `make test-cluster` installs it.")
    from codeqa.repository.walk import FileEntry

    Indexer(settings, location).run()
    files = [FileEntry("gone.py", 1, 1)]
    told = ray_builder.read_chunk(files, {}, job_of(location), 1_000_000)
    assert isinstance(told, ClusterError) and "sees none of 1 files" in told.message


def test_an_engine_that_is_unknown_or_not_installed_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match="no engine called spark"):
        RayBuilder("spark=local")
    monkeypatch.setattr(ray_builder, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"\[cluster\]"):
        RayBuilder("ray")


def test_a_list_is_refused_with_what_is_for_one_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray_builder, "find_spec", lambda name: True)
    names = tmp_path / "names.txt"
    names.write_text(str(tmp_path))
    for option in (("--rev", "v1"), ("--branch", "b"), ("--json",), ("--comments",)):
        assert main(["index", str(names), "--engine", "ray", *option]) == 2
        refusal = capsys.readouterr().err
        assert f"{names} is a list" in refusal and option[0] in refusal
