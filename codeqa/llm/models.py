"""Which model is used, with which key, and the models themselves, kept for the next turn."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from typing import Literal

from codeqa.errors import ModelError, SettingsError, UsageError
from codeqa.hosts import location, normal_address
from codeqa.llm.choice import (
    ModelChoice,
    Pick,
    SavedModels,
    change_saved,
    checked_key,
    exported_key,
    parse_choice,
    read_saved,
    settled,
)
from codeqa.llm.client import Model
from codeqa.llm.failures import failure
from codeqa.llm.providers import CUSTOM, PROVIDERS, Endpoint, ModelProvider, provider_named
from codeqa.settings import Settings

log = logging.getLogger(__name__)

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
class ModelTest:
    """A model answered: after how long its first text came."""

    milliseconds: int
    model: str


class Models:
    """The models that `settings` and the page allow; safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._models: dict[Endpoint, Model] = {}
        self._preferred: ModelChoice | None = None
        self._said = False

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
        self._preferred = self._reached(choice) if choice else None

    def prefer_named(self, name: str) -> None:
        """The same for `provider/name`; raises what is wrong with it, and then changes nothing."""
        choice = self._reached(parse_choice(name))
        self.endpoint(choice)
        self._preferred = choice

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
                choice = replace(choice, address=self.address(choice))
            place = location(self.endpoint(choice, key).base_url)
        pick = Pick(**asdict(choice or ModelChoice("", "")), over=self._setting())
        with change_saved(self._settings.data_dir) as saved:
            saved.pick = pick
            if checked:
                saved.keys[place] = checked
        self._preferred = None

    # Where it is reached, and with which key

    def forget_key(self, choice: ModelChoice) -> None:
        """Delete the key that is kept for the choice's address."""
        place = location(self.address(choice))
        with change_saved(self._settings.data_dir) as saved:
            saved.keys.pop(place, None)

    def key_state(self, choice: ModelChoice) -> KeyState:
        """Whether a key is kept, exported, missing, or none is needed."""
        try:
            return self._key(provider_named(choice.provider), self.address(choice))[0]
        except UsageError:  # it leads nowhere
            return "unneeded"

    def address(self, choice: ModelChoice) -> str:
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

    def endpoint(self, choice: ModelChoice, key: str = "") -> Endpoint:
        """Address and key of a choice: `key`, else the one kept for that location, else the
        exported one for its own place. Nothing is sent.

        Raises SettingsError when a key is needed and there is none, UsageError for an address.
        """
        choice = settled(choice)
        provider = provider_named(choice.provider)
        address = self.address(choice)
        found = checked_key(key)
        if not found:
            state, found = self._key(provider, address)
            if state == "missing":
                raise SettingsError(
                    f"There is no key for {provider.title}.",
                    f"Enter one on the page or with `codeqa models use`, or set "
                    f"{provider.key_variable}.",
                )
        return Endpoint(address, choice.model, checked_key(found), provider.name)

    # The models themselves

    def answer_model(self, choice: ModelChoice | None = None) -> Model | None:
        """The model of `choice`, else of the one in force; None when there is none.

        Nothing is sent, except that a choice without a model's name asks the server for its
        first. Raises SettingsError, UsageError, ModelError.
        """
        choice = choice or self.current()
        if choice is None:
            return None
        target = self.endpoint(choice)
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
        own = bool(provider.base_url) and self.address(choice) == provider.base_url
        if not named and (own or choice.model == provider.chat_model):
            named = provider.small_model
        return self.answer_model(replace(choice, model=named or choice.model))

    def list_models(self, choice: ModelChoice, key: str = "") -> list[str]:
        """Names of the models at the choice's address, those that chat first."""
        return _listed(self.endpoint(choice, key), self._settings.model_timeout)

    def test(self, choice: ModelChoice, key: str = "") -> ModelTest:
        """Ask the model for a word. Raises ModelError that says what is wrong."""
        target = self._named(self.endpoint(choice, key))
        with Model(target, min(self._settings.model_timeout, TEST_SECONDS)) as model:
            wait([model.prepare()])  # loading the client is no part of the time
            began = time.monotonic()
            # Signs of life alone would keep it waiting, and whoever asked for the test, for ever.
            until = began + TEST_SECONDS
            pieces = model.stream(
                TEST_MESSAGES, max_tokens=TEST_TOKENS, cancelled=lambda: time.monotonic() > until
            )
            if any(isinstance(piece, str) for piece in pieces):
                return ModelTest(round((time.monotonic() - began) * 1000), target.model)
        raise failure("silent", target)

    def running_locally(
        self, providers: Sequence[ModelProvider] = PROVIDERS
    ) -> dict[ModelProvider, list[str]]:
        """Providers that answer on this machine now, with the models that each one has."""

        def probe(provider: ModelProvider) -> list[str] | None:
            try:
                return _listed(Endpoint(provider.base_url, ""), PROBE_SECONDS)
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
            try:
                return settled(pick) if pick.provider else None, "page"
            except UsageError:  # a provider that this version does not know
                log.warning("The model picked on the page is not known to this version.")
        text = self._settings.model.strip()
        try:
            choice = parse_choice(text, self._settings.model_url) if text else None
        except UsageError as error:  # whoever reads it may have typed nothing
            problem = f"CODEQA_MODEL cannot be used: {error.message}"
            raise SettingsError(problem, error.hint) from None
        return choice, "setting" if choice else ""

    def _reached(self, choice: ModelChoice) -> ModelChoice:
        configured = self._settings.model.strip().partition("/")[0]
        if not choice.address and configured in ("", choice.provider):
            choice = replace(choice, address=self._settings.model_url)
        return settled(choice)

    def _setting(self) -> str:
        """What a pick takes the place of; a change in either part ends it."""
        return f"{self._settings.model} {self._settings.model_url}".strip()

    def _saved(self) -> SavedModels:
        saved = read_saved(self._settings.data_dir)
        if saved.problem and not self._said:
            self._said = True
            log.warning("%s", saved.problem)
        return saved

    def _key(self, provider: ModelProvider, address: str) -> tuple[KeyState, str]:
        """Where the key for `address` comes from, and the key."""
        place = location(address)
        if kept := self._saved().keys.get(place):
            return "stored", kept
        if exported := exported_key(self._settings, provider, address):
            return "exported", exported
        needed = provider.key_variable and place == location(provider.base_url)
        return "missing" if needed else "unneeded", ""

    def _named(self, target: Endpoint) -> Endpoint:
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


def chat_models_first(names: Iterable[str]) -> list[str]:
    """`names` as given, those that embed, speak, draw or judge last."""
    return sorted(names, key=lambda name: bool(_NO_CHAT.search(name)))


def _listed(target: Endpoint, timeout: float) -> list[str]:
    with Model(target, timeout) as model:
        return chat_models_first(model.list_models())
