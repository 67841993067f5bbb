"""The highest memory use of this process and its workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc")


def peak_memory_meter() -> Callable[[], int]:
    """A function to call now and then; it returns the highest sum of bytes seen so far.

    On Linux the peaks of this process and of its present children are added, so the sum
    is an upper bound; elsewhere this process and the largest ended child count; 0 where
    the system does not say.
    """
    highest = 0

    def measure() -> int:
        nonlocal highest
        highest = max(highest, _linux() if sys.platform == "linux" else _posix())
        return highest

    return measure


def _linux() -> int:
    try:
        tasks = list(Path("/proc/self/task").iterdir())
        children = {
            int(child) for task in tasks for child in (task / "children").read_text().split()
        }
    except OSError:
        return _posix()
    return _high_water("self") + sum(_high_water(str(child)) for child in children)


def _high_water(process: str) -> int:
    try:
        for line in (_STATUS / process / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _posix() -> int:
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return unit * (own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
