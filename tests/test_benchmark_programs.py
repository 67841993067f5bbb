"""The programs of benchmarks and evaluations start: what each imports is there."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PEER = "benchmarks.retrieval.semble_peer"
"""Runs in an environment of its own, which has the peer."""


def programs() -> list[str]:
    found = []
    for folder in ("benchmarks", "evals"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if "if __name__ ==" in file.read_text("utf-8") and ".oracles." not in name:
                found.append(name.removesuffix(".__main__"))
    return [name for name in found if name != PEER]


@pytest.mark.parametrize("program", programs())
@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_a_program_that_measures_answers_help(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    # As from the checkout, where no module of the tests is found by its bare name.
    monkeypatch.setattr(sys, "path", [one for one in sys.path if Path(one) != ROOT / "tests"])
    ours = {"tests", *(file.stem for file in (ROOT / "tests").glob("*.py"))}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(program, run_name="__main__")
    assert not ended.value.code
    assert "usage:" in capsys.readouterr().out.lower()
