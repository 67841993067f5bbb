"""Imports go strictly downwards. Read from the source, so that late imports count too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter

from conftest import ROOT

PACKAGE = ROOT / "codeqa"
OUTSIDE = {
    "app", "create_tables", "preprocessing", "prompts", "llm_comments", "tests", "scripts",
    "research", "codeqa_server",
}  # fmt: skip

LAYERS = (
    {"environment", "errors", "extensions", "folders", "formulas", "hosts", "metrics", "settings"}
    | {"languages", "text", "types", "__init__"},
    {"embeddings", "llm", "prompts", "render", "state", "asked"},
    {"repository", "store"},
    {"parsing"},
    {"indexing", "context"},
    {"search", "repositories"},
    {"code", "mentions"},
    {"routing", "whole_files"},
    {"selection"},
    {"quoted", "account"},
    {"chat"},
    {"review"},
    {"engine", "doctor"},
    {"web", "cli", "mcp", "__main__"},
)
SURFACE = len(LAYERS) - 1
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

ONE_BESIDE = {
    ("cli", "web"),
    ("cli", "mcp"),
    ("web", "mcp"),
    ("__main__", "cli"),
    ("__init__", "engine"),
}
"""Surfaces that use another one: `codeqa serve` starts the page, and the terminal asks one that
runs; and the package itself, whose names for programs are loaded from `engine` when used."""

ENVIRONMENT_OF_OTHERS = {"codeqa/repository/git.py", "codeqa_server/metrics.py"}
"""Where variables are read that are git's (PATH, GIT_*, XDG_CONFIG_HOME) or prometheus-client's."""


@cache
def modules() -> dict[str, ast.Module]:
    """Path below the package → its syntax tree."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def part_of(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement of a module."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, ())
            waiting.extend(inner if isinstance(inner, list) else ())


@cache
def imported(path: str) -> list[tuple[int, str]]:
    """Line and absolute name of everything that a module of the package imports."""
    package, names = ["codeqa", *path.split("/")[:-1]], []
    for node in statements(modules()[path]):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, node.module] if node.module else base)
            names += [(node.lineno, f"{stem}.{alias.name}") for alias in node.names]
    return names


def allowed(importer: str, target: str) -> bool:
    """Whether part `importer` may import part `target` of the package."""
    if importer == "__init__":  # the package's version is below all, its names above
        return (importer, target) in ONE_BESIDE
    if importer == target or LEVEL[target] == 0:
        return LEVEL[importer] > 0 or target != "__init__"
    if LEVEL[importer] == SURFACE:
        return LEVEL[target] < SURFACE or (importer, target) in ONE_BESIDE
    return LEVEL[target] < LEVEL[importer]


def test_every_part_imports_only_from_layers_below() -> None:
    wrong = []
    for path in modules():
        importer = part_of(path)
        assert importer in LEVEL, f"{importer} has no layer: add it to LAYERS"
        for line, name in imported(path):
            parts = name.split(".")
            if parts[0] != "codeqa":
                continue
            # `from codeqa import __version__` takes a name of the package itself.
            target = parts[1] if len(parts) > 1 and parts[1] in LEVEL else "__init__"
            inner = target == "__init__" and parts[1:] != ["__version__"]
            if inner or not allowed(importer, target):
                wrong.append(f"codeqa/{path}:{line} imports {name}")
    assert wrong == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in modules():
        module = path.removesuffix(".py").removesuffix("/__init__")
        graph[module] = set()
        for _, name in imported(path):
            target = name.removeprefix("codeqa.").replace(".", "/")
            # A package's door imports what is behind it; only modules can make a circle.
            for place in (target, target.rpartition("/")[0]):
                if name.startswith("codeqa.") and f"{place}.py" in modules() and place != module:
                    graph[module].add(place)
                    break
    TopologicalSorter(graph).prepare()  # raises CycleError, which names them


def test_the_package_never_imports_a_front_door_the_second_package_or_the_tests() -> None:
    wrong = [
        f"codeqa/{path}:{line} imports {name}"
        for path in modules()
        for line, name in imported(path)
        if name.split(".")[0] in OUTSIDE
    ]
    assert wrong == []


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        path.relative_to(ROOT).as_posix()
        for package in (PACKAGE, ROOT / "codeqa_server")
        for path in package.rglob("*.py")
        if re.search("environ|getenv", text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}
        if ast.unparse(node.value) == "os"
    }
    assert readers <= {"codeqa/environment.py", "codeqa/settings.py"} | ENVIRONMENT_OF_OTHERS


def test_the_layers_of_the_architecture_are_those_that_are_enforced() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    layers: list[set[str]] = []
    for row in re.findall(r"^\| L\d \| (.*) \|$", text, re.MULTILINE):
        for part in row.split("above"):
            layers.append(set(re.findall(r"`(\w+)/?`", part)))
    assert layers == [layer - {"__init__", "__main__"} for layer in LAYERS]
    for module in (ROOT / "codeqa_server").glob("[a-z]*.py"):
        assert f"`{module.stem}`" in text


LONG = 50
"""Lines of a function from which on a reader asks why it is one."""


def test_a_function_of_over_fifty_lines_has_its_reason_in_a_comment_above_it() -> None:
    silent = []
    for path, tree in modules().items():
        lines = (PACKAGE / path).read_text(encoding="utf-8").split("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min(one.lineno for one in (node, *node.decorator_list))
                long = (node.end_lineno or 0) - node.lineno >= LONG
                if long and not lines[first - 2].strip().startswith("#"):
                    silent.append(f"{path}:{node.lineno} {node.name}")
    assert silent == []
