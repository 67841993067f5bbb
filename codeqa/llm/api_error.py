"""What a provider says instead of an answer, in whatever shape it says it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOO_LONG = re.compile(
    r"context_length|context length|exceed_context_size|context size has been exceeded"
    r"|(?:exceeds?|exceeded|larger than|greater than).{0,60}context (?:size|window|limit)"
    r"|maximum (?:prompt|input|sequence) length|max(?:imum)? context|prompt (?:is )?too long"
    r"|input (?:is )?too long|input token count.{0,30}exceeds|request too large"
    r"|too many (?:input )?tokens|reduce the length of|`inputs` tokens",
    re.IGNORECASE | re.DOTALL,
)
"""OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Groq, Ollama, Mistral, LM Studio, TGI; Groq's and
OpenAI's "request too large" is a rate of tokens that the single request already exceeds."""
_NO_MONEY = re.compile(
    r"insufficient_quota|exceeded your current quota|insufficient (?:funds|credits?|balance)"
    r"|credit balance is too low|billing",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content_filter|content_policy|content management policy|prohibited_content|moderation",
    re.IGNORECASE,
)
_IN_A_WHILE = re.compile(
    r"(?:try again|retry) in (?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?)s)?"
    r"(?:(?P<ms>\d+)ms)?",
    re.IGNORECASE,
)
"""OpenAI, Groq and Gemini write the time to wait into the message: `1m26.4s`, `34s`, `20ms`."""
_IN_SECONDS = {"h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_OVERLOADED = re.compile(r"overloaded|over capacity|at capacity", re.IGNORECASE)

_ABOUT_MODEL = re.compile(r"\bmodels?\b|model_not_found", re.IGNORECASE)
_BAD_KEY = re.compile(r"api.?key|authentication|unauthori[sz]ed", re.IGNORECASE)

LONGEST_RETRY_AFTER = 20.0
"""Seconds that a provider may ask to wait for; nobody watches a page that is silent for longer."""

_PASSING = frozenset({408, 409, 429})
"""And every 5xx but 501: a server that cannot do it will not learn."""
_BY_STATUS = {0: "in stream", 401: "key", 403: "forbidden", 408: "failed", 429: "rate"}
_BY_CLASS = {3: "redirect", 5: "failed"}


@dataclass(frozen=True, slots=True)
class ApiError:
    """What a provider said instead of an answer; `status` 0 when inside of a stream.

    `words` holds its message with code, type and parameter: for telling errors apart, never
    for showing. `retry_after` is in seconds, None when it does not say.
    """

    status: int
    message: str = ""
    words: str = ""
    retry_after: float | None = None

    @property
    def kind(self) -> str:
        """Which sentence of `codeqa.llm.failures` it becomes."""
        status, words = self.status, self.words
        if _TOO_LONG.search(words) or status == 413:
            return "too long"
        if self._no_credit():
            return "no credit"
        if self._passes and self._waits_long:
            return "rate"
        if status == 529 or _OVERLOADED.search(words):
            return "overloaded"
        if status < 500 and _FILTERED.search(words):
            return "filtered"
        if status == 400 and _BAD_KEY.search(words):
            return "key"
        if status == 404:
            return "no model" if _ABOUT_MODEL.search(words) else "no api"
        return _BY_STATUS.get(status) or _BY_CLASS.get(status // 100, "refused")

    @property
    def worth_retrying(self) -> bool:
        """Whether the same request may succeed while somebody waits for it."""
        hopeless = self._waits_long or self.kind in ("too long", "no credit")
        return self._passes and not hopeless

    @property
    def _waits_long(self) -> bool:
        return (self.retry_after or 0.0) > LONGEST_RETRY_AFTER

    @property
    def _passes(self) -> bool:
        return self.status in _PASSING or (self.status >= 500 and self.status != 501)

    def _no_credit(self) -> bool:
        if self.status == 402 or "insufficient_quota" in self.words:
            return True
        # Gemini words a limit for a minute as it words one for the account.
        for_now = self.retry_after is not None or "RESOURCE_EXHAUSTED" in self.words
        return self.status < 500 and not for_now and bool(_NO_MONEY.search(self.words))


def read_api_error(status: int, body: Any, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error in a body of any of the shapes that are about.

    OpenAI's `{"error": {"message", "type", "code", "param"}}`, Ollama's `{"error": "…"}`,
    Mistral's `{"message", "type"}`, FastAPI's `{"detail": …}`, Gemini's list of one, plain text.
    """
    if isinstance(body, list) and body:
        body = body[0]
    inner = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        detail = inner.get("message") or inner.get("detail") or ""
        fields = [inner.get(name) for name in ("code", "type", "param", "status", "loc")]
    else:
        detail, fields = inner or "", []
    if isinstance(detail, list):  # FastAPI: what is wrong with each field, and where
        fields += [part.get("loc") for part in detail if isinstance(part, Mapping)]
        detail = "; ".join(str(p.get("msg", "")) for p in detail if isinstance(p, Mapping))
    if isinstance(detail, Mapping):
        detail = detail.get("message") or detail.get("msg") or ""
    message = str(detail)
    code = fields[0] if fields else None
    if not status and isinstance(code, int) and 400 <= code < 600:
        status = code
    words = " ".join([message, *(str(one) for one in fields if one is not None)])
    wait = _retry_after(headers or {})
    if wait is None and status == 429:
        wait = _said_wait(message)
    return ApiError(status, message, words, wait)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the header says; None when it says nothing usable."""
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _said_wait(message: str) -> float | None:
    found = _IN_A_WHILE.search(message)
    given = {unit: count for unit, count in found.groupdict().items() if count} if found else {}
    return sum(float(count) * _IN_SECONDS[unit] for unit, count in given.items()) or None
