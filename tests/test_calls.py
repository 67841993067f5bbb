"""How something works without a model: what a definition calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeqa.quoted.edges import asks_how, calls_section
from tests.indexed import indexed

KITCHEN = '''\
class Cook:
    def chop(self, food):
        """Cut it into pieces. Sharp knives only."""
        return list(food)

    def is_hot(self):
        return True

    def clean_up(self, mess):
        """Wipe it away."""
        mess.wipe()


class Meal(Cook):
    def prepare(self, food):
        pieces = self.chop(food)
        try:
            return self.is_hot()
        except OSError as mess:
            self.clean_up(mess)
'''


@pytest.mark.parametrize(
    ("question", "how"),
    [
        ("how is a meal prepared", True),
        ("What happens when the pan burns?", True),
        ("in which order do they run", True),
        ("why is it cached", True),
        ("how many cooks are there", False),
        ("where is the pan heated", False),
        ("who calls chop", False),
    ],
)
def test_questions_about_a_course_of_events(question: str, how: bool) -> None:
    assert asks_how(question) == how


def test_what_it_calls_is_listed_in_order(tmp_path: Path) -> None:
    tables = indexed(tmp_path, {"kitchen.py": KITCHEN})
    (prepare,) = tables.named(["prepare"])
    assert calls_section(tables, prepare).split("\n\n")[1].split("\n") == [
        "- `Cook.chop` [kitchen.py:2-4]: Cut it into pieces.",
        "- `Cook.clean_up` [kitchen.py:9-11]: Wipe it away.",
    ], "but not `is_hot`, which only says what something is"
