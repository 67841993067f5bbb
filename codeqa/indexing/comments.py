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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from codeqa.embeddings.registry import fast_embedding
from codeqa.errors import CodeQAError, ContextLengthError, RateLimitError
from codeqa.indexing.lock import hold
from codeqa.llm import Complete
from codeqa.prompts import render_prompt
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.state.cache import ValueStore
from codeqa.store import Filter, Location, Tables
from codeqa.text.tokens import CHARACTERS_PER_TOKEN
from codeqa.types import METHOD_KINDS, Progress, Unit

if TYPE_CHECKING:
    from codeqa.store.writer import Writer

TYPICAL_TOKENS = 60
"""Of a description, for telling what a run will take."""
ROWS_PER_COMMIT = 64
"""Descriptions written at once: what a killed run has to write, not to buy, again."""
ROLES = ("source", "test", "example", "benchmark", "document")
"""Code that is described, in this order; nobody asks what vendored and generated code does."""

CONCURRENT = 16
"""Requests in flight."""
MAX_TOKENS = 1_024
"""Three lines need a tenth; the rest is for models that reason before they write."""
MAX_CHARACTERS = 12_000
"""Of a method's source; a longer one is described by its beginning."""
WORTH_LINES = 3
"""Shorter definitions say themselves what they do."""
LOOK_SECONDS = 0.2
"""How often is looked whether a pause is over, and whether somebody stops the run."""

FIRST_PAUSE, LONGEST_PAUSE = 5.0, 120.0
"""Seconds after a refusal that says no time, doubled each time; a limit per minute is over by
then. A provider that says a time is left alone for that long."""
LONGEST_WAIT = 900.0
"""Seconds that a provider may ask to wait for; longer is a quota of the day, not a rate."""
PATIENCE = 6
"""Pauses in a row without one answer in between, after which nothing more is hoped for."""

Described = tuple[Unit, str]


@dataclass(frozen=True, slots=True)
class CommentPlan:
    """What a run will describe, and what it will send and get."""

    units: tuple[Unit, ...]
    """Those whose description is known, and those that are asked for."""
    requests: int
    known: int
    """Units that cost nothing."""
    tokens_sent: int
    """An estimate, rather too high."""

    @property
    def tokens_back(self) -> int:
        """An estimate of what comes back."""
        return self.requests * TYPICAL_TOKENS

    @property
    def most_tokens_back(self) -> int:
        """What cannot be exceeded."""
        return self.requests * MAX_TOKENS


def plan_comments(
    settings: Settings, location: Location, model: str, limit: int | None = None
) -> CommentPlan:
    """What describing the index of `location` by `model` takes; at most `limit` requests.

    Nothing is sent. Raises IndexMissingError when nothing was indexed.
    """
    methods = Tables.open(location).units(Filter(kinds=tuple(sorted(METHOD_KINDS)), roles=ROLES))
    units = sorted(worth_describing(methods), key=lambda unit: ROLES.index(unit.role))
    known, tasks = _sort_out(units, model, State(settings.data_dir).values, settings.config_dir)
    tasks = tasks[:limit]
    asked = [unit for task in tasks for unit in task.units]
    return CommentPlan(
        units=(*(unit for unit, _ in known), *asked),
        requests=len(tasks),
        known=len(known),
        tokens_sent=int(sum(map(_sent_characters, tasks)) / CHARACTERS_PER_TOKEN),
    )


def add_comments(
    settings: Settings,
    location: Location,
    units: Sequence[Unit],
    complete: Complete,
    model: str,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> int:
    """Describe `units` and write the descriptions into their rows; returns rows changed.

    The index is held only while some are written, so that indexing goes on beside it; what
    changed meanwhile gets no description. What was bought is kept even when the run fails or is
    stopped; then `stop()` ends the requests that are under way. Raises ModelError.
    """
    changed = 0
    described = describe(
        units,
        complete,
        model=model,
        cache=State(settings.data_dir).values,
        config_dir=settings.config_dir,
        progress=progress,
        stop=stop,
    )
    waiting: list[Described] = []
    try:
        with closing(described):
            for one in described:
                waiting.append(one)
                if len(waiting) >= ROWS_PER_COMMIT:
                    changed += _write(location, waiting)
                    waiting.clear()
    finally:
        if waiting:
            changed += _write(location, waiting)
        if changed:
            with _writer(location) as writer:
                writer.tidy()
    return changed


def _write(location: Location, described: Sequence[Described]) -> int:
    from codeqa.store.comments import write_comments

    with _writer(location) as writer:
        return write_comments(writer, described, fast_embedding())


@contextmanager
def _writer(location: Location) -> Iterator[Writer]:
    """A writer to the index as it is, which is held meanwhile."""
    from codeqa.store.writer import Writer

    with hold(location):
        meta = Tables.open(location).meta()
        writer = Writer.open(location, meta.parser, meta.vector)
        with writer.growing():
            yield writer


@dataclass(slots=True)
class _Task:
    """One request: units of the same source, language and prompt share its answer."""

    key: str
    prompt: str
    units: list[Unit] = field(default_factory=list)


def worth_describing(units: Iterable[Unit]) -> list[Unit]:
    """Methods that are long enough for a description to add something."""
    return [
        unit for unit in units if unit.is_method and unit.end_line - unit.start_line >= WORTH_LINES
    ]


def _sort_out(
    units: Iterable[Unit], model: str, cache: ValueStore | None, config_dir: Path | None = None
) -> tuple[list[Described], list[_Task]]:
    """Units whose description is known, with it, and what has to be asked for the others."""
    prompts: dict[str, str] = {}
    known: list[Described] = []
    tasks: dict[str, _Task] = {}
    for unit in units:
        if unit.language not in prompts:
            prompts[unit.language] = render_prompt(
                "llm_comment", config_dir, language=unit.language
            )
        prompt = prompts[unit.language]
        key = _key(model, prompt, unit)
        text = cache.get(key) if cache and key not in tasks else None
        if text is None:
            tasks.setdefault(key, _Task(key, prompt)).units.append(unit)
        else:
            known.append((unit, text))
    return known, list(tasks.values())


def describe(
    units: Sequence[Unit],
    complete: Complete,
    *,
    model: str,
    cache: ValueStore | None = None,
    config_dir: Path | None = None,
    concurrency: int = CONCURRENT,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> Generator[Described, None, None]:
    """Yield (unit, description of 2–3 lines) as descriptions come in, known ones first.

    A host that limits the rate is left alone for as long as it asks, then asked less at a time.
    Raises the first other ModelError of `complete` once what was under way has come back and is
    kept. A caller that stops, as by Ctrl-C, does not wait for that: `stop()` is to end it.
    """
    known, tasks = _sort_out(units, model, cache, config_dir)
    yield from known
    done = len(known)

    def report(detail: str = "") -> None:
        if progress:
            progress(Progress("comments", done, len(units), detail))

    report()
    pace = Pace(concurrency)
    waiting = deque(tasks)
    running: dict[Future[str], _Task] = {}
    failure: CodeQAError | None = None
    pool = ThreadPoolExecutor(max_workers=max(1, concurrency))
    try:
        while running or (waiting and failure is None):
            pause = pace.left()
            while waiting and failure is None and not pause and len(running) + 1 <= pace.allowed:
                task = waiting.popleft()
                running[pool.submit(_ask, complete, task.prompt, task.units[0])] = task
            if not running:
                report(f"the host asks to wait, {pause:.0f} s left")
                time.sleep(min(pause, LOOK_SECONDS))
                continue
            finished, _ = wait(running, min(pause, LOOK_SECONDS) or None, FIRST_COMPLETED)
            for future in finished:
                task = running.pop(future)
                try:
                    text = future.result()
                except RateLimitError as error:
                    waiting.appendleft(task)
                    if not pace.refused(error.seconds):
                        failure = failure or error
                    continue
                except CodeQAError as error:
                    failure = failure or error
                    continue
                pace.answered()
                if cache:
                    cache.set(task.key, text)
                done += len(task.units)
                report()
                for unit in task.units:
                    yield unit, text
    except BaseException:
        if stop:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failure:
        raise failure


def _sent_characters(task: _Task) -> int:
    """Characters that a request for `task` sends at most."""
    unit = task.units[0]
    return len(task.prompt) + len(unit.path) + min(len(unit.source_code), MAX_CHARACTERS)


def _ask(complete: Complete, prompt: str, unit: Unit, characters: int = MAX_CHARACTERS) -> str:
    """The description of one method; of its first half when the whole is too long to read."""
    source = unit.source_code
    if len(source) > characters:
        source = source[: max(source.rfind("\n", 0, characters), 0) or characters]
    messages = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": f"{unit.path}\n\n{source}"},
    ]
    try:
        return " ".join(complete(messages, MAX_TOKENS).split())
    except ContextLengthError:
        if characters < MAX_CHARACTERS:
            raise
        return _ask(complete, prompt, unit, len(source) // 2)


def _key(model: str, prompt: str, unit: Unit) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (model, prompt, unit.source_code):
        digest.update(part.encode("utf-8", "replace"))
        digest.update(b"\0")
    return f"comment:{digest.hexdigest()}"


class Pace:
    """The number of requests that may run, and when the next may start; used by one thread.

    A refusal halves the number, about as many answers as it allows raise it by one.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.allowed = self._most = float(max(1, most))
        self._clock = clock
        self._resume = clock()
        self._refused = 0

    def answered(self) -> None:
        """A request was answered."""
        self._refused = 0
        self.allowed = min(self._most, self.allowed + 1 / self.allowed)

    def refused(self, seconds: float = 0.0) -> bool:
        """A request was refused for its rate, with the `seconds` to wait or 0; whether to go on.

        Those refused during a pause, which were under way when it began, are one refusal.
        """
        if seconds > LONGEST_WAIT:
            return False
        if not self.left():
            if self._refused == PATIENCE:
                return False
            self._refused += 1
            self.allowed = max(1.0, self.allowed // 2)
        pause = seconds or min(FIRST_PAUSE * 2.0 ** (self._refused - 1), LONGEST_PAUSE)
        self._resume = max(self._resume, self._clock() + pause)
        return True

    def left(self) -> float:
        """Seconds until the next request may start; 0 when it may now."""
        return max(0.0, self._resume - self._clock())
