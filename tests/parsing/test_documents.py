"""Units of files without a grammar: sections, cells, tables and chunks."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeqa.parsing import parse_file
from codeqa.parsing.documents import parse_document
from codeqa.types import Unit


def units(text: str, language: str, path: str = "docs/a.x") -> tuple[Unit, ...]:
    return parse_document(path, text, language, "document")


def outline(text: str, language: str) -> list[tuple[int, int, str]]:
    return [(u.start_line, u.end_line, u.qualified_name) for u in units(text, language)]


# --- Markdown ---------------------------------------------------------------------------------

MARKDOWN = """\
Before any heading.

# Guide

Some words.

## Install `pip`

```sh
# not a heading
pip install x
```

Setext title
============

words

A second
level
--------

## Install `pip`
again
"""


def test_markdown_is_cut_by_section() -> None:
    assert outline(MARKDOWN, "markdown") == [
        (1, 1, "a.x"),
        (3, 5, "Guide"),
        (7, 12, "Guide > Install pip"),
        (14, 17, "Setext title"),
        (19, 21, "Setext title > A second level"),
        (23, 24, "Setext title > Install pip"),
    ]
    first, guide, install, *_ = units(MARKDOWN, "markdown")
    assert {unit.kind for unit in units(MARKDOWN, "markdown")} == {"document"}
    assert (install.name, install.class_name) == ("Install pip", "Guide")
    assert (first.name, guide.class_name) == ("a.x", "")


NO_HEADINGS = [
    "````\n```\n# no\n```\n````\n", "<!--\n# no\n-->\n", "- a\n  # no\n", "#no\n",
    "| a |\n|---|\n| b |\n", "---\ntitle: x\n# no\n---\ntext\n",
    "+++\ntitle = 'x'\n# no\n+++\ntext\n", "a\r# no\n",
]  # fmt: skip
TITLES = {
    "# A [link](https://x.example/a_(b)) here": "A link here",
    "# [![badge](a.svg)](b) Name": "badge Name",
    "# `with_underscores` and *stars* and __bold__": "with_underscores and stars and bold",
    "# Title {#anchor}": "Title",
    "# a\\*b": "a*b",
    "# <img src=x> Logo": "Logo",
    "# " + "long " * 60: ("long " * 60)[:120].strip(),
}


def test_a_markdown_title_reads_as_text_and_not_everything_is_one() -> None:
    for text in NO_HEADINGS:
        assert [unit.qualified_name for unit in units(text, "markdown")] == ["a.x"], text
    for line, title in TITLES.items():
        assert units(f"{line}\n\nwords\n", "markdown")[0].qualified_name == title


def test_a_bare_title_belongs_to_the_section_below_it_and_a_long_section_is_cut() -> None:
    text = "# Guide\n\n## Install\n\nwords\n\n# Empty\n"
    assert outline(text, "markdown") == [(1, 5, "Guide > Install"), (7, 7, "Empty")]
    text = "# Long\n" + "\n".join(f"line {n}" for n in range(2, 101))
    assert outline(text, "markdown") == [(1, 50, "Long"), (46, 95, "Long"), (91, 100, "Long")]
    assert len({unit.id for unit in units(text, "markdown")}) == 3


def test_carriage_returns_and_a_byte_order_mark_change_no_line() -> None:
    text = MARKDOWN.replace("\n", "\r\n")
    assert outline(text, "markdown") == outline(MARKDOWN, "markdown")
    assert units(text, "markdown")[1].source_code == "# Guide\r\n\r\nSome words.\r"
    assert outline("\ufeff" + MARKDOWN, "markdown") == outline(MARKDOWN, "markdown")


# --- reStructuredText -------------------------------------------------------------------------

RST = """\
.. _top:

========
 Manual
========

Words.

First :func:`~a.b`
==================

Words

.. code-block:: python

    Not a title
    ===========

Deeper
------
Words

.. label:
Second
======

+---+
| a |
+---+

=====  =====
 A      B
=====  =====

Rule below

----------

Too short
==
"""


def test_restructuredtext_is_cut_by_section() -> None:
    assert outline(RST, "rst") == [
        (1, 1, "a.x"),
        (3, 7, "Manual"),
        (9, 17, "Manual > First ~a.b"),
        (19, 23, "Manual > First ~a.b > Deeper"),
        (24, 40, "Manual > Second"),
    ]
    # Also in a text file, where it is one.
    text = "Title\n=====\n\n.. note:: x\n\nwords\n\nPart\n----\n\nwords\n"
    assert [name for *_, name in outline(text, "text")] == ["Title", "Title > Part"]
    plain = "a\n\nTotal\n=====\n\n17\n"
    assert outline(plain, "text") == [(1, 6, "a.x")]


# --- notebooks --------------------------------------------------------------------------------


def notebook(cells: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    metadata = {"kernelspec": {"language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5, **more}


def code(*lines: str, outputs: list[Any] | None = None) -> dict[str, Any]:
    return {"cell_type": "code", "outputs": outputs or [], "source": list(lines)}


def markdown(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": list(lines)}


CELLS = [
    markdown("# Load\n", "words"),
    code("import os\n", "\n", 'print("a\\n")', outputs=[{"data": {"image/png": "iVBOR" * 99}}]),
    code(),
    code("x = 1", outputs=[{"text": ["secret output\n"], "source": ["not a cell\n"]}]),
]


def test_a_notebook_is_cut_by_cell_with_the_files_own_lines() -> None:
    text = json.dumps(notebook(CELLS), indent=1)
    found = units(text, "notebook", "a.ipynb")
    names = [unit.qualified_name for unit in found]
    assert names == ["Load > Cell 1", "Load > Cell 2", "Load > Cell 4"]
    assert [unit.language for unit in found] == ["markdown", "python", "python"]
    assert found[1].source_code == 'import os\n\nprint("a\\n")'
    raw = text.split("\n")
    for unit in found:  # line for line the file's own, without JSON's quotes
        shown = raw[unit.start_line - 1 : unit.end_line]
        decoded = [json.loads(line.strip().rstrip(",")) for line in shown]
        assert [line.removesuffix("\n") for line in decoded] == unit.source_code.split("\n")
    everything = "".join(unit.source_code for unit in found)
    assert "iVBOR" not in everything and "secret output" not in everything
    # Cells that are written on one line span that line.
    found = units(json.dumps(notebook(CELLS)), "notebook")
    assert [(unit.start_line, unit.end_line) for unit in found] == [(1, 1)] * 3
    assert found[1].source_code == 'import os\n\nprint("a\\n")'
    text = json.dumps(notebook([{"cell_type": "code", "source": "a = 1\nb = 2"}]), indent=1)
    (unit,) = units(text, "notebook")
    assert unit.source_code == "a = 1\nb = 2"
    assert '"source": "a = 1' in text.split("\n")[unit.start_line - 1]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("joined", [True, False])
def test_cells_are_read_as_code_however_their_lines_are_written(
    indent: int | None, joined: bool
) -> None:
    texts = [
        ["import os\n", "def load(x):\n", "    return x\n", "# the end"],
        ["%%bash\n", "echo $((1"],
        ["%time y = load(1)\n", "def two():\n", "    return load(2)\n"],
    ]
    cells: list[dict[str, Any]] = [code(*lines) for lines in texts]
    for cell in cells if joined else []:
        cell["source"] = "".join(cell["source"])
    text = json.dumps(notebook(cells), indent=indent)
    parsed = parse_file("a.ipynb", text.encode())
    assert not parsed.has_errors
    lines = text.split("\n")
    functions = [unit for unit in parsed.units if unit.is_method]
    assert [unit.name for unit in functions] == ["load", "two"]
    for unit in functions:
        assert f"def {unit.name}(" in lines[unit.start_line - 1]
        assert unit.source_code.startswith(f"def {unit.name}(")
    (call,) = (edge for edge in parsed.references if edge.kind == "call")
    assert call.unit_id == functions[1].id and "load(2)" in lines[call.line - 1]
    broken = json.dumps(notebook([code("def f(:\n", "  return ("), *cells]), indent=indent)
    assert parse_file("a.ipynb", broken.encode()).has_errors


def test_another_language_and_a_format_of_before_2015_which_is_cut_by_lines() -> None:
    named = {"language_info": None, "kernelspec": {"language": "Julia"}}
    (unit,) = units(json.dumps(notebook([code("f(x) = 1")], metadata=named), indent=1), "notebook")
    assert (unit.language, unit.source_code) == ("julia", "f(x) = 1")
    old = {"nbformat": 3, "worksheets": [{"cells": [{"cell_type": "code", "input": ["f(2)"]}]}]}
    (unit,) = units(json.dumps(old, indent=1), "notebook")
    assert '"f(2)"' in unit.source_code


def test_a_broken_notebook_is_cut_by_lines_and_a_long_cell_into_chunks() -> None:
    for text in ("{", "[1, 2", "}", '{"a": "\\x"}', "<<<<<<< ours\n{}\n", "plain"):
        (unit,) = units(text, "notebook")
        assert unit.source_code == text.strip("\n") and unit.kind == "document"
    text = json.dumps(notebook([code(*[f"a{n} = {n}\n" for n in range(70)])]), indent=1)
    first, second = units(text, "notebook")
    assert second.start_line == first.start_line + 45
    assert first.source_code.split("\n")[45] == second.source_code.split("\n")[0] == "a45 = 45"


# --- configuration ----------------------------------------------------------------------------


def filler(indent: str, count: int, form: str = "{i}k{n}: {n}") -> str:
    return "".join(form.format(i=indent, n=n) + "\n" for n in range(count))


TOML = "".join(
    f"# about {name}\n[{name}]\n" + filler("", 20, "{i}k{n} = {n}") + "\n"
    for name in ("project", "tool.ruff", "tool.mypy")
)
YAML = (
    "name: ci\non: push\njobs:\n"
    + "".join(f"  {job}:\n    steps:\n" + filler("      ", 20) for job in ("build", "test", "lint"))
    + "env:\n"
    + filler("  ", 10)
    + "script: |\n  not_a_key:\n    x\n"
    + filler("  ", 8)
)
ITEMS = "groups:\n" + "".join(f"- name: g{n}\n" + filler("  ", 20) for n in range(3))
KEYS = {"name": "x", "scripts": dict.fromkeys(map(str, range(20)), "y"),
        "deps": {str(n): 1 for n in range(40)}}  # fmt: skip
RULES = (
    "CC := gcc\n" + "\tx\n" * 20 + "# builds\nall: a b\n" + "\tx\n" * 20 + "clean:\n" + "\tx\n" * 20
)
STAGES = "FROM a AS build\n" + "RUN x\n" * 30 + "FROM b\n" + "RUN y\n" * 30
NAMES = [
    ("toml", TOML, ["project", "tool.ruff", "tool.mypy"]),
    ("yaml", YAML, ["name, on", "jobs > build", "jobs > test", "jobs > lint", "env", "script"]),
    ("yaml", ITEMS, ["groups > g0", "groups > g1", "groups > g2"]),
    ("json", json.dumps(KEYS, indent=2), ["name, scripts", "deps"]),
    ("json", "[\n" + "1,\n" * 60 + "1]\n", ["a.x", "a.x"]),
    ("json", "{\n" + "// why\n" * 60 + "}\n", ["a.x", "a.x"]),
    ("makefile", RULES, ["a.x", "all", "clean"]),
    ("dockerfile", STAGES, ["build", "b"]),
]


def test_a_configuration_file_is_one_unit_or_cut_by_what_it_names() -> None:
    (unit,) = units("[a]\nx = 1\n\n[b]\ny = 2\n", "toml", "pyproject.toml")
    assert (unit.kind, unit.qualified_name, unit.end_line) == ("config", "pyproject.toml", 5)
    for language, text, names in NAMES:
        assert [name for *_, name in outline(text, language)] == names, text[:40]
    # A comment belongs to the table below it.
    assert [span[:2] for span in outline(TOML, "toml")] == [(1, 22), (24, 45), (47, 68)]


def test_any_other_file_is_cut_by_lines() -> None:
    found = units("\n".join(f"line {n}" for n in range(1, 61)), "dart", "lib/main.dart")
    spans = [(unit.start_line, unit.end_line, unit.kind, unit.name) for unit in found]
    assert spans == [(1, 50, "chunk", "main.dart"), (46, 60, "chunk", "main.dart")]


# --- properties -------------------------------------------------------------------------------

PIECES = [
    "", "", " ", "words", "# One", "## Two", "### Three", "```", "~~~", "Title", "=====", "-----",
    "- item", "> quote", "---", "+++", ".. note:: x", "    code", "[table]", "key = 1", "key: 1",
    "  sub: 2", "- name: x", "{", "}", '  "k": {', "  },", "all: x", "\trun", "FROM a AS b", "é\r",
    "\x0c", "<!--", "-->", "script: |", "[[array]]", "# comment", "***", "\ufeff",
]  # fmt: skip
LANGUAGES = [
    "markdown", "rst", "text", "toml", "yaml", "json", "ini", "dockerfile", "makefile", "html",
    "notebook", "dart",
]  # fmt: skip
documents = st.lists(st.sampled_from(PIECES), max_size=150).map("\n".join)


@given(documents | st.text(max_size=300), st.sampled_from(LANGUAGES))
def test_units_are_exact_and_cover_every_line_with_text(text: str, language: str) -> None:
    found = units(text, language)
    lines = text.split("\n")
    covered: set[int] = set()
    for unit in found:
        assert unit.source_code == "\n".join(lines[unit.start_line - 1 : unit.end_line])
        covered.update(range(unit.start_line, unit.end_line + 1))
    assert covered >= {number for number, line in enumerate(lines, 1) if line.strip()}
    for before, after in pairwise(found):
        assert after.start_line > before.start_line and after.end_line > before.end_line
    assert len({unit.id for unit in found}) == len(found)
    assert all(unit.name and unit.qualified_name for unit in found)


cell_lines = st.lists(st.text(max_size=20), max_size=5)


@given(st.lists(cell_lines, max_size=5), st.sampled_from([None, 1, 2]))
def test_cells_of_any_notebook_come_back_whole(cells: list[list[str]], indent: int | None) -> None:
    text = json.dumps(notebook([code(*lines) for lines in cells]), indent=indent)
    found = units(text, "notebook")
    written = ["".join(lines) for lines in cells]
    assert len(found) == sum(1 for source in written if source.strip())
    for unit in found:
        assert 1 <= unit.start_line <= unit.end_line <= len(text.split("\n"))
        assert any(unit.source_code.strip() in source for source in written)
