"""What the page asks beside questions: status, files, contexts, repositories."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import Blueprint, Response, jsonify

from codeqa.render import highlight_lines, sanitise
from codeqa.types import Chunk
from codeqa.web.errors import RequestRefusedError
from codeqa.web.examples import example_questions
from codeqa.web.requests import argument, engine_of_request, json_body, text_field, workspace
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.engine import Engine, Trace

SKIPPED_PATHS = 500
"""Paths listed per reason; the count tells how many there are."""

blueprint = Blueprint("api", __name__)


@blueprint.get("/api/status")
def status() -> Response:
    """What the index holds and what is being done to it."""
    return jsonify(status_values(engine_of_request()))


@blueprint.get("/api/skipped")
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
def file() -> Response:
    """An indexed file, one piece of safe HTML per line."""
    text = engine_of_request().files.read(argument("path"))
    lines = highlight_lines(text.text, text.language)
    html = sanitise("\n".join(lines)).split("\n") if lines else []
    return jsonify(
        {"path": text.path, "language": text.language, "changed": text.changed, "lines": html}
    )


@blueprint.get("/api/context/<turn>")
def context(turn: str) -> Response:
    """What an answer was made from: the context, its chunks, and the messages as sent."""
    chat, user = engine_of_request().chat, member_of_request().user
    block, sent = chat.context(turn, user), chat.sent(turn, user)
    trace = chat.trace(turn, user)
    return jsonify(
        {
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
    )


@blueprint.get("/api/examples")
def examples() -> Response:
    """Questions that this repository can answer, for an empty conversation."""
    return jsonify({"questions": example_questions(engine_of_request())})


@blueprint.get("/api/repos")
def repositories() -> Response:
    """The indexed repositories, the one updated last first."""
    from codeqa.doctor import report_repositories
    from codeqa.engine import list_repositories

    space = workspace()
    ids = {str(location.root): location.id for location in list_repositories(space.settings)}
    reports = sorted(report_repositories(space.settings), key=lambda one: -one.updated_at)
    rows = []
    for report in reports:
        if repo := ids.get(report.path):
            rows.append({"id": repo, "open": space.is_open(repo), **asdict(report)})
    current = space.engine().location.id if space.has_current() else ""
    return jsonify({"current": current, "repositories": rows})


@blueprint.post("/api/repos")
def open_repository() -> tuple[Response, int]:
    """Open the repository at `path` and index it behind; its status tells how far that is.

    What the server may read is its owner's to show: others open what is indexed already.
    """
    from codeqa.engine import list_repositories

    path = Path(text_field(json_body(), "path").strip())
    known = list_repositories(workspace().settings)
    if not member_of_request().owner and path not in [location.root for location in known]:
        raise RequestRefusedError(
            403, "Only the first token in CODEQA_TOKEN may open a folder that is not indexed yet."
        )
    engine = workspace().open(path)
    return jsonify(status_values(engine)), 202


@blueprint.get("/health")
def health() -> Response:
    """The server runs."""
    return jsonify({"status": "ok"})


@blueprint.get("/ready")
def ready() -> tuple[Response, int]:
    """Questions can be answered: an index is there, be it complete or being updated."""
    space = workspace()
    if not space.has_current():
        return jsonify({"status": "missing"}), 503
    status = space.status(space.engine())
    return jsonify({"status": status.state}), 200 if status.files else 503


def status_values(engine: Engine) -> dict[str, Any]:
    """The status as the page shows it."""
    status = workspace().status(engine)
    values = asdict(status)
    # A reason that stands first is the most frequent one; objects in JSON have no order.
    values["skipped"] = [[reason, count] for reason, count in status.skipped.items()]
    values["skipped_total"] = sum(status.skipped.values())
    return {"id": engine.location.id, "hyde": engine.settings.hyde, **values}


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
