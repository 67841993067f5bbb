"""`codeqa eval`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import click

from codeqa.cli.command import cli, command
from codeqa.cli.console import ProgressDisplay, format_table
from codeqa.cli.drafts import hyde_option
from codeqa.cli.own_evaluation import VARIANTS, Options, evaluate_own
from codeqa.cli.repository import chosen_repository
from codeqa.errors import UsageError
from codeqa.evaluation import (
    COUNT,
    Figure,
    Kind,
    Question,
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

OWN_HINT = "With a repository: --compare rerank, vectors or hyde."
FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@command(
    cli,
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
@click.option("--rerank", is_flag=True, help="Let the reranker order the best hits.")
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
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
        options = Options(
            count, seed, tuple(dict.fromkeys(compared)), plot, out, questions, as_json
        )
        repository = chosen_repository(load_settings(), repo)
        assert repository is not None  # it is named
        evaluate_own(load_settings(repository), repository, options)
        return
    if compared or plot:
        raise UsageError("--compare and --plot need REPO.", OWN_HINT)
    if questions is None or out is None:
        raise UsageError("Give REPO, or --questions and --out.", "See 'codeqa eval --help'.")
    asked = _read(load_questions, questions)
    if trees is not None:
        _ask(asked, trees, out, kind, rerank, hyde)
    report = score(asked, _read(load_ranked, out))
    other = score(asked, _read(load_ranked, versus)) if versus else None
    differences = compare(report, other) if other else {}
    if as_json:
        click.echo(json.dumps(_document(report, differences), ensure_ascii=False, indent=2))
        return
    click.echo(_text(report, differences))


def _read(load: Callable[[Path], T], path: Path) -> T:
    try:
        return load(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', error)}.") from None


def _ask(
    questions: list[Question], trees: Path, out: Path, kind: Kind, rerank: bool, hyde: str
) -> None:
    with ProgressDisplay() as show:
        ranked = rank_repositories(
            load_settings(), questions, trees, kind, show, rerank=rerank, hyde=hyde
        )
        try:
            save_ranked(out, ranked)
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror}.") from None


def _text(report: Report, differences: Mapping[str, Figure]) -> str:
    header = ["", "mean", "95 %", "questions", *(["difference", "95 %", ""] if differences else [])]
    rows = []
    for name, figure in report.figures.items():
        row = [
            name,
            f"{figure.mean:.3f}",
            f"{figure.low:.3f} to {figure.high:.3f}",
            str(figure.questions),
        ]
        if differences:
            other = differences[name]
            row += [
                f"{other.mean:+.3f}",
                f"{other.low:+.3f} to {other.high:+.3f}",
                "beyond chance" if other.beyond_chance else "",
            ]
        rows.append(row)
    parts = [format_table(header, rows)]
    for group, values in report.groups.items():
        shown = ("ndcg@10", "hit@1", "recall@10", "line ndcg@10", "cover@500")
        lines = [
            [value, str(figures["ndcg@10"].questions)]
            + [f"{figures[name].mean:.3f}" if name in figures else "" for name in shown]
            for value, figures in values.items()
        ]
        parts.append(format_table([group, "questions", *shown], lines))
    if report.latency_ms:
        median, slow = report.latency_ms
        parts.append(f"latency: median {median:.1f} ms, 95 % below {slow:.1f} ms")
    if report.missing:
        parts.append(f"{report.missing} questions are not among the ranked lists and score 0")
    return "\n\n".join(parts)


def _document(report: Report, differences: Mapping[str, Figure]) -> dict[str, object]:
    return {
        "figures": {name: asdict(figure) for name, figure in report.figures.items()},
        "groups": {
            group: {
                value: {name: figure.mean for name, figure in figures.items()}
                for value, figures in values.items()
            }
            for group, values in report.groups.items()
        },
        "latency_ms": report.latency_ms,
        "missing": report.missing,
        "versus": {name: asdict(figure) for name, figure in differences.items()},
    }
