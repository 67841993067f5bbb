"""What servers offer: the order of their models, and which run on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from codeqa.errors import ModelError
from codeqa.llm.client import Model
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.providers import ModelProvider

PROBE_SECONDS = 0.4
"""A server on this machine answers in milliseconds, or there is none."""

_NO_CHAT = re.compile(
    r"embed|whisper|\btts\b|-tts|dall-e|image|imagen|moderation|rerank|transcri|realtime|audio"
    r"|speech|sora|veo|guard|\bbge-|\be5-|minilm|\bocr\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answered on this machine, and the models that it has."""

    provider: ModelProvider
    address: str
    models: tuple[str, ...]


def chats(name: str) -> bool:
    """Whether a model of this name is likely to be one that chats."""
    return not _NO_CHAT.search(name)


def chat_models_first(names: Iterable[str]) -> list[str]:
    """`names` as given, those that embed, speak, draw or judge last."""
    return sorted(names, key=lambda name: not chats(name))


def running(providers: Sequence[ModelProvider]) -> list[RunningServer]:
    """Those of `providers` that answer at their own address within PROBE_SECONDS."""
    with ThreadPoolExecutor(len(providers)) as threads:
        return [server for server in threads.map(_probe, providers) if server is not None]


def _probe(provider: ModelProvider) -> RunningServer | None:
    target = Endpoint(provider.base_url, "", provider=provider.name)
    try:
        with closing(Model(target, PROBE_SECONDS)) as model:
            names = chat_models_first(model.list_models())
    except ModelError:
        return None
    return RunningServer(provider, provider.base_url, tuple(names))
