"""Cutting texts to what an embedding reads."""

from __future__ import annotations

from codeqa.text.tokens import CHARACTERS_PER_TOKEN, estimate_tokens


def cut(text: str, max_tokens: int) -> str:
    """The first lines of `text` that stay within `max_tokens` (≈).

    A first line that is too long by itself is cut inside; every other cut falls between
    lines, so that no statement is embedded by half.
    """
    if estimate_tokens(text) <= max_tokens:
        return text
    used = 0
    kept = []
    for line in text.split("\n"):
        used += estimate_tokens(line + "\n")
        if used > max_tokens:
            break
        kept.append(line)
    return "\n".join(kept) if kept else _cut_line(text.split("\n", 1)[0], max_tokens)


def _cut_line(line: str, max_tokens: int) -> str:
    # One character is at most one estimated token, and CHARACTERS_PER_TOKEN at best.
    end = int(max_tokens * CHARACTERS_PER_TOKEN)
    while end > 0 and estimate_tokens(line[:end]) > max_tokens:
        end = end * 9 // 10
    return line[:end]
