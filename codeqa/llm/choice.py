"""Which model: `provider/name`, its API's address in one spelling, and the key for it.

A key is never sent to another place than it was given for.
"""

from __future__ import annotations

from dataclasses import dataclass

from codeqa.errors import SettingsError, UsageError
from codeqa.hosts import location, normal_address
from codeqa.llm.providers import ModelProvider, provider_named
from codeqa.settings import Settings

LONGEST_NAME = 200
"""Characters of a model's name; the longest that providers list have about 80."""
LONGEST_KEY = 4_096


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


def is_model_name(name: str) -> bool:
    """Whether a model can have this name: a line of text without anything invisible."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == " ".join(name.split())


def settled(choice: ModelChoice) -> ModelChoice:
    """`choice` in its one spelling: default model filled in, address normal or ''.

    Raises UsageError for an unknown provider, a missing address or an impossible name.
    """
    provider = provider_named(choice.provider)
    model = choice.model.strip() or provider.chat_model
    if model and not is_model_name(model):
        raise UsageError(
            "The name of the model cannot be used.", "Write it as the provider lists it."
        )
    address = ""
    if choice.address.strip():
        address = normal_address(choice.address, "/v1" if provider.local else "")
    if address == provider.base_url:
        address = ""
    return ModelChoice(provider.name, model, address)


def exported_key(settings: Settings, provider: ModelProvider, address: str) -> tuple[str, str]:
    """The key in the environment that is meant for `address`, '' for none, and its variable: also
    the one that could hold a key, '' where none could."""
    key = settings.model_key.get_secret_value()
    if key and _place(settings.model_url) == location(address):
        return key, "CODEQA_MODEL_KEY"
    own = {_place(provider.base_url)}
    if provider.name == "openai":
        own.add(_place(settings.openai_base_url))
    if location(address) not in own:
        return "", ""
    return settings.provider_key(provider.key_variable), provider.key_variable


def checked_key(key: str, variable: str = "") -> str:
    """`key` without space around it; `variable` is where it came from.

    Raises UsageError or SettingsError that does not repeat it: a header that cannot be sent
    would, in the client's own error.
    """
    key = key.strip()
    if len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key:
        return key
    if variable:
        raise SettingsError(f"{variable} holds characters that no key has.", "Correct or unset it.")
    raise UsageError("The key holds characters that no key has.", "Copy it again.")


def _place(url: str) -> str:
    """The location of a setting's address; '' for none, and for one that leads nowhere."""
    try:
        return location(normal_address(url)) if url else ""
    except UsageError:
        return ""
