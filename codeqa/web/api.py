"""What the page asks beside questions: status, files and lines, contexts, repositories."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, jsonify

from codeqa.errors import IndexMissingError, NotFoundError, UsageError
from codeqa.render import highlight_lines, sanitise
from codeqa.types import Chunk
from codeqa.web import schemas
from codeqa.web.errors import RequestRefusedError
from codeqa.web.examples import example_questions
from codeqa.web.openapi import ENGINE, described
from codeqa.web.requests import engine_of_request, read_body, read_query, workspace
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.chat import Trace
    from codeqa.engine import Engine
    from codeqa.files import FileText

SKIPPED_PATHS = 500
"""Paths listed per reason; the count tells how many there are."""
LINES_AT_ONCE = 2_000

blueprint = Blueprint("api", __name__)


class NotReadyError(IndexMissingError):
    """Said of the whole server, as its watchers expect it."""

    http_status = 503


@blueprint.get("/api/status")
@described("Index", schemas.Status, query=schemas.RepoQuery, errors=ENGINE)
def status() -> Response:
    """What the index holds and what is being done to it."""
    return jsonify(status_values(engine_of_request()))


@blueprint.get("/api/skipped")
@described("Index", schemas.SkippedFiles, query=schemas.RepoQuery, errors=ENGINE)
def skipped() -> Response:
    """Files that are not indexed, by reason, the most frequent first."""
    paths: dict[str, list[str]] = defaultdict(list)
    for file in engine_of_request().index.skipped():
        paths[file.reason].append(file.path)
    ordered = sorted(paths.items(), key=lambda item: (-len(item[1]), item[0]))
    groups = [
        {"reason": reason, "count": len(found), "paths": sorted(found)[:SKIPPED_PATHS]}
        for reason, found in ordered
    ]
    return jsonify({"total": sum(map(len, paths.values())), "groups": groups})


@blueprint.get("/api/file")
@described("Files", schemas.FileLines, query=schemas.FileQuery, errors=ENGINE)
def file() -> Response:
    """An indexed file, one piece of safe HTML per line."""
    text = engine_of_request().files.read(read_query(schemas.FileQuery).path)
    return jsonify(
        {
            "path": text.path,
            "language": text.language,
            "changed": text.changed,
            "lines": _highlighted(text),
        }
    )


@blueprint.get("/api/lines")
@described("Files", schemas.SomeLines, query=schemas.LinesQuery, errors=ENGINE)
def lines() -> Response:
    """Some lines of an indexed file, coloured as in the whole.

    The answer says which they are: `end` may lie behind the file's, or too far behind `start`.
    """
    wanted = read_query(schemas.LinesQuery)
    first, last = wanted.start, wanted.end or wanted.start
    if last < first:
        raise UsageError(f"Line {last:,} lies before line {first:,}.", "Name the first line first.")
    text = engine_of_request().files.read(wanted.path)
    html = _highlighted(text)
    if first > len(html):
        raise NotFoundError(
            f"The file has {len(html):,} lines, so there is no line {first:,}.",
            "It may have changed since it was indexed.",
        )
    last = min(last, len(html), first + LINES_AT_ONCE - 1)
    shown = text.text.split("\n")[first - 1 : last]
    return jsonify(
        {
            "path": text.path,
            "language": text.language,
            "changed": text.changed,
            "start": first,
            "end": last,
            "total": len(html),
            "lines": html[first - 1 : last],
            "text": "\n".join(shown),
        }
    )


@blueprint.get("/api/context/<turn>")
@described("Conversations", schemas.ContextValues, query=schemas.RepoQuery, errors=ENGINE)
def context(turn: str) -> Response:
    """What an answer was made from: the context, its chunks, and the messages as sent."""
    return jsonify(context_values(engine_of_request(), turn, member_of_request().user))


@blueprint.get("/api/examples")
@described("Index", schemas.Examples, query=schemas.RepoQuery, errors=ENGINE)
def examples() -> Response:
    """Questions that this repository can answer, for an empty conversation."""
    return jsonify({"questions": example_questions(engine_of_request())})


@blueprint.get("/api/repos")
@described("Index", schemas.Repositories, errors=(507,))
def repositories() -> Response:
    """The indexed repositories, the one updated last first."""
    from codeqa.doctor import report_repositories
    from codeqa.store import list_locations

    space = workspace()
    ids = {str(location.root): location.id for location in list_locations(space.settings)}
    reports = sorted(report_repositories(space.settings), key=lambda one: -one.updated_at)
    rows = []
    for report in reports:
        if repo := ids.get(report.path):
            rows.append({"id": repo, "open": space.is_open(repo), **asdict(report)})
    current = space.engine().location.id if space.has_current() else ""
    return jsonify({"current": current, "repositories": rows})


@blueprint.post("/api/repos")
@described("Index", {202: schemas.Status}, body=schemas.PathBody, errors=ENGINE)
def open_repository() -> tuple[Response, int]:
    """Open the repository at `path` and index it behind; its status tells how far that is.

    What the server may read is its owner's to show: others open what is indexed already.
    """
    from codeqa.store import list_locations

    path = Path(read_body(schemas.PathBody).path.strip())
    known = list_locations(workspace().settings)
    if not member_of_request().owner and path not in [location.root for location in known]:
        raise RequestRefusedError(
            403, "Only the first token in CODEQA_TOKEN may open a folder that is not indexed yet."
        )
    engine = workspace().open(path)
    return jsonify(status_values(engine)), 202


@blueprint.get("/health")
@described("Server", schemas.Health)
def health() -> Response:
    """The server runs."""
    return jsonify({"status": "ok"})


@blueprint.get("/ready")
@described("Server", schemas.Health, errors=(503, 507))
def ready() -> Response:
    """Questions can be answered: an index is there, be it complete or being updated."""
    space = workspace()
    if space.has_current():
        status = space.status(space.engine())
        if status.files:
            return jsonify({"status": status.state})
        if status.state == "indexing":
            raise RequestRefusedError(503, "The first index is being made; try again in a moment.")
    raise NotReadyError("There is no index yet.", "Choose a repository on the page.")


def context_values(engine: Engine, turn: str, user: str) -> dict[str, Any]:
    """What a turn was made from, as JSON holds it. Raises NotFoundError."""
    chat = engine.chat
    block, sent = chat.context(turn, user), chat.sent(turn, user)
    trace = chat.trace(turn, user)
    return {
        "text": block.text,
        "chunks": [_chunk(chunk, trace) for chunk in block.chunks],
        "dropped": [_chunk(chunk, trace) for chunk in block.dropped],
        "messages": sent.messages,
        "model": sent.model,
        "host": sent.host,
        "tokens": sent.tokens,
        "hyde": trace.hyde,
        "stages": trace.stages,
        "hits": trace.shown(block.chunks),
    }


def status_values(engine: Engine) -> dict[str, Any]:
    """The status as the page shows it."""
    status = workspace().status(engine)
    values = asdict(status)
    # A reason that stands first is the most frequent one; objects in JSON have no order.
    values["skipped"] = [[reason, count] for reason, count in status.skipped.items()]
    values["skipped_total"] = sum(status.skipped.values())
    settings = engine.settings
    chosen = {"hyde": settings.hyde, "retrieval": settings.retrieval}
    return {"id": engine.location.id, **chosen, **values}


def _highlighted(file: FileText) -> list[str]:
    """Safe HTML for each line."""
    found = highlight_lines(file.text, file.language)
    return sanitise("\n".join(found)).split("\n") if found else []


def _chunk(chunk: Chunk, trace: Trace) -> dict[str, Any]:
    hit = trace.hit_of(chunk) or {}
    return {
        "id": chunk.id,
        "path": chunk.path,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "language": chunk.language,
        "why": chunk.why,
        "score": hit.get("score"),
        "channels": hit.get("channels", {}),
        "characters": len(chunk.content),
    }
