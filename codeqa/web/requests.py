"""What clients send, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    from codeqa.engine import Engine

RESERVED = ("/export", "/branch")
"""Ends of addresses below a conversation's, which its id must therefore not have."""

Body = TypeVar("Body", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it was asked over HTTP."""

    text: str
    rerank: bool = False
    conversation: str = ""
    render: bool = False
    repo: str = ""
    mode: str = ""
    """How to answer; '' leaves it to the question."""
    replaces: str = ""
    """Id of the turn of this conversation that the answer takes the place of; '' for none."""
    use_model: bool = True
    hyde: str = ""
    """How many drafts are searched by; '' leaves it to the setting."""
    retrieval: str = ""
    """Whether it may be searched for without `@codebase`; '' leaves it to the setting."""
    tag_is_default: bool = False
    strict: bool = False
    after: str = ""
    """Id of the turn that it follows; '' for the last one of the branch in use."""
    pin: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Chunks, as `path:12-34`, that the context must and must not hold."""


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


def read_question(body: Mapping[str, Any]) -> Question:
    """The question of a body: `question`, `query` or the last user's entry of `messages`."""
    checked = _checked(QuestionBody, body)
    given = checked.question if checked.question is not None else checked.query
    if given is None and checked.messages is not None:
        given = _last_message(checked.messages)
    conversation = checked.conversation or ""
    if conversation.endswith(RESERVED):
        raise UsageError(
            f"The id of a conversation cannot end with {' or '.join(RESERVED)}.", "Choose another."
        )
    return Question(
        text=checked_question(given),
        rerank=checked.rerank,
        conversation=conversation,
        render=checked.render,
        repo=checked.repo or "",
        mode=checked.mode or "",
        replaces=checked.replaces or "",
        use_model=not checked.without_model,
        hyde=checked.hyde or "",
        retrieval=checked.retrieval or "",
        tag_is_default=checked.tag_is_default,
        strict=checked.strict,
        after=checked.after or "",
        pin=tuple(checked.pin or ()),
        exclude=tuple(checked.exclude or ()),
    )


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
