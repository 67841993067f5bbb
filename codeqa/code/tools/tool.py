"""What a tool is and what it gives: a function with a docstring and annotated arguments, from which
all else follows, and its result, places of the code, commits or paths with a text for a model."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.repositories.files import Files
from codeqa.search.channels import near_path
from codeqa.search.hybrid import Search
from codeqa.store import FileRecord, Tables
from codeqa.types import Unit

LARGEST_TEXT = 12_000
"""Characters of a result's text: about 3,000 tokens, so that a dozen results fit a small window."""
LONGEST_LINE = 300
"""Characters shown of one line; what is longer is data."""
PLACE_OF_UNIT = ("path", "start_line", "end_line", "language", "kind")


class Place(BaseModel, frozen=True):
    """Lines `start_line` to `end_line` of a file; `text` is exactly theirs, or ''."""

    path: str
    start_line: int
    end_line: int
    text: str = ""
    language: str = ""
    name: str = ""
    """The definition that it is, or lies in."""
    kind: str = ""
    commit: str = ""
    """The commit that it is at, where the files of the index are others."""
    note: str = ""
    """What is known of it beside: how sure a reference is, how relevant a hit."""
    times: int = 1
    """How many it stands for: with those on the further lines that `note` tells, or in the file."""

    @classmethod
    def of(cls, unit: Unit, **fields: Any) -> Place:
        """Where `unit` is, without its text; what `fields` say goes before what is known of it."""
        known = {name: getattr(unit, name) for name in PLACE_OF_UNIT}
        return cls(**known | {"name": unit.qualified_name or unit.name} | fields)

    @property
    def location(self) -> str:
        """`path:first-last`, or `path:line`."""
        last = f"-{self.end_line}" if self.end_line != self.start_line else ""
        return f"{self.path}:{self.start_line}{last}"


class Commit(BaseModel, frozen=True):
    """A commit, and the `lines` (`12-20`) that it was the last to change, where that was asked."""

    id: str
    date: str
    """Of the author, YYYY-MM-DD."""
    author: str
    subject: str
    lines: str = ""

    @property
    def line(self) -> str:
        """On one line."""
        return f"{self.id}  {self.date}  {self.author}  {self.subject}"


class Edge(BaseModel, frozen=True):
    """An arrow of a diagram: from the definition `start` to what it calls, uses or inherits."""

    start: str
    end: str
    label: str = ""
    """Words beside the arrow."""


class ToolResult(BaseModel, frozen=True):
    """What a tool found. Which of the lists is filled is the tool's own."""

    summary: str
    """What was done and found, in one short line."""
    text: str
    """The whole of it as a model reads it; at most LARGEST_TEXT characters and a closing line."""
    total: int = 0
    """How many there are, shown or not."""
    unknown: str = ""
    """The name that was asked for, where nothing here is called so."""
    places: tuple[Place, ...] = ()
    commits: tuple[Commit, ...] = ()
    paths: tuple[str, ...] = ()
    edges: tuple[Edge, ...] = ()
    diff: str = ""
    """What changed in the first of the places."""
    completeness: str = ""
    """How sure what was counted is, and what cannot be seen, as sentences."""


def fitting(parts: Iterable[str], apart: str = "\n", room: int = LARGEST_TEXT) -> tuple[str, int]:
    """As many of `parts` from the first on as `room` characters take, joined, and how many they
    are."""
    taken: list[str] = []
    for part in parts:
        room -= len(part) + len(apart)
        if taken and room < 0:
            break
        taken.append(part if room >= 0 else part[:LARGEST_TEXT])
    return apart.join(taken), len(taken)


def numbered(lines: Iterable[str], first: int) -> list[str]:
    """`lines`, the first of which is `first` in its file, each behind its number and a tab."""
    return [f"{n}\t{line[:LONGEST_LINE]}".rstrip() for n, line in enumerate(lines, first)]


def joined_results(results: Sequence[ToolResult]) -> ToolResult:
    """What several calls of a tool found, as one result."""
    text, fitted = fitting([one.text for one in results], "\n\n")
    left = f"\n… and {len(results) - fitted} more: ask for fewer." if fitted < len(results) else ""
    return ToolResult(
        summary="; ".join(one.summary for one in results),
        text=text + left,
        total=sum(one.total for one in results),
        places=tuple(place for one in results[:fitted] for place in one.places),
        edges=tuple(edge for one in results for edge in one.edges),
    )


def by_file(items: Iterable[tuple[str, str]]) -> list[str]:
    """What is told of places, given with their paths; a path stands once, above the first of those
    that follow each other in its file."""
    parts, last = [], ""
    for path, told in items:
        parts.append(f"  {told}" if path == last else f"{path}\n  {told}")
        last = path
    return parts


def list_result(
    summary: str,
    parts: Sequence[str],
    hint: str,
    *,
    total: int | None = None,
    left: int = 0,
    apart: str = "\n",
    told: Sequence[Place] | Sequence[Commit] = (),
    completeness: str = "",
    **values: Any,
) -> ToolResult:
    """A list of `parts` as far as they fit, behind it `hint` where that is not all, and how
    complete it is. `left` are not even among `parts`, and `total` counts where that is other than
    all of these. Of what the parts tell one by one, `told`, the result has what fitted; `values`
    are its other fields."""
    text, shown = fitting(parts, apart)
    missing = len(parts) - shown + left
    more = f"… and {missing:,} more. {hint}" if missing > 0 else ""
    head = f"{summary}:" if summary and text else summary
    if told:
        values["commits" if isinstance(told[0], Commit) else "places"] = tuple(told[:shown])
    return ToolResult(
        summary=summary,
        text="\n".join(filter(None, (head, text, more, completeness))),
        total=len(parts) + left if total is None else total,
        completeness=completeness,
        **values,
    )


MOST_CHARACTERS = 4_096
"""Of one argument."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The parts of an engine that tools work with: one repository and its index."""

    search: Search
    files: Files
    tables: Callable[[], Tables]
    keep_up: Callable[[], str] = str
    """Brings in what has changed on disk; gives a sentence where that takes too long, else ''."""
    with_numbers: bool = True
    """Whether code that a search or a name gives has the numbers of its lines."""

    def files_in(self, path: str) -> list[FileRecord]:
        """Return the manifest rows of the files that `path` selects. Raises NotFoundError, which
        names what is nearest, where there is none."""
        records = self.files.matching(path)
        if not records and path:
            hint = near_path(self.tables(), path) or "list_all(files) shows what there is."
            raise NotFoundError(f"No indexed file matches {path!r}.", hint)
        return records

    @property
    def root(self) -> Path:
        """The repository's folder. Raises NotFoundError where there are several."""
        return self.tables().place_of("")[0]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function over a `Toolbox`, or another subject, under its name, with what it says and
    takes."""

    name: str
    description: str
    arguments: type[BaseModel]
    """Its arguments, each with its type, default and description."""
    function: Callable[..., ToolResult]

    def call(self, subject: object, values: Mapping[str, Any]) -> ToolResult:
        """Its result for `values`; `subject` is what its function takes first.

        Raises UsageError that names the argument that is wrong, and what the function raises.
        """
        try:
            given = self.arguments.model_validate(dict(values))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(map(str, wrong["loc"])) or "arguments"
            hint = f"{wrong['msg']}."
            if wrong["type"] == "string_pattern_mismatch":  # an expression helps nobody
                hint = self.arguments.model_fields[name].description or hint
            if wrong["type"] == "extra_forbidden":
                hint = f"{self.name} has no such argument."
            raise UsageError(f"`{name}` cannot be used.", f"{hint} Call {self.usage}.") from None
        behind = subject.keep_up() if isinstance(subject, Toolbox) else ""
        try:
            result = self.function(subject, **given.model_dump(exclude_unset=True))
        except CodeQAError as error:
            error.hint = " ".join(filter(None, (error.hint, behind)))
            raise
        text = "\n".join(filter(None, (result.text, behind)))
        return result.model_copy(update={"text": text}) if behind else result

    @property
    def usage(self) -> str:
        """How it is called: `grep(pattern, path="", regex=false)`."""
        told = (
            name if field.is_required() else f"{name}={json.dumps(field.default)}"
            for name, field in self.arguments.model_fields.items()
        )  # fmt: skip
        return f"{self.name}({', '.join(told)})"

    def described(self) -> dict[str, Any]:
        """What another program has to know of it."""
        return {"name": self.name, "description": self.description, "arguments": self.schema()}

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        made = self.arguments.model_json_schema()
        # Agents pay for each word; what is wrong a call is told anyway.
        for part in (made, *made.get("properties", {}).values()):
            for said in ("title", "maxLength", "pattern", "additionalProperties"):
                part.pop(said, None)
            if not part.get("default", True):
                del part["default"]
        return made


def declare(function: Callable[..., ToolResult]) -> Tool:
    """`function(subject, …)` as a tool called like it, its docstring as description."""
    kinds = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name: (kinds[name], ... if one.default is one.empty else one.default)
        for name, one in list(inspect.signature(function).parameters.items())[1:]
    }
    title = "".join(part.title() for part in function.__name__.split("_"))
    config = ConfigDict(extra="forbid", str_max_length=MOST_CHARACTERS)
    arguments = create_model(f"{title}Arguments", __config__=config, **fields)
    description = " ".join((inspect.getdoc(function) or "").split())
    return Tool(function.__name__, description, arguments, function)
