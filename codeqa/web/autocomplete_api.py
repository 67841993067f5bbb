"""What may be typed behind `@`, what a question mentions, and the tree of files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal, get_args

from pydantic import Field

from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import QUESTION_CHARACTERS, Clean, Id, RepoQuery, Schema, Text, Values
from codeqa.web.users import member_of_request
from codeqa.web.workspace import engine_of

Kind = Literal["file", "folder", "symbol"]
MOST_ITEMS = 100

endpoints = Endpoints("completion", "Files")


class CompleteQuery(RepoQuery):
    q: Text = ""
    """What stands behind `@` so far."""
    kind: Kind | Literal[""] = ""
    """Only places of this kind."""
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20


class Item(Schema):
    kind: Kind
    text: str
    """What is written behind `@`: it stands for this place and no other."""
    label: str
    detail: str
    path: str
    line: int
    end_line: int
    """Lines of a definition, 0 for a whole file and a folder."""
    what: str
    """Kind of a definition, such as `class`."""


class Items(Schema):
    items: list[Item]
    ready: bool
    """False while the names are being read for the first time."""


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


class MentionedPlace(Schema):
    text: str
    """As written, without `@` and quotes."""
    kind: Kind | Literal[""]
    """Empty where nothing in the index is called so."""
    path: str
    line: int
    end_line: int
    places: int
    """Files, folders or definitions that are meant."""
    included: Literal["", "whole", "part", "none"]
    """How much of them was sent; empty without a turn."""
    held: int
    lines: int
    """Lines that were sent, of all that are meant."""


class MentionedPlaces(Schema):
    mentions: list[MentionedPlace]


@endpoints.get("/api/complete", Items)
def complete(query: CompleteQuery) -> Values:
    """Files, folders and symbols whose name fits what is typed, best first."""
    kinds: tuple[Kind, ...] = (query.kind,) if query.kind else get_args(Kind)
    found = engine_of(query).completion.complete(query.q, kinds=kinds, limit=query.limit)
    return {"items": [asdict(place) for place in found.items], "ready": found.ready}


@endpoints.get("/api/tree", Tree)
def tree(query: TreeQuery) -> Values:
    """The folders and files directly in a folder."""
    branch = engine_of(query).completion.tree(query.path)
    if branch is None:
        return {"path": "", "folders": [], "files": [], "ready": False}
    path = branch.path
    folders = [{"name": n, "path": f"{path}{n}/", "files": many} for n, many in branch.folders]
    files = [{"name": name, "path": f"{path}{name}"} for name in branch.files]
    return {"path": path, "folders": folders, "files": files, "ready": True}


@endpoints.post("/api/mentions", MentionedPlaces, tag="Questions")
def mentions(query: RepoQuery, body: MentionsBody) -> Values:
    """What a question points at with `@`, and how much of that its answer was made from."""
    engine, user = engine_of(query), member_of_request().user
    chunks = engine.conversations.turn(body.turn, user).chunks if body.turn else None
    found = engine.completion.coverage(body.text, chunks)
    return {"mentions": [asdict(mention) for mention in found]}
