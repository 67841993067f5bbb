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
    status, detail = _status(error), _detail(error)
    if isinstance(error, ImportError):
        missing = error.name or detail
        said = f"The embedding {provider} needs a package that is not installed: {missing}."
        hint = "Install it into the same environment, or choose another CODEQA_EMBEDDING."
    elif status in (401, 403):
        said, hint = f"{place} refused the key (status {status}).", f"Check {key_variable}."
    elif status == 404:
        said = f"{place} does not know the model or address (status 404): {detail}."
        hint = "Check CODEQA_EMBEDDING and the provider's base URL."
    elif status == 429 and "insufficient_quota" in str(error):
        said, hint = f"The quota at {place} is used up.", f"Add to it. {KEPT}"
    elif status == 429:
        wait = _retry_after(error)
        asked = f" and asks to wait {wait:.0f} s" if wait else ""
        said = f"{place} limits the rate (status 429){asked}: {detail}."
        hint = f"Wait, or lower CODEQA_EMBEDDING_BATCH. {KEPT}"
    elif status is not None and 400 <= status < 500 and status != 408:
        said = f"{place} rejected the request (status {status}): {detail}."
        hint = "Check CODEQA_EMBEDDING, CODEQA_EMBEDDING_DIMENSION and CODEQA_EMBEDDING_TOKENS."
    elif status is not None:
        said, hint = f"{place} failed (status {status}): {detail}.", KEPT
    elif _is_reaching(error):
        said = f"{place} cannot be reached: {detail}."
        hint = f"Check the network and the provider's base URL. {KEPT}"
    elif "api_key" in str(error).lower() or "api key" in str(error).lower():
        said, hint = f"{provider} has no key: {detail}.", f"Set {key_variable}."
    else:
        said = f"The embedding {provider} failed: {type(error).__name__}: {detail}."
        hint = KEPT
    return EmbeddingError(said, hint)


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
