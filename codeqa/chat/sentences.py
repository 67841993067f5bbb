"""An answer in sentences, told as each is complete: lists, tables and code blocks included."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codeqa.chat.citations import next_fence
from codeqa.text.citation_format import CITATION

LONGEST = 2_000
"""Characters after which a sentence is taken as it is: its end is not looked for beyond."""

_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]*(?:\1(?!`)|$)")
_CITED, _CODE = "\x01", "\x02"
_MARKER = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+|>[ \t]*)(?=\S)")
_END = re.compile(
    rf"(?<!\be\.g)(?<!\bi\.e)[.!?][\"')*_]*(?:[ ]?{_CITED}++)*+\s+(?=[A-Z0-9\"'(*_{_CODE}])"
    r"|\n[ \t]*\n\s*(?=\S)"
    r"|\n(?=[ \t]*(?:(?:[-*+>]|\d{1,3}[.)])[ \t]|#{1,6} |\||`{3}|~{3}))"
)
_LINE = re.compile(r"[ \t]*(?:#{1,6} |\|)[^\n]*\n\s*(?=\S)")


class SentenceSplitter:
    """Cuts the text that is fed to it into sentences, which join to it again.

    A code block is one sentence, as is a heading, a row of a table, and the mark before an item of
    a list. How the text is cut into pieces changes nothing.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._fence = ""
        self._seen = 0
        """How much of the rest is whole lines of a code block."""

    def feed(self, text: str) -> Iterator[str]:
        """The sentences that `text` completes."""
        self._rest += text
        while end := self._end():
            yield self._take(end)

    def close(self) -> Iterator[str]:
        """What is left when the text ends."""
        if not self._fence and (marker := _MARKER.match(self._rest)):
            yield self._take(marker.end())
        if self._rest:
            yield self._take(len(self._rest))

    def _take(self, end: int) -> str:
        taken, self._rest, self._seen, self._fence = self._rest[:end], self._rest[end:], 0, ""
        return taken

    def _end(self) -> int:
        """Where the first sentence ends; 0 while that is not known."""
        near = self._rest[:LONGEST]
        if self._fence or next_fence("", near.split("\n", 1)[0])[1]:
            return self._end_of_block()
        for pattern in (_MARKER, _LINE):
            if match := pattern.match(near):
                return match.end()
        masked = _SPAN.sub(lambda span: _CODE * len(span[0]), near)
        masked = CITATION.sub(lambda cited: _CITED * len(cited[0]), masked)
        match = _END.search(masked.rstrip())  # no end is known before what follows the blanks
        return match.end() if match else len(near) if len(near) == LONGEST else 0

    def _end_of_block(self) -> int:
        while (end := self._rest.find("\n", self._seen)) >= 0:
            inside, self._fence = (
                self._fence,
                next_fence(self._fence, self._rest[self._seen : end])[0],
            )
            self._seen = end + 1
            if inside and not self._fence:
                return self._seen
        return 0


def sentences_of(text: str) -> list[str]:
    """All sentences of `text`, which join to it again."""
    splitter = SentenceSplitter()
    return [*splitter.feed(text), *splitter.close()]
