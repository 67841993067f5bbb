"""The best files put in order by a language model that sees how each begins (listwise reranking).

A model says in one call which of the first files answers the question, which neither words nor
vectors can: Sun et al., "Is ChatGPT Good at Search?", EMNLP 2023. It reads repository text, so
its answer is numbers and nothing else, and it moves files that the search found, never adds one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from codeqa.llm import (
    DONE,
    Cancelled,
    Message,
    Model,
    generate_bounded,
    skipped_stage,
)
from codeqa.prompts import render_prompt
from codeqa.repository.secrets import mask_secrets
from codeqa.search.ranking import FileHit
from codeqa.types import Hit, StageTime, Unit

FILES_SHOWN = 12
"""Files that the model is shown; with a draft the right one is among the first ten for .92 of the
questions on code that no model has read."""
UNITS_SHOWN = 2
LINES_SHOWN = 14
LINE_CHARACTERS = 160
"""Of each file its best units, of each unit its first lines: 3,500 to 4,500 tokens in all."""
SMALLEST_WINDOW = 8_192
"""Tokens that a model must take for that to fit, with the rules and an answer."""
TOO_SMALL = "the model takes too little at once to read the files"
FILES_NAMED = 5
"""Numbers that are read of an answer: more than anybody has an opinion on."""
ANSWER_TOKENS = 500
"""Five numbers are ten; models that reason before they answer are given room to."""
ORDERS_KEPT = 256
"""Orders that are remembered: a question that is asked again, or whose answer is, costs no call."""
ORDER = "order"
"""Name of the stage."""
ORDERED = "ordered by the language model"
LEAD, STEP = 3.0, 0.4
"""Score of the best file that was named, as a multiple of the best score before, and how much less
each further one gets; so the fifth still stands before what was not named. The units of a named
file share this by their own scores, so that a weak unit of the best file does not stand before
the best unit of the second. Between 1.6 and 3, .1 and .4, nothing differs by more than .02."""

_NUMBER = re.compile(r"\d{1,3}")
_ONLY_NUMBERS = re.compile(r"[\s\d,;.\[\]()>#*`-]*")

Ordered = tuple[list[Hit], list[FileHit]]


class ListwiseReranker:
    """Orders files by what a language model says of them; safe to share between threads."""

    def __init__(self, seconds: float, config_dir: Path | None = None) -> None:
        self._seconds = seconds
        self._config_dir = config_dir
        self._known: dict[tuple[str, str, str], list[str]] = {}

    def run(
        self,
        model: Model,
        question: str,
        hits: Sequence[Hit],
        files: Sequence[FileHit],
        cancelled: Cancelled,
        no_help: str = "",
    ) -> Generator[StageTime, None, tuple[StageTime, Ordered]]:
        """Yields the stage as it begins and as it ends; returns it with units and files.

        Their order stays where the model fails, takes too long or says something else than
        numbers: the stage says so. It is skipped for the reason `no_help`, and for a model that
        takes too little at once. Raises nothing.
        """
        # Asked for only now: a local server knows its window once the model has been loaded.
        if not no_help and 0 < model.window() < SMALLEST_WINDOW:
            no_help = TOO_SMALL
        if no_help:
            yield (stage := skipped_stage(ORDER, no_help))
            return stage, (list(hits), list(files))
        shown, text = shown_files(question, files, hits)
        key = (model.name, question, text)
        order = self._known.get(key, [])
        if order:
            begun = StageTime(ORDER, model=model.name, host=model.host)
            yield begun
            yield (stage := replace(begun, outcome=DONE))
        else:
            ask = partial(order_messages, question, text, self._config_dir)
            read = partial(read_order, shown=shown)
            stage = yield from generate_bounded(
                ORDER, model, ask, ANSWER_TOKENS, self._seconds, cancelled, usable=read
            )
            order = read(stage.text) if stage.outcome == DONE else []
        if not order:
            return stage, (list(hits), list(files))
        if len(self._known) >= ORDERS_KEPT:
            self._known.clear()
        self._known[key] = order
        return stage, reorder(order, hits, files, ORDERED)


def shown_files(
    question: str, files: Sequence[FileHit], hits: Sequence[Hit]
) -> tuple[list[FileHit], str]:
    """The first FILES_SHOWN of `files` as the model is shown them, and the message, in which they
    are numbered from 1, with the beginnings of their best units among `hits`.

    They are shuffled, the same way for the same question: models favour what stands first.
    """
    shown = list(files[:FILES_SHOWN])
    random.Random(question).shuffle(shown)
    parts = []
    for number, file in enumerate(shown, 1):
        own = [hit.unit for hit in hits if hit.unit.path == file.path][:UNITS_SHOWN]
        parts.append(f"[{number}] {file.path}\n" + "".join(map(_beginning, own)))
    return shown, "\n".join(parts)


def order_messages(question: str, shown: str, config_dir: Path | None = None) -> list[Message]:
    """What the model is asked. Raises SettingsError for a prompt override that cannot be used."""
    render = partial(render_prompt, config_dir=config_dir)
    user = render("order_user", query=mask_secrets(question), candidates=shown)
    return [
        {"role": "system", "content": render("order_system")},
        {"role": "user", "content": user},
    ]


def read_order(answer: str, shown: Sequence[FileHit]) -> list[str]:
    """Paths that the answer names, best first; [] unless its last line is numbers of `shown`
    alone."""
    last = answer.strip().rpartition("\n")[2]
    numbers = [int(text) for text in _NUMBER.findall(last)]
    if not _ONLY_NUMBERS.fullmatch(last) or any(not 1 <= n <= len(shown) for n in numbers):
        return []
    return list(dict.fromkeys(shown[number - 1].path for number in numbers))[:FILES_NAMED]


def reorder(
    order: Sequence[str], hits: Sequence[Hit], files: Sequence[FileHit], why: str
) -> tuple[list[Hit], list[FileHit]]:
    """Units and files with the files of `order` first; `why` is told of what was moved."""
    top = hits[0].score if hits else 0.0
    best_file = files[0].score if files else 0.0
    lead = {path: LEAD - STEP * place for place, path in enumerate(order)}
    best: dict[str, float] = {}  # of the hits as they are now: a reranker may have scored them anew
    for hit in hits:
        if hit.unit.path in lead:
            best[hit.unit.path] = max(hit.score, best.get(hit.unit.path, 0.0))
    moved = []
    for hit in hits:
        path = hit.unit.path
        if best.get(path, 0.0) > 0:
            score = top * lead[path] * hit.score / best[path]
            hit = replace(hit, score=score, why=(why, *hit.why))
        moved.append(hit)
    moved.sort(key=lambda hit: -hit.score)
    first = {hit.unit.id: hit for hit in moved}
    listed = []
    for file in files:
        score = best_file * lead[file.path] if file.path in lead else file.score
        listed.append(FileHit(file.path, score, first.get(file.best.unit.id, file.best)))
    listed.sort(key=lambda file: -file.score)
    return moved, listed


def _beginning(unit: Unit) -> str:
    lines = unit.source_code.split("\n")[:LINES_SHOWN]
    numbered = [
        f"{number:>5}| {line[:LINE_CHARACTERS]}"
        for number, line in enumerate(lines, unit.start_line)
    ]
    more = unit.end_line - unit.start_line + 1 - len(lines)
    rest = f"       … {more} more lines\n" if more > 0 else ""
    return f"{unit.qualified_name}\n" + "\n".join(numbered) + f"\n{rest}"
