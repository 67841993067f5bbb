"""The event loop on which models are asked, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

_starting = threading.RLock()

T = TypeVar("T")


def in_background(task: Coroutine[Any, Any, T]) -> Future[T]:
    """Run `task` on the loop; cancelling the returned future cancels it there."""
    with _starting:
        loop = _loop()
    return asyncio.run_coroutine_threadsafe(task, loop)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Start the loop with the first request; it lives as long as the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="models", daemon=True).start()
    return loop


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`, or raise TimeoutError after `seconds` and let it run on."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # raised in the thread that waits
            done.set_exception(error)

    # A daemon: a request that hangs must not keep the program from ending.
    threading.Thread(target=run, daemon=True).start()
    return done.result(timeout=seconds)
