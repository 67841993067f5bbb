"""Asks cases through the whole of CodeQA, repository by repository, and keeps what came back."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import codeqa
from codeqa.chat.record import TurnRecord
from codeqa.chat.values import AnswerGenerator, AskOptions
from codeqa.context.block import format_block
from codeqa.engine import Engine, open_engine
from codeqa.errors import CodeQAError, NotFoundError, UsageError, error_from
from codeqa.indexing import Indexer
from codeqa.selection import BUDGET_CHARACTERS_PER_TOKEN
from codeqa.settings import load_settings
from codeqa.store import locate
from research.evals.answers.cases import Case
from research.evals.answers.judge import Result, context_figures, judge
from research.evals.answers.readers import PerfectReader, PromptWriter, RecordedAnswers

READERS = ("extractive", "perfect")
CONVERSATION = "answers"


@dataclass(frozen=True)
class Run:
    """Who answers, from how much, and where it is kept."""

    trees: Path
    out: Path
    data: Path
    """Folder of the indexes: what did not change is not indexed again."""
    effort: str
    reader: str = "extractive"
    """One of READERS, `recorded` or `prompts`; a model goes before it."""
    model: str = ""
    """`provider/name`; '' asks none."""
    recorded: Mapping[str, str] = field(default_factory=dict)
    """Id of a case → its answer."""
    prompts: Path | None = None
    """Where prompts are written instead of answers."""
    fresh: bool = False
    """Whether what was asked before is asked again."""

    @cached_property
    def name(self) -> str:
        who = self.model.replace("/", "-") or self.reader
        return f"{who}-{self.effort}"

    @property
    def results_file(self) -> Path:
        return self.out / f"{self.name}.results.jsonl"

    @property
    def answers_file(self) -> Path:
        return self.out / f"{self.name}.answers.jsonl"

    @cached_property
    def code(self) -> str:
        """Digest of the code that answers and of that which judges."""
        digest = hashlib.sha256()
        for folder in (Path(codeqa.__file__).parent, Path(__file__).parent):
            for file in sorted(folder.rglob("*")):
                if file.suffix in (".py", ".md", ".toml", ".scm"):
                    digest.update(file.read_bytes())
        return digest.hexdigest()[:12]

    def digest(self, case: Case) -> str:
        """Of all that a result depends on."""
        return f"{case.digest}-{self.code}-{hash_of(self.recorded.get(case.id, ''))}"

    def generator(self, engine: Engine, cases: Sequence[Case]) -> AnswerGenerator | None:
        """What writes the answers; None leaves it to CodeQA."""
        if self.prompts:
            self.prompts.mkdir(parents=True, exist_ok=True)
            return PromptWriter({c.question: self.prompts / f"{c.id}.txt" for c in cases})
        if self.reader == "perfect":
            return PerfectReader({case.question: case for case in cases})
        if self.reader == "recorded":
            answers = {case.question: self.recorded.get(case.id, "") for case in cases}
            return RecordedAnswers(answers, engine.toolbox)
        return None


def ask_all(
    run: Run, cases: Sequence[Case], tell: Callable[[str], None] | None = None
) -> list[Result]:
    """The results of all cases, in their order; those that are kept and still hold are not asked
    again, and each is kept as soon as it is there. `tell` is told of each, by default on stderr.

    Raises UsageError when a repository is not there, and what opening a model raises.
    """
    tell = tell or (lambda line: print(line, file=sys.stderr, flush=True))
    if missing := sorted({c.repository for c in cases if not (run.trees / c.repository).is_dir()}):
        raise UsageError(f"{run.trees} lacks the folders {', '.join(missing)}.")
    run.out.mkdir(parents=True, exist_ok=True)
    before = {} if run.fresh else {one.id: one for one in _kept(run)}
    answers = {} if run.fresh else answers_in(run.answers_file)
    found = {
        case.id: before[case.id]
        for case in cases
        if case.id in answers and case.id in before and before[case.id].digest == run.digest(case)
    }
    for repository in dict.fromkeys(case.repository for case in cases):
        left = [c for c in cases if c.repository == repository and c.id not in found]
        for result, answer in _ask_repository(run, repository, left) if left else ():
            found[result.id], answers[result.id] = result, answer
            mark = "+" if result.verdict.passed else "-"
            tell(f"{mark} {result.id} {result.seconds:.1f} s {result.problem}".rstrip())
            if not run.prompts:
                # Cases that were not chosen this time keep what they have.
                _save(run.results_file, [asdict(one) for one in {**before, **found}.values()])
                _save(run.answers_file, [{"id": i, "answer": a} for i, a in answers.items()])
    return [found[case.id] for case in cases]


def _ask_repository(
    run: Run, repository: str, cases: Sequence[Case]
) -> Iterator[tuple[Result, str]]:
    root = run.trees / repository
    settings = load_settings(root, data=run.data)
    Indexer(settings, locate(settings, root)).run()
    with closing(open_engine(settings, root)) as engine:
        if run.model:
            engine.models.prefer(run.model)
        chat = replace(engine.chat, generator=run.generator(engine, cases))
        engine = replace(engine, chat=chat)
        chat.warm_up()
        for case in cases:
            yield _asked(run, engine, case)


def _asked(run: Run, engine: Engine, case: Case) -> tuple[Result, str]:
    turn, problem, seconds = None, "", 0.0
    # A user of its own: nobody is told of what the other cases asked.
    options = AskOptions(
        "",
        user=f"answers-{case.id}",
        conversation=CONVERSATION,
        retrieval="auto",
        effort=run.effort,
        use_model=bool(run.model),
    )
    with suppress(NotFoundError):
        engine.conversations.delete(CONVERSATION, options.user)
    try:
        for question in (*case.after, case.question):
            # As `codeqa ask` does: the first one is about the code, a follow-up says what it is.
            first = question is (case.after or (case.question,))[0]
            text = f"@codebase {question}" if first else question
            started = time.perf_counter()
            turn = ask_once(engine, replace(options, question=text, tag_is_default=first))
            seconds = time.perf_counter() - started
    except CodeQAError as error:
        problem = error.message
    answer, chunks = (turn.answer, turn.chunks) if turn and not problem else ("", ())
    units = engine.tables().by_ids
    recall, precision = context_figures(case, chunks, units)
    result = Result(
        id=case.id,
        repository=case.repository,
        kind=case.kind,
        digest=run.digest(case),
        verdict=judge(case, answer, turn.citations if turn and not problem else ()),
        problem=problem,
        recall=recall,
        precision=precision,
        tokens=round(len(format_block(chunks)) / BUDGET_CHARACTERS_PER_TOKEN) if chunks else 0,
        seconds=round(seconds, 3),
        context=tuple(f"{c.path}:{c.start_line}-{c.end_line}" for c in chunks),
    )
    return result, answer


def ask_once(engine: Engine, options: AskOptions) -> TurnRecord:
    """The turn as it is kept. Raises the CodeQAError that the answer ended with."""
    last = None
    for event in engine.chat.ask(options):
        last = event
    if last is None or last.kind != "done":
        raise error_from(last.data if last else {})
    engine.conversations.flush()
    return engine.conversations.turn(last.data["turn"], options.user)


def load_results(path: Path) -> list[Result]:
    """Kept results. Raises OSError as reading does, UsageError for what is none."""
    form = TypeAdapter(Result)
    try:
        return [form.validate_json(line) for line in path.read_text("utf-8").splitlines()]
    except ValueError as error:
        raise UsageError(f"{path} holds something else than results: {error}") from None


def answers_in(path: Path) -> dict[str, str]:
    """Id of a case → its answer, of a file that may not be there."""
    if not path.is_file():
        return {}
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {row["id"]: row["answer"] for row in rows}


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8] if text else ""


def _kept(run: Run) -> list[Result]:
    with suppress(OSError, UsageError):
        return load_results(run.results_file)
    return []


def _save(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    part = path.with_suffix(".part")
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    part.write_text(text, encoding="utf-8")
    part.replace(path)
