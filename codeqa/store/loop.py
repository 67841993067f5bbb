"""One event loop in a thread of its own, on which LanceDB's calls run side by side.

LanceDB does the work in threads of its own: asking on one loop for what a search needs costs
about half of the processor time of LanceDB's blocking calls, one thread each.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""Process → its loop: after a fork the thread of the parent's is not there."""


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`; raises what it raises. Not to be called on the loop itself."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _loop() -> asyncio.AbstractEventLoop:
    found = _loops.get(os.getpid())
    if found is None:
        with _lock:
            found = _loops.get(os.getpid())
            if found is None:
                found = asyncio.new_event_loop()
                threading.Thread(target=found.run_forever, name="tables", daemon=True).start()
                _loops[os.getpid()] = found
    return found
