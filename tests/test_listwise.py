"""Files put in order by a language model: what it is shown, and what its answer may do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from codeqa.llm.models import Models
from codeqa.search.by_model import FILES_NAMED, FILES_SHOWN, LINES_SHOWN, ORDER
from codeqa.search.hybrid import Search, open_search
from codeqa.settings import load_settings
from codeqa.store import Tables
from tests.openai_server import Reply, ScriptedServer, failure, openai_server, silent, stream
from tests.waiting import PATIENCE, Clock

pytest_plugins = ("chat_fixtures",)

LATE = "late"
QUESTION = "where is the parcel weighed?"
FILES = {
    f"post/counter{number}.py": f"def weigh_parcel_{number}(parcel):\n"
    f'    """Weigh the parcel at counter {number}."""\n'
    + "".join(f"    parcel.step({line})\n" for line in range(30))
    for number in range(15)
}


class Asked:
    """A search whose model answers with `answer`, a text or a function of the candidates, or not in
    time."""

    def __init__(self, tables: Tables, server: ScriptedServer, clock: Clock) -> None:
        self.tables, self.server, self.clock = tables, server, clock
        self.answer: Any = "1"
        self.bodies: list[dict[str, Any]] = []

    def script(self, path: str, body: dict[str, Any]) -> Reply:
        self.bodies.append(body)
        if self.answer == LATE:
            self.clock.advance(PATIENCE)
            return silent()
        shown = re.findall(r"^\[(\d+)\] (.+)$", body["messages"][1]["content"], re.MULTILINE)
        numbers = {path: number for number, path in shown}
        said = self.answer(numbers) if callable(self.answer) else self.answer
        return stream([said]) if isinstance(said, str) else said

    def open(self, **settings: Any) -> Search:
        asks = {"model": "openai/gpt-4o", "openai_base_url": self.server.base_url}
        made = load_settings(**{"hyde": "off", "hyde_seconds": PATIENCE, **asks, **settings})
        return open_search(made, lambda: self.tables, models=Models(made))


@pytest.fixture
def asked(tables: Tables, clock: Clock) -> Iterator[Asked]:
    with openai_server(lambda path, body: asked.script(path, body)) as server:
        asked = Asked(tables, server, clock)
        yield asked


def paths(result: Any) -> list[str]:
    return [file.path for file in result.files]


def test_the_files_that_the_model_names_stand_first_and_so_do_their_units(asked: Asked) -> None:
    wanted = ["post/counter5.py", "post/counter3.py"]
    asked.answer = lambda numbers: ", ".join(numbers[path] for path in wanted)
    search = asked.open()
    before = search.search(QUESTION, top=50, hyde="off")
    after = search.search(QUESTION, top=50, hyde="off", order=True)
    assert paths(after)[:2] == wanted != paths(before)[:2]
    assert set(paths(after)) <= {hit.unit.path for hit in before.units}
    assert [hit.unit.path for hit in after.units][:2] == wanted
    assert "ordered by the language model" in after.units[0].why
    rest = [path for path in paths(before) if path not in wanted]
    assert paths(after)[2:] == rest[: len(paths(after)) - 2]
    assert after.reranker == ""
    assert [stage.name for stage in after.stages] == ["search", "order"]
    scores = [hit.score for hit in after.units]
    assert scores == sorted(scores, reverse=True)


def test_twelve_files_are_shown_by_path_and_beginning_shuffled_and_nothing_else(
    asked: Asked,
) -> None:
    search = asked.open()
    found = search.search(f"{QUESTION} ghp_{'a1B2' * 9}", top=50, hyde="off", order=True)
    assert len(found.files) > FILES_SHOWN
    system, user = (message["content"] for message in asked.bodies[0]["messages"])
    assert "weigh" not in system and "ghp_" not in user
    shown = re.findall(r"^\[\d+\] (.+)$", user, re.MULTILINE)
    assert len(shown) == FILES_SHOWN
    plain = paths(asked.open().search(QUESTION, top=50, hyde="off"))
    assert shown != [path for path in plain if path in shown]
    assert user.count("    1| def weigh_parcel_") == FILES_SHOWN
    assert f"{LINES_SHOWN:>5}| " in user and f"{LINES_SHOWN + 1:>5}| " not in user
    assert "… 18 more lines" in user


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        *((said, "") for said in ("", "I think it is counter 7.", "0", "1, 99")),
        (failure(500), ""),
        (LATE, "timed out"),
    ],
)
def test_an_answer_that_is_late_or_no_list_of_candidates_changes_nothing(
    asked: Asked, answer: Reply | str, outcome: str
) -> None:
    asked.answer = answer
    search = asked.open()
    before = search.search(QUESTION, hyde="off")
    after = search.search(QUESTION, hyde="off", order=True)
    assert paths(after) == paths(before)
    assert [hit.unit.id for hit in after.units] == [hit.unit.id for hit in before.units]
    assert after.reranker == "" and after.stages[-1].outcome != "done"
    assert outcome in after.stages[-1].outcome


def test_the_last_line_counts_and_no_more_than_five_of_its_numbers(asked: Asked) -> None:
    asked.answer = "Counters weigh.\n\n**1, 2, 2, 3, 4, 5, 6, 7**"
    after = asked.open().search(QUESTION, top=50, hyde="off", order=True)
    moved = {hit.unit.path for hit in after.units if "ordered by the language model" in hit.why}
    assert len(moved) == FILES_NAMED


def test_a_model_that_may_not_or_cannot_help_is_not_asked(asked: Asked) -> None:
    asked.open(hyde="two").search(QUESTION, hyde="", order=True, use_model=False)
    found = asked.open().search("weigh_parcel_3", hyde="off", order=True)
    assert asked.bodies == []
    why = "skipped: the question is a name that is defined here"
    assert [(s.name, s.outcome) for s in found.stages] == [("search", "done"), (ORDER, why)]


@pytest.mark.parametrize("draft", [failure(500), LATE, ""], ids=["fails", "late", "empty"])
def test_a_draft_that_did_not_help_is_the_last_helping_call(
    asked: Asked, draft: Reply | str
) -> None:
    asked.answer = draft
    found = asked.open().search(QUESTION, hyde="two", order=True)
    assert len(asked.bodies) == 1
    assert [stage.name for stage in found.stages] == ["hyde-1", "hyde-2", "search", ORDER]
    assert found.stages[-1].outcome == "skipped: the model did not help with a draft"


def test_what_the_model_names_stands_first_also_after_a_reranker(asked: Asked) -> None:
    asked.answer = "3, 1, 2"
    search = asked.open(reranker="built-in")
    after = search.search(QUESTION, top=50, hyde="off", rerank=True, order=True)
    moved = ["ordered by the language model" in hit.why for hit in after.units]
    assert moved.index(False) >= 3
    assert [hit.unit.path for hit in after.units[:3]] == paths(after)[:3]
