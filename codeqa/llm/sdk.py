"""The OpenAI SDK as it is used here; imported with the first request, which takes half a second.

The SDK makes the requests, reads their events, and tries again. Ours is what it does not do:
nothing but what a request needs is sent along, no answer can fill the memory, events that nobody
can read are skipped, and what will not pass is not asked again.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import httpx2
import openai

from codeqa.llm.answer import DONE
from codeqa.llm.api_error import ApiError, read_api_error
from codeqa.llm.choice import leads_here
from codeqa.llm.endpoint import Endpoint

CONNECT_SECONDS = 10.0
RETRIES = 2
ERROR_BYTES = 64_000
ERROR_SECONDS = 5.0
"""Of a refusal's body, which the SDK would read to its end, if it ever comes to one."""
LONGEST_EVENT = 4_000_000
"""Bytes without an empty line; a sane event has hundreds, and a stream without lines no limit."""
LARGEST_REPLY = 8_000_000
"""Bytes of a reply that does not stream."""
DRAIN_SECONDS = 0.25
"""For the end of a complete answer, so that its connection can be used again."""

_SENT_HEADERS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host"}
    | {"x-api-key", "anthropic-version"}
)
"""Besides the key: what a request needs, for Anthropic's list too. The SDK would add the
operating system, its own version and whatever OPENAI_CUSTOM_HEADERS and OPENAI_ORG_ID hold."""


class UnreadableError(Exception):
    """A stream that never ends its event."""


class HttpClient(openai.DefaultAsyncHttpxClient):
    """Sends what is needed to the endpoint and nowhere else."""

    def __init__(self, target: Endpoint, timeout: float) -> None:
        super().__init__(
            timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            # Another host would get texts that were meant for this one.
            follow_redirects=False,
            # A proxy for the network has no way to a server on this machine.
            trust_env=not leads_here(target.base_url),
            verify=target.base_url.startswith("https:"),
        )
        self._key = target.key

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Raises openai.APIConnectionError where the SDK would try again in vain."""
        for name in list(request.headers):
            if name.lower() not in _SENT_HEADERS:
                del request.headers[name]
        request.headers["user-agent"] = "codeqa"
        request.headers["accept-encoding"] = "identity"
        if self._key and "x-api-key" not in request.headers:
            request.headers["authorization"] = f"Bearer {self._key}"
        try:
            response = await super().send(request, **options)
        except (httpx2.TimeoutException, httpx2.ConnectError) as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            await _judge(response)
        return response


async def _judge(response: httpx2.Response) -> None:
    """Tell the SDK by headers whether to try again, and when; leave it the body's beginning."""
    body = await _beginning(response.stream)
    if response.headers.pop("content-encoding", "identity") != "identity":
        body = b""  # nobody asked for that, and a few bytes may stand for gigabytes
    response.stream = httpx2.ByteStream(body)
    response.encoding = "utf-8"
    await response.aread()
    error = provider_error(response)
    response.headers["x-should-retry"] = "true" if error.worth_retrying else "false"
    for name in ("retry-after", "retry-after-ms"):
        response.headers.pop(name, None)
    if error.retry_after is not None:  # it may have stood in the body alone
        response.headers["retry-after"] = str(error.retry_after)


def provider_error(response: httpx2.Response) -> ApiError:
    """What the provider said in a response that has been read."""
    try:
        content = json.loads(response.content)
    except (ValueError, RecursionError):  # or brackets within brackets, thousands deep
        content = response.content.decode("utf-8", "replace")
    return read_api_error(response.status_code, content, response.headers)


async def _beginning(stream: Any) -> bytes:
    """What comes of `stream` within both limits; then it is closed."""
    data = bytearray()
    with suppress(Exception):  # a body that breaks off is a refusal all the same
        async with asyncio.timeout(ERROR_SECONDS):
            async for portion in stream:
                data += portion[: ERROR_BYTES - len(data)]
                if len(data) >= ERROR_BYTES:
                    break
    await stream.aclose()
    return bytes(data)


class EventStream(openai.AsyncStream[Any]):
    """The SDK's reader of events as JSON, in the end DONE; unlike the SDK's own it goes on after
    an event that cannot be read, and takes a server's answer that does not stream."""

    async def __stream__(self) -> AsyncIterator[Any]:
        kind = self.response.headers.get("content-type", "")
        if "json" in kind and "event-stream" not in kind:
            yield await self.whole()
            yield DONE
            return
        # Closed here and now, also when the request is cancelled between two pieces: what is left
        # to the collector of garbage may be closed while it runs.
        async with aclosing(self.response.aiter_bytes()) as portions:
            events = self._decoder.aiter_bytes(_bounded(portions))
            async for event in events:
                if event.data.strip() == "[DONE]":
                    yield DONE
                    with suppress(Exception):
                        async with asyncio.timeout(DRAIN_SECONDS):
                            async for _ in portions:
                                pass
                    return
                with suppress(ValueError, RecursionError):
                    yield json.loads(event.data)

    async def close(self) -> None:
        """Close the response, and what reads it."""
        await self._iterator.aclose()  # type: ignore[attr-defined]
        await super().close()

    async def whole(self) -> Any:
        """The JSON of a reply without events; None when it is none, or is too large."""
        data = bytearray()
        async for portion in self.response.aiter_bytes():
            data += portion
            if len(data) > LARGEST_REPLY:
                return None
        with suppress(ValueError, RecursionError):
            return json.loads(bytes(data))
        return None


async def _bounded(portions: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """`portions` as well-formed UTF-8, ended by an empty line. Raises UnreadableError."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting = 0
    async for portion in portions:
        ends = max(portion.rfind(mark) for mark in (b"\n\n", b"\r\r", b"\r\n\r\n"))
        waiting = len(portion) - ends if ends >= 0 else waiting + len(portion)
        if waiting > LONGEST_EVENT:
            raise UnreadableError
        yield decoder.decode(portion).encode()
    yield b"\n\n"
