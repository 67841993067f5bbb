"""What clients send, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, cast

from flask import current_app, request
from pydantic import BaseModel, ValidationError

from codeqa.errors import UsageError
from codeqa.web.errors import FieldError, RequestRefusedError
from codeqa.web.schemas import (
    QUESTION_CHARACTERS,
    QuestionBody,
    RepoQuery,
)
from codeqa.web.workspace import Workspace

if TYPE_CHECKING:
    from codeqa.chat import AskOptions
    from codeqa.engine import Engine

RESERVED = ("/export", "/branch")
"""Ends of addresses below a conversation's, which its id must therefore not have."""

Body = TypeVar("Body", bound=BaseModel)


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


def read_body(kind: type[Body]) -> Body:
    """The body as a `kind`. Raises UsageError that names the first field that is wrong."""
    return _checked(kind, json_body())


def read_query(kind: type[Body]) -> Body:
    """The values behind the `?` of the address as a `kind`. Raises UsageError."""
    return _checked(kind, request.args.to_dict())


def ask_options(body: QuestionBody) -> AskOptions:
    """What `body` asks: `question`, `query` or the last user's entry of `messages`, and every
    option that it names as `AskOptions` does. Raises UsageError."""
    from codeqa.chat import AskOptions

    given = body.question if body.question is not None else body.query
    if given is None and body.messages is not None:
        given = _last_message(body.messages)
    if (body.conversation or "").endswith(RESERVED):
        raise UsageError(
            f"The id of a conversation cannot end with {' or '.join(RESERVED)}.", "Choose another."
        )
    names = {field.name for field in fields(AskOptions)} & set(QuestionBody.model_fields)
    chosen = {name: getattr(body, name) for name in names - {"question"}}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    return AskOptions(checked_question(given), use_model=not body.without_model, **chosen)


def checked_question(given: str | None) -> str:
    """`given`, which must hold words and not too many. Raises UsageError."""
    if given is None or not given.strip():
        raise UsageError("There is no question.", "Send it as text in `question`.")
    if len(given) > QUESTION_CHARACTERS:
        raise UsageError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    return given


def _checked(kind: type[Body], values: Mapping[str, Any]) -> Body:
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


def _last_message(messages: Any) -> str | None:
    """Text of the last entry by the user, as the AI SDK sends a conversation."""
    if not isinstance(messages, list):
        return None
    for message in reversed(messages):
        if not isinstance(message, dict) or message.get("role") != "user":
            continue
        content = message.get("content") or message.get("parts")
        if isinstance(content, list):
            parts = (part.get("text") for part in content if isinstance(part, dict))
            content = "".join(text for text in parts if isinstance(text, str))
        return content if isinstance(content, str) else None
    return None
