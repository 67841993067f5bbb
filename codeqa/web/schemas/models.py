"""Language models and their providers."""

from __future__ import annotations

from typing import Literal

from codeqa.web.schemas.base import (
    Id,
    Model,
    Text,
)


class ChoiceBody(Model):
    provider: Id | None = None
    """Empty for none, where a model is chosen."""
    model: Id | None = None
    address: Text | None = None
    key: Text | None = None
    """Only taken, never given."""


class CurrentModel(Model):
    provider: str
    title: str
    model: str
    address: str
    host: str
    local: bool
    source: Literal["page", "setting", ""]
    key: str


class ProviderValues(Model):
    name: str
    title: str
    host: str
    local: bool
    key: str
    key_variable: str
    model: str
    needs_address: bool


class ModelsValues(Model):
    current: CurrentModel | None
    providers: list[ProviderValues]
    problem: str
    changeable: bool
    """Whether this user may choose the model."""


class LocalServer(Model):
    provider: str
    title: str
    address: str
    models: list[str]


class LocalServers(Model):
    servers: list[LocalServer]


class ModelNames(Model):
    models: list[str]


class TestedValues(Model):
    milliseconds: int
    model: str
    host: str


class TokenForm(Model):
    token: str = ""
