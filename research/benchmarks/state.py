"""How long a turn takes to be saved and read: in a file, and in PostgreSQL where
CODEQA_STATE names it.

    python -m research.benchmarks.state --json research/benchmarks/results/state.json

It writes turns of its own into a conversation of a user of its own, and deletes them at the end.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from codeqa.settings import load_settings
from codeqa.state import State
from codeqa.state.records import Turn, TurnExtras

USER = "benchmark"


def milliseconds(work: Callable[[int], object], rounds: int) -> dict[str, float]:
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        work(number)
        times.append(1_000 * (time.perf_counter() - began))
    cuts = statistics.quantiles(times, n=20)
    return {"p50_ms": round(cuts[9], 3), "p95_ms": round(cuts[18], 3)}


def measure(state: State, rounds: int) -> dict[str, dict[str, float]]:
    """Turns of an answer of 2 kB with 20 kB of code, as they are in use; 512 bytes of vector."""
    details = {"chunks": ["x" * 20_000], "finished": True}

    def save(number: int) -> None:
        turn = Turn(
            f"bench{number}", f"c{number // 10}", "who?", "y" * 2_000, "", details, user=USER
        )
        state.turns.save(turn, extras=TurnExtras("e", bytes(512)))

    state.user_data.delete(USER)
    found = {
        "save": milliseconds(save, rounds),
        "read one": milliseconds(lambda n: state.turns.get(f"bench{n}", USER), rounds),
        "read a conversation of ten": milliseconds(
            lambda n: state.turns.active(f"c{n // 10}", USER), rounds
        ),
    }
    state.user_data.delete(USER)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    address = load_settings().state.get_secret_value()
    with tempfile.TemporaryDirectory() as folder:
        found = {"file": measure(State(Path(folder)), given.rounds)}
        if address:
            found["postgresql"] = measure(State(Path(folder), address), given.rounds)
    text = json.dumps(found, indent=2)
    print(text)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
