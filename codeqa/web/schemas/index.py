"""The index, its repositories and files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from codeqa.web.schemas.base import (
    Filled,
    Model,
    RepoQuery,
)


class FileQuery(RepoQuery):
    path: Filled
    """Relative to the repository's root, with `/`."""


class LinesQuery(FileQuery):
    start: Annotated[int, Field(ge=1, le=999_999_999)] = 1
    end: Annotated[int, Field(ge=0, le=999_999_999)] = 0
    """0 stands for `start`."""


class ProgressValues(Model):
    phase: str
    done: int
    total: int
    detail: str


class Status(Model):
    id: str
    hyde: str
    retrieval: str
    """What the settings say of questions without `@codebase`: `explicit` or `auto`."""
    repository: str
    name: str
    state: Literal["missing", "indexing", "ready", "refining", "failed"]
    files: int
    units: int
    references: int
    embedded: int
    embedding: str
    skipped: list[tuple[str, int]]
    """Reason and number of files, the most frequent first."""
    skipped_total: int
    updated_at: float
    progress: ProgressValues | None
    error: str


class SkippedGroup(Model):
    reason: str
    count: int
    paths: list[str]


class SkippedFiles(Model):
    total: int
    groups: list[SkippedGroup]


class FileLines(Model):
    path: str
    language: str
    changed: bool
    """The file differs from what was indexed."""
    lines: list[str]
    """Safe HTML, one piece per line."""


class SomeLines(FileLines):
    start: int
    end: int
    total: int
    """Lines of the whole file."""
    text: str
    """The lines as they are."""


class Examples(Model):
    questions: list[str]


class Repository(Model):
    id: str
    open: bool
    name: str
    path: str
    state: str
    files: int
    units: int
    references: int
    bytes_on_disk: int
    updated_at: float
    problem: str


class Repositories(Model):
    current: str
    repositories: list[Repository]


class PathBody(Model):
    path: Filled
    """Full path of a folder; `~` stands for the home folder of who runs the server."""
