"""An answer's events as the lines of the Vercel AI SDK's data stream.

A line is a code, a colon and compact JSON: `0` text, `8` a list of annotations, `3` an
error, `e` and `d` the end. A client that asks for rendering also receives the time of
each stage and step, finished blocks as HTML and what the page shows below an answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from codeqa.render.markdown import Cite, render_markdown, split_blocks
from codeqa.types import Event
from codeqa.web.errors import explained

HEADERS = {
    "x-vercel-ai-data-stream": "v1",
    "Content-Type": "text/plain; charset=utf-8",
    # Proxies that collect a response before passing it on are asked not to.
    "X-Accel-Buffering": "no",
}
PUBLIC = {
    "classified": ("intent", "confidence"),
    "generating": (),
    "done": ("intent", "confidence", "retrieval_info", "query_tags"),
}
"""What the public protocol says of an event, by its kind; `retrieved` is the same to all."""

LONG_BLOCK = 1_000
"""Characters from which on an unfinished block is no longer parsed at each of its lines."""
GROWTH = 0.125
"""Part by which such a block grows before it is parsed again: the parsing of a list or table
of n characters then costs a few times n instead of n²."""


class BlockRenderer:
    """Turns text that arrives in pieces into annotations of finished, rendered blocks.

    `length` of an annotation is the part of the text that the block stands for, in the
    UTF-16 units in which a browser counts.
    """

    def __init__(self, cite: Cite) -> None:
        self._cite = cite
        self._rest = ""
        self._tried = 0
        """Length of the rest when it was last looked at in vain."""
        self._index = 0

    def feed(self, text: str) -> list[dict[str, Any]]:
        """Blocks that `text` completes."""
        self._rest += text
        if "\n" not in text or len(self._rest) < self._tried * (1 + GROWTH):
            return []
        blocks, self._rest = split_blocks(self._rest)
        self._tried = len(self._rest) if len(self._rest) > LONG_BLOCK else 0
        return [self._annotation(block) for block in blocks]

    def finish(self) -> list[dict[str, Any]]:
        """What is left, complete or not."""
        rest, self._rest = self._rest, ""
        return [self._annotation(rest)] if rest else []

    def _annotation(self, block: str) -> dict[str, Any]:
        index, self._index = self._index, self._index + 1
        length = len(block.encode("utf-16-le", "surrogatepass")) // 2
        html = render_markdown(block, self._cite)
        return {"block": {"index": index, "html": html, "length": length}}


def encode_stream(
    events: Iterable[Event],
    *,
    cite: Cite | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[bytes]:
    """The lines of one answer in UTF-8.

    Without `cite` exactly the public protocol; with it also what the page asks for.
    A failure inside `events` becomes an error line: the stream always ends properly.
    """
    try:
        for code, value in _lines(events, cite, clock):
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            # A lone surrogate of a file's name or text must not end the stream.
            yield f"{code}:{text}\n".encode("utf-8", "replace")
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()


def _lines(
    events: Iterable[Event], cite: Cite | None, clock: Callable[[], float]
) -> Iterator[tuple[str, Any]]:
    """Code and value of each line."""
    renderer = BlockRenderer(cite) if cite else None
    started, ended = clock(), "stop"
    try:
        for event in events:
            moment = round(1000 * (clock() - started))
            if event.kind == "token":
                text = str(event.data["text"])
                yield "0", text
                if renderer:
                    yield from (("8", [block]) for block in renderer.feed(text))
                continue
            if renderer and event.kind in ("done", "stopped", "error"):
                yield from (("8", [block]) for block in renderer.finish())
            if event.kind == "error":
                ended = "error"
                yield from _error(event.data, cite is not None)
                break
            if cite:
                yield "8", [{**_for_page(event, cite), "milliseconds": moment}]
            elif told := _public(event):
                yield "8", [told]
    except Exception as error:
        ended = "error"
        yield from _error(explained(error).as_data(), cite is not None)
    yield "e", {"finishReason": ended}
    yield "d", {"finishReason": ended}


def _public(event: Event) -> dict[str, Any]:
    """What is told of an event, nothing of most kinds."""
    kind, data = event.kind, event.data
    if kind == "retrieved":
        counts = {name: data.get(name, 0) for name in ("num_docs", "similar_queries")}
        return {"stage": kind, "retrieval_info": counts}
    stage = {} if kind == "done" or kind not in PUBLIC else {"stage": kind}
    return stage | {name: data.get(name) for name in PUBLIC.get(kind, ())}


def _for_page(event: Event, cite: Cite) -> dict[str, Any]:
    """All of it; an answer that a hook changed comes rendered anew."""
    kind, data = event.kind, event.data
    if kind == "stopped":
        return {"stopped": True, "turn": data.get("turn", "")}
    if kind == "step":
        # `milliseconds` of a line is its moment, so that of the step has another name.
        took = round(float(data.get("milliseconds", 0)), 1)
        return {"stage": kind, "name": data.get("name"), "took": took}
    if kind == "done" and (revised := data.get("revised")):
        data = {**data, "revised_html": render_markdown(str(revised), cite)}
    stage = {} if kind == "done" else {"stage": kind}
    return {**stage, **data, **_public(event)}


def _error(data: Mapping[str, Any], for_page: bool) -> Iterator[tuple[str, Any]]:
    """`turn` is the id under which the part of the answer was kept that had come."""
    error = {name: str(data.get(name, "")) for name in ("message", "hint", "code")}
    message, hint = error["message"], error["hint"]
    if for_page:
        yield "8", [{"error": error, "turn": str(data.get("turn", ""))}]
    yield "3", message if for_page else f"{message} {hint}".strip()
