"""The events of an answer as lines of the Vercel AI SDK's data stream.

A line is a code, a colon and compact JSON: `0` text, `8` a list of annotations, `3` an
error, `e` and `d` the end. A client that asks for rendering also receives the time of
each stage and step, finished blocks as HTML and what the page shows below an answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

from codeqa.chat.events import (
    Classified,
    Event,
    Failed,
    Failure,
    Generating,
    Retrieved,
    Step,
    Stopped,
    Token,
    as_json,
)
from codeqa.chat.record import Done
from codeqa.render import Cite, finished_items, render_markdown, split_blocks
from codeqa.web.errors import explained

HEADERS = {
    "x-vercel-ai-data-stream": "v1",
    "Content-Type": "text/plain; charset=utf-8",
    # Proxies that collect a response before passing it on are asked not to.
    "X-Accel-Buffering": "no",
}

LONG_BLOCK = 1_000
"""Characters from which on an unfinished block is no longer parsed at each of its lines."""
GROWTH = 0.125
"""Part by which such a block grows before it is parsed again: the parsing of a list or table
of n characters then costs a few times n instead of n²."""


class BlockRenderer:
    """Turn text that arrives in pieces into annotations of finished, rendered blocks, each with
    the `length` of its text in the UTF-16 units in which a browser counts. The items of a list
    come as they are finished, under the `index` of its block."""

    def __init__(self, cite: Cite) -> None:
        self._cite = cite
        self._rest = ""
        self._tried = 0
        """Length of the rest when it was last looked at in vain."""
        self._index = 0

    def feed(self, text: str) -> list[dict[str, Any]]:
        """Return the blocks, and items of a list, that `text` completes."""
        self._rest += text
        if "\n" not in text or len(self._rest) < self._tried * (1 + GROWTH):
            return []
        blocks, self._rest = split_blocks(self._rest)
        annotations = [self._annotation(block) for block in blocks]
        if end := finished_items(self._rest):
            annotations.append(self._annotation(self._rest[:end], whole=False))
            self._rest = self._rest[end:]
        self._tried = len(self._rest) if len(self._rest) > LONG_BLOCK else 0
        return annotations

    def finish(self) -> list[dict[str, Any]]:
        """Return what is left, complete or not."""
        end = "" if self._rest.endswith("\n") else "\n"
        blocks, rest = split_blocks(self._rest + end)  # behind the last item may stand more
        self._rest = ""
        return [self._annotation(one) for one in (*blocks, rest[: len(rest) - len(end)]) if one]

    def _annotation(self, block: str, *, whole: bool = True) -> dict[str, Any]:
        index, self._index = self._index, self._index + whole
        length = len(block.encode("utf-16-le", "surrogatepass")) // 2
        html = render_markdown(block, self._cite)
        return {"block": {"index": index, "html": html, "length": length}}


def encode_stream(events: Iterable[Event], *, cite: Cite | None = None) -> Iterator[bytes]:
    """Yield the lines of one answer in UTF-8, and close `events` in the end.

    Without `cite` exactly the public protocol; with it also what the page asks for.
    A failure inside `events` becomes an error line: the stream always ends properly.
    """
    encoder, reason = _Encoder(cite), "stop"
    try:
        for event in events:
            yield from encoder.lines(event)
            if isinstance(event, Failed):
                reason = "error"
                break
    except Exception as error:
        reason = "error"
        yield from encoder.lines(Failed(Failure(**explained(error).as_data())))
    finally:
        if close := getattr(events, "close", None):
            close()
    for code in ("e", "d"):
        yield _line(code, {"finishReason": reason})


class _Encoder:
    """Encodes the events of one answer, one after the other."""

    def __init__(self, cite: Cite | None) -> None:
        self._cite = cite
        self._renderer = BlockRenderer(cite) if cite else None
        self._started = time.monotonic()

    def lines(self, event: Event) -> Iterator[bytes]:
        """Yield the lines of an event: none, one or several."""
        if isinstance(event, Token):
            yield _line("0", event.text)
        annotations = self._page(event) if self._cite else _public(event)
        for value in annotations:
            yield _line("8", [value])
        if isinstance(event, Failed):
            failure = event.failure
            hint = "" if self._cite else failure.hint
            yield _line("3", f"{failure.message} {hint}".strip())

    def _page(self, event: Event) -> list[dict[str, Any]]:
        """Return the annotations of an event for the page; an answer that a hook changed comes
        rendered anew."""
        assert self._cite and self._renderer
        moment = {"milliseconds": round(1000 * (time.monotonic() - self._started))}
        match event:
            case Token(text):
                return self._renderer.feed(text)
            case Failed(failure, turn):
                return [*self._renderer.finish(), {"error": as_json(failure), "turn": turn}]
            case Stopped(turn):
                return [*self._renderer.finish(), {"stopped": True, "turn": turn, **moment}]
            case Done():
                values = event.data
                if event.revised:
                    values["revised_html"] = render_markdown(event.revised, self._cite)
                return [*self._renderer.finish(), values | moment]
            case Step(name, milliseconds):
                # `milliseconds` of a line is its moment, so that of the step has another name.
                return [
                    {"stage": event.kind, "name": name, "took": round(milliseconds, 1), **moment}
                ]
        values = {"stage": event.kind, **event.data}
        if isinstance(event, Retrieved):
            values["retrieval_info"] = event.data
        return [values | moment]


def _public(event: Event) -> list[dict[str, Any]]:
    """Return the annotations of an event for other programs: none of most."""
    match event:
        case Classified(intent, confidence):
            return [{"stage": event.kind, "intent": intent, "confidence": confidence}]
        case Retrieved():
            return [{"stage": event.kind, "retrieval_info": event.data}]
        case Generating():
            return [{"stage": event.kind}]
        case Done():
            return [event.summary()]
    return []


def _line(code: str, value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate of a file's name or text must not end the stream.
    return f"{code}:{text}\n".encode("utf-8", "replace")
