"""The repositories: listed, opened, cloned, refreshed, renamed, removed; and the folders that one
is chosen from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from codeqa.environment import with_home
from codeqa.errors import RepositoryError
from codeqa.repositories import (
    RepositoryReport,
    clone_location,
    find_repository,
    report_on,
    sync_clone,
    take_clone,
)
from codeqa.repository.clones import Report, looks_remote, read_remote
from codeqa.store import list_locations
from codeqa.text.tokens import well_formed
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import Clean, Filled, Schema, Text, Values
from codeqa.web.security import member_of_request, require_owner
from codeqa.web.workspace import workspace

FOLDERS_SHOWN = 1_000
OWNERS = "change which repositories there are"

endpoints = Endpoints("repositories", "Repositories")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository(RepositoryReport):
    """`state` may also be `cloning` or `refreshing`, with `progress`, or `failed`: it was not
    cloned, and `problem` says why."""

    id: str
    open: bool


class Repositories(Schema):
    current: str
    changeable: bool
    """Whether this user may add, refresh, rename and remove."""
    repositories: list[Repository]


class PathBody(Schema):
    path: Filled
    """Full path of a folder; `~` stands for the home folder of who runs the server. Or the
    address of a git repository, by https or ssh."""
    branch: Text = ""
    """Of an address: the branch or tag to clone; empty for the usual one."""


class NameBody(Schema):
    name: Annotated[str, Field(max_length=60), Clean]
    """Empty for the name of the folder."""


class Folder(Schema):
    name: str
    path: str
    git: bool
    """It is a git repository."""


class Folders(Schema):
    path: str
    parent: str
    """Empty at the top."""
    git: bool
    folders: list[Folder]
    """Those that can be opened, by name; the first thousand."""


@endpoints.route("GET", "/api/repos", Repositories)
def repositories() -> Values:
    """The repositories with an index, the one updated last first, and those being cloned."""
    space = workspace()
    rows = {one.id: _row(one.id, report_on(one)) for one in list_locations(space.settings)}
    rows |= {repo: _row(repo, report) for repo, report in space.jobs.reports().items()}
    current = space.engine().location.id if space.has_current() else ""
    ordered = sorted(rows.values(), key=lambda one: (one.state != "cloning", -one.updated_at))
    owner = member_of_request().owner
    return {"current": current, "changeable": owner, "repositories": ordered}


@endpoints.route("POST", "/api/repos", Repository, status=202)
def add(body: PathBody) -> Repository:
    """Open the repository at `path`, cloned first if it is an address, and index it behind.

    What the server may read is its owner's to show: others open what is indexed already.
    """
    space, given = workspace(), body.path.strip()
    if looks_remote(given):
        require_owner(OWNERS)
        remote = read_remote(given, body.branch)
        location = clone_location(space.settings, remote)
        about = RepositoryReport(
            location.name, remote.url, "failed", url=remote.url, branch=remote.branch
        )

        def work(tell: Report) -> None:
            space.open(take_clone(space.settings, remote, tell).root)

        started = space.jobs.start(location.id, about, "cloning", work)
        return _row(location.id, started)
    if Path(given) not in [location.root for location in list_locations(space.settings)]:
        require_owner(OWNERS)
    location = space.open(Path(given)).location
    return _row(location.id, report_on(location))


@endpoints.route("POST", "/api/repos/<repo>", Repository, owners=OWNERS)
def rename(repo: str, body: NameBody) -> Repository:
    """Show the repository by another name."""
    location = find_repository(workspace().settings, repo)
    workspace().rename(location.id, body.name)
    return _row(location.id, report_on(location))


@endpoints.route("POST", "/api/repos/<repo>/refresh", Repository, status=202, owners=OWNERS)
def refresh(repo: str) -> Repository:
    """Fetch the newest commit where it is a clone, and index what changed, behind."""
    space = workspace()
    location = find_repository(space.settings, repo)

    def work(tell: Report) -> None:
        sync_clone(location, tell)
        space.open(location.root, update=False).index.check()

    started = space.jobs.start(location.id, report_on(location), "refreshing", work)
    return _row(location.id, started)


@endpoints.route("POST", "/api/repos/<repo>/cancel", {"removed": str}, owners=OWNERS)
def cancel(repo: str) -> Values:
    """End its clone or refresh, or dismiss that one failed. Of a clone nothing is left."""
    workspace().jobs.cancel(repo)
    return {"removed": repo}


@endpoints.route("DELETE", "/api/repos/<repo>", {"removed": str}, owners=OWNERS)
def remove(repo: str) -> Values:
    """Delete its index, and its files if they are a clone that was made by its address. Its
    conversations stay."""
    space = workspace()
    space.remove(find_repository(space.settings, repo).id)
    return {"removed": repo}


@endpoints.route("GET", "/api/folders", Folders, owners=OWNERS)
def folders(path: Text = "") -> Values:
    """The folders in the folder at `path` of the server's machine, for its owner to choose one;
    without it in the home folder of who runs the server."""
    top = with_home(Path(path.strip() or "~"))
    own = workspace().settings.data_dir.resolve()
    try:
        real = top.resolve(strict=True)
        if real.is_relative_to(own):
            raise PermissionError
        found = sorted(_folders_in(real, own), key=lambda one: one.name.lower())
    except (OSError, ValueError, RuntimeError):  # a loop of links
        raise RepositoryError(
            f"{top} cannot be opened.", "Give the full path of a folder that you may read."
        ) from None
    return {
        "path": str(real),
        "parent": "" if real.parent == real else str(real.parent),
        "git": (real / ".git").exists(),
        "folders": [one.model_dump() for one in found[:FOLDERS_SHOWN]],
    }


def _folders_in(top: Path, own: Path) -> Iterator[Folder]:
    with os.scandir(top) as entries:
        for entry in entries:
            path = Path(entry.path)
            with suppress(OSError):
                if (
                    entry.is_dir() and os.access(path, os.R_OK | os.X_OK) and path.resolve() != own
                    and entry.name == well_formed(entry.name)
                ):  # fmt: skip
                    yield Folder(name=entry.name, path=str(path), git=(path / ".git").exists())


def _row(repo: str, report: RepositoryReport) -> Repository:
    return Repository(**asdict(report), id=repo, open=workspace().is_open(repo))
