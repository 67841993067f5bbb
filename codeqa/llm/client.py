"""A model that any thread asks, by the OpenAI SDK.

The SDK's client and its reader of streams run on an event loop in a thread of its own: only there
a request that is silent, still connecting or waiting for another try can be ended at once and from
outside. It is imported with the first request, which takes half a second.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from codeqa.errors import CodeQAError, ContextLengthError, ModelError, RateLimitError
from codeqa.hosts import keep_needed_headers, leads_here
from codeqa.llm.answer import ENDED_EARLY, LONGEST_ANSWER, Answer
from codeqa.llm.failures import explain, failure
from codeqa.llm.loop import in_background
from codeqa.llm.providers import ModelAddress, is_model_name, provider_named
from codeqa.llm.values import (
    Cancelled,
    Message,
    Piece,
    Waiting,
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

ASK_SECONDS = 0.05  # how often `cancelled` is asked while nothing comes
PAUSES = (0.5, 2.0)
"""Seconds before each further try of a request that failed; where the server asks for another time,
that is kept to."""
LONGEST_WAIT = 60.0  # seconds; whoever is to wait longer is told so at once
CONNECT_SECONDS = 5.0
FETCH_SECONDS = 10.0
LOCAL_SECONDS = 2.0  # a server on this machine answers in milliseconds
KNOWN_SECONDS = 30.0  # of a window: a model may be loaded anew with another one
DONE, TIMED_OUT, STOPPED, EMPTY = "done", "timed out", "stopped", "empty"
"""Outcomes of a small call; the others are `failed: …` and `skipped: …`."""

_WINDOWS = ("max_model_len", "loaded_context_length", "context_length", "context_window")
"""Fields of a listed model that say what it takes."""
_REFUSES_FORM = re.compile("stream_options|max_completion_tokens|content.*string|sequence.*string")

log = logging.getLogger(__name__)


class Model:
    """The model at an address, with open connections; safe to share between threads."""

    sleep = staticmethod(asyncio.sleep)
    """Waits between two tries."""

    def __init__(self, address: ModelAddress, timeout: float = 120.0) -> None:
        self.address = address
        self.name, self.host = address.name, address.host
        self._provider = provider_named(address.provider or "custom")
        self._timeout = timeout
        self._plain = False
        self._client: AsyncOpenAI | None = None
        self._window, self._window_known = 0, -KNOWN_SECONDS
        self._limited_until = 0.0  # of `time.monotonic()`: a refusal asked to wait so long

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        cancelled: Cancelled = never,
        tools: Sequence[Mapping[str, Any]] = (),
        retries: int = len(PAUSES),
    ) -> Generator[Piece, None, None]:
        """Yield the answer's thoughts and text in pieces as they come, never empty, then the calls
        of `tools` (in the form of OpenAI's API), and its TokenUsage where the provider says it.

        A request that failed before its answer, in a way that may pass, is made again up to
        `retries` times; Waiting tells of it. What a refusal of an earlier request asked to wait is
        waited for as well, or it is raised again where there are no `retries`. Once `cancelled()`
        is true, or the iterator is closed, the request is closed as well and the iterator ends.
        Raises ModelError, ContextLengthError when less might do.
        """
        came: SimpleQueue[Piece | None] = SimpleQueue()

        async def take() -> None:
            try:
                async for piece in self._answer([*messages], max_tokens, [*tools], 1 + retries):
                    came.put(piece)
            finally:
                came.put(None)

        if cancelled():
            return
        asked = in_background(take())
        provider, end, began = self._provider.name, "stopped", time.monotonic()
        try:
            while not cancelled():
                try:
                    piece = came.get(timeout=ASK_SECONDS)
                except Empty:
                    continue
                if piece is None:
                    asked.result()  # raises what ended it
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
            asked.cancel()
            measure("model_call_seconds", time.monotonic() - began, provider=provider, end=end)

    def complete(self, messages: Sequence[Message], max_tokens: int, **options: Any) -> str:
        """The text of the whole answer, or what there is of it once it is cancelled; `options` are
        those of `stream`."""
        pieces = self.stream(messages, max_tokens=max_tokens, **options)
        return well_formed("".join(piece for piece in pieces if isinstance(piece, str)))

    def list_models(self) -> list[str]:
        """Names of the models, as the server gives them. Raises ModelError."""
        seconds = LOCAL_SECONDS if leads_here(self.address.base_url) else FETCH_SECONDS
        match self._fetch(f"{self.address.base_url}/models", seconds):
            case {"data": [*rows]}:
                names = [str(row.get("id", "")) for row in rows if isinstance(row, Mapping)]
                return list(dict.fromkeys(filter(is_model_name, names)))
            case {"object": "list"}:  # Ollama without any model
                return []
        raise failure("api", self.address)

    def window(self) -> int:
        """Tokens that it takes at once, question and answer together; 0 if unknown. Raises nothing.

        Servers are asked, at most every KNOWN_SECONDS: some cut a longer prompt off without a word.
        """
        if self.address.base_url == self._provider.base_url and not self._provider.local:
            return self._provider.window
        if time.monotonic() - self._window_known > KNOWN_SECONDS:
            self._window = 0
            with suppress(Exception):  # nobody fails for a number, whatever stands in its place
                self._window = max(0, int(self._asked_window()))
            self._window_known = time.monotonic()
        return self._window

    def prepare(self) -> Future[Any]:
        """Load the client meanwhile."""
        return in_background(self._open())

    def __enter__(self) -> Model:
        return self

    def close(self, *error: object) -> None:
        if self._client is not None:
            in_background(self._client.close())

    __exit__ = close

    def _fetch(self, url: str, seconds: float) -> Any:
        """The JSON at `url`, not waited for longer than `seconds`. Raises ModelError."""

        async def fetched() -> Any:
            client = await self._open()
            async with asyncio.timeout(min(self._timeout, seconds)):
                return await client.get(url, cast_to=object)

        try:
            return in_background(fetched()).result()
        except Exception as error:
            raise explain(error, self.address) from None

    def _asked_window(self) -> Any:
        """What the server says of the model; raises anything where that is not to be had."""
        name, base, page = self.address.model, self.address.base_url, self._provider.window_page
        url = base.removesuffix("/v1") + page if page else f"{base}/models"
        found = self._fetch(url, LOCAL_SECONDS)
        if "default_generation_settings" in found:  # llama.cpp: of one slot
            return found["default_generation_settings"]["n_ctx"]
        for row in found.get("data") or found.get("models") or ():
            if row.get("id", row.get("name")) in (name, f"{name}:latest"):
                return next(row[field] for field in _WINDOWS if row.get(field))
        return self._provider.window if self._provider.local else 0

    async def _open(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = client = AsyncOpenAI(
                api_key="set by the HTTP client",
                base_url=self.address.base_url,
                max_retries=0,  # it would tell nobody that it waits, and for how long
                http_client=_http_client(self.address, self._timeout),
            )
            weakref.finalize(self, lambda: in_background(client.close())).atexit = False
        return self._client

    async def _answer(
        self, messages: list[Message], most: int | None, tools: list[Mapping[str, Any]], tries: int
    ) -> AsyncGenerator[Piece, None]:
        answer, pauses = Answer(), [*PAUSES[: tries - 1]]
        try:
            await self._open()  # loading the client is no part of the silence
            pause = max(0.0, self._limited_until - time.monotonic())
            told = failure("rate", self.address, seconds=pause)
            if pause and not pauses:
                raise told
            while True:
                asks = isinstance(told, RateLimitError) and told.seconds
                for left in range(whole := math.ceil(pause), -1, -1) if pause else ():
                    does = f"asks to wait {left} s" if asks else "failed; it is asked again"
                    yield Waiting(left, f"{self.host} {does}", told, left == whole)
                    await self.sleep(pause / whole if left else 0)
                try:
                    async with asyncio.timeout(self._timeout):
                        asked = await self._ask(messages, most, tools)
                    break
                except Exception as error:
                    told = explain(error, self.address)
                    pause = self._pause(error, told, next(iter(pauses), 0.0))
                    if not pause or not pauses:
                        raise
                    del pauses[0]
            async with asked as stream:  # one of `_stream_kind`
                if "event-stream" not in stream.response.headers.get("content-type", ""):
                    raise failure("api", self.address)
                async for event in stream:
                    for piece in answer.take(event):
                        yield piece
                    if answer.length > LONGEST_ANSWER:
                        why = f": it is longer than {LONGEST_ANSWER:,} characters"
                        raise failure("broke off", self.address, why)
                    if tools and answer.enough:
                        break
        except Exception as error:
            if isinstance(error, ModelError) or not answer.reason:  # else all that mattered came
                raise explain(error, self.address, answer.begun) from None
        if rest := answer.rest():
            yield rest
        elif not answer.begun and not (tools and answer.calls):
            why = f" without content ({answer.reason or 'it only reasoned'})"
            raise failure("broke off", self.address, why)
        if why := ENDED_EARLY.get(answer.reason, ""):
            raise failure("broke off", self.address, why)
        if not (answer.reason or stream.told_its_end or (tools and answer.enough)):
            raise failure("broke off", self.address, ": it ended in the middle")
        for call in answer.calls if tools else ():
            yield call
        if answer.usage:
            yield answer.usage

    def _pause(self, error: Exception, told: ModelError, usual: float) -> float:
        """Seconds after which what ended in `error`, or `told` in words, is asked again: as many as
        the server says, which is noted, else the `usual`; 0 where it is not, or that would not
        help, or is too long to wait."""
        import openai

        status = getattr(error, "status_code", 0)
        seconds = told.seconds if isinstance(told, RateLimitError) else 0.0
        passes = status in (408, 429) or status >= 500 or type(error) is openai.APIConnectionError
        too_long = isinstance(told, ContextLengthError) or seconds > LONGEST_WAIT
        # A local server that was too slow would only begin the same work anew.
        if self._provider.local or not passes or too_long:
            return 0.0
        self._limited_until = time.monotonic() + seconds
        return seconds or usual

    async def _ask(
        self, messages: list[Message], max_tokens: int | None, tools: list[Mapping[str, Any]]
    ) -> Any:
        """The response to a request, a `_stream_kind`. Where a server refuses its form, it is made
        once more in one that every server takes: without a limit and options, each message one
        text."""
        client = await self._open()

        import openai

        def post(more: Mapping[str, Any]) -> Any:
            body = {"model": self.address.model, "messages": sent, "stream": True, **more}
            body |= {"tools": tools} if tools else {}
            path, kind = "/chat/completions", _stream_kind()
            return client.post(path, cast_to=object, body=body, stream=True, stream_cls=kind)

        sent = json.loads(well_formed(json.dumps(messages, ensure_ascii=False)))
        if not self._plain:
            options: dict[str, Any] = {"stream_options": {"include_usage": True}}
            if max_tokens is not None:
                # The name that OpenAI's newer models insist on; not all others know it.
                new = self.address.base_url == provider_named("openai").base_url
                options["max_completion_tokens" if new else "max_tokens"] = max_tokens
            try:
                return await post(options)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                too_long = isinstance(explain(error, self.address), ContextLengthError)
                if too_long or not _REFUSES_FORM.search(str(error.body)):
                    raise
        sent = [{**message, "content": message_text(message)} for message in sent]
        found = await post({})
        self._plain = True
        return found


@cache
def _stream_kind() -> Any:
    """Return the SDK's reader of events, with a note of whether the server told their end."""
    import openai

    class EndedStream(openai.AsyncStream[Any]):  # type: ignore[misc]
        told_its_end = False

        async def _iter_events(self) -> AsyncGenerator[Any, None]:
            async for event in super()._iter_events():
                self.told_its_end |= event.data.startswith("[DONE]")
                yield event

    return EndedStream


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


def generate_bounded(
    name: str,
    model: Model,
    messages: Callable[[], Sequence[Message]],
    most_tokens: int,
    seconds: float,
    cancelled: Cancelled,
    usable: Callable[[str], object] = words,
) -> Generator[StageTime, None, StageTime]:
    """Ask `model` for a short text: yields the stage as it begins and as it ends, and returns
    that. A text that `usable` says no to (by default one without words) counts as none. What has
    come after `seconds`, or once `cancelled()` is true, is used. Raises nothing: the outcome says
    what failed."""
    begun = StageTime(name, model=model.name, host=model.host)
    yield begun
    wait([model.prepare()])  # loading the client is no part of the time
    until = (started := time.monotonic()) + seconds
    sent: Sequence[Message] = ()
    pieces: list[Piece] = []
    text, outcome = "", DONE
    try:
        sent = messages()
        stop: Cancelled = lambda: time.monotonic() >= until or cancelled()  # noqa: E731
        pieces.extend(model.stream(sent, max_tokens=most_tokens, cancelled=stop, retries=0))
        text = clean_text("".join(piece for piece in pieces if isinstance(piece, str)))
        outcome = STOPPED if cancelled() else TIMED_OUT if stop() else DONE
        if outcome == DONE and not usable(text):
            text, outcome = "", EMPTY
    except CodeQAError as error:
        outcome = f"failed: {error.message}"
    took = (time.monotonic() - started) * 1000
    usage = pieces[-1] if pieces and isinstance(pieces[-1], TokenUsage) else NO_USAGE
    if not usage.prompt_tokens and (pieces or not outcome.startswith("failed")):
        said = "".join(one if isinstance(one, str) else getattr(one, "text", "") for one in pieces)
        usage = TokenUsage(estimate_messages(sent), estimate_tokens(said), estimated=True)
    ended = replace(begun, milliseconds=took, outcome=outcome, text=text, usage=usage)
    yield ended
    return ended
