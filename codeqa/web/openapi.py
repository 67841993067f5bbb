"""The description of the HTTP interface, made from the routes and their pydantic models.

What a view takes and gives is declared with its address (`endpoints`); everything else, such as
parameters of the path, is read from the application.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from flask import Flask, current_app
from pydantic import BaseModel, create_model
from pydantic.json_schema import JsonSchemaMode
from werkzeug.routing import Rule

from codeqa import __version__
from codeqa.web.endpoints import Answer, Description, Endpoints, description_of
from codeqa.web.errors import API, HINTS
from codeqa.web.schemas import ApiFailure, Failure, Schema, Values

SCHEMAS = "#/components/schemas/{name}"
ALWAYS = (401, 403, 421, 429, 500)
"""What the checks before every view may answer, and a server that fails."""
WITH_BODY = (400, 413, 415)
WITH_VALUES = (400, 404)
"""What a parameter may lead to."""
REASONS = {
    **{status: message for status, (_, message, _) in HINTS.items()},
    409: "The index is missing, busy or of another version.",
    502: "A language model, an embedding or a reranker failed.",
    507: "The folder of the index or the state cannot be used.",
}
ANY_SCHEMA = ("*/*", "application/json", "text/event-stream")
"""Media types without a schema: of a stream of events, readers of OpenAPI 3.1 take it for that of
each event, or for that of the whole text."""
STATIC = "The page's scripts, styles and icons."

endpoints = Endpoints("openapi", "Server")


@endpoints.route("GET", "/openapi.json", "application/json", errors=())
def openapi() -> Values:
    """This description."""
    return openapi_document(current_app)


def openapi_document(app: Flask) -> dict[str, Any]:
    """The OpenAPI 3.1 document of `app`."""
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    taken: set[type[Any]] = set()
    given: set[type[Any]] = {Failure, ApiFailure}
    for rule, method, text, about in _operations(app):
        # `/api/x/<path:name>` → `/api/x/{name}`
        path = re.sub(r"<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule.rule)
        paths[path][method] = _operation(rule, text, about)
        taken |= {about.body} if about.body else set()
        given |= {one for some in about.answers.values() for one in some if isinstance(one, type)}
    required = bool(app.extensions["codeqa_gate"].closed)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "CodeQA",
            "version": __version__,
            "description": "Questions about a code base, answered with citations.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {**_schemas(taken, "validation"), **_schemas(given, "serialization")},
            "responses": {
                f"{shape.__name__}{status}": {"description": reason, "content": _content(shape)}
                for shape in (Failure, ApiFailure)
                for status, reason in REASONS.items()
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer",
                          "description": "A token of CODEQA_TOKEN."},
                "session": {"type": "apiKey", "in": "cookie", "name": "codeqa",
                            "description": "The session of somebody who signed in at /login."},
            },
        },
        "security": [*([] if required else [{}]), {"token": []}, {"session": []}],
    }  # fmt: skip


def _operations(app: Flask) -> Iterator[tuple[Rule, str, str, Description]]:
    """Route, method, text and what is declared of every view."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint == "static":
            yield rule, "get", STATIC, Description("Page", {200: ("*/*",)}, errors=(404,))
            continue
        view = app.view_functions[rule.endpoint]
        if about := description_of(view):
            (method,) = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            yield rule, method.lower(), inspect.getdoc(view) or "", about


def _schemas(kinds: Iterable[type[Any]], mode: JsonSchemaMode) -> dict[str, Any]:
    """Schemas of models and dataclasses, and of all in them, by name."""
    parts: dict[str, Any] = {kind.__name__: (kind, ...) for kind in kinds}
    whole = create_model("Whole", __base__=Schema, **parts)
    found = whole.model_json_schema(mode=mode, ref_template=SCHEMAS.format(name="{model}"))
    return dict(sorted(found["$defs"].items()))


def _content(*answers: Answer) -> dict[str, Any]:
    """By media type."""
    return {
        answer if isinstance(answer, str) else "application/json": {"schema": _schema(answer)}
        for answer in answers
    }


def _schema(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, str):
        return {} if answer in ANY_SCHEMA else {"type": "string"}
    return {"$ref": SCHEMAS.format(name=answer.__name__)}


def _operation(rule: Rule, text: str, about: Description) -> dict[str, Any]:
    summary, _, rest = text.partition("\n\n")
    operation: dict[str, Any] = {
        "operationId": "static_get" if text == STATIC else rule.endpoint,
        "tags": [about.tag],
        "summary": " ".join(summary.split()).removesuffix("."),
    }
    if rest:
        operation["description"] = " ".join(rest.split())
    if parameters := list(_parameters(rule, about.query)):
        operation["parameters"] = parameters
    if about.body is not None:
        operation["requestBody"] = {"required": True, "content": _content(about.body)}
    operation["responses"] = _responses(rule, about, bool(parameters))
    return operation


def _parameters(rule: Rule, query: type[BaseModel] | None) -> Iterator[dict[str, Any]]:
    for name in sorted(rule.arguments):
        # What a `/` in it must be written as, and every other sign, is the client's to escape.
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    described = query.model_json_schema() if query else {"properties": {}}
    for name, schema in described["properties"].items():
        yield {
            "name": name,
            "in": "query",
            "required": name in described.get("required", ()),
            "description": schema.pop("description", ""),
            "schema": {key: value for key, value in schema.items() if key != "title"},
        }


def _responses(rule: Rule, about: Description, values: bool) -> dict[str, Any]:
    statuses = {*about.errors, *ALWAYS}
    statuses |= set(WITH_BODY) if about.body else set()
    statuses |= set(WITH_VALUES) if values else set()
    shape = ApiFailure if rule.rule.startswith(API) else Failure
    responses: dict[str, Any] = {}
    for status, answers in about.answers.items():
        response: dict[str, Any] = {"description": "Redirected" if status in (302, 303) else "Done"}
        if answers:
            response["content"] = _content(*answers)
        responses[str(status)] = response
    for status in sorted(statuses - set(about.answers)):
        responses[str(status)] = {"$ref": f"#/components/responses/{shape.__name__}{status}"}
    return dict(sorted(responses.items()))
