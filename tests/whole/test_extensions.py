"""`codeqa` alone: what one person does needs nothing of `codeqa_server`."""

from __future__ import annotations

import json
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from conftest import ROOT, Run
from repositories import write

from codeqa import extensions
from codeqa.errors import SettingsError
from codeqa.extensions import GROUP, load_extension

ALONE = """
import json, sys
sys.modules["codeqa_server"] = None  # importing it fails, as where the folder is not there
from codeqa.cli import main
from codeqa.web.app import create_app

assert main(["index", "."]) == 0
assert main(["ask", "where is an article put into the basket?"]) == 0
client = create_app().test_client()
question = {"question": "@codebase where is an article put into the basket?"}
answer = client.post("/chat", json=question).json["response"]
print(json.dumps([client.get("/").status_code, answer]))
"""
SHOP = {
    "basket.py": "class Basket:\n    def add_article(self, name):\n        self.all.append(name)\n"
}


def test_index_ask_and_the_page_work_without_the_second_package(
    tmp_path: Path, run_python: Run
) -> None:
    data = {"CODEQA_DATA": str(tmp_path / "data")}
    done = run_python("-c", ALONE, cwd=write(tmp_path / "shop", SHOP), env=data)
    assert done.returncode == 0, done.stderr
    *_, asked, page = done.stdout.splitlines()
    status, answer = json.loads(page)
    assert status == 200 and "basket.py" in answer
    assert "basket.py" in done.stdout.removesuffix(page), asked


def test_a_part_whose_package_is_missing_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "codeqa_server.ray_builder", None)
    with pytest.raises(SettingsError, match=r"pip install .*\[cluster\]"):
        load_extension("ray_builder", "cluster")
    monkeypatch.setattr(extensions, "checkout", lambda: None)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    with pytest.raises(SettingsError, match=r"pip install .*\[cluster\]"):
        load_extension("ray_builder", "cluster")


def test_a_wheel_finds_the_parts_by_its_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    points = [EntryPoint(*item, GROUP) for item in project["entry-points"][GROUP].items()]
    monkeypatch.setattr(extensions, "checkout", lambda: None)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    for point in points:
        assert load_extension(point.name).__module__ == point.module
