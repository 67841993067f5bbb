"""Diagrams as Mermaid text, in the one small part of its grammar that every reader knows::

flowchart LR
n1["Flask.wsgi_app"]
n2["Flask.make_response"]
n1 -->|line 12| n2
"""

from __future__ import annotations

from collections.abc import Iterable

from codeqa.text.markdown import clean

MOST_NODES = 30
"""More are no picture."""
LONGEST_LABEL = 60
"""Characters of a node's label."""
_ESCAPED = str.maketrans({'"': "#quot;", "#": "\u266f", "`": "'", "<": "\u2039", ">": "\u203a",
                          "&": "\uff06", "|": "/", ";": ","})  # fmt: skip
"""What would end a label, or is markup in one, gives way to what looks like it."""


def flowchart(edges: Iterable[tuple[str, str, str]]) -> str:
    """The arrows (from, to, words beside it) from left to right, as far as MOST_NODES lead; '' for
    none. Names may hold anything."""
    numbers: dict[str, int] = {}
    arrows: list[str] = []
    for start, end, label in edges:
        new = [name for name in dict.fromkeys((start, end)) if name not in numbers]
        if len(numbers) + len(new) > MOST_NODES:
            continue
        for name in new:
            numbers[name] = len(numbers) + 1
        beside = f"|{_escaped(label)}|" if label else ""
        arrows.append(f"n{numbers[start]} -->{beside} n{numbers[end]}")
    nodes = [f'n{number}["{_escaped(name)}"]' for name, number in numbers.items()]
    return "\n".join(["flowchart LR", *nodes, *dict.fromkeys(arrows)]) if arrows else ""


def _escaped(text: str) -> str:
    text = " ".join(text.split()) or "?"
    text = text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 3]}..."
    return clean(text).translate(_ESCAPED)
