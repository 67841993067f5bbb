"""Names say what they hold, and docstrings begin with a verb. The limits only ever shrink."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from conftest import ROOT

PARTICIPLES = frozenset("told found known said shown given asked kept wanted behind".split())
RIDDLES = ("What ", "That ", "Of ", "Whether ", "Where ", "How ", "Those ")

MOST_PARTICIPLES, MOST_RIDDLES = 20, 40


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Yield every node of the two packages with its path."""
    for package in ("codeqa", "codeqa_server"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                yield str(path.relative_to(ROOT)), node


def test_variables_are_named_after_what_they_hold() -> None:
    assigned = [
        f"{path}:{node.lineno} {name}"
        for path, node in nodes()
        for name in [getattr(node, "arg", getattr(node, "id", ""))]
        if name in PARTICIPLES
        and (isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store))
    ]
    assert len(assigned) <= MOST_PARTICIPLES, "\n".join(assigned)


def test_a_condition_is_an_if_and_no_product() -> None:
    for path, node in nodes():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for side in (node.left, node.right):
                assert not ast.unparse(side).startswith("bool("), f"{path}:{node.lineno}"


def test_docstrings_begin_with_a_verb() -> None:
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    riddles = [
        f"{path}: {text.splitlines()[0]}"
        for path, node in nodes()
        if isinstance(node, documented) and (text := ast.get_docstring(node) or "")
        if text.startswith(RIDDLES)
    ]
    assert len(riddles) <= MOST_RIDDLES, "\n".join(riddles)
