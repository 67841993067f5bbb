"""What is being waited for, on a terminal: one line that goes away again."""

from __future__ import annotations

import sys

from codeqa.cli.console.text import visible


class Waiting:
    """Shows one changing line on stderr when somebody watches both streams; else nothing."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty() and sys.stdout.isatty()
        self._shown = False

    def show(self, text: str) -> None:
        """Replace the line by `text`."""
        if self._watched:
            sys.stderr.write(f"\r\x1b[K{visible(text)}")
            sys.stderr.flush()
            self._shown = True

    def close(self) -> None:
        """Take the line away, before anything else is printed."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
