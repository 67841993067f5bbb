"""Text of files and models as a terminal may show it."""

from __future__ import annotations

import re

_FENCE = re.compile(r"[> ]*(`{3,})")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

_SHOWN = {
    # Controls as their pictures; what turns the direction of text, or has no picture, as "�".
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    **dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
    0x7F: 0x2421,
    ord("\r"): None,
}


def visible(text: str) -> str:
    """`text` without what a terminal would obey: files, names and models may hold anything."""
    return text.translate(_SHOWN)


class PlainText:
    """Markdown as a person reads it on a terminal: without backslashes and control characters.

    Text may come in pieces. The backslashes of fenced code stay.
    """

    def __init__(self) -> None:
        self._fence = ""
        self._at_line_start = True
        self._held = ""

    def feed(self, text: str) -> str:
        """What to show of `text`; a backslash at its end waits for what it belongs to."""
        text, self._held = self._held + visible(text), ""
        if not self._fence and len(text) - len(text.rstrip("\\")) & 1:
            text, self._held = text[:-1], "\\"
        return "".join(map(self._line, text.splitlines(keepends=True)))

    def _line(self, line: str) -> str:
        if self._at_line_start and (marks := _FENCE.match(line)):
            run = marks[1]
            if not self._fence:
                self._fence = run
            elif run.startswith(self._fence):
                self._fence = ""
        elif not self._fence:
            line = _ESCAPE.sub(r"\1", line)
        self._at_line_start = line.endswith("\n")
        return line
