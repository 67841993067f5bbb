"""`codeqa eval REPO`: settings compared on questions made from the user's own repository."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from codeqa.cli.console import ProgressDisplay, format_table
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
BAR_WIDTH = 30
CAUTION = (
    "Questions made from doc comments, names and commits are easier than what people ask. Use "
    "these figures to compare settings on this repository, not as CodeQA's quality."
)
THUMB_CAUTION = (
    "Thumbs up ask for what an earlier answer cited: they favour the settings that found it."
)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    count: int
    seed: int
    compared: Sequence[str]
    plot: Path | None
    out: Path | None
    questions: Path | None
    as_json: bool


def evaluate_own(settings: Settings, repository: Path, options: Options) -> None:
    """Make questions, ask them in every variant, and print the figures.

    Raises UsageError before anything is copied for a wish that cannot be met.
    """
    if options.plot is not None and options.plot.suffix.lower() not in (".svg", ".html"):
        raise UsageError(f"{options.plot} is neither .svg nor .html.", "Name the plot one of them.")
    location, state = locate(settings, repository), State(settings.data_dir)
    with ExitStack() as stack:
        stack.enter_context(_stoppable())
        models = Models(settings)
        stack.callback(models.close)
        if "hyde" in options.compared and models.connect_small() is None:
            raise UsageError(
                "Drafts need a language model, and none is chosen.",
                "Choose one by CODEQA_MODEL or `codeqa models`, or leave out --compare hyde.",
            )
        show = stack.enter_context(ProgressDisplay())
        own = stack.enter_context(
            prepared(
                settings,
                location.root,
                show,
                count=options.count,
                seed=options.seed,
                thumbs=state.feedback.given(location.id) if state.path.exists() else (),
            )
        )
        runs = {PLAIN: _run(own, "", models, show)}
        for variant in options.compared:
            runs[VARIANTS[variant]] = _run(own, variant, models, show)
        show.close()
    _save(own, runs, options)
    reports = {name: _report(own, answers) for name, answers in runs.items()}
    differences = {
        name: compare(report, reports[PLAIN]) for name, report in reports.items() if name != PLAIN
    }
    if options.as_json:
        document = _document(own, reports, differences)
        click.echo(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        click.echo(_text(own, reports, differences))


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


def _save(own: Own, runs: dict[str, list[Answered]], options: Options) -> None:
    try:
        if options.questions is not None:
            save_questions(options.questions, own.questions)
        if options.out is not None:
            save_ranked(options.out, [one.units for one in runs[PLAIN]])
        if options.plot is not None:
            figures = {name: _report(own, answers).figures for name, answers in runs.items()}
            save_plot(options.plot, f"Search in {own.repository}", figures, SHOWN, CAUTION)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be written: {error.strerror}.") from None


def _text(own: Own, reports: dict[str, Report], differences: dict[str, dict[str, Figure]]) -> str:
    kinds = Counter(question.category for question in own.questions)
    parts = [
        f"{len(own.questions)} questions about {own.repository}: "
        + ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    ]
    plain = reports[PLAIN]
    rows = []
    for name in SHOWN:
        if name in plain.figures:
            one = plain.figures[name]
            interval = f"{one.low:.3f} to {one.high:.3f}"
            rows.append([name, f"{one.mean:.3f}", interval, str(one.questions), bar(one.mean)])
    parts.append(format_table(["", "mean", "95 %", "questions", ""], rows))
    for name, found in differences.items():
        lines = [
            [
                figure,
                f"{reports[name].figures[figure].mean:.3f}",
                f"{one.mean:+.3f}",
                f"{one.low:+.3f} to {one.high:+.3f}",
                "beyond chance" if one.beyond_chance else "",
            ]
            for figure, one in found.items()
            if figure in SHOWN
        ]
        parts.append(format_table([name, "mean", "difference", "95 %", ""], lines))
    parts.append(_kinds(reports))
    latencies = [
        f"{name}: median {report.latency_ms[0]:.0f} ms, 95 % below {report.latency_ms[1]:.0f} ms"
        for name, report in reports.items()
        if report.latency_ms
    ]
    parts.append("\n".join(latencies))
    parts.append("\n".join(_notes(own)))
    return "\n\n".join(parts)


def _kinds(reports: dict[str, Report]) -> str:
    """ndcg@10 of files by the kind of question, a column for each run."""
    header = ["ndcg@10 by kind", "questions", *reports]
    groups = {name: report.groups["category"] for name, report in reports.items()}
    rows = [
        [kind, str(figures["ndcg@10"].questions)]
        + [f"{found[kind]['ndcg@10'].mean:.3f}" for found in groups.values()]
        for kind, figures in groups[PLAIN].items()
    ]
    return format_table(header, rows)


def _notes(own: Own) -> list[str]:
    thumbs = any(question.source == "thumbs" for question in own.questions)
    return [CAUTION, *([THUMB_CAUTION] if thumbs else []), *own.left_out]


def _document(
    own: Own, reports: dict[str, Report], differences: dict[str, dict[str, Figure]]
) -> dict[str, object]:
    return {
        "repository": own.repository,
        "questions": dict(Counter(question.category for question in own.questions)),
        "runs": {
            name: {
                "figures": {key: asdict(figure) for key, figure in report.figures.items()},
                "kinds": {
                    kind: {key: figure.mean for key, figure in figures.items()}
                    for kind, figures in report.groups["category"].items()
                },
                "latency_ms": report.latency_ms,
            }
            for name, report in reports.items()
        },
        "differences": {
            name: {key: asdict(figure) for key, figure in found.items()}
            for name, found in differences.items()
        },
        "notes": _notes(own),
    }


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """`share` of 1 as a bar of `width` characters; eighths of a character count."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
