"""Which function of a repository a test is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from codeqa.text.tokens import split_identifier
from codeqa.types import METHOD_KINDS, ParsedFile, Unit
from research.training import cleaning
from research.training.rows import is_test


@dataclass(slots=True)
class Tested:
    """Finds the one function that a test is about, over the files of one repository.

    The test must call it, only one function of the repository may carry its name, and its
    file must be named like the test's (`test_config.py` → `config.py`), or the test like it.
    """

    functions: dict[str, Unit | None] = field(default_factory=dict)
    tests: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """Path, name and called names of every test."""

    def add_source(self, parsed: ParsedFile) -> None:
        """Take in the functions of a source file."""
        for unit in parsed.units:
            if unit.kind in METHOD_KINDS and not is_test(unit):
                self.functions[unit.name] = None if unit.name in self.functions else unit

    def add_tests(self, parsed: ParsedFile) -> None:
        """Take in the tests of a test file, with the names that each calls."""
        called: dict[str, dict[str, None]] = {}
        for reference in parsed.references:
            if reference.kind == "call" and reference.unit_id:
                called.setdefault(reference.unit_id, {})[reference.name] = None
        for unit in parsed.units:
            if unit.kind in METHOD_KINDS and unit.id in called and cleaning.test_query(unit.name):
                self.tests.append((unit.path, unit.name, tuple(called[unit.id])))

    def pairs(self) -> Iterator[tuple[str, Unit]]:
        """(name of a test, the function that it tests), each test at most once."""
        often: dict[str, int] = {}
        for _, _, called in self.tests:
            for name in called:
                often[name] = often.get(name, 0) + 1
        for path, test, called in self.tests:
            stem, words = _stem(path), set(split_identifier(test))
            known = [unit for name in called if (unit := self.functions.get(name)) is not None]
            near = [
                unit
                for unit in known
                if _stem(unit.path) == stem or words.issuperset(split_identifier(unit.name))
            ]
            if near:
                yield test, min(near, key=lambda unit: (often[unit.name], unit.name))


def _stem(path: str) -> str:
    words = [word for word in split_identifier(PurePosixPath(path).stem)
             if word not in ("test", "tests", "spec", "specs")]  # fmt: skip
    return " ".join(words)
