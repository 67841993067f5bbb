"""Say what went wrong with a model, and what to do next."""

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
QUOTED_CHARACTERS = 160
"""Of a provider's own message."""
LOADING_SECONDS = 5.0
"""Before a server that still loads its model is asked again."""
KEY_CHARACTERS = 8
"""A message with so many characters of the key in a row is not quoted: some repeat a part of it."""
_TRY_AGAIN = re.compile(r"\b(?:retry|try again) in (\d{1,6}(?:\.\d+)?) ?s")
_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window|limit)|max\w* (?:context|prompt|input|sequence)"
    r"|(?:prompt|input|request) (?:is )?too (?:long|large)|input token count|reduce the length of"
    r"|`inputs` tokens"
)
"""OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Groq, Ollama, Mistral, LM Studio, TGI."""


_FAILURES = {
    "key": ("{host} refused the key.", "Check the key for this address, or enter one."),
    "model": ("{host} has no model {model!r}.",
              "Choose one from the list on the page; for Ollama, download it with `ollama pull`."),
    "api": ("The server at {address} is not a chat API.",
            "Check the address; it usually ends in /v1."),
    "unreachable": ("{address} cannot be reached{why}.",
                    "Check the address and the network, and that the server is running."),
    "rate": ("{host} limits the rate of requests, or is overloaded{why}.",
             "Ask again in {wait}, or choose another model."),
    "loading": ("{host} still loads the model.", "Ask again in a moment."),
    "too long": ("The request is too long for {model} at {host}.",
                 "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a larger model."),
    "broke off": ("The answer from {host} broke off{why}.", "Ask again, or choose another model."),
    "silent": ("The answer from {host} broke off: it stayed silent too long.",
               "Ask again, or raise CODEQA_MODEL_TIMEOUT for a slow model."),
    "failed": ("{host} failed{why}.", "Ask again, or check the name of the model, what it supports,"
               " and your account there."),
}  # fmt: skip
"""Kind → what failed, and what to do next."""


def failure(kind: str, target: ModelAddress, why: str = "", seconds: float = 0.0) -> ModelError:
    """Return the error of a `kind`; a rate limit asks to wait `seconds`, 0 if unknown."""
    wait = f"{seconds:.0f} seconds" if seconds else "a minute"
    words = {"host": target.host, "address": target.base_url, "model": target.model}
    sentence, hint = (text.format(**words, why=why, wait=wait) for text in _FAILURES[kind])
    provider = provider_named(target.provider or "custom")
    if kind == "unreachable" and provider.start and leads_here(target.base_url):
        hint = f"Is {provider.title} running? Start it with `{provider.start}`."
    if kind in ("rate", "loading"):
        return RateLimitError(sentence, hint, seconds)
    if kind == "too long":
        return ContextLengthError(sentence, hint)
    return ModelError(sentence, hint)


def explain(error: Exception, target: ModelAddress, begun: bool = False) -> ModelError:
    """Return the error to show for a request; `begun`: a part of its answer came."""
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
            if isinstance(cause, httpx2.ConnectError):  # the system's words about the network
                why = f" ({cause})"
        case openai.APIError():  # the provider refused, or ended an answer by an error
            status, text = getattr(error, "status_code", 0), str(error.body)[:4_000].lower()
            headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
            seconds = _retry_after(headers.get("retry-after", ""), text)
            kind = _kind_of_refusal(status, text, seconds)
            if kind == "loading":
                seconds = seconds or LOADING_SECONDS
            if status:
                why = f" with status {status}"
            if message := _message(error.body, target.key):
                why += f": “{message}”"
        case ValueError() | RecursionError():
            kind, why = "broke off", ": it cannot be read"
        case _:
            log.error("Unexpected while a model was asked: %s", places_of(error))
            # Only its type is named: the message may hold code.
            kind, why = "failed", f" unexpectedly ({type(error).__name__})"
    return failure(kind, target, why, seconds)


def _retry_after(header: str, text: str) -> float:
    """Return the seconds that `Retry-After` (number or date) or else the `text` asks to wait."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)", header) or _TRY_AGAIN.search(text)
    if match:
        return float(match[1])
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return 0.0


def _kind_of_refusal(status: int, text: str, seconds: float) -> str:
    """Return the kind of failure of a refusal with that status, text and seconds to wait."""
    if status == 413 or _TOO_LONG.search(text):
        return "too long"
    if status == 401 or (status == 400 and re.search("api.?key", text)):
        return "key"
    if status == 503 and "loading model" in text:  # llama.cpp
        return "loading"
    if status in (429, 529) or "overloaded" in text or (status >= 500 and seconds):
        return "rate"
    if status == 404:
        return "model" if "model" in text else "api"
    return "failed"


def _message(body: Any, key: str) -> str:
    """Return the provider's message as a short line, '' if it repeats the key."""
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
