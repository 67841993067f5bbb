"""Follow-ups along the edges: what they speak of, what they ask of it, and what is near."""

from __future__ import annotations

import pytest
from chat_kit import Indexed, ask, index, told

from codeqa.chat.record import TurnRecord
from codeqa.code.calls import asked_relations
from codeqa.engine import Engine

pytest_plugins = ("chat_fixtures",)

FILES = {
    "server.py": '''"""A small server."""

from handling import deliver


class Server:
    def __call__(self, letter):
        """What the outside world calls."""
        return self.accept(letter)

    def accept(self, letter):
        """Take a letter in."""
        return deliver(letter)
''',
    "handling.py": '''"""What happens to letters."""


def deliver(letter):
    """Deliver a letter to whom it is addressed."""
    stamp(letter)
    try:
        return carry(letter)
    except ValueError as error:
        return return_to_sender(letter, error)


def stamp(letter):
    """Put the date on it."""
    letter.date = "today"


def carry(letter):
    """Bring it there by bicycle."""
    return letter.address.door


def return_to_sender(letter, error):
    """Send it back after an exception, with the reason on it."""
    letter.reason = str(error)
    return letter.sender
''',
    "tests/test_handling.py": """from handling import deliver


def test_a_letter_arrives():
    assert deliver(LETTER) == "door"
""",
    **{
        f"filler{number}.py": f"def unrelated_{number}(stock):\n"
        + "".join(f"    stock.move({line}, 'letter')\n" for line in range(40))
        for number in range(4)
    },
}
FIRST = "@codebase how does `deliver` bring a letter?"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    return index(tmp_path_factory.mktemp("post"), FILES)


@pytest.fixture
def engine(quoting: Engine) -> Engine:
    """Answers without a language model."""
    return quoting


def answered(engine: Engine, *questions: str) -> tuple[str, TurnRecord]:
    """The answer to the last of `questions`, and what is kept of it."""
    for question in questions:
        events = ask(engine, question, retrieval="auto", effort="fast")
    turn = engine.conversations.turn(told(events, "done")["turn"])
    return turn.answer, turn


def test_relations_are_read_from_questions_that_ask_for_nothing_else() -> None:
    for text, names, relations in (
        ("who calls that?", (), ("callers",)),
        ("what about its callers' callers?", (), ("callers", "callers")),
        ("what does it call under the hood?", (), ("callees",)),
        ("what does steal_work call?", ("steal_work",), ("callees",)),
        ("and the tests of its callers?", (), ("callers", "tests")),
        ("how is it tested that the session is kept?", (), ()),
        ("which tests check the session of a visitor?", (), ()),
        ("who are the callers" + " of the callers" * 200, (), ("callers",) * 4),
    ):
        assert asked_relations(text, names) == relations


def test_callers_of_callers_are_walked_and_cited(engine: Engine) -> None:
    answer, turn = answered(engine, FIRST, "what about its callers' callers?")
    assert "The callers of the callers of `deliver`" in answer
    assert "`Server.__call__` calls `Server.accept` [server.py:9]" in answer
    assert turn.found_names[:3] == ("Server.__call__", "deliver", "Server.accept")
    assert "def __call__" in turn.block.text and "def deliver" in turn.block.text


def test_it_is_the_definition_asked_about_and_that_is_what_was_found_last(engine: Engine) -> None:
    answer, turn = answered(engine, FIRST, "who calls it?")
    assert "[server.py:13] in `Server.accept`" in answer
    assert turn.found_names[0] == "Server.accept"
    answer, turn = answered(engine, "and who calls that?")
    assert "[server.py:9] in `Server.__call__`" in answer
    answer, _ = answered(engine, "what does it call?")
    assert "What `deliver` calls" in answer
    called = ("stamp", "carry", "return_to_sender")
    places = [answer.index(f"`deliver` calls `{one}`") for one in called]
    assert places == sorted(places)
    answer, turn = answered(engine, "and the tests of it?")
    assert "`test_a_letter_arrives` calls `deliver` [tests/test_handling.py:5]" in answer
    assert "def test_a_letter_arrives" in turn.block.text
    answer, _ = answered(engine, "@codebase what does return_to_sender do?", "what does it call?")
    assert "What `return_to_sender` calls: none was found." in answer


def test_it_is_what_the_answer_speaks_of_where_nothing_was_named(engine: Engine) -> None:
    answer, turn = answered(engine, "@codebase what happens to a letter that comes in?")
    first = next(line for line in answer.splitlines() if line.startswith("**`")).split("`")[1]
    assert turn.found_names[0] == first
    answer, _ = answered(engine, "what does it call?")
    assert f"What `{first}` calls" in answer


def test_a_follow_up_about_the_answer_searches_nothing(engine: Engine) -> None:
    ask(engine, FIRST, retrieval="auto")
    events = ask(engine, "explain the second one", retrieval="auto")
    assert told(events, "classified")["goes_on"]
    events = ask(engine, "who registers it?", retrieval="auto")
    assert told(events, "classified")["searched_automatically"]
