"""What servers offer: the order of their models, and which run on this machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeqa.errors import CodeQAError
from codeqa.llm.client import in_background
from codeqa.llm.connection import Connection
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
    found = in_background(_probe_all(providers)).result()
    return [server for server in found if server is not None]


async def _probe_all(providers: Sequence[ModelProvider]) -> list[RunningServer | None]:
    connections = [
        Connection(Endpoint(one.base_url, "", provider=one.name), PROBE_SECONDS)
        for one in providers
    ]
    for connection in connections:
        await connection.open()  # loading the client is no part of the time
    return await asyncio.gather(*map(_probe, providers, connections))


async def _probe(provider: ModelProvider, connection: Connection) -> RunningServer | None:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            names = await connection.list_models()
    except (CodeQAError, TimeoutError):
        return None
    finally:
        await connection.close()
    return RunningServer(provider, provider.base_url, tuple(chat_models_first(names)))
