"""The events of an answer as a stream of the Vercel AI SDK, in the form of version 4 or 5.

In version 4 a line is a code, a colon and compact JSON: `0` text, `8` a list of annotations, `3` an
error, `e` and `d` the end. A client that asks for rendering also gets the time of each stage and
step, finished blocks as HTML, and the facts that the page shows below an answer. Version 5 has
server-sent events instead, among them the text in `text-delta` and annotations in `data-codeqa`.
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

STREAM_HEADERS = {
    "x-vercel-ai-data-stream": "v1",
    "Content-Type": "text/plain; charset=utf-8",
    # Asks proxies not to buffer the response.
    "X-Accel-Buffering": "no",
}
EVENTS = "text/event-stream"
EVENT_HEADERS = {"Content-Type": f"{EVENTS}; charset=utf-8", "X-Accel-Buffering": "no"}
PARTS_HEADERS = {"x-vercel-ai-ui-message-stream": "v1", **EVENT_HEADERS}
"""Headers of the stream of version 5."""

LONG_BLOCK = 1_000
"""An unfinished block longer than this, in characters, is no longer parsed after every line."""
GROWTH = 0.125
"""Share by which such a block grows before it is parsed again. Parsing a list or table of n
characters then costs a few times n instead of n²."""

Line = tuple[str, Any]
"""The code of a line and its value."""


class BlockRenderer:
    """Turns text that arrives in pieces into annotations with finished blocks as HTML.

    Each has the `length` of its text in UTF-16 units, in which browsers count. A list comes item by
    item: all of its annotations have the `index` of its block.
    """

    def __init__(self, cite: Cite) -> None:
        self._cite = cite
        self._rest = ""
        self._tried = 0
        """Length of the rest when it was last parsed and no block was finished."""
        self._index = 0

    def feed(self, text: str) -> list[dict[str, Any]]:
        """Return annotations of the blocks and list items that `text` completes."""
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
        """Return annotations of the remaining text, complete or not."""
        end = "" if self._rest.endswith("\n") else "\n"
        blocks, rest = split_blocks(self._rest + end)  # text may follow the last list item
        blocks.append(rest[: len(rest) - len(end)])
        self._rest = ""
        return [self._annotation(block) for block in blocks if block]

    def _annotation(self, block: str, *, whole: bool = True) -> dict[str, Any]:
        index, self._index = self._index, self._index + whole
        length = len(block.encode("utf-16-le", "surrogatepass")) // 2
        html = render_markdown(block, self._cite)
        return {"block": {"index": index, "html": html, "length": length}}


def encode_parts(events: Iterable[Event]) -> Iterator[bytes]:
    """Yield the server-sent events of one answer as version 5 reads them; close `events`."""
    is_open, before = False, _part("start") + _part("start-step")
    for code, value in _coded(events, None):
        match code:
            case "0":
                before += b"" if is_open else _part("text-start", id="0")
                is_open = True
                yield before + _part("text-delta", id="0", delta=value)
            case "8":
                yield before + _part("data-codeqa", data=value[0])
            case "3":
                yield before + _part("error", errorText=value)
            case "e" if is_open:
                yield _part("text-end", id="0")
        before = b""
    yield _part("finish-step") + _part("finish") + b"data: [DONE]\n\n"


def encode_stream(events: Iterable[Event], *, cite: Cite | None = None) -> Iterator[bytes]:
    """Yield the lines of one answer in UTF-8, and close `events` at the end.

    Without `cite` this is exactly the public protocol of version 4; with it, the page's annotations
    are added.
    """
    for code, value in _coded(events, cite):
        yield f"{code}:{_json(value)}\n".encode("utf-8", "replace")


def _coded(events: Iterable[Event], cite: Cite | None) -> Iterator[Line]:
    """Yield the lines of one answer.

    An exception inside `events` becomes an error line: the stream always ends properly.
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
        yield code, {"finishReason": reason}


class _Encoder:
    """Encodes the events of one answer in their order."""

    def __init__(self, cite: Cite | None) -> None:
        self._cite = cite
        self._renderer = BlockRenderer(cite) if cite else None
        self._started = time.monotonic()

    def lines(self, event: Event) -> Iterator[Line]:
        """Yield the lines of an event, maybe none."""
        if isinstance(event, Token):
            yield "0", event.text
        annotations = self._page(event) if self._cite else _public(event)
        for value in annotations:
            yield "8", [value]
        if isinstance(event, Failed):
            failure = event.failure
            hint = "" if self._cite else failure.hint
            yield "3", f"{failure.message} {hint}".strip()

    def _page(self, event: Event) -> list[dict[str, Any]]:
        """Return the annotations of an event for the page.

        If a hook changed the answer, the last annotation has the whole answer as HTML.
        """
        assert self._cite and self._renderer
        moment = {"milliseconds": round(1000 * (time.monotonic() - self._started))}
        match event:
            case Token(text):
                return self._renderer.feed(text)
            case Failed(failure, turn):
                return self._last({"error": as_json(failure), "turn": turn})
            case Stopped(turn):
                return self._last({"stopped": True, "turn": turn, **moment})
            case Done():
                values = event.data
                if event.revised:
                    values["revised_html"] = render_markdown(event.revised, self._cite)
                return self._last(values | moment)
            case Step(name, milliseconds):
                # `milliseconds` is the moment of the line, so the step's duration is `took`.
                took = round(milliseconds, 1)
                return [{"stage": event.kind, "name": name, "took": took, **moment}]
        values = {"stage": event.kind, **event.data}
        if isinstance(event, Retrieved):
            values["retrieval_info"] = event.data
        return [values | moment]

    def _last(self, values: dict[str, Any]) -> list[dict[str, Any]]:
        assert self._renderer
        return self._renderer.finish() + [values]


def _public(event: Event) -> list[dict[str, Any]]:
    """Return the annotations of an event for other programs; most events have none."""
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


def _part(kind: str, **values: Any) -> bytes:
    return f"data: {_json({'type': kind, **values})}\n\n".encode("utf-8", "replace")


def _json(value: Any) -> str:
    """Return compact JSON; a lone surrogate in it must not break the stream when it is encoded."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
