"""Write the golden files of the languages anew: `python -m tests.update_goldens [key …]`.

Read the difference with your own eyes before you accept it; the tests compare with it only.
A fixture is `tests/fixtures/languages/<stem>.<ending>`, its golden file
`tests/golden/languages/<stem>.<ending>.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from codeqa.languages import detect
from codeqa.parsing.parse import extract

FIXTURES = Path(__file__).parent / "fixtures" / "languages"
GOLDENS = Path(__file__).parent / "golden" / "languages"


def fixtures() -> list[Path]:
    """Every fixture file, by name."""
    return sorted(path for path in FIXTURES.iterdir() if path.is_file())


def golden_path(fixture: Path) -> Path:
    return GOLDENS / f"{fixture.name}.json"


def observed(fixture: Path) -> dict[str, Any]:
    """What extraction yields for a fixture, in a form that reads well in a diff.

    Units are without their source (the test compares it with the file's lines); a
    reference names its unit and target by qualified name and first line.
    """
    data = fixture.read_bytes()
    language = detect(fixture.name, data)
    assert language is not None, f"no language for {fixture.name}"
    parsed = extract(fixture.name, data, language.key, "source")
    places = {u.id: f"{u.qualified_name}:{u.start_line}" for u in parsed.units}
    units = [
        {
            "lines": f"{unit.start_line}-{unit.end_line}",
            "kind": unit.kind,
            "name": unit.name,
            "qualified_name": unit.qualified_name,
            "class_name": unit.class_name,
            "signature": unit.signature,
            "doc_comment": unit.doc_comment,
            "head_end_line": unit.head_end_line,
            "constructor_declaration": unit.constructor_declaration,
            "method_declarations": list(unit.method_declarations),
        }
        for unit in parsed.units
    ]
    for unit in units:
        for key in [key for key, value in unit.items() if value in ("", 0, [])]:
            del unit[key]
    references = [
        " ".join(
            part
            for part in (
                f"{edge.line}:{edge.column}",
                edge.kind,
                edge.name,
                f"on {edge.receiver}" if edge.receiver else "",
                f"from {edge.module}" if edge.module else "",
                f"in {places[edge.unit_id]}" if edge.unit_id else "",
                f"→ {places[edge.target]} {edge.confidence:g}" if edge.target else "",
            )
            if part
        )
        for edge in parsed.references
    ]
    return {
        "language": parsed.language,
        "has_errors": parsed.has_errors,
        "units": units,
        "references": references,
    }


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
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
