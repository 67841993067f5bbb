"""Descriptions of the methods of an index by a language model, off unless asked for.

What they will cost; asking for many at a time, as fast as the model's host allows; and writing
them beside the code, where they are searched and embedded with it. A description is kept by the
hash of all that decides it (model, prompt, language and source), so that a stopped run goes on
where it was and code that moves is not paid for twice.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError, RateLimitError
from codeqa.indexing.runs import hold
from codeqa.llm.values import Complete
from codeqa.prompts import render_prompt
from codeqa.settings import Settings
from codeqa.state import open_state
from codeqa.state.cache import ValueStore
from codeqa.store import Filter, Location, Tables
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import METHOD_KINDS, Progress, Unit

ROWS_PER_COMMIT = 64
"""Descriptions written at once: what a killed run has to write, not to buy, again."""
ROLES = ("source", "test", "example", "benchmark", "document")
"""Code that is described, in this order; nobody asks what vendored and generated code does."""
WORTH_LINES = 3
"""Shorter definitions say themselves what they do."""

CONCURRENT = 16
"""Requests in flight."""
TYPICAL_TOKENS, MAX_TOKENS = 60, 1_024
"""Of a description; three lines need a tenth of the most, which is for models that reason first."""
MAX_CHARACTERS = 6_000
"""Of a method's source, half of a small model's window; a longer one is described by its beginning.
"""
LOOK_SECONDS = 0.2
"""How often is looked whether a pause is over, and whether somebody stops the run."""
PAUSES = (5.0, 10.0, 20.0, 40.0, 80.0, 120.0)
"""Seconds after a refusal that says no time, longer with each refusal in a row: a limit per minute
is over by then. After as many in a row without an answer nothing more is hoped for."""
LONGEST_WAIT = 900.0
"""Seconds that a provider may ask to wait for; longer is a quota of the day, not a rate."""

Described = tuple[Unit, str]
Listener = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class CommentPlan:
    """What a run will describe, and what it will send."""

    units: tuple[Unit, ...]
    """Those whose description is known, and those that are asked for."""
    requests: int
    known: int
    """Units that cost nothing."""
    tokens_sent: int
    """An estimate, rather too high."""


@dataclass(slots=True)
class _Task:
    """One request: units of the same source, language and prompt share its answer."""

    key: str
    prompt: str
    units: list[Unit] = field(default_factory=list)

    def messages(self) -> list[dict[str, str]]:
        unit = self.units[0]
        source = unit.source_code
        if len(source) > MAX_CHARACTERS:
            source = source[: max(source.rfind("\n", 0, MAX_CHARACTERS), 0) or MAX_CHARACTERS]
        return [
            {"role": "system", "content": self.prompt},
            {"role": "user", "content": f"{unit.path}\n\n{source}"},
        ]


def plan_comments(
    settings: Settings, location: Location, model: str, limit: int | None = None
) -> CommentPlan:
    """What describing the index of `location` by `model` takes; at most `limit` requests.

    Nothing is sent. Raises IndexMissingError when nothing was indexed.
    """
    methods = Tables(location).units(Filter(kinds=tuple(sorted(METHOD_KINDS)), roles=ROLES))
    worth = [unit for unit in methods if unit.end_line - unit.start_line >= WORTH_LINES]
    worth.sort(key=lambda unit: ROLES.index(unit.role))
    known, tasks = _sort_out(worth, model, open_state(settings).values, settings.config_dir)
    sent = [message["content"] for task in tasks[:limit] for message in task.messages()]
    asked = [unit for task in tasks[:limit] for unit in task.units]
    return CommentPlan(
        units=(*(unit for unit, _ in known), *asked),
        requests=len(tasks[:limit]),
        known=len(known),
        tokens_sent=int(sum(map(len, sent)) / CHARACTERS_PER_TOKEN),
    )


def add_comments(
    settings: Settings,
    location: Location,
    units: Sequence[Unit],
    complete: Complete,
    model: str,
    progress: Listener = lambda _: None,
    stop: Callable[[], None] = lambda: None,
) -> int:
    """Describe `units` and write the descriptions into their rows; returns rows changed.

    The index is held only while some are written, so that indexing goes on beside it; what
    changed meanwhile gets no description. What was bought is kept even when the run fails or is
    stopped; then `stop()` ends the requests that are under way. Raises ModelError.
    """
    values = open_state(settings).values
    changed = 0
    waiting: list[Described] = []
    try:
        described = describe(units, complete, model, values, settings.config_dir, progress, stop)
        with closing(described):
            for one in described:
                waiting.append(one)
                if len(waiting) == ROWS_PER_COMMIT:
                    changed += _write(location, waiting)
                    waiting.clear()
    finally:
        changed += _write(location, waiting, last=True)
    return changed


def _write(location: Location, described: Sequence[Described], *, last: bool = False) -> int:
    """Hold the index, write, and after the `last` ones bring its search indices up to date."""
    from codeqa.store.writer import Writer, write_comments

    with hold(location):
        meta = Tables(location).meta()
        writer = Writer.open(location, meta.parser, meta.vector)
        with writer.growing():
            changed = write_comments(writer, described, fast_embedding())
            if last:
                writer.tidy()
    return changed


def _sort_out(
    units: Iterable[Unit], model: str, values: ValueStore, config_dir: Path | None
) -> tuple[list[Described], list[_Task]]:
    """Units whose description is known, with it, and what has to be asked for the others."""
    prompts: dict[str, str] = {}
    known: list[Described] = []
    tasks: dict[str, _Task] = {}
    for unit in units:
        language = unit.language
        if language not in prompts:
            prompts[language] = render_prompt("llm_comment", config_dir, language=language)
        key = _key(model, prompts[language], unit)
        text = None if key in tasks else values.get(key)
        if text is None:
            tasks.setdefault(key, _Task(key, prompts[language])).units.append(unit)
        else:
            known.append((unit, text))
    return known, list(tasks.values())


def _key(model: str, prompt: str, unit: Unit) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (model, prompt, unit.source_code):
        digest.update(part.encode("utf-8", "replace"))
        digest.update(b"\0")
    return f"comment:{digest.hexdigest()}"


def describe(
    units: Sequence[Unit],
    complete: Complete,
    model: str,
    values: ValueStore,
    config_dir: Path | None = None,
    progress: Listener = lambda _: None,
    stop: Callable[[], None] = lambda: None,
) -> Generator[Described, None, None]:
    """Yield (unit, description of 2–3 lines) as descriptions come in, those in `values` first.

    A host that limits the rate is left alone for as long as it asks. Raises the first other
    ModelError of `complete` once what was under way has come back and is kept. A caller that
    stops, as by Ctrl-C, does not wait for that: `stop()` is to end it.
    """
    known, tasks = _sort_out(units, model, values, config_dir)
    yield from known
    done = len(known)
    progress(Progress("comments", done, len(units)))
    waiting = deque(tasks)
    running: dict[Future[str], _Task] = {}
    failure: CodeQAError | None = None
    pauses, resume = iter(PAUSES), 0.0
    pool = ThreadPoolExecutor(CONCURRENT)
    try:
        while running or (waiting and failure is None):
            pause = resume - time.monotonic()
            while waiting and failure is None and pause <= 0 and len(running) < CONCURRENT:
                task = waiting.popleft()
                running[pool.submit(complete, task.messages(), MAX_TOKENS)] = task
            if not running:
                told = f"the host asks to wait, {pause:.0f} s left"
                progress(Progress("comments", done, len(units), told))
                time.sleep(min(pause, LOOK_SECONDS))
                continue
            for future in wait(running, LOOK_SECONDS, FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    text = " ".join(future.result().split())
                except RateLimitError as error:
                    waiting.appendleft(task)
                    if (now := time.monotonic()) < resume:
                        continue  # it was under way when the pause began
                    usual = next(pauses, None)
                    if usual is None or error.seconds > LONGEST_WAIT:
                        failure = failure or error
                    else:
                        resume = now + (error.seconds or usual)
                    continue
                except CodeQAError as error:
                    failure = failure or error
                    continue
                pauses = iter(PAUSES)
                values.set(task.key, text)
                done += len(task.units)
                progress(Progress("comments", done, len(units)))
                for unit in task.units:
                    yield unit, text
    except BaseException:
        stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failure:
        raise failure
