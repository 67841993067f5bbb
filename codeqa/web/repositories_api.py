"""The repositories: listed, opened, cloned, refreshed, renamed, removed; the folders that one is
chosen from; the index of one, what it leaves out, and as of which commit; and whether the server
runs."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from flask import current_app, request
from pydantic import Field

from codeqa.engine import Engine
from codeqa.environment import with_home
from codeqa.errors import CodeQAError, RepositoryError
from codeqa.hosts import is_loopback
from codeqa.indexing import Indexer
from codeqa.repositories import (
    RepositoryReport,
    clone_location,
    find_repository,
    report_on,
    sync_clone,
    take_clone,
)
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.repository.clones import Report, looks_remote, read_remote
from codeqa.search.rerank import reranker_status
from codeqa.store import list_locations
from codeqa.text.tokens import well_formed
from codeqa.types import CLASS_KINDS, METHOD_KINDS, IndexStatus
from codeqa.web.endpoints import Clean, Endpoints, Filled, Id, Repo, Schema, Text, Values
from codeqa.web.errors import RequestRefusedError
from codeqa.web.running import proof
from codeqa.web.security import TERMINAL_TOKEN, member_of_request, require_owner
from codeqa.web.workspace import workspace

FOLDERS_SHOWN = 1_000
OWNERS = "change which repositories there are"

SKIPPED_PATHS = 500
"""Paths listed per reason; the count tells how many there are."""
EXAMPLE_HITS = 8
"""Hits looked at for examples of questions; the first that fits is used."""
USUAL_QUESTIONS = (
    "What is this project, and how is it organised?",
    "Where does the program start?",
    "How are errors handled?",
    "How is the configuration loaded?",
)

endpoints = Endpoints("repositories", "Repositories")
index = Endpoints("index", "Index")
server = Endpoints("server", "Server")


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
    for path in top.iterdir():
        with suppress(OSError):
            usable = path.is_dir() and os.access(path, os.R_OK | os.X_OK) and path.resolve() != own
            if usable and path.name == well_formed(path.name):
                yield Folder(name=path.name, path=str(path), git=(path / ".git").exists())


def _row(repo: str, report: RepositoryReport) -> Repository:
    return Repository(**asdict(report), id=repo, open=workspace().is_open(repo))


# Its index


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(IndexStatus):
    """The status, and what the page shows beside it."""

    state: Literal["missing", "indexing", "refining", "paused", "ready", "stopped", "failed"]
    id: str
    effort: str
    hyde: str
    retrieval: str
    """What the settings say of questions without `@codebase`: `explicit` or `auto`."""
    reranker: str
    """What the rerank switch runs, or what is in its way and what to do."""
    reranker_command: str
    """The command in that text, to be copied; empty where nothing is missing."""
    skipped: list[tuple[str, int]]  # type: ignore[assignment]
    """Reason and number of files, the most frequent first."""
    skipped_total: int
    steerable: bool
    """Who asks may pause, cancel and check."""


class SteerBody(Schema):
    action: Literal["pause", "cancel", "check"]
    repo: Repo = ""


class SkippedGroup(Schema):
    reason: str
    count: int
    paths: list[str]


class Revisions(Schema):
    repository: str
    """Id of the repository as people work on it."""
    commit: str
    """The commit that this is a snapshot of; empty for the repository itself."""
    names: list[str]
    """Branches and tags, those with the newest commits first."""


class RevisionBody(Schema):
    revision: Filled
    """A commit as git takes it: a hash or its beginning, a branch, a tag, `HEAD~3`."""


class Challenge(Schema):
    challenge: Id


@index.route("GET", "/api/status", Status)
def status(engine: Engine) -> Values:
    """What the index holds and what is being done to it."""
    about, reranker = engine.index.status(), reranker_status(engine.settings)
    return asdict(about) | {
        "id": engine.location.id,
        "effort": engine.settings.effort,
        "hyde": engine.settings.hyde,
        "retrieval": engine.settings.retrieval,
        "reranker": ". ".join(filter(None, (reranker.text, reranker.hint))),
        "reranker_command": reranker.command,
        # A reason that stands first is the most frequent one; objects in JSON have no order.
        "skipped": list(about.skipped.items()),
        "skipped_total": sum(about.skipped.values()),
        "steerable": member_of_request().owner,
    }


@index.route("POST", "/api/index", Status, status=202, owners="steer indexing")
def steer(body: SteerBody) -> Values:
    """Pause or cancel the indexing of this server, or look for changes now, which ends a pause.

    What is committed stays and can be searched. It concerns every user, so it is the owner's.
    """
    engine = workspace().engine(body.repo)
    getattr(engine.index, body.action)()
    return status(engine)


@index.route("GET", "/api/skipped", {"total": int, "groups": list[SkippedGroup]})
def skipped(engine: Engine) -> Values:
    """Files that are not indexed, by reason, the most frequent first."""
    paths: dict[str, list[str]] = defaultdict(list)
    for file in engine.index.skipped():
        paths[file.reason].append(file.path)
    groups = [
        {"reason": reason, "count": len(found), "paths": sorted(found)[:SKIPPED_PATHS]}
        for reason, found in sorted(paths.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return {"total": sum(map(len, paths.values())), "groups": groups}


@index.route("GET", "/api/examples", {"questions": list[str]})
def examples(engine: Engine) -> Values:
    """Questions that this repository can answer, for an empty conversation."""
    found: list[str] = []
    with suppress(CodeQAError):  # without an index the usual ones
        found += _own_questions(engine)
    return {"questions": [*found, *USUAL_QUESTIONS][: len(USUAL_QUESTIONS)]}


@server.route("GET", "/health", {"status": str})
def health() -> Values:
    """The server runs."""
    return {"status": "ok"}


@server.route("GET", "/ready", {"status": str})
def ready() -> Values:
    """Questions can be answered: an index is there, be it complete or being updated."""
    space = workspace()
    about = space.engine().index.status() if space.has_current() else None
    if about is None or not about.files:
        raise RequestRefusedError(503, "Choose a repository on the page, or wait for its index.")
    return {"status": about.state}


@server.route("POST", "/api/terminal/hello", {"proof": str})
def hello(body: Challenge) -> Values:
    """Proves that this is the server that it is taken for, before a terminal sends its token."""
    if not is_loopback(request.remote_addr or ""):
        raise RequestRefusedError(403, "Ask it on this machine.")
    return {"proof": proof(current_app.config[TERMINAL_TOKEN], body.challenge)}


@index.route("GET", "/api/revisions", Revisions)
def revisions(engine: Engine) -> Values:
    """Which commit this is, and the branches and tags that there are."""
    location = engine.location
    base = workspace().engine(location.snapshot_of).location if location.snapshot_of else location
    return {"repository": base.id, "commit": location.commit, "names": revision_names(base.root)}


@index.route("POST", "/api/revisions", Status, owners="open another commit")
def open_revision(engine: Engine, body: RevisionBody) -> Values:
    """Index the repository as it was at a commit, beside it; by its `id` that is asked and read.

    It holds what the owner need not have indexed, so nobody else may.
    """
    space = workspace()
    base = space.engine(engine.location.snapshot_of or engine.location.id)
    snapshot = take_snapshot(space.settings, base.location, body.revision.strip())
    Indexer(space.settings, snapshot).run(refine=False)
    return status(space.engine(snapshot.id))


def _own_questions(engine: Engine) -> Iterator[str]:
    """What can be asked of what the index really holds. Raises CodeQAError without one."""
    units = [
        hit.unit
        for hit in engine.search.search(engine.location.name, top=EXAMPLE_HITS).units
        if hit.unit.role == "source" and hit.unit.kind != "module" and len(hit.unit.name) > 2
        if not hit.unit.name.lower().startswith(("_", "test"))
    ]
    for kinds, question in (
        (CLASS_KINDS, "What does `{}` do, and where is it used?"),
        (METHOD_KINDS, "Who calls `{}`?"),
    ):
        if unit := next((unit for unit in units if unit.kind in kinds), None):
            yield question.format(unit.name)
