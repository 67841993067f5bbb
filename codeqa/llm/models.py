"""Choose the model and its key, and keep open models for the next turn.

A key is sent only to the address it was entered for. The model picked on the page and the keys are
stored in one file that only its owner can read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from codeqa.errors import SettingsError, StorageError, UsageError
from codeqa.hosts import location, normal_address
from codeqa.llm.client import Clock, Model
from codeqa.llm.failures import failure
from codeqa.llm.providers import (
    CUSTOM,
    NO_MODEL,
    PROVIDERS,
    ModelAddress,
    ModelChoice,
    ModelProvider,
    parse_choice,
    provider_named,
    settled,
)
from codeqa.settings import Settings

FILE_NAME = "models.json"
LOCK_SECONDS = 6.0
PRIVATE_MODE = 0o600
LONGEST_KEY = 4_096
MOST_USED = 6
TEST_MESSAGES = ({"role": "user", "content": "Reply with the single word: ready"},)
TEST_TOKENS = 1_000  # enough for a model that reasons before it says its one word
TEST_SECONDS = 60.0  # twice what a large model takes that has to be loaded first

KeyState = Literal["stored", "exported", "missing", "unneeded"]
Source = Literal["page", "setting", ""]
SOURCES = {"page": "picked by the user", "setting": "set by CODEQA_MODEL"}


@dataclass(slots=True)
class SavedModels:
    """The content of the file."""

    pick: ModelChoice | None = None
    """The choice on the page; None: no model."""
    over: str | None = None
    """The setting at that time: when it changes, the pick ends. None: no pick."""
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    """Location of an address (scheme, host, port) → key."""
    used: list[ModelChoice] = field(default_factory=list)
    """Earlier picks, the latest first."""
    problem: str = ""
    """Why the file could not be read."""


_CONTENT = TypeAdapter(SavedModels)


class Models:
    """The models that `settings` and the page allow; safe to share between threads."""

    def __init__(self, settings: Settings, clock: Clock = time.monotonic) -> None:
        self._settings, self._clock = settings, clock
        self._models: dict[ModelAddress, Model] = {}
        self._preferred: ModelChoice | None = None

    def current(self) -> ModelChoice | None:
        """Return the current choice, None for no model. Raises SettingsError."""
        return self._in_force()[0]

    def source(self) -> Source:
        """Return where the current choice comes from; '' when nothing was ever chosen."""
        return self._in_force()[1]

    def prefer(self, name: str) -> None:
        """Use `provider/name` here in place of pick and setting. Raises UsageError, SettingsError.

        Its address is that of the current choice, if that is of the same provider.
        """
        choice = parse_choice(name)
        with suppress(SettingsError):  # the setting is not used
            current = self.current()
            if current and current.provider == choice.provider:
                choice = replace(choice, address=current.address)
        self.address(choice)
        self._preferred = choice

    def known(self) -> dict[str, ModelChoice]:
        """Return earlier picks and usual models with a key, by name, the current one first."""
        choices: list[ModelChoice | None] = []
        with suppress(SettingsError):  # a setting that names no provider
            choices.append(self.current())
        choices += self._saved().used
        choices += [ModelChoice(one.name, one.chat_model) for one in PROVIDERS if one.key_variable]
        usable: dict[str, ModelChoice] = {}
        for choice in choices:
            with suppress(UsageError):  # of a provider that this version does not know
                if choice and self.key_state(choice) != "missing":
                    usable.setdefault(str(choice), choice)
        return usable

    def called(self, name: str) -> Model | None:
        """Return the model of `known` called `name`, '' for the current one. Raises UsageError."""
        if not name:
            return self.answer_model()
        if choice := self.known().get(name):
            return self.answer_model(choice)
        raise UsageError("This model is not set up.", "Choose it once on the page, with its key.")

    def problem(self) -> str:
        """Return why the file of the pick and the keys cannot be used; '' when it can."""
        return self._saved().problem

    def choose(self, choice: ModelChoice | None, key: str = "") -> None:
        """Pick a model, or None; store `key` for its address. Raises UsageError, SettingsError."""
        address, key = "", checked_key(key)
        if choice is not None:
            choice = parse_choice(str(choice), choice.address)
            address = location(self.address(choice, key).base_url)
        with self._changed() as saved:
            saved.pick, saved.over = choice, self._setting()
            if choice:
                used = [choice] + [one for one in saved.used if one != choice]
                saved.used = used[:MOST_USED]
            if key:
                saved.keys[address] = key
        self._preferred = None

    def forget_key(self, choice: ModelChoice) -> None:
        address = location(self.base_url(choice))
        with self._changed() as saved:
            saved.keys.pop(address, None)

    def key_state(self, choice: ModelChoice) -> KeyState:
        """Return whether a key is stored, exported, missing, or none is needed."""
        return self._key(provider_named(choice.provider), self.base_url(choice))[0]

    def base_url(self, choice: ModelChoice) -> str:
        """Return the base address of a choice. Raises UsageError when there is none."""
        choice, settings = settled(choice), self._settings
        # CODEQA_MODEL_URL is for the provider that CODEQA_MODEL names.
        configured = settings.model.strip().partition("/")[0].lower() or CUSTOM.name
        provider = provider_named(choice.provider)
        url = self._address_setting(provider) or provider.base_url
        if settings.model_url and choice.provider == configured:
            url = settings.model_url
        if choice.address or url:
            return normal_address(choice.address or url)
        raise UsageError(
            f"The provider {CUSTOM.name!r} needs an address.",
            "Give it: `codeqa models use custom/NAME --url http://127.0.0.1:8000/v1`.",
        )

    def address(self, choice: ModelChoice, key: str = "") -> ModelAddress:
        """Return the address of a choice with its key. Raises UsageError, SettingsError."""
        choice = settled(choice)
        provider, url = provider_named(choice.provider), self.base_url(choice)
        state, own_key = self._key(provider, url)
        key = checked_key(key) or checked_key(own_key)
        if state == "missing" and not key:
            raise SettingsError(
                f"There is no key for {provider.title}.",
                f"Give it on the page or with `codeqa models use`, or set {provider.key_variable}.",
            )
        return ModelAddress(url, choice.model, key, provider.name)

    def answer_model(self, choice: ModelChoice | None = None) -> Model | None:
        """Return the model of `choice` or the current one. Raises SettingsError, UsageError."""
        choice = choice or self.current()
        if choice is None:
            return None
        target = self.address(choice)
        model = self._models.get(target)
        if model is None:
            model = Model(target, self._settings.model_timeout, self._clock)
            model = self._models.setdefault(target, model)
            model.prepare()
        return model

    def small_model(self) -> Model | None:
        """Return the model that writes drafts, at the address of the current one with its key.

        CODEQA_HYDE_MODEL names it, else it is the provider's small model where that is sure to be
        served: at the provider's own address, or where its default model is chosen.
        """
        choice = self.current()
        if choice is None:
            return None
        provider, name = provider_named(choice.provider), self._settings.hyde_model.strip()
        if provider.chat_model == choice.model or provider.base_url == self.base_url(choice):
            name = name or provider.small_model
        return self.answer_model(replace(choice, model=name or choice.model))

    def list_models(self, choice: ModelChoice, key: str = "") -> list[str]:
        """Return the names of the models at the choice's address. Raises ModelError."""
        with Model(self.address(choice, key), self._settings.model_timeout) as model:
            return model.list_models()

    def test(self, choice: ModelChoice, key: str = "") -> dict[str, Any]:
        """Ask for one word; return {milliseconds, model, host}. Raises ModelError."""
        target, began = self.address(choice, key), time.monotonic()
        # A server that sends only signs of life would keep the user waiting for ever.
        until = began + TEST_SECONDS
        with Model(target, min(self._settings.model_timeout, TEST_SECONDS)) as model:
            once = {"cancelled": lambda: time.monotonic() > until, "retries": 0}
            if not model.complete(TEST_MESSAGES, TEST_TOKENS, **once):
                raise failure("broke off", target, ": it stayed silent for too long")
        took = round((time.monotonic() - began) * 1000)
        return {"milliseconds": took, "model": target.model, "host": target.host}

    def close(self) -> None:
        models, self._models = self._models, {}
        for model in models.values():
            model.close()

    def _in_force(self) -> tuple[ModelChoice | None, Source]:
        if self._preferred is not None:
            return self._preferred, "setting"
        saved = self._saved()
        if saved.over == self._setting():
            with suppress(UsageError):  # of a provider that this version does not know
                return saved.pick and settled(saved.pick), "page"
        text = self._settings.model.strip()
        if text in ("", NO_MODEL):
            return None, ""
        try:
            choice = parse_choice(text)
            self.base_url(choice)
        except UsageError as error:  # whoever reads it may have typed nothing
            problem = f"CODEQA_MODEL cannot be used: {error.message}"
            raise SettingsError(problem, error.hint) from None
        return choice, "setting"

    def _address_setting(self, provider: ModelProvider) -> str:
        """Return the address that a setting gives the provider; '' for none."""
        name = provider.address_setting
        return str(getattr(self._settings, name)) if name else ""

    def _setting(self) -> str:
        """Return the settings that a pick replaces; it ends when they change."""
        return f"{self._settings.model} {self._settings.model_url}".strip()

    def _key(self, provider: ModelProvider, url: str) -> tuple[KeyState, str]:
        """Return where the key for this address comes from, and the key."""
        settings, address = self._settings, location(url)
        if key := self._saved().keys.get(address):
            return "stored", key
        own_key = settings.provider_key(provider.key_variable)
        exported = [
            (settings.model_url, settings.model_key.get_secret_value()),
            (provider.base_url, own_key),
        ]
        if provider.address_setting:
            exported.append((self._address_setting(provider), own_key))
        for home, key in exported:
            if key and _location(home) == address:
                return "exported", key
        needed = provider.key_variable and address == location(provider.base_url)
        return "missing" if needed else "unneeded", ""

    def _saved(self) -> SavedModels:
        """Return the content of the file; one that cannot be read counts as empty."""
        path = self._settings.data_dir / FILE_NAME
        try:
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE_MODE)  # as a restored backup may leave it
            return _CONTENT.validate_json(path.read_bytes())
        except FileNotFoundError:
            return SavedModels()
        except (OSError, ValueError):
            problem = "is damaged or cannot be read, so the model and the keys that were kept in it"
            return SavedModels(problem=f"{path} {problem} are not used.")

    @contextmanager
    def _changed(self) -> Iterator[SavedModels]:
        """Yield the content of the file to change it, then write it whole. Raises StorageError."""
        folder = self._settings.data_dir
        path, draft = folder / FILE_NAME, folder / "models.new"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(path.with_suffix(".lock"), LOCK_SECONDS, mode=PRIVATE_MODE):
                saved = self._saved()
                yield saved
                draft.unlink(missing_ok=True)
                draft.touch(PRIVATE_MODE)  # before the first byte is written
                draft.write_bytes(_CONTENT.dump_json(saved, exclude={"problem"}, indent=1))
                if saved.problem:  # a damaged file may still hold keys that its owner wants back
                    path.replace(path.with_suffix(".damaged"))
                draft.replace(path)
        except (OSError, Timeout) as error:
            raise StorageError(
                f"The choice of the model cannot be saved: {error.strerror or error}.",
                f"Check that {folder} is writable and the disk has space.",
            ) from None


def checked_key(key: str) -> str:
    """Return `key` without space around it. Raises UsageError, which does not repeat it."""
    key = key.strip()
    if len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise UsageError("The key holds characters that cannot be part of a key.", "Copy it again.")


def _location(url: str) -> str:
    """Return the location of a setting's address; '' for none and for an impossible one."""
    with suppress(UsageError):
        return location(normal_address(url)) if url else ""
    return ""
