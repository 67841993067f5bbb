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
    elif status == 429:
        said = f"{place} limits the rate, or the quota is used up (status 429): {detail}."
        hint = f"Wait, or lower CODEQA_EMBEDDING_BATCH. {KEPT}"
    elif status == 408 or (status is not None and status >= 500):
        said, hint = f"{place} failed (status {status}): {detail}.", KEPT
    elif status is not None:
        said = f"{place} rejected the request (status {status}): {detail}."
        hint = "Check CODEQA_EMBEDDING, CODEQA_EMBEDDING_DIMENSION and the provider's base URL."
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
    holders: tuple[Any, ...] = (error, getattr(error, "response", None))
    found = (getattr(holder, "status_code", None) for holder in holders)
    return next((status for status in found if isinstance(status, int)), None)


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
