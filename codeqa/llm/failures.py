"""From what a provider says, or a connection that was lost, to one sentence and a next step."""

from __future__ import annotations

import logging
import re
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from codeqa.errors import ContextLengthError, ModelError, RateLimitError, places_of
from codeqa.llm.answer import Answer
from codeqa.llm.api_error import ApiError
from codeqa.llm.choice import leads_here
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.providers import CUSTOM, provider_named

log = logging.getLogger(__name__)

QUOTED_CHARACTERS = 160
"""Of a provider's own words, where ours say too little."""
ECHO_CHARACTERS = 16
"""A run of this many characters that was also sent is the question or code, and not quoted."""
KEY_CHARACTERS = 8
"""Nor is what holds so much of the key: some repeat it in part, with asterisks for the rest."""

AGAIN = "Ask again."
IN_A_MINUTE = "Ask again in a minute."
OTHER_WORDS = "Ask in other words, or choose another model."
CHECK_ADDRESS = "Check the address; it usually ends in /v1."
CHECK_NETWORK = "Check the address and the network."

SENTENCES = {
    # An error that the provider told: the kinds of `ApiError`
    "too long": (
        "The request is too long for {model} at {host}.",
        "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a model with a longer context.",
    ),
    "no credit": (
        "The account at {host} has no credit left.",
        "Add credit there, or choose another model.",
    ),
    "overloaded": ("{host} is overloaded.", IN_A_MINUTE),
    "rate": (
        "{host} limits the rate of requests.",
        "Ask again in {wait}, or choose another model.",
    ),
    "filtered": ("{host} refused to answer under its content rules.", OTHER_WORDS),
    "no key": ("{host} asks for a key.", "Enter one for this address{or_set}."),
    "key": (
        "{host} refused the key.",
        "Check the key, or enter another one for this address{or_set}.",
    ),
    "forbidden": (
        "{host} does not allow this key to use {model}{said}.",
        "Check what the key may do, or choose another model.",
    ),
    "no model": ("{host} has no model {model!r}.", "{fetch}"),
    "no api": ("There is no chat API at {url}.", CHECK_ADDRESS),
    "redirect": (
        "{host} sends requests on, which is not followed.",
        "Give the address that it leads to, if you trust it.",
    ),
    "failed": ("{host} failed with status {status}{said}.", IN_A_MINUTE),
    "in stream": ("{host} reported an error in its answer{said}.", AGAIN),
    "refused": (
        "{host} refused the request with status {status}{said}.",
        "Check the name of the model and what it supports.",
    ),
    # A connection that was not made or did not last
    "silent": (
        "{host} stayed silent for {timeout:g} seconds.",
        "Ask again, or raise CODEQA_MODEL_TIMEOUT for a slow model.",
    ),
    "no host": ("There is no host called {host}, or its name cannot be looked up.", CHECK_NETWORK),
    "no tls": (
        "No secure connection to {host} could be made.",
        "Check https:// in the address and the server's certificate (SSL_CERT_FILE names "
        "your own authority).",
    ),
    "nothing there": ("Nothing answers at {url}.", "{start}"),
    "unreachable": ("{host} cannot be reached.", CHECK_NETWORK),
    "lost": ("{host} closed the connection without an answer.", AGAIN),
    "unexpected": ("The request to {host} failed unexpectedly ({error}).", AGAIN),
    # An answer that is none, or of which the end is missing
    "no chat api": ("What answers at {url} is not a chat API.", CHECK_ADDRESS),
    "unreadable": ("{host} sent an answer that cannot be read.", AGAIN),
    "only thought": (
        "{model} only reasoned and gave no answer.",
        "Ask for less at once, or choose a model that does not reason.",
    ),
    "empty": (
        "{host} sent an answer without content.",
        "Ask again; a local server says nothing when its context is too small.",
    ),
    "broke off": ("The answer from {host} broke off: {why}.", AGAIN),
}
"""Kind of failure → the sentence for it, and the next step."""

_LIKE_A_KEY = re.compile(
    r"\b(?:sk|gsk|csk|xai|pk|rk|hf|nvapi|or)[-_][\w*.-]{6,}|\bAIza[\w*-]{10,}"
    r"|\bBearer\s+\S+|[A-Za-z0-9*_-]{32,}"
)


def failure(kind: str, target: Endpoint, **more: Any) -> ModelError:
    """The error with the sentence for `kind`, whose further fields are `more`."""
    provider = provider_named(target.provider) if target.provider else CUSTOM
    here, variable = leads_here(target.base_url), target.key_variable
    fetch = "Choose another one; `codeqa models` and the page list them."
    if provider.name == "ollama":
        fetch = f"Fetch it with `ollama pull {target.model}`, or choose another one."
    start = "Check the address, and that the server is running."
    if provider.start and here:
        start = f"Is {provider.title} running? Start it with `{provider.start}`."
    fields = {
        "host": target.host,
        "model": target.model,
        "url": target.base_url,
        "fetch": fetch,
        "start": start,
        "or_set": f", or set {variable}" if variable else "",
        **more,
    }
    message, hint = (part.format_map(fields) for part in SENTENCES[kind])
    if kind == "too long":
        return ContextLengthError(message, hint)
    if kind in ("overloaded", "rate"):
        return RateLimitError(message, hint, more["seconds"])
    return ModelError(message, hint)


def explain_api_error(error: ApiError, target: Endpoint, sent: str = "") -> ModelError:
    """The sentence for `error`; `sent` is what must not be quoted back."""
    quoted, seconds = _quoted(error.message, target.key, sent), error.retry_after or 0.0
    return failure(
        "no key" if error.kind == "key" and not target.key else error.kind,
        target,
        status=error.status,
        said=f": “{quoted}”" if quoted else "",
        seconds=seconds,
        wait=_spoken(seconds),
    )


def explain(
    error: Exception, target: Endpoint, timeout: float, sent: str = "", begun: bool = False
) -> ModelError:
    """The sentence for a request that ended in `error`; `begun` when a part of its answer came."""
    import httpx2
    import openai

    from codeqa.llm.sdk import UnreadableError, provider_error

    if isinstance(error, ModelError):
        return error
    if isinstance(error, openai.APIStatusError):
        return explain_api_error(provider_error(error.response), target, sent)
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (UnreadableError, "unreadable"),
        (httpx2.ConnectTimeout, "unreachable"),
        (httpx2.TimeoutException, "silent"),
        (TimeoutError, "silent"),
        (socket.gaierror, "no host"),
        (ssl.SSLError, "no tls"),
        (ConnectionRefusedError, "nothing there"),
        (httpx2.ConnectError, "unreachable"),
        (httpx2.HTTPError, "lost"),
        (openai.OpenAIError, "lost"),
    )
    causes = tuple(_causes(error))
    known = (kind for type_, kind in kinds if any(isinstance(one, type_) for one in causes))
    kind = next(known, "unexpected")
    if kind == "unexpected":
        log.error("Unexpected while a model was asked: %s", places_of(error))
    elif begun:
        silent = f"it stayed silent for {timeout:g} seconds"
        why = silent if kind == "silent" else "the connection was lost"
        return failure("broke off", target, why=why)
    # Its type is named alone: the words of what nobody thought of may be code.
    return failure(kind, target, timeout=timeout, error=type(error).__name__)


def explain_end(answer: Answer, target: Endpoint, begun: bool) -> ModelError | None:
    """What is wrong with an answer that has come to its end; None for a whole one."""
    if answer.reason == "content_filter":
        return failure("filtered", target)
    if begun:
        whole = answer.reason or answer.ended
        return None if whole else failure("broke off", target, why="the connection was closed")
    if not answer.understood:
        return failure("no chat api", target)
    return failure("only thought" if answer.thought else "empty", target)


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
