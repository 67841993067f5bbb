"""Setting up a checkout: which Python is taken, who installs, what is said, what is not redone."""

from __future__ import annotations

import hashlib
import os
import pty
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from repositories import executable

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and sh are POSIX tools")

TOOLS = (
    "sh", "cat", "chmod", "cksum", "dirname", "grep", "mkdir", "mv", "rm", "sed",
    "sleep", "tail",
)  # fmt: skip
FILES = (
    "pyproject.toml",
    "requirements.txt",
    "requirements.lock",
    "requirements-dev.txt",
    "research/requirements-training.txt",
    "constraints.txt",
    "scripts/packages.sh",
    "scripts/requirements-setup.lock",
    "scripts/setup.sh",
    "scripts/setup_training.sh",
)
UV = shutil.which("uv", path=str(Path(sys.executable).parent))

# Stands in for an interpreter or for uv: notes every call, and answers those of `answers`.
NOTING = (
    '#!/bin/sh\necho "{name} $@" >> "{log}"\ncase "$*" in {answers}) exit 0 ;; *) exit 1 ;; esac\n'
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What setup.sh needs, in a folder with spaces and a quote."""
    folder = tmp_path / "it's a checkout"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        program = shutil.which(name)
        assert program is not None, name
        (tools / name).symlink_to(program)
    return folder


def environment(checkout: Path, **variables: str) -> dict[str, str]:
    return {"PATH": str(checkout.parent / "tools"), "HOME": str(checkout.parent), **variables}


def set_up(
    checkout: Path, kind: str = "run", script: str = "setup.sh", **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(checkout / "scripts" / script), kind],
        env=environment(checkout, **variables),
        capture_output=True,
        text=True,
        timeout=120,
    )


def stand_in(checkout: Path, name: str, answers: str = "*") -> Path:
    """Put a program into .venv that answers calls of `answers`; gives the file that notes them."""
    log = checkout.parent / "log"
    script = NOTING.format(log=log, answers=answers, name=name)
    executable(checkout / ".venv/bin" / name, script)
    return log


def installations(log: Path) -> list[str]:
    """Calls of uv and pip that install or download."""
    words = ("pip install", " install ", " download ")
    return [line for line in log.read_text().splitlines() if any(word in line for word in words)]


def test_without_a_python_that_fits_it_says_what_to_do(checkout: Path, tmp_path: Path) -> None:
    done = set_up(checkout)
    assert done.returncode == 1
    assert "no Python 3.11 or newer was found" in done.stderr
    assert "make run PYTHON=" in done.stderr
    assert not (checkout / ".venv").exists()
    old = executable(tmp_path / "old python", "#!/bin/sh\nexit 1\n")
    done = set_up(checkout, PYTHON=str(old))
    assert done.returncode == 1
    assert f"PYTHON={old} is not a Python 3.11 or newer" in done.stderr


@pytest.mark.parametrize("answers", ["-c*", '-c*|*" --without-pip "*'])
def test_a_python_without_venv_or_pip_names_the_package_that_brings_it(
    checkout: Path, answers: str
) -> None:
    script = f"""#!/bin/sh
    case "$*" in
        *"-c import pip"*) exit 1 ;;
        *"--without-pip "*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
    esac
    case "$*" in {answers}) exit 0 ;; *) exit 1 ;; esac
    """
    executable(checkout.parent / "tools" / "python3", script)
    (checkout.parent / "tools" / "cp").symlink_to(shutil.which("cp") or "")
    done = set_up(checkout)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert not list((checkout / ".venv").glob(".set-up*"))


def test_a_stamped_setup_runs_again_only_when_a_lock_changes(
    checkout: Path,
) -> None:
    log = stand_in(checkout, "python")
    stand_in(checkout, "uv")
    assert set_up(checkout, "dev").returncode == 0
    users, developers = installations(log)
    assert "--require-hashes" in users and "-r constraints.txt" in developers
    assert set_up(checkout, "dev").stderr == ""
    assert set_up(checkout, "run").stderr == ""  # the development packages hold the others
    assert len(installations(log)) == 2
    with (checkout / "requirements.lock").open("a") as lock:
        lock.write("another==1.0\n")
    assert set_up(checkout).returncode == 0
    assert len(installations(log)) == 3
    # The command of the checkout works from any folder.
    command = checkout / ".venv" / "bin" / "codeqa"
    subprocess.run([command, "search", "two words"], cwd=checkout.parent, check=True)
    assert log.read_text().splitlines()[-1].endswith("-P -m codeqa search two words")


def test_uv_installs_the_lock_with_hashes_from_the_cache_first(
    checkout: Path,
) -> None:
    log = stand_in(checkout, "python")
    stand_in(checkout, "uv", '*" --offline") exit 1 ;; *')
    done = set_up(checkout)
    assert done.returncode == 0, done.stderr
    kept, fetched = installations(log)
    assert kept == f"{fetched} --offline"
    wanted = "--no-deps --require-hashes -r scripts/requirements-setup.lock -r requirements.lock"
    assert fetched.startswith("uv pip install") and fetched.endswith(wanted)
    assert "sync" not in fetched


def test_uv_asks_the_index_that_pip_is_configured_for(checkout: Path) -> None:
    python = """#!/bin/sh
    case "$*" in *"config list") echo "global.index-url='mirror of ours'" ;; esac
    """
    uv = """#!/bin/sh
    case "$*" in *" --offline") exit 1 ;; esac
    echo "$UV_DEFAULT_INDEX" > asked
    """
    executable(checkout / ".venv/bin/python", python)
    executable(checkout / ".venv/bin/uv", uv)
    assert set_up(checkout).returncode == 0
    assert (checkout / "asked").read_text() == "mirror of ours\n"
    (checkout / ".venv/.set-up-run").unlink()
    assert set_up(checkout, UV_DEFAULT_INDEX="another").returncode == 0
    assert (checkout / "asked").read_text() == "another\n"


def test_where_uv_cannot_be_had_pip_installs_the_lock_from_what_is_kept_or_the_index(
    checkout: Path,
) -> None:
    """What pip downloads is kept, and serves the next checkout without a network."""
    python = """#!/bin/sh
    echo "$@" >> log
    case "$*" in
        *"download"*"scripts/requirements-setup.lock") exit 1 ;;
        *"download"*) echo > "$(dirname "$0")/../../../kept" ;;
        *"--no-index") [ -e "$(dirname "$0")/../../../kept" ] ;;
    esac
    """
    executable(checkout / ".venv/bin/python", python)
    done = set_up(checkout)
    assert done.returncode == 0, done.stderr
    assert "uv cannot be had; getting pip" in done.stderr
    calls = installations(checkout / "log")
    wheels = checkout.parent / ".cache/codeqa/wheels"
    fetched = [line.split(" ", 5)[4] for line in calls[-3:]]
    assert fetched == ["install", "download", "install"]
    assert all("--no-deps --require-hashes -r requirements.lock" in line for line in calls[-3:])
    assert calls[-2].endswith(f"-d {wheels}") and calls[-1].endswith("--no-index")
    assert any("-m ensurepip" in line for line in (checkout / "log").read_text().splitlines())

    (checkout / ".venv/.set-up-run").unlink()
    (checkout / "log").unlink()
    assert set_up(checkout).returncode == 0
    assert [line.split(" ", 5)[4] for line in installations(checkout / "log")[-1:]] == ["install"]


def test_uv_is_taken_from_the_kept_wheel_that_runs_here(checkout: Path) -> None:
    """And pip, which would take longer, is not even started."""
    wheels = checkout.parent / "wheels"
    wheels.mkdir()
    for name, status in (("uv-1-any-other_system.whl", 1), ("uv-2-any-this_system.whl", 0)):
        with zipfile.ZipFile(wheels / name, "w") as wheel:
            program = f'#!/bin/sh\necho "uv $@" >> "{checkout.parent}/log"\nexit {status}\n'
            wheel.writestr(f"{name[:4]}.data/scripts/uv", program)
    venv.create(checkout / ".venv", symlinks=True)
    python = (checkout / ".venv/bin/python").rename(checkout / ".venv/bin/real")
    noting = f"""#!/bin/sh
    echo "python $@" >> "{checkout.parent}/log"
    exec "{python}" "$@"
    """
    executable(checkout / ".venv/bin/python", noting)
    done = set_up(checkout, WHEELS=str(wheels))
    assert done.returncode == 0, done.stderr
    log = checkout.parent / "log"
    (installed,) = installations(log)
    assert installed.startswith("uv pip install") and str(wheels) in installed
    assert "-m pip" not in log.read_text()
    assert (checkout / ".venv/bin/uv").read_text().endswith("exit 0\n")


# Real parts: packages of one module each, in a folder of wheels.


def wheel(folder: Path, name: str, version: str) -> str:
    """Write a package of one module; gives its line of a lock."""
    folder.mkdir(exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{one},,\n" for one in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in (files | {f"{info}/RECORD": record}).items():
            archive.writestr(file, text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}=={version} --hash=sha256:{digest}\n"


def versions(checkout: Path, *names: str) -> list[str]:
    program = "import importlib, sys\nfor name in sys.argv[1:]:\n"
    program += "    print(importlib.import_module(name).VERSION)"
    done = subprocess.run(
        [checkout / ".venv/bin/python", "-B", "-c", program, *names],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture
def real_checkout(checkout: Path) -> Path:
    """One with a lock of its own, a .venv with uv in it, and no index to ask."""
    wheels = checkout.parent / "wheels"
    (checkout / "scripts/requirements-setup.lock").write_text("")
    (checkout / "requirements.lock").write_text(wheel(wheels, "one", "1.0"))
    venv.create(checkout / ".venv", symlinks=True)
    if UV is None:
        pytest.skip("uv could not be had when the tests were set up")
    shutil.copy(UV, checkout / ".venv/bin/uv")
    return checkout


def set_up_offline(checkout: Path) -> subprocess.CompletedProcess[str]:
    nowhere = "http://127.0.0.1:9/"  # the port that discards: nobody listens
    return set_up(
        checkout, WHEELS=str(checkout.parent / "wheels"), UV_DEFAULT_INDEX=nowhere,
        UV_HTTP_RETRIES="0", PIP_INDEX_URL=nowhere, PIP_RETRIES="0",
    )  # fmt: skip


def test_offline_it_installs_from_the_wheels_and_what_a_user_added_stays(
    real_checkout: Path,
) -> None:
    wheels = real_checkout.parent / "wheels"
    done = set_up_offline(real_checkout)
    assert done.returncode == 0, done.stderr
    assert versions(real_checkout, "one") == ["1.0"]
    wheel(wheels, "extra", "7.0")
    added = [real_checkout / ".venv/bin/uv", "pip", "install", "--offline", "--find-links", wheels]
    variables = {"VIRTUAL_ENV": str(real_checkout / ".venv")}
    subprocess.run([*added, "extra"], env=variables, capture_output=True, check=True, timeout=60)
    (real_checkout / "requirements.lock").write_text(wheel(wheels, "one", "2.0"))
    done = set_up_offline(real_checkout)
    assert done.returncode == 0, done.stderr
    assert versions(real_checkout, "one", "extra") == ["2.0", "7.0"]


def test_a_package_that_is_not_the_one_of_the_lock_is_not_installed(real_checkout: Path) -> None:
    with (real_checkout.parent / "wheels/one-1.0-py3-none-any.whl").open("ab") as package:
        package.write(b"changed")
    done = set_up_offline(real_checkout)
    assert done.returncode == 1
    assert "could not be installed" in done.stderr and "Check the network" in done.stderr
    assert not list((real_checkout / ".venv").glob(".set-up-*"))


def test_an_installation_that_was_interrupted_is_completed(real_checkout: Path) -> None:
    assert set_up_offline(real_checkout).returncode == 0
    (module,) = (real_checkout / ".venv").rglob("one.py")
    module.unlink()  # its metadata are there
    (real_checkout / ".venv/.set-up-run").unlink()
    (real_checkout / ".venv/.installing").touch()
    assert set_up_offline(real_checkout).returncode == 0
    assert versions(real_checkout, "one") == ["1.0"]
    assert not (real_checkout / ".venv/.installing").exists()


# What it says meanwhile


def test_in_a_log_lines_say_what_is_done_and_how_many_packages_are_there(checkout: Path) -> None:
    """It waits until it was heard, whatever that takes."""
    heard = checkout.parent / "heard"
    uv = f"""#!/bin/sh
    case "$*" in
        *" --offline") exit 1 ;;
        *"pip install"*)
            for a in 1 2 3; do for b in 1 2 3 4 5 6 7 8 9; do
                mkdir -p .venv/lib/python3/site-packages/$a$b.dist-info
            done; mkdir -p "$UV_CACHE_DIR/archive-v0/$a"; done
            until grep -q ' 3 of .* downloaded, 27 of ' "{heard}"; do sleep 0.05; done
            echo "what uv says" ;;
    esac
    """
    stand_in(checkout, "python")
    executable(checkout / ".venv/bin/uv", uv)
    with heard.open("w") as log:
        command = ["sh", checkout / "scripts/setup.sh", "run"]
        done = subprocess.run(
            command, env=environment(checkout), stdout=log, stderr=log, timeout=120
        )
    lines = heard.read_text().splitlines()
    assert done.returncode == 0 and "\r" not in heard.read_text()
    wanted = sum(
        line[:1].isalpha()
        for name in ("requirements.lock", "scripts/requirements-setup.lock")
        for line in (ROOT / name).read_text().splitlines()
    )
    assert lines[0] == f"3 of 4: installing {wanted} packages into .venv"
    assert lines[-1] == "4 of 4: starting CodeQA"
    line = rf"{re.escape(lines[0])}: 3 of {wanted} downloaded, 27 of {wanted} installed, \d+ s"
    assert re.fullmatch(line, lines[-2])
    assert (checkout / ".venv/set-up.log").read_text() == "what uv says\n"


def test_on_a_terminal_each_step_has_one_line(checkout: Path) -> None:
    stand_in(checkout, "python")
    stand_in(checkout, "uv")
    ours, theirs = pty.openpty()
    command = ["sh", checkout / "scripts/setup.sh", "dev"]
    subprocess.run(command, env=environment(checkout), stderr=theirs, check=True, timeout=120)
    os.close(theirs)
    text = os.read(ours, 65_536).decode()
    os.close(ours)
    (line,) = text.split("\r\n")[:-1]
    assert line.startswith("\r\x1b[K3 of 3: installing ") and line.endswith(" packages into .venv")


@pytest.mark.parametrize(
    ("message", "status", "explained"),
    [
        ("ERROR: No matching distribution found for torch", 75, "could not be downloaded"),
        ("ERROR: ResolutionImpossible: for help visit the manual", 1, "do not go together"),
    ],
)
def test_a_failed_download_differs_from_a_conflict_of_packages(
    checkout: Path, message: str, status: int, explained: str
) -> None:
    executable(checkout / ".venv-training/bin/python", "#!/bin/sh\n")
    python = f"""#!/bin/sh
    case "$*" in *" download "*|*" install "*) echo '{message}'; exit 1 ;; esac
    """
    executable(checkout / ".venv/bin/python", python)
    done = set_up(checkout, script="setup_training.sh")
    assert done.returncode == status
    assert message in done.stderr and explained in done.stderr
    assert not (checkout / ".venv-training/.set-up").exists()


def test_the_makefile_lists_its_targets() -> None:
    done = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    targets = "run test test-slow lock test-training lint types docs wheel clean"
    for target in targets.split():
        assert f"make {target}" in done.stdout


def test_what_the_continuous_integration_runs_can_be_parsed() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    done = subprocess.run(
        ["bash", "-n", str(ROOT / ".ci" / "run")], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
