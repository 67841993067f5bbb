"""What a turn takes beside model and search: `python -m benchmarks.pipeline [--json FILE]`.

A conversation of `--messages` messages is kept, with contexts and details as real ones have, and
messages of every intent are put to it whose answer needs no search. What answers writes at once.
Measured is the whole turn as a caller sees it, from the question to the last event, and each of
its twelve steps.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import conditions
from codeqa.chat import AskOptions, GenerationInput, Piece
from codeqa.engine import Engine, open_engine
from codeqa.settings import load_settings

ASKED = (
    "and why is that?", "thanks, that helps", "what does it do with the second argument?",
    "my name is Ada", "what is my name?", "is there another way to do that?",
    "how does the worker pool restart a worker that died?", "who wrote the first compiler?",
)  # fmt: skip
SUBJECTS = ("session", "request context", "blueprint", "template loader", "test client", "config")
WARM_UP = 5


class AtOnce:
    """Writes a short answer without any model."""

    name = "at-once"
    needs_evidence = False

    def generate(self, asked: GenerationInput) -> Iterator[Piece]:
        yield "It is kept in memory. "
        yield "[src/app.py:1-3]\n"


def conversation(engine: Engine, messages: int) -> str:
    """The id of a conversation of so many messages: one is asked with a search, and kept again
    under other ids."""
    name = uuid.uuid4().hex
    state = engine.conversations.state
    for _ in engine.chat.ask(AskOptions("@codebase how does `save` work?", conversation=name)):
        pass
    engine.conversations.flush()
    (real,) = state.turns.active(name)
    for number in range(messages // 2 - 1):
        question = f"how does the {SUBJECTS[number % len(SUBJECTS)]} handle case {number}?"
        turn = dataclasses.replace(
            real, id=uuid.uuid4().hex, question=question, created=0.0, parent=""
        )
        state.turns.save(turn)
    return name


def measure(messages: int, rounds: int) -> dict[str, Any]:
    """Median and 95th percentile of the whole turn and of every step, in milliseconds."""
    whole: list[float] = []
    steps: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder) / "shop"
        repository.mkdir()
        body = "".join(f"    value_{n} = {n}\n" for n in range(60))
        (repository / "app.py").write_text(
            "".join(f"def save_{n}(item):\n{body}    return item\n\n" for n in range(6))
        )
        settings = load_settings(data=Path(folder) / "data")
        engine = open_engine(settings, repository, generator=AtOnce())
        engine.index.run()
        name = conversation(engine, messages)
        for number in range(WARM_UP + rounds):
            started = time.perf_counter()
            options = AskOptions(ASKED[number % len(ASKED)], conversation=name)
            events = list(engine.chat.ask(options))
            took = 1000 * (time.perf_counter() - started)
            if events[-1].kind != "done":
                raise SystemExit(f"a turn failed: {dict(events[-1].data)}")
            if number < WARM_UP:
                continue
            whole.append(took)
            for step in events[-1].data["steps"]:
                steps.setdefault(step["name"], []).append(step["milliseconds"])
        engine.close()
    return {
        "messages": messages,
        "turns": rounds,
        "whole": figures(whole),
        "steps": {name: figures(values) for name, values in steps.items()},
    }


def figures(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {"median": round(statistics.median(ordered), 2), "p95": round(p95, 2)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=200, help="default 200")
    parser.add_argument("--turns", type=int, default=200, help="turns measured; default 200")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    result = measure(options.messages, options.turns)
    whole = result["whole"]
    print(f"a turn in a conversation of {options.messages} messages, without model and search:")
    print(f"  {'whole':<20} {whole['median']:7.2f} {whole['p95']:7.2f} (p95) ms")
    for name, value in result["steps"].items():
        print(f"  {name:<20} {value['median']:7.2f} {value['p95']:7.2f} (p95) ms")
    if options.json:
        command = ["python", "-m", "benchmarks.pipeline", *(arguments or sys.argv[1:])]
        report = {**conditions(command), **result}
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
