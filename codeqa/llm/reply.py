"""A response that arrives: its text handed over piece by piece, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from codeqa.errors import ModelError
from codeqa.llm.background import Feed
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.events import Answer, Events, EventTooLongError
from codeqa.llm.failures import explain_nothing, not_an_api
from codeqa.llm.refusal import Refusal, read_refusal

if TYPE_CHECKING:
    import httpx2

DRAIN_SECONDS = 0.25
"""For the end of a complete answer, so that its connection can be used again."""
LARGEST_REPLY = 8_000_000
"""Bytes of a reply that does not stream."""
LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop of themselves."""


class RefusedError(Exception):
    """The provider said something else than an answer."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.status)
        self.refusal = refusal


async def receive(response: httpx2.Response, target: Endpoint, feed: Feed) -> None:
    """Put the text of `response` into `feed` as it comes, then the TokenUsage, then end it.

    Raises RefusedError, ModelError for an answer that is none or is not complete, and what the
    client raises for a connection that breaks.
    """
    answer = Answer()
    kind = response.headers.get("content-type", "")
    if "html" in kind:
        raise not_an_api(target)
    if "json" in kind and "event-stream" not in kind:  # a server that does not stream
        payload = await read_json(response)
        await _take(answer, json.dumps(payload).encode(), target, feed)
        await _complete(answer, target, feed, ended=True)
        return
    # Closed here and now, also when the request is cancelled between two pieces: what is left to
    # the collector of garbage may be closed while it runs.
    async with aclosing(response.aiter_bytes()) as stream:
        await _read(stream, answer, target, feed)


async def _read(
    stream: AsyncGenerator[bytes, None], answer: Answer, target: Endpoint, feed: Feed
) -> None:
    events = Events()
    ended = False
    try:
        async for portion in stream:
            for data in events.feed(portion):
                ended = ended or data.strip() == b"[DONE]"
                if not ended:
                    await _take(answer, data, target, feed)
            if ended:
                break
        else:
            for data in events.close():
                ended = data.strip() == b"[DONE]"
                if not ended:
                    await _take(answer, data, target, feed)
    except EventTooLongError:
        raise ModelError(
            f"{target.host} sent an answer that cannot be read.", "Ask again."
        ) from None
    except Exception:
        if not answer.reason:  # else all that mattered had come
            raise
    await _complete(answer, target, feed, ended)
    if ended:
        await _drain(stream)


async def read_json(response: httpx2.Response) -> Any:
    """The JSON of a reply; None when it is none, or is too large."""
    data = bytearray()
    async for portion in response.aiter_bytes():
        data += portion
        if len(data) > LARGEST_REPLY:
            return None
    try:
        return json.loads(bytes(data))
    except (ValueError, RecursionError):  # brackets within brackets, thousands deep
        return None


async def _take(answer: Answer, data: bytes, target: Endpoint, feed: Feed) -> None:
    text = answer.take(data)
    if answer.error is not None:
        raise RefusedError(read_refusal(0, answer.error))
    if text:
        await feed.put(text)
    if answer.length > LONGEST_ANSWER:
        raise ModelError(
            f"The answer from {target.host} broke off: it is longer than {LONGEST_ANSWER:,} "
            "characters.",
            "Ask for less at once, or choose another model.",
        )


async def _complete(answer: Answer, target: Endpoint, feed: Feed, ended: bool) -> None:
    """Hand over the rest and end the feed, if this is the end of an answer."""
    rest = answer.close()
    if rest:
        await feed.put(rest)
    if not feed.begun:
        if not answer.understood:
            raise not_an_api(target)
        raise explain_nothing(target, answer.reason, answer.thought)
    if not answer.reason and not ended:
        raise ModelError(
            f"The answer from {target.host} broke off: the connection was closed.", "Ask again."
        )
    if answer.reason == "content_filter":
        raise ModelError(
            f"The answer from {target.host} broke off under its content rules.",
            "Ask in other words, or choose another model.",
        )
    usage = answer.usage()
    if usage is not None:
        await feed.put(usage)
    feed.end()


async def _drain(stream: Any) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in stream:
                pass
    except Exception:
        pass
