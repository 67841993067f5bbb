"""Tables of random numbers: `python -m tests.kit.tables FOLDER PIECES DIMENSION`.

The numbers mean nothing, but everything about a table can be tried with them: loading, damage,
indexing. The same arguments give the same files; `tests/fixtures/table` was made with 600 pieces
of 16 dimensions, and `--golden` writes what it makes of the texts in `tests/golden/table.json`.
"""

from __future__ import annotations

import json
import string
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from codeqa.embeddings.pieces import FIELDS, UNKNOWN, document_fields, query_ids, split
from codeqa.embeddings.table import TableEncoder, load_weights
from codeqa.text.unit_text import decode
from research.training.table_files import save_weights

HERE = Path(__file__).parent.parent
FIXTURE = HERE / "fixtures" / "table"
GOLDEN = HERE / "golden" / "table.json"
LETTERS = string.ascii_lowercase + string.digits


def vocabulary(size: int) -> list[str]:
    """UNKNOWN, letters and digits, words of CodeQA's own source, then made-up endings."""
    source = (HERE.parent / "codeqa").rglob("*.py")
    pieces = dict.fromkeys([UNKNOWN, *LETTERS, *(f"##{letter}" for letter in LETTERS)])
    counted: dict[str, int] = {}
    for path in sorted(source):
        for word in split(path.read_text("utf-8")):
            counted[word] = counted.get(word, 0) + 1
    pieces.update(dict.fromkeys(sorted(counted, key=lambda word: (-counted[word], word))))
    for length in (2, 3):
        endings = product(string.ascii_lowercase, repeat=length)
        pieces.update(dict.fromkeys(f"##{''.join(ending)}" for ending in endings))
    return list(pieces)[:size]


def make_table(
    folder: Path,
    pieces: int,
    dimension: int,
    *,
    seed: int = 1,
    version: str = "1",
) -> Path:
    """Write a table of random numbers; returns `folder`."""
    known = vocabulary(pieces)
    random = np.random.default_rng(seed)

    def weights() -> Any:
        return (0.2 + random.random(len(known))).astype(np.float32)

    save_weights(
        folder,
        pieces=known,
        table=random.integers(-127, 128, (len(known), dimension), dtype=np.int8),
        scales=weights() / 127,
        query_weights=weights(),
        document_weights=weights(),
        field_weights=np.array([0.1, 0.4, 0.9, 0.6], np.float32),
        name="codeqa/random-table",
        version=version,
        card="# A table of random numbers\n\nFor tests.\n",
    )
    return folder


def observed(text: str) -> dict[str, Any]:
    """Return what the fixture's table makes of `text`, in a form that reads well in a diff."""
    weights = load_weights(FIXTURE)
    encoder = TableEncoder(weights)
    result: dict[str, Any] = {"text": text, "words": split(text)}
    result["query"] = [list(part) for part in query_ids(text, weights.pieces)]
    result["query_vector"] = [round(float(value), 6) for value in encoder.encode_query(text)]
    with suppress(ValueError):  # a question: no unit's text
        fields = document_fields(decode(text), weights.pieces)
        result.update(zip(FIELDS, map(list, fields), strict=True))
    vector = encoder.compute_source_embeddings([text])[0]
    result["document_vector"] = [round(float(value), 6) for value in vector]
    return result


def main(arguments: list[str]) -> int:
    if arguments == ["--golden"]:
        texts = [entry["text"] for entry in json.loads(GOLDEN.read_text("utf-8"))]
        entries = [json.dumps(observed(text), ensure_ascii=False) for text in texts]
        GOLDEN.write_text("[\n" + ",\n".join(entries) + "\n]\n", "utf-8")
        return 0
    folder, pieces, dimension = arguments
    make_table(Path(folder), int(pieces), int(dimension))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
