"""Declare a tool: an annotated function, whose result is a text for a model with its places."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator

from codeqa.errors import CodeQAError, NotFoundError, UsageError
from codeqa.repositories.files import Files
from codeqa.search.channels import near_path
from codeqa.search.hybrid import Search
from codeqa.store import FileRecord, Tables
from codeqa.text import some_of
from codeqa.types import Unit

LARGEST_TEXT = 12_000
"""Characters of a result's text: about 3,000 tokens, so that a dozen results fit a small window."""
LONGEST_LINE = 300
"""Characters shown of one line; what is longer is data."""
MOST_CHARACTERS = 4_096
"""Most characters of one argument."""
ABSENT = ("", " ", "null", "none", "undefined")
"""Texts that models write for an argument that they mean to leave out."""
LISTED = ("path", "name", "lines")
"""Arguments that may name several things, which some models send as a list."""
PLACE_OF_UNIT = ("path", "start_line", "end_line", "language", "kind")


class CodeSpan(BaseModel, frozen=True):
    """Lines `start_line` to `end_line` of a file; `text` is exactly theirs, or ''."""

    path: str
    start_line: int
    end_line: int
    text: str = ""
    language: str = ""
    name: str = ""
    """Name of the definition at these lines, or around them."""
    kind: str = ""
    commit: str = ""
    """Commit of the text, if it is not that of the index."""
    note: str = ""
    """Details: how sure a reference is, how relevant a hit."""
    times: int = 1
    """Number of references that it stands for, with those on the lines named in `note`."""

    @classmethod
    def of(cls, unit: Unit, **fields: Any) -> CodeSpan:
        """Return the span of `unit` without its text; `fields` replace those of the unit."""
        own = {name: getattr(unit, name) for name in PLACE_OF_UNIT}
        return cls(**own | {"name": unit.qualified_name or unit.name} | fields)

    @property
    def location(self) -> str:
        """Return `path:first-last`, or `path:line`."""
        last = f"-{self.end_line}" if self.end_line != self.start_line else ""
        return f"{self.path}:{self.start_line}{last}"


class Commit(BaseModel, frozen=True):
    """A commit, and for blame the `lines` (`12-20`) that it was the last to change."""

    id: str
    date: str
    """Date of the author, YYYY-MM-DD."""
    author: str
    subject: str
    lines: str = ""

    @property
    def line(self) -> str:
        """Return it as one line."""
        return f"{self.id}  {self.date}  {self.author}  {self.subject}"


class Arrow(BaseModel, frozen=True):
    """An arrow in a diagram, from the definition `start` to one that it calls, uses or inherits."""

    start: str
    end: str
    label: str = ""
    """Words beside the arrow."""


class ToolResult(BaseModel, frozen=True):
    """The result of a tool, which fills some of the lists."""

    summary: str
    """One short line."""
    text: str
    """The whole result for a model; at most LARGEST_TEXT characters and a closing line."""
    total: int = 0
    """Number of results, listed or not."""
    unknown: str = ""
    """The name in the arguments, if nothing here has it."""
    places: tuple[CodeSpan, ...] = ()
    commits: tuple[Commit, ...] = ()
    paths: tuple[str, ...] = ()
    edges: tuple[Arrow, ...] = ()
    diff: str = ""
    """The diffs of the first places."""
    completeness: str = ""
    """Sentences that say how sure the count is and what it cannot see."""


def fitting(parts: Iterable[str], apart: str = "\n", room: int = LARGEST_TEXT) -> tuple[str, int]:
    """Return the first of `parts` that fit `room` characters, joined, and their number."""
    first: list[str] = []
    for part in parts:
        room -= len(part) + len(apart)
        if first and room < 0:
            break
        first.append(part if room >= 0 else part[:LARGEST_TEXT])
    return apart.join(first), len(first)


def numbered(lines: Iterable[str], first: int) -> list[str]:
    """Return `lines`, each after its number and a tab; the first one is line `first`."""
    return [f"{n}\t{line[:LONGEST_LINE]}".rstrip() for n, line in enumerate(lines, first)]


def joined_results(results: Sequence[ToolResult]) -> ToolResult:
    """Return the results of several calls of a tool as one."""
    text, fitted = fitting([result.text for result in results], "\n\n")
    if fitted < len(results):
        text += f"\n… and {len(results) - fitted} more: ask for fewer."
    return ToolResult(
        summary="; ".join(result.summary for result in results),
        text=text,
        total=sum(result.total for result in results),
        places=tuple(span for result in results[:fitted] for span in result.places),
        edges=tuple(edge for result in results for edge in result.edges),
    )


def by_file(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return the texts of (path, text), the first of each run in a file below its path."""
    parts, last = [], ""
    for path, text in items:
        parts.append(f"  {text}" if path == last else f"{path}\n  {text}")
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
    items: Sequence[CodeSpan] | Sequence[Commit] = (),
    completeness: str = "",
    **fields: Any,
) -> ToolResult:
    """Return a list of the `parts` that fit, and `hint` where some do not.

    `left` further ones are not among `parts`; `total` is by default both together. `items` are the
    places or commits of the parts, one each; those that fit enter the result, with `fields`.
    """
    text, fitted = fitting(parts, apart)
    missing = len(parts) - fitted + left
    more = f"… and {missing:,} more. {hint}" if missing > 0 else ""
    head = f"{summary}:" if summary and text else summary
    if items:
        fields["commits" if isinstance(items[0], Commit) else "places"] = tuple(items[:fitted])
    return ToolResult(
        summary=summary,
        text="\n".join(filter(None, (head, text, more, completeness))),
        total=len(parts) + left if total is None else total,
        completeness=completeness,
        **fields,
    )


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The parts of an engine that tools use: one repository and its index."""

    search: Search
    files: Files
    tables: Callable[[], Tables]

    def update_index(self) -> str:
        """Index changes on disk; return a sentence for the user if that takes too long, else ''."""
        return self.search.freshness.before_search()

    def files_in(self, path: str) -> list[FileRecord]:
        """Return the manifest rows of the files that `path` selects. Raises NotFoundError."""
        records = self.files.matching(path)
        if not records and path:
            hint = near_path(self.tables(), path) or "list_all(files) lists all files."
            raise NotFoundError(f"No indexed file matches {path!r}.", hint)
        return records

    @property
    def root(self) -> Path:
        """Return the repository's folder. Raises NotFoundError where there are several."""
        return self.tables().place_of("")[0]


class Arguments(BaseModel):
    """The arguments of a tool, read as models and the programs around them send them."""

    model_config = ConfigDict(
        extra="allow", str_max_length=MOST_CHARACTERS, coerce_numbers_to_str=True
    )

    @model_validator(mode="before")
    @classmethod
    def _meant(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Take a list as its items, and leave out what stands for nothing."""
        meant = {}
        for name, value in values.items():
            while isinstance(value, list) and len(value) < 2:
                value = value[0] if value else None
            if isinstance(value, list | dict) and name in LISTED:
                items = value.values() if isinstance(value, dict) else value
                value = ", ".join(str(item) for item in items if not isinstance(item, list | dict))
            field = cls.model_fields.get(name)
            absent = () if field and field.is_required() else ABSENT
            is_absent = value in (None, {}) or (isinstance(value, str) and value.lower() in absent)
            if not is_absent:
                meant[name] = value
        return meant


@dataclass(frozen=True, slots=True)
class Tool:
    """A function over a `Toolbox`, or another subject, with its description and arguments."""

    name: str
    description: str
    arguments: type[Arguments]
    """Type, default and description of each argument."""
    function: Callable[..., ToolResult]

    def call(self, subject: object, values: Mapping[str, Any]) -> ToolResult:
        """Return the result for a subject and arguments. Raises UsageError for a wrong argument."""
        try:
            arguments = self.arguments.model_validate(dict(values))
        except ValidationError as error:
            wrong = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(map(str, wrong["loc"])) or "arguments"
            hint = f"{wrong['msg']}."
            if wrong["type"] == "string_pattern_mismatch":  # a regular expression helps no user
                hint = self.arguments.model_fields[name].description or hint
            if wrong["type"] == "missing":
                raise UsageError(f"`{name}` is missing.", f"Call {self.usage}.") from None
            raise UsageError(f"`{name}` cannot be used.", f"{hint} Call {self.usage}.") from None
        unknown = [name[:LONGEST_LINE] for name in arguments.model_extra or ()]
        warning = f"Ignored: {some_of(unknown, 5)}. Call {self.usage}." if unknown else ""
        if isinstance(subject, Toolbox):
            warning = f"{warning}\n{subject.update_index()}".strip()
        values = arguments.model_dump(exclude_unset=True, include={*self.arguments.model_fields})
        try:
            result = self.function(subject, **values)
        except CodeQAError as error:
            error.hint = " ".join(filter(None, (error.hint, warning)))
            raise
        text = "\n".join(filter(None, (result.text, warning)))
        return result.model_copy(update={"text": text}) if warning else result

    @property
    def usage(self) -> str:
        """Return how it is called: `grep(pattern, path="", regex=false)`."""
        arguments = []
        for name, field in self.arguments.model_fields.items():
            default = "" if field.is_required() else f"={json.dumps(field.default)}"
            arguments.append(name + default)
        return f"{self.name}({', '.join(arguments)})"

    def described(self) -> dict[str, Any]:
        """Return its description for another program."""
        return {"name": self.name, "description": self.description, "arguments": self.schema()}

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        schema = self.arguments.model_json_schema()
        # Agents pay for each word, and a wrong call is explained anyway.
        for part in (schema, *schema.get("properties", {}).values()):
            for key in ("title", "maxLength", "pattern", "additionalProperties"):
                part.pop(key, None)
            if not part.get("default", True):
                del part["default"]
        return schema


def declare(function: Callable[..., ToolResult]) -> Tool:
    """Return `function(subject, …)` as a tool of its name, with its docstring as description."""
    types = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(function).parameters.items())[1:]:
        required = parameter.default is parameter.empty
        fields[name] = (types[name], ... if required else parameter.default)
    title = "".join(part.title() for part in function.__name__.split("_"))
    arguments = create_model(f"{title}Arguments", __base__=Arguments, **fields)
    description = " ".join((inspect.getdoc(function) or "").split())
    return Tool(function.__name__, description, arguments, function)
