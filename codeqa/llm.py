"""Language models: any endpoint that speaks OpenAI's chat-completions API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from codeqa.errors import ModelError, SettingsError
from codeqa.settings import Settings

DEFAULT_BASE_URL = "https://api.openai.com/v1"
TIMEOUT_SECONDS = 60.0
RETRIES = 2
"""Further tries after a rate limit, a server error or a lost connection (S0.10); the client
waits between them with exponential back-off and honours Retry-After."""

Message = Mapping[str, Any]
Complete = Callable[[Sequence[Message], int], str]
"""Messages and the most tokens to generate → the text of the answer."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached, and as whom."""

    base_url: str
    model: str
    key: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """Host name that texts are sent to, for the user to read."""
        return urlsplit(self.base_url).hostname or self.base_url


def endpoint(settings: Settings, model: str) -> Endpoint:
    """The endpoint of the settings for `model`.

    Raises SettingsError when neither a key nor another address than OpenAI's is set.
    """
    key = settings.openai_api_key.get_secret_value()
    base_url = settings.openai_base_url or DEFAULT_BASE_URL
    if not key and not settings.openai_base_url:
        raise SettingsError(
            "No language model is configured.",
            "Set OPENAI_API_KEY, or OPENAI_BASE_URL for another endpoint "
            "(Ollama: http://127.0.0.1:11434/v1).",
        )
    return Endpoint(base_url, model, key)


def connect(target: Endpoint) -> Complete:
    """A function that completes messages at `target`; it raises ModelError."""
    import openai  # late: takes half a second

    client = openai.OpenAI(
        api_key=target.key or "none",
        base_url=target.base_url,
        timeout=TIMEOUT_SECONDS,
        max_retries=RETRIES,
    )

    def complete(messages: Sequence[Message], max_tokens: int) -> str:
        try:
            answer = client.chat.completions.create(
                model=target.model,
                messages=list(messages),  # type: ignore[arg-type]
                max_tokens=max_tokens,
            )
        except openai.OpenAIError as error:
            raise explain(error, target) from error
        if not answer.choices:
            raise ModelError(f"{target.host} sent an answer without content.", "Try again.")
        return answer.choices[0].message.content or ""

    return complete


def explain(error: Exception, target: Endpoint) -> ModelError:
    """A provider's error as a sentence with a next step."""
    import openai

    host, model = target.host, target.model
    if isinstance(error, openai.APITimeoutError):
        return ModelError(f"{host} did not answer in {TIMEOUT_SECONDS:.0f} seconds.", "Try again.")
    if isinstance(error, openai.APIConnectionError):
        return ModelError(
            f"{host} cannot be reached.", "Check the address, the network and that it is running."
        )
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelError(f"{host} refused the key.", "Check OPENAI_API_KEY.")
    if isinstance(error, openai.NotFoundError):
        return ModelError(f"{host} has no model {model!r}.", "Choose another one.")
    if isinstance(error, openai.RateLimitError):
        return ModelError(
            f"{host} limits the rate or the quota is used up.", "Wait, or check the account."
        )
    if isinstance(error, openai.APIStatusError):
        return ModelError(
            f"{host} answered with status {error.status_code}.",
            "Try again." if error.status_code >= 500 else "Check the model's name and limits.",
        )
    return ModelError(f"{host} failed: {error}.", "Try again.")
