"""Long use: one process edits and indexes again while others search and ask."""

from __future__ import annotations

import gc
import random
import resource
import sys
import threading
from pathlib import Path

import pytest

from codeqa.chat.values import AskOptions
from codeqa.engine import open_engine
from codeqa.settings import Settings
from tests.repositories import Write

ROUNDS = 120
WORDS = ("basket", "visitor", "ledger", "harbour", "signal", "meadow", "lantern", "pebble")


def module(chance: random.Random, number: int) -> str:
    """A module whose function of that number can always be found by its name."""
    first, second = chance.sample(WORDS, 2)
    body = f"    {first} = value\n    {second} = {first}\n    return {second}\n"
    return f'def find_{number}(value):\n    """Takes the {first}."""\n{body}'


@pytest.mark.slow
def test_searching_while_files_change_never_fails_and_memory_stays(
    settings: Settings, write_files: Write, tmp_path: Path
) -> None:
    chance = random.Random(7)
    files = {f"part_{n}.py": module(chance, n) for n in range(40)}
    repository = write_files(tmp_path / "repo", files)
    engine = open_engine(settings, repository)
    engine.index.run()
    failures: list[BaseException] = []
    done = threading.Event()

    def use() -> None:
        try:
            while not done.is_set():
                hits = engine.search.search("find_39").units
                assert hits[0].unit.name == "find_39"
                kinds = [
                    event.kind
                    for event in engine.chat.ask(AskOptions("@codebase where is find_39?"))
                ]
                assert kinds[-1] == "done"
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=use) for _ in range(2)]
    for reader in readers:
        reader.start()
    warm = 0
    for step in range(ROUNDS):
        name = f"part_{chance.randrange(39)}.py"
        if chance.random() < 0.3:
            (repository / name).unlink(missing_ok=True)
        else:
            (repository / name).write_text(module(chance, int(name[5:-3])))
        engine.index.run()
        if step == ROUNDS // 2:
            gc.collect()
            warm = peak_bytes()
    done.set()
    for reader in readers:
        reader.join(30)
    engine.close()
    assert failures == []
    present = sum(1 for _ in repository.glob("*.py"))
    assert engine.index.status().files == present
    assert peak_bytes() - warm < 150_000_000


def peak_bytes() -> int:
    """Most memory that this process has held so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
