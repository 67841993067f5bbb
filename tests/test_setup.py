"""Setting up a checkout: which Python is taken, what is said when none fits, what is not redone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and sh are POSIX tools")

TOOLS = ("sh", "cat", "chmod", "cksum", "dirname", "grep", "mkdir", "rm", "sleep", "tail")
FILES = (
    "pyproject.toml",
    "requirements.txt",
    "requirements-dev.txt",
    "requirements-training.txt",
    "constraints.txt",
    "scripts/setup.sh",
    "scripts/setup_training.sh",
)

# Stands in for an interpreter: answers the questions of setup.sh and notes every call.
NOTING = '#!/bin/sh\necho "$@" >> "{log}"\ncase "$*" in {answers}) exit 0 ;; *) exit 1 ;; esac\n'


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
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    return folder


def set_up(
    checkout: Path, kind: str = "run", script: str = "setup.sh", **variables: str
) -> subprocess.CompletedProcess[str]:
    home = checkout.parent
    environment = {"PATH": str(home / "tools"), "HOME": str(home), **variables}
    return subprocess.run(
        ["sh", str(checkout / "scripts" / script), kind],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


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


def test_a_python_without_venv_names_the_package_that_brings_it(checkout: Path) -> None:
    log = checkout.parent / "log"
    script = NOTING.format(log=log, answers="-c*")
    executable(checkout.parent / "tools" / "python3", script)
    done = set_up(checkout)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_what_is_stamped_is_not_done_again_until_a_list_changes(checkout: Path) -> None:
    log = checkout.parent / "log"
    executable(checkout / ".venv/bin/python", NOTING.format(log=log, answers="*"))
    assert set_up(checkout, "dev").returncode == 0
    assert log.read_text().count("pip install") == 1
    assert set_up(checkout, "dev").stderr == ""
    assert set_up(checkout, "run").returncode == 0  # the development packages hold the others
    assert log.read_text().count("pip install") == 1
    with (checkout / "constraints.txt").open("a") as constraints:
        constraints.write("another==1.0\n")
    assert set_up(checkout).returncode == 0
    assert log.read_text().count("pip install") == 2


def test_the_command_of_the_checkout_works_from_any_folder(checkout: Path) -> None:
    log = checkout.parent / "log"
    executable(checkout / ".venv/bin/python", NOTING.format(log=log, answers="*"))
    assert set_up(checkout).returncode == 0
    command = checkout / ".venv" / "bin" / "codeqa"
    subprocess.run([command, "search", "two words"], cwd=checkout.parent, check=True)
    assert log.read_text().splitlines()[-1].endswith("-P -m codeqa search two words")


def test_an_installation_that_failed_is_not_stamped(checkout: Path) -> None:
    log = checkout.parent / "log"
    answers = '*"pip --version"*|"-c "*'
    executable(checkout / ".venv/bin/python", NOTING.format(log=log, answers=answers))
    done = set_up(checkout)
    assert done.returncode == 1
    assert "could not be downloaded" in done.stderr
    assert not list((checkout / ".venv").glob(".set-up*"))


def test_in_a_log_it_says_how_many_packages_are_there_and_which_are_downloaded(
    checkout: Path,
) -> None:
    """And nothing else of what pip says; it waits until it was heard, whatever that takes."""
    said = checkout.parent / "said"
    pip = f"""#!/bin/sh
    case "$*" in
        *"pip install"*"--no-index"*)
            [ -e downloaded ] || {{ echo 'no such wheel' >&2; exit 1; }}
            for a in 1 2 3; do for b in 1 2 3 4 5 6 7 8 9; do
                mkdir -p .venv/lib/python3/site-packages/$a$b.dist-info
            done; done
            until grep -q '  27 of at most' "{said}"; do sleep 0.05; done ;;
        *"pip download"*)
            echo "Collecting a>=1"; echo "  Downloading a-1-py3-none-any.whl (2 kB)"
            echo > downloaded ;;
    esac
    """
    executable(checkout / ".venv/bin/python", pip)
    with said.open("w") as log:
        environment = {"PATH": str(checkout.parent / "tools"), "HOME": str(checkout.parent)}
        done = subprocess.run(["sh", checkout / "scripts/setup.sh", "run"], env=environment,
                              stdout=log, stderr=log, timeout=120)  # fmt: skip
    lines = said.read_text().splitlines()
    assert done.returncode == 0 and "\r" not in said.read_text()
    assert [line.split("(")[0].split(" to ")[0].strip() for line in lines] == [
        "Downloading the packages", "Downloading a-1-py3-none-any.whl",
        "Installing the packages into .venv", f"27 of at most {lines[-1].split()[-2]} packages",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "status", "explained"),
    [
        ("ERROR: No matching distribution found for torch", 75, "could not be downloaded"),
        ("ERROR: ResolutionImpossible: for help visit the manual", 1, "do not go together"),
    ],
)
def test_a_package_that_cannot_be_downloaded_is_told_from_packages_that_do_not_go_together(
    checkout: Path, said: str, status: int, explained: str
) -> None:
    executable(checkout / ".venv-training/bin/python", f"#!/bin/sh\necho '{said}'\nexit 1\n")
    done = set_up(checkout, script="setup_training.sh")
    assert done.returncode == status
    assert said in done.stderr and explained in done.stderr
    assert not (checkout / ".venv-training/.set-up").exists()


def test_the_makefile_lists_its_targets() -> None:
    done = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    targets = "run test test-slow test-training lint types docs wheel clean"
    for target in targets.split():
        assert f"make {target}" in done.stdout


def test_what_the_continuous_integration_runs_can_be_parsed() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    done = subprocess.run(
        ["bash", "-n", str(ROOT / ".ci" / "run")], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
