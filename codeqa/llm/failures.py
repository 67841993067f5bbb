"""Say what went wrong with a model, and what to do next."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from html import unescape
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from codeqa.errors import ContextLengthError, ModelError, RateLimitError, places_of
from codeqa.hosts import leads_here
from codeqa.llm.dialects import DIALECTS, any_of
from codeqa.llm.providers import ModelAddress, provider_named
from codeqa.text import json_value

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)
READ_CHARACTERS = 4_000
"""Characters read of an error's text."""
QUOTED_CHARACTERS = 160
"""Of a provider's own message."""
LOADING_SECONDS = 5.0
"""Before a server that still loads its model is asked again."""
KEY_CHARACTERS = 8
"""A message with so many characters of the key in a row is not quoted: some repeat a part of it."""
_TRY_AGAIN = re.compile(r"\b(?:retry|try again) in (\d{1,6}(?:\.\d+)?) ?s")
_PAGE_WORDS = [
    re.compile(rf"<{name}[^<>]{{0,200}}>([^<]+)", re.I) for name in ("pre", "h1", "title")
]
_LIMIT_FIELD = re.compile(r"\bmax(?:_completion|_new)?_tokens\b")
MOST_LEVELS = 8
"""Depth to which the fields of an error are read."""


def failure(kind: str, target: ModelAddress, why: str = "", seconds: float = 0.0) -> ModelError:
    """Return the error of a `kind`; a rate limit asks to wait `seconds`, 0 if unknown."""
    wait = f"{seconds:.0f} seconds" if seconds else "a minute"
    words = {"host": target.host, "address": target.base_url, "model": target.model}
    row = next(one for one in DIALECTS["failures"] if one["kind"] == kind)
    texts = row.get("sentence", "{host} failed{why}."), row["hint"]
    sentence, hint = (text.format(**words, why=why, wait=wait) for text in texts)
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
        case (
            openai.APIConnectionError() | httpx2.RequestError() | TimeoutError() | ExceptionGroup()
        ):
            kind, why = _kind_of_break(error, target, begun)
        case openai.APIError():  # the provider refused, or ended an answer by an error
            body, status = _body(error), getattr(error, "status_code", 0)
            status, text = status or _status(body), _lower_words(body)
            headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
            seconds = _retry_after(headers.get("retry-after", ""), text)
            kind = _kind_of_refusal(status, text)
            if kind == "loading":
                seconds = seconds or LOADING_SECONDS
            elif status >= 500 and seconds:
                kind = "rate"
            if status and kind not in ("model", "api", "key"):
                why = f" with status {status}"
            if message := server_words(body, target.key):
                why += f": “{message}”"
        case ValueError() | RecursionError():
            kind, why = "broke off", ": it cannot be read"
        case _:
            log.error("Unexpected while a model was asked: %s", places_of(error))
            # Only its type is named: the message may hold code.
            kind, why = "failed", f" unexpectedly ({type(error).__name__})"
    return failure(kind, target, why, seconds)


def refusal_in(value: Any) -> openai.APIError | None:
    """Return the error in a value of an answer; None for any other value."""
    import openai

    match value:
        case (
            {"error": why}
            | {"errors": why}
            | [{"error": why}, *_]
            | {"choices": [{"error": why}, *_]}
        ) if why:
            pass
        case {"object": "error"} | {"type": "error"}:
            pass
        case _:
            return None
    return openai.APIError("", cast(Any, None), body=value)


def refused_form(error: Exception, refused: Collection[str]) -> str:
    """Return the form of a request that a server does not take, unless it is known as `refused`."""
    import openai

    if not isinstance(error, openai.APIError) or isinstance(error, openai.APIConnectionError):
        return ""
    text = _lower_words(_body(error))
    if _kind_of_refusal(0, text) == "too long":
        return ""
    forms = ((form, any_of(*says)) for form, says in DIALECTS["forms"].items())
    return next((form for form, says in forms if form not in refused and says.search(text)), "")


def unusable_setting(error: Exception, target: ModelAddress) -> ModelError:
    """Return the error to show for a client that cannot be made with the user's environment."""
    from urllib.request import getproxies

    if isinstance(error, OSError):
        return failure("certificates", target, f" ({error.strerror or type(error).__name__})")
    names = (f"{name.upper()}_PROXY" for name in ("http", "https", "all") if getproxies().get(name))
    return failure("proxy setting", target, " or ".join(names))


def _kind_of_break(error: Exception, target: ModelAddress, begun: bool) -> tuple[str, str]:
    """Return the kind of failure of a connection, and why it failed."""
    from urllib.request import getproxies, proxy_bypass

    import httpx2
    import openai

    cause = error.__cause__ or error
    unconnected = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.ProxyError)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError):
        if not unconnected:
            return "silent", ""
    elif begun:
        return "broke off", ""
    why = f" ({cause})" if unconnected and str(cause) else ""  # the system's words
    scheme = urlsplit(target.base_url)[0]
    if "certificate" in why.lower():
        return "certificate", why
    name = next((one for one in (scheme, "all") if getproxies().get(one)), "")
    if name and not leads_here(target.base_url) and not proxy_bypass(target.host):
        return "proxy", f"{name.upper()}_PROXY{why}"
    return "unreachable", why


def _body(error: Any) -> Any:
    """Return all of what a server said; the SDK keeps less of it."""
    if response := getattr(error, "response", None):
        text = response.content.decode("utf-8", "replace")
        return json_value(text) or text
    return error.body


def _status(body: Any) -> int:
    """Return the status that an error inside an answer names; 0 for none."""
    for part in (body, body.get("error")) if isinstance(body, Mapping) else ():
        code = str(part.get("code") or part.get("status")) if isinstance(part, Mapping) else ""
        if code.isdecimal() and 400 <= int(code[:4]) < 600:
            return int(code[:4])
    return 0


def _retry_after(header: str, text: str) -> float:
    """Return the seconds that `Retry-After` (number or date) or else the `text` asks to wait."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)", header) or _TRY_AGAIN.search(text)
    if match:
        return float(match[1])
    with suppress(ValueError, OverflowError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    return 0.0


def _kind_of_refusal(status: int, text: str) -> str:
    """Return the kind of failure of a refusal with that status and text."""
    text = _LIMIT_FIELD.sub("", text)
    for row in DIALECTS["failures"]:
        says, unless = (any_of(*row.get(name, ())) for name in ("says", "unless"))
        fits = status in row.get("only", [status]) and says.search(text) and not unless.search(text)
        if fits or status in row.get("statuses", ()):
            break
    return str(row["kind"])


def _lower_words(body: Any) -> str:
    """Return what a server said, without the names of fields, in small letters."""
    text = str(body)[:READ_CHARACTERS].lower()
    return re.sub(r"'\w{1,40}': ", "\n", text)  # each value is a line


def server_words(body: Any, key: str) -> str:
    """Return what a server said as a short line, '' if it repeats the key."""
    for _ in range(MOST_LEVELS):
        if isinstance(body, str):
            inner = json_value(body)
            if not isinstance(inner, Mapping | list):
                break
            body = inner
        match body:
            case [first, *_]:
                body = first
            case {"metadata": {"raw": str(raw)}} if raw:  # of OpenRouter: the words of its provider
                body = raw
            case {**fields}:
                words = map(fields.get, DIALECTS["words"])
                body = next((one for one in words if one and not isinstance(one, int)), "")
            case _:
                break
    text = body if isinstance(body, str) else ""
    if text.lstrip().startswith("<"):
        titles = (one.search(text[:READ_CHARACTERS]) for one in _PAGE_WORDS)
        text = next((unescape(one[1]) for one in titles if one), "")
    text = text[: 2 * QUOTED_CHARACTERS]
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")
    run = min(len(key), KEY_CHARACTERS)
    repeats = run and any(text[at : at + run] in key for at in range(len(text) - run + 1))
    if repeats:
        return ""
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"
