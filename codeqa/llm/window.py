"""How many tokens a model takes at once, as its server says it.

Servers on one's own machine differ widely, and some cut a longer prompt off without a word, so
they are asked; the large providers are not, their windows stand with them in `providers`.

- Ollama: `/api/ps` says what a loaded model was given, `/api/show` what its file asks for;
  without either it gets at least OLLAMA_WINDOW (docs/context-length of Ollama, November 2026).
- llama.cpp: `/props`, `default_generation_settings.n_ctx`, which is that of one slot.
- LM Studio: `/api/v0/models`, `loaded_context_length`.
- vLLM and others: `/v1/models`, `max_model_len` and the like.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from codeqa.hosts import leads_here
from codeqa.llm.bounded import within
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.providers import provider_named

log = logging.getLogger(__name__)

OLLAMA_WINDOW = 4_096
ASK_SECONDS = 1.0
"""A server on this machine answers in milliseconds; nobody waits longer for a number."""
LARGEST_REPLY = 4_000_000
"""Bytes of an answer that are read; the longest lists of models have a tenth."""
KNOWN_SECONDS = 30.0
"""How long an answer holds: a model may be loaded anew with another window."""
CHARACTERS_AT_MOST = 6.0
"""No tokenizer in use makes fewer tokens of code than one for so many characters."""
COUNTED_AT_LEAST = 1_000
"""A server that leaves out what it still had from before reports less than this."""

_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "context_window",
           "max_context_length")  # fmt: skip
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)

_known: dict[tuple[str, str], tuple[float, int]] = {}


def context_window(endpoint: Endpoint) -> int:
    """Tokens that the model at `endpoint` takes, question and answer together; 0 if unknown.

    A server on this machine, or at an address that the user gave, is asked, at most every
    KNOWN_SECONDS. Raises nothing.
    """
    provider = provider_named(endpoint.provider or "custom")
    if provider.window and endpoint.base_url == provider.base_url:
        return provider.window
    key = (endpoint.base_url, endpoint.model)
    told = _known.get(key)
    if told is None or time.monotonic() - told[0] > KNOWN_SECONDS:
        _known[key] = told = (time.monotonic(), _ask_bounded(endpoint))
    return told[1]


def cut_off(prompt_tokens: int, characters: int) -> bool:
    """Whether a server that read `prompt_tokens` cannot have read `characters`: it is found out
    when it read less than about half."""
    return COUNTED_AT_LEAST <= prompt_tokens < characters / CHARACTERS_AT_MOST


def _ask_bounded(endpoint: Endpoint) -> int:
    """What `_ask` gives within ASK_SECONDS, 0 for everything else: nobody fails for a number."""
    try:
        return within(ASK_SECONDS, lambda: _ask(endpoint))
    except Exception as error:
        log.info("no window from %s: %s", endpoint.host, type(error).__name__)
        return 0


def _ask(endpoint: Endpoint) -> int:
    import httpx2

    until = time.monotonic() + ASK_SECONDS
    root = endpoint.base_url.rstrip("/").removesuffix("/v1")
    headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}

    with httpx2.Client(
        base_url=root,
        headers=headers,
        timeout=ASK_SECONDS,
        trust_env=not leads_here(endpoint.base_url),
        verify=root.startswith("https:"),
    ) as client:

        def asked(path: str, body: Mapping[str, str] | None = None) -> Any:
            method, data = "POST" if body else "GET", bytearray()
            with (
                suppress(httpx2.HTTPError, ValueError, RecursionError),
                client.stream(method, path, json=body) as reply,
            ):
                for portion in reply.iter_bytes():
                    data += portion
                    if len(data) > LARGEST_REPLY or time.monotonic() > until:
                        return None
                return json.loads(data) if reply.is_success else None
            return None

        if endpoint.provider == "ollama":
            return _of_ollama(asked, endpoint.model)
        if endpoint.provider == "llamacpp":
            return _number(asked("/props"), "default_generation_settings", "n_ctx")
        listed = asked("/api/v0/models") if endpoint.provider == "lmstudio" else None
        listed = listed or asked(f"{endpoint.base_url.rstrip('/')}/models")
        row = _row(listed, "data", endpoint.model)
        # What LM Studio's model could take at most says nothing of what it was loaded with.
        fields = _FIELDS[:2] if endpoint.provider == "lmstudio" else _FIELDS
        return next((found for name in fields if (found := _number(row, name))), 0)


def _of_ollama(asked: Any, model: str) -> int:
    if loaded := _number(_row(asked("/api/ps"), "models", model), "context_length"):
        return loaded
    shown = asked("/api/show", {"model": model})
    parameters = shown.get("parameters") if isinstance(shown, Mapping) else None
    found = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    return int(found.group(1)) if found else OLLAMA_WINDOW if shown else 0


def _row(payload: Any, field: str, model: str) -> Any:
    """The entry of `model` in a list of models; None where there is none."""
    rows = payload.get(field) if isinstance(payload, Mapping) else None
    rows = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
    names = (model, f"{model}:latest")
    own = [row for row in rows if names_of(row) & set(names)]
    return own[0] if own else None


def names_of(row: Mapping[str, Any]) -> set[str]:
    """What a server calls the model of `row`."""
    return {str(row.get(name)) for name in ("id", "name", "model") if row.get(name)}


def _number(payload: Any, *path: str) -> int:
    for name in path:
        payload = payload.get(name) if isinstance(payload, Mapping) else None
    return payload if isinstance(payload, int) and payload > 0 else 0
