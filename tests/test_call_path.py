"""How something works without a model: which definition leads, and the path below it."""

from __future__ import annotations

import pytest

from codeqa.extractive.call_path import asks_how, find_path, is_thin, path_section
from codeqa.search import parse_query
from codeqa.store import Tables
from codeqa.types import Hit, Unit
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

    def serve(self, food):
        return self.prepare(food)

    def taste(self):
        """Try a little."""
        raise NotImplementedError
'''


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return indexed(tmp_path_factory.mktemp("kitchen"), {"kitchen.py": KITCHEN})


def unit(tables: Tables, name: str) -> Unit:
    return next(one for one in tables.named([name.replace("_", "")]) if one.name == name)


def hits(tables: Tables, *names: str) -> list[Hit]:
    """Hits of these names, each a little worse than the one before."""
    return [Hit(unit(tables, name), 1 - 0.05 * place) for place, name in enumerate(names)]


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


def test_what_calls_the_other_hits_leads_and_its_calls_follow_in_order(tables: Tables) -> None:
    found = hits(tables, "chop", "fry", "serve", "prepare")
    path = find_path(tables, parse_query("how is food prepared"), found)
    assert path is not None
    assert path.leader.unit.qualified_name == "Meal.prepare"
    assert [(step.depth, step.unit.name) for step in path.steps] == [
        (1, "chop"),
        (2, "wash"),
        (1, "fry"),
        (2, "heat_pan"),
        (1, "clean_up"),
    ]  # but not `is_hot`, which only says what something is
    assert path.caller is not None
    assert path.caller.name == "serve"
    text = path_section(path).text
    assert "Called by `Meal.serve` [kitchen.py:" in text
    assert "- `Cook.chop` [kitchen.py:2-5]: Cut it into pieces.\n  - `Cook.wash` " in text
    assert "- `Cook.fry` [kitchen.py:13-15]: `def fry(self, pieces)`" in text


def test_what_the_question_names_leads_whatever_does_more(tables: Tables) -> None:
    found = hits(tables, "prepare", "chop")
    for question in ("what happens when I call chop(food)?", "how does chop cut food"):
        path = find_path(tables, parse_query(question), found)
        assert path is not None and path.leader.unit.name == "chop"


def test_a_question_about_a_failure_is_led_by_what_catches_it(tables: Tables) -> None:
    found = hits(tables, "fry", "heat_pan")
    calm = find_path(tables, parse_query("how is food fried"), found)
    failing = find_path(tables, parse_query("what happens when fry raises"), found)
    assert calm is not None and calm.leader.unit.name == "fry"
    assert failing is not None and failing.leader.unit.name == "prepare"
    assert "clean_up" in [step.unit.name for step in failing.steps]


def test_stubs_and_wrappers_are_thin_and_lead_nowhere(tables: Tables) -> None:
    thin = {name for name in ("taste", "serve", "prepare", "wash") if is_thin(unit(tables, name))}
    assert thin == {"taste", "serve"}
    found = hits(tables, "taste", "serve")
    assert find_path(tables, parse_query("how is a meal served"), found) is None
    assert find_path(tables, parse_query("how is a meal served"), []) is None
