"""What a provider's failure means, as a sentence for the user.

Works on any client's exceptions by what they have in common: a status code, a response
with headers, a type that says "connection". Providers differ in nothing else that matters.
"""

from __future__ import annotations

from typing import Any

from codeqa.errors import EmbeddingError

KEPT = "What was embedded is kept; run it again to go on."
DETAIL_CHARACTERS = 200

_REACHING = ("connect", "timeout", "unreachable", "resolve", "network")


def explain_failure(
    error: Exception, provider: str, host: str, key_variable: str
) -> EmbeddingError:
    """Say what `error` means. `host` names where requests go, '' when that is unknown."""
    if isinstance(error, EmbeddingError):
        return error
    place = f"{provider} ({host})" if host else provider
    status = _status(error)
    detail = _detail(error)
    if isinstance(error, ImportError):
        package = getattr(error, "name", None) or detail
        return EmbeddingError(
            f"The embedding {provider} needs a package that is not installed: {package}.",
            "Install it into the same environment, or choose another CODEQA_EMBEDDING.",
        )
    if status in (401, 403):
        return EmbeddingError(
            f"{place} refused the key (status {status}).", f"Check {key_variable}."
        )
    if status == 404:
        return EmbeddingError(
            f"{place} does not know the model or address (status 404): {detail}.",
            "Check CODEQA_EMBEDDING and the provider's base URL.",
        )
    if status == 429 and "insufficient_quota" in str(error):
        return EmbeddingError(f"The quota at {place} is used up.", f"Add to it. {KEPT}")
    if status == 429:
        wait = _retry_after(error)
        asked = f" and asks to wait {wait:.0f} s" if wait else ""
        return EmbeddingError(
            f"{place} limits the rate (status 429){asked}: {detail}.",
            f"Wait, or lower CODEQA_EMBEDDING_BATCH. {KEPT}",
        )
    if status is not None and 400 <= status < 500 and status != 408:
        return EmbeddingError(
            f"{place} rejected the request (status {status}): {detail}.",
            "Check CODEQA_EMBEDDING, CODEQA_EMBEDDING_DIMENSION and CODEQA_EMBEDDING_TOKENS.",
        )
    if status is not None:
        return EmbeddingError(f"{place} failed (status {status}): {detail}.", KEPT)
    if _is_reaching(error):
        return EmbeddingError(
            f"{place} cannot be reached: {detail}.",
            f"Check the network and the provider's base URL. {KEPT}",
        )
    if "api_key" in str(error).lower() or "api key" in str(error).lower():
        return EmbeddingError(f"{provider} has no key: {detail}.", f"Set {key_variable}.")
    kind = type(error).__name__
    return EmbeddingError(f"The embedding {provider} failed: {kind}: {detail}.", KEPT)


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
