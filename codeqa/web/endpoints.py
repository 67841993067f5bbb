"""How a module declares the addresses it serves: the path, what it takes and what it gives, once.

A view says what it takes by its parameters: parts of the path; `body`, the JSON that was sent,
checked by the pydantic model that it is annotated with; `engine`, that of the repository which
`?repo=` names; `user`, who asks; all others are what stands behind the `?`, checked by their types.
What it returns is sent as JSON unless it is a response already. Of the same declarations the
description at /openapi.json is made; the docstring of a view is its text there.

In all of them lines are 1-based and inclusive, times are seconds since the epoch.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, TypeVar, get_type_hints

from flask import Blueprint, Flask, current_app, jsonify, request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import JsonSchemaMode

from codeqa import __version__
from codeqa.errors import UsageError
from codeqa.search.rerank import parse_rerank
from codeqa.text.tokens import well_formed
from codeqa.web.errors import API, FieldError, RequestRefusedError
from codeqa.web.security import member_of_request, require_owner
from codeqa.web.workspace import workspace

QUESTION_CHARACTERS = 20_000
NAME_CHARACTERS = 4_096
"""Longest path, address, key or other name."""
ID_CHARACTERS = 200
SCHEMAS = "#/components/schemas/{model}"
ANY_SCHEMA = ("application/json", "text/event-stream")
"""Media types without a schema: of a stream of events, readers of OpenAPI 3.1 take it for that of
each event, or for that of the whole text."""


def _clean(value: Any) -> Any:
    """A lone surrogate, which JSON can hold, is no reason to refuse a text."""
    return well_formed(value) if isinstance(value, str) else value


def _truth(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        raise ValueError("Send true or false")
    return parse_rerank(value)


Clean = BeforeValidator(_clean)
Text = Annotated[str, Field(max_length=NAME_CHARACTERS), Clean]
Filled = Annotated[str, Field(max_length=NAME_CHARACTERS, pattern=r"\S"), Clean]
Id = Annotated[str, Field(max_length=ID_CHARACTERS), Clean]
FilledId = Annotated[str, Field(max_length=ID_CHARACTERS, pattern=r"\S"), Clean]
Repo = Annotated[Text, Field(description="Id of the repository; empty for the current one.")]
Truth = Annotated[bool, BeforeValidator(_truth, json_schema_input_type=bool | str | float | None)]
Values = dict[str, Any]
Answer = type[Any] | Mapping[str, Any] | str
"""What a response holds: JSON, by a model, a dataclass or just names with types; else the media
type of a text."""
View = TypeVar("View", bound=Callable[..., Any])


class Schema(BaseModel):
    """Docstrings of fields are their descriptions, also of dataclasses in it."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
        regex_engine="python-re",  # reads patterns as the clients of /openapi.json do
    )


class MadeSchema(Schema):
    """Of models that are made: pydantic looks through the source of every caller for docstrings of
    their fields, which takes a second of the server's start."""

    model_config = ConfigDict(use_attribute_docstrings=False)


class FailureDetails(Schema):
    code: str
    """What kind of failure, for programs."""
    message: str
    """What failed, in one sentence."""
    hint: str
    """What to do next, in one sentence; may be empty."""


class Failure(Schema):
    """Every failure but those under /v1."""

    error: FailureDetails


class ApiFailureDetails(Schema):
    message: str
    type: str
    param: str | None
    code: str | None


class ApiFailure(Schema):
    """A failure under /v1, as OpenAI's API tells of it."""

    error: ApiFailureDetails


def fields_of(kind: type[Any], *without: str) -> type[Schema]:
    """A model with the fields of the dataclass `kind`, but those named, as it describes them."""
    described = _schemas([kind], "validation")[kind.__name__]["properties"]
    fields: Values = {
        name: (hint, Field(description=described[name].get("description")))
        for name, hint in get_type_hints(kind).items()
        if name not in without
    }
    return _made(f"{kind.__name__}Fields", fields)


def _made(name: str, fields: Values) -> type[Schema]:
    """A model of which the dataclasses in it, and models derived from it, keep their docstrings."""
    made = create_model(name, __base__=MadeSchema, **fields)
    made.model_config["use_attribute_docstrings"] = True
    made.model_rebuild(force=True)
    return made


def values_of(kind: type[BaseModel], source: Any, /, **more: Any) -> Values:
    """The fields of `kind` as JSON holds them: from `more`, else attributes of `source`."""
    return {
        name: more[name] if name in more else getattr(source, name) for name in kind.model_fields
    }


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A view, and what it takes and gives; called by Flask with the parts of the path."""

    view: Callable[..., Any]
    operation: str
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


class Endpoints(Blueprint):
    """The addresses of one subject, described as the group `tag`; the ids of their operations
    begin with `name`."""

    def __init__(self, name: str, tag: str, prefix: str = "") -> None:
        super().__init__(name, __name__, url_prefix=prefix)
        self._tag = tag

    def route(  # type: ignore[override]
        self, method: str, path: str, *answers: Answer, status: int = 200, owners: str = ""
    ) -> Callable[[View], View]:
        """Serve `path`."""

        def add(view: View) -> View:
            operation = f"{self.name}_{view.__name__}_{method.lower()}"
            taken = get_type_hints(view, include_extras=True)
            taken.pop("return")
            body = taken.pop("body", None)
            needs = tuple(name for name in ("engine", "user") if taken.pop(name, None))
            fields: Values = {"repo": (Repo, "")} if "engine" in needs else {}
            for name, kind in taken.items():
                default = inspect.signature(view).parameters[name].default
                if f"{name}>" not in path:
                    fields[name] = (kind, ... if default is inspect.Parameter.empty else default)
            query = create_model(operation, __base__=MadeSchema, **fields)
            kinds = tuple(_answer(operation, one) for one in answers)
            endpoint = Endpoint(
                view, operation, self._tag, kinds, status, owners, query, body, needs
            )
            self.add_url_rule(path, operation, endpoint, methods=[method])
            return view

        return add


def _answer(operation: str, answer: Answer) -> type[Any] | str:
    if isinstance(answer, Mapping):
        name = "".join(part.title() for part in operation.split("_"))
        fields: Values = {key: (answer[key], ...) for key in answer}
        return _made(name, fields)
    return answer


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
    taken: list[type[Any]] = []
    given: list[type[Any]] = [Failure, ApiFailure]
    for rule in app.url_map.iter_rules():
        endpoint = app.view_functions[rule.endpoint]
        if isinstance(endpoint, Endpoint):  # else it is one of the pages
            # `/api/x/<path:name>` → `/api/x/{name}`
            path = re.sub(r"<(?:[^<>:]+:)?([^<>]+)>", r"{\1}", rule.rule)
            (method,) = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            paths[path][method.lower()] = _operation(path, sorted(rule.arguments), endpoint)
            taken += filter(None, [endpoint.body])
            given += (one for one in endpoint.answers if isinstance(one, type))
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
    whole = _made("Whole", parts)
    found = whole.model_json_schema(mode=mode, ref_template=SCHEMAS)
    return dict(sorted(found["$defs"].items()))


def _operation(path: str, arguments: Iterable[str], endpoint: Endpoint) -> Values:
    summary, _, rest = (inspect.getdoc(endpoint.view) or "").partition("\n\n")
    # What a `/` in it must be written as, and every other sign, is the client's to escape.
    part = {"in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    query = endpoint.query.model_json_schema()
    failure = ApiFailure if path.startswith(API) else Failure
    operation: Values = {
        "operationId": endpoint.operation,
        "tags": [endpoint.tag],
        "summary": " ".join(summary.split()).removesuffix("."),
        "description": " ".join(rest.split()),
        "parameters": [{"name": name, **part} for name in arguments] + [
            {"name": name, "in": "query", "required": name in query.get("required", ()),
             "schema": schema}
            for name, schema in query.get("properties", {}).items()
        ],
        "responses": {
            str(endpoint.status): {"description": "Done", "content": _content(*endpoint.answers)},
            "default": {"description": "It failed, or was refused", "content": _content(failure)},
        },
    }  # fmt: skip
    if endpoint.body:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.body)}
    return operation


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
