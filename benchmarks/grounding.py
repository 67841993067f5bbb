"""Which sentences of an answer have their evidence: `python -m benchmarks.grounding TREES`.

TREES is what `benchmarks.retrieval.trees` lays out. Every sentence of evals/grounding is judged by
the chunks that were sent for its answer. Printed are precision and recall of each class, on the
half that thresholds were set on and on the half that was only counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from codeqa.chat.check import Grounding, sentences_of
from codeqa.types import Chunk

ANSWERS = Path(__file__).resolve().parent.parent / "evals" / "grounding" / "answers.jsonl"
CLASSES = ("supported", "unsupported", "general")


def chunks_of(answer: dict[str, Any], trees: Path) -> list[Chunk]:
    """What was sent for `answer`, read from its repository's tree."""
    chunks = []
    for place in answer["sent"]:
        path, _, lines = place.rpartition(":")
        start, end = map(int, lines.split("-"))
        with (trees / answer["repository"] / path).open(encoding="utf-8", newline="") as file:
            content = "\n".join(file.read().split("\n")[start - 1 : end])
        chunks.append(Chunk(place, path, start, end, "", content))
    return chunks


def main() -> None:
    """Judge every sentence and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("trees", type=Path)
    parser.add_argument("--half", choices=("tuned", "unseen"), help="only this one")
    parser.add_argument("--wrong", action="store_true", help="show what was judged wrongly")
    options = parser.parse_args()
    answers = [json.loads(line) for line in ANSWERS.read_text("utf-8").splitlines()]
    Grounding(chunks_of(answers[0], options.trees)).judge("The table is read before the clock runs")
    for half in ("tuned", "unseen"):
        if options.half in (None, half):
            chosen = [answer for answer in answers if answer["half"] == half]
            _report(half, chosen, options.trees, options.wrong)


def _report(half: str, answers: list[dict[str, Any]], trees: Path, wrong: bool) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    right_chunk, took, shares = 0, list[float](), list[tuple[float, float, str]]()
    for answer in answers:
        chunks = chunks_of(answer, trees)
        labelled = {one["text"]: one for one in answer["sentences"]}
        started = time.process_time()
        grounding = Grounding(chunks)
        judged = [one for text in sentences_of(answer["answer"]) if (one := grounding.judge(text))]
        took.append(1000 * (time.process_time() - started))
        claims = [one for one in judged if one.verdict != "general"]
        share = sum(one.verdict == "supported" for one in claims) / max(1, len(claims))
        truth = [one["label"] for one in answer["sentences"] if one["label"] != "general"]
        shares.append((share, truth.count("supported") / len(truth), answer["id"]))
        for one in judged:
            label = labelled.pop(one.text)
            counts[label["label"], one.verdict] += 1
            if one.verdict == label["label"] == "supported":
                places = {answer["sent"][number - 1] for number in label["chunks"]}
                right_chunk += f"{one.path}:{one.start}-{one.end}" in places
            elif wrong and one.verdict != label["label"]:
                print(f"  {answer['id']}: {label['label']}, taken for {one.verdict}: {one.text}")
        for text, label in labelled.items():
            if label["label"] != "general":
                counts[label["label"], "none"] += 1
                print(f"  {answer['id']}: not judged: {text}")
    total = sum(counts.values())
    print(f"{half}: {total} sentences of {len(answers)} answers")
    for name in CLASSES:
        hit = counts[name, name]
        told = sum(number for (_, verdict), number in counts.items() if verdict == name)
        true = sum(number for (label, _), number in counts.items() if label == name)
        precision, recall = hit / max(1, told), hit / max(1, true)
        print(f"  {name:11}  precision {precision:.3f}  recall {recall:.3f}  of {true}")
    supported = max(1, counts["supported", "supported"])
    print(f"  the right chunk for {right_chunk / supported:.3f} of the supported ones")
    took.sort()
    median = took[len(took) // 2]
    print(f"  {median:.1f} ms of processor time an answer at the median, {took[-1]:.1f} at most")
    for share, true_share, name in sorted(shares):
        print(f"  {name}: {share:.2f} of its claims have evidence, truly {true_share:.2f}")


if __name__ == "__main__":
    main()
