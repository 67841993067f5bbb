"""Look things up in a repository: search, mentions, tools, indexed files, reviews of issues."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from flask import request
from pydantic import BaseModel, Field

from codeqa.code.first_questions import first_questions
from codeqa.code.tools import TOOLS, Tool, ToolResult
from codeqa.code.tools.reading import defined_in, depth_of
from codeqa.code.tools.references import NameReport, name_at
from codeqa.code.tools.tool import CodeSpan
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
    """May contain filters and mentions, as any question."""
    kind: Text = ""
    language: Text = ""
    path: Text = ""
    """Only paths that begin with this text, or match this pattern."""
    top: Annotated[int, Field(ge=1, le=300)] = 10
    rerank: bool = False
    hyde: HydeMode = "off"
    guess: Text = ""
    """Code as the caller expects it: the search also looks for code like it."""


class MentionsBody(Schema):
    text: Annotated[str, Field(max_length=QUESTION_CHARACTERS)]
    """A question."""


class ReviewBody(Schema):
    title: Text = ""
    body: Annotated[str, Field(max_length=MOST_CHARACTERS)] = ""
    without_model: bool = False
    """Only list the likely files, tests and people."""


@endpoints.route("POST", "/api/search")
def search(engine: Engine, body: SearchBody) -> Values:
    """Search for the units and files that a question is about, best first."""
    if body.rerank or body.hyde != "off" or is_hosted(engine.settings.embedding):
        count_request()
    return search_for_programs(engine.search, **body.model_dump())


@endpoints.route("GET", "/api/complete")
def complete(
    engine: Engine, q: Text = "", limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20
) -> Values:
    """Complete `q`, the text typed after `@`, to files, folders and symbols, best first."""
    return {"items": engine.completion.complete(q, limit)}


@endpoints.route("GET", "/api/first-questions")
def questions(engine: Engine) -> Values:
    """Suggest first questions about names in this repository; none without an index."""
    with suppress(IndexMissingError):
        suggestions = first_questions(engine.tables())
        if len(engine.repositories) > 1:  # the first question is about one repository as a whole
            suggestions = suggestions[1:]
        return {"questions": suggestions}
    return {"questions": ()}


@endpoints.route("POST", "/api/mentions")
def mentions(engine: Engine, body: MentionsBody) -> Values:
    """Resolve the mentions (`@path`, `@name`) in a question."""
    return {"mentions": engine.completion.mentioned(body.text)}


@endpoints.route("GET", "/api/tools")
def list_tools() -> Values:
    """List the tools with which agents and programs look things up in a repository."""
    return {"tools": [tool.described() for tool in TOOLS.values()]}


@endpoints.route("POST", "/api/review")
def review(engine: Engine, body: ReviewBody) -> IssueReport:
    """Review an issue: what the change would take.

    The chosen model searches the code and judges; without one the report lists what the search and
    the git history find.
    """
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
    """List the folders and files directly in the folder at `path`, the root if it is empty."""
    path, file_counts, names = engine.completion.tree(path)
    folders = [
        {"name": name, "path": f"{path}{name}/", "files": count}
        for name, count in file_counts.items()
    ]
    files = [{"name": name, "path": f"{path}{name}"} for name in names]
    return {"path": path, "folders": folders, "files": files}


@endpoints.route("GET", "/api/file")
def file(
    engine: Engine,
    path: Filled,
    start: Annotated[int, Field(ge=1)] = 1,
    end: Annotated[int, Field(ge=0)] = 0,
) -> Values:
    """Return an indexed file, or its lines from `start` to `end`.

    Each of its `lines` is safe HTML. `hosted` is its address at its git host, with `{start}` and
    `{end}` in place of lines, and `on_disk` its path for a user on the server's machine; both are
    empty where there is none.
    """
    source = engine.files.read(path)
    text_lines = source.text.removesuffix("\n").split("\n")[start - 1 : end or None]
    highlighted = highlight_lines("".join(f"{line}\n" for line in text_lines), source.language)
    on_disk = ""
    if leads_here(request.host_url) and not engine.location.snapshot_of:
        on_disk = str(source.on_disk)
    return {
        "path": source.path,
        "language": source.language,
        "changed": source.changed,
        "lines": sanitise("\n".join(highlighted)).split("\n") if highlighted else [],
        "hosted": engine.files.hosted(path),
        "on_disk": on_disk,
    }


@endpoints.route("GET", "/api/outline")
def outline(engine: Engine, path: Filled) -> Values:
    """List the definitions of an indexed file by line, with the number of classes around each."""
    tables = engine.tables()
    path = tables.plain_path(path)
    units = defined_in(tables, path)
    definitions = [dict(CodeSpan.of(unit)) | {"depth": depth_of(unit)} for unit in units]
    return {"path": path, "definitions": definitions}


@endpoints.route("GET", "/api/blame")
def blame(engine: Engine, path: Filled, lines: Filled) -> Values:
    """List the commits that last changed `lines` (`12-20`, at most 400) of an indexed file.

    The list is empty where there is no git history.
    """
    indexed = engine.files.read(path).path
    with suppress(CodeQAError):
        history = TOOLS["history"].call(engine.toolbox, {"path": indexed, "lines": lines})
        return {"commits": [dict(commit) for commit in history.commits]}
    return {"commits": []}


@endpoints.route("GET", "/api/name")
def name(
    engine: Engine, path: Filled, line: Annotated[int, Field(ge=1)], name: Filled
) -> NameReport:
    """Return the definitions of a name in a line of an indexed file, and their uses."""
    return name_at(engine.toolbox, engine.tables().plain_path(path), line, name)
