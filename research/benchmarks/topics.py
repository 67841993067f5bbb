"""How well changes of topic are told from follow-ups, by words and by a model.

    python -m research.benchmarks.topics --trees FOLDER [--unseen] [--answers FILE] [--prompts FILE]
        [--json FILE] [--markdown FILE]

Measured on research/evals/intents: topic_pairs.jsonl, whose repositories lie in FOLDER and are
indexed already where CODEQA_DATA says; and, of pairs.jsonl, which have no code, what a model says.
No model is asked: --prompts writes what one would be sent, --answers reads what one said, as lines
of {"id", "answer"}.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeqa.context.block import ContextBlock
from codeqa.engine import open_engine
from codeqa.routing.followup import (
    STAYS,
    Leaving,
    is_incomplete,
    leaving_by_words,
    messages_for,
    read_answer,
)
from codeqa.routing.intents import NEED_CODE, by_words, read
from codeqa.routing.personal import read_personal
from codeqa.routing.policy import decide, extract_features
from codeqa.search.query import parse_query
from codeqa.settings import load_settings
from codeqa.store import Tables
from codeqa.types import Exchange
from research.benchmarks.intents import TUNE, UNSEEN, rows
from research.benchmarks.machine import conditions

FOLLOW_UP = "follow_up"
Row = Mapping[str, Any]


def history_of(row: Row) -> list[Exchange]:
    """The conversation before the second message; only the last question has an answer."""
    asked = row["first"] if isinstance(row["first"], list) else [row["first"]]
    return [Exchange(one, "") for one in asked[:-1]] + [Exchange(asked[-1], row.get("answer", ""))]


def measure(row: Row, context: ContextBlock, tables: Tables, answer: str | None) -> dict[str, Any]:
    """What becomes of the code at hand, in `explicit`, where nothing is searched for unasked."""
    text = row["second"]
    query, history = parse_query(text), history_of(row)
    intent = by_words(read(text), has_history=True)
    leaving, took = STAYS, 0.0
    if intent.name in NEED_CODE:
        begun = time.perf_counter()
        leaving = leaving_by_words(query, read(text), history, context, tables)
        took = (time.perf_counter() - begun) * 1000
    incomplete = is_incomplete(query, read(text), features(row, leaving))
    asked = intent.name in NEED_CODE and (leaving.doubtful or incomplete)
    if asked and answer is not None:
        leaving = read_answer(answer, text).leaving or leaving
    decision = decide(features(row, leaving), intent)
    return {
        "id": row["id"],
        "second": text,
        "label": row["label"],
        "treated_as": decision.intent,
        "left_out": not decision.use_cached_context,
        "why": leaving.why,
        "asks_model": asked,
        "milliseconds": took,
    }


def features(row: Row, leaving: Leaving) -> Any:
    text = row["second"]
    intent = by_words(read(text), has_history=True)
    made = extract_features(
        text,
        read(text),
        parse_query(text),
        read_personal(text),
        tagged=False,
        intent=intent,
        by_words=intent,
        profile={},
        messages=2,
        has_context=True,
    )
    return made.leaving(leaving.to) if leaving.to else made


def measure_split(split: str, trees: Path, answers: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every topic pair of one half."""
    found, settings = [], load_settings()
    of_split = rows("topic_pairs", split)
    for repository in sorted({row["repository"] for row in of_split}):
        engine = open_engine(settings, trees / repository)
        try:
            engine.index.run()
            blocks: dict[str, ContextBlock] = {}
            for row in (row for row in of_split if row["repository"] == repository):
                first = row["first"][0]
                blocks[first] = blocks.get(first) or engine.chat.gatherer.context_for(first)
                given = (row, blocks[first], engine.tables())
                words = measure(*given, None)["left_out"]  # the first search opens the tables
                found.append(measure(*given, answers.get(row["id"])) | {"left_out_by_words": words})
        finally:
            engine.close()
    return found


def said_of_pairs(split: str, answers: Mapping[str, str]) -> dict[str, int]:
    """Of pairs.jsonl, which have no code, what a model alone says."""
    told = [row for row in rows("pairs", split) if row["id"] in answers]
    said = {
        row["id"]: read_answer(answers[row["id"]], row["second"]).leaving or STAYS for row in told
    }
    left = {key: bool(leaving.to) for key, leaving in said.items()}
    return {
        "changes": sum(not row["same_topic"] for row in told),
        "caught": sum(left[row["id"]] for row in told if not row["same_topic"]),
        "follow_ups": sum(row["same_topic"] for row in told),
        "dropped": sum(left[row["id"]] for row in told if row["same_topic"]),
    }


def counts(found: Sequence[Row]) -> dict[str, Any]:
    changes = [row for row in found if row["label"] != FOLLOW_UP]
    follow_ups = [row for row in found if row["label"] == FOLLOW_UP]
    times = sorted(row["milliseconds"] for row in found)

    def told(name: str) -> dict[str, int]:
        return {
            "changes": len(changes),
            "caught": sum(row[name] for row in changes),
            "follow_ups": len(follow_ups),
            "dropped": sum(row[name] for row in follow_ups),
        }

    return {
        "by_words": told("left_out_by_words"),
        "with_answers": told("left_out"),
        "asks_model": sum(row["asks_model"] for row in found),
        "milliseconds": {
            "median": round(statistics.median(times), 1),
            "longest": round(times[-1], 1),
        },
    }


def write_prompts(path: Path) -> None:
    """What a model would be sent for every pair of the unseen half."""
    every = [*rows("topic_pairs", UNSEEN), *rows("pairs", UNSEEN)]
    asked = {
        row["id"]: messages_for(row["second"], True, history_of(row), row.get("code", ()))
        for row in every
    }
    lines = (json.dumps({"id": name, "messages": sent}) for name, sent in asked.items())
    path.write_text("\n".join(lines) + "\n", "utf-8")


def report(measured: Mapping[str, Any]) -> str:
    lines = [
        "# Changes of topic",
        "",
        "`" + measured["conditions"]["command"] + "`",
        "",
        "After one or two questions about a repository, with the code found for the first at hand. "
        "The words ask no embedding: the figures are the same with any and with none. Caught is a "
        "change, dropped a follow-up, that is not sent that code, where nothing is searched for "
        "unasked. Constants were set on `tune`.",
        "",
    ]
    for split, half in measured["halves"].items():
        counted = half["counts"]
        lines += [f"## {split}", "", _sentence("Topic pairs, by words", counted["by_words"])]
        times = counted["milliseconds"]
        lines += [
            f"A model would be asked for {counted['asks_model']} of {len(half['rows'])}. The words "
            f"take {times['median']} ms at the median, {times['longest']} at most, before units "
            "are in memory.",
        ]
        if half["pairs"]["changes"]:
            lines.append(_sentence("With its answers", counted["with_answers"]))
            lines.append(_sentence("Pairs, by it alone", half["pairs"]))
        if split != TUNE:  # of the unseen half only the counts are shown
            continue
        lines += ["", "| | message | as | earlier code | why |", "|---|---|---|---|---|"]
        lines += [
            f"| {row['label']} | {row['second']} | {row['treated_as']} | "
            f"{'left out' if row['left_out'] else 'kept'} | {row['why']} |"
            for row in sorted(half["rows"], key=lambda row: row["label"])
        ]
        lines.append("")
    return "\n".join(lines)


def _sentence(what: str, counted: Mapping[str, Any]) -> str:
    return (
        f"{what}: {counted['caught']} of {counted['changes']} changes caught, "
        f"{counted['dropped']} of {counted['follow_ups']} follow-ups dropped."
    )


def read_answers(lines: Iterable[str]) -> dict[str, str]:
    return {row["id"]: row["answer"] for row in map(json.loads, filter(str.strip, lines))}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="research.benchmarks.topics", description=__doc__)
    parser.add_argument("--trees", type=Path, help="folder of the repositories")
    parser.add_argument("--unseen", action="store_true", help="count the unseen half as well")
    parser.add_argument("--answers", type=Path, help="what a model said")
    parser.add_argument("--prompts", type=Path, help="write what a model would be sent, and stop")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(arguments)
    if given.prompts or not given.trees:
        write_prompts(given.prompts or parser.error("name --trees or --prompts"))
        return 0
    answers = read_answers(given.answers.read_text("utf-8").splitlines()) if given.answers else {}
    halves = {}
    for split in (TUNE, UNSEEN) if given.unseen else (TUNE,):
        found = measure_split(split, given.trees, answers)
        pairs = said_of_pairs(split, answers)
        halves[split] = {"counts": counts(found), "pairs": pairs, "rows": found}
    command = ["python", "-m", "research.benchmarks.topics", *(arguments or sys.argv[1:])]
    measured = {"conditions": conditions(command), "halves": halves}
    text = report(measured)
    print(text)
    if given.json:
        given.json.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")
    if given.markdown:
        given.markdown.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
