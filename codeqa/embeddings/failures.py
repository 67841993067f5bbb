"""What a provider's failure means: a sentence for the user, and whether to try again.

Works on any client's exceptions by what they have in common: a status code, a response
with headers, a type that says "connection". Providers differ in nothing else that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from codeqa.errors import EmbeddingError

KEPT = "What was embedded is kept; run it again to go on."
DETAIL_CHARACTERS = 200

_REACHING = ("connect", "timeout", "unreachable", "resolve", "network")


@dataclass(frozen=True, slots=True)
class EmbeddingFailure:
    """An error for the user; `wait` is how long to wait before another try, None for never."""

    error: EmbeddingError
    wait: float | None = None


def explain(error: Exception, provider: str, host: str, key_variable: str) -> EmbeddingFailure:
    """Say what `error` means. `host` names where requests go, '' when that is unknown."""
    if isinstance(error, EmbeddingError):
        return EmbeddingFailure(error)
    place = f"{provider} ({host})" if host else provider
    status = _status(error)
    detail = _detail(error)
    if isinstance(error, ImportError):
        package = getattr(error, "name", None) or detail
        return _never(
            f"The embedding {provider} needs a package that is not installed: {package}.",
            "Install it into the same environment, or choose another CODEQA_EMBEDDING.",
        )
    if status in (401, 403):
        return _never(f"{place} refused the key (status {status}).", f"Check {key_variable}.")
    if status == 404:
        return _never(
            f"{place} does not know the model or address (status 404): {detail}.",
            "Check CODEQA_EMBEDDING and the provider's base URL.",
        )
    if status == 429:
        return _rate_limit(error, place, detail)
    if status is not None and 400 <= status < 500 and status != 408:
        return _never(
            f"{place} rejected the request (status {status}): {detail}.",
            "Check CODEQA_EMBEDDING, CODEQA_EMBEDDING_DIMENSION and CODEQA_EMBEDDING_TOKENS.",
        )
    if status is not None:
        return EmbeddingFailure(
            EmbeddingError(f"{place} failed (status {status}): {detail}.", KEPT), 0.0
        )
    if _is_reaching(error):
        message = f"{place} cannot be reached: {detail}."
        hint = f"Check the network and the provider's base URL. {KEPT}"
        return EmbeddingFailure(EmbeddingError(message, hint), 0.0)
    if "api_key" in str(error).lower() or "api key" in str(error).lower():
        return _never(f"{provider} has no key: {detail}.", f"Set {key_variable}.")
    return _never(f"The embedding {provider} failed: {type(error).__name__}: {detail}.", KEPT)


def _never(message: str, hint: str) -> EmbeddingFailure:
    return EmbeddingFailure(EmbeddingError(message, hint))


def _rate_limit(error: Exception, place: str, detail: str) -> EmbeddingFailure:
    if "insufficient_quota" in str(error):
        return _never(f"The quota at {place} is used up.", f"Add to it. {KEPT}")
    wait = _retry_after(error)
    asked = f" and asks to wait {wait:.0f} s" if wait else ""
    message = f"{place} limits the rate (status 429){asked}: {detail}."
    return EmbeddingFailure(
        EmbeddingError(message, f"Wait, or lower CODEQA_EMBEDDING_BATCH. {KEPT}"), wait
    )


def _status(error: Exception) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            value = getattr(holder, name, None)
            if isinstance(value, int):
                return value
    return None


def _retry_after(error: Exception) -> float:
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after") or headers.get("Retry-After") or 0))
    except (TypeError, ValueError):
        return 0.0


def _is_reaching(error: BaseException) -> bool:
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    names = " ".join(kind.__name__.lower() for kind in type(error).__mro__)
    return any(word in names for word in _REACHING)


def _detail(error: Exception) -> str:
    cause = error.__cause__ if _is_reaching(error) and error.__cause__ else error
    body = getattr(error, "body", None)
    text = body.get("message") if isinstance(body, dict) else None
    line = " ".join(str(text or cause).split()).rstrip(".")
    return line[:DETAIL_CHARACTERS] or type(error).__name__
