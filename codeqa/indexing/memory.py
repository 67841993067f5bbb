"""The highest memory use of this process and its workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def peak_memory_meter() -> Callable[[], int]:
    """A function to call now and then; it returns the highest sum of bytes seen so far.

    The peaks of this process and of its present children are added, so the sum is an upper
    bound; 0 where there is no `/proc`.
    """
    highest = 0

    def measure() -> int:
        nonlocal highest
        try:
            tasks = list(Path("/proc/self/task").iterdir())
            children = {child for one in tasks for child in (one / "children").read_text().split()}
        except OSError:
            return highest
        highest = max(highest, sum(map(_high_water, ("self", *children))))
        return highest

    return measure


def _high_water(process: str) -> int:
    try:
        lines = Path("/proc", process, "status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
