"""Languages as data: detection, queries that fit their grammars, and a golden file for each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeqa.languages import detect, languages
from codeqa.parsing import extract, query
from codeqa.store.schema import ROWS_VERSION
from codeqa.types import KINDS
from tests.update_goldens import ROWS, as_text, fixtures, golden_path, observed, observed_rows

WITH_GRAMMAR = sorted(key for key, language in languages().items() if language.grammar)
NAMED_BY_THE_DESIGN = {
    "python", "javascript", "typescript", "java", "kotlin", "scala", "go", "rust", "c", "cpp",
    "csharp", "ruby", "php", "swift", "lua", "bash", "sql", "css",
}  # fmt: skip


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda path: path.name)
def test_a_fixture_yields_what_its_golden_file_says(fixture: Path) -> None:
    """`python -m tests.update_goldens` writes them anew; read the difference before accepting."""
    golden = json.loads(golden_path(fixture).read_text("utf-8"))
    assert golden == json.loads(as_text(observed(fixture)))


def test_a_file_becomes_other_rows_only_in_another_version_of_the_rows(tmp_path: Path) -> None:
    """Else indices that users have would keep rows that are made otherwise now: raise ROWS_VERSION,
    then `python -m tests.update_goldens`."""
    golden = json.loads(ROWS.read_text("utf-8"))
    assert golden == {"version": ROWS_VERSION, "rows": observed_rows(tmp_path)}


@pytest.mark.parametrize("fixture", fixtures(), ids=lambda path: path.name)
def test_units_of_a_fixture_are_exactly_their_lines_and_cover_its_code(fixture: Path) -> None:
    data = fixture.read_bytes()
    language = detect(fixture.name, data)
    assert language is not None
    lines = data.decode("utf-8").split("\n")
    parsed = extract(fixture.name, data, language.key, "source")
    for unit in parsed.units:
        assert unit.source_code == "\n".join(lines[unit.start_line - 1 : unit.end_line])
    assert len({unit.id for unit in parsed.units}) == len(parsed.units)
    for edge in parsed.references:
        if not edge.module:  # an alias goes by its original name
            rest = lines[edge.line - 1][edge.column - 1 :]
            assert rest.lstrip("[`\"'").startswith(edge.name)
    # But for closing brackets and the like between units.
    covered = {line for unit in parsed.units for line in range(unit.start_line, unit.end_line + 1)}
    left = [line for n, line in enumerate(lines, 1) if line.strip() and n not in covered]
    assert len([line for line in left if len(line.split()) > 2]) <= 0.1 * len(lines), left


def test_a_query_fits_its_grammar_and_knows_calls_and_definitions() -> None:
    for key in WITH_GRAMMAR:
        _, patterns = query(key)
        kinds = {pattern.kind for pattern in patterns if pattern.capture.startswith("definition.")}
        assert kinds and kinds <= KINDS - {"chunk"}, key


def test_every_language_with_a_grammar_has_a_fixture_and_a_golden_file() -> None:
    found = [detect(path.name, path.read_bytes()) for path in fixtures()]
    assert {one.key for one in found if one} == set(WITH_GRAMMAR) >= NAMED_BY_THE_DESIGN
    assert all(golden_path(path).exists() for path in fixtures())


def test_a_language_is_known_by_name_ending_or_first_line() -> None:
    for path, data, name in (
        ("a.PY", b"", "python"),
        ("x.tsx", b"", "typescript"),
        ("Dockerfile.dev", b"", "dockerfile"),
        ("deep/Makefile", b"", "makefile"),
        ("run", b"#!/usr/bin/env python3.12\n", "python"),
        ("run", b"#!/bin/bash -e\n", "bash"),
        ("run", b"#!/usr/bin/env -S node --flag\n", "javascript"),
        ("api.h", b"struct a { int b; };\n", "c"),
        ("api.h", b"namespace a {\n}\n", "cpp"),
        ("api.h", b"template <typename T> T id(T);\n", "cpp"),
    ):
        language = detect(path, data)
        assert language is not None and language.name == name, path
    assert detect("something", b"hello\n") is None
    assert detect("something.unknownending", b"") is None
