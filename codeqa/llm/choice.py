"""Which model: `provider/name`, and the address where it differs from the provider's own."""

from __future__ import annotations

from dataclasses import dataclass

from codeqa.errors import UsageError
from codeqa.llm.address import normal_address
from codeqa.llm.providers import CUSTOM, ModelProvider, provider_named

LONGEST_NAME = 200
"""Characters of a model's name; the longest that providers list have about 80."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A provider's name and a model's; `model` '' means the first that the server lists."""

    provider: str
    model: str
    address: str = ""

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


def parse_choice(text: str, address: str = "") -> ModelChoice:
    """The choice that `provider/name` stands for; the name may hold further slashes.

    `provider` alone takes its default model. Raises UsageError.
    """
    name, _, model = text.strip().partition("/")
    return settled(ModelChoice(name, model, address))


def usable(name: str) -> bool:
    """Whether a model can have this name: a line of text without anything invisible."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == " ".join(name.split())


def settled(choice: ModelChoice) -> ModelChoice:
    """`choice` in its one spelling: default model filled in, address normal or ''.

    Raises UsageError for an unknown provider, a missing address or an impossible name.
    """
    provider = provider_named(choice.provider)
    model = choice.model.strip() or provider.chat_model
    if model and not usable(model):
        raise UsageError(
            "The name of the model cannot be used.", "Write it as the provider lists it."
        )
    address = ""
    if choice.address.strip():
        address = normal_address(choice.address, "/v1" if provider.local else "")
    if address == provider.base_url:
        address = ""
    return ModelChoice(provider.name, model, address)


def own_address(choice: ModelChoice, provider: ModelProvider) -> str:
    """Address that `choice` itself names, else its provider's. Raises UsageError for none."""
    address = choice.address or provider.base_url
    if not address:
        raise UsageError(
            f"The provider {CUSTOM.name!r} needs an address.",
            "Give the base address of the API, as in http://127.0.0.1:8000/v1.",
        )
    return address
