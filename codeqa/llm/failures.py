"""What can go wrong when a model is asked, each as one sentence and a next step."""

from __future__ import annotations

import logging
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from codeqa.errors import ContextLengthError, ModelError, RateLimitError, places_of
from codeqa.hosts import leads_here
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.providers import CUSTOM, provider_named

log = logging.getLogger(__name__)

QUOTED_CHARACTERS = 160
"""Of a provider's own words, where ours say too little."""
ECHO_CHARACTERS = 16
"""A run of this many characters that was also sent is the question or code, and not quoted."""
KEY_CHARACTERS = 8
"""Nor is what holds so much of the key: some repeat it in part, with asterisks for the rest."""

SENTENCES = {
    "too long": (
        "The request is too long for {model} at {host}.",
        "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a model with a longer context.",
    ),
    "rate": (
        "{host} limits the rate of requests, or is overloaded{said}.",
        "Ask again in {wait}, or choose another model.",
    ),
    "no credit": (
        "The account at {host} has no credit left.",
        "Add credit there, or choose another model.",
    ),
    "no key": ("{host} asks for a key.", "Enter one for this address{or_set}."),
    "key": (
        "{host} refused the key.",
        "Check the key, or enter another one for this address{or_set}.",
    ),
    "no model": ("{host} has no model {model!r}.", "{fetch}"),
    "no chat api": (
        "What answers at {url} is not a chat API.",
        "Check the address; it usually ends in /v1.",
    ),
    "refused": (
        "{host} refused the request with status {status}{said}.",
        "Check the name of the model and what it supports.",
    ),
    "failed": ("{host} failed{status_said}{said}.", "Ask again in a minute."),
    "nothing there": ("Nothing answers at {url}.", "{start}"),
    "unreachable": (
        "{host} cannot be reached{why}.",
        "Check the address and the network.",
    ),
    "silent": (
        "{host} stayed silent for {timeout:g} seconds.",
        "Ask again, or raise CODEQA_MODEL_TIMEOUT for a slow model.",
    ),
    "empty": (
        "{host} sent an answer without content{why}.",
        "Ask for less at once; a local server says nothing when its context is too small.",
    ),
    "broke off": ("The answer from {host} broke off: {why}.", "Ask again."),
    "unexpected": ("The request to {host} failed unexpectedly ({error}).", "Ask again."),
}
"""Kind of failure → the sentence for it, and the next step."""

_TOO_LONG = re.compile(
    r"context_length|context length|exceed_context_size|context size has been exceeded"
    r"|(?:exceeds?|exceeded|larger than|greater than).{0,60}context (?:size|window|limit)"
    r"|maximum (?:prompt|input|sequence) length|max(?:imum)? context|prompt (?:is )?too long"
    r"|input (?:is )?too long|input token count.{0,30}exceeds|request too large"
    r"|too many (?:input )?tokens|reduce the length of|`inputs` tokens",
    re.IGNORECASE | re.DOTALL,
)
"""OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Groq, Ollama, Mistral, LM Studio, TGI."""
_LIKE_A_KEY = re.compile(
    r"\b(?:sk|gsk|csk|xai|pk|rk|hf|nvapi|or)[-_][\w*.-]{6,}|\bAIza[\w*-]{10,}"
    r"|\bBearer\s+\S+|[A-Za-z0-9*_-]{32,}"
)


def failure(kind: str, target: Endpoint, **more: Any) -> ModelError:
    """The error with the sentence for `kind`, whose further fields are `more`."""
    provider = provider_named(target.provider) if target.provider else CUSTOM
    fetch = "Choose another one; `codeqa models` and the page list them."
    if provider.name == "ollama":
        fetch = f"Fetch it with `ollama pull {target.model}`, or choose another one."
    start = "Check the address, and that the server is running."
    if provider.start and leads_here(target.base_url):
        start = f"Is {provider.title} running? Start it with `{provider.start}`."
    fields = {
        "host": target.host,
        "model": target.model,
        "url": target.base_url,
        "fetch": fetch,
        "start": start,
        "or_set": f", or set {target.key_variable}" if target.key_variable else "",
        "why": "",
        **more,
    }
    message, hint = (part.format_map(fields) for part in SENTENCES[kind])
    if kind == "too long":
        return ContextLengthError(message, hint)
    if kind == "rate":
        return RateLimitError(message, hint, more["seconds"])
    return ModelError(message, hint)


def explain(
    error: Exception, target: Endpoint, timeout: float, sent: str = "", begun: bool = False
) -> ModelError:
    """The sentence for a request that ended in `error`; `sent` is what must not be quoted back,
    `begun` says that a part of its answer came."""
    import httpx2
    import openai

    if isinstance(error, ModelError):
        return error
    if isinstance(error, openai.APIError) and not isinstance(error, openai.APIConnectionError):
        return _refusal(error, target, sent)
    kinds: tuple[tuple[type[BaseException], str, str], ...] = (
        (httpx2.ConnectTimeout, "unreachable", ""),
        (httpx2.TimeoutException, "silent", ""),
        (TimeoutError, "silent", ""),
        (socket.gaierror, "unreachable", f": there is no host called {target.host}"),
        (ssl.SSLError, "unreachable", ": no secure connection (SSL_CERT_FILE names an authority)"),
        (ConnectionRefusedError, "nothing there", ""),
        (httpx2.ConnectError, "unreachable", ""),
        (httpx2.HTTPError, "broke off", "the connection was closed"),
        (openai.OpenAIError, "broke off", "the connection was closed"),
        (ValueError, "broke off", "it cannot be read"),  # no JSON, or no text
        (RecursionError, "broke off", "it cannot be read"),
    )
    causes = tuple(_causes(error))
    known = (found for found in kinds if any(isinstance(one, found[0]) for one in causes))
    _, kind, why = next(known, (error, "unexpected", ""))
    if kind == "unexpected":
        log.error("Unexpected while a model was asked: %s", places_of(error))
    elif begun and kind != "broke off":
        silent = f"it stayed silent for {timeout:g} seconds"
        kind, why = "broke off", silent if kind == "silent" else "the connection was lost"
    # Its type is named alone: the words of what nobody thought of may be code.
    return failure(kind, target, timeout=timeout, error=type(error).__name__, why=why)


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """What `Retry-After` asks for; 0 when it says nothing usable."""
    found = headers.get("retry-after", "")
    return float(found) if re.fullmatch(r"\d{1,6}(\.\d+)?", found) else 0.0


def words_of(body: Any) -> str:
    """Everything that a refusal says, for telling refusals apart, never for showing."""
    return str(body)[: QUOTED_CHARACTERS * 25]


def _refusal(error: Any, target: Endpoint, sent: str) -> ModelError:
    """The sentence for what a provider said instead of an answer, or in the middle of one."""
    status = getattr(error, "status_code", 0)
    body = error.body if error.body is not None else ""
    kind = _kind(status, words_of(body))
    quoted = _quoted(_message(body), target.key, sent)
    response = getattr(error, "response", None)
    seconds = seconds_to_wait(response.headers) if response is not None else 0.0
    return failure(
        "no key" if kind == "key" and not target.key else kind,
        target,
        status=status,
        status_said=f" with status {status}" if status else " in its answer",
        said=f": “{quoted}”" if quoted else "",
        seconds=seconds,
        wait=_spoken(seconds),
    )


def _kind(status: int, words: str) -> str:
    low = words.lower()
    if status == 413 or _TOO_LONG.search(words):
        return "too long"
    if status == 402 or "insufficient_quota" in low or "credit balance" in low:
        return "no credit"
    if status in (429, 529) or "overloaded" in low:
        return "rate"
    if status == 401 or (status == 400 and re.search("api.?key", low)):
        return "key"
    if status == 404:
        return "no model" if "model" in low else "no chat api"
    return "failed" if not status or status >= 500 or status == 408 else "refused"


def _message(body: Any) -> str:
    """The provider's words in a body of OpenAI's shape or of one that is like it."""
    if isinstance(body, list) and body:  # Gemini's list of one, FastAPI's of fields
        body = body[0]
    while isinstance(body, Mapping):
        names = ("error", "message", "detail", "msg")
        body = next((body[name] for name in names if body.get(name)), "")
        if isinstance(body, list) and body:
            body = body[0]
    return body if isinstance(body, str) else ""


def _spoken(seconds: float) -> str:
    if not seconds:
        return "a minute"
    if seconds < 120:
        return f"{max(2, round(seconds))} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7_200 else f"{seconds / 3_600:.0f} hours"


def _quoted(text: str, key: str, sent: str) -> str:
    """A short, single-line part of a provider's words, '' when it repeats what was sent.

    Nothing of the key is quoted either.
    """
    if not text or "<html" in text.lower() or "<!doctype" in text.lower():
        return ""
    if any(key[at : at + KEY_CHARACTERS] in text for at in range(len(key) - KEY_CHARACTERS + 1)):
        return ""
    if key:  # a shorter one
        text = text.replace(key, "…")
    text = _LIKE_A_KEY.sub("…", "".join(c if c.isprintable() else " " for c in text))
    text = " ".join(text.split())
    known = " ".join(sent.split())
    windows = range(max(0, min(len(text), QUOTED_CHARACTERS) - ECHO_CHARACTERS + 1))
    if known and any(text[at : at + ECHO_CHARACTERS] in known for at in windows):
        return ""
    text = text.rstrip(".")
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """`error` and everything behind it, also inside of groups."""
    if error is not None:
        yield error
        yield from _causes(error.__cause__ or error.__context__)
        for one in getattr(error, "exceptions", ()):
            yield from _causes(one)
