"""Which model is used, with which key, and the models themselves, kept for the next turn.

A key is never sent to another place than it was given for. What was picked on the page, and keys,
are kept in one file that only its owner can read.
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
from codeqa.llm.client import Model
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
PRIVATE = 0o600
LONGEST_KEY = 4_096
MOST_USED = 6
TEST_MESSAGES = ({"role": "user", "content": "Reply with the single word: ready"},)
TEST_TOKENS = 1_000  # enough for a model that reasons before it says its one word
TEST_SECONDS = 60.0  # a large model that is loaded first takes about half

KeyState = Literal["stored", "exported", "missing", "unneeded"]
Source = Literal["page", "setting", ""]
SOURCES = {"page": "picked by the user", "setting": "set by CODEQA_MODEL"}


@dataclass(slots=True)
class SavedModels:
    """The content of the file; `problem` says why there is none."""

    pick: ModelChoice | None = None
    """What was picked on the page; None: no model."""
    over: str | None = None
    """The setting that was in force then: when it changes, the pick ends. None: no pick."""
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    """Location of an address (scheme, host, port) → key."""
    used: list[ModelChoice] = field(default_factory=list)
    """What was picked until now, the latest first."""
    problem: str = ""


_CONTENT = TypeAdapter(SavedModels)


class Models:
    """The models that `settings` and the page allow; safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._models: dict[ModelAddress, Model] = {}
        self._preferred: ModelChoice | None = None

    def current(self) -> ModelChoice | None:
        """The choice in force, None for no model. Raises SettingsError for an unfit setting."""
        return self._in_force()[0]

    def source(self) -> Source:
        """Where the choice in force comes from; '' when nothing was ever chosen."""
        return self._in_force()[1]

    def prefer(self, name: str) -> None:
        """Put `provider/name` before pick and setting, for this object only: a command's `--model`.

        Its address is that of the choice in force, where that is of the same provider. Raises what
        is wrong with it, and then changes nothing."""
        choice = parse_choice(name)
        with suppress(SettingsError):  # what the setting names is not wanted
            if (used := self.current()) and used.provider == choice.provider:
                choice = replace(choice, address=used.address)
        self.address(choice)
        self._preferred = choice

    def known(self) -> dict[str, ModelChoice]:
        """Those that are set up, by `provider/name`, the one in force first: picked before, or the
        usual one of a provider that has a key. Nothing is asked of any."""
        usual = (ModelChoice(one.name, one.chat_model) for one in PROVIDERS if one.key_variable)
        choices, found = [*self._saved().used, *usual], dict[str, ModelChoice]()
        with suppress(SettingsError):  # a setting that names no provider
            choices = [one for one in (self.current(), *choices) if one]
        for choice in choices:
            with suppress(UsageError):  # of a provider that this version does not know
                if self.key_state(choice) != "missing":
                    found.setdefault(str(choice), choice)
        return found

    def called(self, name: str) -> Model | None:
        """The model of `known` called `name`, '' for the one in force. Raises UsageError for
        another, SettingsError."""
        if not name:
            return self.answer_model()
        if choice := self.known().get(name):
            return self.answer_model(choice)
        raise UsageError("This model is not set up.", "Choose it once on the page, with its key.")

    def problem(self) -> str:
        """What is wrong with the file of the pick and the keys; '' when nothing is."""
        return self._saved().problem

    def choose(self, choice: ModelChoice | None, key: str = "") -> None:
        """Pick a model from now on, None for no model; a key is kept for its address. Raises
        UsageError, and SettingsError when the key that it needs is nowhere."""
        place, checked = "", checked_key(key)
        if choice is not None:
            choice = parse_choice(str(choice), choice.address)
            place = location(self.address(choice, key).base_url)
        with self._changed() as saved:
            saved.pick, saved.over = choice, self._setting()
            used = [choice, *(one for one in saved.used if one != choice)]
            saved.used = [one for one in used if one][:MOST_USED]
            if checked:
                saved.keys[place] = checked
        self._preferred = None

    def forget_key(self, choice: ModelChoice) -> None:
        place = location(self.base_url(choice))
        with self._changed() as saved:
            saved.keys.pop(place, None)

    def key_state(self, choice: ModelChoice) -> KeyState:
        """Whether a key is kept, exported, missing, or none is needed."""
        return self._key(provider_named(choice.provider), self.base_url(choice))[0]

    def base_url(self, choice: ModelChoice) -> str:
        """Base address that the choice leads to: CODEQA_MODEL_URL for the provider that
        CODEQA_MODEL names. Raises UsageError when there is none."""
        choice, settings = settled(choice), self._settings
        named = settings.model.strip().partition("/")[0].lower() or CUSTOM.name
        places = {"openai": settings.openai_base_url}
        if settings.model_url:
            places[named] = settings.model_url
        own = provider_named(choice.provider).base_url
        if given := choice.address or places.get(choice.provider) or own:
            return normal_address(given)
        raise UsageError(
            f"The provider {CUSTOM.name!r} needs an address.",
            "Give it: `codeqa models use custom/NAME --url http://127.0.0.1:8000/v1`.",
        )

    def address(self, choice: ModelChoice, key: str = "") -> ModelAddress:
        """Where a choice leads, and with which key: `key`, else the one kept for that location,
        else the exported one for its own place. Raises UsageError for an address that is none,
        and SettingsError when a key is needed and there is none."""
        choice = settled(choice)
        provider, url = provider_named(choice.provider), self.base_url(choice)
        state, found = self._key(provider, url)
        key = checked_key(key) or checked_key(found)
        if state == "missing" and not key:
            raise SettingsError(
                f"There is no key for {provider.title}.",
                f"Enter one on the page or by `codeqa models use`, or set {provider.key_variable}.",
            )
        return ModelAddress(url, choice.model, key, provider.name)

    def answer_model(self, choice: ModelChoice | None = None) -> Model | None:
        """The model of `choice`, else of the one in force; None when there is none. Nothing is
        sent. Raises SettingsError, UsageError."""
        if (choice := choice or self.current()) is None:
            return None
        target = self.address(choice)
        model = self._models.get(target)
        if model is None:
            model = Model(target, self._settings.model_timeout)
            model = self._models.setdefault(target, model)
            model.prepare()
        return model

    def small_model(self) -> Model | None:
        """The model that writes hypotheses: at the address of the one in force, with its key.

        CODEQA_HYDE_MODEL names it, else it is the provider's small one where that is sure to be
        served: at the provider's own address, or wherever its own large one is.
        """
        if (choice := self.current()) is None:
            return None
        provider, named = provider_named(choice.provider), self._settings.hyde_model.strip()
        if provider.chat_model == choice.model or provider.base_url == self.base_url(choice):
            named = named or provider.small_model
        return self.answer_model(replace(choice, model=named or choice.model))

    def list_models(self, choice: ModelChoice, key: str = "") -> list[str]:
        """Names of the models at the choice's address. Raises ModelError."""
        with Model(self.address(choice, key), self._settings.model_timeout) as model:
            return model.list_models()

    def test(self, choice: ModelChoice, key: str = "") -> dict[str, Any]:
        """Ask for a word: {milliseconds} that it took, {model, host}. Raises ModelError."""
        target, began = self.address(choice, key), time.monotonic()
        # Signs of life alone would keep it waiting, and whoever asked for the test, for ever.
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

    def _setting(self) -> str:
        """What a pick takes the place of; a change in either part ends it."""
        return f"{self._settings.model} {self._settings.model_url}".strip()

    def _key(self, provider: ModelProvider, url: str) -> tuple[KeyState, str]:
        """Where the key for this address comes from, and the key."""
        settings, place = self._settings, location(url)
        if kept := self._saved().keys.get(place):
            return "stored", kept
        own = settings.provider_key(provider.key_variable)
        exported = [(settings.model_url, settings.model_key.get_secret_value())]
        exported += [(provider.base_url, own)]
        exported += [(settings.openai_base_url, own)] if provider.name == "openai" else []
        for home, key in exported:
            if key and _place(home) == place:
                return "exported", key
        needed = provider.key_variable and place == location(provider.base_url)
        return "missing" if needed else "unneeded", ""

    def _saved(self) -> SavedModels:
        """What is kept; a file that cannot be read counts as empty."""
        path = self._settings.data_dir / FILE_NAME
        try:
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)  # as a restored backup may leave it
            return _CONTENT.validate_json(path.read_bytes())
        except FileNotFoundError:
            return SavedModels()
        except (OSError, ValueError):
            problem = "is damaged or cannot be read, so the model and the keys that were kept in it"
            return SavedModels(problem=f"{path} {problem} are not used.")

    @contextmanager
    def _changed(self) -> Iterator[SavedModels]:
        """What is kept, to be changed; it is written whole or not at all. Raises StorageError."""
        folder = self._settings.data_dir
        path, new = folder / FILE_NAME, folder / "models.new"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with FileLock(path.with_suffix(".lock"), LOCK_SECONDS, mode=PRIVATE):
                saved = self._saved()
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


def checked_key(key: str) -> str:
    """`key` without space around it. Raises UsageError that does not repeat it: the error of a
    client that cannot send it as a header would."""
    key = key.strip()
    if len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise UsageError("The key holds characters that no key has.", "Copy it again.")


def _place(url: str) -> str:
    """The location of a setting's address; '' for none, and for one that leads nowhere."""
    with suppress(UsageError):
        return location(normal_address(url)) if url else ""
    return ""
