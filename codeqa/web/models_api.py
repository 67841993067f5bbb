"""The language model: choose one, list those there are, test one, delete a key.

Keys are accepted but never returned. What is sent to a provider goes to the host that the request
names, so on a server with several users only the owner may change the model.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict

from codeqa.errors import CodeQAError
from codeqa.hosts import is_loopback
from codeqa.llm.models import Models, checked_key
from codeqa.llm.providers import (
    CUSTOM,
    LOCAL_MODEL,
    PROVIDERS,
    ModelAddress,
    ModelChoice,
    ModelProvider,
    provider_named,
    settled,
)
from codeqa.web.endpoints import Endpoints, Id, Schema, Text, Values
from codeqa.web.security import current_user
from codeqa.web.workspace import workspace

OWNERS_ONLY = "change the language model"

endpoints = Endpoints("models", __name__)


class ChoiceBody(Schema):
    provider: Id = ""
    """Empty to use no model."""
    model: Id = ""
    address: Text = ""
    key: Text = ""
    """Accepted, but never returned."""


@endpoints.route("GET", "/api/models")
def overview() -> Values:
    """Return the model in use and all providers, without sending anything to them."""
    models, is_owner = _models(), current_user().owner
    for_one_question = models.known().values() if is_owner else ()
    problem = models.problem()
    try:
        choice = models.current()
    except (
        CodeQAError
    ) as error:  # the setting names an unknown provider; the user can choose another
        choice, problem = None, str(error)
    return {
        "current": _model(models, choice) | {"source": models.source()} if choice else None,
        "providers": [_provider(models, provider) for provider in PROVIDERS + (CUSTOM,)],
        "problem": problem,
        "changeable": is_owner,
        "known": [_model(models, usable) for usable in for_one_question],
    }


@endpoints.route("GET", "/api/models/local", owners=OWNERS_ONLY)
def local_servers() -> Values:
    """List model servers that run on this machine, and commands that install one."""
    models = _models()

    def names_at(provider: ModelProvider) -> list[str] | None:
        with suppress(CodeQAError):  # it is not running
            return models.list_models(ModelChoice(provider.name, ""))
        return None

    local, servers = [provider for provider in PROVIDERS if provider.local], list[Values]()
    with ThreadPoolExecutor(len(local)) as threads:
        for provider, names in zip(local, threads.map(names_at, local), strict=True):
            if names is not None:
                server = {"provider": provider.name, "title": provider.title}
                servers.append(server | {"address": provider.base_url, "models": names})
    return {"servers": servers, "commands": LOCAL_MODEL}


@endpoints.route("POST", "/api/models/list", owners=OWNERS_ONLY)
def list_models(body: ChoiceBody) -> Values:
    """List the models that a provider offers."""
    return {"models": _models().list_models(*_choice(body))}


@endpoints.route("POST", "/api/models/test", owners=OWNERS_ONLY)
def test(body: ChoiceBody) -> Values:
    """Ask a model for one word, to check address, key and name."""
    return _models().test(*_choice(body))


@endpoints.route("POST", "/api/models", owners=OWNERS_ONLY)
def choose(body: ChoiceBody) -> Values:
    """Use a model from now on, or none with `{"provider": ""}`; a key that is sent is stored."""
    if body.provider:
        _models().choose(*_choice(body))
    else:
        _models().choose(None)
    return overview()


@endpoints.route("POST", "/api/models/forget", owners=OWNERS_ONLY)
def forget_key(body: ChoiceBody) -> Values:
    """Delete the stored key of a provider or an address."""
    _models().forget_key(_choice(body)[0])
    return overview()


def _models() -> Models:
    space = workspace()
    return space.engine().models if space.usual() else Models(space.settings)


def _choice(body: ChoiceBody) -> tuple[ModelChoice, str]:
    """Return the model and the key in a request. Raises UsageError."""
    choice = ModelChoice(body.provider, body.model, body.address)
    return settled(choice), checked_key(body.key)


def _model(models: Models, choice: ModelChoice) -> Values:
    provider, where = provider_named(choice.provider), models.base_url(choice)
    host = ModelAddress(where).host
    return asdict(choice) | {
        "address": where if where != provider.base_url else "",  # a setting may name another
        "title": provider.title,
        "host": host,
        "local": is_loopback(host),
        "name": str(choice),
        "key": models.key_state(choice),
    }


def _provider(models: Models, provider: ModelProvider) -> Values:
    choice = ModelChoice(provider.name, provider.chat_model)
    own = provider.name == CUSTOM.name
    try:
        # A setting may name another address than the provider's own.
        host = "" if own else ModelAddress(models.base_url(choice)).host
        key = models.key_state(choice)
    except CodeQAError:  # the setting is wrong: choosing this provider says why
        host, key = "", "missing"
    names = ("name", "title", "key_variable", "local")
    values: Values = {name: getattr(provider, name) for name in names}
    return values | {"host": host, "key": key, "model": provider.chat_model, "needs_address": own}
