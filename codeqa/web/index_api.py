"""What the index of a repository holds: its status, files and their lines."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from pydantic import Field

from codeqa.engine import Engine
from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.render.code import highlight_lines
from codeqa.render.markdown import sanitise
from codeqa.repositories.files import FileText
from codeqa.search import missing_command, reranker_status
from codeqa.types import CLASS_KINDS, METHOD_KINDS, IndexStatus
from codeqa.web.endpoints import Endpoints, values_of
from codeqa.web.errors import RequestRefusedError
from codeqa.web.schemas import Filled, RepoQuery, Schema, Values
from codeqa.web.security import member_of_request, require_owner
from codeqa.web.workspace import engine_of, workspace

SKIPPED_PATHS = 500
"""Paths listed per reason; the count tells how many there are."""
LINES_AT_ONCE = 2_000
EXAMPLE_HITS = 8
"""Hits looked at for examples of questions; the first that fits is used."""
USUAL_QUESTIONS = (
    "What is this project, and how is it organised?",
    "Where does the program start?",
    "How are errors handled?",
    "How is the configuration loaded?",
)

endpoints = Endpoints("api", "Index")


class FileQuery(RepoQuery):
    path: Filled
    """Relative to the repository's root, with `/`."""


class LinesQuery(FileQuery):
    start: Annotated[int, Field(ge=1, le=999_999_999)] = 1
    end: Annotated[int, Field(ge=0, le=999_999_999)] = 0
    """0 stands for `start`."""


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


class SteerBody(RepoQuery):
    action: Literal["pause", "cancel", "check"]


class SkippedGroup(Schema):
    reason: str
    count: int
    paths: list[str]


class SkippedFiles(Schema):
    total: int
    groups: list[SkippedGroup]


class FileLines(Schema):
    path: str
    language: str
    changed: bool
    """The file differs from what was indexed."""
    lines: list[str]
    """Safe HTML, one piece per line."""


class SomeLines(FileLines):
    start: int
    end: int
    total: int
    """Lines of the whole file."""
    text: str
    """The lines as they are."""


@endpoints.route("GET", "/api/status", Status)
def status(query: RepoQuery) -> Values:
    """What the index holds and what is being done to it."""
    return status_values(engine_of(query))


@endpoints.route("POST", "/api/index", Status, status=202)
def steer(body: SteerBody) -> Values:
    """Pause or cancel the indexing of this server, or look for changes now, which ends a pause.

    What is committed stays and can be searched. It concerns every user, so it is the owner's.
    """
    require_owner("steer indexing")
    engine = engine_of(body)
    getattr(engine.index, body.action)()
    return status_values(engine)


@endpoints.route("GET", "/api/skipped", SkippedFiles)
def skipped(query: RepoQuery) -> Values:
    """Files that are not indexed, by reason, the most frequent first."""
    paths: dict[str, list[str]] = defaultdict(list)
    for file in engine_of(query).index.skipped():
        paths[file.reason].append(file.path)
    ordered = sorted(paths.items(), key=lambda item: (-len(item[1]), item[0]))
    groups = [
        {"reason": reason, "count": len(found), "paths": sorted(found)[:SKIPPED_PATHS]}
        for reason, found in ordered
    ]
    return {"total": sum(map(len, paths.values())), "groups": groups}


@endpoints.route("GET", "/api/file", FileLines, tag="Files")
def file(query: FileQuery) -> Values:
    """An indexed file, one piece of safe HTML per line."""
    text = engine_of(query).files.read(query.path)
    return values_of(FileLines, text, lines=_highlighted(text))


@endpoints.route("GET", "/api/lines", SomeLines, tag="Files")
def lines(query: LinesQuery) -> Values:
    """Some lines of an indexed file, coloured as in the whole.

    The answer says which they are: `end` may lie behind the file's, or too far behind `start`.
    """
    first, last = query.start, query.end or query.start
    if last < first:
        raise UsageError(f"Line {last:,} lies before line {first:,}.", "Name the first line first.")
    text = engine_of(query).files.read(query.path)
    html = _highlighted(text)
    if first > len(html):
        raise NotFoundError(
            f"The file has {len(html):,} lines, so there is no line {first:,}.",
            "It may have changed since it was indexed.",
        )
    last = min(last, len(html), first + LINES_AT_ONCE - 1)
    return values_of(
        SomeLines,
        text,
        start=first,
        end=last,
        total=len(html),
        lines=html[first - 1 : last],
        text="\n".join(text.text.split("\n")[first - 1 : last]),
    )


@endpoints.route("GET", "/api/examples", {"questions": list[str]})
def examples(query: RepoQuery) -> Values:
    """Questions that this repository can answer, for an empty conversation."""
    engine = engine_of(query)
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


def status_values(engine: Engine) -> Values:
    """The status as the page shows it."""
    status = engine.index.status()
    return asdict(status) | {
        "id": engine.location.id,
        "effort": engine.settings.effort,
        "hyde": engine.settings.hyde,
        "retrieval": engine.settings.retrieval,
        "reranker": ". ".join(filter(None, reranker_status(engine.settings)[1:])),
        "reranker_command": missing_command(engine.settings),
        # A reason that stands first is the most frequent one; objects in JSON have no order.
        "skipped": list(status.skipped.items()),
        "skipped_total": sum(status.skipped.values()),
        "steerable": member_of_request().owner,
    }


def _highlighted(file: FileText) -> list[str]:
    """Safe HTML for each line."""
    found = highlight_lines(file.text, file.language)
    return sanitise("\n".join(found)).split("\n") if found else []


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
