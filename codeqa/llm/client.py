"""Ask a language model from any thread, by the OpenAI SDK.

The SDK runs on an event loop in a thread of its own: only there can a request that is silent,
connecting or waiting be ended at once from outside. Importing it takes half a second, so the first
request does.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import weakref
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from codeqa.errors import CodeQAError, ContextLengthError, ModelError, RateLimitError
from codeqa.hosts import keep_needed_headers, leads_here
from codeqa.llm.answer import ENDED_EARLY, LONGEST_ANSWER, AnswerReader
from codeqa.llm.body import BodyReader
from codeqa.llm.failures import (
    explain,
    failure,
    refusal_in,
    refused_form,
    server_words,
    unusable_setting,
)
from codeqa.llm.loop import in_background
from codeqa.llm.providers import PROVIDERS, ModelAddress, is_model_name, provider_at, provider_named
from codeqa.llm.values import (
    Cancelled,
    Message,
    Piece,
    RetryWait,
    answer_text,
    clean_text,
    estimate_messages,
    message_text,
    never,
)
from codeqa.metrics import measure
from codeqa.text.tokens import estimate_tokens, well_formed, words
from codeqa.types import NO_USAGE, StageTime, TokenUsage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

LOOK_SECONDS = 0.05  # how often `cancelled` is called while nothing comes
PAUSES = (0.5, 2.0)
"""Seconds before each further try of a request that failed, unless the server names a time."""
LONGEST_WAIT = 60.0  # seconds; a longer wait fails at once
CONNECT_SECONDS = 5.0
REST_SECONDS = 0.2  # for what follows the end of an answer
FETCH_SECONDS = 10.0
LOCAL_SECONDS = 2.0  # a server on this machine answers in milliseconds
TOOLS_SECONDS = 3_600.0  # before tools are offered again to a server that seemed to refuse them
WINDOW_SECONDS = 30.0  # before a window is asked for again: a model may be loaded with another one
DONE, TIMED_OUT, STOPPED, EMPTY = "done", "timed out", "stopped", "empty"
"""Outcomes of a small call; the others are `failed: …` and `skipped: …`."""

_WINDOW_FIELDS = (
    "max_model_len", "loaded_context_length", "context_length", "context_window", "n_ctx",
)  # fmt: skip
"""Fields of a listed model, or of its `meta`, that hold its window."""

Put = Callable[[Piece], None]
Clock = Callable[[], float]


class Model:
    """The model at an address, with open connections; safe to share between threads."""

    sleep = staticmethod(asyncio.sleep)
    """Waits between two tries."""

    def __init__(
        self, address: ModelAddress, timeout: float = 120.0, clock: Clock = time.monotonic
    ) -> None:
        self.address, self._clock = address, clock
        self.name, self.host = address.name, address.host
        self._provider = provider_named(address.provider or "custom")
        self._timeout = timeout
        self._refused: frozenset[str] = frozenset()  # forms of requests, as in `refused_form`
        self._client: AsyncOpenAI | None = None
        self._window, self._window_asked = 0, -WINDOW_SECONDS
        self._tools_refused_until = -math.inf
        self._drops_tools = False  # without a word, since its template has no place for them
        self._limited_until = 0.0  # of `time.monotonic()`: a refusal asked to wait until then

    @property
    def refuses_tools(self) -> bool:
        """True if its server drops tools, or seemed to refuse them less than TOOLS_SECONDS ago."""
        return self._drops_tools or self._clock() < self._tools_refused_until

    def note_refused_tools(self) -> None:
        """Offer no tools for TOOLS_SECONDS; a second note meanwhile does not prolong that."""
        if not self.refuses_tools:
            self._tools_refused_until = self._clock() + TOOLS_SECONDS

    # One loop between the request in its thread and whoever may stop listening.
    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        cancelled: Cancelled = never,
        tools: Sequence[Mapping[str, Any]] = (),
        retries: int = len(PAUSES),
    ) -> Generator[Piece, None, None]:
        """Yield the answer's thoughts and text as they come, then calls of `tools`, then its usage.

        `tools` are in the form of OpenAI's API. A request that failed before its answer, in a way
        that may pass, is made again up to `retries` times, with a RetryWait before each. The first
        one waits as long as an earlier refusal asked for; without `retries` that is raised again.
        `cancelled()` or closing the iterator ends the request. Raises ModelError.
        """
        pieces: SimpleQueue[Piece | None] = SimpleQueue()
        body = self._body(messages, max_tokens, tools)

        async def read() -> None:
            try:
                await self._answer(body, retries, pieces.put)
            finally:
                pieces.put(None)

        if cancelled():
            return
        request = in_background(read())
        provider, end, began = self._provider.name, "stopped", time.monotonic()
        try:
            while not cancelled():
                try:
                    piece = pieces.get(timeout=LOOK_SECONDS)
                except Empty:
                    continue
                if piece is None:
                    request.result()  # raises what ended it
                    end = "done"
                    return
                if isinstance(piece, TokenUsage):
                    measure("model_tokens", piece.prompt_tokens, provider=provider, kind="prompt")
                    measure("model_tokens", piece.completion_tokens, provider=provider, kind="text")
                yield piece
        except ModelError:
            end = "error"
            raise
        finally:
            request.cancel()
            measure("model_call_seconds", time.monotonic() - began, provider=provider, end=end)

    def complete(self, messages: Sequence[Message], max_tokens: int, **options: Any) -> str:
        """Return the text of the answer as far as it came; `options` are those of `stream`."""
        return well_formed(answer_text(self.stream(messages, max_tokens=max_tokens, **options)))

    def list_models(self) -> list[str]:
        """Return the names of the models that the server lists. Raises ModelError."""
        seconds = LOCAL_SECONDS if leads_here(self.address.base_url) else FETCH_SECONDS
        match self._fetch(f"{self.address.base_url}/models", seconds):
            case {"data": [*rows]}:
                names = [str(row.get("id", "")) for row in rows if isinstance(row, Mapping)]
                return list(dict.fromkeys(filter(is_model_name, names)))
            case {"object": "list"}:  # Ollama without any model
                return []
        raise failure("api", self.address)

    def window(self) -> int:
        """Return the tokens that question and answer may have together; 0 if unknown.

        Asks the server at most every WINDOW_SECONDS: some cut a longer prompt silently.
        """
        if self.address.base_url == self._provider.base_url and not self._provider.local:
            return self._provider.window
        if time.monotonic() - self._window_asked > WINDOW_SECONDS:
            self._window = 0
            with suppress(Exception):  # whatever a server sends, no answer fails for this number
                self._window = max(0, int(self._fetch_window()))
            self._window_asked = time.monotonic()
        return self._window

    def prepare(self) -> Future[Any]:
        """Load the client in the background."""
        return in_background(self._open())

    def __enter__(self) -> Model:
        return self

    def close(self, *error: object) -> None:
        if self._client is not None:
            in_background(self._client.close())

    __exit__ = close

    def _fetch(self, url: str, seconds: float) -> Any:
        """Return the JSON at `url`; wait at most `seconds`. Raises ModelError."""

        async def fetch() -> Any:
            client = await self._open()
            async with asyncio.timeout(min(self._timeout, seconds)):
                return await client.get(url, cast_to=object)

        try:
            return in_background(fetch()).result()
        except Exception as error:
            raise explain(error, self.address) from None

    def _fetch_window(self) -> Any:
        """Return the window that the server gives. Raises anything for an unexpected reply."""
        name, base, page = self.address.model, self.address.base_url, self._provider.window_page
        page = page.format(quote(name, safe=""))
        url = base.removesuffix("/v1") + page if page else f"{base}/models"
        reply = self._fetch(url, LOCAL_SECONDS)
        if "default_generation_settings" in reply:  # llama.cpp: of one slot
            abilities = reply.get("chat_template_caps") or {}
            self._drops_tools = abilities.get("supports_tool_calls") is False
            return reply["default_generation_settings"]["n_ctx"]
        for row in reply.get("data") or reply.get("models") or ():
            if row.get("id", row.get("name")) in (name, f"{name}:latest"):
                row = (row.get("meta") or {}) | row
                return next(row[field] for field in _WINDOW_FIELDS if row.get(field))
        return self._provider.window if self._provider.local else 0

    async def _open(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI

            try:
                http_client = _http_client(self.address, self._timeout)
            except (ImportError, OSError, ValueError) as error:
                raise unusable_setting(error, self.address) from None
            self._client = client = AsyncOpenAI(
                api_key="set by the HTTP client",
                base_url=self.address.base_url,
                max_retries=0,  # the SDK's own retries are not reported
                http_client=http_client,
            )
            weakref.finalize(self, lambda: in_background(client.close())).atexit = False
        return self._client

    def _body(
        self,
        messages: Sequence[Message],
        max_tokens: int | None,
        tools: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        text = well_formed(json.dumps(list(messages), ensure_ascii=False))
        body = {"model": self.address.model, "messages": json.loads(text), "stream": True,
                "stream_options": {"include_usage": True}}  # fmt: skip
        if tools:
            body["tools"] = list(tools)
        if max_tokens is not None:
            body[provider_at(self.address.base_url).limit_field] = max_tokens
        return body

    async def _answer(self, body: dict[str, Any], retries: int, put: Put) -> None:
        """Make the request and `put` its pieces."""
        refused = self._refused
        while True:
            answer, reader = AnswerReader("tools" in body), BodyReader()
            try:
                stream = await self._begin(_in_other_form(body, refused), retries, put)
                async with stream:
                    await self._read(stream, reader, answer, put)
                break
            except Exception as error:
                if not answer.length and (form := refused_form(error, refused)):
                    refused |= {form}
                    continue
                # Once the model has given its reason to finish, all that mattered has come.
                if isinstance(error, ModelError) or not answer.reason:
                    raise explain(error, self.address, answer.begun) from None
                break
        self._refused = refused
        if rest := answer.rest():
            put(rest)
        self._check_end(answer, reader)
        for call in answer.calls:
            put(call)
        if answer.usage:
            put(answer.usage)

    async def _begin(self, body: dict[str, Any], retries: int, put: Put) -> Any:
        """Return the response; `put` a RetryWait each second before a further try."""
        client = await self._open()  # loading the client does not count as silence

        from openai import AsyncStream

        post = partial(client.post, "/chat/completions", cast_to=object, stream=True,
                       stream_cls=AsyncStream[object])  # fmt: skip
        pauses = iter(PAUSES[:retries])
        pause = max(0.0, self._limited_until - time.monotonic())
        failed = failure("rate", self.address, seconds=pause)
        if pause and not retries:
            raise failed
        while True:
            if pause:
                asks = isinstance(failed, RateLimitError) and failed.seconds
                whole = math.ceil(pause)
                for left in range(whole, -1, -1):
                    text = f"asks to wait {left} s" if asks else "failed; it is asked again"
                    put(RetryWait(left, f"{self.host} {text}", failed, left == whole))
                    await self.sleep(pause / whole if left else 0)
            try:
                async with asyncio.timeout(self._timeout):
                    return await post(body=body)
            except Exception as error:
                failed = explain(error, self.address)
                usual = next(pauses, 0.0)
                pause = self._pause(error, failed, usual)
                if not pause or not usual:
                    raise

    async def _read(self, stream: Any, reader: BodyReader, answer: AnswerReader, put: Put) -> None:
        """Collect the events in `answer`; `put` its text and thoughts."""
        pieces = stream.response.aiter_bytes()
        async for value in reader.values(pieces):
            if error := refusal_in(value):
                raise error
            if not answer.came and server_words(value, self.address.key):
                reader.unread = value
            for piece in answer.take(value):
                put(piece)
            if answer.length > LONGEST_ANSWER:
                why = f": it is longer than {LONGEST_ANSWER:,} characters"
                raise failure("broke off", self.address, why)
            if answer.enough:
                return
        if not answer.came and (error := refusal_in({"error": reader.unread})):
            raise error
        with suppress(Exception):  # a connection is used again only if all was read
            async with asyncio.timeout(REST_SECONDS):
                async for _ in pieces:
                    pass

    def _check_end(self, answer: AnswerReader, reader: BodyReader) -> None:
        """Raise ModelError for an answer that is empty or not whole."""
        why = ENDED_EARLY.get(answer.reason, "")
        if not (answer.begun or answer.calls):
            if answer.usage and answer.usage.cut and not answer.thought:
                raise failure("too long", self.address)  # no room was left for the answer
            if reader.begun and not answer.came:
                raise failure("api", self.address)
            reason = answer.reason or ("it only reasoned" if answer.thought else "")
            raise failure("empty", self.address, why or (f" ({reason})" if reason else ""))
        if not (answer.reason or reader.has_end or answer.enough):
            why = ": it ended in the middle"
        if why:
            raise failure("broke off", self.address, why)

    def _pause(self, error: Exception, explained: ModelError, usual: float) -> float:
        """Return the seconds before the next try, 0 for none: what the server asks or `usual`."""
        import openai

        status = getattr(error, "status_code", 0)
        seconds = explained.seconds if isinstance(explained, RateLimitError) else 0.0
        passes = status in (408, 429) or status >= 500 or type(error) is openai.APIConnectionError
        too_long = isinstance(explained, ContextLengthError) or seconds > LONGEST_WAIT
        # A local server that was too slow would only begin the same work anew.
        is_local = self._provider.local and not seconds
        if is_local or not passes or too_long or refused_form(error, self._refused):
            return 0.0
        self._limited_until = time.monotonic() + seconds
        return seconds or usual


def _in_other_form(body: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """Return a request without the forms that its server has `refused`."""
    left_out = {"stream_options"} if refused else set()
    left_out |= {"stream"} & set(refused)
    messages = body["messages"]
    if "plain" in refused:
        left_out |= {provider.limit_field for provider in PROVIDERS}
    if {"plain", "system"} & set(refused):
        messages = [{**one, "content": message_text(one)} for one in messages]
    if "system" in refused:
        messages = _alternating(messages)
    form = {name: value for name, value in body.items() if name not in left_out}
    return {**form, "messages": messages}


def _alternating(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of user and model in turn: that of the system begins the user's first."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        role = "user" if message["role"] == "system" else message["role"]
        if joined and joined[-1]["role"] == role == "user":
            joined[-1]["content"] += f"\n\n{message['content']}"
        else:
            joined.append({**message, "role": role})
    return joined


def _http_client(target: ModelAddress, timeout: float) -> Any:
    """Return a client that sends only the headers that a request needs, and to no other host."""
    import openai
    from httpx2 import create_ssl_context

    list_headers = provider_named(target.provider or "custom").list_headers

    async def reduce_headers(request: Any) -> None:
        headers = list_headers if request.method == "GET" else {}
        keep_needed_headers(request.headers, "" if headers else target.key)
        for name, value in headers.items():
            request.headers[name] = value.replace("{key}", target.key)

    return openai.DefaultAsyncHttpxClient(
        event_hooks={"request": [reduce_headers]},
        timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        follow_redirects=False,  # another host would get texts that were meant for this one
        # A proxy for the network has no way to a server on this machine.
        trust_env=not leads_here(target.base_url),
        verify=create_ssl_context() if target.base_url.startswith("https:") else False,
    )


def generate_bounded(
    name: str,
    model: Model,
    messages: Callable[[], Sequence[Message]],
    most_tokens: int,
    seconds: float,
    cancelled: Cancelled,
    usable: Callable[[str], object] = words,
) -> Generator[StageTime, None, StageTime]:
    """Ask `model` for a short text; yield the stage as it begins and ends, and return its end.

    After `seconds`, or once `cancelled()` is true, the text so far is used. One that is not
    `usable` (by default one without words) counts as none. Raises nothing: a failure is the
    outcome of the stage.
    """
    stage = StageTime(name, model=model.name, host=model.host)
    yield stage
    wait([model.prepare()])  # loading the client does not count
    started = time.monotonic()
    until = started + seconds
    sent: Sequence[Message] = ()
    pieces: list[Piece] = []
    text, outcome = "", DONE
    try:
        sent = messages()
        stop: Cancelled = lambda: time.monotonic() >= until or cancelled()  # noqa: E731
        pieces.extend(model.stream(sent, max_tokens=most_tokens, cancelled=stop, retries=0))
        text = clean_text(answer_text(pieces))
        outcome = STOPPED if cancelled() else TIMED_OUT if stop() else DONE
        if outcome == DONE and not usable(text):
            text, outcome = "", EMPTY
    except CodeQAError as error:
        outcome = f"failed: {error.message}"
    took = (time.monotonic() - started) * 1000
    usage = pieces[-1] if pieces and isinstance(pieces[-1], TokenUsage) else NO_USAGE
    if not usage.prompt_tokens and (pieces or not outcome.startswith("failed")):
        answer = "".join(p if isinstance(p, str) else getattr(p, "text", "") for p in pieces)
        usage = TokenUsage(estimate_messages(sent), estimate_tokens(answer), estimated=True)
    stage = replace(stage, milliseconds=took, outcome=outcome, text=text, usage=usage)
    yield stage
    return stage
