"""What CodeQA says is defined and called, against what each language's own compiler says.

Go is left to `research.benchmarks.oracles`: its standard library is read from source, which takes
too long.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

from codeqa.parsing import parse_file
from research.benchmarks.oracles import CACHE, LANGUAGES, Index, ask, command_of, compare

HERE = ROOT / "tests"
OWN = HERE.parent / "codeqa"
DEFINITIONS, CALLS = 0.98, 0.9


@pytest.mark.parametrize(
    ("language", "root", "pattern"),
    [
        ("python", OWN, "s*/*.py"),
        pytest.param("java", HERE / "fixtures" / "languages", "*.java", marks=pytest.mark.slow),
        ("typescript", HERE.parent / "static" / "js", "*/*.js"),
    ],
)
def test_definitions_are_what_the_language_says(language: str, root: Path, pattern: str) -> None:
    command = command_of(language, CACHE)
    if isinstance(command, str):
        pytest.skip(command)
    paths = [str(path.relative_to(root)) for path in sorted(root.glob(pattern))]
    index = Index(parse_file(path, (root / path).read_bytes()) for path in paths)
    languages = LANGUAGES.get(language, (language,))
    figures = compare(index, ask(command, root, paths), languages, sample=200).figures()
    for name in ("definitions precision", "definitions recall"):
        assert figures[name]["share"] >= DEFINITIONS, name
    for level in ("certain", "likely"):
        found = figures.get(f"{level} calls precision", {"share": 1.0, "of": 0})
        assert found["share"] >= CALLS, level
    if language == "python":
        assert figures["definitions recall"]["of"] > 300
        assert figures["calls recall"]["share"] >= CALLS
