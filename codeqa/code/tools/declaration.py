"""A tool is a function with a docstring and annotated arguments; all else follows from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from codeqa.code.tools.results import ToolResult
from codeqa.errors import UsageError
from codeqa.repositories.files import Files
from codeqa.search import Search
from codeqa.store import Tables

MOST_CHARACTERS = 4_096
"""Of one argument."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The parts of an engine that tools work with: one repository and its index."""

    search: Search
    files: Files
    tables: Callable[[], Tables]

    @property
    def root(self) -> Path:
        """The repository's folder. Raises NotFoundError where there are several."""
        return self.tables().place_of("")[0]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function over a `Toolbox`, or another subject, under its name, with what it says, takes
    and gives."""

    name: str
    description: str
    arguments: type[BaseModel]
    """Its arguments, each with its type, default and description."""
    function: Callable[..., ToolResult]
    result: type[ToolResult] = ToolResult

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
            raise UsageError(f"`{name}` cannot be used.", hint) from None
        return self.function(
            subject, **{name: getattr(given, name) for name in given.model_fields_set}
        )

    def described(self) -> dict[str, Any]:
        """What another program has to know of it."""
        return {"name": self.name, "description": self.description, "arguments": self.schema()}

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        made = self.arguments.model_json_schema()
        for part in (made, *made.get("properties", {}).values()):
            part.pop("title", None)
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
    return Tool(function.__name__, description, arguments, function, kinds["return"])
