"""Descriptions of methods written by a language model, off unless asked for (S1.11, S1.12).

A description is kept by the hash of everything that decides it (model, prompt, language and
source), so that a stopped run goes on where it was and code that moves is not paid for twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

from codeqa.embeddings import fast_embedding
from codeqa.errors import CodeQAError, ContextLengthError
from codeqa.indexing.lock import hold
from codeqa.llm import Complete
from codeqa.prompts import render_prompt
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Filter, Location, Tables
from codeqa.types import METHOD_KINDS, Progress, Unit

CONCURRENT = 16
"""Requests in flight (S0.20)."""
MAX_TOKENS = 1_024
"""S0.20. Three lines need a tenth; the rest is for models that reason before they write."""
TYPICAL_TOKENS = 60
"""Of a description, for telling what a run will take."""
MAX_CHARACTERS = 12_000
"""Of a method's source; a longer one is described by its beginning."""
WORTH_LINES = 3
"""Shorter definitions say themselves what they do."""

ROWS_PER_COMMIT = 64
"""Descriptions written at once: what a killed run has to write, not to buy, again."""

Described = tuple[Unit, str]


def candidates(location: Location) -> list[Unit]:
    """Methods of the index of `location` that are worth a description, source code first.

    Raises IndexMissingError when nothing was indexed.
    """
    methods = Tables.open(location).units(Filter(kinds=tuple(sorted(METHOD_KINDS))))
    return sorted(worth_describing(methods), key=lambda unit: unit.role != "source")


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

    What was bought is kept even when the run fails or is stopped; then `stop()` ends the
    requests that are under way. Raises ModelError.
    """
    from codeqa.store.comments import write_comments
    from codeqa.store.writer import Writer

    changed = 0
    fast = fast_embedding()
    with hold(location):
        meta = Tables.open(location).meta()
        writer = Writer.open(location, meta.parser, meta.vector)
        described = describe(
            units,
            complete,
            model=model,
            cache=State(settings.data_dir),
            config_dir=settings.config_dir,
            progress=progress,
            stop=stop,
        )
        waiting: dict[str, str] = {}
        try:
            with closing(described):
                for unit, text in described:
                    waiting[unit.id] = text
                    if len(waiting) >= ROWS_PER_COMMIT:
                        changed += write_comments(writer, waiting, fast)
                        waiting.clear()
        finally:
            changed += write_comments(writer, waiting, fast)
            if changed:
                writer.tidy()
    return changed


def worth_describing(units: Iterable[Unit]) -> list[Unit]:
    """Methods that are long enough for a description to add something."""
    return [
        unit for unit in units if unit.is_method and unit.end_line - unit.start_line >= WORTH_LINES
    ]


def describe(
    units: Sequence[Unit],
    complete: Complete,
    *,
    model: str,
    cache: State | None = None,
    config_dir: Path | None = None,
    concurrency: int = CONCURRENT,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> Generator[Described, None, None]:
    """Yield (unit, description of 2–3 lines) as descriptions come in, known ones first.

    Raises the first ModelError of `complete` once what was under way has come back and is kept.
    A caller that stops, as by Ctrl-C, does not wait for that: `stop()` is to end it.
    """
    done = 0

    def report() -> None:
        if progress:
            progress(Progress("comments", done, len(units)))

    missing: list[tuple[Unit, str, str]] = []
    for unit in units:
        prompt = render_prompt("llm_comment", config_dir, language=unit.language)
        key = _key(model, prompt, unit)
        known = cache.get(key) if cache else None
        if known is None:
            missing.append((unit, prompt, key))
        else:
            done += 1
            yield unit, known
    report()

    waiting = iter(missing)
    running: dict[Future[str], tuple[Unit, str]] = {}
    failure: CodeQAError | None = None
    pool = ThreadPoolExecutor(max_workers=max(1, concurrency))

    def start() -> None:
        for unit, prompt, key in waiting:
            running[pool.submit(_ask, complete, prompt, unit)] = (unit, key)
            return

    try:
        for _ in range(concurrency):
            start()
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                unit, key = running.pop(future)
                try:
                    text = future.result()
                except CodeQAError as error:
                    failure = failure or error
                    continue
                if cache:
                    cache.set(key, text)
                done += 1
                report()
                if failure is None:
                    start()
                yield unit, text
    except BaseException:
        if stop:
            stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    if failure:
        raise failure


def _ask(complete: Complete, prompt: str, unit: Unit) -> str:
    """The description of one method; of its first half when the whole is too long to read."""
    try:
        return _ask_about(complete, prompt, unit, MAX_CHARACTERS)
    except ContextLengthError:
        half = min(len(unit.source_code), MAX_CHARACTERS) // 2
        return _ask_about(complete, prompt, unit, half)


def _ask_about(complete: Complete, prompt: str, unit: Unit, characters: int) -> str:
    source = unit.source_code
    if len(source) > characters:
        source = source[: max(source.rfind("\n", 0, characters), 0) or characters]
    messages = [
        {"role": "system", "content": prompt},
        {"role": "user", "content": f"{unit.path}\n\n{source}"},
    ]
    return " ".join(complete(messages, MAX_TOKENS).split())


def _key(model: str, prompt: str, unit: Unit) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (model, prompt, unit.path, unit.source_code):
        digest.update(part.encode("utf-8", "replace"))
        digest.update(b"\0")
    return f"comment:{digest.hexdigest()}"
