"""The picture of docs/images/first-word.svg: `python -m benchmarks.first_word_curve FILE`.

FILE is `benchmarks/results/first-word.json`: of each way to find what a question does not name the
share of questions whose answer is in the context, and the median seconds to the first word by kind
of model (`benchmarks.first_word`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "images" / "first-word.svg"
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 760, 420, 60, 24, 46, 190
SECONDS = (0.5, 1, 2, 5, 10, 20, 50, 100)
SHARES = (0.4, 0.6, 0.8, 1.0)
COLOURS = ("#0f766e", "#b45309", "#6d28d9", "#be123c", "#2563eb")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#57534e}.grid{stroke:#a8a29e;stroke-opacity:.35}"
    "@media (prefers-color-scheme:dark){text{fill:#d6d3d1}}"
)


def x_of(seconds: float) -> float:
    """On a scale of logarithms: twice as long is as far anywhere."""
    from math import log

    part = log(seconds / SECONDS[0]) / log(SECONDS[-1] / SECONDS[0])
    return LEFT + max(0.0, min(1.0, part)) * (WIDTH - LEFT - RIGHT)


def y_of(share: float) -> float:
    part = (share - SHARES[0]) / (SHARES[-1] - SHARES[0])
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def text(x: float, y: float, said: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{more}>{escape(said)}</text>'


def curve(ways: Sequence[Mapping[str, Any]]) -> str:
    """The picture: a colour for each kind of model, a height for each way."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Answer in context against seconds to the first word">',
        f"<style>{STYLE}</style>",
    ]
    for seconds in SECONDS:
        x = x_of(seconds)
        parts.append(f'<path class="grid" d="M{x:.0f} {TOP}V{HEIGHT - BOTTOM}"/>')
        parts.append(text(x, HEIGHT - BOTTOM + 18, f"{seconds:g} s", "middle"))
    for share in SHARES:
        y = y_of(share)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.0f}H{WIDTH - RIGHT}"/>')
        parts.append(text(LEFT - 8, y + 4, f"{share:.0%}", "end"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "to the first word", "middle"))
    kinds = list(ways[0]["seconds"])
    for kind, colour in zip(kinds, COLOURS, strict=False):
        for way in ways:
            x, y = x_of(way["seconds"][kind]), y_of(way["in context"])
            size = 6 if way.get("default") else 3.5
            told = f"{kind}, {way['name']}: {way['seconds'][kind]} s, {way['in context']:.0%}"
            parts.append(
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{size}" fill="{colour}">'
                f"<title>{escape(told)}</title></circle>"
            )
    for number, (kind, colour) in enumerate(zip(kinds, COLOURS, strict=False)):
        y = y_of(0.75) + 20 * number
        parts.append(f'<circle cx="{WIDTH - RIGHT + 24}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(text(WIDTH - RIGHT + 34, y, kind))
    for way in ways:
        y = y_of(way["in context"])
        parts.append(
            text(WIDTH - RIGHT + 8, y + 4, f"– {way['name']}", more=' font-style="italic"')
        )
    return "\n".join((*parts, "</svg>\n"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    found = json.loads(parser.parse_args().file.read_text("utf-8"))
    OUT.write_text(curve(found["ways"]), "utf-8")
