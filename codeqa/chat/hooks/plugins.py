"""Plugins: where they are looked for, and what is never executed.

`CODEQA_PLUGINS` is empty, and then nothing is. Otherwise it names a folder, whose `*.py` files
are executed, or the word `entry-points`, for installed packages that offer a module under
`codeqa.hooks`, or both with a comma between. Nothing that lies in an indexed repository is
executed, nor anything in the git work tree around it: whoever wrote that may be anybody.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType

from codeqa.errors import SettingsError
from codeqa.settings import Settings, with_home
from codeqa.store import list_locations

ENTRY_POINTS = "entry-points"
"""The word in the setting."""
GROUP = "codeqa.hooks"
"""Group of entry points under which a package offers its module of hooks."""

_numbers = itertools.count(1)
"""Parts of module names: the same file, loaded for two engines, is two modules."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A module that was executed because a plugin is in it."""

    name: str
    """Name of its file or of its entry point, as logs and answers call it."""
    module: ModuleType


@dataclass(frozen=True, slots=True)
class Left:
    """A plugin that was left out, and why, in words."""

    name: str
    why: str


def find_plugins(
    settings: Settings, repository: Path | None = None
) -> tuple[list[Plugin], list[Left]]:
    """Execute what the setting names: entry points by name, then files by name.

    `repository` is about to be opened and counts as indexed. Raises SettingsError for a folder
    that is none or must not be used.
    """
    found: list[Plugin] = []
    left: list[Left] = []
    named = [part.strip() for part in settings.plugins.split(",") if part.strip()]
    folders = [part for part in named if part != ENTRY_POINTS]
    if len(folders) > 1:
        raise SettingsError(
            "CODEQA_PLUGINS names more than one folder.",
            f"Give one folder, the word {ENTRY_POINTS}, or both with a comma between.",
        )
    trees = _indexed_trees(settings, repository) if named else []
    folder = _usable_folder(folders[0], trees) if folders else None
    packages = _from_packages(trees) if ENTRY_POINTS in named else iter(())
    files = _from_folder(folder, trees) if folder is not None else iter(())
    for one in itertools.chain(packages, files):
        if isinstance(one, Plugin):
            found.append(one)
        else:
            left.append(one)
    return found, left


def error_place(error: BaseException, file: str) -> str:
    """Where `error` arose, as `name.py:12`: the last line of `file` on the way, else the last of
    all. Nothing of its text: that may quote anything."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == file]
    if isinstance(error, SyntaxError) and file and not own:
        return f"{Path(file).name}:{error.lineno or 1}"
    last = (own or list(frames))[-1:]
    return "".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in last) or "?"


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


def _from_folder(folder: Path, trees: Sequence[Path]) -> Iterator[Plugin | Left]:
    for path in sorted(folder.glob("*.py")):
        if not path.is_file():
            continue
        if _around(path, trees):
            yield Left(path.name, "its link leads into an indexed repository")
            continue
        yield _executed(path)


def _executed(path: Path) -> Plugin | Left:
    """Execute a file as a module of its own; it writes no byte code beside it."""
    module = ModuleType(f"codeqa_plugin_{next(_numbers)}_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look up annotations
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        return Left(path.name, f"{type(error).__name__} at {error_place(error, str(path))}")
    return Plugin(path.name, module)


def _from_packages(trees: Sequence[Path]) -> Iterator[Plugin | Left]:
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda one: one.name):
        try:
            spec = importlib.util.find_spec(point.module.partition(".")[0])
            places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec else []
            if any(_around(Path(place), trees) for place in places if place):
                yield Left(point.name, "its package lies in an indexed repository")
                continue
            module = point.load()
        except (Exception, SystemExit) as error:
            yield Left(point.name, f"{type(error).__name__} at {error_place(error, '')}")
            continue
        if isinstance(module, ModuleType):
            yield Plugin(point.name, module)
        else:
            yield Left(point.name, "what it offers is no module")
