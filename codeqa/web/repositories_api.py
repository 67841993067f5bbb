"""The repositories: listed, opened, cloned, refreshed, renamed, removed; the folders that one is
chosen from; the index of one, what it leaves out, and as of which commit; and whether the server
runs."""

from __future__ import annotations

import os
from collections import defaultdict
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
from codeqa.repositories import RepositoryReport, clone_location, find_repository, report_on
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.repository.remotes import looks_remote, read_remote
from codeqa.search.rerank_models import reranker_status
from codeqa.text.tokens import well_formed
from codeqa.web.endpoints import Endpoints, Filled, Id, Schema, Text, Values
from codeqa.web.errors import RequestRefusedError
from codeqa.web.running import proof
from codeqa.web.security import LOCAL, TERMINAL_TOKEN, member_of_request, require_owner
from codeqa.web.workspace import workspace

FOLDERS_SHOWN = 1_000
OWNERS = "change which repositories there are"

SKIPPED_PATHS = 500
"""Paths listed per reason; the count tells how many there are."""

endpoints = Endpoints("repositories", __name__)


class PathBody(Schema):
    path: Filled
    """Full path of a folder; `~` stands for the home folder of who runs the server. Or the
    address of a git repository, by https or ssh."""
    branch: Text = ""
    """Of an address: the branch or tag to clone; empty for the usual one."""


class NameBody(Schema):
    name: Annotated[str, Field(max_length=60)]
    """Empty for the name of the folder."""


class SteerBody(Schema):
    action: Literal["pause", "cancel", "check", "describe"]


class RevisionBody(Schema):
    revision: Filled
    """A commit as git takes it: a hash or its beginning, a branch, a tag, `HEAD~3`."""


class Challenge(Schema):
    challenge: Id


@endpoints.route("GET", "/api/repos")
def repositories() -> Values:
    """The repositories with an index, the one updated last first, and those being cloned;
    `changeable`, whether this user may add, refresh, rename and remove."""
    space = workspace()
    member, reports = member_of_request(), {one.id: report_on(one) for one in space.visible()}
    jobs = space.jobs.reports().items()  # where something is cloned to there is nothing to see yet
    reports |= {repo: one for repo, one in jobs if not member.sees or repo in reports}
    found = [*reports.items()]
    found.sort(key=lambda row: (row[1].state != "cloning", -row[1].updated_at))
    return {
        "current": space.engine().location.id if space.usual() else "",
        "changeable": member.owner,
        "repositories": [_row(repo, report) for repo, report in found],
    }


@endpoints.route("POST", "/api/repos", status=202)
def add(body: PathBody) -> Values:
    """Open the repository at `path`, cloned first if it is an address, and index it behind.

    What the server may read is its owner's to show: others open what is indexed already.
    """
    space, given = workspace(), body.path.strip()
    if looks_remote(given):
        require_owner(OWNERS)
        remote = read_remote(given, body.branch)
        location = clone_location(space.settings, remote)
        url, branch = remote.url, remote.branch
        about = RepositoryReport(location.name, url, "failed", url=url, branch=branch)
        return _row(location.id, space.begin("cloning", location, about, url, branch))
    if Path(given) not in [location.root for location in space.visible()]:
        require_owner(OWNERS)
    location = space.open(Path(given)).location
    return _row(location.id, report_on(location))


@endpoints.route("POST", "/api/repos/<repo>", owners=OWNERS)
def rename(repo: str, body: NameBody) -> Values:
    """Show the repository by another name."""
    location = find_repository(workspace().settings, repo)
    workspace().rename(location, body.name)
    return _row(location.id, report_on(location))


@endpoints.route("POST", "/api/repos/<repo>/refresh", status=202, owners=OWNERS)
def refresh(repo: str) -> Values:
    """Fetch the newest commit where it is a clone, and index what changed, behind."""
    space = workspace()
    location = find_repository(space.settings, repo)
    return _row(location.id, space.begin("refreshing", location))


@endpoints.route("POST", "/api/repos/<repo>/cancel", owners=OWNERS)
def cancel(repo: str) -> Values:
    """End its clone or refresh, or dismiss that one failed. Of a clone nothing is left."""
    workspace().jobs.cancel(repo)
    return {"removed": repo}


@endpoints.route("DELETE", "/api/repos/<repo>", owners=OWNERS)
def remove(repo: str) -> Values:
    """Delete its index, and its files if they are a clone that was made by its address. Its
    conversations stay."""
    space = workspace()
    space.remove(find_repository(space.settings, repo))
    return {"removed": repo}


@endpoints.route("GET", "/api/folders", owners=OWNERS)
def folders(path: Text = "") -> Values:
    """The folders in the folder at `path` of the server's machine, for its owner to choose one;
    without it in the home folder of who runs the server."""
    top = with_home(Path(path.strip() or "~"))
    own = workspace().settings.data_dir.resolve()
    try:
        real = top.resolve(strict=True)
        if real.is_relative_to(own):
            raise PermissionError
        found = sorted(_folders_in(real, own), key=lambda one: one["name"].lower())
    except (OSError, ValueError, RuntimeError):  # a loop of links
        raise RepositoryError(
            f"{top} cannot be opened.", "Give the full path of a folder that you may read."
        ) from None
    return {
        "path": str(real),
        "parent": "" if real.parent == real else str(real.parent),
        "git": (real / ".git").exists(),
        "folders": found[:FOLDERS_SHOWN],
    }


def _folders_in(top: Path, own: Path) -> Iterator[Values]:
    for path in top.iterdir():
        with suppress(OSError):
            usable = path.is_dir() and os.access(path, os.R_OK | os.X_OK) and path.resolve() != own
            if usable and path.name == well_formed(path.name):
                git = (path / ".git").exists()
                yield {"name": path.name, "path": str(path), "git": git}


def _row(repo: str, report: RepositoryReport) -> Values:
    """`state` may also be `cloning`, `refreshing` or `describing`, with `progress`, or `failed`:
    it was not cloned, and `problem` says why."""
    return asdict(report) | {"id": repo, "open": workspace().is_open(repo)}


# Its index


@endpoints.route("GET", "/api/status")
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
        "skipped_total": sum(about.skipped.values()),
        "steerable": member_of_request().owner,
    }


@endpoints.route("POST", "/api/index", status=202, owners="steer indexing")
def steer(engine: Engine, body: SteerBody) -> Values:
    """Pause or cancel the indexing of this server, look for changes now, which ends a pause, or
    have the chosen model describe the methods, which sends it their code.

    What is committed stays and can be searched. It concerns every user, so it is the owner's.
    """
    space, action = workspace(), body.action
    queued = bool(space.settings.jobs)
    if action == "pause" and queued:
        raise UsageError("A worker cannot be paused.", "Cancel it; the next run completes it.")
    if not queued and action != "describe":
        getattr(engine.index, action)()
        return status(engine)
    for one in engine.repositories:
        if action == "cancel":
            space.jobs.cancel(one.id)
        else:
            space.begin({"check": "indexing", "describe": "describing"}[action], one)
    return status(engine)


@endpoints.route("GET", "/api/skipped")
def skipped(engine: Engine) -> Values:
    """Files that are not indexed, by reason, the most frequent first."""
    paths: dict[str, list[str]] = defaultdict(list)
    with suppress(IndexMissingError):
        for file in engine.tables().skipped():
            paths[file.reason].append(file.path)
    groups = [
        {"reason": reason, "count": len(found), "paths": sorted(found)[:SKIPPED_PATHS]}
        for reason, found in sorted(paths.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return {"total": sum(map(len, paths.values())), "groups": groups}


@endpoints.route("GET", "/health")
def health() -> Values:
    """The server runs, or ends once what it is writing has ended: `draining`."""
    return {"status": "draining" if workspace().answers.draining.is_set() else "ok"}


@endpoints.route("GET", "/ready")
def ready() -> Values:
    """Questions can be answered: an index is there, be it complete or being updated, and the server
    is not about to end. A proxy asks, which is nobody's."""
    space = workspace()
    if space.answers.draining.is_set():
        raise RequestRefusedError(503)
    about = space.engine(member=LOCAL).index.status() if space.usual(LOCAL) else None
    if about is None or not about.files:
        raise RequestRefusedError(503, "Choose a repository on the page, or wait for its index.")
    return {"status": about.state}


@endpoints.route("POST", "/api/terminal/hello")
def hello(body: Challenge) -> Values:
    """Proves that this is the server that it is taken for, before a terminal sends its token."""
    if not is_loopback(request.remote_addr or ""):
        raise RequestRefusedError(403, "Ask it on this machine.")
    return {"proof": proof(current_app.config[TERMINAL_TOKEN], body.challenge)}


@endpoints.route("GET", "/api/revisions")
def revisions(engine: Engine) -> Values:
    """Which commit this is, and the branches and tags that there are."""
    location = engine.location
    base = workspace().engine(location.snapshot_of).location if location.snapshot_of else location
    return {"repository": base.id, "commit": location.commit, "names": revision_names(base.root)}


@endpoints.route("POST", "/api/revisions", owners="open another commit")
def open_revision(engine: Engine, body: RevisionBody) -> Values:
    """Index the repository as it was at a commit, beside it; by its `id` that is asked and read.

    It holds what the owner need not have indexed, so nobody else may.
    """
    space = workspace()
    base = space.engine(engine.location.snapshot_of or engine.location.id)
    snapshot = take_snapshot(space.settings, base.location, body.revision.strip())
    Indexer(space.settings, snapshot).run(refine=False)
    return status(space.engine(snapshot.id))
