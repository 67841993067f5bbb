"""The HTTP client of an endpoint: what it sends along, and where it never goes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codeqa.llm.address import leads_here
from codeqa.llm.endpoint import Endpoint
from codeqa.llm.failures import CONNECT_SECONDS

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

_SENT_HEADERS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host"}
    | {"x-api-key", "anthropic-version", "x-stainless-raw-response"}
)
"""Besides the key: what a request needs, for Anthropic's list too, and the client's own note that
it is read as it comes. The client would add the operating system, its own version and whatever
OPENAI_CUSTOM_HEADERS and OPENAI_ORG_ID hold, to any host."""

REFUSAL_BYTES = 64_000
REFUSAL_SECONDS = 5.0
"""Of a refusal's body, which the client would read to its end, if it ever comes to one."""


def open_client(target: Endpoint, timeout: float) -> AsyncOpenAI:
    """A client for `target` that gives up after `timeout` silent seconds and never tries again.

    Its key is set by the hook alone, so that none is sent where there is none.
    """
    import httpx2
    import openai  # late: takes half a second

    async def only_what_is_needed(request: httpx2.Request) -> None:
        for name in list(request.headers):
            if name.lower() not in _SENT_HEADERS:
                del request.headers[name]
        request.headers["user-agent"] = "codeqa"
        request.headers["accept-encoding"] = "identity"
        if target.key and "x-api-key" not in request.headers:
            request.headers["authorization"] = f"Bearer {target.key}"

    async def only_a_part_of_a_refusal(response: httpx2.Response) -> None:
        if response.is_success:
            return
        body = await _beginning(response.stream)
        if response.headers.pop("content-encoding", "identity") != "identity":
            body = b""  # nobody asked for that, and a few bytes may stand for gigabytes
        response.stream = httpx2.ByteStream(body)
        response.encoding = "utf-8"

    return openai.AsyncOpenAI(
        api_key="set by the hook",
        base_url=target.base_url,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(
            timeout=openai.Timeout(timeout, connect=CONNECT_SECONDS),
            event_hooks={
                "request": [only_what_is_needed],
                "response": [only_a_part_of_a_refusal],
            },
            # Another host would get texts that were meant for this one.
            follow_redirects=False,
            # A proxy for the network has no way to a server on this machine.
            trust_env=not leads_here(target.base_url),
            verify=target.base_url.startswith("https:"),
        ),
    )


async def _beginning(stream: Any) -> bytes:
    """What comes of `stream` within both limits; then it is closed."""
    data = bytearray()
    with suppress(Exception):  # a body that breaks off is a refusal all the same
        async with asyncio.timeout(REFUSAL_SECONDS):
            async for portion in stream:
                data += portion[: REFUSAL_BYTES - len(data)]
                if len(data) >= REFUSAL_BYTES:
                    break
    await stream.aclose()
    return bytes(data)


def listing_headers(target: Endpoint) -> dict[str, str]:
    """Anthropic lists its models in its own API only, which takes the key in its own header."""
    if target.provider != "anthropic" or not target.key:
        return {}
    return {"x-api-key": target.key, "anthropic-version": "2023-06-01"}
