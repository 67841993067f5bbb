"""How a module declares the addresses it serves: the path and what it takes, once.

A view says what it takes by its parameters: parts of the path; `body`, the JSON that was sent,
checked by the pydantic model that it is annotated with; `engine`, that of the repository which
`?repo=` names; `user`, who asks; all others are what stands behind the `?`, checked by their types.
What it returns is sent as JSON unless it is a response already. Of the same declarations the
description at /openapi.json is made; the docstring of a view is its text there.

In all of them lines are 1-based and inclusive, times are seconds since the epoch.
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
from codeqa.web.security import member_of_request, require_owner
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
    """Docstrings of fields are their descriptions."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        regex_engine="python-re",  # reads patterns as the clients of /openapi.json do
    )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A view, and what it takes; called by Flask with the parts of the path."""

    view: Callable[..., Any]
    status: int
    """Of an answer."""
    owners: str
    """What only the server's owner may do here; '' for what everybody may."""
    query: type[BaseModel]
    body: type[BaseModel] | None
    needs: tuple[str, ...]
    """Of `engine` and `user` those that it takes."""

    def __call__(self, **given: Any) -> Any:
        if self.owners:
            require_owner(self.owners)
        if self.status == 202:  # work that goes on behind
            workspace().answers.refuse_at_the_end()
        given |= dict(_checked(self.query, request.args.to_dict()))
        if self.body:
            given["body"] = _checked(self.body, json_body())
        if "engine" in self.needs:
            given["engine"] = g.engine = workspace().engine(given.pop("repo"))
        if "user" in self.needs:
            given["user"] = member_of_request().user
        values = self.view(**given)
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

        def add(view: View) -> View:
            operation = f"{view.__name__}_{method.lower()}"
            taken = get_type_hints(view, include_extras=True)
            taken.pop("return")
            body = taken.pop("body", None)
            needs = tuple(name for name in ("engine", "user") if taken.pop(name, None))
            fields: Values = {"repo": (Text, "")} if "engine" in needs else {}
            for name, kind in taken.items():
                default = inspect.signature(view).parameters[name].default
                if f"{name}>" not in path:
                    fields[name] = (kind, ... if default is inspect.Parameter.empty else default)
            query = create_model(operation, **fields)
            endpoint = Endpoint(view, status, owners, query, body, needs)
            self.add_url_rule(path, operation, endpoint, methods=[method])
            return view

        return add


def _checked(kind: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    """What was sent as a `kind`. Raises UsageError that names the first field that is wrong."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # What is wrong first; what was sent is not told again, it may be anything.
        first = error.errors(include_url=False, include_input=False)[0]
        parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in first["loc"])
        name = "".join(parts).removeprefix(".")
        empty = first.get("ctx", {}).get("pattern") == r"\S"
        words = "Send some text" if empty else first["msg"]
        raise UsageError(f"`{name}` cannot be used.", f"{words}.") from None


def json_body() -> Values:
    """The body, a JSON object, without its nulls: they are as what is not sent. Raises
    RequestRefusedError (415) or UsageError."""
    if not request.is_json:
        # A form on another page can be sent without asking, JSON cannot.
        raise RequestRefusedError(415)
    try:
        body = request.get_json(silent=True)
        # A lone surrogate, which JSON can hold, becomes a question mark.
        body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:  # brackets within brackets, thousands deep
        body = None
    if not isinstance(body, dict):
        raise UsageError("The request's body is not a JSON object.", "Send {…} in UTF-8.")
    return {name: value for name, value in body.items() if value is not None}


endpoints = Endpoints("openapi", __name__)


@endpoints.route("GET", "/openapi.json")
def openapi() -> Values:
    """This description: all addresses but the pages', and what they take."""
    paths: dict[str, Values] = defaultdict(dict)
    bodies: dict[type[BaseModel], None] = {}
    for rule in current_app.url_map.iter_rules():
        endpoint = current_app.view_functions[rule.endpoint]
        if isinstance(endpoint, Endpoint):  # else it is one of the pages
            # `/api/x/<path:name>` → `/api/x/{name}`
            path = re.sub(r"<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule.rule)
            (method,) = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            operation = _operation(sorted(rule.arguments), endpoint)
            paths[path][method.lower()] = operation | {"operationId": rule.endpoint}
            if endpoint.body:
                bodies[endpoint.body] = None
    asked = [(body, "validation") for body in bodies]
    schemas = models_json_schema(asked, ref_template=SCHEMAS)[1]["$defs"]  # type: ignore[arg-type]
    closed = current_app.extensions["codeqa_gate"].closed
    token = {"type": "http", "scheme": "bearer", "description": "A token of CODEQA_TOKEN."}
    return {
        "openapi": "3.1.0",
        "info": {"title": "CodeQA", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas, "securitySchemes": {"token": token}},
        "security": [*([] if closed else [{}]), {"token": []}],
    }


def _operation(arguments: list[str], endpoint: Endpoint) -> Values:
    summary, _, rest = (inspect.getdoc(endpoint.view) or "").partition("\n\n")
    # What a `/` in it must be written as, and every other sign, is the client's to escape.
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
