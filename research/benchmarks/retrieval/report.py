"""The figures of a run as JSON and as tables that people read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from research.evals.search.questions import Question
from research.evals.search.scores import Figure, Report, compare

SHOWN = ("ndcg@10", "hit@1", "recall@10", "line ndcg@10", "cover@500")
GROUPS = ("category", "language", "repo")


def document(
    questions: Sequence[Question],
    reports: Mapping[str, Report],
    ours: str,
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """All figures of one set of questions, and ours minus each other system's."""
    return {
        "questions": len(questions),
        "with_lines": sum(bool(question.main_lines) for question in questions),
        "systems": {name: _system(report) for name, report in reports.items()},
        "differences": {
            name: _figures(compare(reports[ours], report))
            for name, report in reports.items()
            if name != ours
        },
        "left_out": dict(left_out),
    }


def _system(report: Report) -> dict[str, Any]:
    return {
        "figures": _figures(report.figures),
        "groups": {
            group: {
                value: {name: round(one.mean, 4) for name, one in figures.items() if name in SHOWN}
                | {"questions": figures["ndcg@10"].questions}
                for value, figures in report.groups.get(group, {}).items()
            }
            for group in GROUPS
        },
        "latency_ms": report.latency_ms and [round(value, 1) for value in report.latency_ms],
        "missing": report.missing,
    }


def _figures(figures: Mapping[str, Figure]) -> dict[str, dict[str, float]]:
    return {
        name: {key: round(value, 6) for key, value in asdict(figure).items()}
        for name, figure in figures.items()
    }


def save(content: Mapping[str, Any], path: Path | None) -> str:
    """The tables; with `path` also written, beside the JSON of everything."""
    text = markdown(content)
    if path is not None:
        path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
        path.with_suffix(".md").write_text(text, "utf-8")
    return text


def markdown(content: Mapping[str, Any]) -> str:
    """Tables of every set: the systems, the differences, categories and languages."""
    machine = content["machine"]
    parts = [
        "# Retrieval",
        f"`{content['command']}`, commit {content['commit'] or 'unknown'}, {content['date']}; "
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}, load {machine['load']}.",
        "Files: ndcg, hit and recall of the list of files. Lines: line ndcg and cover of the list "
        "of units. In brackets 95 % intervals; differences are CodeQA minus the other, paired, "
        "with a * where the interval leaves out 0. Latency is the median and 95 % in ms, each "
        "system measured in this run but for stored lists.",
    ]
    for name, found in content["sets"].items():
        parts += [f"## {name}: {found['questions']} questions, {found['with_lines']} with lines"]
        parts += [_systems(found), _differences(found)]
        parts += [_groups(found, group) for group in ("category", "language", "repo")]
        parts += [f"Left out: {reason}." for reason in found["left_out"].values()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _systems(found: Mapping[str, Any]) -> str:
    rows = []
    for name, system in found["systems"].items():
        figures = system["figures"]
        cells = [_with_interval(figures[one]) if one in figures else "" for one in SHOWN]
        latency = system["latency_ms"]
        rows.append([name, *cells, f"{latency[0]} / {latency[1]}" if latency else ""])
    return _table(["", *SHOWN, "latency"], rows)


def _with_interval(figure: Mapping[str, float]) -> str:
    return f"{figure['mean']:.3f} ({figure['low']:.2f}–{figure['high']:.2f})"


def _differences(found: Mapping[str, Any]) -> str:
    rows = []
    for name, figures in found["differences"].items():
        cells = []
        for one in SHOWN:
            figure = figures.get(one)
            if figure is None:
                cells.append("")
                continue
            star = "*" if figure["low"] > 0 or figure["high"] < 0 else ""
            interval = f"{figure['low']:+.3f} to {figure['high']:+.3f}"
            cells.append(f"{figure['mean']:+.3f}{star} ({interval})")
        rows.append([name, *cells])
    return _table(["CodeQA minus", *SHOWN], rows) if rows else ""


def _groups(found: Mapping[str, Any], group: str) -> str:
    (ours, system), *_ = found["systems"].items()
    rows = [
        [value, str(figures["questions"])]
        + [f"{figures[one]:.3f}" if one in figures else "" for one in SHOWN]
        for value, figures in system["groups"][group].items()
    ]
    return _table([f"{ours} by {group}", "questions", *SHOWN], rows) if rows else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
