"""Declare HTTP addresses: a view's path and parameters, from which /openapi.json is made as well.

The parameters of a view say what it takes: parts of the path; `body`, the JSON that was sent,
checked by the pydantic model of its annotation; `engine`, that of the repository in `?repo=`;
`user`, the id of the user; all others come from the query string and are checked by their types.
The result is sent as JSON unless it is a response already. The docstring of a view is its
description in /openapi.json.

Lines are 1-based and inclusive everywhere, times are seconds since the epoch.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

from flask import Blueprint, current_app, g, jsonify, request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import models_json_schema

from codeqa import __version__
from codeqa.errors import UsageError
from codeqa.web.errors import RequestRefusedError
from codeqa.web.security import current_user, require_owner
from codeqa.web.workspace import workspace

QUESTION_CHARACTERS = 20_000
NAME_CHARACTERS = 4_096
"""Longest path, address, key or other name."""
ID_CHARACTERS = 200
SCHEMAS = "#/components/schemas/{model}"

Text = Annotated[str, Field(max_length=NAME_CHARACTERS)]
Filled = Annotated[str, Field(max_length=NAME_CHARACTERS, pattern=r"\S")]
Id = Annotated[str, Field(max_length=ID_CHARACTERS)]
FilledId = Annotated[str, Field(max_length=ID_CHARACTERS, pattern=r"\S")]
Span = Annotated[
    str, Field(max_length=NAME_CHARACTERS, pattern=r"^[^\x00\n]+:[0-9]{1,9}-[0-9]{1,9}$")
]
Values = dict[str, Any]
View = TypeVar("View", bound=Callable[..., Any])


class Schema(BaseModel):
    """A model whose fields are described by their docstrings."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        regex_engine="python-re",  # matches patterns as clients of /openapi.json do
    )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A view and what it takes; Flask calls it with the parts of the path."""

    view: Callable[..., Any]
    status: int
    """HTTP status of a successful response."""
    owners: str
    """What only the owner of the server may do here, as words for the error; '' if all may."""
    query: type[BaseModel]
    body: type[BaseModel] | None
    needs: tuple[str, ...]
    """Which of `engine` and `user` the view takes."""

    def __call__(self, **arguments: Any) -> Any:
        if self.owners:
            require_owner(self.owners)
        if self.status == 202:  # starts work in the background
            workspace().answers.refuse_at_the_end()
        arguments |= dict(_checked(self.query, request.args.to_dict()))
        if self.body:
            arguments["body"] = _checked(self.body, json_body())
        if "engine" in self.needs:
            arguments["engine"] = g.engine = workspace().engine(arguments.pop("repo"))
        if "user" in self.needs:
            arguments["user"] = current_user().id
        values = self.view(**arguments)
        if isinstance(values, BaseModel):
            return values.model_dump(), self.status
        if is_dataclass(values) or isinstance(values, dict):
            return jsonify(values), self.status
        return values


class Endpoints(Blueprint):
    """The addresses of one subject."""

    def route(  # type: ignore[override]
        self, method: str, path: str, *, status: int = 200, owners: str = ""
    ) -> Callable[[View], View]:
        """Return a decorator that serves a view at `path`; the other arguments as in Endpoint."""

        def add(view: View) -> View:
            operation = f"{view.__name__}_{method.lower()}"
            parameters = get_type_hints(view, include_extras=True)
            parameters.pop("return")
            body = parameters.pop("body", None)
            needs = tuple(name for name in ("engine", "user") if parameters.pop(name, None))
            fields: Values = {"repo": (Text, "")} if "engine" in needs else {}
            for name, kind in parameters.items():
                default = inspect.signature(view).parameters[name].default
                if f"{name}>" not in path:
                    fields[name] = (kind, ... if default is inspect.Parameter.empty else default)
            query = create_model(operation, **fields)
            endpoint = Endpoint(view, status, owners, query, body, needs)
            self.add_url_rule(path, operation, endpoint, methods=[method])
            return view

        return add


def _checked(kind: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    """Return `values` as a `kind`. Raises UsageError that names the first invalid field."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # The error never quotes the value that was sent: it may be anything.
        problem = error.errors(include_url=False, include_input=False)[0]
        parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]]
        name = "".join(parts).removeprefix(".")
        is_empty = problem.get("ctx", {}).get("pattern") == r"\S"
        advice = "Send some text" if is_empty else problem["msg"]
        raise UsageError(f"`{name}` cannot be used.", f"{advice}.") from None


def json_body() -> Values:
    """Return the request's body, a JSON object, without nulls: they count as not sent.

    Raises RequestRefusedError (415) or UsageError.
    """
    if not request.is_json:
        # A foreign page can send a form without the browser asking us first, but not JSON.
        raise RequestRefusedError(415)
    try:
        body = request.get_json(silent=True)
        # A lone surrogate, which JSON may contain, becomes a question mark.
        body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:  # brackets within brackets, thousands deep
        body = None
    if not isinstance(body, dict):
        raise UsageError("The request's body is not a JSON object.", "Send {…} in UTF-8.")
    return {name: value for name, value in body.items() if value is not None}


endpoints = Endpoints("openapi", __name__)


@endpoints.route("GET", "/openapi.json")
def openapi() -> Values:
    """Return this description of all addresses except the pages."""
    paths: dict[str, Values] = defaultdict(dict)
    bodies: dict[type[BaseModel], None] = {}
    for rule in current_app.url_map.iter_rules():
        endpoint = current_app.view_functions[rule.endpoint]
        if isinstance(endpoint, Endpoint):  # otherwise it is a page
            # `/api/x/<path:name>` → `/api/x/{name}`
            path = re.sub(r"<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule.rule)
            (method,) = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            operation = _operation(sorted(rule.arguments), endpoint)
            paths[path][method.lower()] = operation | {"operationId": rule.endpoint}
            if endpoint.body:
                bodies[endpoint.body] = None
    inputs = [(body, "validation") for body in bodies]
    schemas = models_json_schema(inputs, ref_template=SCHEMAS)[1]["$defs"]  # type: ignore[arg-type]
    without_token: list[Values] = [] if current_app.extensions["codeqa_gate"].closed else [{}]
    token = {"type": "http", "scheme": "bearer", "description": "A token of CODEQA_TOKEN."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "CodeQA", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas, "securitySchemes": {"token": token}},
        "security": [*without_token, {"token": []}],
    }


def _operation(arguments: list[str], endpoint: Endpoint) -> Values:
    summary, _, rest = (inspect.getdoc(endpoint.view) or "").partition("\n\n")
    # Clients escape every special character in it, also `/`.
    part = {"in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    query = endpoint.query.model_json_schema()
    operation: Values = {
        "summary": " ".join(summary.split()).removesuffix("."),
        "description": " ".join(rest.split()),
        "parameters": [{"name": name, **part} for name in arguments] + [
            {"name": name, "in": "query", "required": name in query.get("required", ()),
             "schema": schema}
            for name, schema in query.get("properties", {}).items()
        ],
        "responses": {
            str(endpoint.status): {"description": "Done"},
            "default": {"description": "It failed, or was refused"},
        },
    }  # fmt: skip
    if endpoint.body:
        schema = {"$ref": SCHEMAS.format(model=endpoint.body.__name__)}
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation
