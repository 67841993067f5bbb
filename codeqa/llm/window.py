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

import re
import time
from contextlib import suppress
from typing import Any

from codeqa.llm.client import Model
from codeqa.llm.providers import Endpoint, provider_named

OLLAMA_WINDOW = 4_096
ASK_SECONDS = 1.0
"""A server on this machine answers in milliseconds; nobody waits longer for a number."""
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
        window = 0
        # Nobody fails for a number, whatever stands in its place.
        with suppress(Exception), Model(endpoint, ASK_SECONDS) as model:
            window = _ask(model)
        _known[key] = told = (time.monotonic(), window)
    return told[1]


def cut_off(prompt_tokens: int, characters: int) -> bool:
    """Whether a server that read `prompt_tokens` cannot have read `characters`: it is found out
    when it read less than about half."""
    return COUNTED_AT_LEAST <= prompt_tokens < characters / CHARACTERS_AT_MOST


def _ask(model: Model) -> int:
    """What the server says of the model; 0 for nothing. Raises ModelError."""
    root = model.endpoint.base_url.removesuffix("/v1")
    match model.endpoint.provider:
        case "ollama":
            if row := _row(model.fetch(f"{root}/api/ps"), model):
                return _number(row, "context_length")
            shown = model.fetch(f"{root}/api/show", {"model": model.endpoint.model})
            asked = _NUM_CTX.search(str(shown.get("parameters")))
            return int(asked.group(1)) if asked else OLLAMA_WINDOW
        case "llamacpp":
            return _number(model.fetch(f"{root}/props")["default_generation_settings"], "n_ctx")
        case "lmstudio":
            # What its model could take at most says nothing of what it was loaded with.
            row = _row(model.fetch(f"{root}/api/v0/models"), model)
            return _number(row, "loaded_context_length")
    row = _row(model.fetch("/models"), model)
    return next((found for name in _FIELDS if (found := _number(row, name))), 0)


def _row(listed: Any, model: Model) -> Any:
    """The entry of the model in a list of models; None where there is none."""
    names = (model.endpoint.model, f"{model.endpoint.model}:latest")
    rows = listed.get("data") or listed.get("models") or ()
    return next((row for row in rows if row.get("id", row.get("name")) in names), None)


def _number(row: Any, name: str) -> int:
    found = row and row.get(name)
    return found if isinstance(found, int) and found > 0 else 0
