"""The indexed files of a repository, as they are now: their tree, and their lines."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from codeqa.engine import Engine
from codeqa.errors import NotFoundError, UsageError
from codeqa.render.code import highlight_lines
from codeqa.render.markdown import sanitise
from codeqa.repositories.files import FileText
from codeqa.web.endpoints import Endpoints, values_of
from codeqa.web.schemas import Filled, Schema, Text, Values, fields_of

LINES_AT_ONCE = 2_000

endpoints = Endpoints("files", "Files")


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


@endpoints.route("GET", "/api/tree", Tree)
def tree(engine: Engine, path: Text = "") -> Values:
    """The folders and files directly in the folder at `path`; empty for the root."""
    path, below, inside = engine.completion.tree(path)
    folders = [{"name": n, "path": f"{path}{n}/", "files": many} for n, many in below.items()]
    files = [{"name": name, "path": f"{path}{name}"} for name in inside]
    return {"path": path, "folders": folders, "files": files, "ready": True}


@endpoints.route("GET", "/api/file", FileLines)
def file(engine: Engine, path: Filled) -> Values:
    """An indexed file, one piece of safe HTML per line."""
    text = engine.files.read(path)
    return values_of(FileLines, text, lines=_highlighted(text))


@endpoints.route("GET", "/api/lines", SomeLines)
def lines(
    engine: Engine,
    path: Filled,
    start: Annotated[int, Field(ge=1, le=999_999_999)] = 1,
    end: Annotated[int, Field(ge=0, le=999_999_999)] = 0,
) -> Values:
    """Some lines of an indexed file, coloured as in the whole; without `end` only the first.

    The answer says which they are: `end` may lie behind the file's, or too far behind `start`.
    """
    first, last = start, end or start
    if last < first:
        raise UsageError(f"Line {last:,} lies before line {first:,}.", "Name the first line first.")
    text = engine.files.read(path)
    html = _highlighted(text)
    if first > len(html):
        raise NotFoundError(
            f"The file has {len(html):,} lines, so there is no line {first:,}.",
            "It may have changed since it was indexed.",
        )
    last = min(last, len(html), first + LINES_AT_ONCE - 1)
    return values_of(
        SomeLines,
        text,
        start=first,
        end=last,
        total=len(html),
        lines=html[first - 1 : last],
        text="\n".join(text.text.split("\n")[first - 1 : last]),
    )


def _highlighted(file: FileText) -> list[str]:
    """Safe HTML for each line."""
    found = highlight_lines(file.text, file.language)
    return sanitise("\n".join(found)).split("\n") if found else []
