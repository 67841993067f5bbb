"""`codeqa eval`: judge the search, on questions of one's own or made from the repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from codeqa.cli.command import command, hyde_option, json_option, rerank_option
from codeqa.cli.console import ProgressDisplay, format_table, print_json
from codeqa.cli.own_evaluation import PLAIN, SHOWN, VARIANTS, OwnFigures, evaluate_own
from codeqa.cli.repository import chosen_repository
from codeqa.errors import UsageError
from codeqa.evaluation import (
    COUNT,
    Figure,
    Kind,
    Report,
    compare,
    load_questions,
    load_ranked,
    rank_repositories,
    save_ranked,
    score,
)
from codeqa.settings import load_settings

T = TypeVar("T")
Differences = Mapping[str, Figure]

GROUPS_SHOWN = ("ndcg@10", "hit@1", "recall@10", "line ndcg@10", "cover@500")
OWN_HINT = "With a repository: --compare rerank, vectors or hyde."
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@command(
    "eval",
    [
        "codeqa eval ~/src/flask                                  questions made from it",
        "codeqa eval ~/src/flask --compare rerank --compare vectors --plot flask.svg",
        "codeqa eval --questions q.jsonl --trees repositories --out ranked.jsonl",
        "codeqa eval --questions q.jsonl --trees repositories --out files.jsonl --list files",
        "codeqa eval --questions q.jsonl --out ranked.jsonl --versus before.jsonl   score alone",
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
    default="units",
    help="With --trees: which of a search's two lists; default units.",
)
@rerank_option
@hyde_option("off", "default off")
@click.option("--versus", type=FILE, help="Ranked lists to compare with, question by question.")
@click.option(
    "--compare",
    "compared",
    type=click.Choice(list(VARIANTS)),
    multiple=True,
    help="Of REPO: ask once more with the reranker, without vectors or with drafts, and compare; "
    "may be repeated.",
)
@click.option("--plot", type=FILE, help="Of REPO: write the figures as .svg or .html.")
@click.option(
    "--count",
    type=click.IntRange(10, 2_000),
    metavar="N",
    default=COUNT,
    show_default=True,
    help="Of REPO: questions to make.",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    default=1,
    show_default=True,
    help="Of REPO: another one makes other questions.",
)
@json_option
def eval_command(
    repo: str | None,
    questions: Path | None,
    trees: Path | None,
    out: Path | None,
    kind: Kind,
    rerank: bool,
    hyde: str,
    versus: Path | None,
    compared: tuple[str, ...],
    plot: Path | None,
    count: int,
    seed: int,
    as_json: bool,
) -> None:
    """Judge the search: on questions made from REPO, or on a file of questions.

    With REPO, questions are made from its doc comments, names, calls and commits and from thumbs
    up in the page, and asked of a temporary copy in which those comments are empty. They are
    easier than what people ask, and good for comparing settings.

    Else --questions and --out are needed. With --trees every repository that a question names is
    indexed and asked, and the lists are written to --out. Without, the lists in --out are judged
    as they are, of whatever system.
    """
    if repo is not None:
        if trees or versus or rerank or hyde != "off":
            raise UsageError("REPO goes without --trees, --versus, --rerank and --hyde.", OWN_HINT)
        root = chosen_repository(load_settings(), repo)
        settings, variants = load_settings(root), dict.fromkeys(compared)
        found = evaluate_own(settings, root, count, seed, variants, plot, out, questions)
        if as_json:
            print_json(_own_document(found))
        else:
            click.echo(_own_text(found))
        return
    if compared or plot:
        raise UsageError("--compare and --plot need REPO.", OWN_HINT)
    if questions is None or out is None:
        raise UsageError("Give REPO, or --questions and --out.", "See 'codeqa eval --help'.")
    asked = _read(load_questions, questions)
    if trees is not None:
        with ProgressDisplay() as show:
            ranked = rank_repositories(
                load_settings(), asked, trees, kind, show, rerank=rerank, hyde=hyde
            )
            try:
                save_ranked(out, ranked)
            except OSError as error:
                raise UsageError(f"{out} cannot be written: {error.strerror}.") from None
    report = score(asked, _read(load_ranked, out))
    differences = compare(report, score(asked, _read(load_ranked, versus))) if versus else {}
    if as_json:
        print_json(_document(report, differences))
    else:
        click.echo(_text(report, differences))


def _read(load: Callable[[Path], T], path: Path) -> T:
    try:
        return load(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', error)}.") from None


def _text(report: Report, differences: Differences) -> str:
    header = ["", "mean", "95 %", "questions", *(["difference", "95 %", ""] if differences else [])]
    rows = [
        [*_row(name, figure), *(_difference(differences[name]) if differences else [])]
        for name, figure in report.figures.items()
    ]
    parts = [format_table(header, rows)]
    for group, values in report.groups.items():
        lines = [
            [value, str(figures["ndcg@10"].questions)]
            + [f"{figures[name].mean:.3f}" if name in figures else "" for name in GROUPS_SHOWN]
            for value, figures in values.items()
        ]
        parts.append(format_table([group, "questions", *GROUPS_SHOWN], lines))
    if report.latency_ms:
        parts.append(_latency("latency", report, 1))
    if report.missing:
        parts.append(f"{report.missing} questions are not among the ranked lists and score 0")
    return "\n\n".join(parts)


def _own_text(found: OwnFigures) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in _kinds(found).items())
    parts = [f"{len(found.own.questions)} questions about {found.own.repository}: {kinds}"]
    figures = found.reports[PLAIN].figures
    rows = [[*_row(n, figures[n]), bar(figures[n].mean)] for n in SHOWN if n in figures]
    parts.append(format_table(["", "mean", "95 %", "questions", ""], rows))
    for name, differences in found.differences.items():
        means = found.reports[name].figures
        lines = [
            [figure, f"{means[figure].mean:.3f}", *_difference(one)]
            for figure, one in differences.items()
            if figure in SHOWN
        ]
        parts.append(format_table([name, "mean", "difference", "95 %", ""], lines))
    parts.append(_by_kind(found.reports))
    latencies = [_latency(n, one, 0) for n, one in found.reports.items() if one.latency_ms]
    return "\n\n".join([*parts, "\n".join(latencies), "\n".join(found.notes)])


def _by_kind(reports: Mapping[str, Report]) -> str:
    """ndcg@10 of files by the kind of question, a column for each run."""
    groups = [report.groups["category"] for report in reports.values()]
    rows = [
        [kind, str(figures["ndcg@10"].questions)]
        + [f"{found[kind]['ndcg@10'].mean:.3f}" for found in groups]
        for kind, figures in reports[PLAIN].groups["category"].items()
    ]
    return format_table(["ndcg@10 by kind", "questions", *reports], rows)


def _row(name: str, figure: Figure) -> list[str]:
    interval = f"{figure.low:.3f} to {figure.high:.3f}"
    return [name, f"{figure.mean:.3f}", interval, str(figure.questions)]


def _difference(one: Figure) -> list[str]:
    interval = f"{one.low:+.3f} to {one.high:+.3f}"
    return [f"{one.mean:+.3f}", interval, "beyond chance" if one.beyond_chance else ""]


def _latency(name: str, report: Report, digits: int) -> str:
    median, slow = report.latency_ms or (0.0, 0.0)
    return f"{name}: median {median:.{digits}f} ms, 95 % below {slow:.{digits}f} ms"


def _kinds(found: OwnFigures) -> dict[str, int]:
    return dict(Counter(question.category for question in found.own.questions))


def _document(report: Report, differences: Differences) -> dict[str, Any]:
    return {
        "figures": _values(report.figures),
        "groups": {group: _means(values) for group, values in report.groups.items()},
        "latency_ms": report.latency_ms,
        "missing": report.missing,
        "versus": _values(differences),
    }


def _own_document(found: OwnFigures) -> dict[str, Any]:
    return {
        "repository": found.own.repository,
        "questions": _kinds(found),
        "runs": {
            name: {
                "figures": _values(report.figures),
                "kinds": _means(report.groups["category"]),
                "latency_ms": report.latency_ms,
            }
            for name, report in found.reports.items()
        },
        "differences": {name: _values(one) for name, one in found.differences.items()},
        "notes": found.notes,
    }


def _values(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {name: asdict(figure) for name, figure in figures.items()}


def _means(values: Mapping[str, Mapping[str, Figure]]) -> dict[str, dict[str, float]]:
    return {
        value: {name: figure.mean for name, figure in figures.items()}
        for value, figures in values.items()
    }


def bar(share: float) -> str:
    """`share` of 1 as a bar of up to 30 characters; eighths of a character count."""
    eighths = round(max(0.0, min(1.0, share)) * 30 * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
