"""What can be looked up: by a search, by what is typed behind `@`, by the tools of
`codeqa.code.tools`, each with an address of its own; and reviews of issues, made with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from codeqa.code.tools import TOOLS, Tool, ToolResult
from codeqa.engine import Engine
from codeqa.mentions.completion import KINDS, Kind, MentionCompletions
from codeqa.mentions.coverage import MentionCoverage
from codeqa.review import MOST_CHARACTERS, IssueReport, Reviewer
from codeqa.search.values import Found, search_for_programs
from codeqa.types import HydeMode
from codeqa.web.endpoints import Endpoints
from codeqa.web.schemas import QUESTION_CHARACTERS, Clean, Id, Schema, Text, Truth, Values

MOST_ITEMS = 100

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


class MentionsBody(Schema):
    text: Annotated[str, Clean, Field(max_length=QUESTION_CHARACTERS)]
    """A question."""
    turn: Id | None = None
    """The answer whose context is looked at."""


class ToolDescription(Schema):
    name: str
    description: str
    arguments: Values
    """JSON Schema of the body of POST /api/tools/{name}."""


class ReviewBody(Schema):
    title: Text = ""
    body: Annotated[str, Clean, Field(max_length=MOST_CHARACTERS)] = ""
    without_model: Truth = False
    """Only the likely files, tests and people."""


@endpoints.route("POST", "/api/search", Found)
def search(engine: Engine, body: SearchBody) -> Found:
    """The units and files that a question is about, the best first."""
    return search_for_programs(engine.search, engine.tables(), **body.model_dump())


@endpoints.route("GET", "/api/complete", MentionCompletions, tag="Files")
def complete(
    engine: Engine,
    q: Text = "",
    kind: Kind | Literal[""] = "",
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20,
) -> MentionCompletions:
    """Files, folders and symbols whose name fits `q`, what stands behind `@` so far, best first;
    only those of a `kind`."""
    return engine.completion.complete(q, kinds=(kind,) if kind else KINDS, limit=limit)


@endpoints.route("POST", "/api/mentions", {"mentions": list[MentionCoverage]}, tag="Questions")
def mentions(engine: Engine, user: str, body: MentionsBody) -> Values:
    """What a question points at with `@`, and how much of that its answer was made from."""
    chunks = engine.conversations.turn(body.turn, user).chunks if body.turn else None
    return {"mentions": engine.completion.coverage(body.text, chunks)}


@endpoints.route("GET", "/api/tools", {"tools": list[ToolDescription]}, tag="Tools")
def list_tools() -> Values:
    """What can be looked up in a repository by an agent or a program."""
    return {"tools": [tool.described() for tool in TOOLS.values()]}


@endpoints.route("POST", "/api/review", IssueReport, tag="Tools")
def review(engine: Engine, body: ReviewBody) -> IssueReport:
    """What an issue takes: by the chosen model, which searches the code, or without one what the
    search and the history say."""
    model = None if body.without_model else engine.models.answer_model()
    reviewer = Reviewer(engine.toolbox, model, engine.settings.config_dir)
    return reviewer.report(body.title, body.body)


def _view(tool: Tool) -> Callable[..., ToolResult]:
    def view(engine: Engine, body: BaseModel) -> ToolResult:
        return tool.call(engine.toolbox, body.model_dump(exclude_unset=True))

    view.__name__, view.__doc__ = tool.name, tool.description
    view.__annotations__["body"] = tool.arguments
    return view


for _tool in TOOLS.values():
    endpoints.route("POST", f"/api/tools/{_tool.name}", ToolResult, tag="Tools")(_view(_tool))
