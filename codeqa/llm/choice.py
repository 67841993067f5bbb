"""Which model: `provider/name`, the address and the key for it, and what of that is kept.

A key is never sent to another place than it was given for. What was picked on the page, and keys,
are kept in one file that only its owner can read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from codeqa.errors import StorageError, UsageError
from codeqa.hosts import location, normal_address
from codeqa.llm.providers import ModelProvider, is_model_name, provider_named
from codeqa.settings import Settings

LONGEST_KEY = 4_096
FILE_NAME = "models.json"
LOCK_SECONDS = 6.0
"""Writing takes milliseconds; whoever holds the lock for longer is stuck."""
PRIVATE = 0o600


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
    return ModelChoice(provider.name, model, "" if address == provider.base_url else address)


def exported_key(settings: Settings, provider: ModelProvider, address: str) -> str:
    """The key in the environment that is meant for `address`, '' for none."""
    key = settings.model_key.get_secret_value()
    if key and _place(settings.model_url) == location(address):
        return key
    own = [provider.base_url, settings.openai_base_url if provider.name == "openai" else ""]
    here = location(address) in map(_place, own)
    return settings.provider_key(provider.key_variable) if here else ""


def checked_key(key: str) -> str:
    """`key` without space around it.

    Raises UsageError that does not repeat it: a header that cannot be sent would, in the client's
    own error.
    """
    key = key.strip()
    if len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise UsageError("The key holds characters that no key has.", "Copy it again.")


def _place(url: str) -> str:
    """The location of a setting's address; '' for none, and for one that leads nowhere."""
    try:
        return location(normal_address(url)) if url else ""
    except UsageError:
        return ""


@dataclass(frozen=True, slots=True)
class Pick(ModelChoice):
    """What was picked on the page; an empty provider is "no model"."""

    over: str = ""
    """The setting that the pick took the place of: when that changes, it holds again."""


@dataclass(slots=True)
class SavedModels:
    """The content of the file; `problem` says why there is none."""

    format: Literal[1] = 1
    pick: Pick | None = None
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    """Location of an address (scheme, host, port) → key."""
    problem: str = ""


_CONTENT = TypeAdapter(SavedModels)


def read_saved(folder: Path) -> SavedModels:
    """What is kept in `folder`; a file that cannot be read counts as empty and is said."""
    path = folder / FILE_NAME
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(PRIVATE)  # as a restored backup may leave it
        return _CONTENT.validate_json(path.read_bytes())
    except FileNotFoundError:
        return SavedModels()
    except (OSError, ValueError):
        return SavedModels(
            problem=f"{path} is damaged or cannot be read, so the model and the keys that were "
            "kept in it are not used."
        )


@contextmanager
def change_saved(folder: Path) -> Iterator[SavedModels]:
    """Gives the content to be changed, and writes it, whole or not at all. Raises StorageError."""
    path = folder / FILE_NAME
    new = path.with_suffix(".new")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(path.with_suffix(".lock"), LOCK_SECONDS, mode=PRIVATE):
            saved = read_saved(folder)
            yield saved
            new.unlink(missing_ok=True)
            new.touch(PRIVATE)  # nobody else can read it from its first byte
            new.write_bytes(_CONTENT.dump_json(saved, exclude={"problem"}, indent=1))
            if saved.problem:  # a damaged file may still hold keys that its owner wants back
                path.replace(path.with_suffix(".damaged"))
            new.replace(path)
    except (OSError, Timeout) as error:
        raise StorageError(
            f"The choice of the model cannot be kept: {error.strerror or error}.",
            f"See that {folder} is writable and has room.",
        ) from None
