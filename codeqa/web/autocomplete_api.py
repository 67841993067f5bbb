"""What may be typed behind `@`, what a question mentions, and the tree of files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from codeqa.mentions.completion import KINDS, Kind, MentionCompletions
from codeqa.mentions.coverage import MentionCoverage
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import QUESTION_CHARACTERS, Clean, Id, RepoQuery, Schema, Text, Values
from codeqa.web.security import member_of_request
from codeqa.web.workspace import engine_of

MOST_ITEMS = 100

endpoints = Endpoints("completion", "Files")


class CompleteQuery(RepoQuery):
    q: Text = ""
    """What stands behind `@` so far."""
    kind: Kind | Literal[""] = ""
    """Only places of this kind."""
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20


class TreeQuery(RepoQuery):
    path: Text = ""
    """A folder, empty for the root."""


class TreeFolder(Schema):
    name: str
    path: str
    files: int
    """Indexed files below."""


class TreeFile(Schema):
    name: str
    path: str


class Tree(Schema):
    path: str
    folders: list[TreeFolder]
    files: list[TreeFile]
    ready: bool
    """False while the paths are being read for the first time."""


class MentionsBody(Schema):
    text: Annotated[str, Clean, Field(max_length=QUESTION_CHARACTERS)]
    """A question."""
    turn: Id | None = None
    """The answer whose context is looked at."""


@endpoints.route("GET", "/api/complete", MentionCompletions)
def complete(query: CompleteQuery) -> MentionCompletions:
    """Files, folders and symbols whose name fits what is typed, best first."""
    kinds = (query.kind,) if query.kind else KINDS
    return engine_of(query).completion.complete(query.q, kinds=kinds, limit=query.limit)


@endpoints.route("GET", "/api/tree", Tree)
def tree(query: TreeQuery) -> Values:
    """The folders and files directly in a folder."""
    path, below, inside = engine_of(query).completion.tree(query.path)
    folders = [{"name": n, "path": f"{path}{n}/", "files": many} for n, many in below.items()]
    files = [{"name": name, "path": f"{path}{name}"} for name in inside]
    return {"path": path, "folders": folders, "files": files, "ready": True}


@endpoints.route("POST", "/api/mentions", {"mentions": list[MentionCoverage]}, tag="Questions")
def mentions(query: RepoQuery, body: MentionsBody) -> Values:
    """What a question points at with `@`, and how much of that its answer was made from."""
    engine, user = engine_of(query), member_of_request().user
    chunks = engine.conversations.turn(body.turn, user).chunks if body.turn else None
    return {"mentions": engine.completion.coverage(body.text, chunks)}
