"""A model that any thread asks, by the OpenAI SDK.

The SDK's client, its reader of streams and its retries run on an event loop in a thread of its
own: only there a request that is silent, still connecting or waiting for another try can be ended
at once and from outside. Ours is what is sent along (nothing but what a request needs, to nobody
else), the forms of a request that some servers refuse, and what the events of an answer say.

The SDK is imported with the first request, which takes half a second.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from codeqa.errors import ContextLengthError, ModelError
from codeqa.hosts import keep_needed_headers, leads_here
from codeqa.llm.failures import explain, failure
from codeqa.llm.providers import ModelAddress, is_model_name, provider_named
from codeqa.text.tokens import estimate_tokens, well_formed

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

MESSAGE_TOKENS = 4
"""Tokens around each message: role and separators, as OpenAI documents them for its models."""
ASK_SECONDS = 0.05
"""How often `cancelled` is asked while nothing comes."""
TIMEOUT_SECONDS = 120.0
"""Silence after which a model counts as lost, unless the settings say otherwise."""
RETRIES = 2
CONNECT_SECONDS = 5.0
FETCH_SECONDS = 10.0
LONGEST_ANSWER = 1_000_000
"""Characters; the longest that models allow have half as many. Some never stop of themselves."""
OPENED, CLOSED = "<think>", "</think>"
OLLAMA_WINDOW = 4_096
"""Tokens that Ollama gives a model at least (docs/context-length of Ollama, November 2026)."""
WINDOW_SECONDS = 1.0
"""A server on this machine answers in milliseconds; nobody waits longer for a number."""
KNOWN_SECONDS = 30.0
"""How long a window holds: a model may be loaded anew with another one."""
CHARACTERS_AT_MOST = 6.0
"""No tokenizer in use makes fewer tokens of code than one for so many characters."""
COUNTED_AT_LEAST = 1_000
"""A server that leaves out what it still had from before reports less than this."""

_UNWANTED = {
    "stream_options": re.compile("stream_options"),
    "max_tokens": re.compile("max_completion_tokens"),
    "parts": re.compile(r"\A(?=.*string).*(?:content|sequence)", re.DOTALL),
}
"""What some servers do not take → how they say so."""
_NO_TOOLS = re.compile(r"\btools?\b|tool_choice|function[ _-]?call")
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)
_WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "context_window")
"""Fields of a listed model that say what it takes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """What an answer took, as the provider counts it; 0 where it does not say.

    `cut` is true when the answer ended at the token limit instead of where the model meant to.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants to be called, as it wrote it: `arguments` should be a JSON object."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of what a model says to itself before it answers, where its server sends that."""

    text: str


Message = Mapping[str, Any]
"""A chat message: `role`, and `content` as a text or a list of `{"type": "text", "text": …}`."""
Complete = Callable[[Sequence[Message], int], str]
"""Messages and the most tokens to generate → the text of the answer."""
Cancelled = Callable[[], bool]
"""Whether the caller no longer wants the answer; cheap, and asked often."""
Piece = str | Thought | ToolCall | TokenUsage


def never() -> bool:
    """The answer of a caller that does not cancel."""
    return False


def message_text(message: Message) -> str:
    """The text of a message, whose parts are joined by a blank line."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n\n".join(str(part.get("text", "")) for part in content)


def estimate_messages(messages: Iterable[Message]) -> int:
    """Estimated tokens of a whole request, at 3 characters a token (`codeqa.text.tokens`).

    No tokenizer is at hand offline, and none would be right for all providers; what the provider
    itself counted is in `TokenUsage`.
    """
    return sum(MESSAGE_TOKENS + estimate_tokens(message_text(message)) for message in messages)


def cut_off(prompt_tokens: int, characters: int) -> bool:
    """Whether a server that read `prompt_tokens` cannot have read `characters`: it is found out
    when it read less than about half."""
    return COUNTED_AT_LEAST <= prompt_tokens < characters / CHARACTERS_AT_MOST


class Answer:
    """Collects what the events of one answer say."""

    def __init__(self) -> None:
        self.reason = ""
        """The model's finish reason."""
        self.length = 0
        """Characters that came."""
        self.understood = False
        """Whether any event was one of a chat API."""
        self.calls: list[ToolCall] = []
        self.usage: TokenUsage | None = None
        self._thinks = self._begun = False
        self._held = ""

    def take(self, event: Any) -> Iterator[str | Thought]:
        """The text and the thoughts that an event adds; nothing for one of another shape."""
        match event:
            case {"usage": {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}}:
                self.usage = TokenUsage(prompt, completion)
        match event:
            case {"choices": [{**choice}, *_]}:
                self.understood = True
                self.reason = str(choice.get("finish_reason") or self.reason)
                # A server that does not stream sends the whole message.
                delta = choice.get("delta") or choice.get("message")
                if isinstance(delta, Mapping):
                    yield from self._delta(delta)
            case {"choices": []}:
                self.understood = True
        if self.reason == "length":
            self.usage = replace(self.usage or TokenUsage(), cut=True)

    def rest(self) -> str:
        """Text that was held back, for it began like a thought."""
        return "" if self._thinks else self._held

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[str | Thought]:
        for call in delta.get("tool_calls") or ():
            self._call(call)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        content = delta.get("content") or delta.get("refusal") or ""
        if reasoning and isinstance(reasoning, str):
            yield Thought(reasoning)
        for part in content if isinstance(content, list) else [{"text": content}]:
            match part:
                case {"thinking": [*thoughts]}:  # Mistral's reasoning models send such parts
                    yield from (Thought(one["text"]) for one in thoughts if "text" in one)
                case {"text": str(text)} if text:
                    self.length += len(text)
                    yield from self._text(text)

    def _text(self, piece: str) -> Iterator[str | Thought]:
        """Leading `<think>…</think>` taken apart from the text, however they are cut into pieces,
        and white space before the text left out."""
        held, self._held = self._held + piece, ""
        while held and not self._begun:
            if self._thinks:
                thought, closed, held = held.partition(CLOSED)
                if not closed:  # its last characters may begin the mark
                    at = max(0, len(thought) - len(CLOSED) + 1)
                    thought, self._held = thought[:at], thought[at:]
                if thought:
                    yield Thought(thought)
                self._thinks = not closed
                continue
            held = held.lstrip()
            if OPENED.startswith(held):
                self._held = held
                return
            self._thinks = held.startswith(OPENED)
            self._begun = not self._thinks
            held = held.removeprefix(OPENED)
        if held:
            yield held

    def _call(self, part: Any) -> None:
        """A call begins with its name; parts without one go on with the last."""
        match part:
            case {"function": {"name": str(name), **more}} if name:
                number = len(self.calls)
                self.calls.append(ToolCall(str(part.get("id") or f"call_{number}"), name, ""))
            case {"function": {**more}} if self.calls:
                pass
            case _:
                return
        arguments = more.get("arguments") or ""
        if not isinstance(arguments, str):  # Ollama's own way
            arguments = json.dumps(arguments)
        self.length += len(arguments)
        self.calls[-1] = replace(self.calls[-1], arguments=self.calls[-1].arguments + arguments)


class Model:
    """The model at an address; safe to share between threads.

    It keeps connections open for the next request until it is closed or nobody holds it any more.
    """

    def __init__(self, address: ModelAddress, timeout: float = TIMEOUT_SECONDS) -> None:
        self.address = address
        self._provider = provider_named(address.provider or "custom")
        self._timeout = timeout
        self._unwanted: set[str] = set()
        self._client: AsyncOpenAI | None = None
        self._window, self._window_known = 0, 0.0

    @property
    def name(self) -> str:
        """`provider/name`."""
        return self.address.name

    @property
    def host(self) -> str:
        """Host name that texts are sent to."""
        return self.address.host

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        cancelled: Cancelled = never,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Generator[Piece, None, None]:
        """Yield the answer's thoughts and text in pieces as they come, never empty, and at last its
        TokenUsage where the provider says it. With `tools`, in the form of OpenAI's API, behind its
        text also the calls that it wants.

        Once `cancelled()` is true, or the iterator is closed, the request is closed as well and
        the iterator ends. Raises ModelError, ContextLengthError when less might do. Nothing is
        tried again after the first text.
        """
        pieces = self._answer(list(messages), max_tokens, list(tools))
        try:
            while not cancelled():
                future = in_background(_next(pieces))
                while not wait((future,), ASK_SECONDS).done:
                    if cancelled():
                        future.cancel()
                        return
                if (piece := future.result()) is None:
                    return
                yield piece
        finally:
            in_background(_end(pieces))

    def complete(
        self, messages: Sequence[Message], max_tokens: int, cancelled: Cancelled = never
    ) -> str:
        """The whole answer; what there is of it once `cancelled()` is true.

        It is streamed as well: so a slow model shows that it lives. Raises ModelError.
        """
        pieces = self.stream(messages, max_tokens=max_tokens, cancelled=cancelled)
        return well_formed("".join(piece for piece in pieces if isinstance(piece, str)))

    def list_models(self) -> list[str]:
        """Names of the models, as the server gives them. Raises ModelError."""
        match self._fetch("/models"):
            case {"data": [*rows]} | [*rows]:
                names = [str(row.get("id", "")) for row in rows if isinstance(row, Mapping)]
                return list(dict.fromkeys(filter(is_model_name, names)))
            case {"object": "list"}:  # Ollama without any model
                return []
        raise failure("api", self.address)

    def window(self) -> int:
        """Tokens that it takes at once, question and answer together; 0 if unknown.

        Those of the large providers stand in their table. Servers on one's own machine differ
        widely, and some cut a longer prompt off without a word, so they are asked, at most every
        KNOWN_SECONDS. Raises nothing.
        """
        if self._provider.window and self.address.base_url == self._provider.base_url:
            return self._provider.window
        if not self._window_known or time.monotonic() - self._window_known > KNOWN_SECONDS:
            self._window = 0
            # Nobody fails for a number, whatever stands in its place.
            with suppress(Exception):
                self._window = max(0, int(self._asked_window()))
            self._window_known = time.monotonic()
        return self._window

    def prepare(self) -> Future[Any]:
        """Load the client meanwhile."""
        return in_background(self._open())

    def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            _close(self._client)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _fetch(
        self, path: str, body: Mapping[str, str] | None = None, seconds: float = FETCH_SECONDS
    ) -> Any:
        """The JSON at `path`, which may be a whole URL, below the address; with `body` by POST.
        Not waited for longer than `seconds`. Raises ModelError."""

        async def fetched() -> Any:
            options: Any = {"max_retries": 0}
            async with asyncio.timeout(min(self._timeout, seconds)):
                client = await self._open()
                if body is None:
                    return await client.get(path, cast_to=object, options=options)
                return await client.post(path, cast_to=object, body=body, options=options)

        try:
            return in_background(fetched()).result()
        except Exception as error:
            raise explain(error, self.address) from None

    def _asked_window(self) -> Any:
        """What the server says of the model; raises anything where that is not to be had.

        Ollama says what a loaded model was given, else what its file asks for; llama.cpp what one
        slot has; LM Studio, in a list of its own, what the model was loaded with (what it could
        take at most says nothing of that); vLLM and others in the usual list.
        """
        root, name = self.address.base_url.removesuffix("/v1"), self.address.model
        own_page = {"ollama": "/api/ps", "llamacpp": "/props", "lmstudio": "/api/v0/models"}
        path = own_page.get(self._provider.name)
        found = self._fetch(root + path if path else "/models", seconds=WINDOW_SECONDS)
        if self._provider.name == "llamacpp":
            return found["default_generation_settings"]["n_ctx"]
        rows = found.get("data") or found.get("models") or ()
        own = [row for row in rows if row.get("id", row.get("name")) in (name, f"{name}:latest")]
        if self._provider.name == "ollama" and not own:
            shown = self._fetch(f"{root}/api/show", {"model": name}, WINDOW_SECONDS)
            asked = _NUM_CTX.search(str(shown.get("parameters")))
            return asked[1] if asked else OLLAMA_WINDOW
        return next(row[field] for row in own for field in _WINDOWS if row.get(field))

    async def _open(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                api_key="set by the HTTP client",
                base_url=self.address.base_url,
                # A local server that was too slow would only begin the same work anew.
                max_retries=0 if self._provider.local else RETRIES,
                http_client=_http_client(self.address, self._timeout),
            )
            weakref.finalize(self, _close, self._client).atexit = False
        return self._client

    async def _answer(
        self, messages: list[Message], max_tokens: int | None, tools: list[Mapping[str, Any]]
    ) -> AsyncGenerator[Piece, None]:
        answer, begun = Answer(), False
        try:
            async with asyncio.timeout(self._timeout):  # with what the SDK tries again
                asked = await self._ask(messages, max_tokens, tools)
            async with asked as stream:
                kind = stream.response.headers.get("content-type", "")
                async for event in _whole(stream) if "json" in kind else stream:
                    for piece in answer.take(event):
                        begun = begun or isinstance(piece, str)
                        yield piece
                    if answer.length > LONGEST_ANSWER:
                        why = f": it is longer than {LONGEST_ANSWER:,} characters"
                        raise failure("broke off", self.address, why)
        except Exception as error:
            if isinstance(error, ModelError) or not answer.reason:  # else all that mattered came
                sent = "\n".join(map(message_text, messages))
                raise explain(error, self.address, sent, begun) from None
        if not answer.understood:
            raise failure("api", self.address)
        if rest := answer.rest():
            yield rest
        elif not begun and not (tools and answer.calls):
            why = f" without content ({answer.reason or 'it only reasoned'})"
            raise failure("broke off", self.address, why)
        for call in answer.calls if tools else ():
            yield call
        if answer.usage:
            yield answer.usage

    async def _ask(
        self, messages: list[Message], max_tokens: int | None, tools: list[Mapping[str, Any]]
    ) -> AsyncStream[Any]:
        """The response to a request in a form that the server accepts."""
        client = await self._open()

        import openai

        while True:
            if "parts" in self._unwanted:
                messages = [{**message, "content": message_text(message)} for message in messages]
            encodable = json.loads(well_formed(json.dumps(messages, ensure_ascii=False)))
            body = {"model": self.address.model, "stream": True, "messages": encodable}
            if tools:
                body["tools"] = tools
            if max_tokens is not None:
                limit = "max_completion_tokens" if "max_tokens" in self._unwanted else "max_tokens"
                body[limit] = max_tokens
            if "stream_options" not in self._unwanted:
                body["stream_options"] = {"include_usage": True}
            try:
                return await client.post(
                    "/chat/completions",
                    cast_to=object,
                    body=body,
                    stream=True,
                    stream_cls=openai.AsyncStream[Any],
                )
            except openai.APIStatusError as error:
                too_long = isinstance(explain(error, self.address), ContextLengthError)
                if too_long or error.status_code not in (400, 404, 422):
                    raise
                said = str(error.body).lower()
                if tools and _NO_TOOLS.search(said):
                    hint = "Choose one that does, or another effort than `deep`."
                    raise ModelError("The model takes no tools.", hint) from None
                named = {name for name, words in _UNWANTED.items() if words.search(said)}
                if not (new := sorted(named - self._unwanted)):
                    raise
                self._unwanted.add(new[0])


def _http_client(target: ModelAddress, timeout: float) -> Any:
    """What sends to the address what a request needs, and nothing to anybody else."""
    import openai

    async def bare(request: Any) -> None:
        listing = target.provider == "anthropic" and request.method == "GET"
        keep_needed_headers(request.headers, "" if listing else target.key)
        if listing:  # in its own API only, which takes the key in its own header
            own = {"x-api-key": target.key, "anthropic-version": "2023-06-01"}
            request.headers.update(own)

    return openai.DefaultAsyncHttpxClient(
        event_hooks={"request": [bare]},
        timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        follow_redirects=False,  # another host would get texts that were meant for this one
        # A proxy for the network has no way to a server on this machine.
        trust_env=not leads_here(target.base_url),
        verify=target.base_url.startswith("https:"),
    )


_starting = threading.RLock()


def in_background(task: Coroutine[Any, Any, T]) -> Future[T]:
    """Run `task` on the loop; cancelling what is returned cancels it there."""
    with _starting:
        loop = _loop()
    return asyncio.run_coroutine_threadsafe(task, loop)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Started with the first request, and there until the process ends."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
    return loop


def _close(client: AsyncOpenAI) -> None:
    in_background(client.close())


async def _next(pieces: AsyncGenerator[T, None]) -> T | None:
    return await anext(pieces, None)


async def _end(pieces: AsyncGenerator[Any, None]) -> None:
    # An error says that it is ending already, for its request was cancelled; nobody reads it.
    await pieces.aclose()


async def _whole(stream: AsyncStream[Any]) -> AsyncIterator[Any]:
    """The reply of a server that does not stream, as the only event."""
    yield json.loads(await stream.response.aread())
