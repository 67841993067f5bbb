"""Which key is meant for which place: one is never sent to another than it was given for."""

from __future__ import annotations

from codeqa.errors import SettingsError, UsageError
from codeqa.llm.address import location, normal_address
from codeqa.llm.providers import ModelProvider
from codeqa.settings import Settings

LONGEST_KEY = 4_096


def exported_key(settings: Settings, provider: ModelProvider, address: str) -> tuple[str, str]:
    """The key in the environment that is meant for `address`, and its variable; '' for none."""
    key = settings.model_key.get_secret_value()
    if key and _place(settings.model_url) == location(address):
        return key, "CODEQA_MODEL_KEY"
    if is_own(settings, provider, address):
        return settings.provider_key(provider.key_variable), provider.key_variable
    return "", ""


def is_own(settings: Settings, provider: ModelProvider, address: str) -> bool:
    """Whether the provider's exported key was meant for `address`."""
    own = {_place(provider.base_url)}
    if provider.name == "openai":
        own.add(_place(settings.openai_base_url))
    return location(address) in own


def needs_key(provider: ModelProvider, address: str) -> bool:
    """Whether nothing can be asked at `address` without a key."""
    return bool(provider.key_variable) and location(address) == location(provider.base_url)


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
