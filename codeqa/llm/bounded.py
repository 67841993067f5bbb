"""Calls that are not waited for longer than they are worth: a small request to a model for a short
text, and any other call."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from typing import TypeVar

from codeqa.errors import CodeQAError
from codeqa.llm.client import Cancelled, Message, Model
from codeqa.text.tokens import well_formed, words
from codeqa.types import StageTime

TEXT_CHARACTERS = 4_000
"""Longest text that is used, whatever a server sends: 768 tokens of code and a good third."""

DONE, TIMED_OUT, STOPPED, EMPTY = "done", "timed out", "stopped", "empty"
"""Outcomes of a stage; the others are `failed: …` and `skipped: …`."""

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")

T = TypeVar("T")


def generate_bounded(
    name: str,
    model: Model,
    messages: Callable[[], Sequence[Message]],
    most_tokens: int,
    seconds: float,
    cancelled: Cancelled,
    usable: Callable[[str], object] = words,
) -> Generator[StageTime, None, StageTime]:
    """Ask `model` for a short text: yields the stage as it begins and as it ends, and returns
    that. A text that `usable` says no to (by default one without words) counts as none.

    The request is closed after `seconds`, once `cancelled()` is true, and when the text is long
    enough; what has come by then is used. Raises nothing: the outcome says what failed.
    """
    begun = StageTime(name, model=model.name, host=model.host)
    yield begun
    started = time.monotonic()
    until = started + seconds

    def over() -> bool:
        return time.monotonic() >= until or cancelled()

    text, outcome = "", DONE
    try:
        stream = model.stream(messages(), max_tokens=most_tokens, cancelled=over)
        with closing(stream) as pieces:
            for piece in pieces:
                text += piece if isinstance(piece, str) else ""
                if len(text) > TEXT_CHARACTERS:
                    break
            else:
                outcome = STOPPED if cancelled() else TIMED_OUT if over() else DONE
    except CodeQAError as error:
        outcome = f"failed: {error.message}"
    text = clean_text(text)
    if outcome == DONE and not usable(text):
        text, outcome = "", EMPTY
    took = (time.monotonic() - started) * 1000
    ended = replace(begun, milliseconds=took, outcome=outcome, text=text)
    yield ended
    return ended


def skipped_stage(name: str, reason: str) -> StageTime:
    """The stage of that name, which is left out for `reason`."""
    return StageTime(name, outcome=f"skipped: {reason}")


def clean_text(text: str) -> str:
    """`text` as it is used and shown: bounded, no fences, nothing that cannot be seen."""
    text = _FENCE.sub("", well_formed(text[:TEXT_CHARACTERS]))
    return _UNSEEN.sub("", text.replace("\r\n", "\n")).strip()


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` gives, in a thread that is left to itself after `seconds` (TimeoutError)."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except BaseException as error:  # whatever it is belongs to the one who waits
            done.set_exception(error)

    # A daemon: a request that hangs must not keep the program from ending.
    threading.Thread(target=run, daemon=True).start()
    return done.result(timeout=seconds)
