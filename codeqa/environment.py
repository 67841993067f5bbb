"""What of the environment is known before anything else is loaded.

A question that a running server answers is asked before pydantic could be imported, so what finds
that server stands here; all other settings are read by `settings`.
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

PREFIX = "CODEQA_"


def data_folder(chosen: Path | str | None = None) -> Path:
    """Folder of the indices and the local state: the `chosen` one, else the user's; without an
    argument as the environment chooses it."""
    if chosen is None:
        chosen = os.environ.get(f"{PREFIX}DATA", "")
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_data_dir("codeqa", appauthor=False)
    return with_home(Path(chosen)).absolute()


def install_command(extra: str) -> str:
    """Return the command that installs the packages of `extra` beside this program. In a checkout
    it keeps the checkout: without `-e` a copy would take its place."""
    if folder := checkout():
        return f'{sys.executable} -m pip install -e "{folder}[{extra}]"'
    return f'pip install "codeqa[{extra}]"'


def checkout() -> Path | None:
    """Return the folder of the checkout that this program runs from, None for an installed one."""
    folder = Path(__file__).resolve().parent.parent
    return folder if (folder / "pyproject.toml").is_file() else None


def with_home(path: Path) -> Path:
    """`path` with the home folder for a leading `~`; `~nobody` stays and is then not found."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 (Path.expanduser raises)


def noted_repositories(data: Path) -> list[tuple[str, str, str]]:
    """Name, folder and id of each that has an index in the data folder `data`, by id. Read from
    notes, which takes nothing of the program."""
    found = []
    for file in sorted(data.glob("repos/*/repository.json")):
        # One may be being written, or be of another version.
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            about = json.loads(file.read_text(encoding="utf-8"))
            found.append((str(about["name"]), str(about["root"]), file.parent.name))
    return found


def env_file(repository: Path | None = None, data: Path | None = None) -> Path | None:
    """The `.env` of the working directory; None where that lies in `repository` or any other, of
    git or indexed in the folder `data`: nothing in a repository is configuration."""
    here = Path.cwd()
    return None if _in_repository(here, repository, data) else here / ".env"


def digest_of(variables: Iterable[str], key: str) -> str:
    """Tells two environments apart by the values of `variables`; without `key` it says nothing."""
    given = {name.upper(): value for name, value in os.environ.items()}
    values = json.dumps([given.get(name) for name in variables])
    return hmac.new(key.encode(), values.encode(), hashlib.sha256).hexdigest()


def prepare_lancedb() -> None:
    """Before LanceDB is imported: keep its remarks on its own clusters off the terminal, unless
    `LANCE_LOG` asks for them, and do not load the client of such a cluster, a third of the import,
    until somebody uses it."""
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
def only_variables(beginnings: tuple[str, ...], given: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile the environment holds nothing but the variables `given` and those with one of these
    `beginnings`: what is started then inherits no more."""
    before = dict(os.environ)
    try:
        for name in before:
            if not name.startswith(beginnings):
                del os.environ[name]
        os.environ.update(given)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _in_repository(folder: Path, repository: Path | None, data: Path | None) -> bool:
    """Whether `folder` lies in `repository`, or in any git work tree or indexed one but CodeQA's
    own.

    The work tree counts as a whole: one of its folders may be all that is indexed, or
    nothing of it, and its `.env` would still choose where code and keys are sent.
    """
    real = folder.resolve()
    if repository is not None and real.is_relative_to(with_home(repository).resolve()):
        return True
    tree = next((one for one in (real, *real.parents) if (one / ".git").exists()), None)
    own = Path(__file__).resolve().parents[1]
    if tree not in (None, own):
        return True
    roots = [Path(root) for _, root, _ in noted_repositories(data or data_folder())]
    return any(real.is_relative_to(one) and not (tree and own.is_relative_to(one)) for one in roots)
