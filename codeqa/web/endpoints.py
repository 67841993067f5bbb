"""How a module declares the addresses it serves: the path, what it takes and what it gives, once.

A view says what it takes by its parameters: `query` is read from behind the `?`, `body` from the
JSON that was sent, each checked by the pydantic model that it is annotated with. What it returns
is sent as JSON unless it is a response already. Of the same declarations the description at
/openapi.json is made; the docstring of a view is its text there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import wraps
from typing import Any, TypeVar

from flask import Flask, jsonify, request
from pydantic import BaseModel, ValidationError

from codeqa.errors import UsageError
from codeqa.web.errors import FieldError, RequestRefusedError

Answer = type[Any] | str
"""What a response holds: a model or dataclass for JSON, else the media type of a text."""
Answers = Answer | Mapping[int, tuple[Answer, ...]]
"""By status, one for each media type; alone it is that of status 200."""
View = TypeVar("View", bound=Callable[..., Any])

NOTED = "_described"
ENGINE = (404, 409, 507)
"""What a view that uses the index or the state may answer besides."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a view takes and gives."""

    tag: str
    answers: Mapping[int, tuple[Answer, ...]]
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    errors: tuple[int, ...] = ENGINE
    """Statuses of failures besides those that every view, body and parameter may lead to."""


class Endpoints:
    """The addresses of one module, for `register` to give to the application."""

    def __init__(self, name: str, tag: str, prefix: str = "") -> None:
        self._name, self._tag, self._prefix = name, tag, prefix
        self._routes: list[tuple[str, str, str, Callable[..., Any]]] = []

    def route(
        self,
        method: str,
        path: str,
        answers: Answers,
        *,
        name: str = "",
        tag: str = "",
        **more: Any,
    ) -> Callable[[View], View]:
        """Serve `path`; `more` are fields of Description, and `tag` or `name`, the prefix of the
        operation's id, where they are not the module's."""
        by_status = answers if isinstance(answers, Mapping) else {200: (answers,)}
        about = Description(tag or self._tag, by_status, **more)

        def add(view: View) -> View:
            # Annotations are texts where the view was written, models where it was made.
            said = view.__annotations__
            kinds: dict[str, Any] = {
                part: view.__globals__[said[part]] if isinstance(said[part], str) else said[part]
                for part in ("query", "body")
                if part in said
            }

            @wraps(view)
            def serve(**parts_of_path: str) -> Any:
                sent = {part: _checked(part, kinds[part]) for part in kinds}
                values = view(**parts_of_path, **sent)
                return jsonify(values) if is_dataclass(values) else values

            setattr(serve, NOTED, replace(about, **kinds))
            operation = f"{name or self._name}_{view.__name__}_{method.lower()}"
            self._routes.append((self._prefix + path, method, operation, serve))
            return view

        return add

    def register(self, app: Flask) -> None:
        """Have `app` serve these addresses."""
        for path, method, operation, serve in self._routes:
            app.add_url_rule(path, operation, serve, methods=[method])


def description_of(view: Any) -> Description | None:
    """What is declared of a view, None when nothing is."""
    found: Description | None = getattr(view, NOTED, None)
    return found


def values_of(kind: type[BaseModel], source: Any, /, **more: Any) -> dict[str, Any]:
    """The fields of `kind` as JSON holds them: from `more`, else attributes of `source`."""
    return {
        name: more[name] if name in more else getattr(source, name) for name in kind.model_fields
    }


def _checked(part: str, kind: type[BaseModel]) -> BaseModel:
    """The `body` of the request, or the `query` behind the `?` of its address, as a `kind`.

    Raises FieldError that names the first field that is wrong.
    """
    values = _json_body() if part == "body" else request.args.to_dict()
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # What is wrong first; what was sent is not told again, it may be anything.
        first = error.errors(include_url=False, include_input=False)[0]
        parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in first["loc"])
        name = "".join(parts).removeprefix(".")
        words = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
        if first.get("ctx", {}).get("pattern") == r"\S":
            words = "Send some text"
        raise FieldError(name, f"`{name}` cannot be used.", f"{words}.") from None


def _json_body() -> Mapping[str, Any]:
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
