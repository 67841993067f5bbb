"""The tools of `codeqa.code.tools` over HTTP: what there is, and an address for each; and reviews
of issues, which are made with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import BaseModel, Field

from codeqa.code.tools import TOOLS, Tool, ToolResult
from codeqa.review import MOST_CHARACTERS, IssueReport, Reviewer
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import Clean, RepoQuery, Schema, Text, Truth, Values
from codeqa.web.workspace import engine_of

endpoints = Endpoints("tools", "Tools")


class ToolDescription(Schema):
    name: str
    description: str
    arguments: Values
    """JSON Schema of the body of POST /api/tools/{name}."""


@endpoints.route("GET", "/api/tools", {"tools": list[ToolDescription]})
def list_tools() -> Values:
    """What can be looked up in a repository by an agent or a program."""
    return {"tools": [tool.described() for tool in TOOLS.values()]}


class ReviewBody(Schema):
    title: Text = ""
    body: Annotated[str, Clean, Field(max_length=MOST_CHARACTERS)] = ""
    without_model: Truth = False
    """Only the likely files, tests and people."""


@endpoints.route("POST", "/api/review", IssueReport)
def review(query: RepoQuery, body: ReviewBody) -> Values:
    """What an issue takes: by the chosen model, which searches the code, or without one what the
    search and the history say."""
    engine = engine_of(query)
    model = None if body.without_model else engine.models.answer_model()
    reviewer = Reviewer(engine.toolbox, model, engine.settings.config_dir)
    return reviewer.report(body.title, body.body).model_dump()


def _view(tool: Tool) -> Callable[..., Values]:
    def view(query: RepoQuery, body: BaseModel) -> Values:
        return tool.call(engine_of(query).toolbox, body.model_dump(exclude_unset=True)).model_dump()

    view.__name__, view.__doc__ = tool.name, tool.description
    view.__annotations__ = {"query": RepoQuery, "body": tool.arguments}
    return view


for _tool in TOOLS.values():
    endpoints.route("POST", f"/api/tools/{_tool.name}", ToolResult)(_view(_tool))
