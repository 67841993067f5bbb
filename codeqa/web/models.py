"""The language model: which is chosen, which there are, a test, a key.

Keys only come in. What is sent to a provider goes to the host that the request names; on a
server with several users only its owner can send anybody's questions there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, jsonify

from codeqa.errors import CodeQAError, SettingsError, UsageError
from codeqa.hosts import is_loopback
from codeqa.web import schemas
from codeqa.web.errors import RequestRefusedError
from codeqa.web.openapi import described
from codeqa.web.requests import ID_CHARACTERS, json_body, text_field, workspace
from codeqa.web.users import member_of_request

if TYPE_CHECKING:
    from codeqa.llm import ModelChoice, ModelProvider, Models

TAG = "Language model"

blueprint = Blueprint("models", __name__, url_prefix="/api/models")


@blueprint.get("")
@described(TAG, schemas.ModelsValues)
def overview() -> Response:
    """The model in use and every provider; nothing is asked of any."""
    return _overview(_models())


@blueprint.get("/local")
@described(TAG, schemas.LocalServers)
def local_servers() -> Response:
    """Servers of models that run on this machine."""
    _require_owner()
    found = [
        {
            "provider": server.provider.name,
            "title": server.provider.title,
            "address": server.address,
            "models": list(server.models),
        }
        for server in _models().running_locally()
    ]
    return jsonify({"servers": found})


@blueprint.post("/list")
@described(TAG, schemas.ModelNames, body=schemas.ChoiceBody, errors=(502,))
def list_models() -> Response:
    """The models that a provider offers."""
    _require_owner()
    choice, key = _read_choice()
    return jsonify({"models": _models().list_models(choice, key)})


@blueprint.post("/test")
@described(TAG, schemas.TestedValues, body=schemas.ChoiceBody, errors=(502,))
def test() -> Response:
    """Ask a model for a word, to see that address, key and name are right."""
    _require_owner()
    choice, key = _read_choice()
    models = _models()
    tested = models.test(choice, key)
    host = models.endpoint(choice, key).host
    return jsonify({"milliseconds": tested.milliseconds, "model": tested.model, "host": host})


@blueprint.post("")
@described(TAG, schemas.ModelsValues, body=schemas.ChoiceBody, errors=(507,))
def choose() -> Response:
    """Use a model from now on, `{"provider": ""}` for none; a key that comes along is kept."""
    _require_owner()
    models = _models()
    if text_field(json_body(), "provider", required=False, most=ID_CHARACTERS):
        models.choose(*_read_choice())
    else:
        models.choose(None)
    workspace().prefer(None)
    return _overview(models)


@blueprint.post("/forget")
@described(TAG, schemas.ModelsValues, body=schemas.ChoiceBody, errors=(507,))
def forget_key() -> Response:
    """Delete the key that is kept for a provider or an address."""
    _require_owner()
    models = _models()
    models.forget_key(_read_choice()[0])
    return _overview(models)


def _models() -> Models:
    space = workspace()
    if space.has_current():
        return space.engine().models
    from codeqa.llm import Models

    return Models(space.settings)


def _require_owner() -> None:
    if not member_of_request().owner:
        raise RequestRefusedError(
            403, "Only the first token in CODEQA_TOKEN may see to the language model."
        )


def _read_choice() -> tuple[ModelChoice, str]:
    """The model that a request is about, and the key that it brings. Raises UsageError."""
    from codeqa.llm import ModelChoice, provider_named

    body = json_body()
    provider = provider_named(text_field(body, "provider", most=ID_CHARACTERS).strip())
    model = text_field(body, "model", required=False, most=ID_CHARACTERS).strip()
    address = text_field(body, "address", required=False).strip()
    key = text_field(body, "key", required=False).strip()
    if not (key.isascii() and all(map(str.isprintable, (key, model, address)))):
        raise UsageError(
            "The key, the model or the address holds characters that cannot be sent.",
            "Copy it again, as one line.",
        )
    return ModelChoice(provider.name, model, address), key


def _overview(models: Models) -> Response:
    from codeqa.llm import CUSTOM, PROVIDERS

    problem = models.problem()
    try:
        choice = models.current()
    except CodeQAError as error:  # a setting that names no provider; another can be chosen
        choice, problem = None, str(error)
    return jsonify(
        {
            "current": _current(models, choice) if choice else None,
            "providers": [_provider(models, one) for one in (*PROVIDERS, CUSTOM)],
            "problem": problem,
            "changeable": member_of_request().owner,
        }
    )


def _current(models: Models, choice: ModelChoice) -> dict[str, Any]:
    from codeqa.llm import provider_named

    provider = provider_named(choice.provider)
    try:
        host = models.endpoint(choice).host
    except SettingsError:  # its key is missing, which `key` tells
        host = _hostname(models.address(choice))
    return {
        "provider": choice.provider,
        "title": provider.title,
        "model": choice.model,
        "address": choice.address,
        "host": host,
        "local": is_loopback(_hostname(models.address(choice))),
        "source": models.source(),
        "key": models.key_state(choice),
    }


def _provider(models: Models, provider: ModelProvider) -> dict[str, Any]:
    from codeqa.llm import CUSTOM, ModelChoice

    choice = ModelChoice(provider.name, provider.chat_model)
    own = provider.name == CUSTOM.name
    try:
        # A setting may lead elsewhere than to the provider's own address.
        host, key = "" if own else _hostname(models.address(choice)), models.key_state(choice)
    except CodeQAError:  # or nowhere: choosing this provider says why
        host, key = "", "missing"
    return {
        "name": provider.name,
        "title": provider.title,
        "host": host,
        "local": provider.local,
        "key": key,
        "key_variable": provider.key_variable,
        "model": provider.chat_model,
        "needs_address": own,
    }


def _hostname(address: str) -> str:
    return urlsplit(address).hostname or ""
