"""What is built holds everything, and the lists of dependencies agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement

IN_THE_WHEEL = (
    "codeqa/cli/main.py",
    "codeqa/embeddings/table.py",
    "codeqa/languages/languages.toml",
    "codeqa/languages/queries/python.scm",
    "codeqa/prompts/chat_system.md",
    "codeqa/privacy_report.md",
    "codeqa_server/ray_builder.py",
)
LARGEST_TABLE = 20_000_000
"""Bytes that the embedding table may take in the wheel."""
IMPORT = re.compile(r"^ *(?:import|from) (\w+)(?=[.\w]*(?: import| as|,|$))", re.MULTILINE)
PIN = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[\w+\])?==([^\s;]+)(?: ?; .+?)?((?: --hash=sha256:[0-9a-f]{64})*)$"
)


def pinned(name: str) -> dict[str, tuple[str, int]]:
    """The version of each package in a list, and how many hashes it has."""
    text = (ROOT / name).read_text(encoding="utf-8").replace(" \\\n    --hash", " --hash")
    lines = [line.strip() for line in text.splitlines()]
    listed = [PIN.match(line) for line in lines if line and not line.startswith("#")]
    assert all(listed), f"{name} holds a line that pins nothing"
    return {m[1].lower().replace("_", "-"): (m[2], m[3].count(" ")) for m in listed if m}


def pins(name: str) -> dict[str, str]:
    return {package: version for package, (version, _) in pinned(name).items()}


def needed_by(names: Iterable[str]) -> set[str]:
    """These packages and all that they need on this machine."""
    waiting, everything = [*names], set[str]()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in everything:
            continue
        everything.add(name)
        for line in metadata.requires(name) or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return everything


def test_every_list_pins_exactly_and_no_package_stands_in_two() -> None:
    lists = [pins("requirements.txt"), pins("requirements-dev.txt")]
    names = [name for versions in lists for name in versions]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("lock", "lists"),
    [
        ("requirements.lock", ("requirements.txt",)),
        ("constraints.txt", ("requirements.txt", "requirements-dev.txt")),
    ],
)
def test_a_lock_holds_what_the_lists_pin_and_need(lock: str, lists: tuple[str, ...]) -> None:
    """Else it is stale: `make lock` writes it."""
    locked, constraints = pins(lock), pins("constraints.txt")
    listed = {name: version for one in lists for name, version in pins(one).items()}
    assert listed.items() <= locked.items() <= constraints.items()
    assert needed_by(listed) <= locked.keys()


@pytest.mark.parametrize("lock", ["requirements.lock", "scripts/requirements-setup.lock"])
def test_a_lock_holds_hashes_of_every_package_and_the_name_of_no_host(lock: str) -> None:
    assert all(hashes for _, hashes in pinned(lock).values())
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


def test_what_sets_up_is_locked_and_is_no_dependency() -> None:
    assert pins("scripts/requirements-setup.lock").keys() == {"pip", "uv"}
    assert not {"pip", "uv"} & pins("constraints.txt").keys()


def test_no_default_dependency_brings_a_model_framework() -> None:
    everything = needed_by(pins("requirements.txt"))
    assert "pydantic-core" in everything
    assert not {"torch", "transformers", "tensorflow", "onnxruntime", "fastembed"} & everything


def test_what_is_imported_is_listed() -> None:
    """Every third-party module that the package imports belongs to a listed package."""
    packages = ("codeqa", "codeqa_server")
    sources = [path for name in packages for path in (ROOT / name).rglob("*.py")]
    sources += ROOT.glob("*.py")
    imported = {name for path in sources for name in IMPORT.findall(path.read_text("utf-8"))}
    ours = {*packages, *(path.stem for path in ROOT.glob("*.py"))}
    third_party = imported - set(sys.stdlib_module_names) - ours
    modules = {"markdown-it-py": "markdown_it", "google-re2": "re2", "pylance": "lance"}
    names = set(pins("requirements.txt"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for lines in project["optional-dependencies"].values():
        names |= {Requirement(line).name for line in lines}
    listed = {modules.get(name, name.replace("-", "_")) for name in names}
    # Flask's own parts, which its users import beside it.
    assert third_party <= listed | {"werkzeug", "jinja2", "markupsafe"}


def build(folder: Path, source: Path, kind: str) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "-o", str(folder)]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


@pytest.mark.slow
def test_the_wheel_is_complete_also_from_the_source_archive(
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(build(tmp_path / "one", ROOT, "wheel")) as wheel:
        names = set(wheel.namelist())
        entries = wheel.infolist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        described = wheel.read(metadata).decode()
    files = [path for name in ("templates", "static") for path in (ROOT / name).rglob("*")]
    wanted = {f"codeqa/web/{path.relative_to(ROOT).as_posix()}" for path in files if path.is_file()}
    for folder in ("codeqa/languages/queries", "codeqa/embeddings/data"):
        found = [path for path in (ROOT / folder).glob("*") if path.is_file()]
        wanted |= {path.relative_to(ROOT).as_posix() for path in found}
    assert {*IN_THE_WHEEL, *wanted} <= names
    assert not {name.split("/")[0] for name in names} & {"tests", "scripts", "research"}
    table = [one for one in entries if one.filename.startswith("codeqa/embeddings/data/")]
    assert sum(entry.compress_size for entry in table) <= LARGEST_TABLE
    for name, version in pins("requirements.txt").items():
        line = rf"^Requires-Dist: {name}=={re.escape(version)}(?:; .*)?$"
        assert re.search(line, described, re.M | re.I)
    with tarfile.open(build(tmp_path / "sdist", ROOT, "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    with zipfile.ZipFile(build(tmp_path / "two", unpacked, "wheel")) as wheel:
        assert set(wheel.namelist()) == names
