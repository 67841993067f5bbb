"""What can go wrong when a model is asked, each as one sentence and a next step."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from codeqa.errors import ContextLengthError, ModelError, RateLimitError, places_of
from codeqa.hosts import leads_here
from codeqa.llm.providers import ModelAddress, provider_named

log = logging.getLogger(__name__)

QUOTED_CHARACTERS = 160
"""Of a provider's own words, where ours say too little."""
ECHO_CHARACTERS = 16
"""A run of this many characters that was also sent is the question or code, and not quoted."""
KEY_CHARACTERS = 8
"""Nor is what holds so much of the key: some repeat it in part, with asterisks for the rest."""

SENTENCES = {
    "key": ("{host} {refuses} key.", "Check the key for this address{or_set}."),
    "model": (
        "{host} has no model {model!r}.",
        "Choose one that `codeqa models` or the page lists; Ollama fetches it with `ollama pull`.",
    ),
    "api": (
        "What answers at {url} is not a chat API.",
        "Check the address; it usually ends in /v1.",
    ),
    "unreachable": ("{url} cannot be reached{why}.", "{start}"),
    "rate": (
        "{host} limits the rate of requests, or is overloaded{why}.",
        "Ask again in {wait}, or choose another model.",
    ),
    "too long": (
        "The request is too long for {model} at {host}.",
        "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a model with a longer context.",
    ),
    "silent": (
        "{host} stayed silent for too long.",
        "Check that it runs, or raise CODEQA_MODEL_TIMEOUT for a slow model.",
    ),
    "broke off": ("The answer from {host} broke off{why}.", "Ask again."),
    "failed": (
        "{host} failed{why}.",
        "Ask again, or check the name of the model, what it supports, and your account there.",
    ),
}
"""Kind of failure → the sentence for it, and the next step."""

_TOO_LONG = re.compile(
    r"context[ _](?:length|size|window|limit)|max\w* (?:context|prompt|input|sequence)"
    r"|(?:prompt|input|request) (?:is )?too (?:long|large)|input token count|reduce the length of"
    r"|`inputs` tokens",
    re.IGNORECASE,
)
"""OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Groq, Ollama, Mistral, LM Studio, TGI."""


def failure(kind: str, target: ModelAddress, why: str = "", seconds: float = 0.0) -> ModelError:
    """The error with the sentence for `kind`; a rate limit asks to wait for `seconds`, if any."""
    provider = provider_named(target.provider or "custom")
    own = provider.key_variable and target.base_url == provider.base_url
    start = "Check the address and the network, and that the server is running."
    if provider.start and leads_here(target.base_url):
        start = f"Is {provider.title} running? Start it with `{provider.start}`."
    fields = {
        "host": target.host,
        "model": target.model,
        "url": target.base_url,
        "why": why,
        "start": start,
        "refuses": "refused the" if target.key else "asks for a",
        "or_set": f", or set {provider.key_variable}" if own else "",
        "wait": f"{seconds:.0f} seconds" if seconds else "a minute",
    }
    message, hint = (part.format_map(fields) for part in SENTENCES[kind])
    if kind == "rate":
        return RateLimitError(message, hint, seconds)
    return (ContextLengthError if kind == "too long" else ModelError)(message, hint)


def explain(
    error: Exception, target: ModelAddress, sent: str = "", begun: bool = False
) -> ModelError:
    """The sentence for a request that ended in `error`; `sent` is what must not be quoted back,
    `begun` says that a part of its answer came."""
    import httpx2
    import openai

    why = ""
    match error:
        case ModelError():
            return error
        case openai.APITimeoutError() | TimeoutError():
            kind, why = "silent", ": it stayed silent for too long"
        case openai.APIConnectionError():
            kind, cause = "unreachable", error.__cause__
            if isinstance(cause, httpx2.ConnectError):  # words of the system, about the network
                why = f" ({cause})"
        case openai.APIError():
            return _refusal(error, target, sent)
        case ValueError() | RecursionError():
            kind, why = "broke off", ": it cannot be read"
        case _:
            log.error("Unexpected while a model was asked: %s", places_of(error))
            # Its type is named alone: the words of what nobody thought of may be code.
            kind, why = "failed", f" unexpectedly ({type(error).__name__})"
    return failure("broke off" if begun and kind != "failed" else kind, target, why)


def _refusal(error: Any, target: ModelAddress, sent: str) -> ModelError:
    """The sentence for what a provider said instead of an answer, or in the middle of one."""
    status = getattr(error, "status_code", 0)
    said = str(error.body or "")[:4_000].lower()
    seconds = 0.0
    if status == 413 or _TOO_LONG.search(said):
        kind = "too long"
    elif status == 401 or (status == 400 and re.search("api.?key", said)):
        kind = "key"
    elif status in (429, 529) or "overloaded" in said:
        kind = "rate"
        asked = error.response.headers.get("retry-after", "") if status else ""
        seconds = float(asked) if re.fullmatch(r"\d{1,6}(\.\d+)?", asked) else 0.0
    elif status == 404:
        kind = "model" if "model" in said else "api"
    else:
        kind = "failed"
    quoted = _quoted(_message(error.body), target.key, sent)
    why = (f" with status {status}" if status else "") + (f": “{quoted}”" if quoted else "")
    return failure(kind, target, why, seconds)


def _message(body: Any) -> str:
    """The provider's words in a body of OpenAI's shape or of one that is like it."""
    if isinstance(body, list) and body:  # Gemini's list of one, FastAPI's of fields
        return _message(body[0])
    if isinstance(body, Mapping):
        names = ("error", "message", "detail", "msg")
        return _message(next((body[name] for name in names if body.get(name)), ""))
    return body if isinstance(body, str) else ""


def _quoted(text: str, key: str, sent: str) -> str:
    """A short line of a provider's words, '' when it repeats the key or what was sent."""
    text = "".join(c if c.isprintable() else " " for c in text[: 2 * QUOTED_CHARACTERS])
    text = " ".join(text.split())
    repeats = _share(text, key, min(len(key), KEY_CHARACTERS))
    if repeats or _share(text, " ".join(sent.split()), ECHO_CHARACTERS) or "<html" in text.lower():
        return ""
    text = text.rstrip(".")
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"


def _share(text: str, other: str, run: int) -> bool:
    """Whether both hold the same `run` characters in a row."""
    return run > 0 and any(text[at : at + run] in other for at in range(len(text) - run + 1))
