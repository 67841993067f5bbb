"""From a refusal, or a connection that was lost, to one sentence and a next step."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

from codeqa.errors import ContextLengthError, ModelError, RateLimitError
from codeqa.llm.address import leads_here
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.providers import CUSTOM, ModelProvider, provider_named
from codeqa.llm.refusal import Refusal

CONNECT_SECONDS = 10.0
QUOTED_CHARACTERS = 160
"""Of a provider's own words, where ours say too little."""
ECHO_CHARACTERS = 16
"""A run of this many characters that was also sent is the question or code, and not quoted."""
KEY_CHARACTERS = 8
"""Nor is what holds so much of the key: some repeat it in part, with asterisks for the rest."""

_ABOUT_MODEL = re.compile(r"\bmodels?\b|model_not_found", re.IGNORECASE)
_BAD_KEY = re.compile(r"api.?key|authentication|unauthori[sz]ed", re.IGNORECASE)
_LIKE_A_KEY = re.compile(
    r"\b(?:sk|gsk|csk|xai|pk|rk|hf|nvapi|or)[-_][\w*.-]{6,}|\bAIza[\w*-]{10,}"
    r"|\bBearer\s+\S+|[A-Za-z0-9*_-]{32,}"
)


def explain_refusal(refusal: Refusal, target: Endpoint, sent: str = "") -> ModelError:
    """The sentence for `refusal`; `sent` is what must not be quoted back."""
    host, status = target.host, refusal.status
    quoted = _quoted(refusal.message, target.key, sent)
    said = f": “{quoted}”" if quoted else ""
    if refusal.too_long:
        return ContextLengthError(
            f"The request is too long for {target.model} at {host}.",
            "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a model with a "
            "longer context.",
        )
    if refusal.no_money:
        return ModelError(
            f"The account at {host} has no credit left.",
            "Add credit there, or choose another model.",
        )
    if refusal.filtered:
        return ModelError(
            f"{host} refused the request under its content rules.",
            "Ask in other words, or choose another model.",
        )
    if status == 401 or (status == 400 and _BAD_KEY.search(refusal.words)):
        return _key_refused(target)
    if status == 403:
        return ModelError(
            f"{host} does not allow this key to use {target.model}{said}.",
            "Check what the key may do, or choose another model.",
        )
    if status == 404:
        return _not_found(refusal, target)
    if status == 429:
        return _rate_limited(refusal, target)
    if 300 <= status < 400:
        leads_to = f" to {refusal.leads_to}" if refusal.leads_to else ""
        return ModelError(
            f"{host} sends requests on{leads_to}, which is not followed.",
            "Give the address that it leads to, if you trust it.",
        )
    if refusal.overloaded:
        wait = refusal.retry_after or 0.0
        return RateLimitError(f"{host} is overloaded.", "Ask again in a minute.", wait)
    if status in (408, 504):
        return ModelError(f"{host} gave up waiting for the model (status {status}).", "Ask again.")
    if status >= 500:
        return ModelError(f"{host} failed with status {status}{said}.", "Ask again in a minute.")
    if not status:
        return ModelError(f"{host} reported an error in its answer{said}.", "Ask again.")
    return ModelError(
        f"{host} refused the request with status {status}{said}.",
        "Check the name of the model and what it supports.",
    )


def explain_lost(
    error: BaseException, target: Endpoint, timeout: float, begun: bool = False
) -> ModelError:
    """The sentence for a connection that was not made or did not last."""
    host = target.host
    causes = tuple(_causes(error))
    names = {type(one).__name__ for one in causes}
    if begun:
        why = (
            f"it stayed silent for {timeout:g} seconds"
            if "ReadTimeout" in names
            else "the connection was lost"
        )
        return ModelError(f"The answer from {host} broke off: {why}.", "Ask again.")
    if names & {"ConnectTimeout", "PoolTimeout"}:
        return ModelError(
            f"{host} cannot be reached: no connection within {CONNECT_SECONDS:g} seconds.",
            "Check the address and the network.",
        )
    if any("Timeout" in name for name in names):
        return ModelError(
            f"{host} stayed silent for {timeout:g} seconds.",
            "Ask again, or raise CODEQA_MODEL_TIMEOUT for a slow model.",
        )
    if any(isinstance(one, socket.gaierror) for one in causes):
        return ModelError(
            f"There is no host called {host}, or its name cannot be looked up.",
            "Check the address and the network.",
        )
    if any(isinstance(one, ssl.SSLError) for one in causes):
        return ModelError(
            f"No secure connection to {host} could be made.",
            "Check https:// in the address and the server's certificate (SSL_CERT_FILE names "
            "your own authority).",
        )
    if any(isinstance(one, ConnectionRefusedError) for one in causes):
        return ModelError(f"Nothing answers at {target.base_url}.", _how_to_start(target))
    if "ConnectError" in names:
        return ModelError(f"{host} cannot be reached.", "Check the address and the network.")
    return ModelError(f"{host} closed the connection without an answer.", "Ask again.")


def explain_nothing(target: Endpoint, reason: str, thought: bool) -> ModelError:
    """The sentence for an answer without any text; `reason` is the model's finish reason."""
    if reason == "content_filter":
        return ModelError(
            f"{target.host} withheld the answer under its content rules.",
            "Ask in other words, or choose another model.",
        )
    if thought:
        return ModelError(
            f"{target.model} only reasoned and gave no answer.",
            "Ask for less at once, or choose a model that does not reason.",
        )
    hint = "Ask again."
    if leads_here(target.base_url):
        hint = "Ask again; a local server says nothing when its context is too small."
    return ModelError(f"{target.host} sent an answer without content.", hint)


def explain_wait(seconds: float, target: Endpoint) -> ModelError:
    """The sentence for a provider that asks to wait for longer than a person would."""
    return RateLimitError(
        f"{target.host} limits the rate and asks to wait {_spoken(seconds)}.",
        "Ask again then, or choose another model.",
        seconds,
    )


def not_an_api(target: Endpoint) -> ModelError:
    """The sentence for an address where something else answers."""
    return ModelError(
        f"What answers at {target.base_url} is not a chat API.",
        "Check the address; it usually ends in /v1.",
    )


def worth_reconnecting(error: BaseException) -> bool:
    """Whether `error` is a connection that broke, rather than one that cannot be made."""
    names = {type(one).__name__ for one in _causes(error)}
    if any("Timeout" in name for name in names) or "ConnectError" in names:
        return False
    return bool(names & {"ReadError", "WriteError", "RemoteProtocolError", "CloseError"})


def explain_unexpected(error: BaseException, target: Endpoint) -> ModelError:
    """The sentence for what nobody thought of; it names the kind, since words may be code."""
    return ModelError(
        f"The request to {target.host} failed unexpectedly ({type(error).__name__}).", "Ask again."
    )


def _key_refused(target: Endpoint) -> ModelError:
    if not target.key:
        set_one = f", or set {target.key_variable}" if target.key_variable else ""
        return ModelError(f"{target.host} asks for a key.", f"Enter one for this address{set_one}.")
    exported = f", or {target.key_variable}" if target.key_variable else ""
    return ModelError(
        f"{target.host} refused the key.", f"Check the key that you entered{exported}."
    )


def _not_found(refusal: Refusal, target: Endpoint) -> ModelError:
    if not _ABOUT_MODEL.search(refusal.words):
        return ModelError(
            f"There is no chat API at {target.base_url}.",
            "Check the address; it usually ends in /v1.",
        )
    hint = "Choose another one; `codeqa models` and the page list them."
    if target.provider == "ollama":
        hint = f"Fetch it with `ollama pull {target.model}`, or choose another one."
    return ModelError(f"{target.host} has no model {target.model!r}.", hint)


def _rate_limited(refusal: Refusal, target: Endpoint) -> ModelError:
    wait = refusal.retry_after
    return RateLimitError(
        f"{target.host} limits the rate of requests.",
        f"Ask again in {_spoken(wait)}." if wait else "Ask again in a minute.",
        wait or 0.0,
    )


def _how_to_start(target: Endpoint) -> str:
    provider = _provider(target)
    if provider.start and leads_here(target.base_url):
        return f"Is {provider.title} running? Start it with `{provider.start}`."
    return "Check the address, and that the server is running."


def _provider(target: Endpoint) -> ModelProvider:
    return provider_named(target.provider) if target.provider else CUSTOM


def _spoken(seconds: float) -> str:
    if seconds < 120:
        count, unit = max(1, round(seconds)), "second"
    elif seconds < 7_200:
        count, unit = round(seconds / 60), "minute"
    else:
        count, unit = round(seconds / 3_600), "hour"
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


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
    waiting = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
