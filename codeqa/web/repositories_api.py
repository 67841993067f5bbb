"""Manage repositories, their indexes and their other commits; and the health of the server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from flask import current_app, request
from pydantic import Field

from codeqa.engine import Engine
from codeqa.environment import with_home
from codeqa.errors import IndexMissingError, RepositoryError, UsageError
from codeqa.hosts import is_loopback
from codeqa.indexing import Indexer
from codeqa.indexing.runs import count_reasons, skipped_paths
from codeqa.repositories import RepositoryReport, clone_location, find_repository, report_on
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.repository.remotes import looks_remote, read_remote
from codeqa.search.rerank_models import reranker_status
from codeqa.store import FileRecord
from codeqa.text.tokens import well_formed
from codeqa.web.endpoints import Endpoints, Filled, Id, Schema, Text, Values
from codeqa.web.errors import RequestRefusedError
from codeqa.web.running import proof
from codeqa.web.security import LOCAL, TERMINAL_TOKEN, current_user, require_owner
from codeqa.web.workspace import workspace

FOLDERS_SHOWN = 1_000
OWNERS_ONLY = "change which repositories there are"

endpoints = Endpoints("repositories", __name__)


class PathBody(Schema):
    path: Filled
    """Full path of a folder (`~` is the home folder of the server's user), or the address of a git
    repository, by https or ssh."""
    branch: Text = ""
    """The branch or tag to clone from an address; empty for the default branch."""


class NameBody(Schema):
    name: Annotated[str, Field(max_length=60)]
    """Empty for the name of the folder."""


class SteerBody(Schema):
    action: Literal["pause", "cancel", "check", "describe"]


class RevisionBody(Schema):
    revision: Filled
    """A commit in git's notation: a hash or its beginning, a branch, a tag, `HEAD~3`."""


class Challenge(Schema):
    challenge: Id


@endpoints.route("GET", "/api/repos")
def repositories() -> Values:
    """List the repositories with an index, the last updated first, and those being cloned.

    `changeable` says whether this user may add, refresh, rename and remove them.
    """
    space, user = workspace(), current_user()
    reports = {location.id: report_on(location) for location in space.visible()}
    for repo, report in space.jobs.reports().items():
        if not user.sees or repo in reports:  # rules cannot judge a clone before it is there
            reports[repo] = report
    rows = [_row(repo, report) for repo, report in reports.items()]
    rows.sort(key=lambda row: (row["state"] != "cloning", -row["updated_at"]))
    return {
        "current": space.engine().location.id if space.usual() else "",
        "changeable": user.owner,
        "repositories": rows,
    }


@endpoints.route("POST", "/api/repos", status=202)
def add(body: PathBody) -> Values:
    """Open the repository at `path`, cloned first if it is an address; indexing goes on after this.

    Only the owner may add a repository; others can open those that are indexed already.
    """
    space, path = workspace(), body.path.strip()
    if looks_remote(path):
        require_owner(OWNERS_ONLY)
        remote = read_remote(path, body.branch)
        location = clone_location(space.settings, remote)
        url, branch = remote.url, remote.branch
        about = RepositoryReport(location.name, url, "failed", url=url, branch=branch)
        return _row(location.id, space.begin("cloning", location, about, url, branch))
    if with_home(Path(path)) not in [location.root for location in space.visible()]:
        require_owner(OWNERS_ONLY)
    location = space.open(Path(path)).location
    return _row(location.id, report_on(location))


@endpoints.route("POST", "/api/repos/<repo>", owners=OWNERS_ONLY)
def rename(repo: str, body: NameBody) -> Values:
    """Give the repository another name."""
    location = find_repository(workspace().settings, repo)
    workspace().rename(location, body.name)
    return _row(location.id, report_on(location))


@endpoints.route("POST", "/api/repos/<repo>/refresh", status=202, owners=OWNERS_ONLY)
def refresh(repo: str) -> Values:
    """Fetch the newest commit of a clone, and index the changes; both go on after this request."""
    space = workspace()
    location = find_repository(space.settings, repo)
    return _row(location.id, space.begin("refreshing", location))


@endpoints.route("POST", "/api/repos/<repo>/cancel", owners=OWNERS_ONLY)
def cancel(repo: str) -> Values:
    """Cancel cloning or refreshing, or dismiss a failed one. A cancelled clone is deleted."""
    workspace().jobs.cancel(repo)
    return {"removed": repo}


@endpoints.route("DELETE", "/api/repos/<repo>", owners=OWNERS_ONLY)
def remove(repo: str) -> Values:
    """Delete the index of a repository, and its files if CodeQA cloned them.

    Its conversations stay.
    """
    space = workspace()
    space.remove(find_repository(space.settings, repo))
    return {"removed": repo}


@endpoints.route("GET", "/api/folders", owners=OWNERS_ONLY)
def folders(path: Text = "") -> Values:
    """List the folders in the folder at `path` on the server's machine.

    Without `path`, list those in the home folder of the user that the server runs as.
    """
    top = with_home(Path(path.strip() or "~"))
    own = workspace().settings.data_dir.resolve()
    try:
        real = top.resolve(strict=True)
        if real.is_relative_to(own):
            raise PermissionError
        rows = sorted(_folders_in(real, own), key=lambda row: row["name"].lower())
    except (OSError, ValueError, RuntimeError):  # a loop of links
        raise RepositoryError(
            f"{top} cannot be opened.", "Give the full path of a folder that the server may read."
        ) from None
    return {
        "path": str(real),
        "parent": "" if real.parent == real else str(real.parent),
        "git": (real / ".git").exists(),
        "folders": rows[:FOLDERS_SHOWN],
    }


def _folders_in(top: Path, own: Path) -> Iterator[Values]:
    for path in top.iterdir():
        with suppress(OSError):
            usable = path.is_dir() and os.access(path, os.R_OK | os.X_OK) and path.resolve() != own
            if usable and path.name == well_formed(path.name):
                git = (path / ".git").exists()
                yield {"name": path.name, "path": str(path), "git": git}


def _row(repo: str, report: RepositoryReport) -> Values:
    """Return a repository as JSON.

    Its `state` may also be `cloning`, `refreshing` or `describing`, with `progress`, or `failed`:
    then it could not be cloned, and `problem` says why.
    """
    return asdict(report) | {"id": repo, "open": workspace().is_open(repo)}


# Its index


@endpoints.route("GET", "/api/status")
def status(engine: Engine) -> Values:
    """Return what the index holds and what is being done to it."""
    about = engine.index.status()
    return asdict(about) | {
        "id": engine.location.id,
        "effort": engine.settings.effort,
        "hyde": engine.settings.hyde,
        "retrieval": engine.settings.retrieval,
        "reranker": reranker_status(engine.settings).text,
        "skipped_total": sum(about.skipped.values()),
        "steerable": current_user().owner,
    }


@endpoints.route("POST", "/api/index", status=202, owners="steer indexing")
def steer(engine: Engine, body: SteerBody) -> Values:
    """Pause or cancel indexing, check for changes now, or have the model describe the methods.

    `check` ends a pause; `describe` sends the code of the methods to the chosen model. What is
    indexed so far stays and can be searched.
    """
    space, action = workspace(), body.action
    queued = bool(space.settings.jobs)
    if action == "pause" and queued:
        raise UsageError(
            "A worker cannot be paused.", "Cancel it: the next run goes on from there."
        )
    if not queued and action != "describe":
        method = {"check": "start_update"}.get(action, action)
        getattr(engine.index, method)()
        return status(engine)
    for location in engine.repositories:
        if action == "cancel":
            space.jobs.cancel(location.id)
        else:
            space.begin({"check": "indexing", "describe": "describing"}[action], location)
    return status(engine)


@endpoints.route("GET", "/api/skipped")
def skipped(engine: Engine) -> Values:
    """List the files that are not indexed, by reason, the most frequent first."""
    files: list[FileRecord] = []
    with suppress(IndexMissingError):
        files = engine.tables().skipped()
    paths = skipped_paths(files)
    groups = [
        {"reason": reason, "count": count, "paths": paths[reason]}
        for reason, count in count_reasons(files).items()
    ]
    return {"total": len(files), "groups": groups}


@endpoints.route("GET", "/health")
def health() -> Values:
    """Return `ok`, or `draining` when the server ends after its running answers."""
    return {"status": "draining" if workspace().answers.draining.is_set() else "ok"}


@endpoints.route("GET", "/ready")
def ready() -> Values:
    """Return the state of the index when questions can be answered; fail with 503 otherwise.

    A load balancer asks this, without a user.
    """
    space = workspace()
    if space.answers.draining.is_set():
        raise RequestRefusedError(503)
    index = space.engine(user=LOCAL).index.status() if space.usual(LOCAL) else None
    if index is None or not index.files:
        raise RequestRefusedError(503, "Choose a repository on the page, or wait for its index.")
    return {"status": index.state}


@endpoints.route("POST", "/api/terminal/hello")
def hello(body: Challenge) -> Values:
    """Prove to a terminal that this is its server, before it sends its token."""
    if not is_loopback(request.remote_addr or ""):
        raise RequestRefusedError(403, "Ask from the server's own machine.")
    return {"proof": proof(current_app.config[TERMINAL_TOKEN], body.challenge)}


@endpoints.route("GET", "/api/revisions")
def revisions(engine: Engine) -> Values:
    """Return the commit that is open, and the branches and tags of the repository."""
    location = engine.location
    base = workspace().engine(location.snapshot_of).location if location.snapshot_of else location
    return {"repository": base.id, "commit": location.commit, "names": revision_names(base.root)}


@endpoints.route("POST", "/api/revisions", owners="open another commit")
def open_revision(engine: Engine, body: RevisionBody) -> Values:
    """Index the repository as it was at a commit, next to the current one, under its own `id`.

    Only the owner may: old commits may contain files that the owner did not want to index.
    """
    space = workspace()
    base = space.engine(engine.location.snapshot_of or engine.location.id)
    snapshot = take_snapshot(space.settings, base.location, body.revision.strip())
    Indexer(space.settings, snapshot).run(refine=False)
    return status(space.engine(snapshot.id))
