"""What code means: what a place refers to, and what follows from that. Each thing is one function
with one result, which pages, tools, counted and quoted answers render.

`codeqa.code.tools` are the same for agents, `codeqa.code.counted` for questions that are counted.
"""

from codeqa.code.calls import callees
from codeqa.code.neighbours import outlines_of, uses_of
from codeqa.code.relations import (
    Walk,
    asked_relations,
    follow_relations,
    is_test,
    tests_of,
    without_relations,
)
from codeqa.code.usages import SURENESS, Usages, UsageSite, usages

__all__ = [
    "SURENESS",
    "UsageSite",
    "Usages",
    "Walk",
    "asked_relations",
    "callees",
    "follow_relations",
    "is_test",
    "outlines_of",
    "tests_of",
    "usages",
    "uses_of",
    "without_relations",
]
