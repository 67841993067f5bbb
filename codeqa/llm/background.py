"""An event loop on a thread of its own, and the way from there to the thread that reads.

Requests live on the loop because only there a request that is silent, still connecting or
waiting for another try can be ended at once and from outside.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from codeqa.errors import ModelError

T = TypeVar("T")

PIECES_AHEAD = 256
"""Pieces that wait to be read; then the server is made to wait, so memory stays bounded."""
UNREAD_SECONDS = 600.0
"""After this long without a reader the request is closed: somebody went away without saying."""
CLOSE_SECONDS = 2.0


class Background:
    """A loop that starts with its first task and ends with `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether there is a loop on which something can still happen."""
        return self._thread is not None and self._thread.is_alive()

    def submit(self, task: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run `task` on the loop; cancelling what is returned cancels it there."""
        with self._lock:
            if self._closed:
                task.close()
                raise closed()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(task, self._loop)

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Cancel what runs, run `last`, end the thread. Closing twice is harmless."""
        with self._lock:
            loop, thread, was_closed = self._loop, self._thread, self._closed
            self._closed = True
        if loop is None or was_closed:
            if last is not None:
                last.close()
            return
        end = _end(loop, last)
        try:
            asyncio.run_coroutine_threadsafe(end, loop)
        except RuntimeError:  # the loop is closed: nothing is left to be ended
            for task in (end, last):
                if task is not None:
                    task.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_SECONDS)


@dataclass(frozen=True, slots=True)
class End:
    """The last thing in a feed: the answer is complete, or `error` says why not."""

    error: BaseException | None = None


class Feed:
    """Pieces on their way from the loop to one reader in another thread."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(PIECES_AHEAD)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.begun = False
        """Whether a piece has been handed over; nothing is tried again after that."""

    async def put(self, piece: Any) -> None:
        """Hand over a piece; waits while the reader is far behind."""
        self._loop = asyncio.get_running_loop()
        self.begun = True
        if self._room.locked():
            try:
                async with asyncio.timeout(UNREAD_SECONDS):
                    await self._room.acquire()
            except TimeoutError:
                raise ModelError(
                    f"Nobody read the answer for {UNREAD_SECONDS / 60:g} minutes, so the "
                    "request was closed.",
                    "Ask again.",
                ) from None
        else:
            await self._room.acquire()
        self._queue.put(piece)

    def end(self, error: BaseException | None = None) -> None:
        """Say that nothing more will come; what is said first holds."""
        self._queue.put(End(error))

    def get(self, seconds: float) -> Any:
        """The next piece or End; None when there is none within `seconds`."""
        try:
            piece = self._queue.get(timeout=seconds)
        except queue.Empty:
            return None
        if not isinstance(piece, End) and self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._room.release)
            except RuntimeError:  # the loop has been closed: what is here is all
                self._loop = None
        return piece


def closed() -> ModelError:
    """The error of requests to a model that was let go of, as when another one is chosen."""
    return ModelError("The connection to the model was closed.", "Ask again.")


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end(loop: asyncio.AbstractEventLoop, last: Coroutine[Any, Any, None] | None) -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await asyncio.gather(*others, return_exceptions=True)
            if last is not None:
                await last
    except Exception:
        pass
    finally:
        loop.stop()
