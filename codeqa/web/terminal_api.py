"""What the terminal has a running server do, so that it need not load everything itself.

Only who can read the server's file in the data folder gets here (`codeqa/running.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from flask import Response, current_app

from codeqa.cli.repos import choose_repositories
from codeqa.cli.work import work
from codeqa.errors import CodeQAError, NotFoundError
from codeqa.running import proof
from codeqa.store.joint import TOGETHER
from codeqa.types import Events
from codeqa.web.endpoints import ENGINE, Endpoints
from codeqa.web.schemas import Id, Schema, Values
from codeqa.web.security import TERMINAL_TOKEN
from codeqa.web.workspace import reader_gone, workspace

endpoints = Endpoints("terminal", "Terminal")


class Challenge(Schema):
    challenge: Id


class Proof(Schema):
    proof: str


class Work(Schema):
    name: str
    """`ask`, `search` or the name of a tool."""
    values: Values
    repo: str | list[str] | None = None
    """As given behind `--repo`, once or several times."""
    folder: str
    """The working directory of the terminal."""


@endpoints.route("POST", "/api/terminal/hello", Proof, errors=())
def hello(body: Challenge) -> Values:
    """Proves that this is the server that it is taken for."""
    return {"proof": proof(current_app.config[TERMINAL_TOKEN], body.challenge)}


@endpoints.route("POST", "/api/terminal/run", "application/x-ndjson", errors=(401, *ENGINE))
def run(body: Work) -> Response:
    """The work of a command of `codeqa`, as events, a line of JSON each; the last is `end`.

    It ends when the terminal goes away: nobody could come back to it. 404 for a repository that is
    not open here.
    """
    space = workspace()
    several, values, notice = choose_repositories(
        space.settings, body.repo, body.values, Path(body.folder)
    )
    if not any(space.is_open(one.id) for one in several) or (
        space.prefers and body.values.get("use_model")
    ):
        raise NotFoundError("That is not answered here.", "Ask without this server.")
    gone = reader_gone()
    events = work(
        space.engine(TOGETHER.join(one.id for one in several)),
        body.name,
        values,
        lambda: space.closing.is_set() or gone(),
    )
    return Response(_lines(notice, events), mimetype="application/x-ndjson")


def _lines(notice: str, events: Events) -> Iterator[str]:
    yield _line("repository", {"notice": notice})
    with closing(events):
        try:
            yield from (_line(event.kind, event.data) for event in events)
        except CodeQAError as error:
            yield _line("error", error.as_data())
    yield _line("end", {})


def _line(kind: str, data: Mapping[str, Any]) -> str:
    return json.dumps({"kind": kind, "data": data}) + "\n"
