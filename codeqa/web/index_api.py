"""The index of a repository: its status, what it leaves out, and as of which commit; and whether
the server runs."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from flask import current_app, request

from codeqa.engine import Engine
from codeqa.errors import CodeQAError
from codeqa.hosts import is_loopback
from codeqa.indexing import Indexer
from codeqa.repositories.snapshots import revision_names, take_snapshot
from codeqa.search import reranker_status
from codeqa.types import CLASS_KINDS, METHOD_KINDS, IndexStatus
from codeqa.web.endpoints import Endpoints
from codeqa.web.errors import RequestRefusedError
from codeqa.web.running import proof
from codeqa.web.schemas import Filled, Id, Repo, Schema, Values
from codeqa.web.security import TERMINAL_TOKEN, member_of_request
from codeqa.web.workspace import workspace

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

endpoints = Endpoints("api", "Index")


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


@endpoints.route("GET", "/api/status", Status)
def status(engine: Engine) -> Values:
    """What the index holds and what is being done to it."""
    return status_values(engine)


@endpoints.route("POST", "/api/index", Status, status=202, owners="steer indexing")
def steer(body: SteerBody) -> Values:
    """Pause or cancel the indexing of this server, or look for changes now, which ends a pause.

    What is committed stays and can be searched. It concerns every user, so it is the owner's.
    """
    engine = workspace().engine(body.repo)
    getattr(engine.index, body.action)()
    return status_values(engine)


@endpoints.route("GET", "/api/skipped", {"total": int, "groups": list[SkippedGroup]})
def skipped(engine: Engine) -> Values:
    """Files that are not indexed, by reason, the most frequent first."""
    paths: dict[str, list[str]] = defaultdict(list)
    for file in engine.index.skipped():
        paths[file.reason].append(file.path)
    ordered = sorted(paths.items(), key=lambda item: (-len(item[1]), item[0]))
    groups = [
        {"reason": reason, "count": len(found), "paths": sorted(found)[:SKIPPED_PATHS]}
        for reason, found in ordered
    ]
    return {"total": sum(map(len, paths.values())), "groups": groups}


@endpoints.route("GET", "/api/examples", {"questions": list[str]})
def examples(engine: Engine) -> Values:
    """Questions that this repository can answer, for an empty conversation."""
    found: list[str] = []
    with contextlib.suppress(CodeQAError):  # without an index the usual ones
        found += _own_questions(engine)
    return {"questions": [*found, *USUAL_QUESTIONS][: len(USUAL_QUESTIONS)]}


@endpoints.route("GET", "/health", {"status": str}, tag="Server")
def health() -> Values:
    """The server runs."""
    return {"status": "ok"}


@endpoints.route("GET", "/ready", {"status": str}, tag="Server")
def ready() -> Values:
    """Questions can be answered: an index is there, be it complete or being updated."""
    space = workspace()
    status = space.engine().index.status() if space.has_current() else None
    if status is None or not status.files:
        raise RequestRefusedError(503, "Choose a repository on the page, or wait for its index.")
    return {"status": status.state}


@endpoints.route("POST", "/api/terminal/hello", {"proof": str}, tag="Server")
def hello(body: Challenge) -> Values:
    """Proves that this is the server that it is taken for, before a terminal sends its token."""
    if not is_loopback(request.remote_addr or ""):
        raise RequestRefusedError(403, "Ask it on this machine.")
    return {"proof": proof(current_app.config[TERMINAL_TOKEN], body.challenge)}


@endpoints.route("GET", "/api/revisions", Revisions)
def revisions(engine: Engine) -> Values:
    """Which commit this is, and the branches and tags that there are."""
    location = engine.location
    base = workspace().engine(location.snapshot_of).location if location.snapshot_of else location
    return {"repository": base.id, "commit": location.commit, "names": revision_names(base.root)}


@endpoints.route("POST", "/api/revisions", Status, owners="open another commit")
def open_revision(engine: Engine, body: RevisionBody) -> Values:
    """Index the repository as it was at a commit, beside it; by its `id` that is asked and read.

    It holds what the owner need not have indexed, so nobody else may.
    """
    space = workspace()
    base = space.engine(engine.location.snapshot_of or engine.location.id)
    snapshot = take_snapshot(space.settings, base.location, body.revision.strip())
    Indexer(space.settings, snapshot).run(refine=False)
    return status_values(space.engine(snapshot.id))


def status_values(engine: Engine) -> Values:
    """The status as the page shows it."""
    status, reranker = engine.index.status(), reranker_status(engine.settings)
    return asdict(status) | {
        "id": engine.location.id,
        "effort": engine.settings.effort,
        "hyde": engine.settings.hyde,
        "retrieval": engine.settings.retrieval,
        "reranker": ". ".join(filter(None, (reranker.text, reranker.hint))),
        "reranker_command": reranker.command,
        # A reason that stands first is the most frequent one; objects in JSON have no order.
        "skipped": list(status.skipped.items()),
        "skipped_total": sum(status.skipped.values()),
        "steerable": member_of_request().owner,
    }


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
