"""One endpoint seen from the event loop: what is asked of it, and what became of that."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.errors import ModelError, ToolsRefusedError
from codeqa.llm.answer import Answer
from codeqa.llm.api_error import read_api_error
from codeqa.llm.choice import is_model_name
from codeqa.llm.endpoint import Endpoint, Message, Thought, TokenUsage, ToolCall, message_text
from codeqa.llm.failures import explain, explain_api_error, explain_end, failure
from codeqa.text.tokens import well_formed

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from codeqa.llm.sdk import EventStream

LIST_SECONDS = 10.0
LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop of themselves."""
_UNWANTED = {
    "stream_options": re.compile("stream_options"),
    "max_tokens": re.compile("max_completion_tokens"),
    "parts": re.compile(r"\A(?=.*string).*(?:content|sequence)", re.DOTALL),
}
"""What some servers do not take → how they say so."""
_NO_TOOLS = re.compile(r"\btools?\b|tool_choice|function[ _-]?call", re.IGNORECASE)


class Connection:
    """The endpoint's client and what was learnt of it; used on one event loop only."""

    def __init__(self, target: Endpoint, timeout: float) -> None:
        self._target = target
        self._timeout = timeout
        self._unwanted: set[str] = set()
        self._client: AsyncOpenAI | None = None

    async def answer(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> AsyncGenerator[str | Thought | ToolCall | TokenUsage, None]:
        """Ask, and yield the answer's thoughts and text, and at last the calls of `tools` and its
        usage.

        Whatever goes wrong is a ModelError that says so, ToolsRefusedError where a server takes no
        tools. Nothing is tried again after the first text.
        """
        answer, begun = Answer(), False
        sent = "\n".join(map(message_text, messages))
        try:
            async with await self._ask(messages, max_tokens, tools) as stream:
                if "html" in stream.response.headers.get("content-type", ""):
                    raise failure("no chat api", self._target)
                async for event in stream:
                    text = answer.take(event)
                    if answer.error is not None:
                        raise explain_api_error(read_api_error(0, answer.error), self._target, sent)
                    if answer.reasoning:
                        yield Thought(answer.reasoning)
                    if text:
                        begun = True
                        yield text
                    if answer.length > LONGEST_ANSWER:
                        why = f"it is longer than {LONGEST_ANSWER:,} characters"
                        raise failure("broke off", self._target, why=why)
        except Exception as error:
            if isinstance(error, ModelError) or not answer.reason:  # else all that mattered came
                raise explain(error, self._target, self._timeout, sent, begun) from None
        if rest := answer.close():
            begun = True
            yield rest
        calls = answer.calls() if tools else []
        if problem := explain_end(answer, self._target, begun or bool(calls)):
            raise problem
        for call in calls:
            yield call
        if usage := answer.usage():
            yield usage

    async def list_models(self) -> list[str]:
        """Names of the models, as the server gives them. Raises ModelError."""
        from codeqa.llm.sdk import EventStream

        headers: dict[str, str] = {}
        if self._target.provider == "anthropic" and self._target.key:
            # It lists its models in its own API only, which takes the key in its own header.
            headers = {"x-api-key": self._target.key, "anthropic-version": "2023-06-01"}
        try:
            async with asyncio.timeout(LIST_SECONDS):
                client = await self.open()
                stream = await client.get(
                    "/models",
                    cast_to=object,
                    options={"headers": headers, "max_retries": 0},
                    stream=True,
                    stream_cls=EventStream,
                )
                async with stream:
                    names = _model_names(await stream.whole())
        except Exception as error:
            raise explain(error, self._target, min(self._timeout, LIST_SECONDS)) from None
        if names is None:
            raise failure("no chat api", self._target)
        return names

    async def open(self) -> AsyncOpenAI:
        """The client, for which the SDK is loaded late."""
        if self._client is None:
            from openai import AsyncOpenAI

            from codeqa.llm.sdk import RETRIES, HttpClient

            self._client = AsyncOpenAI(
                api_key="set by HttpClient",
                base_url=self._target.base_url,
                max_retries=RETRIES,
                http_client=HttpClient(self._target, self._timeout),
            )
        return self._client

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()

    async def _ask(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        tools: Sequence[Mapping[str, Any]],
    ) -> EventStream:
        """The response to a request in a form that the server accepts."""
        client = await self.open()

        import openai

        from codeqa.llm.sdk import EventStream, provider_error

        while True:
            try:
                return await client.post(
                    "/chat/completions",
                    cast_to=object,
                    body=self._body(messages, max_tokens, tools),
                    stream=True,
                    stream_cls=EventStream,
                )
            except openai.APIStatusError as error:
                told = provider_error(error.response)
                if tools and told.kind == "refused" and _NO_TOOLS.search(told.words):
                    raise ToolsRefusedError("The model takes no tools.") from None
                named = {n for n, words in _UNWANTED.items() if words.search(told.words.lower())}
                new = sorted(named - self._unwanted)
                if told.kind != "refused" or not new:
                    raise
                self._unwanted.add(new[0])

    def _body(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        tools: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        if "parts" in self._unwanted:
            messages = [{**message, "content": message_text(message)} for message in messages]
        encodable = json.loads(well_formed(json.dumps(messages, ensure_ascii=False)))
        body = {"model": self._target.model, "stream": True, "messages": encodable}
        if tools:
            body["tools"] = list(tools)
        if max_tokens is not None:
            limit = "max_completion_tokens" if "max_tokens" in self._unwanted else "max_tokens"
            body[limit] = max_tokens
        if "stream_options" not in self._unwanted:
            body["stream_options"] = {"include_usage": True}
        return body


def _model_names(payload: Any) -> list[str] | None:
    """The usable names in a list of models, None for what is no such list."""
    rows = payload
    if isinstance(payload, Mapping):
        rows = payload.get("data", payload.get("models"))
        if rows is None and payload.get("object") == "list":  # Ollama without any model
            rows = []
    if not isinstance(rows, list):
        return None
    names = [row.get("id") or row.get("name") for row in rows if isinstance(row, Mapping)]
    return list(dict.fromkeys(n for n in names if isinstance(n, str) and is_model_name(n)))
