"""What a model that may ask for one more search gets to see: `python -m evals.asking`.

Questions go through the whole of CodeQA at *normal*; what the model says at first was collected by
hand, with nothing but the messages: a request that begins with SEARCH:, or anything else for an
answer::

    python -m evals.asking --questions benchmarks/retrieval/own.jsonl --trees TREES --prompts DIR
    python -m evals.asking --questions benchmarks/retrieval/own.jsonl --trees TREES \\
        --replies evals/drafts/asked.jsonl [--json FILE]

The first writes `<id>.txt`, the messages, into DIR, only of questions whose context does not hold
the answer with `--missed`. The second takes lines of {"id", "reply"}; a question without one counts
as answered at once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from codeqa.chat.asking import AskingGenerator
from codeqa.chat.values import Gathered, ModelRequest, Piece
from codeqa.engine import Engine, open_engine, whole_answer
from codeqa.llm.client import estimate_messages
from codeqa.settings import load_settings
from evals.search.questions import Question, load_questions
from evals.search.scores import holds_answer

ANSWERED = "Answered.\n"


@dataclass
class Recorded:
    """The model: says what was recorded, and answers when it is asked again."""

    reply: str
    asked: list[Sequence[Mapping[str, Any]]] = field(default_factory=list)
    name = "recorded"
    host = ""

    def stream(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> Iterator[str]:
        self.asked.append([*messages])
        yield self.reply if len(self.asked) == 1 else ANSWERED


@dataclass
class Asking:
    """Writes the answers of an engine with a recorded model, and keeps what that was shown."""

    engine: Engine
    replies: Mapping[str, str]
    """Question → what was said at first."""
    name = "recorded"
    model: Recorded = field(default_factory=lambda: Recorded(""))
    blocks: list[Any] = field(default_factory=list)

    def generate(self, asked: Gathered) -> Generator[Piece, None, None]:
        self.model, self.blocks = Recorded(self.replies.get(asked.question, ANSWERED)), []
        for piece in AskingGenerator(self.model, self.engine.toolbox).generate(asked):  # type: ignore[arg-type]
            if isinstance(piece, ModelRequest):
                self.blocks.append([(c.path, c.start_line, c.end_line) for c in piece.block.chunks])
            yield piece


def ask_all(
    questions: Sequence[Question], trees: Path, replies: Mapping[str, str]
) -> Iterator[tuple[Question, dict[str, Any], Asking]]:
    """Each question with what came of it."""
    by_question = {q.question: replies[q.id] for q in questions if q.id in replies}
    for repo in dict.fromkeys(question.repo for question in questions):
        with closing(open_engine(load_settings(trees / repo), trees / repo)) as engine:
            engine.index.run()
            writer = Asking(engine, by_question)
            asking = replace(engine, chat=replace(engine.chat, generator=writer))
            for question in (one for one in questions if one.repo == repo):
                writer.model, writer.blocks = Recorded(""), []
                whole_answer(asking.ask(question.question, effort="normal"))
                held = [holds_answer(question, spans) for spans in writer.blocks]
                # Where the app itself answers, nothing is sent.
                held = (held or [False]) if question.main_lines else [None]
                sent = [estimate_messages(messages) for messages in writer.model.asked]
                found = {"id": question.id, "repo": repo, "category": question.category}
                found |= {
                    "calls": len(writer.blocks),
                    "first": held[0],
                    "held": held[-1],
                    "tokens": sent,
                }
                yield question, found, writer


def prompt_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The messages as they are read by who answers them by hand."""
    parts = []
    for message in messages:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part["text"] for part in content]
        parts.append(f"===== {message['role']} =====\n" + "\n\n".join(texts))
    return "\n\n".join(parts)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures of the questions whose lines are known."""
    known = [row for row in rows if row["held"] is not None]
    asked = [row for row in known if row["calls"] > 1]
    return {
        "questions": len(known),
        "in the first context": round(mean(row["first"] for row in known), 3),
        "in context": round(mean(row["held"] for row in known), 3),
        "asked once more": len(asked),
        "of these found": sum(row["held"] for row in asked),
        "asked though it was there": sum(row["first"] for row in asked),
        "calls": round(mean(row["calls"] for row in known), 2),
        "tokens sent, median": round(median(sum(row["tokens"]) for row in known)),
        "tokens sent, mean": round(mean(sum(row["tokens"]) for row in known)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--trees", type=Path, required=True)
    parser.add_argument("--only", help="questions whose ids stand in this file, one a line")
    parser.add_argument("--replies", type=Path, action="append", default=[])
    parser.add_argument("--prompts", type=Path, help="folder for the messages of each question")
    parser.add_argument("--missed", action="store_true", help="only prompts that lack the answer")
    parser.add_argument("--json", type=Path, help="file for a line of each question")
    given = parser.parse_args(arguments)
    questions = load_questions(given.questions)
    if given.only:
        wanted = set(Path(given.only).read_text("utf-8").split())
        questions = [question for question in questions if question.id in wanted]
    there = [question for question in questions if (given.trees / question.repo).is_dir()]
    replies: dict[str, str] = {}
    for path in given.replies:
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        replies |= {row["id"]: row["reply"] for row in rows}
    rows = []
    if given.prompts:
        given.prompts.mkdir(parents=True, exist_ok=True)
    for question, row, writer in ask_all(there, given.trees, replies):
        rows.append(row)
        if (
            given.prompts
            and writer.model.asked
            and not (given.missed and row["first"] is not False)
        ):
            text = prompt_of(writer.model.asked[0])
            (given.prompts / f"{question.id}.txt").write_text(text, encoding="utf-8")
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, value in summary(rows).items():
        print(f"{name:26} {value}")
    if len(there) < len(questions):
        print(f"{len(questions) - len(there)} questions left out: their repository is not there")


if __name__ == "__main__":
    main()
