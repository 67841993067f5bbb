"""From the bytes of a streamed answer to its text.

Read by hand rather than by the client's own decoder: that one ends the answer at the first event
that is no JSON, and splits lines at characters (U+2028, U+0085) that may stand inside of one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from codeqa.llm.endpoint import TokenUsage

LONGEST_EVENT = 4_000_000
"""Bytes of one event; a sane one has hundreds, and a stream without line ends has no limit."""
LONGEST_LEAD = 1_000
"""Characters of white space in front of a `<think>`."""
OPENED, CLOSED = "<think>", "</think>"


class EventTooLongError(Exception):
    """A stream that never ends its line."""


class Events:
    """Server-sent events out of bytes that arrive in any portions."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The data of each event that `data` completes. Raises EventTooLongError."""
        begin = max(0, len(self._rest) - 1)
        self._rest += data
        while True:
            end = _line_end(self._rest, begin)
            if end is None:
                break
            line, after = bytes(self._rest[: end[0]]), end[1]
            del self._rest[:after]
            begin = 0
            yield from self._line(line)
        if len(self._rest) + self._size > LONGEST_EVENT:
            raise EventTooLongError

    def close(self) -> Iterator[bytes]:
        """What is left when the stream ends without an empty line."""
        if self._rest:
            line = bytes(self._rest).rstrip(b"\r")
            self._rest.clear()
            yield from self._line(line)
        yield from self._line(b"")

    def _line(self, line: bytes) -> Iterator[bytes]:
        if not line:
            if self._data:
                yield b"\n".join(self._data)
            self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name == b"data":
            value = value.removeprefix(b" ")
            self._data.append(value)
            self._size += len(value) + 1  # empty ones, too, take room


def _line_end(buffer: bytearray, begin: int) -> tuple[int, int] | None:
    """End of the first line and begin of the next; None while that is not decided."""
    feed, back = buffer.find(b"\n", begin), buffer.find(b"\r", begin)
    if back >= 0 and (feed < 0 or back < feed):
        if back + 1 == len(buffer):  # a line feed may follow in the next portion
            return None
        return back, back + (2 if buffer[back + 1 : back + 2] == b"\n" else 1)
    return None if feed < 0 else (feed, feed + 1)


class Thinking:
    """Leaves out a leading `<think>…</think>`, however it is cut into pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._state = "before"

    @property
    def thought(self) -> bool:
        """Whether there was any."""
        return self._state in ("inside", "after", "passed")

    @property
    def inside(self) -> bool:
        """Whether it has begun and not ended."""
        return self._state == "inside"

    def feed(self, piece: str) -> str:
        """The part of what has come that belongs to the answer."""
        if self._state in ("plain", "passed"):
            return piece
        self._held += piece
        if self._state == "before":
            begin = self._held.lstrip()
            if begin.startswith(OPENED):
                self._state, self._held = "inside", begin.removeprefix(OPENED)
            elif not OPENED.startswith(begin) or len(self._held) > LONGEST_LEAD:
                self._state = "plain"
                return self._release()
        if self._state == "inside":
            _, closed, after = self._held.partition(CLOSED)
            if closed:
                self._state, self._held = "after", after
            else:
                self._held = self._held[-len(CLOSED) + 1 :]
        if self._state == "after":
            self._held = self._held.lstrip()
            if self._held:
                self._state = "passed"
                return self._release()
        return ""

    def close(self) -> str:
        """What was held back and turned out to be text."""
        held = self._release()
        return held if self._state == "before" and held.strip() else ""

    def _release(self) -> str:
        held, self._held = self._held, ""
        return held


class Answer:
    """Collects what the events of one answer say."""

    def __init__(self) -> None:
        self.reason = ""
        self.error: Any = None
        self.reasoned = False
        self.length = 0
        """Characters of the answer, what is held back included."""
        self.understood = 0
        """Events that were read; 0 at the end means that this was no chat API."""
        self._tokens: tuple[int, int] | None = None
        self._thinking = Thinking()

    @property
    def thought(self) -> bool:
        """Whether the model reasoned aloud."""
        return self.reasoned or self._thinking.thought

    def usage(self) -> TokenUsage | None:
        """What the answer took; None when there is nothing to tell."""
        cut = self.reason == "length"
        if self._tokens is None and not cut:
            return None
        return TokenUsage(*(self._tokens or (0, 0)), cut=cut)

    def take(self, data: bytes) -> str:
        """The text that an event adds; '' for none, and for events that cannot be read."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):  # or brackets within brackets, thousands deep
            return ""
        if not isinstance(event, Mapping):
            return ""
        if event.get("error"):
            self.understood += 1
            self.error = event
            return ""
        text = self._take_choice(event)
        self._take_usage(event)
        if not text:
            return ""
        if not self._thinking.inside:
            self.length += len(text)
        return self._thinking.feed(text)

    def close(self) -> str:
        """Text that was held back until the end."""
        return self._thinking.close()

    def _take_choice(self, event: Mapping[str, Any]) -> str:
        choices = event.get("choices")
        if not isinstance(choices, list):
            return ""
        self.understood += 1
        first = choices[0] if choices else None
        if not isinstance(first, Mapping):
            return ""
        reason = first.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.reason = reason
        # A server that does not stream sends the whole message.
        delta = first.get("delta") or first.get("message")
        if not isinstance(delta, Mapping):
            return ""
        if delta.get("reasoning_content") or delta.get("reasoning"):
            self.reasoned = True
        content = delta.get("content")
        if isinstance(content, list):  # Mistral's reasoning models send parts
            parts = [part for part in content if isinstance(part, Mapping)]
            self.reasoned |= any(part.get("type") == "thinking" for part in parts)
            content = "".join(str(p.get("text", "")) for p in parts if p.get("type") == "text")
        for text in (content, delta.get("refusal")):
            if isinstance(text, str) and text:
                return text
        return ""

    def _take_usage(self, event: Mapping[str, Any]) -> None:
        usage = event.get("usage")
        if isinstance(usage, Mapping):
            counts = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
            self._tokens = tuple(  # type: ignore[assignment]
                count if isinstance(count, int) and count > 0 else 0 for count in counts
            )
