"""The search over HTTP, and how the terminal of this machine's user knows its server."""

from __future__ import annotations

from typing import Annotated

from flask import current_app, request
from pydantic import Field

from codeqa.hosts import is_loopback
from codeqa.search.values import Found, search_for_programs
from codeqa.types import HydeMode
from codeqa.web.endpoints import Endpoints
from codeqa.web.errors import RequestRefusedError
from codeqa.web.running import proof
from codeqa.web.schemas import (
    QUESTION_CHARACTERS,
    Clean,
    Id,
    RepoQuery,
    Schema,
    Text,
    Truth,
    Values,
)
from codeqa.web.security import TERMINAL_TOKEN
from codeqa.web.workspace import engine_of

endpoints = Endpoints("search", "Search")


class SearchBody(Schema):
    question: Annotated[str, Field(max_length=QUESTION_CHARACTERS, pattern=r"\S"), Clean]
    """May hold filters and mentions, as any question."""
    kind: Text = ""
    language: Text = ""
    path: Text = ""
    """Only paths that begin so, or match this pattern."""
    top: Annotated[int, Field(ge=1, le=300)] = 10
    rerank: Truth = False
    hyde: HydeMode = "off"


@endpoints.route("POST", "/api/search", Found)
def search(query: RepoQuery, body: SearchBody) -> Found:
    """The units and files that a question is about, the best first."""
    engine = engine_of(query)
    return search_for_programs(engine.search, engine.tables(), **body.model_dump())


class Challenge(Schema):
    challenge: Id


@endpoints.route("POST", "/api/terminal/hello", {"proof": str}, tag="Server")
def hello(body: Challenge) -> Values:
    """Proves that this is the server that it is taken for, before a terminal sends its token."""
    if not is_loopback(request.remote_addr or ""):
        raise RequestRefusedError(403, "Ask it on this machine.")
    return {"proof": proof(current_app.config[TERMINAL_TOKEN], body.challenge)}
