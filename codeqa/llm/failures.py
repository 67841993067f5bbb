"""From what a provider says, or a connection that was lost, to one sentence and a next step."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

from codeqa.errors import ContextLengthError, ModelError, RateLimitError
from codeqa.llm.address import leads_here
from codeqa.llm.answer import Answer
from codeqa.llm.api_error import ApiError
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.providers import CUSTOM, provider_named

CONNECT_SECONDS = 10.0
QUOTED_CHARACTERS = 160
"""Of a provider's own words, where ours say too little."""
ECHO_CHARACTERS = 16
"""A run of this many characters that was also sent is the question or code, and not quoted."""
KEY_CHARACTERS = 8
"""Nor is what holds so much of the key: some repeat it in part, with asterisks for the rest."""

OTHER_WORDS = "Ask in other words, or choose another model."
CHECK_ADDRESS = "Check the address; it usually ends in /v1."
CHECK_NETWORK = "Check the address and the network."

_ABOUT_MODEL = re.compile(r"\bmodels?\b|model_not_found", re.IGNORECASE)
_BAD_KEY = re.compile(r"api.?key|authentication|unauthori[sz]ed", re.IGNORECASE)
_LIKE_A_KEY = re.compile(
    r"\b(?:sk|gsk|csk|xai|pk|rk|hf|nvapi|or)[-_][\w*.-]{6,}|\bAIza[\w*-]{10,}"
    r"|\bBearer\s+\S+|[A-Za-z0-9*_-]{32,}"
)


def explain_api_error(error: ApiError, target: Endpoint, sent: str = "") -> ModelError:
    """The sentence for `error`; `sent` is what must not be quoted back."""
    host, status, wait = target.host, error.status, error.retry_after or 0.0
    if error.too_long:
        return ContextLengthError(
            f"The request is too long for {target.model} at {host}.",
            "Ask about less, lower CODEQA_CONTEXT_CHARACTERS, or choose a model with a "
            "longer context.",
        )
    if error.passes and not error.worth_retrying:
        return RateLimitError(
            f"{host} limits the rate and asks to wait {_spoken(wait)}.",
            "Ask again then, or choose another model.",
            wait,
        )
    if error.overloaded:
        return RateLimitError(f"{host} is overloaded.", "Ask again in a minute.", wait)
    if status == 429 and not error.no_money:
        hint = f"Ask again in {_spoken(wait) if wait else 'a minute'}."
        return RateLimitError(f"{host} limits the rate of requests.", hint, wait)
    return ModelError(*_sentence(error, target, sent))


def _sentence(error: ApiError, target: Endpoint, sent: str) -> tuple[str, str]:
    """What happened, and the next step."""
    host, status = target.host, error.status
    quoted = _quoted(error.message, target.key, sent)
    said = f": “{quoted}”" if quoted else ""
    if error.no_money:
        return (
            f"The account at {host} has no credit left.",
            "Add credit there, or choose another model.",
        )
    if error.filtered:
        return f"{host} refused the request under its content rules.", OTHER_WORDS
    if status == 401 or (status == 400 and _BAD_KEY.search(error.words)):
        return _key_refused(target)
    if status == 403:
        return (
            f"{host} does not allow this key to use {target.model}{said}.",
            "Check what the key may do, or choose another model.",
        )
    if status == 404:
        return _not_found(error, target)
    if 300 <= status < 400:
        leads_to = f" to {error.leads_to}" if error.leads_to else ""
        return (
            f"{host} sends requests on{leads_to}, which is not followed.",
            "Give the address that it leads to, if you trust it.",
        )
    if status in (408, 504):
        return f"{host} gave up waiting for the model (status {status}).", "Ask again."
    if status >= 500:
        return f"{host} failed with status {status}{said}.", "Ask again in a minute."
    if not status:
        return f"{host} reported an error in its answer{said}.", "Ask again."
    return (
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
        silent = f"it stayed silent for {timeout:g} seconds"
        return broke_off(
            target, f": {silent if 'ReadTimeout' in names else 'the connection was lost'}"
        )
    if "ConnectTimeout" in names:
        seconds = min(timeout, CONNECT_SECONDS)
        return ModelError(
            f"{host} cannot be reached: no connection within {seconds:g} seconds.", CHECK_NETWORK
        )
    if any("Timeout" in name for name in names):
        return ModelError(
            f"{host} stayed silent for {timeout:g} seconds.",
            "Ask again, or raise CODEQA_MODEL_TIMEOUT for a slow model.",
        )
    if any(isinstance(one, socket.gaierror) for one in causes):
        return ModelError(
            f"There is no host called {host}, or its name cannot be looked up.", CHECK_NETWORK
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
        return ModelError(f"{host} cannot be reached.", CHECK_NETWORK)
    return ModelError(f"{host} closed the connection without an answer.", "Ask again.")


def explain_end(answer: Answer, target: Endpoint, begun: bool) -> ModelError | None:
    """What is wrong with an answer that has come to its end; None for a whole one."""
    filtered = answer.reason == "content_filter"
    if begun:
        if filtered:
            return broke_off(target, " under its content rules", OTHER_WORDS)
        complete = answer.reason or answer.ended
        return None if complete else broke_off(target, ": the connection was closed")
    if not answer.understood:
        return not_an_api(target)
    if filtered:
        return ModelError(
            f"{target.host} withheld the answer under its content rules.", OTHER_WORDS
        )
    if answer.thought:
        return ModelError(
            f"{target.model} only reasoned and gave no answer.",
            "Ask for less at once, or choose a model that does not reason.",
        )
    hint = "Ask again."
    if leads_here(target.base_url):
        hint = "Ask again; a local server says nothing when its context is too small."
    return ModelError(f"{target.host} sent an answer without content.", hint)


def broke_off(target: Endpoint, why: str, hint: str = "Ask again.") -> ModelError:
    """The sentence for an answer of which the end is missing."""
    return ModelError(f"The answer from {target.host} broke off{why}.", hint)


def not_an_api(target: Endpoint) -> ModelError:
    """The sentence for an address where something else answers."""
    return ModelError(f"What answers at {target.base_url} is not a chat API.", CHECK_ADDRESS)


def explain_unexpected(error: BaseException, target: Endpoint) -> ModelError:
    """The sentence for what nobody thought of; it names the kind, since words may be code."""
    return ModelError(
        f"The request to {target.host} failed unexpectedly ({type(error).__name__}).", "Ask again."
    )


def _key_refused(target: Endpoint) -> tuple[str, str]:
    if not target.key:
        set_one = f", or set {target.key_variable}" if target.key_variable else ""
        return f"{target.host} asks for a key.", f"Enter one for this address{set_one}."
    exported = f", or {target.key_variable}" if target.key_variable else ""
    return f"{target.host} refused the key.", f"Check the key that you entered{exported}."


def _not_found(error: ApiError, target: Endpoint) -> tuple[str, str]:
    if not _ABOUT_MODEL.search(error.words):
        return f"There is no chat API at {target.base_url}.", CHECK_ADDRESS
    hint = "Choose another one; `codeqa models` and the page list them."
    if target.provider == "ollama":
        hint = f"Fetch it with `ollama pull {target.model}`, or choose another one."
    return f"{target.host} has no model {target.model!r}.", hint


def _how_to_start(target: Endpoint) -> str:
    provider = provider_named(target.provider) if target.provider else CUSTOM
    if provider.start and leads_here(target.base_url):
        return f"Is {provider.title} running? Start it with `{provider.start}`."
    return "Check the address, and that the server is running."


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
