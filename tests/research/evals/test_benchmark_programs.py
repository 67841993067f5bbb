"""The programs of benchmarks and evaluations start: what each imports is there. One of them is run
as a whole."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from research.evals import reading
from tests.kit.repositories import write

PEER = "research.benchmarks.retrieval.semble_peer"
"""Runs in an environment of its own, which has the peer."""


def programs() -> list[str]:
    found = []
    for folder in ("research/benchmarks", "research/evals"):
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
    ours = {"tests", *(file.stem for file in (ROOT / "tests").rglob("*.py"))}
    for name in [name for name in sys.modules if name.partition(".")[0] in ours]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(program, run_name="__main__")
    assert not ended.value.code
    assert "usage:" in capsys.readouterr().out.lower()


FILES = {
    "shop/till.py": "".join(
        f"def till_{n}(coin):\n    return coin + {n}\n\n\n" for n in range(2_000)
    ),
    "shop/hatch.py": "def open_hatch(key):\n    return key.turn()\n",
}
"""More than is sent whole."""


def test_what_a_model_saw_is_measured_with_replies_that_were_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEQA_DATA", str(tmp_path / "data"))
    write(tmp_path / "trees/shop", FILES)
    target = {"path": "shop/hatch.py", "start": 1, "end": 2}
    asked = {"near": "where is open_hatch?", "looks": "what does till_7 return?",
             "never": "what does till_8 return?"}  # fmt: skip
    questions = [
        {"id": id_, "repo": "shop", "question": text, "relevant": [target]}
        for id_, text in asked.items()
    ]
    said = [
        {
            "id": "looks",
            "replies": ["LOOK symbol open_hatch\nLOOK grep turn", "It returns a coin."],
        },
        {"id": "never", "reply": "SEARCH: what adds to a coin"},
    ]
    for name, rows in (("questions", questions), ("said", said)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / name).write_text(lines, "utf-8")
    (tmp_path / "prompts").mkdir()
    given = {"questions": "questions", "trees": "trees", "replies": "said", "json": "rows",
             "prompts": "prompts"}  # fmt: skip
    reading.main([f"--{name}={tmp_path / file}" for name, file in given.items()])
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text("utf-8").splitlines()]
    told = [tuple(row[name] for name in ("id", *reading.FIGURES[:4])) for row in rows]
    assert told == [
        ("near", True, True, 0, 1), ("looks", False, True, 1, 2), ("never", False, False, 1, 2),
    ]  # fmt: skip
    near, looks, _ = rows
    assert near["characters"] == near["as billed"]
    assert looks["characters"] < looks["as billed"] < 2 * looks["characters"]
    assert "in all seen            0.667" in capsys.readouterr().out
    left = {file.stem: file.read_text("utf-8") for file in (tmp_path / "prompts").iterdir()}
    assert left.keys() == {"near", "never"}, "of the other all replies are there"
    assert "LOOK search what adds to a coin" in left["never"] and asked["near"] in left["near"]
