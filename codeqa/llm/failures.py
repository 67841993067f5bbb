"""What went wrong with a model, in words and with what to do next."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from codeqa.errors import ContextLengthError, ModelError, RateLimitError, places_of
from codeqa.hosts import leads_here
from codeqa.llm.providers import ModelAddress, provider_named

log = logging.getLogger(__name__)
QUOTED_CHARACTERS = 160  # of a provider's own words, where ours say too little

KEY_CHARACTERS = 8
"""What holds so many of the key in a row is not quoted: some repeat it in part."""

_TRY_AGAIN = re.compile(r"\b(?:retry|try again) in (\d{1,6}(?:\.\d+)?) ?s")

_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window|limit)|max\w* (?:context|prompt|input|sequence)"
    r"|(?:prompt|input|request) (?:is )?too (?:long|large)|input token count|reduce the length of"
    r"|`inputs` tokens"
)
"""OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Groq, Ollama, Mistral, LM Studio, TGI."""


def failure(kind: str, target: ModelAddress, why: str = "", seconds: float = 0.0) -> ModelError:
    """The sentence for `kind`; `seconds` is how long a rate limit asks to wait, 0 if unknown."""
    host = target.host
    match kind:
        case "key":
            hint = "Check the key for this address, or give one."
            return ModelError(f"{host} refused the key.", hint)
        case "model":
            hint = "Choose one that the page lists; Ollama fetches it with `ollama pull`."
            return ModelError(f"{host} has no model {target.model!r}.", hint)
        case "api":
            hint = "Check the address; it usually ends in /v1."
            return ModelError(f"What answers at {target.base_url} is not a chat API.", hint)
        case "unreachable":
            provider = provider_named(target.provider or "custom")
            hint = "Check the address and the network, and that the server is running."
            if provider.start and leads_here(target.base_url):
                hint = f"Is {provider.title} running? Start it with `{provider.start}`."
            return ModelError(f"{target.base_url} cannot be reached{why}.", hint)
        case "rate":
            said = f"{host} limits the rate of requests, or is overloaded{why}."
            wait = f"{seconds:.0f} seconds" if seconds else "a minute"
            return RateLimitError(said, f"Ask again in {wait}, or choose another model.", seconds)
        case "too long":
            said = f"The request is too long for {target.model} at {host}."
            hint = "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a larger model."
            return ContextLengthError(said, hint)
        case "broke off":
            hint = "Ask again, or choose another model."
            return ModelError(f"The answer from {host} broke off{why}.", hint)
        case "silent":
            hint = "Ask again, or raise CODEQA_MODEL_TIMEOUT for a slow model."
            return ModelError(f"The answer from {host} broke off: it stayed silent too long.", hint)
    hint = "Ask again, or check the name of the model, what it supports, and your account there."
    return ModelError(f"{host} failed{why}.", hint)


def explain(error: Exception, target: ModelAddress, begun: bool = False) -> ModelError:
    """The sentence for a request that ended in `error`; `begun`: a part of its answer came."""
    import httpx2
    import openai

    why, seconds = "", 0.0
    match error:
        case ModelError():
            return error
        case openai.APITimeoutError() | TimeoutError():
            kind = "silent"
        case openai.APIConnectionError():
            kind, cause = "broke off" if begun else "unreachable", error.__cause__
            if isinstance(cause, httpx2.ConnectError):  # words of the system, about the network
                why = f" ({cause})"
        case openai.APIError():  # the provider's words, instead of an answer or amid one
            status, said = getattr(error, "status_code", 0), str(error.body)[:4_000].lower()
            headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
            seconds = _asked_to_wait(headers.get("retry-after", ""), said)
            kind = _refusal(status, said, seconds)
            quoted = _quoted(error.body, target.key)
            why = (f" with status {status}" if status else "") + (f": “{quoted}”" if quoted else "")
        case ValueError() | RecursionError():
            kind, why = "broke off", ": it cannot be read"
        case _:
            log.error("Unexpected while a model was asked: %s", places_of(error))
            # Its type is named alone: the words of what nobody thought of may be code.
            kind, why = "failed", f" unexpectedly ({type(error).__name__})"
    return failure(kind, target, why, seconds)


def _asked_to_wait(header: str, said: str) -> float:
    """Seconds that `Retry-After` asks to wait, by a number or a date, else the words of a refusal,
    as Gemini's; 0 for none."""
    if found := re.fullmatch(r"(\d{1,6}(?:\.\d+)?)", header) or _TRY_AGAIN.search(said):
        return float(found[1])
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return 0.0


def _refusal(status: int, said: str, seconds: float) -> str:
    """The kind of failure that a provider's status, words and `seconds` to wait mean."""
    if status == 413 or _TOO_LONG.search(said):
        return "too long"
    if status == 401 or (status == 400 and re.search("api.?key", said)):
        return "key"
    if status in (429, 529) or "overloaded" in said or (status >= 500 and seconds):
        return "rate"
    if status == 404:
        return "model" if "model" in said else "api"
    return "failed"


def _quoted(body: Any, key: str) -> str:
    """The provider's words in a refusal as a short line, '' when they repeat the key."""
    if isinstance(body, list) and body:  # Gemini's
        body = body[0]
    while isinstance(body, Mapping):
        body = body.get("error") or body.get("message") or body.get("detail")
    text = body[: 2 * QUOTED_CHARACTERS] if isinstance(body, str) else ""
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")
    run = min(len(key), KEY_CHARACTERS)
    repeats = run and any(text[at : at + run] in key for at in range(len(text) - run + 1))
    if repeats or "<html" in text.lower():
        return ""
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"
