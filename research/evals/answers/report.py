"""The page of a run: one HTML file without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from codeqa.render import render_markdown
from research.evals.answers.cases import Case
from research.evals.answers.judge import FIGURES, Result, figures_of
from research.evals.search.scores import Figure

SYNTAX = Path(__file__).parents[3] / "static" / "css" / "syntax.css"
STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #17803d; --bad: #c0261c; }
@media (prefers-color-scheme: dark) { :root { --good: #5ecb84; --bad: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem;
  overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; }
th, td { padding: .2rem .5rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; overflow-wrap: normal; }
th:first-child, td:first-child { text-align: left; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
pre { overflow-x: auto; padding: .5rem; border: 1px solid var(--line); overflow-wrap: normal; }
code { font-size: .85em; }
.good { color: var(--good); } .bad { color: var(--bad); }
.small { font-size: .85rem; opacity: .8; }
.answer { border-left: 3px solid var(--line); padding-left: .8rem; }
"""


def page(
    title: str, cases: Sequence[Case], results: Sequence[Result], answers: Mapping[str, str]
) -> str:
    """The whole page; cases that failed stand first."""
    asked = {case.id: case for case in cases}
    ordered = sorted(results, key=lambda result: result.verdict.passed)
    body = [
        f"<h1>{escape(title)}</h1>",
        '<p class="small">Means, and of all cases the interval of 95 % in which the mean would '
        "lie for others like them. Tokens are those of the context, estimated.</p>",
        _table(results),
        *(_case(asked[one.id], one, answers.get(one.id, "")) for one in ordered),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{SYNTAX.read_text()}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def what_failed(case: Case, result: Result) -> Iterator[str]:
    """Each rule that is not fulfilled, as a sentence."""
    verdict = result.verdict
    if result.problem:
        yield f"There is no answer: {result.problem}"
    for group, right in zip(case.must_cite, verdict.cited, strict=True):
        if not right:
            yield f"Does not cite {' or '.join(group)}."
    for group, right in zip(case.must_mention, verdict.mentioned, strict=True):
        if not right:
            yield f"Does not mention {' or '.join(group)}."
    for word in verdict.said:
        yield f"Says {word}."
    if case.kind == "trap" and not verdict.unknown:
        yield "Does not say that this is not there."


def _table(results: Sequence[Result]) -> str:
    heads = "".join(f"<th>{name}</th>" for name in ("", "n", *FIGURES))
    rows = [_row("all", results, interval=True)]
    for group in ("kind", "repository"):
        for value in sorted({getattr(result, group) for result in results}):
            rows.append(_row(value, [one for one in results if getattr(one, group) == value]))
    return f'<div class="wide"><table><tr>{heads}</tr>{"".join(rows)}</table></div>'


def _row(name: str, results: Sequence[Result], interval: bool = False) -> str:
    figures = figures_of(results)
    cells = [_cell(figures.get(one), 0 if one == "tokens" else 2, interval) for one in FIGURES]
    return f"<tr><td>{escape(name)}</td><td>{len(results)}</td>{''.join(cells)}</tr>"


def _cell(figure: Figure | None, digits: int, interval: bool) -> str:
    if figure is None:
        return "<td></td>"
    mean, low, high = (f"{x:.{digits}f}" for x in (figure.mean, figure.low, figure.high))
    span = f'<br><span class="small">{low}–{high}</span>' if interval else ""
    return f"<td>{mean}{span}</td>"


def _case(case: Case, result: Result, answer: str) -> str:
    mark = '<b class="good">✓</b>' if result.verdict.passed else '<b class="bad">✗</b>'
    failed = "".join(f'<li class="bad">{escape(one)}</li>' for one in what_failed(case, result))
    labelled = ", ".join(place.at if place.necessary else f"({place.at})" for place in case.lines)
    after = "".join(f"<p>First: {escape(one)}</p>" for one in case.after)
    figures = "".join(
        f" · {name} {value:.2f}"
        for name, value in (("recall", result.recall), ("precision", result.precision))
        if value is not None
    )
    return (
        f"<details><summary>{mark} {escape(case.repository)} · {case.kind}: "
        f"{escape(case.question)}</summary>"
        f'<p class="small">{escape(case.id)} · {result.tokens} tokens · {result.seconds:.1f} s'
        f"{figures}</p>{after}<ul>{failed}</ul>"
        f'<p class="small">Labelled: {escape(labelled) or "nothing"}<br>'
        f"In the context: {escape(', '.join(result.context)) or 'nothing'}</p>"
        f'<div class="answer">{render_markdown(answer)}</div></details>'
    )
