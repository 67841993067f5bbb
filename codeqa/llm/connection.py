"""One endpoint seen from the event loop, by the OpenAI SDK: its client, its reader of streams, its
retries. Ours is what is sent along (nothing but what a request needs, to nobody else), how much is
read, and the forms of a request that some servers refuse.

The SDK is imported with the first request, which takes half a second.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codeqa.errors import ContextLengthError, ModelError, ToolsRefusedError
from codeqa.hosts import leads_here
from codeqa.llm.answer import Answer
from codeqa.llm.choice import is_model_name
from codeqa.llm.endpoint import Endpoint, Message, Thought, TokenUsage, ToolCall, message_text
from codeqa.llm.failures import explain, failure, seconds_to_wait, words_of
from codeqa.text.tokens import well_formed

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

CONNECT_SECONDS = 10.0
RETRIES = 2
LONGEST_WAIT = 20.0
"""Seconds that a provider may ask to wait for; nobody watches a page that is silent for longer."""
LARGEST_REPLY, LARGEST_REFUSAL = 64_000_000, 1_000_000
"""Bytes; beyond these no server says anything of use."""
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
                kind = stream.response.headers.get("content-type", "")
                if "html" in kind:
                    raise failure("no chat api", self._target)
                whole = "json" in kind and "event-stream" not in kind
                async for event in _only(stream) if whole else stream:
                    text = answer.take(event)
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
        if not answer.understood:
            raise failure("no chat api", self._target)
        if not begun and not calls:
            why = f" ({answer.reason or 'it only reasoned'})" if answer.reasoned else ""
            raise failure("empty", self._target, why=why)
        if not answer.reason:
            raise failure("broke off", self._target, why="the connection was closed")
        for call in calls:
            yield call
        if usage := answer.usage():
            yield usage

    async def list_models(self) -> list[str]:
        """Names of the models, as the server gives them. Raises ModelError."""
        headers: dict[str, str] = {}
        if self._target.provider == "anthropic" and self._target.key:
            # It lists its models in its own API only, which takes the key in its own header.
            headers = {"x-api-key": self._target.key, "anthropic-version": "2023-06-01"}
        try:
            async with asyncio.timeout(LIST_SECONDS):
                client = await self.open()
                options: Any = {"headers": headers, "max_retries": 0}
                names = _model_names(await client.get("/models", cast_to=object, options=options))
        except Exception as error:
            raise explain(error, self._target, min(self._timeout, LIST_SECONDS)) from None
        if names is None:
            raise failure("no chat api", self._target)
        return names

    async def open(self) -> AsyncOpenAI:
        """The client, for which the SDK is loaded late."""
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                api_key="set by the HTTP client",
                base_url=self._target.base_url,
                max_retries=RETRIES,
                http_client=http_client(self._target, self._timeout),
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
    ) -> AsyncStream[Any]:
        """The response to a request in a form that the server accepts."""
        client = await self.open()

        import openai

        while True:
            try:
                return await client.post(
                    "/chat/completions",
                    cast_to=object,
                    body=self._body(messages, max_tokens, tools),
                    stream=True,
                    stream_cls=openai.AsyncStream[Any],
                )
            except openai.APIStatusError as error:
                words, refused = words_of(error.body), error.status_code in (400, 404, 422)
                named = {n for n, said in _UNWANTED.items() if said.search(words.lower())}
                new = sorted(named - self._unwanted)
                too_long = isinstance(explain(error, self._target, 0), ContextLengthError)
                if refused and not too_long and tools and _NO_TOOLS.search(words):
                    raise ToolsRefusedError("The model takes no tools.") from None
                if not refused or too_long or not new:
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


def http_client(target: Endpoint, timeout: float) -> Any:
    """What sends to the endpoint what a request needs, and nothing to anybody else."""
    import httpx2
    import openai

    # The SDK would add the operating system, its version and what OPENAI_CUSTOM_HEADERS,
    # OPENAI_ORG_ID and the like hold; Anthropic's list of models needs the last two.
    needed = {"accept", "connection", "content-length", "content-type", "host"}
    needed |= {"x-api-key", "anthropic-version"}

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any, limit: int) -> None:
            self._stream, self._left = stream, limit

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for portion in self._stream:
                self._left -= len(portion)
                if self._left < 0:
                    raise openai.OpenAIError  # which the SDK does not ask for again
                yield portion

        async def aclose(self) -> None:
            await self._stream.aclose()

    class Client(openai.DefaultAsyncHttpxClient):
        async def send(
            self, request: httpx2.Request, *, stream: bool = False, **options: Any
        ) -> httpx2.Response:
            for name in set(request.headers) - needed:
                del request.headers[name]
            request.headers["user-agent"] = "codeqa"
            request.headers["accept-encoding"] = "identity"
            if target.key and "x-api-key" not in request.headers:
                request.headers["authorization"] = f"Bearer {target.key}"
            try:
                response = await super().send(request, stream=True, **options)
            except (httpx2.TimeoutException, httpx2.ConnectError) as error:  # not worth another try
                raise openai.APIConnectionError(request=request) from error
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()  # nobody asked for that: a few bytes may stand for millions
                raise openai.APIConnectionError(request=request)
            limit = LARGEST_REPLY if response.is_success else LARGEST_REFUSAL
            response.stream = Bounded(response.stream, limit)
            if seconds_to_wait(response.headers) > LONGEST_WAIT:
                response.headers["x-should-retry"] = "false"
            if not stream:
                await response.aread()
            return response

    here = leads_here(target.base_url)
    return Client(
        timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        follow_redirects=False,  # another host would get texts that were meant for this one
        trust_env=not here,  # a proxy for the network has no way to a server on this machine
        verify=target.base_url.startswith("https:"),
    )


async def _only(stream: AsyncStream[Any]) -> AsyncIterator[Any]:
    """The reply of a server that does not stream, as the only event."""
    yield json.loads(await stream.response.aread())


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
