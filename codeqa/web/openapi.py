"""The description of the HTTP interface, made from the routes and their pydantic models.

A view says by `@described(…)` what it takes and gives; its docstring is the text. Everything
else, such as addresses, methods and parameters of the path, is read from the application.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from flask import Blueprint, Flask, Response, current_app, jsonify
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from werkzeug.routing import Rule

from codeqa import __version__
from codeqa.web.errors import API, HINTS
from codeqa.web.schemas import ApiFailure, Document, Failure

Answer = type[BaseModel] | str
"""What a response holds: a model for JSON, else the media type of a text."""
Names = Mapping[type[BaseModel], Any]
"""Where the schema of a model stands in the description."""
View = TypeVar("View", bound=Callable[..., Any])

SCHEMAS = "#/components/schemas/{model}"
NOTED = "_description"
ALWAYS = (401, 403, 421, 429, 500)
"""What the checks before every view may answer, and a server that fails."""
ENGINE = (404, 409, 507)
"""What a view that uses the index or the state may answer besides."""
WITH_BODY = (400, 413, 415)
WITH_VALUES = (400, 404)
"""What a parameter may lead to."""
REASONS = {
    **{status: message for status, (_, message, _) in HINTS.items()},
    409: "The index is missing, busy or of another version.",
    502: "A language model, an embedding or a reranker failed.",
    507: "The folder of the index or the state cannot be used.",
}
STATIC = "The page's scripts, styles and icons."

blueprint = Blueprint("openapi", __name__)


@dataclass(frozen=True, slots=True)
class Description:
    """What a view takes and gives."""

    tag: str
    answers: Mapping[int, Answer | tuple[Answer, ...]]
    """By status; several stand for several media types."""
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    errors: tuple[int, ...] = ()
    """Statuses of failures besides those that every view, body and parameter may lead to."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of a good response, by what they say."""
    form: bool = False
    """The body is a form, as pages send it."""


def described(
    tag: str,
    answers: type[BaseModel] | str | Mapping[int, Answer | tuple[Answer, ...]],
    **more: Any,
) -> Callable[[View], View]:
    """Note what a view takes and gives; `answers` alone is that of status 200.

    `more` are the other fields of Description, and `method` where a view serves several.
    """
    by_status = answers if isinstance(answers, Mapping) else {200: answers}
    method = more.pop("method", "")
    about = Description(tag, by_status, **more)

    def note(view: View) -> View:
        setattr(view, NOTED, {**getattr(view, NOTED, {}), method: about})
        return view

    return note


@blueprint.get("/openapi.json")
@described("Server", Document)
def openapi() -> Response:
    """This description."""
    app = current_app
    made = app.extensions.get("codeqa_openapi")
    if made is None:
        made = app.extensions["codeqa_openapi"] = describe(app)
    return jsonify(made)


def describe(app: Flask) -> dict[str, Any]:
    """The OpenAPI 3.1 document of `app`."""
    operations = list(_operations(app))
    models: list[type[BaseModel]] = sorted(
        {model for *_, about in operations for model in _models(about)} | {Failure, ApiFailure},
        key=lambda model: model.__name__,
    )
    references, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template=SCHEMAS
    )
    names: Names = {model: references[model, "validation"] for model in models}
    paths: dict[str, dict[str, Any]] = {}
    for rule, method, view, about in operations:
        place = paths.setdefault(_template(rule), {})
        place[method.lower()] = _operation(rule, method, view, about, names)
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
            "schemas": schemas.get("$defs", {}),
            "responses": dict(_failures(names)),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer",
                          "description": "A token of CODEQA_TOKEN."},
                "session": {"type": "apiKey", "in": "cookie", "name": "codeqa",
                            "description": "The session of somebody who signed in at /login."},
            },
        },
        "security": [*([] if required else [{}]), {"token": []}, {"session": []}],
    }  # fmt: skip


def description_of(view: Any, method: str) -> Description | None:
    """What is noted of a view for `method`, None when nothing is."""
    known = getattr(view, NOTED, {})
    found: Description | None = known.get(method) or known.get("")
    return found


def methods_of(rule: Rule) -> list[str]:
    """The methods that a route was made for, without those that Flask adds."""
    return sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})


def _operations(app: Flask) -> Iterator[tuple[Rule, str, Any, Description]]:
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        for method in methods_of(rule):
            about = description_of(view, method)
            if rule.endpoint == "static":
                about = Description("Page", {200: "*/*"}, errors=(404,))
            if about is not None:
                yield rule, method, view, about


def _operation(
    rule: Rule, method: str, view: Any, about: Description, names: Names
) -> dict[str, Any]:
    text = STATIC if rule.endpoint == "static" else inspect.getdoc(view) or ""
    summary, _, rest = text.partition("\n\n")
    operation: dict[str, Any] = {
        "operationId": f"{rule.endpoint.replace('.', '_')}_{method.lower()}",
        "tags": [about.tag],
        "summary": " ".join(summary.split()).removesuffix("."),
    }
    if rest:
        operation["description"] = " ".join(rest.split())
    if parameters := [*_path_parameters(rule), *_query_parameters(about.query)]:
        operation["parameters"] = parameters
    if about.body is not None:
        media = "application/x-www-form-urlencoded" if about.form else "application/json"
        operation["requestBody"] = {
            "required": True, "content": {media: {"schema": names[about.body]}}
        }  # fmt: skip
    operation["responses"] = _responses(rule, about, bool(parameters), names)
    return operation


def _path_parameters(rule: Rule) -> Iterator[dict[str, Any]]:
    for name in sorted(rule.arguments):
        # What a `/` in it must be written as, and every other sign, is the client's to escape.
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(query: type[BaseModel] | None) -> Iterator[dict[str, Any]]:
    if query is None:
        return
    schema = query.model_json_schema()
    for name, about in schema["properties"].items():
        about = {key: value for key, value in about.items() if key != "title"}
        text = about.pop("description", "")
        required = name in schema.get("required", ())
        yield {
            "name": name, "in": "query", "required": required, "description": text, "schema": about
        }  # fmt: skip


def _responses(rule: Rule, about: Description, values: bool, names: Names) -> dict[str, Any]:
    statuses = {*about.errors, *ALWAYS}
    statuses |= set(WITH_BODY) if about.body and not about.form else set()
    statuses |= set(WITH_VALUES) if values else set()
    shape = ApiFailure if rule.rule.startswith(API) else Failure
    responses: dict[str, Any] = {}
    for status, answers in about.answers.items():
        answers = answers if isinstance(answers, tuple) else (answers,)
        response: dict[str, Any] = {"description": "Redirected" if status in (302, 303) else "Done"}
        content = dict(_content(one, names) for one in answers if one)
        if content:
            response["content"] = content
        if about.headers:
            response["headers"] = {
                name: {"description": text, "schema": {"type": "string"}}
                for name, text in about.headers.items()
            }
        responses[str(status)] = response
    for status in sorted(statuses - set(about.answers)):
        responses[str(status)] = {"$ref": f"#/components/responses/{shape.__name__}{status}"}
    return dict(sorted(responses.items()))


def _failures(names: Names) -> Iterator[tuple[str, Any]]:
    """Every way to fail, in both shapes."""
    for shape in (Failure, ApiFailure):
        for status, reason in REASONS.items():
            content = {"application/json": {"schema": names[shape]}}
            yield f"{shape.__name__}{status}", {"description": reason, "content": content}


def _content(answer: Answer, names: Names) -> tuple[str, Any]:
    if isinstance(answer, str):
        return answer, {"schema": {} if answer == "*/*" else {"type": "string"}}
    return "application/json", {"schema": names[answer]}


def _models(about: Description) -> Iterator[type[BaseModel]]:
    if about.body is not None:
        yield about.body
    for answers in about.answers.values():
        for answer in answers if isinstance(answers, tuple) else (answers,):
            if not isinstance(answer, str):
                yield answer


def _template(rule: Rule) -> str:
    """`/api/x/<path:name>` → `/api/x/{name}`."""
    return re.sub(r"<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule.rule)
