"""Figures of several runs as one self-contained picture: SVG, or a page that holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from codeqa.errors import UsageError
from codeqa.evaluation.scores import Figure

COLOURS = ("#2f6fb3", "#d9822b", "#3f8f5f", "#8a5bab", "#b0413e", "#6b6b6b")
"""Of the runs, in their order; they stay apart in print and for the colour-blind."""
WIDTH = 760
LABEL_WIDTH = 130
VALUE_WIDTH = 150
BAR = 14
GAP = 14
HEAD = 46
LEGEND_LINE = 20

Runs = Mapping[str, Mapping[str, Figure]]
"""Name of a run → figure → value with its interval."""


def save_plot(path: Path, title: str, runs: Runs, shown: Sequence[str], note: str = "") -> None:
    """Write the picture: `.svg` alone, or `.html` with `note` below it.

    Raises UsageError for another ending, OSError as writing does.
    """
    ending = path.suffix.lower()
    if ending not in (".svg", ".html"):
        raise UsageError(f"{path} is neither .svg nor .html.", "Name the plot one of these.")
    picture = svg(title, runs, shown)
    text = picture if ending == ".svg" else _page(title, picture, note)
    path.write_text(text, encoding="utf-8")


def svg(title: str, runs: Runs, shown: Sequence[str]) -> str:
    """Bars from 0 to 1 for each of the `shown` figures and each run, with their intervals."""
    rows = [name for name in shown if any(name in figures for figures in runs.values())]
    group = BAR * len(runs) + GAP
    top = HEAD + LEGEND_LINE * len(runs)
    height = top + group * len(rows) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12" '
        'role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="24" font-size="16" fill="#222222">{escape(title)}</text>',
    ]
    for number, name in enumerate(runs):
        y = HEAD + LEGEND_LINE * number
        parts.append(f'<rect x="10" y="{y - 10}" width="12" height="12" fill="{_colour(number)}"/>')
        parts.append(f'<text x="28" y="{y}" fill="#222222">{escape(name)}</text>')
    for row, figure in enumerate(rows):
        y = top + group * row
        middle = y + BAR * len(runs) / 2 + 4
        parts.append(f'<text x="10" y="{middle:.0f}" fill="#222222">{escape(figure)}</text>')
        for number, figures in enumerate(runs.values()):
            if figure in figures:
                parts += _bar(figures[figure], y + BAR * number, _colour(number))
    return "\n".join([*parts, "</svg>\n"])


def _bar(figure: Figure, y: float, colour: str) -> list[str]:
    span = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    width, low, high = (
        max(0.0, min(1.0, value)) * span for value in (figure.mean, figure.low, figure.high)
    )
    middle = y + BAR / 2
    label = f"{figure.mean:.3f} ({figure.low:.3f} to {figure.high:.3f})"
    return [
        f'<rect x="{LABEL_WIDTH}" y="{y}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>',
        f'<line x1="{LABEL_WIDTH + low:.1f}" x2="{LABEL_WIDTH + high:.1f}" y1="{middle - 1}" '
        f'y2="{middle - 1}" stroke="#222222"/>',
        f'<text x="{LABEL_WIDTH + span + 8}" y="{middle + 3}" font-size="11" '
        f'fill="#444444">{label}</text>',
    ]


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _page(title: str, picture: str, note: str) -> str:
    lines = "".join(f"<p>{escape(line)}</p>\n" for line in note.splitlines() if line.strip())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n</head>\n"
        '<body style="font-family: sans-serif; max-width: 800px; margin: 2em auto">\n'
        f"{picture}{lines}</body>\n</html>\n"
    )
