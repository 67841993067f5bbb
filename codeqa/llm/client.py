"""A model to be asked from any thread.

Its requests run on an event loop in a thread of its own: only there a request that is silent,
still connecting or waiting for another try can be ended at once and from outside.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from codeqa.errors import ModelError
from codeqa.llm.connection import Connection
from codeqa.llm.endpoint import Cancelled, Endpoint, Message, Thought, TokenUsage, ToolCall, never
from codeqa.text.tokens import well_formed

T = TypeVar("T")

ASK_SECONDS = 0.05
"""How often `cancelled` is asked while nothing comes."""
TIMEOUT_SECONDS = 120.0
"""Silence after which a model counts as lost, unless the settings say otherwise."""

_starting = threading.Lock()


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


class Model:
    """The model of an endpoint; safe to share between threads.

    It keeps connections open for the next request, until it is closed or nobody holds it any
    more.
    """

    def __init__(self, endpoint: Endpoint, timeout: float = TIMEOUT_SECONDS) -> None:
        self.endpoint = endpoint
        self._connection = Connection(endpoint, timeout)
        self._lock = threading.Lock()
        self._running: set[Future[Any]] = set()
        self._closed = False
        self._finish = weakref.finalize(self, _close, self._connection)
        self._finish.atexit = False

    @property
    def name(self) -> str:
        """`provider/name`."""
        return self.endpoint.name

    @property
    def host(self) -> str:
        """Host name that texts are sent to."""
        return self.endpoint.host

    def stream(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        cancelled: Cancelled = never,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Generator[str | Thought | ToolCall | TokenUsage, None, None]:
        """Yield the answer's thoughts and text in pieces as they come, never empty, and at last its
        TokenUsage where the provider says it. With `tools`, in the form of OpenAI's API, behind its
        text also the calls that it wants; ToolsRefusedError where it takes none.

        Once `cancelled()` is true, or the iterator is closed, the request is closed as well and
        the iterator ends. Raises ModelError, ContextLengthError when less might do.
        """
        pieces = self._connection.answer(list(messages), max_tokens, tools)
        try:
            while not cancelled():
                piece = self._wait(_next(pieces), cancelled)
                if piece is None:
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
        """Names of the models of this endpoint's server. Raises ModelError."""
        return self._wait(self._connection.list_models()) or []

    def prepare(self) -> Future[Any]:
        """Load the client meanwhile: the first request need not wait for it."""
        return self._start(self._connection.open())

    def close(self) -> None:
        """End what runs and close all connections. Closing twice is harmless."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for future in running:
            future.cancel()
        self._finish()

    def _start(self, task: Coroutine[Any, Any, T]) -> Future[T]:
        with self._lock:
            if self._closed:
                task.close()
                raise _closed()
            future = in_background(task)
            self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def _wait(self, task: Coroutine[Any, Any, T], cancelled: Cancelled = never) -> T | None:
        """What `task` returns; None when it was `cancelled`. Raises what it raises."""
        future = self._start(task)
        while not wait((future,), ASK_SECONDS).done:
            if cancelled():
                future.cancel()
                return None
        try:
            return future.result()
        except CancelledError:
            raise _closed() from None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


async def _next(pieces: AsyncGenerator[T, None]) -> T | None:
    return await anext(pieces, None)


async def _end(pieces: AsyncGenerator[Any, None]) -> None:
    with suppress(RuntimeError):  # it is ending already: its request was cancelled
        await pieces.aclose()


def _close(connection: Connection) -> None:
    in_background(connection.close())


def _closed() -> ModelError:
    """The error of requests to a model that was let go of, as when another one is chosen."""
    return ModelError("The connection to the model was closed.", "Ask again.")
