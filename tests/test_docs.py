from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"`(test_\w+\.py)(?:::(\w+))?")


def named_tests(document: str) -> list[tuple[str, str]]:
    return NAMED.findall((ROOT / document).read_text(encoding="utf-8"))


def test_every_test_named_in_the_conformance_list_exists() -> None:
    missing = []
    for file, function in named_tests("docs/conformance.md"):
        path = ROOT / "tests" / file
        if not path.exists():
            missing.append(file)
        elif function and f"def {function}(" not in path.read_text(encoding="utf-8"):
            missing.append(f"{file}::{function}")
    assert missing == []


@pytest.mark.parametrize("row", [f"S1.{number:02}" for number in range(1, 18)])
def test_the_conformance_list_has_each_row(row: str) -> None:
    assert f"| {row} |" in (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")


def test_the_layers_of_the_architecture_are_those_that_are_enforced() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for part in sorted((ROOT / "codeqa").iterdir()):
        if part.name.startswith("_") or not (
            part.suffix == ".py" or (part / "__init__.py").exists()
        ):
            continue
        name = part.stem if part.suffix == ".py" else f"{part.name}/"
        assert f"`{name}`" in text, f"ARCHITECTURE.md does not name {name}"
