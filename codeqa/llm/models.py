"""Which model is used, with which key, and the models themselves, kept for the next turn.

A key is never sent to another place than it was given for. What was picked on the page, and keys,
are kept in one file that only its owner can read.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from codeqa.errors import CodeQAError, ModelError, SettingsError, StorageError, UsageError
from codeqa.hosts import location, normal_address
from codeqa.llm.client import Model
from codeqa.llm.failures import failure
from codeqa.llm.providers import (
    CUSTOM,
    PROVIDERS,
    ModelAddress,
    ModelChoice,
    ModelProvider,
    parse_choice,
    provider_named,
    settled,
)
from codeqa.settings import Settings

log = logging.getLogger(__name__)

FILE_NAME = "models.json"
LOCK_SECONDS = 6.0
"""Writing takes milliseconds; whoever holds the lock for longer is stuck."""
PRIVATE = 0o600
LONGEST_KEY = 4_096
TEST_MESSAGES = ({"role": "user", "content": "Reply with the single word: ready"},)
TEST_TOKENS = 1_000
"""Enough for a model that reasons before it says its one word."""
TEST_SECONDS = 60.0
"""For the first word of an answer; a large model that is loaded first takes about half."""
PROBE_SECONDS = 0.4
"""A server on this machine answers in milliseconds, or there is none."""
_NO_CHAT = re.compile(
    r"embed|whisper|\btts\b|-tts|dall-e|image|imagen|moderation|rerank|transcri|realtime|audio"
    r"|speech|sora|veo|guard|\bbge-|\be5-|minilm|\bocr\b",
    re.IGNORECASE,
)

KeyState = Literal["stored", "exported", "missing", "unneeded"]
Source = Literal["page", "setting", ""]
SOURCES = {"page": "picked by the user", "setting": "set by CODEQA_MODEL"}


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


class Models:
    """The models that `settings` and the page allow; safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._models: dict[ModelAddress, Model] = {}
        self._preferred: ModelChoice | None = None

    # Which model

    def current(self) -> ModelChoice | None:
        """The choice in force, None for no model. Raises SettingsError for an unfit setting."""
        return self._in_force()[0]

    def source(self) -> Source:
        """Where the choice in force comes from; '' when nothing was ever chosen."""
        return self._in_force()[1]

    def prefer(self, choice: ModelChoice | None) -> None:
        """Put `choice` before pick and setting, for this object only: a command's `--model`.

        CODEQA_MODEL_URL goes with it unless that is set for another provider.
        """
        configured = self._settings.model.strip().partition("/")[0]
        if choice and not choice.address and configured in ("", choice.provider):
            choice = settled(replace(choice, address=self._settings.model_url))
        self._preferred = choice

    def prefer_named(self, name: str) -> None:
        """The same for `provider/name`. Raises what is wrong with it, and then changes nothing."""
        before = self._preferred
        self.prefer(parse_choice(name))
        try:
            if self._preferred:
                self.address(self._preferred)
        except CodeQAError:
            self._preferred = before
            raise

    def problem(self) -> str:
        """What is wrong with the file of the pick and the keys; '' when nothing is."""
        return self._saved().problem

    def choose(self, choice: ModelChoice | None, key: str = "") -> None:
        """Pick a model from now on, None for no model; a key is kept for its address.

        Raises UsageError, and SettingsError when the key that it needs is nowhere.
        """
        place, checked = "", checked_key(key)
        if choice is not None:
            choice = settled(choice)
            if choice.provider == CUSTOM.name:
                choice = replace(choice, address=self.base_url(choice))
            place = location(self.address(choice, key).base_url)
        pick = Pick(**asdict(choice or ModelChoice("", "")), over=self._setting())
        with self._changed() as saved:
            saved.pick = pick
            if checked:
                saved.keys[place] = checked
        self._preferred = None

    # Where it is reached, and with which key

    def forget_key(self, choice: ModelChoice) -> None:
        """Delete the key that is kept for the choice's address."""
        place = location(self.base_url(choice))
        with self._changed() as saved:
            saved.keys.pop(place, None)

    def key_state(self, choice: ModelChoice) -> KeyState:
        """Whether a key is kept, exported, missing, or none is needed."""
        try:
            return self._key(provider_named(choice.provider), self.base_url(choice))[0]
        except UsageError:  # it leads nowhere
            return "unneeded"

    def base_url(self, choice: ModelChoice) -> str:
        """Base address that the choice leads to. Raises UsageError when there is none.

        The setting's own choice carries CODEQA_MODEL_URL; one from elsewhere never goes there
        unasked, since its user was shown another host.
        """
        choice = settled(choice)
        given = choice.address or provider_named(choice.provider).base_url
        if not choice.address and choice.provider == "openai":
            given = self._settings.openai_base_url or given
        elif not choice.address and choice.provider == CUSTOM.name:
            given = self._settings.model_url
            if not given and (pick := self._saved().pick) and pick.provider == CUSTOM.name:
                given = pick.address  # another model at the address picked before
        if not given:
            raise UsageError(
                f"The provider {CUSTOM.name!r} needs an address.",
                "Give the base address of the API, as in http://127.0.0.1:8000/v1.",
            )
        return normal_address(given)

    def address(self, choice: ModelChoice, key: str = "") -> ModelAddress:
        """Where a choice leads, and with which key: `key`, else the one kept for that location,
        else the exported one for its own place. Nothing is sent.

        Raises SettingsError when a key is needed and there is none, UsageError for an address.
        """
        choice = settled(choice)
        provider, url = provider_named(choice.provider), self.base_url(choice)
        state, found = self._key(provider, url)
        key = checked_key(key) or checked_key(found)
        if state == "missing" and not key:
            raise SettingsError(
                f"There is no key for {provider.title}.",
                f"Enter one on the page or with `codeqa models use`, or set "
                f"{provider.key_variable}.",
            )
        return ModelAddress(url, choice.model, key, provider.name)

    # The models themselves

    def answer_model(self, choice: ModelChoice | None = None) -> Model | None:
        """The model of `choice`, else of the one in force; None when there is none.

        Nothing is sent, except that a choice without a model's name asks the server for its
        first. Raises SettingsError, UsageError, ModelError.
        """
        choice = choice or self.current()
        if choice is None:
            return None
        target = self.address(choice)
        model = self._models.get(target)
        if model is None:
            model = Model(self._named(target), self._settings.model_timeout)
            model = self._models.setdefault(target, model)
            model.prepare()
        return model

    def small_model(self) -> Model | None:
        """The model that writes hypotheses: at the address of the one in force, with its key.

        CODEQA_HYDE_MODEL names it, else it is the provider's small one where that is sure to be
        served: at the provider's own address, or wherever its own large one is. Raises as
        `answer_model` does.
        """
        choice = self.current()
        if choice is None:
            return None
        provider = provider_named(choice.provider)
        named = self._settings.hyde_model.strip()
        own = bool(provider.base_url) and self.base_url(choice) == provider.base_url
        if not named and (own or choice.model == provider.chat_model):
            named = provider.small_model
        return self.answer_model(replace(choice, model=named or choice.model))

    def list_models(self, choice: ModelChoice, key: str = "") -> list[str]:
        """Names of the models at the choice's address, those that chat first."""
        return _listed(self.address(choice, key), self._settings.model_timeout)

    def test(self, choice: ModelChoice, key: str = "") -> dict[str, Any]:
        """Ask the model for a word: {milliseconds} until it came, {model, host}.

        Raises ModelError that says what is wrong.
        """
        target = self._named(self.address(choice, key))
        with Model(target, min(self._settings.model_timeout, TEST_SECONDS)) as model:
            wait([model.prepare()])  # loading the client is no part of the time
            began = time.monotonic()
            # Signs of life alone would keep it waiting, and whoever asked for the test, for ever.
            until = began + TEST_SECONDS
            pieces = model.stream(
                TEST_MESSAGES, max_tokens=TEST_TOKENS, cancelled=lambda: time.monotonic() > until
            )
            if any(isinstance(piece, str) for piece in pieces):
                took = round((time.monotonic() - began) * 1000)
                return {"milliseconds": took, "model": target.model, "host": target.host}
        raise failure("silent", target)

    def running_locally(
        self, providers: Sequence[ModelProvider] = PROVIDERS
    ) -> dict[ModelProvider, list[str]]:
        """Providers that answer on this machine now, with the models that each one has."""

        def probe(provider: ModelProvider) -> list[str] | None:
            try:
                return _listed(ModelAddress(provider.base_url, ""), PROBE_SECONDS)
            except ModelError:
                return None

        local = [provider for provider in providers if provider.local]
        with ThreadPoolExecutor(len(local)) as threads:
            found = zip(local, threads.map(probe, local), strict=True)
            return {provider: names for provider, names in found if names is not None}

    def close(self) -> None:
        """Close every connection."""
        models, self._models = self._models, {}
        for model in models.values():
            model.close()

    def _in_force(self) -> tuple[ModelChoice | None, Source]:
        if self._preferred is not None:
            return self._preferred, "setting"
        if (pick := self._saved().pick) and pick.over == self._setting():
            with suppress(UsageError):  # of a provider that this version does not know
                return settled(pick) if pick.provider else None, "page"
        text = self._settings.model.strip()
        try:
            choice = parse_choice(text, self._settings.model_url) if text else None
        except UsageError as error:  # whoever reads it may have typed nothing
            problem = f"CODEQA_MODEL cannot be used: {error.message}"
            raise SettingsError(problem, error.hint) from None
        return choice, "setting" if choice else ""

    def _setting(self) -> str:
        """What a pick takes the place of; a change in either part ends it."""
        return f"{self._settings.model} {self._settings.model_url}".strip()

    def _key(self, provider: ModelProvider, url: str) -> tuple[KeyState, str]:
        """Where the key for this address comes from, and the key."""
        settings, place = self._settings, location(url)
        if kept := self._saved().keys.get(place):
            return "stored", kept
        exported = settings.model_key.get_secret_value()
        if not exported or _place(settings.model_url) != place:
            own = [provider.base_url, settings.openai_base_url if provider.name == "openai" else ""]
            exported = settings.provider_key(provider.key_variable)
            exported = exported if place in map(_place, own) else ""
        if exported:
            return "exported", exported
        needed = provider.key_variable and place == location(provider.base_url)
        return "missing" if needed else "unneeded", ""

    def _named(self, target: ModelAddress) -> ModelAddress:
        """`target`, of a server's first chat model when it names none. Raises ModelError."""
        if target.model:
            return target
        names = _listed(target, self._settings.model_timeout)
        if not names or _NO_CHAT.search(names[0]):
            raise ModelError(
                f"{target.host} has no model that chats.",
                "Load one there, as with `ollama pull qwen3`, or name it.",
            )
        return replace(target, model=names[0])

    # The file

    def _saved(self) -> SavedModels:
        """What is kept; a file that cannot be read counts as empty and is said."""
        path = self._settings.data_dir / FILE_NAME
        try:
            if path.stat().st_mode & 0o077:
                path.chmod(PRIVATE)  # as a restored backup may leave it
            return _CONTENT.validate_json(path.read_bytes())
        except FileNotFoundError:
            return SavedModels()
        except (OSError, ValueError):
            problem = f"{path} is damaged or cannot be read, so the model and the keys that were "
            problem += "kept in it are not used."
            _say_once(problem)
            return SavedModels(problem=problem)

    @contextmanager
    def _changed(self) -> Iterator[SavedModels]:
        """Gives the content to be changed, and writes it, whole or not at all. Raises
        StorageError."""
        folder = self._settings.data_dir
        path = folder / FILE_NAME
        new = path.with_suffix(".new")
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
    """`key` without space around it.

    Raises UsageError that does not repeat it: a header that cannot be sent would, in the client's
    own error.
    """
    key = key.strip()
    if len(key) <= LONGEST_KEY and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise UsageError("The key holds characters that no key has.", "Copy it again.")


def chat_models_first(names: Iterable[str]) -> list[str]:
    """`names` as given, those that embed, speak, draw or judge last."""
    return sorted(names, key=lambda name: bool(_NO_CHAT.search(name)))


def _listed(target: ModelAddress, timeout: float) -> list[str]:
    with Model(target, timeout) as model:
        return chat_models_first(model.list_models())


def _place(url: str) -> str:
    """The location of a setting's address; '' for none, and for one that leads nowhere."""
    try:
        return location(normal_address(url)) if url else ""
    except UsageError:
        return ""


@cache
def _say_once(problem: str) -> None:
    log.warning("%s", problem)
