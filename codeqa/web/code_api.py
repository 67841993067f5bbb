"""What can be looked up in a repository: by a search, by what is typed behind `@`, in its indexed
files as they are now, by the tools of `codeqa.code.tools`, each with an address of its own; and
reviews of issues, made with them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from codeqa.code.tools import TOOLS, Tool, ToolResult
from codeqa.engine import Engine
from codeqa.errors import NotFoundError, UsageError
from codeqa.mentions.completion import KINDS, Kind, MentionCompletion, MentionCoverage
from codeqa.render.html import highlight_lines, sanitise
from codeqa.repositories.files import FileText
from codeqa.review.report import IssueReport
from codeqa.review.reviewer import MOST_CHARACTERS, Reviewer
from codeqa.search.hybrid import Found, search_for_programs
from codeqa.types import HydeMode
from codeqa.web.endpoints import (
    QUESTION_CHARACTERS,
    Clean,
    Endpoints,
    Filled,
    Id,
    Schema,
    Text,
    Truth,
    Values,
    fields_of,
    values_of,
)

LINES_AT_ONCE = 2_000
MOST_ITEMS = 100

files = Endpoints("files", "Files")
endpoints = Endpoints("search", "Search")
tools = Endpoints("tools", "Tools")


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
    guess: Text = ""
    """Lines of code as whoever asks expects them: searched by as a draft is."""


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


@files.route("GET", "/api/complete", {"items": list[MentionCompletion]})
def complete(
    engine: Engine,
    q: Text = "",
    kind: Kind | Literal[""] = "",
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 20,
) -> Values:
    """Files, folders and symbols whose name fits `q`, what stands behind `@` so far, best first;
    only those of a `kind`."""
    return {"items": engine.completion.complete(q, kinds=(kind,) if kind else KINDS, limit=limit)}


@endpoints.route("POST", "/api/mentions", {"mentions": list[MentionCoverage]})
def mentions(engine: Engine, user: str, body: MentionsBody) -> Values:
    """What a question points at with `@`, and how much of that its answer was made from."""
    chunks = engine.conversations.turn(body.turn, user).chunks if body.turn else None
    return {"mentions": engine.completion.coverage(body.text, chunks)}


@tools.route("GET", "/api/tools", {"tools": list[ToolDescription]})
def list_tools() -> Values:
    """What can be looked up in a repository by an agent or a program."""
    return {"tools": [tool.described() for tool in TOOLS.values()]}


@tools.route("POST", "/api/review", IssueReport)
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
    tools.route("POST", f"/api/tools/{tool.name}", ToolResult)(view)


for _tool in TOOLS.values():
    _serve(_tool)


# Files


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


class FileLines(fields_of(FileText, "text")):  # type: ignore[misc]
    lines: list[str]
    """Safe HTML, one piece per line."""


class SomeLines(FileLines):
    start: int
    end: int
    total: int
    """Lines of the whole file."""
    text: str
    """The lines as they are."""


@files.route("GET", "/api/tree", Tree)
def tree(engine: Engine, path: Text = "") -> Values:
    """The folders and files directly in the folder at `path`; empty for the root."""
    path, below, inside = engine.completion.tree(path)
    folders = [{"name": n, "path": f"{path}{n}/", "files": many} for n, many in below.items()]
    found = [{"name": name, "path": f"{path}{name}"} for name in inside]
    return {"path": path, "folders": folders, "files": found}


@files.route("GET", "/api/file", FileLines)
def file(engine: Engine, path: Filled) -> Values:
    """An indexed file, one piece of safe HTML per line."""
    text = engine.files.read(path)
    return values_of(FileLines, text, lines=_highlighted(text))


@files.route("GET", "/api/lines", SomeLines)
def lines(
    engine: Engine,
    path: Filled,
    start: Annotated[int, Field(ge=1, le=999_999_999)] = 1,
    end: Annotated[int, Field(ge=0, le=999_999_999)] = 0,
) -> Values:
    """Some lines of an indexed file, coloured as in the whole; without `end` only the first.

    The answer says which they are: `end` may lie behind the file's, or too far behind `start`.
    """
    end = end or start
    if end < start:
        raise UsageError(f"Line {end:,} lies before line {start:,}.", "Name the first line first.")
    text = engine.files.read(path)
    html = _highlighted(text)
    total = len(html)
    if start > total:
        raise NotFoundError(
            f"The file has {total:,} lines, so there is no line {start:,}.",
            "It may have changed since it was indexed.",
        )
    end = min(end, total, start + LINES_AT_ONCE - 1)
    shown, plain = html[start - 1 : end], "\n".join(text.text.split("\n")[start - 1 : end])
    return values_of(SomeLines, text, start=start, end=end, total=total, lines=shown, text=plain)


def _highlighted(file: FileText) -> list[str]:
    """Safe HTML for each line."""
    found = highlight_lines(file.text, file.language)
    return sanitise("\n".join(found)).split("\n") if found else []
