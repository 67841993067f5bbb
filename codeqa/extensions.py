"""Load the parts of `codeqa_server`, which serves several people, processes or machines.

They are entry points, so that nothing here imports that package.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from codeqa.environment import checkout, install_command
from codeqa.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "codeqa.server"


def load_extension(name: str, extra: str = "server") -> Any:
    """Return the object that the entry point `name` refers to.

    Raises SettingsError, with the command that installs `extra`, where it or a package that it
    imports is missing.
    """
    try:
        return next(point for point in _entry_points() if point.name == name).load()
    except (ImportError, StopIteration) as error:
        package = getattr(error, "name", None) or "codeqa_server"
        raise not_installed(name, package, extra) from error


def not_installed(name: str, package: str, extra: str) -> SettingsError:
    """Return the error for an extension that lacks a package, with the command that installs it."""
    return SettingsError(
        f"The extension {name} needs {package}, which is not installed.",
        f"Run `{install_command(extra)}`.",
    )


def _entry_points() -> Iterable[EntryPoint]:
    import tomllib
    from importlib.metadata import EntryPoint, entry_points

    if not (folder := checkout()):
        return entry_points(group=GROUP)
    # A checkout need not be installed: read them where they are declared.
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    declared = project["entry-points"][GROUP]
    return [EntryPoint(name, value, GROUP) for name, value in declared.items()]
