"""One question over several repositories."""

from __future__ import annotations

import os
import shutil
from itertools import permutations
from pathlib import Path

import pytest
from chat_kit import answer, ask
from repositories import write

from codeqa.engine import Engine, open_multi_repo
from codeqa.errors import NotFoundError, UsageError
from codeqa.indexing import Indexer
from codeqa.repositories import rename_repository
from codeqa.repositories.multi_repo import (
    ID_SEPARATOR,
    MOST_REPOSITORIES,
    locations_of,
    member_names,
)
from codeqa.settings import Settings, load_settings
from codeqa.store import Filter, Location, locate
from codeqa.store.location import short_id
from codeqa.web.security import LOCAL
from codeqa.web.workspace import Workspace

pytest_plugins = ("patient",)
pytestmark = pytest.mark.usefixtures("patient")

FILES = {
    "one-shop": {
        "shop/cart.py": "def total(items):\n    '''The price of a cart, with its discount.'''\n"
        "    return discount(sum(items))\n\n\ndef discount(price):\n    return price * 0.9\n",
        "README.md": "# Shop\n\nSells things over the counter and counts what the customer pays.\n",
    },
    "two-shop": {
        "shop/stock.py": "def restock(item):\n    '''Order more of an item that runs out.'''\n"
        "    return item\n",
    },
    "bank": {
        "bank/ledger.py": "def total(entries):\n    '''What all entries of a ledger come to.'''\n"
        "    return sum(entries)\n\n\ndef close_day(ledger):\n    return total(ledger)\n",
    },
}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Location]]:
    """The data folder and the locations of three repositories."""
    base = tmp_path_factory.mktemp("several")
    settings = load_settings(data=base / "data")
    places = [locate(settings, write(base / folder, files)) for folder, files in FILES.items()]
    for place in places:
        Indexer(settings, place).run()
    return base / "data", places


@pytest.fixture
def copied(indexed: tuple[Path, list[Location]], data_dir: Path) -> tuple[Settings, list[Location]]:
    """Settings of a copy of that, and what lies there."""
    shutil.copytree(indexed[0], data_dir, ignore=shutil.ignore_patterns("state.sqlite*"))
    settings = load_settings(data=data_dir)
    return settings, [locate(settings, one.root) for one in indexed[1]]


@pytest.fixture
def settings(indexed: tuple[Path, list[Location]]) -> Settings:
    return load_settings(data=indexed[0])


@pytest.fixture
def joined(indexed: tuple[Path, list[Location]], settings: Settings) -> Engine:
    return open_multi_repo(settings, indexed[1])


def test_repositories_of_one_name_are_called_by_their_ids(
    settings: Settings, tmp_path: Path
) -> None:
    places = [tmp_path / name for name in ("one/shop", "two/shop", "bank")]
    for place in places:
        place.mkdir(parents=True)
    one, two, bank = (locate(settings, place) for place in places)
    assert member_names([one, two, bank]) == {"bank": bank, one.id: one, two.id: two}
    assert list(member_names([one, bank])) == ["bank", "shop"]


def test_every_hit_names_its_repository_and_every_repository_has_its_say(
    joined: Engine,
) -> None:
    result = joined.search.search("total")
    assert {hit.unit.span for hit in result.units[:2]} == {
        "bank/bank/ledger.py:1-3",
        "one-shop/shop/cart.py:1-3",
    }
    assert {hit.unit.id.partition("/")[0] for hit in result.units} <= {*FILES}
    assert joined.search.search("what runs out?").files[0].path == "two-shop/shop/stock.py"
    assert joined.files.read("bank/bank/ledger.py").text == FILES["bank"]["bank/ledger.py"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (Filter(paths=("bank/",)), ["total", "close_day"]),
        (Filter(paths=("shop/",), kinds=("function",)), ["total", "discount", "restock"]),
        (Filter(paths=("one-shop/shop/cart.py",)), ["total", "discount"]),
        (Filter(excluded_paths=("bank/", "one-shop/"), kinds=("function",)), ["restock"]),
        (Filter(paths=("bank/shop/",)), []),
    ],
)
def test_a_path_may_begin_with_a_repository_or_be_one_of_each(
    joined: Engine, filters: Filter, names: list[str]
) -> None:
    units = [unit.name for unit in joined.tables().units(filters) if unit.is_method]
    assert units == names
    assert joined.tables().holds(filters) is bool(names)


def test_an_answer_cites_every_repository_and_its_callers_are_of_the_same_one(
    joined: Engine,
) -> None:
    events = ask(joined, "@codebase who calls total?", use_model=False)
    # close_day calls the total of its own repository.
    assert "bank/bank/ledger.py:7" in answer(events)
    cited = {one["path"] for one in events[-1].data["citations"]}
    assert cited == {"bank/bank/ledger.py", "one-shop/shop/cart.py"}
    refusal = answer(ask(joined, "@codebase what changed in bank/bank/ledger.py?"))
    assert "one repository at a time" in refusal


def test_one_without_an_index_and_one_that_is_broken_are_left_out_and_named(
    copied: tuple[Settings, list[Location]], tmp_path: Path
) -> None:
    settings, places = copied
    shutil.rmtree(settings.data_dir / "collections")
    (tmp_path / "empty").mkdir()
    shutil.rmtree(Path(places[1].tables) / "methods.lance" / "data")
    engine = open_multi_repo(settings, [*places, locate(settings, tmp_path / "empty")])
    result = engine.search.search("total")
    assert {hit.unit.path.partition("/")[0] for hit in result.units} == {"bank", "one-shop"}
    warnings = " ".join(result.warnings)
    assert "empty is left out." in warnings and "two-shop is left out." in warnings


def test_one_that_is_not_asked_for_and_is_broken_is_not_told_of(
    copied: tuple[Settings, list[Location]],
) -> None:
    settings, (*asked, other) = copied
    open_multi_repo(settings, [*asked, other]).search.search("total")
    rename_repository(settings, other, "vault")
    shutil.rmtree(Path(other.tables) / "methods.lance" / "data")
    result = open_multi_repo(settings, asked).search.search("total")
    assert result.units and "vault" not in " ".join(result.warnings)


def test_a_changed_file_has_its_repository_caught_up(
    copied: tuple[Settings, list[Location]],
) -> None:
    settings, places = copied
    engine = open_multi_repo(settings.model_copy(update={"watch": True}), places)
    assert engine.search.search("restock").units[0].unit.span == "two-shop/shop/stock.py:1-3"
    changed = places[1].root / "shop" / "stock.py"
    text = changed.read_text()
    changed.write_text(f"# moved\n\n\n{text}")
    os.utime(changed, ns=(1, 1))
    assert engine.search.search("restock").units[0].unit.start_line == 4
    changed.write_text(text)


def test_one_id_stands_for_them_whatever_their_order_and_finds_those_that_are_left(
    indexed: tuple[Path, list[Location]], settings: Settings
) -> None:
    one, two, bank = indexed[1]
    ids = {
        places: open_multi_repo(settings, places).location.id
        for places in permutations(indexed[1], 2)
    }
    joined = ids[one, bank]
    assert joined == ids[bank, one] != ids[two, bank]
    assert {place.id for place in locations_of(settings, joined)} == {one.id, bank.id}
    assert locations_of(settings, f"{joined}~00000000") == locations_of(settings, joined)
    with pytest.raises(NotFoundError):
        locations_of(settings, "00000000~11111111")
    many = ID_SEPARATOR.join([one.id] + [f"{n:08}" for n in range(MOST_REPOSITORIES)])
    with pytest.raises(UsageError):
        Workspace(settings).engine(many, LOCAL)


def test_a_conversation_of_several_is_there_again_also_when_one_of_them_is_removed(
    copied: tuple[Settings, list[Location]],
) -> None:
    settings, (one, _, bank) = copied
    space = Workspace(settings)
    joined = space.engine(f"{one.id}~{bank.id}", LOCAL).location.id
    engine = space.engine("~".join(reversed(joined.split("~"))), LOCAL)
    events = ask(engine, "@codebase total", conversation="c", use_model=False)
    assert events[-1].kind == "done"
    assert [kept.id for kept in space.engine(joined, LOCAL).conversations.all()] == ["c"]
    assert not space.engine(bank.id, LOCAL).conversations.all()
    space.rename(bank, "lender")
    found = space.engine(joined, LOCAL).search.search("total").units
    assert {hit.unit.path.partition("/")[0] for hit in found} == {"lender", "one-shop"}
    space.remove(bank)
    again = space.engine(joined, LOCAL)
    assert [kept.id for kept in again.conversations.all()] == ["c"]
    assert again.search.search("total").warnings == ("No longer indexed: 1 repository.",)
    space.close()


def test_a_server_keeps_few_combinations_open_whatever_ids_it_is_sent(
    settings: Settings, indexed: tuple[Path, list[Location]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeqa.web.workspace.MULTI_REPOS_OPEN", 2)
    space = Workspace(settings)
    own = short_id(indexed[1][0].id)
    joint_ids = ["~".join(sorted((own, f"{n:08x}"))) for n in range(4)]
    for one in joint_ids:
        space.engine(one, LOCAL)
    assert [space.is_open(one) for one in joint_ids] == [False, False, True, True]
    space.close()
