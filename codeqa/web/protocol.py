"""An answer's events as the lines of the Vercel AI SDK's data stream.

A line is a code, a colon and compact JSON: `0` text, `8` a list of annotations, `3` an
error, `e` and `d` the end. A client that asks for rendering also receives the time of
each stage and step, finished blocks as HTML and what the page shows below an answer.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from codeqa.errors import CodeQAError, places_of
from codeqa.render import Cite, render_markdown, split_blocks
from codeqa.types import Event

HEADERS = {
    "x-vercel-ai-data-stream": "v1",
    "Content-Type": "text/plain; charset=utf-8",
    "Cache-Control": "no-store",
    # Proxies that collect a response before passing it on are asked not to.
    "X-Accel-Buffering": "no",
}
FINAL_FIELDS = ("intent", "confidence", "retrieval_info", "query_tags")
PAGE_FIELDS = (
    "turn", "citations", "coverage", "mode", "model", "host", "generator", "reranker", "hyde",
    "stages", "notice", "tokens", "carries", "source", "rules", "steps", "suggestions",
    "suggest_codebase", "searched_automatically", "profile", "hook_problems", "revised",
)  # fmt: skip
WHY_CLASSIFIED = (
    "source", "reason", "searched_automatically", "searches", "goes_on", "rules",
)  # fmt: skip

LONG_BLOCK = 1_000
"""Characters from which on an unfinished block is no longer parsed at each of its lines."""
GROWTH = 0.125
"""Part by which such a block grows before it is parsed again: the parsing of a list or table
of n characters then costs a few times n instead of n²."""

log = logging.getLogger(__name__)


def line(code: str, value: Any) -> str:
    """One line of the stream."""
    return f"{code}:{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n"


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
        for text in _lines(events, cite, clock):
            # A lone surrogate of a file's name or text must not end the stream.
            yield text.encode("utf-8", "replace")
    finally:
        close = getattr(events, "close", None)
        if close is not None:
            close()


def _lines(events: Iterable[Event], cite: Cite | None, clock: Callable[[], float]) -> Iterator[str]:
    renderer = BlockRenderer(cite) if cite is not None else None
    started = clock()
    ended = "stop"
    try:
        for event in events:
            extra = {"milliseconds": round(1000 * (clock() - started))} if renderer else {}
            if event.kind == "token":
                text = str(event.data["text"])
                yield line("0", text)
                if renderer:
                    yield from (line("8", [block]) for block in renderer.feed(text))
                continue
            if renderer and event.kind in ("done", "stopped", "error"):
                yield from (line("8", [block]) for block in renderer.finish())
            if event.kind == "error":
                ended = "error"
                yield from _error(event.data, renderer is not None)
                break
            yield from _annotation(event, extra, cite)
    except CodeQAError as error:
        ended = "error"
        yield from _error(error.as_data(), renderer is not None)
    except Exception as error:
        log.error("an answer failed: %s", places_of(error))
        ended = "error"
        unexpected = {
            "message": "The answer failed unexpectedly.",
            "hint": "The server's log says why.",
            "code": "internal",
        }
        yield from _error(unexpected, renderer is not None)
    finish = {"finishReason": ended}
    yield line("e", finish)
    yield line("d", finish)


def _annotation(event: Event, extra: Mapping[str, Any], cite: Cite | None) -> Iterator[str]:
    """The line of an event; `extra` is empty for the public protocol, which has three kinds."""
    data, told = event.data, dict[str, Any](stage=event.kind)
    if event.kind == "classified":
        names = ("intent", "confidence", *(WHY_CLASSIFIED if extra else ()))
        told |= {name: data[name] for name in names if name in data}
    elif event.kind == "retrieved":
        counts = {name: data.get(name, 0) for name in ("num_docs", "similar_queries")}
        told |= {"retrieval_info": counts}
    elif event.kind == "done":
        told = _final(data, cite if extra else None)
    elif not extra and event.kind != "generating":
        return
    elif event.kind == "step":
        # `milliseconds` of a line is its moment, so that of the step has another name.
        told |= {"name": data.get("name"), "took": round(float(data.get("milliseconds", 0)), 1)}
    elif event.kind == "stopped":
        told = {"stopped": True, "turn": data.get("turn", "")}
    else:
        told |= data
    yield line("8", [{**told, **extra}])


def _final(data: Mapping[str, Any], cite: Cite | None) -> dict[str, Any]:
    """The last annotation; an answer that a hook changed comes rendered anew."""
    values = {name: data.get(name) for name in FINAL_FIELDS}
    if cite is None:
        return values
    values |= {name: data[name] for name in PAGE_FIELDS if name in data}
    if revised := data.get("revised"):
        values["revised_html"] = render_markdown(str(revised), cite)
    return values


def _error(data: Mapping[str, Any], for_page: bool) -> Iterator[str]:
    """`turn` is the id under which the part of the answer was kept that had come."""
    error = {name: str(data.get(name, "")) for name in ("message", "hint", "code")}
    message, hint = error["message"], error["hint"]
    if for_page:
        yield line("8", [{"error": error, "turn": str(data.get("turn", ""))}])
        yield line("3", message)
    else:
        yield line("3", f"{message} {hint}".strip())
