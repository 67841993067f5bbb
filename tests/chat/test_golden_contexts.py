"""Which chunks are sent for ten questions, as a list to be read: tests/golden/contexts.txt.

`python -m tests.chat.test_golden_contexts` writes the list anew: read the difference before
accepting.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from conftest import ROOT

from codeqa.context.block import ContextBlock
from codeqa.search.hybrid import open_search
from codeqa.selection import UNITS_RANKED, Budget, build_context
from codeqa.settings import load_settings
from tests.kit.indexed import indexed

GOLDEN = ROOT / "tests" / "golden" / "contexts.txt"
FIXTURES = ROOT / "tests" / "fixtures" / "languages"
BUDGETS = (Budget("fast", 4_000), Budget("normal", 9_000))
"""Smaller than those of users, as the repository is: in theirs all of it would be sent."""
QUESTIONS = (
    "how is a request dispatched to its handler",
    "which class keeps the items of a cache",
    "where is an error handled",
    "Shape",
    "how is the area computed",
    "what does the constructor set",
    "how are values parsed from text",
    "which functions are asynchronous",
    "what is imported",
    "where are colours configured",
)


def contexts(folder: Path) -> str:
    """Each question with the chunks of each effort, a line `path:first-last name (why)` each."""
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(FIXTURES.iterdir())}
    tables = indexed(folder, files)
    settings = load_settings(data=folder / "data")
    search = open_search(settings, lambda: tables)
    parts = []
    for question in QUESTIONS:
        result = search.search(question, top=UNITS_RANKED)
        parts.append(question)
        for budget in BUDGETS:
            block = build_context(tables, result, settings, budget)
            parts += [f"  {budget.effort}: {len(block.text)} characters", *_lines(block)]
        parts.append("")
    return "\n".join(parts)


def _lines(block: ContextBlock) -> list[str]:
    return [
        f"    {c.path}:{c.start_line}-{c.end_line} {c.name}"
        + (f" ({c.why})" if c.why.startswith(("uses ", "called by ")) else "")
        for c in block.chunks
    ]


@pytest.mark.slow
def test_the_contexts_of_ten_questions_are_the_golden_ones(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    assert contexts(tmp_path_factory.mktemp("languages")) == GOLDEN.read_text(encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as here:
        GOLDEN.write_text(contexts(Path(here)), encoding="utf-8", newline="\n")
