"""What may be typed behind `@`, what a question mentions, and the tree of files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal, get_args

from flask import Blueprint, Response, jsonify
from pydantic import Field

from codeqa.web.openapi import ENGINE, described
from codeqa.web.requests import engine_of_request, read_body, read_query
from codeqa.web.schemas import QUESTION_CHARACTERS, Clean, Id, Model, RepoQuery, Text
from codeqa.web.users import member_of_request

Kind = Literal["file", "folder", "symbol"]
MOST_ITEMS = 100

blueprint = Blueprint("completion", __name__)


class CompleteQuery(RepoQuery):
    q: Text = ""
    """What stands behind `@` so far."""
    kind: Kind | Literal[""] = ""
    """Only places of this kind."""
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20


class Item(Model):
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


class Items(Model):
    items: list[Item]
    ready: bool
    """False while the names are being read for the first time."""


class TreeQuery(RepoQuery):
    path: Text = ""
    """A folder, empty for the root."""


class TreeFolder(Model):
    name: str
    path: str
    files: int
    """Indexed files below."""


class TreeFile(Model):
    name: str
    path: str


class Tree(Model):
    path: str
    folders: list[TreeFolder]
    files: list[TreeFile]
    ready: bool
    """False while the paths are being read for the first time."""


class MentionsBody(Model):
    text: Annotated[str, Clean, Field(max_length=QUESTION_CHARACTERS)]
    """A question."""
    turn: Id | None = None
    """The answer whose context is looked at."""


class MentionedPlace(Model):
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


class MentionedPlaces(Model):
    mentions: list[MentionedPlace]


@blueprint.get("/api/complete")
@described("Files", Items, query=CompleteQuery, errors=ENGINE)
def complete() -> Response:
    """Files, folders and symbols whose name fits what is typed, best first."""
    wanted = read_query(CompleteQuery)
    kinds: tuple[Kind, ...] = (wanted.kind,) if wanted.kind else get_args(Kind)
    completer = engine_of_request().completion
    found = completer.complete(wanted.q, kinds=kinds, limit=wanted.limit)
    return jsonify({"items": [asdict(place) for place in found.items], "ready": found.ready})


@blueprint.get("/api/tree")
@described("Files", Tree, query=TreeQuery, errors=ENGINE)
def tree() -> Response:
    """The folders and files directly in a folder."""
    branch = engine_of_request().completion.tree(read_query(TreeQuery).path)
    if branch is None:
        return jsonify({"path": "", "folders": [], "files": [], "ready": False})
    path = branch.path
    folders = [{"name": n, "path": f"{path}{n}/", "files": many} for n, many in branch.folders]
    files = [{"name": name, "path": f"{path}{name}"} for name in branch.files]
    return jsonify({"path": path, "folders": folders, "files": files, "ready": True})


@blueprint.post("/api/mentions")
@described("Questions", MentionedPlaces, body=MentionsBody, query=RepoQuery, errors=ENGINE)
def mentions() -> Response:
    """What a question points at with `@`, and how much of that its answer was made from."""
    body = read_body(MentionsBody)
    engine, user = engine_of_request(), member_of_request().user
    chunks = engine.chat.context(body.turn, user).chunks if body.turn else None
    found = engine.completion.coverage(body.text, chunks)
    return jsonify({"mentions": [asdict(mention) for mention in found]})
