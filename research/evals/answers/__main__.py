"""Ask all cases and judge the answers: `python -m research.evals.answers --trees DIR`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from codeqa.cli.console import format_table
from codeqa.errors import CodeQAError, UsageError
from codeqa.types import EFFORTS
from research.evals.answers.cases import CASES, Case, load_cases, problems
from research.evals.answers.judge import FIGURES, Result, differences, figures_of
from research.evals.answers.report import page
from research.evals.answers.run import READERS, Run, answers_in, ask_all, load_results
from research.evals.search.scores import Figure

GROUPS = ("kind", "repository")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when something cannot be done."""
    parser = argparse.ArgumentParser(
        prog="python -m research.evals.answers", description=__doc__.split(":")[0]
    )
    parser.add_argument("--trees", type=Path, required=True, help="folder of the repositories")
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument(
        "--only", action="append", default=[], metavar="ID", help="case, repository or kind"
    )
    parser.add_argument("--effort", choices=EFFORTS, default="normal")
    parser.add_argument("--out", type=Path, default=Path("build/answers"))
    parser.add_argument("--data", type=Path, help="folder of the indexes; default: OUT/data")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="results of an earlier run")
    parser.add_argument("--fresh", action="store_true", help="ask again what was asked before")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--model", default="", metavar="PROVIDER/NAME")
    who.add_argument("--reader", choices=READERS, default="extractive")
    who.add_argument("--answers", type=Path, metavar="FILE", help="lines of {id, answer} to judge")
    who.add_argument("--dump-prompts", type=Path, metavar="DIR", help="write what a model is sent")
    given = parser.parse_args(arguments)
    try:
        return _run(given)
    except CodeQAError as error:
        print(f"{error.message} {error.hint}".strip(), file=sys.stderr)
        return 1


def _run(given: argparse.Namespace) -> int:
    cases = [case for case in load_cases(given.cases) if _chosen(case, given.only)]
    recorded = answers_in(given.answers) if given.answers else None
    if recorded is not None:
        cases = [case for case in cases if case.id in recorded]
    if wrong := [f"{case.id}: {one}" for case in cases for one in problems(case, given.trees)]:
        raise UsageError("Some cases cannot be used.\n" + "\n".join(wrong))
    if not cases:
        raise UsageError("No case was chosen.")
    reader = "prompts" if given.dump_prompts else given.reader
    run = Run(
        trees=given.trees,
        out=given.out,
        data=given.data or given.out / "data",
        effort=given.effort,
        reader="recorded" if recorded is not None else reader,
        model=given.model,
        recorded=recorded or {},
        prompts=given.dump_prompts,
        fresh=given.fresh,
    )
    results = ask_all(run, cases)
    if given.dump_prompts:
        print(f"{len(results)} prompts in {given.dump_prompts}")
        return 0
    title = f"{run.name}: {len(results)} cases"
    print(title)
    print(table(results))
    if given.compare:
        print(comparison(results, load_results(given.compare)))
    report = run.out / f"{run.name}.html"
    report.write_text(page(title, cases, results, answers_in(run.answers_file)), encoding="utf-8")
    print(f"{run.results_file}\n{report}")
    return 0


def table(results: Sequence[Result]) -> str:
    """All figures with their intervals, then their means of each kind and repository."""
    rows = [["all", str(len(results)), *_cells(figures_of(results), True)]]
    for group in GROUPS:
        for value in sorted({getattr(result, group) for result in results}):
            of_group = [result for result in results if getattr(result, group) == value]
            rows.append([value, str(len(of_group)), *_cells(figures_of(of_group))])
    return format_table(["", "n", *FIGURES], rows)


def comparison(ours: Sequence[Result], theirs: Sequence[Result]) -> str:
    """What became better and worse since an earlier run, and which cases."""
    before = {result.id: result.verdict.passed for result in theirs}
    changed = [one for one in ours if before.get(one.id, one.verdict.passed) != one.verdict.passed]
    table = format_table(["", *FIGURES], [["since then", *_cells(differences(ours, theirs), True)]])
    lines = [f"{'+' if one.verdict.passed else '-'} {one.id}" for one in changed]
    return "\n".join([table, *lines])


def _cells(figures: dict[str, Figure], interval: bool = False) -> list[str]:
    cells = []
    for name in FIGURES:
        figure = figures.get(name)
        digits = {"tokens": 0, "seconds": 2}.get(name, 2)
        cell = f"{figure.mean:.{digits}f}" if figure else ""
        if figure and interval:
            cell += f" ({figure.low:.{digits}f}..{figure.high:.{digits}f})"
        cells.append(cell)
    return cells


def _chosen(case: Case, only: Sequence[str]) -> bool:
    return not only or bool({case.id, case.repository, case.kind} & set(only))


if __name__ == "__main__":
    sys.exit(main())
