"""Hits to be reranked, alike but for what a test says of them."""

from __future__ import annotations

from collections.abc import Sequence

from codeqa.types import Hit, Unit


def hit(number: int, code: str = "", *, role: str = "source", score: float | None = None) -> Hit:
    """The function `f<number>`, of the score 1 less a thousandth of its number."""
    unit = Unit(
        path=f"src/m{number:02}.py",
        language="python",
        kind="class" if number % 2 else "function",
        name=f"f{number}",
        qualified_name=f"f{number}",
        source_code=code or f"def f{number}():\n    return {number}",
        start_line=1,
        end_line=2,
        method_declarations=("def g()",) if number % 2 else (),
        role=role,
        id=f"id{number}",
    )
    return Hit(unit, 1 - number / 1_000 if score is None else score, ("matches",))


HITS = [hit(number) for number in range(60)]


def numbers(hits: Sequence[Hit]) -> list[int]:
    return [int(one.unit.name[1:]) for one in hits]
