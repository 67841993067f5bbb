"""Read the values in the body of an answer, in whatever form a server sends them."""

from __future__ import annotations

import codecs
import io
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Any

from codeqa.text import json_value

LONGEST_VALUE = 10_000_000
"""Bytes of an event or a text: ten times the longest answer."""
UNREAD_CHARACTERS = 1_000
"""Characters kept of a text that is no JSON."""


class BodyReader:
    """Reads server-sent events, lines of JSON, one JSON text or plain text, wherever it is cut.

    Many servers, and proxies before them, leave out what the format of events asks for, such as
    the empty line between two, or send one JSON text instead.
    """

    def __init__(self) -> None:
        self.has_end = False  # whether `[DONE]` came
        self.begun = False  # whether a value came
        self.unread: Any = ""  # the beginning of what is no JSON: maybe why there is no answer
        self._kind = ""
        self._lines: list[str] = []

    async def values(self, pieces: AsyncIterable[bytes]) -> AsyncIterator[Any]:
        """Yield the values up to `[DONE]`; a line `error: …` is one too. Raises ValueError."""
        bytes_decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        decoder = io.IncrementalNewlineDecoder(bytes_decoder, translate=True)
        line, length = list[str](), 0
        async for piece in pieces:
            *ends, rest = decoder.decode(piece).split("\n")
            for end in ends:
                for value in self._values_of("".join([*line, end])):
                    yield value
                line, length = [], length if self._lines else 0
                if self.has_end:
                    return
            line.append(rest)
            length += len(piece)
            if length > LONGEST_VALUE:
                raise ValueError("no end")
        for last in ("".join([*line, decoder.decode(b"", final=True)]), ""):
            for value in self._values_of(last, final=True):
                yield value

    def _values_of(self, line: str, final: bool = False) -> Iterator[Any]:
        """Yield the values that are complete with this line."""
        name, colon, text = line.partition(":")
        text = text.removeprefix(" ")
        if not line.strip():
            yield from self._joined(final)
        elif colon and name == "event":
            self._kind = text
        elif colon and name == "error":
            yield {"error": json_value(text) or text}
        elif colon and (name in ("", "id", "retry") or text.startswith(":")):
            return  # a comment, also as data, or what only clients need that go on later
        elif colon and name == "data" and text.startswith("[DONE]"):
            self.has_end = True
        else:
            self._lines.append(text if colon and name == "data" else line)
            if len(self._lines) == 1 and isinstance(json_value(self._lines[0]), dict):
                yield from self._joined(final)

    def _joined(self, final: bool) -> Iterator[Any]:
        """Yield the value of the lines of an event. Raises ValueError if it should be one."""
        text, kind = "\n".join(self._lines).strip(), self._kind
        self._lines, self._kind = [], ""
        value = json_value(text)
        if kind == "error" and text and not (isinstance(value, dict) and value.get("error")):
            value = {"error": value or text}
        if isinstance(value, dict | list):
            self.begun = True
            yield value
        elif text.startswith(("{", "[[", "[{")) and not final:
            raise ValueError("no JSON")
        elif text not in ("", "null"):
            self.unread = f"{self.unread} {text}"[:UNREAD_CHARACTERS].strip()
