"""Variables are named after what they hold, and docstrings begin with a verb or a noun."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from conftest import ROOT

PARTICIPLES = frozenset({
    "told", "found", "known", "said", "shown", "given", "asked", "kept", "wanted", "behind",
})  # fmt: skip
RIDDLES = ("What ", "That ", "Of ", "Whether ", "Where ", "How ", "Those ")
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)

MOST_PARTICIPLES = 4
"""Stored or public names: a field of turns, one of events, and the arguments of a hook."""


@cache
def trees() -> dict[str, ast.Module]:
    """Path → syntax tree of every module of the two packages."""
    paths = [*ROOT.glob("codeqa/**/*.py"), *ROOT.glob("codeqa_server/**/*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text("utf-8")) for path in paths}


def assigned_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of every parameter and every variable that is assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def test_variables_are_named_after_what_they_hold() -> None:
    participles = []
    for path, tree in trees().items():
        for line, name in assigned_names(tree):
            if name in PARTICIPLES:
                participles.append(f"{path}:{line} {name}")
    assert len(participles) <= MOST_PARTICIPLES, "\n".join(participles)


def test_no_two_classes_have_the_same_name() -> None:
    paths: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                paths[node.name.lstrip("_")].append(path)
    assert {name: places for name, places in paths.items() if len(places) > 1} == {}


def test_a_condition_is_an_if_and_no_product() -> None:
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sides = (ast.unparse(node.left), ast.unparse(node.right))
                assert not any(side.startswith("bool(") for side in sides), f"{path}:{node.lineno}"


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    riddles = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED):
                text = ast.get_docstring(node) or ""
                if text.startswith(RIDDLES):
                    riddles.append(f"{path}: {text.splitlines()[0]}")
    assert not riddles, "\n".join(riddles)
