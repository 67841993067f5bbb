"""Imports go strictly downwards. Read from the source, so that late imports count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "codeqa"
FRONT_DOORS = ("app", "create_tables", "preprocessing", "prompts", "llm_comments")

LAYERS = (
    {"errors", "hosts", "settings", "text", "types", "__init__"},
    {"languages", "embeddings", "llm", "prompts", "render", "state"},
    {"repository", "store"},
    {"parsing"},
    {"indexing", "coverage", "context"},
    {"search", "files"},
    {"symbols"},
    {"intents", "extractive", "account", "evaluation"},
    {"chat", "review"},
    {"engine", "doctor"},
    {"web", "cli", "mcp", "__main__"},
)
SURFACE = len(LAYERS) - 1
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

FROM_SURFACES = LAYERS[0] | {"engine", "doctor", "evaluation", "render"}
"""What a surface may import."""

ONE_BESIDE = {("cli", "web"), ("web", "cli"), ("__main__", "cli")}
"""Surfaces that use another one: `codeqa serve` starts the page, which prints as the CLI does."""

GITS_OWN_ENVIRONMENT = {"repository/git.py", "repository/ignore.py"}
"""Where variables that are git's (PATH, GIT_*, XDG_CONFIG_HOME) are read; no setting is."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything that a module of the package imports."""
    package = ["codeqa", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, node.module] if node.module else base)
            if stem == "codeqa":
                yield from ((node.lineno, f"codeqa.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, stem


def allowed(importer: str, target: str) -> bool:
    """Whether part `importer` may import part `target` of the package."""
    if importer == target or LEVEL[target] == 0:
        return LEVEL[importer] > 0 or target != "__init__"
    if LEVEL[importer] == SURFACE:
        return target in FROM_SURFACES or (importer, target) in ONE_BESIDE
    return LEVEL[target] < LEVEL[importer]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_layers_below(path: Path) -> None:
    importer = part_of(path)
    assert importer in LEVEL, f"{importer} has no layer: add it to LAYERS"
    wrong = []
    for line, name in imported(path):
        if name.split(".")[0] != "codeqa":
            continue
        parts = name.split(".")
        # `from codeqa import __version__` takes a name of the package itself.
        target = parts[1] if len(parts) > 1 and parts[1] in LEVEL else "__init__"
        if not allowed(importer, target):
            wrong.append(f"line {line}: {name}")
    assert not wrong, f"{importer} (layer {LEVEL[importer]}) must not import {wrong}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_package_never_imports_a_front_door_or_the_tests(path: Path) -> None:
    names = {name.split(".")[0] for _, name in imported(path)}
    assert not names & {*FRONT_DOORS, "tests", "scripts", "benchmarks", "training", "evals"}


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        and node.attr in {"environ", "getenv", "environb"}
    }
    assert readers <= {"settings.py"} | GITS_OWN_ENVIRONMENT


def test_every_layer_names_parts_that_can_be_told_apart() -> None:
    assert len(LEVEL) == sum(map(len, LAYERS))


@pytest.mark.parametrize(
    ("importer", "target", "expected"),
    [
        ("parsing", "languages", True),
        ("languages", "parsing", False),
        ("parsing", "store", False),
        ("search", "indexing", True),
        ("web", "store", False),
        ("web", "engine", True),
        ("cli", "web", True),
        ("web", "chat", False),
        ("engine", "cli", False),
        ("settings", "errors", True),
    ],
)
def test_the_rule_itself(importer: str, target: str, expected: bool) -> None:
    assert allowed(importer, target) is expected
