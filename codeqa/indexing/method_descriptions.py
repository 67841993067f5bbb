"""Describe the methods of an index by a language model, only when a user asks for it.

Descriptions are written beside the code, where they are searched and embedded with it. Each is
stored under a hash of the model, prompt and source, so that a stopped run continues where it was
and code that moves is not paid for twice.
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
from codeqa.errors import RateLimitError
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
"""Shorter definitions explain themselves."""

CONCURRENT = 16
"""Requests in flight."""
TYPICAL_TOKENS, MAX_TOKENS = 60, 1_024
"""Tokens of a description. Three lines need a tenth of the most: some models reason first."""
MAX_CHARACTERS = 6_000
"""Characters of a method's source, half of a small model's window; a longer one is cut."""
LOOK_SECONDS = 0.2
"""Seconds between checks whether a pause is over or the user stops the run."""
PAUSES = (5.0, 10.0, 20.0, 40.0, 80.0, 120.0)
"""Seconds after each refusal in a row that names no time: a limit per minute is over by then. After
as many without an answer the run fails."""
LONGEST_WAIT = 900.0
"""Seconds that a provider may ask to wait for; longer is a quota of the day, not a rate."""

MethodDescription = tuple[Unit, str]
Listener = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class DescriptionPlan:
    """The methods that a run will describe, and how much it will send."""

    units: tuple[Unit, ...]
    """Units whose description is stored, then those that need a request."""
    requests: int
    stored: int
    """Units whose description is stored."""
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
            line_end = source.rfind("\n", 1, MAX_CHARACTERS)
            source = source[: line_end if line_end > 0 else MAX_CHARACTERS]
        return [
            {"role": "system", "content": self.prompt},
            {"role": "user", "content": f"{unit.path}\n\n{source}"},
        ]


class _RateLimit:
    """When a host that refused requests may be asked again."""

    def __init__(self) -> None:
        self._pauses, self._resume = iter(PAUSES), 0.0

    def seconds_left(self) -> float:
        return self._resume - time.monotonic()

    def answered(self) -> None:
        self._pauses = iter(PAUSES)

    def refused(self, error: RateLimitError) -> bool:
        """Begin a pause; return False when waiting is hopeless."""
        if self.seconds_left() > 0:  # the request was under way when this pause began
            return True
        usual = next(self._pauses, None)
        if usual is None or error.seconds > LONGEST_WAIT:
            return False
        self._resume = time.monotonic() + (error.seconds or usual)
        return True


def plan_descriptions(
    settings: Settings, location: Location, model: str, limit: int | None = None
) -> DescriptionPlan:
    """Plan to describe an index by `model` with at most `limit` requests; send nothing."""
    methods = Tables(location).units(Filter(kinds=tuple(sorted(METHOD_KINDS)), roles=ROLES))
    worth = [unit for unit in methods if unit.end_line - unit.start_line >= WORTH_LINES]
    worth.sort(key=lambda unit: ROLES.index(unit.role))
    stored, tasks = _split(worth, model, open_state(settings).values, settings.config_dir)
    tasks = tasks[:limit]
    units = [unit for unit, _ in stored]
    characters = 0
    for task in tasks:
        units += task.units
        characters += sum(len(message["content"]) for message in task.messages())
    tokens = int(characters / CHARACTERS_PER_TOKEN)
    return DescriptionPlan(tuple(units), len(tasks), len(stored), tokens)


def add_descriptions(
    settings: Settings,
    location: Location,
    units: Sequence[Unit],
    complete: Complete,
    model: str,
    progress: Listener = lambda _: None,
    stop: Callable[[], None] = lambda: None,
) -> int:
    """Describe `units`, write the descriptions into their rows and return the rows changed.

    The index is locked only during a write, so that indexing can go on; units that changed
    meanwhile get no description. When the run fails or is stopped, descriptions that were paid for
    are written all the same and `stop()` ends the open requests. Raises ModelError.
    """
    values = open_state(settings).values
    changed = 0
    batch: list[MethodDescription] = []
    try:
        pairs = describe(units, complete, model, values, settings.config_dir, progress, stop)
        with closing(pairs):
            for pair in pairs:
                batch.append(pair)
                if len(batch) == ROWS_PER_COMMIT:
                    changed += _write(location, batch)
                    batch.clear()
    finally:
        changed += _write(location, batch, last=True)
    return changed


def _write(location: Location, pairs: Sequence[MethodDescription], *, last: bool = False) -> int:
    """Write the descriptions; after the `last` ones bring the search indices up to date."""
    from codeqa.store.writer import TableWriter, write_descriptions

    with hold(location):
        meta = Tables(location).meta()
        writer = TableWriter.open(location, meta.parser, meta.vector)
        with writer.growing():
            changed = write_descriptions(writer, pairs, fast_embedding())
            if last:
                writer.tidy()
    return changed


def _split(
    units: Iterable[Unit], model: str, values: ValueStore, config_dir: Path | None
) -> tuple[list[MethodDescription], list[_Task]]:
    """Return the units whose description is stored, with it, and requests for the others."""
    prompts: dict[str, str] = {}
    stored: list[MethodDescription] = []
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
            stored.append((unit, text))
    return stored, list(tasks.values())


def _key(model: str, prompt: str, unit: Unit) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (model, prompt, unit.source_code):
        digest.update(part.encode("utf-8", "replace"))
        digest.update(b"\0")
    return f"comment:{digest.hexdigest()}"


# One loop sends, waits and collects, for all requests share the limit of their host.
def describe(
    units: Sequence[Unit],
    complete: Complete,
    model: str,
    values: ValueStore,
    config_dir: Path | None = None,
    progress: Listener = lambda _: None,
    stop: Callable[[], None] = lambda: None,
) -> Generator[MethodDescription, None, None]:
    """Yield (unit, description of 2–3 lines) as descriptions come in, those in `values` first.

    Waits when the host limits the rate. Any other ModelError of `complete` is raised once the open
    requests have ended and their descriptions are stored. When the caller stops the generator,
    `stop()` ends them at once.
    """
    stored, tasks = _split(units, model, values, config_dir)
    yield from stored
    done = len(stored)
    progress(Progress("comments", done, len(units)))
    waiting = deque(tasks)
    running: dict[Future[str], _Task] = {}
    failure: BaseException | None = None
    limit = _RateLimit()
    pool = ThreadPoolExecutor(CONCURRENT)
    try:
        while running or (waiting and failure is None):
            pause = limit.seconds_left()
            while waiting and failure is None and pause <= 0 and len(running) < CONCURRENT:
                task = waiting.popleft()
                running[pool.submit(complete, task.messages(), MAX_TOKENS)] = task
            if not running:
                text = f"the host asks to wait, {pause:.0f} s left"
                progress(Progress("comments", done, len(units), text))
                time.sleep(min(pause, LOOK_SECONDS))
            for future in wait(running, LOOK_SECONDS, FIRST_COMPLETED).done:
                task, error = running.pop(future), future.exception()
                if isinstance(error, RateLimitError) and limit.refused(error):
                    waiting.appendleft(task)
                elif error is not None:
                    failure = failure or error
                else:
                    limit.answered()
                    text = " ".join(future.result().split())
                    values.set(task.key, text)
                    done += len(task.units)
                    progress(Progress("comments", done, len(units)))
                    yield from ((unit, text) for unit in task.units)
    except BaseException:
        stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failure:
        raise failure
