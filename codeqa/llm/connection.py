"""One endpoint seen from the event loop: what is asked of it, and what became of that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codeqa.errors import ModelError
from codeqa.llm.answer import Answer
from codeqa.llm.api_error import ApiError, read_api_error
from codeqa.llm.choice import is_model_name
from codeqa.llm.endpoint import Endpoint, Message, TokenUsage, message_text
from codeqa.llm.failures import explain_api_error, explain_end, explain_lost, failure
from codeqa.text.tokens import well_formed

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from codeqa.llm.sdk import EventStream

LIST_SECONDS = 10.0
LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop of themselves."""


@dataclass(frozen=True, slots=True)
class RequestFormat:
    """The fields of a request, as an endpoint has been found to want them."""

    stream_options: bool = True
    limit: str = "max_tokens"
    """Name of the field for the most tokens to generate."""
    parts: bool = True
    """Whether a message's content may be a list of parts."""

    def adapted(self, error: ApiError) -> RequestFormat | None:
        """The format that avoids what `error` names; None when there is none."""
        words = error.words.lower()
        if error.status not in (400, 422) or error.kind == "too long":
            return None
        if self.stream_options and "stream_options" in words:
            return replace(self, stream_options=False)
        if self.limit == "max_tokens" and "max_completion_tokens" in words:
            return replace(self, limit="max_completion_tokens")
        if self.parts and "string" in words and ("content" in words or "sequence" in words):
            return replace(self, parts=False)
        return None

    def body(
        self, model: str, messages: Sequence[Message], max_tokens: int | None
    ) -> dict[str, Any]:
        """The whole request, every text in it such that it can be encoded."""
        if not self.parts:
            messages = [{**message, "content": message_text(message)} for message in messages]
        sendable = json.loads(well_formed(json.dumps(messages, ensure_ascii=False)))
        fields: dict[str, Any] = {"model": model, "stream": True, "messages": sendable}
        if max_tokens is not None:
            fields[self.limit] = max_tokens
        if self.stream_options:
            fields["stream_options"] = {"include_usage": True}
        return fields


class Connection:
    """The endpoint's client and what was learnt of it; used on one event loop only."""

    def __init__(self, target: Endpoint, timeout: float) -> None:
        self._target = target
        self._timeout = timeout
        self._format = RequestFormat()
        self._client: AsyncOpenAI | None = None

    async def answer(
        self, messages: Sequence[Message], max_tokens: int | None
    ) -> AsyncGenerator[str | TokenUsage, None]:
        """Ask, and yield the answer's text and at last its usage.

        Whatever goes wrong is a ModelError that says so. Nothing is tried again after the first
        text.
        """
        answer, begun = Answer(), False
        sent = "\n".join(map(message_text, messages))
        try:
            async with await self._ask(messages, max_tokens) as stream:
                if "html" in stream.response.headers.get("content-type", ""):
                    raise failure("no chat api", self._target)
                async for event in stream:
                    text = answer.take(event)
                    if answer.error is not None:
                        raise explain_api_error(read_api_error(0, answer.error), self._target, sent)
                    if text:
                        begun = True
                        yield text
                    if answer.length > LONGEST_ANSWER:
                        why = f"it is longer than {LONGEST_ANSWER:,} characters"
                        raise failure("broke off", self._target, why=why)
        except ModelError:
            raise
        except Exception as error:
            if not answer.reason:  # else all that mattered had come
                raise self._explained(error, sent, begun) from None
        if rest := answer.close():
            begun = True
            yield rest
        if problem := explain_end(answer, self._target, begun):
            raise problem
        if usage := answer.usage():
            yield usage

    async def list_models(self) -> list[str]:
        """Names of the models, as the server gives them. Raises ModelError."""
        from codeqa.llm.sdk import EventStream

        try:
            async with asyncio.timeout(LIST_SECONDS):
                stream = await self._open().get(
                    "/models",
                    cast_to=object,
                    options={"headers": _listing_headers(self._target), "max_retries": 0},
                    stream=True,
                    stream_cls=EventStream,
                )
                async with stream:
                    return _model_names(await stream.whole(), self._target)
        except TimeoutError:
            raise failure("silent", self._target, timeout=LIST_SECONDS) from None
        except ModelError:
            raise
        except Exception as error:
            raise self._explained(error) from None

    async def open(self) -> None:
        """Make the client, and load what it loads late."""
        self._open()

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()

    async def _ask(self, messages: Sequence[Message], max_tokens: int | None) -> EventStream:
        """The response to a request in a format that the server accepts."""
        import openai

        from codeqa.llm.sdk import EventStream, provider_error

        used = self._format
        while True:
            try:
                return await self._open().post(
                    "/chat/completions",
                    cast_to=object,
                    body=used.body(self._target.model, messages, max_tokens),
                    stream=True,
                    stream_cls=EventStream,
                )
            except openai.APIStatusError as error:
                adapted = used.adapted(provider_error(error))
                if adapted is None:
                    raise
                self._format = used = adapted

    def _explained(self, error: Exception, sent: str = "", begun: bool = False) -> ModelError:
        """The sentence for whatever the SDK raised."""
        import openai

        from codeqa.llm.sdk import provider_error

        if isinstance(error, openai.APIStatusError):
            return explain_api_error(provider_error(error), self._target, sent)
        return explain_lost(error, self._target, self._timeout, begun)

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            from codeqa.llm.sdk import open_client

            self._client = open_client(self._target, self._timeout)
        return self._client


def _listing_headers(target: Endpoint) -> dict[str, str]:
    """Anthropic lists its models in its own API only, which takes the key in its own header."""
    if target.provider != "anthropic" or not target.key:
        return {}
    return {"x-api-key": target.key, "anthropic-version": "2023-06-01"}


def _model_names(payload: Any, target: Endpoint) -> list[str]:
    rows = payload
    if isinstance(payload, Mapping):
        rows = payload.get("data", payload.get("models"))
        if rows is None and payload.get("object") == "list":  # Ollama without any model
            rows = []
    if not isinstance(rows, list):
        raise failure("no chat api", target)
    names = [row.get("id") or row.get("name") for row in rows if isinstance(row, Mapping)]
    return list(dict.fromkeys(n for n in names if isinstance(n, str) and is_model_name(n)))
