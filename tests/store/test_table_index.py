"""The embedding table in the index: filled in the first pass, made anew, searched, checked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tables import FIXTURE, make_table

from codeqa.doctor import check_index
from codeqa.embeddings import registry
from codeqa.embeddings.registry import fast_embedding, query_embedding
from codeqa.engine import Engine, open_engine
from codeqa.errors import EmbeddingError
from codeqa.indexing import Indexer
from codeqa.settings import Settings
from codeqa.store import EmbeddingRecord, Location, Tables
from codeqa.store.schema import UNIT_TABLES
from codeqa.store.writer import TableWriter, write_descriptions
from tests.kit.index_rows import age, rows
from tests.kit.indexed import copied, indexed, write

FILES = {
    "config.py": 'def load_config(path):\n    """Read the settings file."""\n    return path\n',
    "store.py": "class UserStore:\n    def find_user(self, key):\n        return key\n",
    "README.md": "# Manual\n\nHow to load the config.\n",
    "数据.py": "数据库 = '连接'\n",
    "web/page.py": "def render(page):\n    return page\n",
}


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No table is installed, until a test does so."""
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "installed")
    yield
    registry.table_encoder.cache_clear()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """The repository, indexed once with the table of the fixtures."""
    folder = tmp_path_factory.mktemp("made")
    age(write(folder / "repo", FILES))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "SHIPPED", FIXTURE)
        return indexed(folder, {}).location


@pytest.fixture
def built(made: Location, settings: Settings, tmp_path: Path) -> Indexer:
    """An indexer that has run once with that table, which is installed."""
    install()
    return Indexer(settings, copied(made, settings, tmp_path / "repo"))


@pytest.fixture
def engine(built: Indexer) -> Iterator[Engine]:
    with closing(open_engine(built.settings, built.location.root)) as opened:
        yield opened


def install(folder: Path = FIXTURE) -> EmbeddingRecord:
    shutil.rmtree(registry.SHIPPED, ignore_errors=True)
    shutil.copytree(folder, registry.SHIPPED)
    registry.table_encoder.cache_clear()
    return installed()


def installed() -> EmbeddingRecord:
    fast = fast_embedding()
    assert fast is not None
    return EmbeddingRecord(fast.name, fast.version, fast.dimension)


def stored(indexer: Indexer) -> dict[str, tuple[str, str, np.ndarray]]:
    """Id → path, text and vector of every unit."""
    units = [row for table in UNIT_TABLES for row in rows(indexer.location)[table]]
    return {row["id"]: (row["path"], row["code"], np.array(row["vector"])) for row in units}


def assert_filled(indexer: Indexer, record: EmbeddingRecord) -> None:
    """Every row holds the vector that the embedding in use gives its text."""
    tables = Tables(indexer.location)
    counts = tables.counts()
    assert counts.embedded == counts.units > 0
    assert tables.vector_columns() == [("vector", record)]
    fast = fast_embedding()
    assert fast is not None
    for path, code, vector in stored(indexer).values():
        assert np.abs(fast.embed_passages([code])[0] - vector).max() < 1e-3, path


def test_every_row_gets_its_vector_and_a_changed_file_its_new_ones(built: Indexer) -> None:
    assert_filled(built, installed())
    status = built.status()
    assert (status.embedding, status.embedded) == (installed().name, status.units)
    changed = built.location.root / "store.py"
    changed.write_text("def open_table(name):\n    return name\n", "utf-8")
    assert built.run().changed == 1
    assert_filled(built, installed())


def test_descriptions_of_methods_are_embedded_with_them(built: Indexer) -> None:
    tables = Tables(built.location)
    (unit,) = tables.named(["loadconfig"])
    before = stored(built)[unit.id]
    meta = tables.meta()
    writer = TableWriter.open(built.location, meta.parser, meta.vector)
    assert write_descriptions(writer, [(unit, "Reads the index table.")], fast_embedding()) == 1
    after = stored(built)[unit.id]
    assert "Reads the index table." in after[1] and not np.array_equal(before[2], after[2])
    assert_filled(built, installed())


def test_another_table_or_none_makes_all_rows_anew(built: Indexer, tmp_path: Path) -> None:
    first = installed()
    assert built.run().changed == 0
    record = install(make_table(tmp_path / "newer", 400, 24, seed=2, version="2"))
    tables = Tables(built.location)
    assert tables.vector_columns() == [] and tables.meta().vector == first
    sound, told, _ = check_index(built.location)
    assert not sound and told.startswith(f"its search by meaning was made with {first}, ")
    assert built.run().changed == len(FILES)
    assert check_index(built.location)[0]
    assert_filled(built, record)
    shutil.rmtree(registry.SHIPPED)
    assert built.run().changed == len(FILES)
    tables = Tables(built.location)
    assert tables.counts().embedded == 0 and tables.meta().vector is None


def test_a_question_of_known_words_is_answered_by_vectors_too(engine: Engine) -> None:
    result = engine.search.search("read the settings file")
    assert "vector" in result.channels
    assert result.units[0].unit.name == "load_config"
    assert f"by meaning ({installed().name}): " in result.coverage
    # One of unknown words is not.
    assert "vector" not in engine.search.search("数据库").channels
    encoder = query_embedding(engine.settings, installed().name)
    assert encoder is not None and not encoder.embed_query("где").any()
    assert query_embedding(engine.settings, "another") is None


def test_a_damaged_table_stops_indexing_and_leaves_text_search(engine: Engine) -> None:
    (registry.SHIPPED / "vocabulary.txt").write_bytes(b"damaged")
    registry.table_encoder.cache_clear()
    with pytest.raises(EmbeddingError, match="The embedding table cannot be read"):
        engine.index.run()
    result = engine.search.search("load the config")
    assert result.units and "by meaning left out: The embedding table cannot" in result.coverage
