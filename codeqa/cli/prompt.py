"""Reads lines from a person, with completion and a history, or from a pipe."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Self

import click

PASTED_WITHIN = 0.05
"""Seconds within which the next line of a pasted text is there; nobody types that fast."""

Completer = Callable[[str, str], list[str]]
"""The line so far and its last word → what that word may become."""


class Prompt:
    """A context manager that gives the terminal its line editing and takes it away again.

    `earlier` are lines for the history, the latest first; they are read in time for the first
    line. Where Python has no readline, lines are read plainly.
    """

    def __init__(self, text: str, complete: Completer, earlier: Iterable[str]) -> None:
        self.watched = sys.stdin.isatty()
        self._text, self._complete, self._earlier = text, complete, earlier
        self._offered: list[str] = []

    def __enter__(self) -> Self:
        if self.watched:
            try:
                import readline
            except ImportError:
                return self
            readline.clear_history()
            for line in reversed(list(self._earlier)):
                readline.add_history(" ".join(line.split()))
            readline.set_completer_delims(" \t\n")
            readline.set_completer(self._completion)
            libedit = "libedit" in (readline.__doc__ or "")
            readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")
            if not libedit:
                readline.parse_and_bind("set enable-bracketed-paste on")
        return self

    def __exit__(self, *_: object) -> None:
        if self.watched and (readline := sys.modules.get("readline")):
            readline.set_completer(None)

    def lines(self) -> Iterator[str]:
        """What is typed or piped, blank lines left out; ends at its end, and with Ctrl-C."""
        while True:
            try:
                line = input(self._text) if self.watched else sys.stdin.readline()
                while self.watched and line and _more_is_there():
                    line += "\n" + input()
            except (EOFError, KeyboardInterrupt):
                click.echo(err=True)
                return
            if not line and not self.watched:
                return
            if line.strip():
                yield line.strip()

    def _completion(self, word: str, number: int) -> str | None:
        """As readline asks: the completion of that number, None after the last."""
        import readline

        if number == 0:
            try:
                self._offered = self._complete(readline.get_line_buffer(), word)
            except Exception:  # readline would swallow it and say nothing, too
                self._offered = []
        return self._offered[number] if number < len(self._offered) else None


def _more_is_there() -> bool:
    """Whether another line was pasted with the last one."""
    return bool(select.select([sys.stdin], [], [], PASTED_WITHIN)[0])
