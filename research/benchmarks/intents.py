"""How well intents are told by words alone, and like questions by vectors.

    python -m research.benchmarks.intents [--unseen] [--json FILE] [--markdown FILE]

Measured on research/evals/intents: the half that lexicon and thresholds were made on, with
`--unseen` also the other, which is then counted and never shown. No model is asked, nothing is
sent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from codeqa.chat.vectors import SIMILAR_FROM, cosine
from codeqa.routing.intents import INTENTS, MODEL_BELOW, Intent, by_words, read
from codeqa.text import strip_tag
from research.benchmarks.machine import conditions

ROWS = Path(__file__).resolve().parent.parent / "evals" / "intents"
TUNE, UNSEEN = "tune", "unseen"
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01)
STEP = 0.05
REPEATS = 5


def rows(name: str, split: str) -> list[dict[str, Any]]:
    """The rows of one half; the other is dropped as it is read."""
    text = (ROWS / f"{name}.jsonl").read_text("utf-8")
    return [row for line in text.splitlines() if (row := json.loads(line))["split"] == split]


def scores(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Per intent precision, recall and F1, their mean, and the matrix of (true, said) pairs."""
    counts = Counter(pairs)
    each = {}
    for intent in INTENTS:
        right = counts[intent, intent]
        said = sum(counts[other, intent] for other in INTENTS)
        there = sum(counts[intent, other] for other in INTENTS)
        precision, recall = _share(right, said), _share(right, there)
        f1 = _share(2 * right, said + there)
        each[intent] = {"precision": precision, "recall": recall, "f1": f1, "messages": there}
    return {
        "messages": sum(counts.values()),
        "accuracy": _share(sum(counts[i, i] for i in INTENTS), sum(counts.values())),
        "macro_f1": round(statistics.mean(row["f1"] for row in each.values()), 3),
        "intents": each,
        "matrix": {true: [counts[true, said] for said in INTENTS] for true in INTENTS},
    }


def measure_messages(split: str) -> dict[str, Any]:
    """What the rules say of one half: of untagged messages, and of all with the tag's rule."""
    plain: list[tuple[str, Intent]] = []
    english = []
    tagged = []
    times = []
    for row in rows("messages", split):
        if row["tagged"]:
            tagged.append((row["intent"], "knowledge_base"))
            continue
        text, history = strip_tag(row["text"]), row["context"] is not None
        plain.append((row["intent"], by_words(read(text), has_history=history)))
        if row["language"] == "en":
            english.append((row["intent"], plain[-1][1].name))
        begun = time.process_time()
        for _ in range(REPEATS):
            by_words(read(text), has_history=history)
        times.append((time.process_time() - begun) / REPEATS * 1000)
    said = [(true, found.name) for true, found in plain]
    times.sort()
    return {
        "untagged": scores(said),
        "english": scores(english),
        "with_the_tag": scores([*said, *tagged]),
        "confidence": [_bin(plain, low, high) for low, high in pairwise(BINS)],
        "for_the_model": _bin(plain, 0.0, MODEL_BELOW),
        "milliseconds": {
            "median": round(statistics.median(times), 3),
            "p95": round(times[int(len(times) * 0.95)], 3),
            "longest": round(times[-1], 3),
        },
    }


def measure_pairs(split: str) -> dict[str, Any]:
    """How the shipped table tells topics apart on one half."""
    from codeqa.embeddings.registry import fast_embedding

    embedding = fast_embedding()
    if embedding is None:
        raise SystemExit("This installation has no table to measure with.")
    same: list[float] = []
    other: list[float] = []
    silent = 0
    for row in rows("pairs", split):
        first, second = (embedding.embed_query(row[name]) for name in ("first", "second"))
        if not (first.any() and second.any()):
            silent += 1
            continue
        (same if row["same_topic"] else other).append(cosine(first, second))
    at = SIMILAR_FROM
    return {
        "embedding": embedding.name,
        "similar_above": at,
        "without_a_vector": silent,
        "same_topic": len(same),
        "other_topic": len(other),
        "same_topic_above": sum(score > at for score in same),
        "other_topic_above": sum(score > at for score in other),
        "highest_of_another_topic": round(max(other), 3),
        "below": [
            {
                "cosine": round(step * STEP, 2),
                "same_topic": sum(score < step * STEP for score in same),
                "other_topic": sum(score < step * STEP for score in other),
            }
            for step in range(-2, 8)
        ],
    }


def best_threshold(measured: Mapping[str, Any]) -> float:
    """What `vectors.SIMILAR_FROM` is to hold by the figures of the `tune` half.

    It is the lowest step that no pair of different topics exceeds.
    """
    return round((measured["highest_of_another_topic"] // STEP + 1) * STEP, 2)


def report(measured: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    lines = ["# Intents and topics", "", "`" + measured["conditions"]["command"] + "`", ""]
    lines += [
        "By the words alone, without a model, on `research/evals/intents`. The lexicon was made "
        "with the development messages and `tune`; of `unseen` no message was read "
        "(research/evals/intents/README.md). Times are of the processor, for one message.",
        "",
    ]
    for split, half in measured["halves"].items():
        lines += [f"## {split}", "", *_messages_table(half["messages"]), ""]
        lines += [*_pairs_text(half["pairs"]), ""]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="research.benchmarks.intents", description=__doc__)
    parser.add_argument("--unseen", action="store_true", help="also count the unseen half")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    given = parser.parse_args(arguments)
    command = ["python", "-m", "research.benchmarks.intents", *(arguments or sys.argv[1:])]
    halves = {
        split: {"messages": measure_messages(split), "pairs": measure_pairs(split)}
        for split in ([TUNE, UNSEEN] if given.unseen else [TUNE])
    }
    measured = {
        "conditions": conditions(command),
        "halves": halves,
        "best_threshold_on_tune": best_threshold(halves[TUNE]["pairs"]),
    }
    text = report(measured)
    print(text)
    if given.json:
        given.json.write_text(json.dumps(measured, indent=1) + "\n", "utf-8")
    if given.markdown:
        given.markdown.write_text(text, "utf-8")
    return 0


def _share(part: float, whole: float) -> float:
    return round(part / whole, 3) if whole else 0.0


def _bin(plain: Sequence[tuple[str, Intent]], low: float, high: float) -> dict[str, Any]:
    inside = [(true, found) for true, found in plain if low <= found.confidence < high]
    wrong = sum(true != found.name for true, found in inside)
    return {"from": low, "to": min(high, 1.0), "messages": len(inside), "wrong": wrong}


def _messages_table(half: Mapping[str, Any]) -> list[str]:
    plain, tagged, asked = half["untagged"], half["with_the_tag"], half["for_the_model"]
    lines = ["| intent | messages | precision | recall | F1 |", "|---|---|---|---|---|"]
    for name, row in plain["intents"].items():
        figures = " | ".join(f"{row[key]:.3f}" for key in ("precision", "recall", "f1"))
        lines.append(f"| {name} | {row['messages']} | {figures} |")
    wrong = sum(step["wrong"] for step in half["confidence"])
    times = half["milliseconds"]
    lines += [
        "",
        f"{plain['messages']} messages without the tag: macro-F1 **{plain['macro_f1']:.3f}**, "
        f"accuracy {plain['accuracy']:.3f}. All {tagged['messages']}, of the others the tag "
        f"decides: macro-F1 **{tagged['macro_f1']:.3f}**, accuracy {tagged['accuracy']:.3f}. "
        f"Of the {half['english']['messages']} in English without the tag: macro-F1 "
        f"**{half['english']['macro_f1']:.3f}**; other languages are for a model.",
        "",
        f"{asked['messages']} are below the confidence {MODEL_BELOW} at which a model is asked; of "
        f"them {asked['wrong']} are wrong, of all {wrong}. A message takes {times['median']} ms at "
        f"the median, {times['p95']} at p95, {times['longest']} at most.",
        "",
        "| true \\ said | " + " | ".join(INTENTS) + " |",
        "|---" * (len(INTENTS) + 1) + "|",
    ]
    lines += [f"| {name} | {' | '.join(map(str, row))} |" for name, row in plain["matrix"].items()]
    lines += ["", "| confidence | messages | wrong |", "|---|---|---|"]
    lines += [
        f"| {step['from']} to {step['to']} | {step['messages']} | {step['wrong']} |"
        for step in half["confidence"]
    ]
    return lines


def _pairs_text(pairs: Mapping[str, Any]) -> list[str]:
    lines = [
        f"Similarity by `{pairs['embedding']}`: above {pairs['similar_above']} lie "
        f"{pairs['same_topic_above']} of {pairs['same_topic']} pairs of one topic and "
        f"{pairs['other_topic_above']} of {pairs['other_topic']} of two; "
        f"{pairs['without_a_vector']} have no vector. No threshold tells changes of topic:",
        "",
        "| cosine below | of one topic | of two |",
        "|---|---|---|",
    ]
    lines += [
        f"| {step['cosine']} | {step['same_topic']} | {step['other_topic']} |"
        for step in pairs["below"]
    ]
    return lines


if __name__ == "__main__":
    sys.exit(main())
