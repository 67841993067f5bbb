"""How a module declares the addresses it serves: the path, what it takes and what it gives, once.

A view says what it takes by its parameters: parts of the path; `body`, the JSON that was sent,
checked by the pydantic model that it is annotated with; `engine`, that of the repository which
`?repo=` names; `user`, who asks; all others are what stands behind the `?`, checked by their types.
What it returns is sent as JSON unless it is a response already. Of the same declarations the
description at /openapi.json is made; the docstring of a view is its text there.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, TypeVar, get_type_hints

from flask import Flask, current_app, jsonify, request
from pydantic import BaseModel, ValidationError, create_model
from pydantic.json_schema import JsonSchemaMode
from werkzeug.routing import Rule

from codeqa import __version__
from codeqa.errors import UsageError
from codeqa.web.errors import API, FieldError, RequestRefusedError
from codeqa.web.schemas import ApiFailure, Failure, Repo, Schema, Values
from codeqa.web.security import member_of_request, require_owner
from codeqa.web.workspace import workspace

Answer = type[Any] | Mapping[str, Any] | str
"""What a response holds: JSON, by a model, a dataclass or just names with types; else the media
type of a text."""
View = TypeVar("View", bound=Callable[..., Any])

SCHEMAS = "#/components/schemas/{model}"
ANY_SCHEMA = ("application/json", "text/event-stream")
"""Media types without a schema: of a stream of events, readers of OpenAPI 3.1 take it for that of
each event, or for that of the whole text."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A view, and what it takes and gives; called by Flask with the parts of the path."""

    view: Callable[..., Any]
    tag: str
    answers: tuple[type[Any] | str, ...]
    """One for each media type."""
    status: int
    """Of an answer."""
    owners: str
    """What only the server's owner may do here; '' for what everybody may."""
    query: type[Schema]
    body: type[BaseModel] | None
    needs: tuple[str, ...]
    """Of `engine` and `user` those that it takes."""

    def __call__(self, **given: Any) -> Any:
        if self.owners:
            require_owner(self.owners)
        given |= dict(_checked(self.query, request.args.to_dict()))
        if self.body:
            given["body"] = _checked(self.body, _json_body())
        if "engine" in self.needs:
            given["engine"] = workspace().engine(given.pop("repo"))
        if "user" in self.needs:
            given["user"] = member_of_request().user
        values = self.view(**given)
        if isinstance(values, BaseModel):
            return values.model_dump(), self.status
        if is_dataclass(values) or isinstance(values, dict):
            return jsonify(values), self.status
        return values


class Endpoints:
    """The addresses of one module, for `register` to give to the application; the ids of their
    operations begin with `name`."""

    def __init__(self, name: str, tag: str, prefix: str = "") -> None:
        self._name, self._tag, self._prefix = name, tag, prefix
        self._routes: list[tuple[str, str, str, Endpoint]] = []

    def route(
        self,
        method: str,
        path: str,
        *answers: Answer,
        status: int = 200,
        tag: str = "",
        owners: str = "",
    ) -> Callable[[View], View]:
        """Serve `path`, and describe it in the group `tag` instead of the module's."""

        def add(view: View) -> View:
            operation = f"{self._name}_{view.__name__}_{method.lower()}"
            taken = get_type_hints(view, include_extras=True)
            taken.pop("return")
            body = taken.pop("body", None)
            needs = tuple(name for name in ("engine", "user") if taken.pop(name, None))
            fields: Values = {"repo": (Repo, "")} if "engine" in needs else {}
            for name, kind in taken.items():
                default = inspect.signature(view).parameters[name].default
                if f"{name}>" not in path:
                    fields[name] = (kind, ... if default is inspect.Parameter.empty else default)
            query = create_model(operation, __base__=Schema, **fields)
            kinds = tuple(_answer(operation, one) for one in answers)
            endpoint = Endpoint(view, tag or self._tag, kinds, status, owners, query, body, needs)
            self._routes.append((self._prefix + path, method, operation, endpoint))
            return view

        return add

    def register(self, app: Flask) -> None:
        """Have `app` serve these addresses."""
        for path, method, operation, endpoint in self._routes:
            app.add_url_rule(path, operation, endpoint, methods=[method])


def _answer(operation: str, answer: Answer) -> type[Any] | str:
    if isinstance(answer, Mapping):
        name = "".join(part.title() for part in operation.split("_"))
        fields: Values = {key: (answer[key], ...) for key in answer}
        return create_model(name, __base__=Schema, **fields)
    return answer


def values_of(kind: type[BaseModel], source: Any, /, **more: Any) -> Values:
    """The fields of `kind` as JSON holds them: from `more`, else attributes of `source`."""
    return {
        name: more[name] if name in more else getattr(source, name) for name in kind.model_fields
    }


def _checked(kind: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    """What was sent as a `kind`. Raises FieldError that names the first field that is wrong."""
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


endpoints = Endpoints("openapi", "Server")


@endpoints.route("GET", "/openapi.json", "application/json")
def openapi() -> Values:
    """This description."""
    return openapi_document(current_app)


def openapi_document(app: Flask) -> Values:
    """The OpenAPI 3.1 document of all endpoints of `app`."""
    paths: dict[str, Values] = defaultdict(dict)
    taken: set[type[Any]] = set()
    given: set[type[Any]] = {Failure, ApiFailure}
    for rule in app.url_map.iter_rules():
        endpoint = app.view_functions[rule.endpoint]
        if isinstance(endpoint, Endpoint):  # else it is one of the pages
            # `/api/x/<path:name>` → `/api/x/{name}`
            path = re.sub(r"<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule.rule)
            (method,) = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            paths[path][method.lower()] = _operation(rule, endpoint)
            taken |= {endpoint.body} if endpoint.body else set()
            given |= {one for one in endpoint.answers if isinstance(one, type)}
    token = {"type": "http", "scheme": "bearer", "description": "A token of CODEQA_TOKEN."}
    session = {"type": "apiKey", "in": "cookie", "name": "codeqa",
               "description": "The session of somebody who signed in at /login."}  # fmt: skip
    open_to_all: list[Values] = [] if app.extensions["codeqa_gate"].closed else [{}]
    about = "Questions about a code base, answered with citations."
    return {
        "openapi": "3.1.0",
        "info": {"title": "CodeQA", "version": __version__, "description": about},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**_schemas(taken, "validation"), **_schemas(given, "serialization")},
            "securitySchemes": {"token": token, "session": session},
        },
        "security": [*open_to_all, {"token": []}, {"session": []}],
    }


def _schemas(kinds: Iterable[type[Any]], mode: JsonSchemaMode) -> Values:
    """Schemas of models and dataclasses, and of all in them, by name."""
    parts: Values = {kind.__name__: (kind, ...) for kind in kinds}
    whole = create_model("Whole", __base__=Schema, **parts)
    found = whole.model_json_schema(mode=mode, ref_template=SCHEMAS)
    return dict(sorted(found["$defs"].items()))


def _operation(rule: Rule, endpoint: Endpoint) -> Values:
    summary, _, rest = (inspect.getdoc(endpoint.view) or "").partition("\n\n")
    operation: Values = {
        "operationId": rule.endpoint,
        "tags": [endpoint.tag],
        "summary": " ".join(summary.split()).removesuffix("."),
        "description": " ".join(rest.split()),
        "parameters": list(_parameters(rule, endpoint.query)),
    }
    if endpoint.body:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.body)}
    failure = ApiFailure if rule.rule.startswith(API) else Failure
    operation["responses"] = {
        str(endpoint.status): _response("Done", *endpoint.answers),
        "default": _response("It failed, or was refused", failure),
    }
    return operation


def _parameters(rule: Rule, query: type[BaseModel]) -> Iterator[Values]:
    for name in sorted(rule.arguments):
        # What a `/` in it must be written as, and every other sign, is the client's to escape.
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    described = query.model_json_schema()
    for name, schema in described.get("properties", {}).items():
        required = name in described.get("required", ())
        yield {"name": name, "in": "query", "required": required, "schema": schema}


def _response(description: str, *answers: type[Any] | str) -> Values:
    return {"description": description, "content": _content(*answers)}


def _content(*answers: type[Any] | str) -> Values:
    """By media type."""
    content: Values = {}
    for answer in answers:
        if isinstance(answer, str):
            content[answer] = {} if answer in ANY_SCHEMA else {"schema": {"type": "string"}}
        else:
            reference = SCHEMAS.format(model=answer.__name__)
            content["application/json"] = {"schema": {"$ref": reference}}
    return content
