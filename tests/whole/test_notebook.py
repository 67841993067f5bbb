"""The notebook in docs/ runs from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT
from repositories import write


def test_the_notebook_indexes_searches_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_DATA", str(tmp_path / "data"))
    files = {"a.py": "def check(citation):\n    return citation\n", "b.py": "CITATIONS = 3\n"}
    repository = write(tmp_path / "shop", files)
    notebook = json.loads((ROOT / "docs" / "search.ipynb").read_text("utf-8"))
    names = dict[str, object]()
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace('".."', repr(str(repository))), names)
    assert names["hits"]["path"].iloc[0] == "a.py"  # type: ignore[index]
    assert "a.py" in set(names["by_file"].index)  # type: ignore[attr-defined]
