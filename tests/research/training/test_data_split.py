"""Which rows train: parts, repetitions and overlap with what measures."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codeqa.text.unit_text import UnitText, encode
from research.training.collect import BENCHMARK
from research.training.console import LIST, read_lines, write_lines
from research.training.overlap import Benchmark, read_texts
from research.training.split import Filter, part_of, split
from tests.kit.repositories import write

BODY = (
    "def {0}(a, b):\n    total = a + b\n    print('the total of both is', total)\n    return {0}\n"
)


def _row(repo: str, query: str, body: str, source: str = "doc", doc: str = "") -> dict[str, Any]:
    unit = encode(UnitText("src/a.py", "", "name", doc, "", body))
    return {"repo": repo, "path": "src/a.py", "language": "python", "kind": "function",
            "source": source, "query": query, "unit": unit}  # fmt: skip


def _write(out: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
    write_lines(out / "collected.jsonl", ({"repository": name} for name in rows))
    for name, lines in rows.items():
        write_lines(out / "rows" / f"{name.replace('/', '+')}.jsonl.gz", lines)


def _named(part: str, count: int = 1, tuning: tuple[str, ...] = ()) -> list[str]:
    names = (f"owner/name{number}" for number in range(1_000))
    return [name for name in names if part_of(name, tuning) == part][:count]


def test_a_repositorys_part_depends_on_its_name_alone() -> None:
    parts = Counter(part_of(f"owner/name{number}", ()) for number in range(2_000))
    assert set(parts) == {"train", "held_out"}
    assert 0.05 < parts["held_out"] / 2_000 < 0.11
    (name,) = _named("held_out")
    assert part_of(name.upper(), ()) == "held_out"
    assert part_of(name, [name]) == "tuning"


def test_the_list_holds_nothing_of_the_benchmark_and_every_entry_is_pinned() -> None:
    entries = list(read_lines(LIST))
    assert len({entry["repository"] for entry in entries}) == len(entries) >= 300
    assert not {entry["repository"].lower() for entry in entries} & set(BENCHMARK)
    assert all(len(entry["commit"]) == 40 for entry in entries)


def test_a_document_counts_once_and_a_sentence_three_times() -> None:
    rows = [_row("o/n", "adds both numbers up", BODY.format(f"f{n}")) for n in range(5)]
    rows.append(_row("o/n", "adds the two numbers up", BODY.format("f0").replace("    ", "\t")))
    chosen = Filter()
    assert [row["unit"] for row in chosen.keep(rows, "train")] == [r["unit"] for r in rows[:3]]
    assert chosen.dropped == {"sentence seen before": 2, "document seen before": 1}
    # A test is a further query for a document that is there.
    rows[1:] = [_row("o/n", "sum of two is right", BODY.format("f0"), "test")]
    assert len(list(Filter().keep(rows, "train"))) == 2


def test_nothing_of_the_yardstick_is_trained_on() -> None:
    chosen, body = Filter(), BODY.format("f")
    first = [_row("o/held", "adds both numbers up", body)]
    again = [_row("o/train", "sums two numbers up", body)]
    again.append(_row("o/train", "sum of two is right", body, "test"))
    assert len(list(chosen.keep(first, "held_out"))) == 1
    assert list(chosen.keep(again, "train")) == []


TREE = {
    "src/router.py": "class Router:\n    def match(self, path):\n"
    "        for rule in self.rules:\n            if rule.regex.fullmatch(path):\n"
    "                return rule.endpoint, rule.arguments\n        raise NotFound(path)\n",
    "README.md": "Returns the endpoint that the given path was registered for.\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree that stands for the benchmark."""
    write(tmp_path / "tree", {**TREE, "logo.png": b"\x89PNG\0\0"})
    return tmp_path / "tree"


def test_the_check_finds_a_planted_document_and_a_planted_sentence(tree: Path) -> None:
    benchmark = Benchmark(read_texts([tree]))
    assert benchmark.texts == 2, "binary files are no texts"
    copied = TREE["src/router.py"].replace("    ", "\t") + "\n# and a line of its own"
    sentence = "the endpoint that the given path was registered for"
    other = BODY.format("add")
    assert benchmark.overlaps(_row("o/n", "finds the rule", copied))
    assert benchmark.overlaps(_row("o/n", "finds the rule", "x = 1", doc=copied))
    assert benchmark.overlaps(_row("o/n", sentence, other))
    mixed = TREE["src/router.py"].split("        raise")[0] + other * 4  # less than half of it
    assert not benchmark.overlaps(_row("o/n", "finds the rule", mixed))
    assert not benchmark.overlaps(_row("o/n", "the endpoint of the path", other))
    assert not benchmark.overlaps(_row("o/n", "adds the numbers that it is given up", other))


@pytest.mark.slow
def test_splitting_drops_what_was_planted_from_every_part(tmp_path: Path, tree: Path) -> None:
    train, tuned = _named("train", 2)
    (held,) = _named("held_out")
    planted = TREE["src/router.py"]
    _write(tmp_path, {
        train: [_row(train, "finds the rule", planted), _row(train, "adds both", BODY.format("f"))],
        held: [_row(held, "looks the rule up", planted + "\n"),
               _row(held, "prints what both give", BODY.format("g"))],
        tuned: [_row(tuned, "adds one more up", BODY.format("h"))],
    })  # fmt: skip
    assert split(tmp_path, [tree], [tuned]) == {"train": 1, "held_out": 1}
    told = json.loads((tmp_path / "split.json").read_text())
    assert told["dropped"] == {"overlaps with the benchmark": 2}
    assert told["repositories"] == {"train": [train], "held_out": [held], "tuning": [tuned]}
    files = sorted((tmp_path / "pairs").rglob("*.gz"))
    assert [path.parent.name for path in files] == ["held_out", "train"]
    text = "".join(row["unit"] + row["query"] for path in files for row in read_lines(path))
    assert "rule.endpoint" not in text and "adds one more up" not in text
