"""The providers that CodeQA knows, and how a model of one is named: `provider/name`.

All speak OpenAI's chat-completions API. Addresses and model names are from the providers' own
documentation, read in November 2026; names that always mean the current model are preferred, since
a dated one stops working.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from codeqa.errors import UsageError
from codeqa.hosts import normal_address

NO_MODEL = "none"
"""In the place of a model's name: no model is used."""
LONGEST_NAME = 200
"""Characters of a model's name; the longest that providers list have about 80."""

_SCRIPT = "irm {}.ps1 | iex" if sys.platform == "win32" else "curl -fsSL {}.sh | sh"
LOCAL_MODEL = (_SCRIPT.format("https://ollama.com/install"), "ollama pull qwen3")
"""Commands that install a model on this machine."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A server of language models."""

    name: str
    title: str
    base_url: str
    key_variable: str = ""
    """The provider's usual variable for a key; '' when it needs none."""
    chat_model: str = ""
    """Answers when no other model is named."""
    small_model: str = ""
    """Writes drafts when no other model is named."""
    local: bool = False
    """A server on this machine."""
    start: str = ""
    """The command that starts it."""
    window: int = 0
    """Tokens of the smallest window among its current chat models, 0 if unknown. A local server has
    this window while no model is loaded."""
    window_page: str = ""
    """Page of a server that tells the window of the model `{}`; '': the list of its models."""
    limit_field: str = "max_tokens"
    """Field of a request that limits the length of the answer."""
    list_headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that ask for the list of models in place of `Authorization`; `{key}` is the key."""
    address_setting: str = ""
    """Setting that replaces `base_url`."""


PROVIDERS = (
    ModelProvider("openai", "OpenAI", "https://api.openai.com/v1", "OPENAI_API_KEY",
                  "gpt-4o", "gpt-4o-mini", window=128_000, limit_field="max_completion_tokens",
                  address_setting="openai_base_url"),
    ModelProvider("anthropic", "Anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY",
                  "claude-sonnet-5", "claude-haiku-4-5", window=200_000,
                  list_headers={"x-api-key": "{key}", "anthropic-version": "2023-06-01"}),
    ModelProvider("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY",
                  "gpt-oss-120b", "gpt-oss-120b", window=65_536),
    ModelProvider("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY",
                  "openai/gpt-oss-120b", "openai/gpt-oss-20b", window=131_072),
    ModelProvider("gemini", "Google Gemini",
                  "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY",
                  "gemini-flash-latest", "gemini-flash-lite-latest", window=1_048_576),
    ModelProvider("mistral", "Mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY",
                  "mistral-large-latest", "mistral-small-latest", window=128_000),
    ModelProvider("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY",
                  "openai/gpt-4o", "openai/gpt-4o-mini", window=128_000),
    ModelProvider("ollama", "Ollama", "http://127.0.0.1:11434/v1",
                  local=True, start="ollama serve", window=4_096, window_page="/api/ps"),
    ModelProvider("llamacpp", "llama.cpp", "http://127.0.0.1:8080/v1",
                  local=True, start="llama-server -m MODEL.gguf",
                  window_page="/props?model={}&autoload=false"),
    ModelProvider("vllm", "vLLM", "http://127.0.0.1:8000/v1",
                  local=True, start="vllm serve MODEL"),
    ModelProvider("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1",
                  local=True, start="lms server start", window_page="/api/v0/models"),
)  # fmt: skip

CUSTOM = ModelProvider("custom", "Another address", "")
"""Any other server that speaks the API; the user gives its address."""

_BY_NAME = {provider.name: provider for provider in PROVIDERS + (CUSTOM,)}


def provider_named(name: str) -> ModelProvider:
    """Return the provider called `name`. Raises UsageError that lists all of them."""
    provider = _BY_NAME.get(name.strip().lower())
    if provider is None:
        raise UsageError(
            f"There is no model provider {name.strip()[:40]!r}.",
            f"Write provider/name, as in openai/gpt-4o; the providers are {', '.join(_BY_NAME)}.",
        )
    return provider


def provider_at(base_url: str) -> ModelProvider:
    """Return the provider whose own address is `base_url`; CUSTOM for any other address."""
    return next((one for one in PROVIDERS if one.base_url == base_url), CUSTOM)


def is_model_name(name: str) -> bool:
    """Return whether a model can have this name: a line without invisible characters."""
    return 0 < len(name) <= LONGEST_NAME and name.isprintable() and name == " ".join(name.split())


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """The address of a model, and the key for it."""

    base_url: str
    model: str = ""
    key: str = field(default="", repr=False)
    provider: str = ""

    @property
    def host(self) -> str:
        """Return the host that texts are sent to, for the user to read."""
        return urlsplit(self.base_url).hostname or self.base_url

    @property
    def name(self) -> str:
        """Return `provider/name`, or the model's name alone."""
        return f"{self.provider}/{self.model}" if self.provider else self.model


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A provider's name and a model's, '' where none is named yet."""

    provider: str
    model: str
    address: str = ""

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


def parse_choice(text: str, address: str = "") -> ModelChoice:
    """Return the choice of `provider/name`, or of `provider` alone. Raises UsageError."""
    name, _, model = text.strip().partition("/")
    choice = settled(ModelChoice(name, model, address))
    if choice.model:
        return choice
    raise UsageError("The name of the model is missing.", f"Write {choice.provider}/name.")


def settled(choice: ModelChoice) -> ModelChoice:
    """Return `choice` in one spelling, with the default model. Raises UsageError."""
    provider = provider_named(choice.provider)
    model = choice.model.strip() or provider.chat_model
    if model and not is_model_name(model):
        raise UsageError("This is not a model's name.", "Write it as the provider lists it.")
    address = choice.address.strip()
    if address:
        address = normal_address(address, "/v1" if provider.local else "")
    return ModelChoice(provider.name, model, "" if address == provider.base_url else address)
