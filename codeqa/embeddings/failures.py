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
_REFUSALS = (
    ((401, 403), "{place} refused the key (status {status}).", "Check {key}."),
    (
        (404,),
        "{place} does not know the model or address (status 404): {detail}.",
        "Check CODEQA_EMBEDDING and the provider's base URL.",
    ),
    (
        (429,),
        "{place} limits the rate (status 429){wait}: {detail}.",
        f"Wait, or lower CODEQA_EMBEDDING_BATCH. {KEPT}",
    ),
    (
        (*range(400, 408), *range(409, 500)),
        "{place} rejected the request (status {status}): {detail}.",
        "Check CODEQA_EMBEDDING, CODEQA_EMBEDDING_DIMENSION and CODEQA_EMBEDDING_TOKENS.",
    ),
    (range(1_000), "{place} failed (status {status}): {detail}.", KEPT),
)
"""Statuses, what was said by them, and what to do. The first that holds the status counts."""


def explain_failure(
    error: Exception, provider: str, host: str, key_variable: str
) -> EmbeddingError:
    """Say what `error` means. `host` names where requests go, '' when that is unknown."""
    if isinstance(error, EmbeddingError):
        return error
    place = f"{provider} ({host})" if host else provider
    response: Any = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    detail = _detail(error)
    if isinstance(error, ImportError):
        missing = error.name or detail
        said = f"The embedding {provider} needs a package that is not installed: {missing}."
        hint = "Install it into the same environment, or choose another CODEQA_EMBEDDING."
    elif status == 429 and "insufficient_quota" in str(error):
        said, hint = f"The quota at {place} is used up.", f"Add to it. {KEPT}"
    elif isinstance(status, int):
        said, hint = next((said, hint) for of, said, hint in _REFUSALS if status in of)
        said = said.format(place=place, status=status, detail=detail, wait=_asked_wait(response))
        hint = hint.format(key=key_variable)
    elif _is_reaching(error):
        said = f"{place} cannot be reached: {detail}."
        hint = f"Check the network and the provider's base URL. {KEPT}"
    elif "api_key" in str(error).lower() or "api key" in str(error).lower():
        said, hint = f"{provider} has no key: {detail}.", f"Set {key_variable}."
    else:
        said = f"The embedding {provider} failed: {type(error).__name__}: {detail}."
        hint = KEPT
    return EmbeddingError(said, hint)


def _asked_wait(response: Any) -> str:
    asked = (getattr(response, "headers", None) or {}).get("retry-after") or ""
    return f" and asks to wait {asked} s" if str(asked).isdecimal() else ""


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
