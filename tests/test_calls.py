"""How something works without a model: what a definition calls."""

from __future__ import annotations

import pytest

from codeqa.quoted.edges import asks_how, calls_section
from codeqa.store import Tables
from codeqa.types import Unit
from tests.indexed import indexed

KITCHEN = '''\
class Cook:
    def chop(self, food):
        """Cut it into pieces. Sharp knives only."""
        pieces = list(food)
        return self.wash(pieces)

    def wash(self, pieces):
        """Rinse them."""
        for piece in pieces:
            piece.rinse()
        return pieces

    def fry(self, pieces):
        pan = self.heat_pan(180)
        return pan.fry(pieces)

    def heat_pan(self, degrees):
        """Wait for the heat."""
        while degrees > 20:
            degrees -= 1
        return degrees

    def is_hot(self):
        return True

    def clean_up(self, mess):
        """Wipe it away."""
        mess.wipe()
        mess.close()


class Meal(Cook):
    def prepare(self, food):
        pieces = self.chop(food)
        self.is_hot()
        try:
            return self.fry(pieces)
        except OSError as mess:
            self.clean_up(mess)
'''


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return indexed(tmp_path_factory.mktemp("kitchen"), {"kitchen.py": KITCHEN})


def unit(tables: Tables, name: str) -> Unit:
    return next(one for one in tables.named([name.replace("_", "")]) if one.name == name)


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


def test_what_it_calls_is_listed_in_order(tables: Tables) -> None:
    text = calls_section(tables, unit(tables, "prepare"))
    assert text.split("\n\n")[1].split("\n") == [
        "- `Cook.chop` [kitchen.py:2-5]: Cut it into pieces.",
        "- `Cook.clean_up` [kitchen.py:26-29]: Wipe it away.",
    ], "but not `is_hot`, which only says what something is"
