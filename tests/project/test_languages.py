"""Languages are data: Python code outside of `codeqa/languages/` knows none by name."""

from __future__ import annotations

import ast

from conftest import ROOT

from codeqa.languages import languages

PACKAGE = ROOT / "codeqa"

OTHER_MEANINGS = {
    # formats, protocols and fields
    "css", "csv", "diff", "html", "http", "json", "markdown", "reason", "scheme", "text",
    # a digit behind it is a version, a file is opened to read, a part of a word or an event
    "v", "r", "d",
}  # fmt: skip
"""Names of languages that as a literal mean something else."""


def test_no_module_outside_of_languages_names_a_language() -> None:
    every = languages().values()
    names = {name for one in every for name in (one.key, one.name, *one.aliases)}
    named = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(PACKAGE / "languages"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and node.value in names - OTHER_MEANINGS:
                named.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.value}")
    assert not named, "give the language a key in languages.toml: " + ", ".join(named)
