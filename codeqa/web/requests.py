"""What clients send, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from flask import current_app, request

from codeqa.errors import UsageError
from codeqa.types import HYDE_MODES
from codeqa.web.errors import RequestRefusedError
from codeqa.web.workspace import Workspace

if TYPE_CHECKING:
    from codeqa.engine import Engine

QUESTION_CHARACTERS = 20_000
NAME_CHARACTERS = 4_096
"""Longest path, address, key or other name."""
ID_CHARACTERS = 200


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


def workspace() -> Workspace:
    """The workspace of the application that serves this request."""
    return cast(Workspace, current_app.extensions["codeqa"])


def engine_of_request() -> Engine:
    """The engine of the repository that the address names as `repo`, else the current one."""
    return workspace().engine(argument("repo", required=False))


def argument(name: str, *, required: bool = True) -> str:
    """A text from the address. Raises UsageError when it is missing or far too long."""
    return _text(request.args, name, required, NAME_CHARACTERS)


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


def read_question(body: Mapping[str, Any]) -> Question:
    """The question of a body: `question`, `query` or the last user's entry of `messages`."""
    given = body.get("question", body.get("query"))
    if given is None and "messages" in body:
        given = _last_message(body["messages"])
    if not isinstance(given, str) or not given.strip():
        raise UsageError("There is no question.", "Send it as text in `question`.")
    if len(given) > QUESTION_CHARACTERS:
        raise UsageError(
            f"The question is longer than {QUESTION_CHARACTERS:,} characters.", "Shorten it."
        )
    return Question(
        text=given,
        rerank=is_true(body.get("rerank")),
        conversation=_text(body, "conversation", False, ID_CHARACTERS),
        render=is_true(body.get("render")),
        repo=_text(body, "repo", False, ID_CHARACTERS),
        mode=_mode(body),
        replaces=_text(body, "replaces", False, ID_CHARACTERS),
        use_model=not is_true(body.get("without_model")),
        hyde=_hyde(body),
    )


def _mode(body: Mapping[str, Any]) -> str:
    from codeqa.engine import MODES

    mode = _text(body, "mode", False, ID_CHARACTERS)
    if mode and mode not in MODES:
        raise UsageError("There is no such mode.", f"Choose one: {', '.join(MODES)}.")
    return mode


def _hyde(body: Mapping[str, Any]) -> str:
    hyde = _text(body, "hyde", False, ID_CHARACTERS)
    if hyde and hyde not in HYDE_MODES:
        raise UsageError("There is no such number of drafts.", f"Choose {', '.join(HYDE_MODES)}.")
    return hyde


def is_true(value: Any) -> bool:
    """Whether a client that sends texts or numbers for truth values means yes (S1.20)."""
    return value is True or value in ("true", "True", "1") or (value == 1 and value is not False)


def text_field(
    body: Mapping[str, Any], name: str, *, required: bool = True, most: int = NAME_CHARACTERS
) -> str:
    """A text of the body. Raises UsageError when it is missing or longer than `most`."""
    return _text(body, name, required, most)


def _text(source: Mapping[str, Any], name: str, required: bool, most: int) -> str:
    value = source.get(name)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or len(value) > most or (required and not value.strip()):
        raise UsageError(f"`{name}` is missing or cannot be used.", f"Send it as a text: {name}.")
    return value


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
