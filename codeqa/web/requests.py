"""What clients send, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from flask import current_app, request
from pydantic import BaseModel, ValidationError

from codeqa.engine import Engine
from codeqa.errors import UsageError
from codeqa.web.errors import FieldError, RequestRefusedError
from codeqa.web.schemas import RepoQuery
from codeqa.web.workspace import Workspace


def workspace() -> Workspace:
    """The workspace of the application that serves this request."""
    return cast(Workspace, current_app.extensions["codeqa"])


def engine_of(query: RepoQuery) -> Engine:
    """The engine of the repository that a request names, else the current one."""
    return workspace().engine(query.repo)


def json_body() -> Mapping[str, Any]:
    """The body, a JSON object. Raises RequestRefusedError (415) or UsageError."""
    if not request.is_json:
        # A form on another page can be sent without asking, JSON cannot.
        raise RequestRefusedError(415)
    try:
        body = request.get_json(silent=True)
    except RecursionError:  # brackets within brackets, thousands deep
        body = None
    if not isinstance(body, dict):
        raise UsageError("The request's body is not a JSON object.", "Send {…} in UTF-8.")
    return body


def checked(part: str, kind: type[BaseModel]) -> BaseModel:
    """The `body` of the request, or the `query` behind the `?` of its address, as a `kind`.

    Raises UsageError that names the first field that is wrong.
    """
    values = json_body() if part == "body" else request.args.to_dict()
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise _explained(error) from None


def _explained(error: ValidationError) -> FieldError:
    """What is wrong first; what was sent is not told again, it may be anything."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(map(str, first["loc"]))
    kind, words = first["type"], str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    if kind == "missing":
        return FieldError(name, f"`{name}` is missing.", f"Send it: {name}.")
    if kind == "literal_error":
        expected = str(first.get("ctx", {}).get("expected", ""))
        return FieldError(name, f"`{name}` has a value that is not known.", f"Choose {expected}.")
    return FieldError(name, f"`{name}` cannot be used.", f"{words}.")
