"""What breaks around a running CodeQA: processes killed at each step, clocks, disks, state files.

docs/reliability.md lists every fault with its test; `research/benchmarks/faults.py` does them at
random.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT
from waiting import PATIENCE

from codeqa.cli import main
from codeqa.doctor import Check, examine
from codeqa.embeddings.registry import fast_embedding
from codeqa.engine import open_engine, open_privacy
from codeqa.errors import StorageError
from codeqa.indexing import Indexer, indexer
from codeqa.settings import Settings, load_settings
from codeqa.state import State, database
from codeqa.state.records import Turn
from codeqa.store import Location, Tables, TextSearch, locate
from tests.indexing.test_kill import mutate, wait_until_free, write_module
from tests.kit.index_rows import clean_rows, rows
from tests.kit.indexed import copied, indexed, write

# Killed at each step

STEPS = {
    "before anything is written": "codeqa.store.writer.TableWriter.begin before 1",
    "while files are parsed": "codeqa.indexing.passes.add_result after 2",
    "when changed files are marked": "codeqa.store.writer.TableWriter.invalidate after 1",
    "behind the methods": "codeqa.store.writer.TableWriter._commit after 1",
    "behind the classes": "codeqa.store.writer.TableWriter._commit after 2",
    "behind the references": "codeqa.store.writer.TableWriter._commit after 3",
    "behind the manifest": "codeqa.store.writer.TableWriter.write_files after 1",
    "while fragments are merged": "codeqa.store.writer.merge_fragments after 2",
    "while indices are built": "codeqa.store.writer.build_indices before 1",
    "before the end is noted": "codeqa.store.writer.TableWriter.finish before 1",
    "before old generations go": "codeqa.store.writer.drop_other_generations before 2",
    "while vectors are refined": "codeqa.indexing.passes.vector_array before 2",
}
"""Step → function at which a run is killed: before or after which of its calls."""

FORKING = """
import os, signal, sys, warnings
from pathlib import Path
from pkgutil import resolve_name
warnings.simplefilter("ignore")
import lancedb
from codeqa.embeddings.registry import fast_embedding
from codeqa.indexing import indexer
from codeqa.settings import load_settings
from codeqa.store import locate

def kill_at(step):
    path, when, number = step.split()
    owner, _, last = path.rpartition(".")
    place = resolve_name(owner)
    original, calls = getattr(place, last), []

    def instead(*arguments, **options):
        calls.append(1)
        if when == "before" and len(calls) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **options)
        if when == "after" and len(calls) == int(number):
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(place, last, instead)

indexer.chosen_embedding = lambda settings: fast_embedding()
settings = load_settings(data=Path(sys.argv[1]), workers=1, batch_files=4, embedding_batch=4)
for line in sys.stdin:
    process = os.fork()
    if not process:
        kill_at(line)
        indexer.Indexer(settings, locate(settings, Path(sys.argv[2]))).run(full="old" in line)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
"""Kills a run at each line that it reads. Runs are forks: packages are loaded once."""


@pytest.fixture
def killed_at(tmp_path: Path) -> Iterator[Callable[[str], int]]:
    """Kill a run at that step; gives its exit status."""
    command = [sys.executable, "-c", FORKING, str(tmp_path / "data"), str(tmp_path / "repo")]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def kill(step: str) -> int:
        assert process.stdin and process.stdout
        process.stdin.write(f"{step}\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    with process:
        yield kill
        process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps", [[*STEPS], *([step] for step in STEPS)], ids=["one after the other", *STEPS]
)
def test_a_run_that_is_killed_at_any_step_is_completed_by_the_next(
    steps: list[str],
    killed_at: Callable[[str], int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(indexer, "chosen_embedding", lambda settings: fast_embedding())
    root, chance = tmp_path / "repo", random.Random(1)
    for number in range(12):
        write_module(root, number, 0)
    settings = load_settings(data=tmp_path / "data", workers=1)
    location = locate(settings, root)
    Indexer(settings, location).run()
    for step in steps:
        mutate(root, chance)
        assert killed_at(STEPS[step]) == -signal.SIGKILL, step
        wait_until_free(location)
        assert Tables(location).find(TextSearch("methods", "step", 5))
    Indexer(settings, location).run()
    assert Indexer(settings, location).status().error == ""
    assert rows(location) == clean_rows(root, tmp_path)


# Clocks, disks, bytes

FILES = {"a.py": "def find_user(key):\n    return key\n", "b.md": "# Users\n\nHow to find one.\n"}
DAY_NS = 86_400 * 10**9


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    return indexed(tmp_path_factory.mktemp("made"), FILES).location


@pytest.fixture
def location(made: Location, settings: Settings, tmp_path: Path) -> Location:
    """An index of FILES."""
    return copied(made, settings, tmp_path / "repo")


def test_a_clock_that_jumps_hides_no_change(
    settings: Settings, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, indexer = time.time_ns, Indexer(settings, location)
    for days, before, name in ((-400, "find", "seek"), (400, "seek", "look")):
        with monkeypatch.context() as jumped:
            jumped.setattr(time, "time_ns", lambda days=days: really() + days * DAY_NS)
            write(location.root, {f"{name}.py": f"def add_{name}(key):\n    return key\n"})
            assert indexer.run().changed == 1
        text = (location.root / "a.py").read_text()
        write(location.root, {"a.py": text.replace(before, name)})  # as long as before
        then = really() + 2 * days * DAY_NS
        os.utime(location.root / "a.py", ns=(then, then))
        assert indexer.run().changed == 1
        names = {unit.name for unit in Tables(location).named([f"{name}user", f"add{name}"])}
        assert names == {f"{name}_user", f"add_{name}"}


@contextlib.contextmanager
def files_of(most: int) -> Iterator[None]:
    """No file can be longer than `most` bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_said_and_the_next_run_goes_on(
    settings: Settings, location: Location
) -> None:
    write(location.root, {"c.py": "def add_user(key):\n    return key\n" * 200})
    with files_of(3_000):
        with pytest.raises(StorageError, match=r"cannot be written: File too large\. Free some"):
            Indexer(settings, location).run()
        error = Indexer(settings, location).status().error
        assert error.startswith("The index cannot be written: File too large")
        assert Tables(location).named(["finduser"])
    assert Indexer(settings, location).run().files == 3
    assert not [*location.folder.glob("*.tmp")]


def test_on_a_full_disk_a_question_is_answered_and_said_not_to_be_kept(
    settings: Settings, location: Location, capsys: pytest.CaptureFixture[str]
) -> None:
    state, conversation = State(settings.data_dir), f"terminal-{location.id}"
    before = Turn("t", conversation, "who?", "A user.", "", {}, 1.0, "terminal", location.id)
    for kept in (None, before):  # without a state, and with one
        if kept:
            state.turns.save(kept)
        with files_of(0):
            status = main(["ask", "--no-model", "--repo", str(location.root), "find user"])
        output = capsys.readouterr()
        assert status == 0 and "find_user" in output.out, output.err
        assert "This answer could not be saved. The local state" in output.err
        turn = state.turns.get("t", "terminal")
        assert (turn and turn.question) == (kept and kept.question)


READING = """
import sys; from pathlib import Path
from codeqa.engine import open_engine
from codeqa.errors import StorageError
from codeqa.settings import load_settings
engine = open_engine(load_settings(data=Path(sys.argv[1]), workers=1), Path(sys.argv[2]))
paths = [hit.unit.path for hit in engine.search.search("find user").units]
print(paths, engine.index.status().state)
try: engine.index.run()
except StorageError as error: print(error)
"""


@pytest.mark.slow
def test_a_read_only_data_folder_is_searched(settings: Settings, location: Location) -> None:
    data = settings.data_dir
    script = f'mount --bind "{data}" "{data}" && mount -o remount,bind,ro "{data}" && exec "$@"'
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    tried = shutil.which("unshare") and subprocess.run([*alone, "true"], capture_output=True)
    if not tried or tried.returncode:
        pytest.skip("this user may not make a folder read-only for root as well")
    command = [*alone, sys.executable, "-c", READING, str(data), str(location.root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    hits, error = done.stdout.splitlines()
    assert "a.py" in hits and hits.endswith("ready"), done.stderr
    assert error.startswith("The index cannot be written: Read-only file system.")


# State files, and what `codeqa doctor --repair` does


def checked(name: str, settings: Settings, *, repair: bool = True) -> Check:
    return next(one for one in examine(settings, repair=repair) if one.name.startswith(name))


def garble(path: Path) -> None:
    path.write_bytes(b"\x92garbled" * 5_000)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


def overwrite_a_page(path: Path) -> None:
    content = path.read_bytes()
    at = len(content) * 3 // 4 // 4096 * 4096
    path.write_bytes(content[:at] + b"\xa7" * 4096 + content[at + 4096 :])


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("damage", "least"),
    [(garble, 0), (cut, 30), (overwrite_a_page, 70), (become_a_folder, 0)],
)
def test_a_damaged_state_file_is_set_aside_and_what_can_be_read_is_kept(
    damage: Callable[[Path], None], least: int, settings: Settings, location: Location
) -> None:
    state = State(settings.data_dir)
    for number in range(100):
        question = f"who? {number} " + "x" * 900
        state.turns.save(
            Turn(f"t{number}", f"c{number // 4}", question, "him", "", {}, 1.0 + number,
                 repository=location.id)
        )  # fmt: skip
    state.close()
    damage(state.path)
    check = checked("state", settings, repair=False)
    assert not check.ok and "--repair" in check.hint
    if damage is garble:
        engine = open_engine(settings, location.root)  # neither needs conversations
        assert engine.index.run().files == 2 and engine.search.search("find user").units
    content = state.path.read_bytes() if state.path.is_file() else b""
    done = checked("state", settings)
    assert done.ok and "could be read and are kept; the damaged file is now" in done.repaired
    (aside,) = settings.data_dir.glob("state.sqlite.damaged-*[0-9]")
    assert str(aside) in done.repaired
    assert not content or aside.read_bytes() == content
    erased = open_privacy(settings).delete("profile", "local")
    assert str(aside) in "".join(erased.problems)
    turns = [
        turn.id
        for one in state.conversations.latest(location.id)
        for turn in state.turns.active(one.id, repository=location.id)
    ]
    assert least <= len(turns) == len({*turns}) < 100
    kept = int(re.findall(r"([\d,]+) questions could", done.repaired)[0])
    assert len(turns) <= kept <= len(turns) + 1  # one may be cut in its middle


def test_a_state_file_that_is_sound_stays_where_it_is(settings: Settings) -> None:
    state = State(settings.data_dir)
    state.values.set("k", "v")
    with contextlib.closing(sqlite3.connect(state.path)) as other:
        other.execute(f"PRAGMA user_version = {database.VERSION + 1}")
        check = checked("state", settings)
        assert not check.ok and "newer version of CodeQA" in check.detail
        other.execute(f"PRAGMA user_version = {database.VERSION}")
    assert checked("state", settings).ok and state.values.get("k") == "v"
    assert not [*settings.data_dir.glob("*.damaged*")]
