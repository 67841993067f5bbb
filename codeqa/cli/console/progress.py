"""How far a long piece of work is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self, TextIO

from codeqa.cli.console.figures import human_seconds
from codeqa.types import Progress

SECONDS_BETWEEN_LINES = 3.0
"""Pause between two plain progress lines of one phase, so that a log stays readable."""


class ProgressDisplay:
    """Shows `Progress` values: a bar on a terminal, a plain line now and then elsewhere.

    Use as a context manager and call it with each value; a new phase starts a new bar.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._bar: Any = None
        self._phase = ""
        self._started = self._last_line = 0.0
        self._last: Progress | None = None
        self._printed: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self.close()
            self._phase, self._started = progress.phase, time.monotonic()
            self._last_line = 0.0
        self._last = progress
        if self._terminal:
            self._draw(progress)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._print_line(progress)

    def close(self) -> None:
        """Finish the phase on display; its last state stays visible."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        elif self._last is not None and self._last != self._printed:
            self._print_line(self._last)
        self._phase, self._last = "", None

    def _draw(self, progress: Progress) -> None:
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=progress.phase,
                total=progress.total or None,
                file=self._stream,
                dynamic_ncols=True,
                mininterval=0.1,
            )
        if progress.total:
            self._bar.total = progress.total
        self._bar.set_postfix_str(progress.detail[-40:], refresh=False)
        self._bar.update(progress.done - self._bar.n)

    def _print_line(self, progress: Progress) -> None:
        seconds = time.monotonic() - self._started
        print(describe_progress(progress, seconds), file=self._stream, flush=True)
        self._last_line, self._printed = time.monotonic(), progress


def describe_progress(progress: Progress, seconds: float) -> str:
    """`parsing: 200 of 1,000 (20 %), 100/s, 8 s left` after `seconds` of this phase."""
    if not progress.done and not progress.total:
        return progress.phase
    parts = [f"{progress.done:,}"]
    if progress.total:
        share = 100 * progress.done // progress.total
        parts = [f"{progress.done:,} of {progress.total:,} ({share} %)"]
    rate = progress.done / seconds if seconds > 0.05 else 0.0
    if rate:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s")
        if progress.total > progress.done:
            parts.append(f"{human_seconds((progress.total - progress.done) / rate)} left")
    return f"{progress.phase}: {', '.join(parts)}"
