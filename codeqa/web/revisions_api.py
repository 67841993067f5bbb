"""The commits that a repository can be asked at: its branches and tags, and opening one."""

from __future__ import annotations

from codeqa.indexing import Indexer
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.web.endpoints import Endpoints
from codeqa.web.index_api import Status, status_values
from codeqa.web.schemas import Filled, RepoQuery, Schema, Values
from codeqa.web.security import require_owner
from codeqa.web.workspace import engine_of, workspace

endpoints = Endpoints("revisions", "Index")


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


@endpoints.route("GET", "/api/revisions", Revisions)
def revisions(query: RepoQuery) -> Values:
    """Which commit this is, and the branches and tags that there are."""
    location = engine_of(query).location
    base = workspace().engine(location.snapshot_of).location if location.snapshot_of else location
    names = revision_names(base.root)
    return {"repository": base.id, "commit": location.commit, "names": names}


@endpoints.route("POST", "/api/revisions", Status)
def open_revision(query: RepoQuery, body: RevisionBody) -> Values:
    """Index the repository as it was at a commit, beside it; by its `id` that is asked and read.

    It holds what the owner need not have indexed, so nobody else may.
    """
    require_owner("open another commit")
    space, engine = workspace(), engine_of(query)
    engine = space.engine(engine.location.snapshot_of or engine.location.id)
    snapshot = take_snapshot(space.settings, engine.location, body.revision.strip())
    Indexer(space.settings, snapshot).run(refine=False)
    return status_values(space.engine(snapshot.id))
