"""Write the golden files of the languages and of the rows anew:
`python -m tests.update_goldens [key …]`.

Read the difference with your own eyes before you accept it; the tests compare with it only.
A fixture is `tests/fixtures/languages/<stem>.<ending>`, its golden file
`tests/golden/languages/<stem>.<ending>.json`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

from codeqa.languages import detect
from codeqa.parsing import extract
from codeqa.store.schema import ROWS_VERSION
from tests.kit.index_rows import rows
from tests.kit.indexed import indexed

FIXTURES = Path(__file__).parent / "fixtures" / "languages"
GOLDENS = Path(__file__).parent / "golden" / "languages"
ROWS = Path(__file__).parent / "golden" / "rows.json"
OTHER_FILES: dict[str, str | bytes] = {
    "README.md": "# Shop\n\nSells books.\n\n## Prices\n\n```python\nprice(1)\n```\n"
    + 90 * "Text.\n",
    "docs/guide.rst": "Guide\n=====\n\nHow to buy.\n\nPaying\n------\n\nBy card.\n",
    "notes.ipynb": '{"cells": [{"cell_type": "markdown", "source": ["# Sums"]}, '
    '{"cell_type": "code", "source": ["def add(a, b):\\n", "    return a + b"], "outputs": []}]}',
    "settings/app.toml": "[shop]\nname = 'books'\n\n[shop.pay]\ncard = true\n",
    "settings/app.yaml": "shop:\n  name: books\n  pay:\n    card: true\n",
    "settings/app.json": '{"shop": {"name": "books", "pay": {"card": true}}}\n',
    "page.html": "<html><body><script>function open_page() {}</script></body></html>\n",
    "Makefile": "all: build\n\nbuild:\n\tcc main.c\n",
    "Dockerfile": "FROM scratch\nCOPY . /\n",
    "unknown.zig": "".join(f"const a{n} = {n};\n" for n in range(120)),
    "secret.py": f'KEY = "ghp_{18 * "a1"}"\n'
    'PASSWORD = "a1B2c3D4e5F6g7H8i9"\n\n\ndef login():\n    return KEY\n',
    "broken.py": "def half(\n\n\nclass Whole:\n    def run(self):\n        return half(1)\n",
    "latin.py": b"def caf\xe9():\n    pass\n",
    "crlf.py": "def one():\r\n    return two()\r\n\r\n\r\ndef two():\r\n    return 2\r\n",
    "vendor/lib/tool.js": "export function tool(a) { return a; }\n",
    "tests/test_shop.py": "from secret import login\n\n\ndef test_login():\n    assert login()\n",
    "lib.min.js": "function a(){return 1};" * 400,
    "package-lock.json": "{}\n",
    "picture.png": b"\x89PNG\x00\x00",
    "empty.py": "",
}
"""Documents, configuration, scripts, what no grammar reads, broken text, what is left out."""


SHOWN = (
    "kind", "name", "qualified_name", "class_name", "signature", "doc_comment", "head_end_line",
    "constructor_declaration", "method_declarations",
)  # fmt: skip
"""Fields of a unit: all but its source, which the test compares with the file's lines."""


def fixtures() -> list[Path]:
    """Every fixture file, by name."""
    return sorted(path for path in FIXTURES.iterdir() if path.is_file())


def golden_path(fixture: Path) -> Path:
    return GOLDENS / f"{fixture.name}.json"


def observed(fixture: Path) -> dict[str, Any]:
    """Return what extraction yields for a fixture, in a form that reads well in a diff; a reference
    names its unit and target by qualified name and first line."""
    data = fixture.read_bytes()
    language = detect(fixture.name, data)
    assert language is not None, f"no language for {fixture.name}"
    parsed = extract(fixture.name, data, language.key, "source")
    places = {u.id: f"{u.qualified_name}:{u.start_line}" for u in parsed.units}
    units = [
        {"lines": f"{unit.start_line}-{unit.end_line}"}
        | {name: value for name in SHOWN if (value := getattr(unit, name))}
        for unit in parsed.units
    ]
    references = []
    for edge in parsed.references:
        parts = (
            f"{edge.line}:{edge.column} {edge.kind} {edge.name}",
            edge.receiver and f"on {edge.receiver}",
            edge.module and f"from {edge.module}",
            edge.unit_id and f"in {places[edge.unit_id]}",
            edge.target and f"→ {places[edge.target]} {edge.confidence:g}",
        )
        references.append(" ".join(filter(None, parts)))
    return {
        "language": parsed.language,
        "has_errors": parsed.has_errors,
        "units": units,
        "references": references,
    }


def observed_rows(folder: Path) -> dict[str, str]:
    """A digest of the rows of every file of a repository that is made in `folder`, by table and
    path: the fixtures of the languages and one file for each other way of reading one. Without
    vectors, whose embedding has a version of its own."""
    files = {path.name: path.read_bytes() for path in fixtures()} | OTHER_FILES
    digests = {}
    for table, records in rows(indexed(folder, files).location).items():
        for path, of_path in groupby(sorted(records, key=_by_path), _by_path):
            lines = sorted(
                json.dumps({key: one[key] for key in sorted(one) if key != "vector"})
                for one in of_path
            )
            text = "\n".join(lines).encode()
            digests[f"{table} {path}"] = hashlib.blake2b(text, digest_size=8).hexdigest()
    return digests


def _by_path(row: dict[str, Any]) -> str:
    return str(row["path"])


def write_rows() -> None:
    """Write the golden rows. Raises SystemExit where they changed and their version did not."""
    with tempfile.TemporaryDirectory() as folder:
        new = {"version": ROWS_VERSION, "rows": observed_rows(Path(folder))}
    old = json.loads(ROWS.read_text("utf-8")) if ROWS.exists() else {}
    known = old.get("rows", {})
    changed = [name for name, digest in new["rows"].items() if known.get(name, digest) != digest]
    gone = [name for name in known if name not in new["rows"]]
    if (changed or gone) and old["version"] == ROWS_VERSION:
        raise SystemExit(f"Raise ROWS_VERSION: other rows for {', '.join(changed + gone)}.")
    ROWS.write_text(as_text(new), "utf-8")


def as_text(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def main(keys: list[str]) -> int:
    for fixture in fixtures():
        language = detect(fixture.name, fixture.read_bytes())
        if keys and (language is None or language.key not in keys):
            continue
        path = golden_path(fixture)
        text = as_text(observed(fixture))
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"written: {path.name}")
    write_rows()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
