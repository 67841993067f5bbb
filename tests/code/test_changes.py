"""What changed between two commits: as a tool, in an answer without a model, and for one."""

from __future__ import annotations

from collections.abc import Iterator

import chat_kit
import pytest
from openai_server import openai_server
from repositories import git, write

from codeqa.code.counted import counted_question
from codeqa.code.tools import TOOLS
from codeqa.engine import Engine

NEW = {
    "shop/session.py": chat_kit.FILES["shop/session.py"].replace("> MONTH", "> 2 * MONTH")
    + "\n\ndef renew_session(cookie):\n    cookie.age = 0\n    key = 'AKIAIOSFODNN7EXAMPLE'\n",
    "shop/stock.py": "# Counted elsewhere.\nTEAPOTS = 3\n",
    "shop/later.py": "def later(): ...\n",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chat_kit.Indexed]:
    """The index holds the newer commit but for a file that changed on disk since, and one that it
    leaves out."""
    folder = tmp_path_factory.mktemp("changes")
    root = folder / "shop"
    author = ("-c", "user.name=A. Tester", "-c", "user.email=tester@example.org")
    git(folder, "init", "-q", "shop")
    for tag, files in (("v1", chat_kit.FILES), ("v2", NEW)):
        write(root, files)
        git(root, "add", ".")
        git(root, *author, "commit", "-qm", f"{tag} of the shop")
        git(root, "tag", tag)
    (root / "shop/stock.py").write_text("TEAPOTS = 4\n")
    (root / ".codeqaignore").write_text("later.py\n")
    yield chat_kit.index(folder, {})


@pytest.fixture
def engine(shop: chat_kit.Indexed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = shop.open(tmp_path_factory.mktemp("said"))
    yield opened
    opened.close()


def test_changes_are_told_by_definition_with_places_where_they_can_be_read(engine: Engine) -> None:
    result = TOOLS["history"].call(engine.toolbox, {"commit": "v1..v2"})
    changes = {(one.name, one.note.split(",")[0], one.commit) for one in result.places}
    assert {("expire_session", "changed", ""), ("renew_session", "added", "")} <= changes
    assert ("count_teapots", "removed", "v1") in changes
    assert "later" not in {name for name, _, _ in changes}
    assert result.completeness == "Not compared: 1 file not in the index, or too many."
    assert [commit.subject for commit in result.commits] == ["v2 of the shop"]
    assert "-    if cookie.age > MONTH:" in result.diff
    assert "AKIAIOSFODNN7EXAMPLE" not in result.text
    about = {"commit": "v1..v2", "about": "when a session expires"}
    assert TOOLS["history"].call(engine.toolbox, about).places[0].name == "expire_session"


def test_without_a_model_the_answer_is_the_list_with_the_diff_of_the_best(engine: Engine) -> None:
    events = chat_kit.ask(
        engine, "@codebase what changed between v1 and v2 about counting teapots on a shelf?"
    )
    text = chat_kit.answer(events)
    assert "`shop/stock.py:1-3 at v1` `count_teapots`, removed" in text
    assert "v2 of the shop" in text and "```diff" in text
    assert all(citation["verified"] for citation in events[-1].data["citations"])
    # Words that are no commits are searched for.
    lunch = chat_kit.ask(engine, "@codebase what changed between lunch and dinner?")
    assert "no commit" not in chat_kit.answer(lunch)
    missing = chat_kit.ask(engine, "@codebase what changed between v1 and v9?")
    assert "no commit 'v9'" in chat_kit.answer(missing)


def test_a_model_is_sent_what_changed(shop: chat_kit.Indexed, engine: Engine) -> None:
    script = chat_kit.Script()
    with openai_server(script) as server:
        model = {"model": "custom/m", "model_url": server.base_url}
        asking = shop.open(engine.settings.data_dir, **model)
        chat_kit.ask(asking, "@codebase what changed since v1 about the session?")
        asking.close()
    sent = str(server.requests[-1][1]["messages"])
    assert "[COUNTED]" in sent
    assert "+    if cookie.age > 2 * MONTH:" in sent


def test_a_message_that_asks_for_changes() -> None:
    for question, commit, about in (
        ("What changed between v1 and v2?", "v1..v2", ""),
        ("what changed since HEAD~3", "HEAD~3..HEAD", ""),
        ("what has changed in the sessions from main to origin/next?",
         "main..origin/next", "the sessions"),
        ("what changed between 2.2 and 2.3 about how errors are handled?",
         "2.2..2.3", "how errors are handled"),
        ("list the changes since 1a2b3c4", "1a2b3c4..HEAD", ""),
    ):  # fmt: skip
        asked = counted_question(question)
        assert asked is not None
        assert (asked.tool, asked.arguments) == ("history", {"commit": commit, "about": about})
