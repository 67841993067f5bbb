"""Fixtures for every test: an environment of its own and settings that write to `tmp_path`."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from codeqa.environment import prepare_lancedb
from codeqa.parsing import pool
from codeqa.settings import Settings, load_settings, settings_table
from tests.kit.forked_workers import Forks
from tests.kit.repositories import Write, write

# Some files take its names, others its fixtures, in whatever order they are read.
pytest.register_assert_rewrite("cli_shop", "postgres_server")

ROOT = Path(__file__).resolve().parent.parent
START = pool._start_process
IN_MEMORY = "/dev/shm"
SETTINGS = {name for name, _, _ in settings_table()}

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# Property tests are few and the same on every run; `make test-slow` searches at random.
hypothesis.settings.register_profile(
    "fixed", derandomize=True, deadline=None, database=None, max_examples=40
)
hypothesis.settings.register_profile("random", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """A shell that starts the tests in the background has SIGINT ignored, and every process below
    inherits that; the tests of Ctrl-C need it to arrive. Where there is room, files are written
    into memory: making, syncing and removing them on a disk is a tenth of the tests' time. LanceDB
    is loaded as the commands load it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepare_lancedb()
    gc.set_threshold(20_000, 20, 50)
    with suppress(OSError):
        if "TMPDIR" not in os.environ and shutil.disk_usage(IN_MEMORY).free > 4 << 30:
            os.environ["TMPDIR"] = tempfile.tempdir = IN_MEMORY


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end. Looking through them for garbage again and again, as often
    as Python does by itself, is a twelfth of the tests' time."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """One process drives all pages: a second browser with its servers takes ten seconds more."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "browser" if "/browser/" in nodeid else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's user reaches a test: no settings, no keys, no git configuration."""
    for name in list(os.environ):
        if name in SETTINGS or name.startswith(("CODEQA_", "GIT_")):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    # What a command that is killed has in its temporary folder goes with the test.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CODEQA_DATA", str(tmp_path / "data"))
    # What answers script is one request each; drafts, which are two before it, have own tests.
    monkeypatch.setenv("CODEQA_HYDE", "off")
    monkeypatch.setenv("CODEQA_EFFORT", "fast")
    # Tests change files and look at what the index held before; following has tests of its own.
    monkeypatch.setenv("CODEQA_WATCH", "off")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A. Tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@example.org")
        monkeypatch.setenv(f"GIT_{role}_DATE", "2024-01-01T00:00:00Z")


@pytest.fixture(scope="session", autouse=True)
def forked_workers() -> Iterator[None]:
    """Parsing processes begin as forks, which takes a tenth of the time."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):  # not on this system
        yield
        return
    forks = Forks()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pool, "_start_process", forks.start)
        yield
    forks.close()


@pytest.fixture
def real_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing processes begin as those of users do."""
    monkeypatch.setattr(pool, "_start_process", START)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Folder of the test's own indices and state; not there until something writes."""
    return tmp_path / "data"


@pytest.fixture
def settings(data_dir: Path) -> Settings:
    """Defaults with the data in `data_dir` and two parser processes."""
    return load_settings(data=data_dir, workers=2)


@pytest.fixture
def write_files() -> Write:
    """`write_files(folder, {"a/b.py": "text or bytes"})` writes the files, returns the folder."""
    return write


@pytest.fixture
def run_python() -> Run:
    """`run_python("app.py", "--help", cwd=…)` runs a real interpreter in the checkout."""

    def run(*arguments: str | Path, cwd: Path = ROOT, timeout: float = 60, **options: Any) -> Any:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            **options,
        )

    return run
