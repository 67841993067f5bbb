"""The language model: which is chosen, which there are, a test, a key.

Keys only come in. What is sent to a provider goes to the host that the request names; on a
server with several users only its owner can send anybody's questions there.
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
from codeqa.web.security import member_of_request
from codeqa.web.workspace import workspace

OWNERS = "see to the language model"

endpoints = Endpoints("models", __name__)


class ChoiceBody(Schema):
    provider: Id = ""
    """Empty for none, where a model is chosen."""
    model: Id = ""
    address: Text = ""
    key: Text = ""
    """Only taken, never given."""


@endpoints.route("GET", "/api/models")
def overview() -> Values:
    """The model in use and every provider; nothing is asked of any."""
    models = _models()
    problem = models.problem()
    try:
        choice = models.current()
    except CodeQAError as error:  # a setting that names no provider; another can be chosen
        choice, problem = None, str(error)
    return {
        "current": {**_model(models, choice), "source": models.source()} if choice else None,
        "providers": [_provider(models, one) for one in (*PROVIDERS, CUSTOM)],
        "problem": problem,
        "changeable": (owner := member_of_request().owner),
        # Which may answer a single question.
        "known": [_model(models, one) for one in models.known().values() if owner],
    }


@endpoints.route("GET", "/api/models/local", owners=OWNERS)
def local_servers() -> Values:
    """Servers of models that run on this machine, and the commands that bring one."""
    models = _models()

    def names_at(provider: ModelProvider) -> list[str] | None:
        with suppress(CodeQAError):  # it does not run
            return models.list_models(ModelChoice(provider.name, ""))
        return None

    local = [one for one in PROVIDERS if one.local]
    with ThreadPoolExecutor(len(local)) as threads:
        found = [
            {"provider": one.name, "title": one.title, "address": one.base_url, "models": names}
            for one, names in zip(local, threads.map(names_at, local), strict=True)
            if names is not None
        ]
    return {"servers": found, "commands": LOCAL_MODEL}


@endpoints.route("POST", "/api/models/list", owners=OWNERS)
def list_models(body: ChoiceBody) -> Values:
    """The models that a provider offers."""
    return {"models": _models().list_models(*_choice(body))}


@endpoints.route("POST", "/api/models/test", owners=OWNERS)
def test(body: ChoiceBody) -> Values:
    """Ask a model for a word, to see that address, key and name are right."""
    return _models().test(*_choice(body))


@endpoints.route("POST", "/api/models", owners=OWNERS)
def choose(body: ChoiceBody) -> Values:
    """Use a model from now on, `{"provider": ""}` for none; a key that comes along is kept."""
    if body.provider:
        _models().choose(*_choice(body))
    else:
        _models().choose(None)
    return overview()


@endpoints.route("POST", "/api/models/forget", owners=OWNERS)
def forget_key(body: ChoiceBody) -> Values:
    """Delete the key that is kept for a provider or an address."""
    _models().forget_key(_choice(body)[0])
    return overview()


def _models() -> Models:
    space = workspace()
    return space.engine().models if space.usual() else Models(space.settings)


def _choice(body: ChoiceBody) -> tuple[ModelChoice, str]:
    """The model that a request is about, and the key that it brings. Raises UsageError."""
    choice = ModelChoice(body.provider, body.model, body.address)
    return settled(choice), checked_key(body.key)


def _model(models: Models, choice: ModelChoice) -> Values:
    provider, where = provider_named(choice.provider), models.base_url(choice)
    host = ModelAddress(where).host
    return asdict(choice) | {
        "address": where if where != provider.base_url else "",  # which a setting may name
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
        # A setting may lead elsewhere than to the provider's own address.
        host = "" if own else ModelAddress(models.base_url(choice)).host
        key = models.key_state(choice)
    except CodeQAError:  # or nowhere: choosing this provider says why
        host, key = "", "missing"
    about = {name: getattr(provider, name) for name in ("name", "title", "key_variable", "local")}
    return {**about, "host": host, "key": key, "model": provider.chat_model, "needs_address": own}
