"""Plugins: where they are looked for, and what is never executed.

`CODEQA_PLUGINS` is empty, and then nothing is. Otherwise it names a folder, whose `*.py` files
are executed, or the word `entry-points`, for installed packages that offer a module under
`codeqa.hooks`, or both with a comma between. Nothing that lies in an indexed repository is
executed, nor anything in the git work tree around it: whoever wrote that may be anybody.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from codeqa.chat.hooks import own
from codeqa.chat.hooks.hooks import OWN, PROJECT, HookError, Hooks, check_hook, explain_error
from codeqa.errors import SettingsError
from codeqa.settings import Settings, with_home
from codeqa.store import list_locations

ENTRY_POINTS = "entry-points"
"""The word in the setting."""
GROUP = "codeqa.hooks"
"""Group of entry points under which a package offers its module of hooks."""

Plugin = tuple[str, Callable[[], Any]]
"""Name of a file or an entry point, and what executes it and gives its module."""

log = logging.getLogger(__name__)


def load_hooks(settings: Settings, repository: Path | None = None) -> Hooks:
    """CodeQA's own hooks, and the plugins that `CODEQA_PLUGINS` names.

    `repository` is about to be opened and counts as indexed. Raises SettingsError for a folder
    that cannot be used; a plugin that cannot is left out and told by `Hooks.skipped`.
    """
    hooks = Hooks()
    found: list[tuple[Callable[..., Any], str]] = []
    skipped: list[str] = []
    for name, load in _plugins(settings, repository):
        try:
            found += _hooks_of(load(), name)
        except (Exception, SystemExit) as error:
            why = explain_error(error)
            log.warning("the plugin %s was left out: %s", name, why)
            skipped.append(f"The plugin {name} was left out: {why}.")
    for function, label in reversed(found):  # what pluggy is given last it calls first
        hooks.add(function, label)
    for function, label in _hooks_of(own, OWN):
        hooks.add(function, label)
    hooks.skipped = tuple(skipped)
    return hooks


def _hooks_of(module: object, name: str) -> list[tuple[Callable[..., Any], str]]:
    """The hooks in `module` from top to bottom, each with its label. Raises HookError."""
    marked = [
        value
        for value in vars(module).values()
        if isinstance(getattr(value, f"{PROJECT}_impl", None), dict)
    ]
    if not marked:
        raise HookError("it defines no hook")
    for function in marked:
        check_hook(function)
    return [(function, f"{name}:{function.__name__}") for function in marked]


def _plugins(settings: Settings, repository: Path | None) -> Iterator[Plugin]:
    """What the setting names: entry points by name, then files by name."""
    named = [part.strip() for part in settings.plugins.split(",") if part.strip()]
    folders = [part for part in named if part != ENTRY_POINTS]
    if len(folders) > 1:
        raise SettingsError(
            "CODEQA_PLUGINS names more than one folder.",
            f"Give one folder, the word {ENTRY_POINTS}, or both with a comma between.",
        )
    trees = _indexed_trees(settings, repository) if named else []
    folder = _usable_folder(folders[0], trees) if folders else None
    if ENTRY_POINTS in named:
        for point in sorted(metadata.entry_points(group=GROUP), key=lambda one: one.name):
            yield point.name, partial(_imported, point, trees)
    for path in sorted(folder.glob("*.py")) if folder else ():
        if path.is_file():
            yield path.name, partial(_executed, path, trees)


def _indexed_trees(settings: Settings, repository: Path | None) -> list[Path]:
    """Every indexed repository with the work tree around it, as real paths."""
    roots = [location.root for location in list_locations(settings)]
    if repository is not None:
        roots.append(with_home(repository))
    trees = []
    for root in roots:
        real = root.resolve()
        around = (one for one in (real, *real.parents) if (one / ".git").exists())
        trees.append(next(around, real))
    return trees


def _usable_folder(given: str, trees: Sequence[Path]) -> Path:
    folder = with_home(Path(given)).resolve()
    if not folder.is_dir():
        raise SettingsError(
            f"CODEQA_PLUGINS names {given}, which is not a folder.",
            "Create it, or correct or unset the setting.",
        )
    if tree := _around(folder, trees):
        raise SettingsError(
            f"The plugin folder {folder} lies in the repository {tree}, which is indexed.",
            "Move it elsewhere: nothing of an indexed repository is ever executed.",
        )
    return folder


def _around(place: Path, trees: Sequence[Path]) -> Path | None:
    """The tree that `place` lies in, links followed."""
    real = place.resolve()
    return next((tree for tree in trees if real.is_relative_to(tree)), None)


def _executed(path: Path, trees: Sequence[Path]) -> ModuleType:
    """A file, executed as a module of its own; it writes no byte code beside it."""
    if _around(path, trees):
        raise HookError("its link leads into an indexed repository")
    module = ModuleType(f"codeqa_plugin_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look up annotations
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    return module


def _imported(point: metadata.EntryPoint, trees: Sequence[Path]) -> object:
    """The module that an installed package offers."""
    spec = importlib.util.find_spec(point.module.partition(".")[0])
    places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec else []
    if any(_around(Path(place), trees) for place in places if place):
        raise HookError("its package lies in an indexed repository")
    return point.load()
