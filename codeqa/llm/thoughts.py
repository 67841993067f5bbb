"""Separate a model's thoughts from its answer, where both come as one text."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from codeqa.llm.dialects import DIALECTS, any_of
from codeqa.llm.values import Reasoning

_TAIL = re.compile(r"`?(?:[<\[◁][^<\[◁]{0,40})?$")
"""End of a piece that is read with the next one: a mark in backquotes ends no thought."""
LONGEST_MARK = 160
"""Characters of a text that may still become a mark."""
_MARKS = {name: any_of(*alternatives) for name, alternatives in DIALECTS["marks"].items()}


class TextReader:
    """Reads a text that comes in pieces."""

    def __init__(self) -> None:
        self.begun = False  # whether text came; thoughts do not count
        self._end: re.Pattern[str] | None = None  # of the thought that is being read
        self._held = ""
        self._given: list[str] = []
        self._quotes_marks = False

    def take(self, piece: str) -> Iterator[str | Reasoning]:
        """Yield what a piece adds."""
        text, self._held = self._held + piece, ""
        while text:
            if self._end:
                text = yield from self._thought(text, self._end)
            elif self.begun:
                text = yield from self._answer(text)
            else:
                text = self._beginning(text.lstrip())

    def rest(self) -> str:
        """Return text that was held because it might have become a mark."""
        text = "" if self._end else _MARKS["trailing"].sub("", self._held)
        self.begun |= bool(text)
        return text

    def _beginning(self, text: str) -> str:
        """Return the text after a mark at its beginning."""
        if opened := _MARKS["opened"].match(text):
            channel = "channel" in opened[0].lower()
            closed = _MARKS["channel_closed" if channel else "closed"]
            self._end = any_of(f"</{opened[1]}>") if opened[1] else closed
            return text[opened.end() :]
        if led := _MARKS["leading"].match(text):
            return text[led.end() :]
        if not text or _may_be_mark(text):
            self._held = text
            return ""
        self.begun = True
        return text

    def _thought(self, text: str, end: re.Pattern[str]) -> Generator[Reasoning, None, str]:
        """Yield the thought in `text`; return what follows it."""
        marks = (one for one in end.finditer(text) if text[one.start() - 1 : one.start()] != "`")
        closed = next(marks, None)
        if closed:
            self._end = None
            thought, text = text[: closed.start()], text[closed.end() :]
        else:
            tail = _TAIL.search(text)
            at = tail.start() if tail else len(text)
            thought, self._held, text = text[:at], text[at:], ""
        if thought:
            yield Reasoning(thought)
        return text

    def _answer(self, text: str) -> Generator[str | Reasoning, None, str]:
        """Yield the answer in `text`; return what follows if it turns out to be a thought."""
        marks = _MARKS["closed"].finditer(text)
        if closed := next((one for one in marks if self._ends_thought(text, one.start())), None):
            if self._given or closed.start():
                yield Reasoning(text[: closed.start()], retracts=bool(self._given))
            self._given, self.begun = [], False
            return text[closed.end() :]
        at = max(map(text.rfind, "<[◁"))
        if at >= 0 and _may_be_mark(text[at:]):
            text, self._held = text[:at], text[at:]
        if text:
            self._given.append(text)
            yield text
        return ""

    def _ends_thought(self, text: str, at: int) -> bool:
        """Return whether a mark is the end of a thought that began without one.

        Some chat templates put that into the prompt. An answer may also quote the mark as code.
        """
        before = text[at - 1 : at] or (self._given[-1][-1] if self._given else "")
        if self._quotes_marks or before in ("`", "'", '"'):
            return False
        whole = "".join([*self._given, text[:at]])
        self._quotes_marks = whole.count("```") % 2 == 1 or bool(_MARKS["opened"].search(whole))
        return not self._quotes_marks


def _may_be_mark(text: str) -> bool:
    return len(text) <= LONGEST_MARK and bool(_MARKS["begun"].fullmatch(text))
