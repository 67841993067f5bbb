"""What of a search enters the context, within the budget of a question: units, whole files, and
what the user pinned."""

from codeqa.selection.selecting import (
    BUDGET_CHARACTERS_PER_TOKEN,
    UNITS_RANKED,
    Budget,
    budget_of,
    build_context,
    largest_block,
    parse_effort,
)
from codeqa.selection.whole_files import POOL, best_files, every_file

__all__ = [
    "BUDGET_CHARACTERS_PER_TOKEN",
    "POOL",
    "UNITS_RANKED",
    "Budget",
    "best_files",
    "budget_of",
    "build_context",
    "every_file",
    "largest_block",
    "parse_effort",
]
