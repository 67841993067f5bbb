"""What can be looked up in a repository: by a search, by what is typed behind `@`, in its indexed
files as they are now, by the tools of `codeqa.code.tools`, each with an address of its own; and
reviews of issues, made with them."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from flask import request
from pydantic import BaseModel, Field

from codeqa.code.first_questions import first_questions
from codeqa.code.tools import TOOLS, Tool, ToolResult
from codeqa.code.tools.edges import NameReport, name_at
from codeqa.code.tools.reading import defined_in, depth_of
from codeqa.code.tools.tool import Place
from codeqa.embeddings.registry import is_hosted
from codeqa.engine import Engine
from codeqa.errors import CodeQAError, IndexMissingError
from codeqa.hosts import leads_here
from codeqa.render import highlight_lines, sanitise
from codeqa.review.report import IssueReport
from codeqa.review.reviewer import MOST_CHARACTERS, Reviewer
from codeqa.search.hybrid import search_for_programs
from codeqa.types import HydeMode
from codeqa.web.endpoints import QUESTION_CHARACTERS, Endpoints, Filled, Schema, Text, Values
from codeqa.web.security import count_request

MOST_ITEMS = 100

endpoints = Endpoints("code", __name__)


class SearchBody(Schema):
    question: Annotated[str, Field(max_length=QUESTION_CHARACTERS, pattern=r"\S")]
    """May hold filters and mentions, as any question."""
    kind: Text = ""
    language: Text = ""
    path: Text = ""
    """Only paths that begin so, or match this pattern."""
    top: Annotated[int, Field(ge=1, le=300)] = 10
    rerank: bool = False
    hyde: HydeMode = "off"
    guess: Text = ""
    """Lines of code as whoever asks expects them: searched by as a draft is."""


class MentionsBody(Schema):
    text: Annotated[str, Field(max_length=QUESTION_CHARACTERS)]
    """A question."""


class ReviewBody(Schema):
    title: Text = ""
    body: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    without_model: bool = False
    """Only the likely files, tests and people."""


@endpoints.route("POST", "/api/search")
def search(engine: Engine, body: SearchBody) -> Values:
    """The units and files that a question is about, the best first."""
    if body.rerank or body.hyde != "off" or is_hosted(engine.settings.embedding):
        count_request()
    return search_for_programs(engine.search, **body.model_dump())


@endpoints.route("GET", "/api/complete")
def complete(
    engine: Engine, q: Text = "", limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20
) -> Values:
    """Files, folders and symbols whose name fits `q`, what stands behind `@` so far, best first."""
    return {"items": engine.completion.complete(q, limit)}


@endpoints.route("GET", "/api/first-questions")
def questions(engine: Engine) -> Values:
    """Questions to begin with, about what this repository itself names; none without an index."""
    several = len(engine.repositories) > 1  # which are nothing as a whole
    with suppress(IndexMissingError):
        return {"questions": first_questions(engine.tables())[several:]}
    return {"questions": ()}


@endpoints.route("POST", "/api/mentions")
def mentions(engine: Engine, body: MentionsBody) -> Values:
    """What a question points at with `@`."""
    return {"mentions": engine.completion.mentioned(body.text)}


@endpoints.route("GET", "/api/tools")
def list_tools() -> Values:
    """What can be looked up in a repository by an agent or a program."""
    return {"tools": [tool.described() for tool in TOOLS.values()]}


@endpoints.route("POST", "/api/review")
def review(engine: Engine, body: ReviewBody) -> IssueReport:
    """What an issue takes: by the chosen model, which searches the code, or without one what the
    search and the history say."""
    model = None if body.without_model else engine.models.answer_model()
    reviewer = Reviewer(engine.toolbox, model, engine.settings.config_dir)
    return reviewer.report(body.title, body.body)


def _serve(tool: Tool) -> None:
    def view(engine: Engine, body: BaseModel) -> ToolResult:
        return tool.call(engine.toolbox, body.model_dump(exclude_unset=True))

    view.__name__, view.__doc__ = tool.name, tool.description
    view.__annotations__["body"] = tool.arguments
    endpoints.route("POST", f"/api/tools/{tool.name}")(view)


for _tool in TOOLS.values():
    _serve(_tool)


# Files


@endpoints.route("GET", "/api/tree")
def tree(engine: Engine, path: Text = "") -> Values:
    """The folders and files directly in the folder at `path`; empty for the root."""
    path, below, inside = engine.completion.tree(path)
    folders = [{"name": n, "path": f"{path}{n}/", "files": many} for n, many in below.items()]
    found = [{"name": name, "path": f"{path}{name}"} for name in inside]
    return {"path": path, "folders": folders, "files": found}


@endpoints.route("GET", "/api/file")
def file(
    engine: Engine,
    path: Filled,
    start: Annotated[int, Field(ge=1)] = 1,
    end: Annotated[int, Field(ge=0)] = 0,
) -> Values:
    """An indexed file, or its lines from `start` to `end`; of its `lines` each is one piece of safe
    HTML. `hosted` is its address at the git host that it came from, with `{start}` and `{end}` for
    lines, and `on_disk` where it lies, for who is on this machine; '' where there is none."""
    read = engine.files.read(path)
    shown = read.text.removesuffix("\n").split("\n")[start - 1 : end or None]
    found = highlight_lines("".join(f"{line}\n" for line in shown), read.language)
    lines = sanitise("\n".join(found)).split("\n") if found else []
    here = leads_here(request.host_url) and not engine.location.snapshot_of
    values = {"path": read.path, "language": read.language, "changed": read.changed, "lines": lines}
    return values | {"hosted": engine.files.hosted(path), "on_disk": str(read.on_disk) * here}


@endpoints.route("GET", "/api/outline")
def outline(engine: Engine, path: Filled) -> Values:
    """What an indexed file defines, by line; `depth` is how many classes that lies in."""
    tables = engine.tables()
    path = tables.plain_path(path)
    units = defined_in(tables, path)
    told = [{**dict(Place.of(unit)), "depth": depth_of(unit)} for unit in units]
    return {"path": path, "definitions": told}


@endpoints.route("GET", "/api/blame")
def blame(engine: Engine, path: Filled, lines: Filled) -> Values:
    """Which commits changed `lines` (`12-20`, at most 400) of an indexed file last; none where
    there is no history."""
    indexed = engine.files.read(path).path
    with suppress(CodeQAError):
        found = TOOLS["history"].call(engine.toolbox, {"path": indexed, "lines": lines})
        return {"commits": [dict(one) for one in found.commits]}
    return {"commits": []}


@endpoints.route("GET", "/api/name")
def name(
    engine: Engine, path: Filled, line: Annotated[int, Field(ge=1)], name: Filled
) -> NameReport:
    """What a name in a line of an indexed file means, and where that is used."""
    return name_at(engine.toolbox, engine.tables().plain_path(path), line, name)
