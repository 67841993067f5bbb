"""One endpoint seen from the event loop: requests and their further tries."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.errors import ModelError, places_of
from codeqa.llm.background import Feed, closed
from codeqa.llm.choice import usable
from codeqa.llm.dialect import Dialect
from codeqa.llm.endpoint import Endpoint, Message
from codeqa.llm.estimate import message_text
from codeqa.llm.failures import (
    explain_lost,
    explain_refusal,
    explain_unexpected,
    explain_wait,
    not_an_api,
    worth_reconnecting,
)
from codeqa.llm.http import listing_headers, open_client
from codeqa.llm.refusal import Refusal, read_refusal
from codeqa.llm.reply import RefusedError, read_json, receive

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

RETRIES = 2
"""Further tries (S0.10)."""
FIRST_WAIT, LONGEST_WAIT, JITTER = 0.5, 8.0, 0.25
"""Seconds before the first further try, doubled each time; ± a quarter, so that requests which
failed together do not come back together."""
LONGEST_RETRY_AFTER = 20.0
"""Seconds that a provider may ask to wait for; nobody watches a page that is silent for longer."""
LIST_SECONDS = 10.0


class Connection:
    """The endpoint's client and what was learnt of it; used on one event loop only."""

    def __init__(self, target: Endpoint, timeout: float) -> None:
        self._target = target
        self._timeout = timeout
        self._dialect = Dialect()
        self._client: AsyncOpenAI | None = None

    async def chat(self, messages: Sequence[Message], max_tokens: int | None, feed: Feed) -> None:
        """Ask, and put the answer's text and at last its TokenUsage into `feed`, then end it.

        Whatever goes wrong ends the feed with an error that says so.
        """
        try:
            await self._persist(messages, max_tokens, feed)
        except asyncio.CancelledError:
            feed.end(closed())
            raise
        except ModelError as error:
            feed.end(error)
        except Exception as error:
            feed.end(self._unexpected(error))

    async def list_models(self) -> list[str]:
        """Names of the models, as the server gives them. Raises ModelError."""
        import httpx2
        import openai

        try:
            client = self._open()
            async with asyncio.timeout(LIST_SECONDS):
                headers = listing_headers(self._target)
                listing = client.models.with_streaming_response.list(extra_headers=headers)
                async with listing as response:
                    payload = await read_json(response.http_response)
        except TimeoutError:
            error = ModelError(
                f"{self._target.host} did not list its models in {LIST_SECONDS:g} seconds.",
                "Type the name of the model.",
            )
            raise error from None
        except openai.APIStatusError as error:
            raise explain_refusal(self._refusal(error), self._target) from None
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise explain_lost(error, self._target, self._timeout) from None
        except Exception as error:
            raise self._unexpected(error) from None
        return _model_names(payload, self._target)

    async def open(self) -> None:
        """Make the client and load what it loads late, which takes half a second."""
        _ = self._open().chat.completions.with_streaming_response

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()

    async def _persist(
        self, messages: Sequence[Message], max_tokens: int | None, feed: Feed
    ) -> None:
        """Try again where that may help and nothing has been answered yet."""
        import httpx2
        import openai

        failed = 0
        while True:
            dialect = self._dialect
            retry_after: float | None = None
            try:
                await self._once(dialect.body(messages, max_tokens), feed)
                return
            except RefusedError as error:
                refusal = error.refusal
                adapted = None if feed.begun else dialect.adapted(refusal)
                if adapted is not None:
                    self._dialect = adapted
                    continue
                sent = "\n".join(map(message_text, messages))
                problem = explain_refusal(refusal, self._target, sent)
                again = refusal.worth_retrying
                retry_after = refusal.retry_after
            except (openai.OpenAIError, httpx2.HTTPError) as error:
                problem = explain_lost(error, self._target, self._timeout, feed.begun)
                again = worth_reconnecting(error)
            if again and not feed.begun and (retry_after or 0) > LONGEST_RETRY_AFTER:
                raise explain_wait(retry_after or 0, self._target) from None
            if feed.begun or not again or failed == RETRIES:
                raise problem from None
            await asyncio.sleep(_wait(failed, retry_after))
            failed += 1

    async def _once(self, fields: dict[str, Any], feed: Feed) -> None:
        import openai

        client = self._open()
        create = client.chat.completions.with_streaming_response.create
        try:
            async with create(model=self._target.model, stream=True, **fields) as response:
                await receive(response.http_response, self._target, feed)
        except openai.APIStatusError as error:
            raise RefusedError(self._refusal(error)) from None

    def _refusal(self, error: Any) -> Refusal:
        response = error.response
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = response.text
        return read_refusal(error.status_code, body, response.headers)

    def _unexpected(self, error: Exception) -> ModelError:
        log.error("Unexpected while a model was asked: %s", places_of(error))
        return explain_unexpected(error, self._target)

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            self._client = open_client(self._target, self._timeout)
        return self._client


def _model_names(payload: Any, target: Endpoint) -> list[str]:
    rows = payload
    if isinstance(payload, Mapping):
        rows = payload.get("data", payload.get("models"))
        if rows is None and payload.get("object") == "list":  # Ollama without any model
            rows = []
    if not isinstance(rows, list):
        raise not_an_api(target)
    names = [row.get("id") or row.get("name") for row in rows if isinstance(row, Mapping)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and usable(name)))


def _wait(failed: int, retry_after: float | None) -> float:
    if retry_after is not None:
        return retry_after
    return min(FIRST_WAIT * 2.0**failed, LONGEST_WAIT) * random.uniform(1 - JITTER, 1 + JITTER)
