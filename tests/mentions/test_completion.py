"""What is offered behind `@`: the right place first, written so that it means that place alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codeqa.errors import NotFoundError
from codeqa.indexing import Indexer
from codeqa.mentions.completion import MentionCompleter, MentionCompletion, Mentioned, fold
from codeqa.search.mentions import as_mention, resolve_mentions, take_mentions
from codeqa.settings import load_settings
from codeqa.store import Tables
from codeqa.types import Unit
from codeqa.web.app import create_app
from tests.kit.indexed import emptied, indexed
from tests.kit.waiting import until

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

FILES = {
    "Makefile": "all:\n\tpython -m shop\n",
    "README.md": "# Shop\n\nSells books.\n",
    "shop/app.py": (
        "class Shop:\n"
        '    """All of it."""\n\n'
        "    @property\n    def name(self):\n        return 'shop'\n\n"
        "    @name.setter\n    def name(self, value):\n        self._name = value\n\n"
        "    def add_url_rule(self, rule):\n        return rule\n"
        + "".join(
            f"\n\ndef {name}(rule):\n    return rule\n"
            for name in ("route", "router", "make_route", "rerouted", "Makefile", "getHTTPResponse")
        )
    ),
    "shop/admin/app.py": (
        "class Shop:\n    def close(self):\n        return 3\n\n\ndef close():\n    pass\n"
    ),
    "shop/订单/服务.py": "class 订单服务:\n    def 关闭订单(self):\n        return 4\n",
    "shop/odd name/a b.py": "def spaced():\n    return 5\n",
    "shop/json.py": "class Response:\n    def json(self):\n        return 6\n",
    "shop/Response.json": '{"a": 1}\n',
    "lib/Stack.cpp": (
        "namespace util {\nclass Stack {\npublic:\n  int push(int v) { return v; }\n"
        "  bool operator<(const Stack &o) const { return true; }\n};\n}\n"
    ),
    "lib/Private.js": (
        "class Till {\n  #count() { return 1; }\n  open() { return this.#count(); }\n}\n"
    ),
    "lib/orders.rb": (
        "class Order\n  def valid?\n    true\n  end\n  def [](key)\n    key\n  end\nend\n"
    ),
    "tests/test_app.py": (
        "from shop.app import route\n\n\ndef test_route():\n    assert route(1)\n\n\n"
        "class Shop:\n    pass\n\n\ndef helper_route():\n    return 7\n\n\ndef rou():\n    pass\n"
    ),
}


@pytest.fixture(scope="module")
def completer(tables: Tables) -> MentionCompleter:
    return MentionCompleter(lambda: tables)


def texts(completer: MentionCompleter, typed: str, *kinds: str) -> list[str]:
    return [one.text for one in completer.complete(typed) if not kinds or one.kind in kinds]


def test_the_best_symbols_come_first(completer: MentionCompleter) -> None:
    for typed, first in (
        ("route", ["route", "router", "make_route", "rerouted", "test_route", "helper_route"]),
        ("rou", ["route", "router", "rou", "make_route", "rerouted", "test_route"]),
        ("aur", ["Shop.add_url_rule"]),
        ("urlrule", ["Shop.add_url_rule"]),
        ("addRule", ["Shop.add_url_rule"]),
        ("ghr", ["getHTTPResponse"]),
        ("get_http", ["getHTTPResponse"]),
        ("Shop.na", ["Shop.name"]),
        ("shop.app.Shop.ad", ["Shop.add_url_rule"]),
        ("Stack::pu", ["util.Stack.push"]),
        ("app.clo", ["app.close"]),
        ("url rule", ["Shop.add_url_rule"]),
        ("add_ulr_r", ["Shop.add_url_rule"]),
        ("getHTPRespons", ["getHTTPResponse"]),
        ("订单服", ["订单服务"]),
        ("关闭", ["订单服务.关闭订单"]),
    ):
        found = texts(completer, typed, "symbol")
        assert [text.replace("::", ".") for text in found][: len(first)] == first


def test_files_and_folders_are_found_by_name_and_by_path(completer: MentionCompleter) -> None:
    for typed, first in (
        ("app", ["shop/app.py", "shop/admin/app.py"]),
        ("test_a", ["tests/test_app.py"]),
        ("makefile", ["/Makefile"]),
        ("read", ["README.md"]),
        ("shop/", ["shop/", "shop/订单/", "shop/admin/", "shop/app.py", "shop/json.py"]),
        ("shop/a", ["shop/admin/", "shop/app.py", "shop/admin/app.py"]),
        ("sh/ad/ap", ["shop/admin/app.py"]),
        ("订单", ["shop/订单/"]),
        ("服务", ["shop/订单/服务.py"]),
        ("", ["lib/", "shop/", "tests/", "/Makefile", "README.md"]),  # the nearest to the root
    ):
        found = [text.strip('"') for text in texts(completer, typed, "file", "folder")]
        assert found[: len(first)] == first
    folder = completer.complete("shop/")[0]
    assert (folder.label, folder.detail, folder.path) == ("shop/", "6 files", "shop/")


def test_lines_behind_a_path_are_kept(completer: MentionCompleter) -> None:
    place = completer.complete("shop/app.py:12-13")[0]
    found = (place.kind, place.text, place.line, place.end_line)
    assert found == ("file", "shop/app.py:12-13", 12, 13)
    assert texts(completer, "shop/app.py:12")[0] == "shop/app.py:12"
    assert texts(completer, "shop/app.py:")[0] == "shop/app.py"
    assert texts(completer, "admin/app.py:7-")[0] == "shop/admin/app.py:7"


def test_what_nothing_is_called_gives_an_empty_list(completer: MentionCompleter) -> None:
    for typed in ("nothing_is_called_so", "🎉", "..", "::", "§§", "x" * 5000, "\0"):
        assert completer.complete(typed) == ()


def meant(tables: Tables, place: MentionCompletion) -> Any:
    """What the question `@…` points at, when the place is written into it."""
    _, written = take_mentions(f"look at @{place.text}, then answer")
    assert len(written) == 1, place.text
    found, unknown = resolve_mentions(tables, written)
    assert not unknown, place.text
    return found[0]


def test_every_symbol_is_written_so_that_it_means_itself_alone(
    tables: Tables, completer: MentionCompleter
) -> None:
    units = [u for u in tables.units() if u.kind not in ("document", "config", "chunk")]
    of: dict[tuple[str, str], list[Unit]] = {}
    for unit in units:
        of.setdefault((unit.path, unit.qualified_name), []).append(unit)
    places = {place for unit in units for place in completer.complete(unit.name, 50)}
    symbols = [place for place in places if place.kind == "symbol"]
    for place in symbols:
        mention = meant(tables, place)
        if mention.lines:
            assert mention.files == (place.path,)
            assert mention.lines == (place.line, place.end_line)
        else:
            same = {one.id for one in of[place.path, place.label]}
            assert set(mention.units) == same, place.text
    unreachable = {(u.path, u.qualified_name) for u in units if u.kind == "module"}
    unreachable |= {(u.path, u.qualified_name) for u in units if not fold(u.name)}
    assert len(unreachable) < len(of) / 2
    assert set(of) - unreachable <= {(place.path, place.label) for place in symbols}


def test_every_file_and_folder_is_written_so_that_it_means_itself_alone(
    tables: Tables, completer: MentionCompleter
) -> None:
    found = completer.complete("", 100)
    assert {place.path for place in found} == {
        *tables.catalogue().paths, *tables.catalogue().folders
    }  # fmt: skip
    for place in found:
        mention = meant(tables, place)
        assert (mention.files or mention.folders) == (place.path,), place.text
        assert not mention.units


def test_twins_are_told_apart_by_their_module_and_a_test_by_its_place(
    completer: MentionCompleter,
) -> None:
    twins = [place for place in completer.complete("Shop") if place.label == "Shop"]
    assert {place.path: place.text for place in twins} == {
        "shop/app.py": "shop.app.Shop",
        "shop/admin/app.py": "admin.app.Shop",
        "tests/test_app.py": "test_app.Shop",
    }


def test_one_of_thousands_of_that_name_is_found_by_its_owner(tmp_path: Path) -> None:
    many = "".join(f"class C{n}:\n    def __init__(self):\n        pass\n\n\n" for n in range(600))
    tables = indexed(tmp_path, {"src/many.py": many})
    completer = MentionCompleter(lambda: tables)
    place = completer.complete("C577.__init__")[0]
    (unit,) = tables.by_ids(meant(tables, place).units)
    assert place.text == unit.qualified_name == "C577.__init__"


def test_what_a_mention_cannot_hold_is_quoted_or_left_out() -> None:
    for text, written in (
        ("shop/app.py", "shop/app.py"),
        ("a b/c.py", '"a b/c.py"'),
        ("a<b>.py", '"a<b>.py"'),
        ('say "hi".py', '“say "hi".py”'),
        ('a" ”b', ""),
        ("two\nlines", ""),
        ("x" * 301, ""),
    ):
        assert as_mention(text) == written
        if written:
            assert take_mentions(f"see @{written} now")[1] == (text,)


# The tree


def test_the_tree_gives_folders_and_files_of_one_level(completer: MentionCompleter) -> None:
    root = "", {"lib": 3, "shop": 6, "tests": 1}, ["Makefile", "README.md"]
    assert completer.tree() == root
    for path in ("shop/admin", "/shop/admin/", "shop/admin/"):
        assert completer.tree(path) == ("shop/admin/", {}, ["app.py"])
    with pytest.raises(NotFoundError):
        completer.tree("../etc")


# What a question mentions


def test_what_each_mention_stands_for(completer: MentionCompleter) -> None:
    question = (
        "@codebase how do @shop/app.py and @Shop.add_url_rule and @lib/ go with @nothing.of.it "
        "and @shop/admin/app.py:1-2 ?"
    )
    assert completer.mentioned(question) == [
        Mentioned("shop/app.py", "file", "shop/app.py", places=1),
        Mentioned("Shop.add_url_rule", "symbol", "shop/app.py", 12, 13, 1),
        Mentioned("lib/", "folder", "lib/", places=1),
        Mentioned("nothing.of.it", ""),
        Mentioned("shop/admin/app.py:1-2", "file", "shop/admin/app.py", 1, 2, 1),
    ]
    assert completer.mentioned("nobody@shop.example has no @") == []


# One version after another


def test_names_follow_the_index_and_the_older_ones_serve_meanwhile(tmp_path: Path) -> None:
    tables = indexed(tmp_path, {"src/a.py": "def before():\n    return 1\n"})
    completer = MentionCompleter(lambda: tables)
    assert texts(completer, "before") == ["before"]
    (tmp_path / "repo" / "src" / "b.py").write_text("def afterwards():\n    return 2\n")
    Indexer(load_settings(data=tmp_path / "data", workers=1), tables.location).run()

    def follows() -> bool:
        assert texts(completer, "before") == ["before"]
        return texts(completer, "afterw") == ["afterwards"]

    until(follows)


def test_an_empty_repository_completes_to_nothing(tmp_path: Path) -> None:
    tables = emptied(tmp_path)
    completer = MentionCompleter(lambda: tables)
    for typed in ("", "a", "a.b", "a b", "a/b", "a:1"):
        assert completer.complete(typed) == ()
    assert completer.tree() == ("", {}, [])


# Over HTTP


@pytest.fixture(scope="module")
def client(tables: Tables) -> Iterator[Any]:
    settings = load_settings(data=tables.location.root.parent / "data", workers=1)
    app = create_app(settings, tables.location.root)
    yield app.test_client()
    app.extensions["codeqa"].close()


def test_the_page_gets_places_the_tree_and_mentions(client: Any) -> None:
    reply = client.get("/api/complete", query_string={"q": "add_u"}).json
    assert reply == {"items": [{
        "kind": "symbol", "text": "Shop.add_url_rule", "label": "Shop.add_url_rule",
        "detail": "shop/app.py:12", "path": "shop/app.py", "line": 12, "end_line": 13,
        "what": "method",
    }]}  # fmt: skip
    assert len(client.get("/api/complete?q=s&limit=3").json["items"]) == 3
    tree = client.get("/api/tree").json
    assert tree["folders"][0] == {"name": "lib", "path": "lib/", "files": 3}
    assert {"name": "README.md", "path": "README.md"} in tree["files"]
    assert client.get("/api/tree?path=shop/admin").json["files"] == [
        {"name": "app.py", "path": "shop/admin/app.py"}
    ]
    mentions = client.post("/api/mentions", json={"text": "see @Shop.add_url_rule"}).json
    assert [(one["kind"], one["path"]) for one in mentions["mentions"]] == [
        ("symbol", "shop/app.py")
    ]


def test_what_cannot_be_answered_has_the_usual_shape(client: Any) -> None:
    for reply, status, code in (
        (client.get("/api/complete?q=a&limit=101"), 400, "usage"),
        (client.get(f"/api/complete?q={'a' * 5000}"), 400, "usage"),
        (client.get("/api/tree?path=../../etc"), 404, "not_found"),
        (client.post("/api/mentions", json={"text": 3}), 400, "usage"),
    ):
        assert (reply.status_code, reply.json["error"]["code"]) == (status, code)
        assert set(reply.json["error"]) == {"code", "message", "hint"}
