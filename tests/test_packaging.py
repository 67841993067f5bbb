"""What is built holds everything, and the lists of dependencies agree with each other."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
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
)
LARGEST_TABLE = 20_000_000
"""Bytes that the embedding table may take in the wheel."""
IMPORT = re.compile(r"^ *(?:import|from) (\w+)(?=[.\w]*(?: import| as|,|$))", re.MULTILINE)
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[\w+\])?==([^\s;]+)(?:; .+)?$")


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    listed = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    found = [PIN.match(line) for line in listed]
    assert all(found), f"{name} holds a line that pins nothing"
    return {m[1].lower().replace("_", "-"): m[2] for m in found if m is not None}


def test_every_list_pins_exactly_and_no_package_stands_in_two() -> None:
    lists = [pins(f"{name}.txt") for name in ("requirements", "requirements-dev", "constraints")]
    names = [name for pinned in lists for name in pinned]
    assert len(names) == len(set(names))


def test_no_default_dependency_brings_a_model_framework() -> None:
    waiting, everything = list(pins("requirements.txt")), set()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in everything:
            continue
        everything.add(name)
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)
    assert "pydantic-core" in everything
    assert not {"torch", "transformers", "tensorflow", "onnxruntime", "fastembed"} & everything


def test_what_is_imported_is_listed() -> None:
    """Every third-party module that the package imports belongs to a listed package."""
    sources = [*(ROOT / "codeqa").rglob("*.py"), *ROOT.glob("*.py")]
    imported = {name for path in sources for name in IMPORT.findall(path.read_text("utf-8"))}
    ours = {"codeqa", *(path.stem for path in ROOT.glob("*.py"))}
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


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.slow
def test_the_wheel_holds_the_page_the_queries_and_the_dependencies(tmp_path: Path) -> None:
    wheel = build(tmp_path, ROOT, "wheel")
    names = names_in(wheel)
    files = [path for name in ("templates", "static") for path in (ROOT / name).rglob("*")]
    wanted = {f"codeqa/web/{path.relative_to(ROOT).as_posix()}" for path in files if path.is_file()}
    for folder in ("codeqa/languages/queries", "codeqa/embeddings/data"):
        found = [path for path in (ROOT / folder).glob("*") if path.is_file()]
        wanted |= {path.relative_to(ROOT).as_posix() for path in found}
    assert {*IN_THE_WHEEL, *wanted} <= names
    assert not [name for name in names if name.split("/")[0] in {"tests", "scripts", "benchmarks"}]
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
        table = [one for one in entries if one.filename.startswith("codeqa/embeddings/data/")]
        assert sum(entry.compress_size for entry in table) <= LARGEST_TABLE
        name = next(n for n in names if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    for name, version in pins("requirements.txt").items():
        assert re.search(rf"^Requires-Dist: {name}=={re.escape(version)}$", metadata, re.M | re.I)


@pytest.mark.slow
def test_the_wheel_built_from_the_source_archive_is_the_same(tmp_path: Path) -> None:
    archive = build(tmp_path / "sdist", ROOT, "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    unpacked = next((tmp_path / "unpacked").iterdir())
    from_archive = build(tmp_path / "one", unpacked, "wheel")
    from_checkout = build(tmp_path / "two", ROOT, "wheel")
    assert names_in(from_archive) == names_in(from_checkout)
