"""Judge the search, on a file of questions or on some made from a repository:
`python -m research.evals.search`.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from codeqa.cli.ask import ranking_options
from codeqa.cli.command import folder_of, front_door, json_option
from codeqa.cli.console import ProgressDisplay, format_table, print_either
from codeqa.errors import UsageError
from codeqa.llm.models import Models
from codeqa.search.hybrid import open_search
from codeqa.settings import Settings, load_settings
from codeqa.state import open_state
from codeqa.store import locate
from codeqa.types import EFFORTS, Effort, Progress
from research.evals.search.own import COUNT, Own, prepared
from research.evals.search.questions import Question, load_questions, save_questions
from research.evals.search.ranked import (
    Kind,
    ask_all,
    load_ranked,
    rank_repositories,
    require_drafting,
    save_ranked,
)
from research.evals.search.scores import Figure, Report, compare, score
from research.evals.search.thumbs import thumbs_given

PLAIN = "as it is"
VARIANTS = {"rerank": "with rerank", "vectors": "without vectors", "hyde": "with drafts (HyDE)"}
"""What `--compare` takes → the name of the run that it adds to the one with the defaults."""
GROUPS_SHOWN = ("ndcg@10", "hit@1", "recall@10", "line ndcg@10", "cover@500")
CAUTION = (
    "Questions made from doc comments, names and calls are easier than what people ask. Use "
    "these figures to compare settings on this repository, not as CodeQA's quality."
)
THUMB_CAUTION = (
    "Thumbs up ask for what an earlier answer cited: they favour the settings that found it."
)
OWN_HINT = "With a repository: --compare rerank, vectors or hyde."
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The same questions asked in one or several runs; the first is the one that is judged."""

    questions: Sequence[Question]
    runs: Mapping[str, Report]
    differences: Mapping[str, Mapping[str, Figure]]
    notes: Sequence[str]
    """How the figures may be used, as sentences."""


@front_door(
    "-m research.evals.search",
    [
        "python -m research.evals.search ~/src/flask --compare rerank --compare vectors",
        "python -m research.evals.search --questions q.jsonl --trees trees --out ranked.jsonl",
        "python -m research.evals.search --questions q.jsonl --out ranked.jsonl --versus old.jsonl",
    ],
)
@click.argument("repo", required=False)
@click.option(
    "--questions", type=FILE, help="Questions with their targets; of REPO: written there."
)
@click.option("--trees", type=FOLDER, help="Folder with a folder for each 'repo' of a question.")
@click.option("--out", type=FILE, help="Ranked lists: written, or read to judge.")
@click.option(
    "--list",
    "kind",
    type=click.Choice(["files", "units"]),
    help="With --trees: which of a search's two lists; default units.",
)
@ranking_options
@click.option(
    "--context",
    "effort",
    type=click.Choice(EFFORTS),
    help="With --trees: write also what would be sent at this effort, and judge that.",
)
@click.option("--versus", type=FILE, help="Ranked lists to compare with, question by question.")
@click.option(
    "--compare",
    "compared",
    type=click.Choice(list(VARIANTS)),
    multiple=True,
    help="Of REPO: ask once more with the reranker, without vectors or with drafts, and compare; "
    "may be repeated.",
)
@click.option(
    "--count",
    type=click.IntRange(10, 2_000),
    metavar="N",
    default=COUNT,
    show_default=True,
    help="Of REPO: questions to make.",
)
@json_option
def main(
    repo: str | None,
    questions: Path | None,
    trees: Path | None,
    out: Path | None,
    kind: Kind | None,
    rerank: bool,
    hyde: str | None,
    effort: Effort | None,
    versus: Path | None,
    compared: tuple[str, ...],
    count: int,
    as_json: bool,
) -> None:
    """Judge the search: on questions made from REPO, or on a file of questions.

    With REPO, questions are made from its doc comments, names and calls and from thumbs up in
    the page, and asked of a temporary copy in which those comments are empty. They are
    easier than what people ask, and good for comparing settings.

    Else --questions and --out are needed. With --trees every repository that a question names is
    indexed and asked, and the lists are written to --out. Without, the lists in --out are judged
    as they are, of whatever system.
    """
    how_to_search = kind or rerank or hyde or effort
    named = "--list, --rerank, --hyde and --context"
    if repo is not None:
        if trees or versus or how_to_search:
            raise UsageError(f"REPO goes without --trees, --versus, {named}.", OWN_HINT)
        root = folder_of(repo, load_settings().data_dir)
        variants = dict.fromkeys(compared)
        found = _ask_own(load_settings(root), root, count, variants, questions, out)
    elif compared:
        raise UsageError("--compare needs REPO.", OWN_HINT)
    elif questions is None or out is None:
        raise UsageError(
            "Give REPO, or --questions and --out.", "See 'python -m research.evals.search --help'."
        )
    elif how_to_search and trees is None:
        why = "The lists of --out are judged as they are."
        raise UsageError(f"{named} go with --trees alone.", why)
    else:
        asked = load_questions(questions)
        if trees is not None:
            settings = load_settings()
            with ProgressDisplay() as show:
                lists = rank_repositories(
                    settings, asked, trees, show, kind=kind or "units", rerank=rerank,
                    hyde=hyde or "off", effort=effort,
                )  # fmt: skip
                save_ranked(out, lists)
        found = _judge(asked, out, versus)
    print_either(as_json, _document(found), _text(found))


def _judge(asked: Sequence[Question], out: Path, versus: Path | None) -> Evaluation:
    report = score(asked, load_ranked(out))
    differences = {}
    if versus is not None:
        differences[f"minus {versus.name}"] = compare(report, score(asked, load_ranked(versus)))
    left_out = f"{report.missing} questions are not among the ranked lists and score 0"
    return Evaluation(asked, {out.name: report}, differences, [left_out] if report.missing else [])


def _ask_own(
    settings: Settings,
    root: Path,
    count: int,
    variants: Iterable[str],
    questions: Path | None,
    out: Path | None,
) -> Evaluation:
    """Make questions from the repository, ask them with the defaults and in each of `variants`.

    The lists with the defaults are written to `out`, the questions to `questions`.
    """
    with ExitStack() as stack:
        # A request to end unwinds as Ctrl-C does, so that the copy is removed.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        stack.callback(signal.signal, signal.SIGTERM, before)
        models = stack.enter_context(closing(Models(settings)))
        if "hyde" in variants:
            require_drafting(models)
        show = stack.enter_context(ProgressDisplay())
        thumbs = thumbs_given(open_state(settings), locate(settings, root).id)
        own = stack.enter_context(prepared(settings, root, show, count=count, thumbs=thumbs))
        runs = {PLAIN: _run(own, "", models, show, out)}
        runs |= {VARIANTS[one]: _run(own, one, models, show) for one in variants}
    if questions is not None:
        save_questions(questions, own.questions)
    differences = {n: compare(one, runs[PLAIN]) for n, one in runs.items() if n != PLAIN}
    thumbs_asked = any(question.source == "thumbs" for question in own.questions)
    notes = [CAUTION, *([THUMB_CAUTION] if thumbs_asked else []), *own.left_out]
    return Evaluation(own.questions, runs, differences, notes)


def _run(
    own: Own, variant: str, models: Models, show: ProgressDisplay, out: Path | None = None
) -> Report:
    drafts = variant == "hyde"
    search = open_search(
        own.settings,
        lambda: own.tables,
        models=models if drafts else None,
        vectors=variant != "vectors",
    )
    asked = ask_all(
        own.questions, search, rerank=variant == "rerank", hyde="two" if drafts else "off"
    )
    phase, answers = f"asking, {VARIANTS.get(variant, PLAIN)}", []
    for number, answered in enumerate(asked, start=1):
        answers.append(answered)
        show(Progress(phase, number, len(own.questions)))
    if out is not None:
        save_ranked(out, [one.units for one in answers])
    return score(own.questions, [one.files for one in answers], [one.units for one in answers])


def _text(found: Evaluation) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in _kinds(found).items())
    report = next(iter(found.runs.values()))
    parts = [f"{len(found.questions)} questions: {kinds}"]
    rows = [
        [name, f"{one.mean:.3f}", f"{one.low:.3f} to {one.high:.3f}", f"{one.questions}"]
        for name, one in report.figures.items()
    ]
    parts.append(format_table(["", "mean", "95 %", "questions"], rows))
    for name, figures in found.differences.items():
        rows = [
            [
                figure,
                f"{one.mean:+.3f}",
                f"{one.low:+.3f} to {one.high:+.3f}",
                "beyond chance" if one.beyond_chance else "",
            ]
            for figure, one in figures.items()
        ]
        parts.append(format_table([name, "difference", "95 %", ""], rows))
    for group, values in report.groups.items():
        if len(values) > 1:
            rows = [
                [value, str(figures["ndcg@10"].questions)]
                + [f"{figures[name].mean:.3f}" if name in figures else "" for name in GROUPS_SHOWN]
                for value, figures in values.items()
            ]
            parts.append(format_table([group, "questions", *GROUPS_SHOWN], rows))
    parts += [
        "{}: median {:.1f} ms, 95 % below {:.1f} ms".format(name, *one.latency_ms)
        for name, one in found.runs.items()
        if one.latency_ms
    ]
    return "\n\n".join([*parts, *found.notes])


def _kinds(found: Evaluation) -> dict[str, int]:
    return dict(Counter(question.category for question in found.questions))


def _document(found: Evaluation) -> dict[str, Any]:
    document = asdict(found) | {"questions": _kinds(found)}
    for report in document["runs"].values():
        del report["per_question"]
    return document


if __name__ == "__main__":
    sys.exit(main())
