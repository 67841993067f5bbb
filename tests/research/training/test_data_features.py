"""The arrays that training reads, and the vocabulary that they are made with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from codeqa.embeddings.pieces import UNKNOWN, WordPiece, document_fields, query_ids
from codeqa.text.unit_text import UnitText, decode, encode
from research.training.console import file_name, write_lines
from research.training.features import BAGS, PARTS, SOURCES, BagWriter, Features, save

ROWS = [([3, 1], [2, 70_000]), ([], []), ([2], [1])]


@pytest.fixture
def features(tmp_path: Path) -> Features:
    """Three rows of two repositories."""
    writers = {bag: BagWriter() for bag in BAGS}
    for writer in writers.values():
        for bag in ROWS:
            writer.add(bag)
    columns = {
        "repository": np.array([0, 0, 1], np.int32),
        "source": np.array([0, 1, 0], np.int8),
        "language": np.array([0, 0, 0], np.int8),
        "part": np.array([0, 0, 1], np.int8),
    }
    save(tmp_path / "features", {bag: writer.arrays() for bag, writer in writers.items()}, columns,
         [UNKNOWN, "a", "b", "##c"], ["o/first", "o/second"], ["python"], 1)  # fmt: skip
    return Features(tmp_path / "features")


def test_features_come_back_as_they_were_saved(features: Features) -> None:
    assert (features.rows, features.pieces) == (3, [UNKNOWN, "a", "b", "##c"])
    for bag in BAGS:
        ids, counts = features.bags[bag].row(0)
        assert ids.tolist() == [3, 1] and counts.tolist() == [2, 65_535]
        assert features.bags[bag].row(1)[0].tolist() == []
    assert isinstance(features.bags["body"].ids, np.memmap)


def test_rows_are_found_by_part_source_and_repository(features: Features) -> None:
    assert features.where("train").tolist() == [0, 1]
    assert features.where("train", ["name"]).tolist() == [1]
    assert list(features.span("o/first")) == [0, 1] and list(features.span("o/second")) == [2]
    with pytest.raises(ValueError, match="not in list"):
        features.span("o/third")
    # Features that somebody reads stay when new ones are written.
    before = features.bags["body"].ids.tolist()
    empty = {bag: BagWriter().arrays() for bag in BAGS}
    save(features.folder, empty, {"repository": np.zeros(0, np.int32)}, [UNKNOWN], [], [], 1)
    assert features.bags["body"].ids.tolist() == before
    assert json.loads((features.folder / "manifest.json").read_text())["rows"] == 0


def _pairs(out: Path) -> list[dict[str, str]]:
    rows = []
    for number in range(60):
        unit = UnitText("src/door/hinge.py", "Door", "open_slowly", "It may creak.", "",
                        f"def open_slowly(self):\n    self.hinge.turn({number})\n")  # fmt: skip
        rows.append({"repo": f"o/n{number % 3}", "path": unit.path, "language": "python",
                     "kind": "method", "source": "doc", "query": "opens the door slowly",
                     "unit": encode(unit)})  # fmt: skip
    rows.sort(key=lambda row: row["repo"])
    for repository in {row["repo"] for row in rows}:
        own = [row for row in rows if row["repo"] == repository]
        write_lines(out / "pairs" / "train" / f"{file_name(repository)}.jsonl.gz", own)
    held = [dict(row, repo="o/held", query="turns the rusty hinge") for row in rows[:5]]
    write_lines(out / "pairs" / "held_out" / "o+held.jsonl.gz", held)
    return [*rows, *held]


def test_features_hold_what_the_encoder_sees_of_every_row(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    from research.training.featurise import featurise

    rows = _pairs(tmp_path)
    assert featurise(tmp_path, pieces=200) == len(rows)
    features = Features(tmp_path / "features")
    assert features.pieces[0] == UNKNOWN and 20 < len(features.pieces) <= 200
    # The words are of the rows that train alone.
    assert "slowly" in features.pieces and "rusty" not in features.pieces
    pieces = WordPiece(features.pieces)
    for number, row in enumerate(rows):
        expected = [*document_fields(decode(row["unit"]), pieces), query_ids(row["query"], pieces)]
        for bag, (ids, counts) in zip(BAGS, expected, strict=True):
            stored = features.bags[bag].row(number)
            assert (stored[0].tolist(), stored[1].tolist()) == (list(ids), list(counts))
    assert [PARTS[part] for part in features.part[[0, -1]]] == ["train", "held_out"]
    assert SOURCES[features.source[0]] == "doc" and features.repositories[-1] == "o/held"
    # The same rows give the same features.
    made = {path.name: path.read_bytes() for path in (tmp_path / "features").iterdir()}
    featurise(tmp_path, pieces=200)
    assert made == {path.name: path.read_bytes() for path in (tmp_path / "features").iterdir()}


def test_a_word_of_few_repositories_gets_no_piece_however_often_it_stands_there() -> None:
    pytest.importorskip("tokenizers")
    from research.training.vocabulary import learn

    pieces = learn([{"door", "hinge", "zyzzy"}, {"door", "hinge", "zyzzy"}, {"door", "hinge"}], 200)
    assert "door" in pieces and "hinge" in pieces and "zyzzy" not in pieces
