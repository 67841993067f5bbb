"""Numbers as a reader is told them."""

from __future__ import annotations

PLURALS = {"repository": "repositories", "line of the profile": "lines of the profile",
            "cached piece of code": "cached pieces of code"}  # fmt: skip


def counted(number: int, noun: str) -> str:
    """`1 question`, `1,200 questions`."""
    return f"{number:,} {noun if number == 1 else PLURALS.get(noun, f'{noun}s')}"


def size_of(count: float) -> str:
    """Bytes in the unit that fits."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
