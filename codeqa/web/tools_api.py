"""The tools of `codeqa.tools` over HTTP: what there is, and an address for each."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel

from codeqa.tools import TOOLS, Tool, ToolResult
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import RepoQuery, Schema, Values
from codeqa.web.workspace import engine_of

endpoints = Endpoints("tools", "Tools")


class ToolDescription(Schema):
    name: str
    description: str
    arguments: Values
    """JSON Schema of the body of POST /api/tools/{name}."""


class ToolDescriptions(Schema):
    tools: list[ToolDescription]


@endpoints.route("GET", "/api/tools", ToolDescriptions, errors=())
def list_tools() -> Values:
    """What can be looked up in a repository by an agent or a program."""
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "arguments": tool.schema()}
            for tool in TOOLS.values()
        ]
    }


def _view(tool: Tool) -> Callable[..., Values]:
    def view(query: RepoQuery, body: BaseModel) -> Values:
        return tool.call(engine_of(query).toolbox, body.model_dump(exclude_unset=True)).model_dump()

    view.__name__, view.__doc__ = tool.name, tool.description
    view.__annotations__ = {"query": RepoQuery, "body": tool.arguments}
    return view


for _tool in TOOLS.values():
    endpoints.route("POST", f"/api/tools/{_tool.name}", ToolResult)(_view(_tool))
