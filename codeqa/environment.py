"""Reads the environment as far as the terminal needs it to find a running server.

All other settings are in `settings`, which takes longer to import than such a server to answer.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote

PREFIX = "CODEQA_"


def data_folder(chosen: Path | str | None = None) -> Path:
    """Return the data folder: `chosen`, by default CODEQA_DATA; where that is empty the user's."""
    if chosen is None:
        chosen = os.environ.get(f"{PREFIX}DATA", "")
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_data_dir("codeqa", appauthor=False)
    return with_home(Path(chosen)).absolute()


def install_command(extra: str) -> str:
    """Return the command that installs the packages of `extra`, in a checkout beside it."""
    if folder := checkout():
        return f'{sys.executable} -m pip install -e "{folder}[{extra}]"'
    return f'pip install "codeqa[{extra}]"'


def checkout() -> Path | None:
    """Return the checkout that this program runs from; None where it is installed."""
    folder = Path(__file__).resolve().parent.parent
    return folder if (folder / "pyproject.toml").is_file() else None


def with_home(path: Path) -> Path:
    """Replace a leading `~` by the home folder, if there is one, and read an address of `file:`."""
    if str(path).startswith("file:/"):  # of `file:///a` a Path keeps one slash
        return Path(unquote(str(path).removeprefix("file:").removeprefix("/localhost")))
    return Path(os.path.expanduser(path))  # noqa: PTH111 (Path.expanduser raises)


def noted_repositories(data: Path) -> list[tuple[str, str, str]]:
    """Return (name, folder, id) of each repository with an index in the data folder, by id."""
    repositories = []
    for file in sorted(data.glob("repos/*/repository.json")):
        # It may be of another version, or not written to its end.
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            note = json.loads(file.read_text(encoding="utf-8"))
            repositories.append((str(note["name"]), str(note["root"]), file.parent.name))
    return repositories


def env_file(repository: Path | None = None, data: Path | None = None) -> Path | None:
    """Return the `.env` of the working directory; None in a repository, which never configures.

    That is `repository`, a work tree of git, or a folder that is indexed in the data folder `data`.
    """
    here = Path.cwd()
    return None if _in_repository(here, repository, data) else here / ".env"


def digest_of(variables: Iterable[str], key: str) -> str:
    """Return a digest of the values of `variables`, which reveals nothing without `key`."""
    environment = {name.upper(): value for name, value in os.environ.items()}
    values = json.dumps([environment.get(name) for name in variables])
    return hmac.new(key.encode(), values.encode(), hashlib.sha256).hexdigest()


def prepare_lancedb() -> None:
    """Make the import of LanceDB silent and faster; call it before.

    Its client for LanceDB's own clusters, a third of the import, is loaded when it is first used.
    """
    os.environ.setdefault("LANCE_LOG", "error")
    from importlib.util import find_spec, module_from_spec

    name = "lance_namespace_urllib3_client"
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or (loader := spec.loader) is None:
        return
    package = sys.modules[name] = module_from_spec(spec)

    def load(attribute: str) -> object:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        del package.__dict__["__getattr__"]
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = load


@contextmanager
def only_variables(prefixes: tuple[str, ...], variables: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile reduce the environment to `variables` and those with one of `prefixes`."""
    before = dict(os.environ)
    try:
        for name in before:
            if not name.startswith(prefixes):
                del os.environ[name]
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _in_repository(folder: Path, repository: Path | None, data: Path | None) -> bool:
    """Return whether `folder` lies in `repository`, a work tree of git or an indexed folder.

    CodeQA's own checkout is no such repository, nor is an indexed folder around it.
    """
    real = folder.resolve()
    if repository is not None and real.is_relative_to(with_home(repository).resolve()):
        return True
    own = Path(__file__).resolve().parents[1]
    tree = next((path for path in (real, *real.parents) if (path / ".git").exists()), None)
    if tree not in (None, own):
        return True
    roots = [Path(root) for _, root, _ in noted_repositories(data or data_folder())]
    if tree == own:
        roots = [root for root in roots if not own.is_relative_to(root)]
    return any(map(real.is_relative_to, roots))
