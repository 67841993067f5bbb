"""What a model gets to see that may look further before it answers.

    python -m research.evals.reading

Questions whose deciding lines are known go through the whole of CodeQA, with the model of its
settings, any that speaks OpenAI's API, or with replies from files of {"id", "replies": [text, …]}:
looks as `codeqa.chat.looks` reads them, then an answer, taken for given where no reply is left::

    CODEQA_MODEL=custom/NAME CODEQA_MODEL_URL=http://127.0.0.1:8000/v1 \\
        python -m research.evals.reading --questions research/benchmarks/retrieval/own.jsonl \\
        --trees TREES --effort deep --json FILE
    python -m research.evals.reading --questions FILE --trees TREES \\
        --replies research/evals/drafts/asked.jsonl
    python -m research.evals.reading --questions FILE --trees TREES --replies FILE --prompts DIR

The last writes `<id>.txt`, the messages that the next reply is for: so replies are collected, round
by round. Of characters, `as billed` counts all again that is sent again; tools are not counted.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from codeqa.chat.events import ToolStep
from codeqa.chat.responders import Responders
from codeqa.chat.values import AnswerPiece, Gathered, ModelRequest
from codeqa.engine import Engine, open_engine, whole_answer
from codeqa.errors import CodeQAError
from codeqa.settings import load_settings
from codeqa.types import EFFORTS
from research.evals.search.questions import Question, load_questions
from research.evals.search.scores import holds_answer

FIGURES = ("in the first context", "in all seen", "rounds", "requests", "characters", "as billed")


@dataclass
class Recorded:
    """The model: takes no tools, and says what was recorded for one question."""

    replies: list[str]
    name, host = "recorded", ""
    refuses_tools = True

    def note_refused_tools(self) -> None:
        """Remember nothing: tools are always refused."""

    def window(self) -> int:
        return 0

    def stream(self, messages: object, **_: Any) -> Iterator[str]:
        yield self.replies.pop(0) if self.replies else "Answered.\n"


@dataclass
class Watched:
    """Lets CodeQA choose the responder, and keeps what is sent."""

    responders: Responders
    requests: list[ModelRequest] = field(default_factory=list)
    looked: set[int] = field(default_factory=set)
    failed: str = ""
    name = "watched"

    def choose(self, *chosen: Any) -> Watched:
        self.responder = self.responders.choose(*chosen)
        return self

    def generate(self, asked: Gathered) -> Generator[AnswerPiece, None, None]:
        for piece in self.responder.generate(asked):
            if isinstance(piece, ModelRequest):
                sent = self.requests
                if sent and len(sent[-1].messages) >= len(piece.messages):
                    sent.pop()  # it was refused
                sent.append(piece)
            elif isinstance(piece, ToolStep) and piece.tool:
                self.looked.add(len(self.requests))
            yield piece

    def row(self, question: Question) -> dict[str, Any]:
        """What is told of the question."""
        blocks = [request.block.chunks for request in self.requests] or [()]
        spans = [[(one.path, one.start_line, one.end_line) for one in block] for block in blocks]
        held = [holds_answer(question, one) for one in spans]
        sent = [len(text_of(request)) for request in self.requests]
        figures = (held[0], held[-1], len(self.looked), len(sent), max(sent, default=0), sum(sent))
        told = {"id": question.id, "category": question.category, "failed": self.failed}
        return told | dict(zip(FIGURES, figures, strict=True))


def text_of(request: ModelRequest) -> str:
    return "\n\n".join(filter(None, (text for one in request.messages for text in one.parts)))


def ask(engine: Engine, question: str, effort: str, model: Recorded | None) -> Watched:
    watched, gatherer = Watched(engine.chat.responders), engine.chat.gatherer
    if model:
        gatherer = replace(gatherer, answer_model=lambda _: model)  # type: ignore
    chat = replace(engine.chat, gatherer=gatherer, responders=watched)  # type: ignore
    try:
        whole_answer(replace(engine, chat=chat).ask(f"@codebase {question}", effort=effort))
    except CodeQAError as error:
        watched.failed = str(error)
    return watched


def replies_in(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Id of a question → what was said to it; SEARCH: is what a look was called before."""
    rows = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
    said = {row["id"]: row.get("replies") or [row["reply"]] for row in rows}
    return {id_: [re.sub("^SEARCH:", "LOOK search", one) for one in said[id_]] for id_ in said}


def main(arguments: Sequence[str] | None = None) -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--trees", type=Path, required=True, help="folder of the repositories")
    parser.add_argument("--effort", choices=EFFORTS, default="normal")
    parser.add_argument("--replies", type=Path, action="append", metavar="FILE")
    parser.add_argument("--prompts", type=Path, metavar="DIR", help="a folder that is there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="for a line of each question")
    given = parser.parse_args(arguments)
    known = [one for one in load_questions(given.questions) if one.main_lines]
    there = [one for one in known if (given.trees / one.repo).is_dir()]
    said = replies_in(given.replies or ()) if given.replies or given.prompts else None
    alone = {} if said is None else {"model": "none", "hyde": "off"}  # no other model is asked
    rows: list[dict[str, Any]] = []
    for tree in dict.fromkeys(given.trees / question.repo for question in there):
        with closing(open_engine(load_settings(tree, **alone), tree)) as engine:
            engine.index.run()
            for question in (one for one in there if given.trees / one.repo == tree):
                recorded = (said or {}).get(question.id, [])
                model = None if said is None else Recorded([*recorded])
                watched = ask(engine, question.question, given.effort, model)
                rows.append(watched.row(question))
                for request in watched.requests[len(recorded) :][:1] if given.prompts else ():
                    (given.prompts / f"{question.id}.txt").write_text(text_of(request), "utf-8")
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    failed = [f"{row['id']}: {row['failed']}" for row in rows if row["failed"]]
    bare = sum(not row["requests"] for row in rows)
    print(f"{len(rows)} of {len(known)} questions, {bare} without a request", *failed, sep="\n")
    for name in FIGURES if rows else ():
        print(f"{name:22} {mean(row[name] for row in rows):,.3f}")


if __name__ == "__main__":
    main()
