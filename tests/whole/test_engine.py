"""An engine: what it is joined of, and what programs do with it."""

from __future__ import annotations

import io
import os
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from conftest import ROOT, Run
from repositories import write

import codeqa
from codeqa.engine import open_engine
from codeqa.errors import AnswerStoppedError, IndexMissingError, NotFoundError, UsageError
from codeqa.repositories import find_repository, last_used, remove_repository
from codeqa.settings import Settings
from codeqa.store import list_locations, locate
from codeqa.store.location import save_location

pytest_plugins = ("cli_shop",)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write(tmp_path / "shop", {"a.py": "def total():\n    return 1\n"})


def test_an_engine_opens_before_there_is_an_index_and_sees_it_once_made(
    settings: Settings, repository: Path
) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        open_engine(settings, repository / "nowhere")
    engine = open_engine(settings, repository)
    with pytest.raises(IndexMissingError):
        engine.search.search("total")
    engine.index.run()
    assert engine.search.search("total").units[0].unit.name == "total"
    assert engine.files.read("a.py").text.startswith("def total")
    token = "ghp_" + "aB3" * 12
    (repository / "b.py").write_text(f'def basket_price():\n    return "{token}"\n')
    engine.index.run()
    # An open reader follows within a second; a new one reads what there is.
    later = open_engine(settings, repository)
    assert later.search.search("basket_price").units[0].unit.path == "b.py"
    shown = later.files.read("b.py").text
    assert "ghp_" not in shown and f'"{"*" * len(token)}"' in shown, "masked as it is indexed"
    later.close()
    engine.close()


def test_a_repository_is_remembered_listed_and_removed_by_id_path_or_name(
    settings: Settings, repository: Path
) -> None:
    engine = open_engine(settings, repository)
    assert list_locations(settings) == []
    engine.index.run()
    assert last_used(settings) == engine.location.root
    engine.close()
    assert [one.id for one in list_locations(settings)] == [engine.location.id]
    for given in (engine.location.id, str(repository), "shop"):
        assert find_repository(settings, given) == engine.location
    remove_repository(settings, engine.location)
    assert list_locations(settings) == [] and last_used(settings) is None
    assert (repository / "a.py").exists()
    with pytest.raises(NotFoundError, match="shop is not indexed"):
        find_repository(settings, "shop")


def test_a_name_that_fits_two_repositories_is_neither(settings: Settings, tmp_path: Path) -> None:
    for number, folder in enumerate(("one", "two")):
        location = locate(settings, write(tmp_path / folder / "shop", {"a.py": "x = 1\n"}))
        save_location(location)
        os.utime(location.folder / "repository.json", (number, number))
    with pytest.raises(NotFoundError, match="2 repositories"):
        find_repository(settings, "shop")
    assert last_used(settings) == tmp_path / "two" / "shop"
    open_engine(settings, tmp_path / "one" / "shop").close()
    assert last_used(settings) == tmp_path / "one" / "shop"


def test_importing_the_package_loads_nothing_else(run_python: Run) -> None:
    code = "import sys; before = set(sys.modules); import codeqa; print(set(sys.modules) - before)"
    done = run_python("-S", "-c", code)
    assert "codeqa" in done.stdout
    assert not re.findall(r"'(codeqa\.\w+|pydantic|click|numpy)'", done.stdout), done.stdout
    with pytest.raises(AttributeError, match="no attribute 'open_motor'"):
        _ = codeqa.open_motor
    assert all(getattr(codeqa, name) for name in codeqa.__all__)
    assert (ROOT / "codeqa" / "py.typed").exists()


def test_the_examples_for_programs_run_as_they_stand(shop: Path) -> None:
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    shown = io.StringIO()
    with redirect_stdout(shown):
        exec(example.replace("/path/to/repository", str(shop)), {})
    told = shown.getvalue()
    assert "3 files" in told and "Basket.add_article" in told
    assert "*Without a language model" in told and "store/basket.py:" in told
    assert "total_price" in told


def test_a_program_is_told_what_is_wrong_and_its_conversation_goes_on(
    shop: Path, shop_settings: Settings, tmp_path: Path
) -> None:
    with codeqa.open_engine(codeqa.load_settings(data=tmp_path / "other"), shop) as engine:
        with pytest.raises(IndexMissingError):
            codeqa.whole_answer(engine.ask("basket", use_model=False))
        with pytest.raises(UsageError, match="There is no tool 'grap'"):
            engine.call("grap", pattern="x")
    with codeqa.open_engine(shop_settings, shop) as engine:
        asked = {"conversation": "c", "use_model": False}
        first = codeqa.whole_answer(engine.ask("how is an article put into the basket?", **asked))
        assert first.text and first.details["model"] == ""
        assert first.citations and all(one.verified for one in first.citations)
        again = codeqa.whole_answer(engine.ask("what does add_article do?", **asked))
        assert "add_article" in again.text and len(engine.conversations.turns("c")) == 2
        assert engine.call("grep", pattern="articles").total > 0
        with pytest.raises(UsageError, match="pattern"):
            engine.call("grep", patern="articles")
        stopped = engine.ask("what does add_article do?", use_model=False, cancelled=lambda: True)
        with pytest.raises(AnswerStoppedError, match="stopped before it was complete"):
            codeqa.whole_answer(stopped)
