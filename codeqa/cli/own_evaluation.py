"""The runs of `codeqa eval REPO`: the same questions with the defaults and with other settings."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from codeqa.cli.console import ProgressDisplay
from codeqa.errors import CodeQAError, UsageError
from codeqa.evaluation import (
    Answered,
    Figure,
    Own,
    Report,
    ask_all,
    compare,
    prepared,
    save_plot,
    save_questions,
    save_ranked,
    score,
)
from codeqa.llm import Models
from codeqa.search import open_search
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import locate
from codeqa.types import Progress

VARIANTS = {
    "rerank": "with rerank",
    "vectors": "without vectors",
    "hyde": "with drafts (HyDE)",
}
"""What `--compare` takes → the name of the run that it adds to the one with the defaults."""
PLAIN = "as it is"
SHOWN = ("ndcg@10", "hit@1", "recall@10", "line ndcg@10", "line hit@1", "cover@500")
CAUTION = (
    "Questions made from doc comments, names and commits are easier than what people ask. Use "
    "these figures to compare settings on this repository, not as CodeQA's quality."
)
THUMB_CAUTION = (
    "Thumbs up ask for what an earlier answer cited: they favour the settings that found it."
)


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """What the runs gave, by their names; the one with the defaults is PLAIN."""

    own: Own
    reports: Mapping[str, Report]
    differences: Mapping[str, Mapping[str, Figure]]
    """Of each other run from the one with the defaults."""

    @property
    def notes(self) -> list[str]:
        """How the figures may be used, as sentences."""
        thumbs = any(question.source == "thumbs" for question in self.own.questions)
        return [CAUTION, *([THUMB_CAUTION] if thumbs else []), *self.own.left_out]


def evaluate_own(
    settings: Settings,
    repository: Path,
    count: int,
    seed: int,
    variants: Iterable[str],
    plot: Path | None = None,
    out: Path | None = None,
    questions: Path | None = None,
) -> OwnFigures:
    """Make questions from `repository`, ask them with the defaults and in each of `variants`.

    The figures are drawn to `plot`, the lists with the defaults written to `out`, the questions
    to `questions`. Raises UsageError before anything is copied for what cannot be done.
    """
    if plot is not None and plot.suffix.lower() not in (".svg", ".html"):
        raise UsageError(f"{plot} is neither .svg nor .html.", "Name the plot one of them.")
    location, state = locate(settings, repository), State(settings.data_dir)
    with ExitStack() as stack:
        stack.enter_context(_stoppable())
        models = Models(settings)
        stack.callback(models.close)
        if "hyde" in variants and models.connect_small() is None:
            raise UsageError(
                "Drafts need a language model, and none is chosen.",
                "Choose one by CODEQA_MODEL or `codeqa models`, or leave out --compare hyde.",
            )
        show = stack.enter_context(ProgressDisplay())
        thumbs = state.feedback.given(location.id) if state.path.exists() else ()
        own = stack.enter_context(
            prepared(settings, location.root, show, count=count, seed=seed, thumbs=thumbs)
        )
        runs = {PLAIN: _run(own, "", models, show)}
        for variant in variants:
            runs[VARIANTS[variant]] = _run(own, variant, models, show)
        show.close()
    reports = {name: _report(own, answers) for name, answers in runs.items()}
    try:
        if questions is not None:
            save_questions(questions, own.questions)
        if out is not None:
            save_ranked(out, [one.units for one in runs[PLAIN]])
        if plot is not None:
            figures = {name: report.figures for name, report in reports.items()}
            save_plot(plot, f"Search in {own.repository}", figures, SHOWN, CAUTION)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be written: {error.strerror}.") from None
    others = {name: report for name, report in reports.items() if name != PLAIN}
    differences = {name: compare(report, reports[PLAIN]) for name, report in others.items()}
    return OwnFigures(own, reports, differences)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C and a request to end alike unwind, so that the copy is removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise CodeQAError(
            "The evaluation was interrupted.", "Its temporary copy is gone; nothing was written."
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(own: Own, variant: str, models: Models, show: ProgressDisplay) -> list[Answered]:
    drafts = variant == "hyde"
    search = open_search(
        own.settings,
        lambda: own.tables,
        models=models if drafts else None,
        vectors=variant != "vectors",
    )
    phase = VARIANTS.get(variant, PLAIN)
    found = []
    hyde = "two" if drafts else "off"
    for answered in ask_all(own.questions, search, rerank=variant == "rerank", hyde=hyde):
        found.append(answered)
        show(Progress(f"asking, {phase}", len(found), len(own.questions)))
    return found


def _report(own: Own, answers: Sequence[Answered]) -> Report:
    return score(own.questions, [one.files for one in answers], [one.units for one in answers])
