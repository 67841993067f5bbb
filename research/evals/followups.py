"""Whether follow-ups bring the code that they ask for.

    python -m research.evals.followups --trees DIR

A line of `followups.jsonl` is a conversation about one repository: its first question, and its
follow-ups as a user types them, each with the definitions of which one must stand in the context
(`path#qualified name`, both as shell patterns). They are asked in order, without a language model;
the repositories lie below `--trees` and are indexed already.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from codeqa.chat.ask import Chat
from codeqa.chat.values import AskOptions
from codeqa.engine import open_engine
from codeqa.settings import load_settings
from codeqa.store import Tables
from codeqa.types import EFFORTS, Chunk

CONVERSATIONS = Path(__file__).with_suffix(".jsonl")


def found(tables: Tables, chunks: Sequence[Chunk], wanted: Sequence[str]) -> bool:
    """Whether one of `wanted`, or lines of it, is among `chunks`."""
    held = tables.by_ids([chunk.unit_id for chunk in chunks if chunk.unit_id])
    names = [f"{unit.path}#{unit.qualified_name}" for unit in held]
    return any(fnmatchcase(name, pattern) for name in names for pattern in wanted)


def asked(chat: Chat, row: Mapping[str, Any], effort: str) -> Iterator[tuple[str, bool, str]]:
    """Each follow-up, whether what it wants is in its context, and what was searched for."""
    tables, conversation = chat.gatherer.toolbox.tables(), f"followups-{row['first']}"
    for number, one in enumerate(({"question": f"@codebase {row['first']}"}, *row["followups"])):
        options = AskOptions(
            one["question"],
            conversation=conversation,
            retrieval="auto",
            effort=effort,
            use_model=False,
        )
        *_, done = chat.ask(options)
        turn = chat.conversations.turn(done.data["turn"])
        if number:
            yield one["question"], found(tables, turn.chunks, one["wanted"]), turn.rewritten


def main() -> None:
    """Print a line for each follow-up, and how many are answered."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--effort", choices=EFFORTS, default="normal")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in CONVERSATIONS.read_text("utf-8").splitlines()]
    results = []
    for repository in dict.fromkeys(row["repo"] for row in rows):
        root = arguments.trees / repository
        with closing(open_engine(load_settings(root), root)) as engine:
            for row in (row for row in rows if row["repo"] == repository):
                for question, there, searched in asked(engine.chat, row, arguments.effort):
                    results.append(there)
                    mark = "+" if there else "-"
                    print(f"{mark} {repository}: {row['first']} → {question}  [{searched}]")
    print(f"{sum(results)} of {len(results)} in context, effort {arguments.effort}")


if __name__ == "__main__":
    main()
