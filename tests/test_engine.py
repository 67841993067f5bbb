from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codeqa.engine import open_engine
from codeqa.errors import IndexMissingError, NotFoundError, UsageError
from codeqa.repositories import last_used, remove_repository
from codeqa.settings import Settings
from codeqa.store import list_locations


@pytest.fixture
def repository(tmp_path: Path, write_files: Callable[..., Path]) -> Path:
    return write_files(tmp_path / "shop", {"a.py": "def total():\n    return 1\n"})


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
    (repository / "b.py").write_text("def basket_price():\n    return 2\n")
    engine.index.run()
    # An open reader follows within a second; a new one reads what there is.
    later = open_engine(settings, repository)
    assert later.search.search("basket_price").units[0].unit.path == "b.py"
    later.close()
    engine.close()


def test_a_file_is_shown_with_its_secrets_masked_as_they_are_indexed(
    settings: Settings, repository: Path
) -> None:
    token = "ghp_" + "aB3" * 12
    (repository / "key.py").write_text(f'KEY = "{token}"\nx = 1\n')
    engine = open_engine(settings, repository)
    engine.index.run()
    assert engine.files.read("key.py").text == f'KEY = "{"*" * len(token)}"\nx = 1\n'
    engine.close()


@pytest.mark.parametrize("form", ["id", "path", "name"])
def test_a_repository_is_remembered_listed_and_removed_by_id_path_or_name(
    settings: Settings, repository: Path, form: str
) -> None:
    engine = open_engine(settings, repository)
    assert list_locations(settings) == []
    engine.index.run()
    assert last_used(settings) == engine.location.root
    engine.close()
    assert [one.id for one in list_locations(settings)] == [engine.location.id]
    given = {"id": engine.location.id, "path": str(repository), "name": "shop"}[form]
    assert remove_repository(settings, given).root == engine.location.root
    assert list_locations(settings) == [] and last_used(settings) is None
    assert (repository / "a.py").exists()
    with pytest.raises(NotFoundError, match="shop is not indexed"):
        remove_repository(settings, "shop")


def test_a_name_that_fits_two_repositories_removes_neither(
    settings: Settings, tmp_path: Path, write_files: Callable[..., Path]
) -> None:
    for folder in ("one", "two"):
        engine = open_engine(settings, write_files(tmp_path / folder / "shop", {"a.py": "x = 1\n"}))
        engine.index.run()
        engine.close()
    with pytest.raises(NotFoundError, match="2 repositories"):
        remove_repository(settings, "shop")
    assert len(list_locations(settings)) == 2
    assert last_used(settings) == tmp_path / "two" / "shop"
    open_engine(settings, tmp_path / "one" / "shop").close()
    assert last_used(settings) == tmp_path / "one" / "shop"
