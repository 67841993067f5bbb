from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conftest import ROOT

from codeqa.cli.tools import EXAMPLES
from codeqa.code.tools import TOOLS

NAMED = re.compile(r"`((?:browser/)?test_\w+\.py)`")


def test_every_test_file_named_in_a_document_exists() -> None:
    for document in ("conformance", "security", "reliability"):
        named = NAMED.findall((ROOT / f"docs/{document}.md").read_text(encoding="utf-8"))
        assert named
        assert [file for file in named if not list((ROOT / "tests").rglob(file))] == []


LAST_ROW = {"S0.": 21, "S1.": 48, "S3.": 36, "S5.": 24, "C-": 39}


def listed_rows() -> set[str]:
    """Rows of the list; `S5.04, S5.05` and `S5.06–S5.14` stand for each of theirs."""
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows: set[str] = set()
    for cell in re.findall(r"^\| ((?:S\d\.|C-)\d[^|]*) \|", text, re.MULTILINE):
        for part in cell.split(", "):
            kind, first, last = re.findall(r"^(\D\d?\W)(\d+)(?:–\D\d?\W(\d+))?$", part)[0]
            rows |= {f"{kind}{n:02}" for n in range(int(first), int(last or first) + 1)}
    return rows


def test_the_conformance_list_has_each_row() -> None:
    rows = {f"{kind}{n:02}" for kind, last in LAST_ROW.items() for n in range(1, last + 1)}
    assert rows <= listed_rows()


TEXTS = (
    "*.md", "*.py", "Makefile", "docs/*.md", "codeqa/**/*.md", "codeqa/**/*.py", "codeqa/**/*.toml",
    "codeqa_server/*.py", "research/**/*.md", "research/**/*.py", "scripts/*",
)  # fmt: skip
FILE = re.compile(
    r"(?<![\w/.*<{}$-])((?:codeqa|codeqa_server|docs|tests|research|static|templates|chat|cli|code"
    r"|context|llm|prompts|quoted|routing|search|store|web)/[\w./-]*\.(?:css|html|js|md|py|toml))\b"
)
PACKAGES = (ROOT, ROOT / "codeqa", ROOT / "codeqa_server", ROOT / "research")
MODULE = re.compile(r"python -m ((?:codeqa|research|tests)(?:\.[a-z_]+)+)")
OTHER_FILES = {"tests/test_reqctx.py", "prompts/NAME.md", "prompts/ask.md"}
"""Paths of other repositories, of an earlier commit and of a user."""


def missing_files(text: Path) -> Iterator[str]:
    """Yield the files and modules that `text` names and that do not exist."""
    content = text.read_text(encoding="utf-8")
    names = FILE.findall(content) + [name.replace(".", "/") for name in MODULE.findall(content)]
    for name in set(names) - OTHER_FILES:
        candidates = [folder / name for folder in (*PACKAGES, text.parent)]
        candidates += [path.with_suffix(".py") for path in candidates]
        if not any(path.exists() for path in candidates):
            yield f"{text.relative_to(ROOT)}: {name}"


def test_every_file_named_in_a_document_or_a_program_exists() -> None:
    texts = {text for pattern in TEXTS for text in ROOT.glob(pattern) if text.is_file()}
    assert len(texts) > 300
    assert sorted(name for text in texts for name in missing_files(text)) == []


def test_every_file_of_the_table_of_changes_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.split("## Where things are changed")[1].split("\n## ")[0]
    languages = (ROOT / "codeqa" / "languages" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w./]+/[\w./]*)`", table)
    named += re.findall(r"`(\w[\w./]*\.py)`", languages)
    assert len(named) > 20
    places = [ROOT, ROOT / "codeqa", ROOT / "codeqa_server"]
    assert [name for name in named if not any((p / name).exists() for p in places)] == []


def test_every_tool_has_an_example_in_the_terminal() -> None:
    assert set(EXAMPLES) == set(TOOLS)
