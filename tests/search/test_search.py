"""Search over a real index of a small repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from indexed import copied, indexed

from codeqa.embeddings.registry import query_embedding
from codeqa.errors import EmbeddingError, NotFoundError
from codeqa.repositories.files import Files
from codeqa.search.channels import search_symbols
from codeqa.search.hybrid import Search
from codeqa.search.query import Query, parse_query
from codeqa.search.rerank import Reranked
from codeqa.settings import Settings, load_settings
from codeqa.store import Tables
from codeqa.types import Hit

FILES: Mapping[str, str | bytes] = {
    "README.md": "# Shop\n\nA small shop that sells teapots over the network to everyone.\n\n"
    "## Sessions\n\nA session cookie is signed and expires after a month.\n",
    "src/shop/__init__.py": "from shop.session import Session, open_session\n",
    "src/shop/session.py": '"""Sessions of visitors."""\n\n\nclass Session:\n'
    '    """What is known of a visitor."""\n\n'
    "    def expire(self, cookie):\n"
    '        """Forget the visitor when the cookie is too old."""\n'
    "        if cookie.age > MONTH:\n            self.clear()\n\n\n"
    "def open_session(request):\n"
    '    """Read the session from the signed cookie of a request."""\n'
    "    return Session(request.cookies['s'])\n",
    "src/shop/path_router.py": "class PathRouter:\n    def add(self, rule):\n"
    "        self.rules.append(rule)\n\n\ndef get(key):\n    return key\n",
    "src/shop/basket.py": "def total(basket):\n    return sum(item.price for item in basket)\n",
    "tests/test_session.py": "from shop.session import Session\n\n\n"
    "def test_session_cookie_expires():\n"
    "    session = Session()\n    session.expire(cookie)\n    assert session.cookie is None\n",
    "web/cart.js": "export function addToCart(item) {\n  basket.push(item);\n}\n",
}


SPEAKING = "".join(
    f'def to_form_{n}(x):\n    """Simplify x to its simplest form."""\n'
    f"    return simplify(x) or x[{n}]\n\n\n"
    for n in range(3)
)
OTHERS: Mapping[str, str | bytes] = {
    "logic.py": SPEAKING,
    "core.py": "@overload\ndef simplify(x: int) -> int: ...\n\n\n"
    "@overload\ndef simplify(x: str) -> str: ...\n\n\n"
    "def simplify(x):\n    forms = x.rewritten()\n    return min(forms, key=x.measure)\n",
    "pyproject.toml": '[project]\nname = "shop"\nrequires-python = ">=3.11"\n',
    "release.py": "def version():\n    return python()\n",
    "Till.java": "class Till {\n  Till() { open(); }\n\n  Till(int n) { take(n); }\n}\n",
    **{f"m{n}.py": f"def cookie_{n}():\n    return {n}\n" for n in range(15)},
    "notes.txt": "shop_mail_sender\n\nWho it says letters are from.\n",
    "mail.py": "def shop_sender(mail):\n    return mail.shop.sender\n\n\n"
    "def mail_of(shop):\n    return shop.mail\n",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """An index that the tests only read."""
    return indexed(tmp_path_factory.mktemp("search"), FILES)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Search:
    tables = indexed(tmp_path_factory.mktemp("others"), OTHERS)
    return Search(lambda: tables, load_settings())


@pytest.fixture
def search(tables: Tables, settings: Settings) -> Search:
    return Search(lambda: tables, settings)


@pytest.fixture
def own_tables(tables: Tables, settings: Settings, tmp_path: Path) -> Tables:
    """An index of a repository that a test may change."""
    return Tables(copied(tables.location, settings, tmp_path / "shop"))


def names(hits: tuple[Hit, ...]) -> list[str]:
    return [hit.unit.qualified_name for hit in hits]


def test_code_comes_before_its_tests_unless_the_question_asks_for_tests(
    search: Search,
) -> None:
    result = search.search("when does a session cookie expire?")
    assert result.units[0].unit.name == "expire"
    roles = [hit.unit.role for hit in result.units]
    assert roles[0] == "source" and "test" in roles
    result = search.search("which test checks that a session cookie expires?")
    assert result.units[0].unit.path == "tests/test_session.py"


def test_a_search_is_a_frame_of_pandas_with_a_row_for_each_hit(search: Search) -> None:
    result = search.search("session cookie")
    frame = result.to_pandas()
    places = list(zip(frame["path"], frame["start_line"], strict=True))
    assert places == [(hit.unit.path, hit.unit.start_line) for hit in result.units]
    assert frame["score"].is_monotonic_decreasing and frame["source_code"].str.len().min() > 0
    assert list(search.search("qwxyz zyzzyva lang:cobol").to_pandas()) == list(frame)


def test_a_name_finds_its_definition_first(search: Search) -> None:
    for question, name in {
        "Session": "Session",
        "Session.expire": "Session.expire",
        "what is the path router": "PathRouter",
        "where is `open_session` defined": "open_session",
        "add_to_cart": "addToCart",
    }.items():
        result = search.search(question)
        assert result.units[0].unit.qualified_name == name
        assert "symbol" in result.channels
        assert any(why.startswith(("defines", "is named")) for why in result.units[0].why)


def test_a_subject_is_found_by_its_name_and_signatures_stay_behind_code(others: Search) -> None:
    units = others.search("How does simplify decide which form is the simplest?").units
    assert units[0].unit.source_code.endswith("key=x.measure)")
    assert others.search("simplify").units[0].unit.id == units[0].unit.id


def test_a_plain_word_that_is_also_a_name_counts_as_a_word(search: Search) -> None:
    def named(question: str) -> bool:
        hits = [hit for hit in search.search(question).units if hit.unit.name == "get"]
        return any("symbol" in hit.channels for hit in hits)

    assert not named("how do I get the key of a rule")
    assert named("get") and named("what does `get` return") and named("the key that get() returns")


def test_a_class_is_before_its_constructor_and_a_manifest_is_asked(others: Search) -> None:
    symbols = search_symbols(others.tables(), parse_query("Till"), None)
    strengths = {unit.kind: strength for _, unit, strength in symbols}
    assert strengths["class"] > strengths["constructor"] > 0
    hits = others.search("which versions of Python are supported").units
    assert {hit.unit.path for hit in hits if "overview" in hit.channels} == {"pyproject.toml"}
    hits = others.search("how is the version of Python printed").units
    assert not any("overview" in hit.channels for hit in hits)


def test_every_hit_says_why_and_where_its_channels_placed_it(search: Search) -> None:
    result = search.search("session cookie")
    scores = [hit.score for hit in result.units]
    assert all(hit.why and hit.channels for hit in result.units)
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0
    assert "matches session, cookie" in result.units[0].why
    assert result.methods and all(hit.unit.is_method for hit in result.methods)
    assert result.classes and not any(hit.unit.is_method for hit in result.classes)
    assert len(result.methods) <= 5 and len(result.classes) <= 5


def test_a_file_that_is_named_comes_first_and_for_the_whole_its_readme(search: Search) -> None:
    result = search.search("what does basket.py do")
    assert result.files[0].path == "src/shop/basket.py"
    assert "lies in a file that the question names" in result.files[0].best.why
    assert search.search("what is this project?").units[0].unit.path == "README.md"


def test_no_text_breaks_the_search(search: Search) -> None:
    for question in (
        "", '"', "🎉\x00", "*" * 5_000, 'path:"', "lang:'", "a" * 10_000, "path:[*",
        "AND OR NOT", "session^2 +x -y",
    ):  # fmt: skip
        search.search(question)


def test_files_are_listed_once_each_and_ten_where_there_are_ten(others: Search) -> None:
    result = others.search("cookie", top=3)
    assert len(result.units) == 3
    paths = [file.path for file in result.files]
    assert len(paths) == len(set(paths)) == 10


def test_a_name_that_nothing_is_called_by_is_found_where_it_is_written(others: Search) -> None:
    assert others.search("shop_mail_sender").units[0].unit.path == "notes.txt"


def test_a_file_that_changed_on_disk_is_marked(own_tables: Tables, settings: Settings) -> None:
    search = Search(lambda: own_tables, settings)
    repository = own_tables.location.root
    (repository / "src/shop/session.py").write_text("moved = True\n")
    (repository / "src/shop/basket.py").unlink()
    result = search.search("session cookie")
    assert result.changed["src/shop/session.py"] == "changed"
    marked = [hit for hit in result.units if hit.unit.path == "src/shop/session.py"]
    assert all("file changed since it was indexed" in hit.why for hit in marked)
    assert search.search("basket total").changed["src/shop/basket.py"] == "deleted"


def test_a_search_is_reranked_when_it_asks_for_it(tables: Tables, settings: Settings) -> None:
    def backwards(hits: Sequence[Hit], query: Query) -> Reranked:
        return Reranked(list(reversed(hits)), "backwards", ("It was late.",))

    search = Search(lambda: tables, settings, reranker=backwards)
    plain = search.search("session cookie", top=100)
    reranked = search.search("session cookie", top=100, rerank=True)
    assert names(reranked.units) == names(plain.units)[::-1]
    assert (reranked.reranker, reranked.warnings) == ("backwards", ("It was late.",))
    assert (plain.reranker, plain.warnings) == ("", ())
    assert search.search("zzz lang:cobol", rerank=True).units == ()


def test_vectors_join_the_other_channels(tables: Tables, settings: Settings) -> None:
    encoders = partial(query_embedding, settings)
    found = Search(lambda: tables, settings, encoders).search("price of things")
    assert found.units[0].unit.name == "total"
    assert "vector" in found.channels and "vector" in found.units[0].channels
    assert "by meaning (codeqa/code-table-1)" in found.coverage
    without = Search(lambda: tables, settings, lambda name: None).search("price of things")
    assert "vector" not in without.channels
    assert without.coverage == "7 of 7 files, by words and names; not by meaning"


def test_a_failing_embedding_costs_its_channel(tables: Tables, settings: Settings) -> None:
    class Unreachable:
        def embed_query(self, text: str) -> np.ndarray:
            raise EmbeddingError("The host cannot be reached.", "Check the network.")

    result = Search(lambda: tables, settings, lambda name: Unreachable()).search("session cookie")
    assert result.units
    assert "by meaning left out: The host cannot be reached" in result.coverage
    assert "by meaning (" not in result.coverage


# Files


def test_an_indexed_file_is_read_as_it_is_now_unless_it_became_a_link(
    own_tables: Tables, tmp_path: Path
) -> None:
    files = Files(lambda: own_tables)
    file = files.read("src/shop/basket.py")
    assert (file.language, file.changed) == ("python", False)
    assert file.text == FILES["src/shop/basket.py"]
    (own_tables.location.root / "src/shop/basket.py").write_bytes(b"x = '\xff'\n")
    changed = files.read("src/shop/basket.py")
    assert changed.changed
    assert changed.text == "x = '\ufffd'\n"
    assert files.line_count("src/shop/basket.py") == 1
    secret = tmp_path / "secret"
    secret.write_text("key")
    target = own_tables.location.root / "src/shop/basket.py"
    target.unlink()
    target.symlink_to(secret)
    with pytest.raises(NotFoundError):
        files.read("src/shop/basket.py")
    assert files.line_count("src/shop/basket.py") is None
