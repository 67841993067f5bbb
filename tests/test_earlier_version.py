"""An index that the commit before piece 6 wrote, on a small repository."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeqa.embeddings.registry import fast_embedding
from codeqa.indexing import Indexer
from codeqa.settings import Settings
from codeqa.store import Location, Tables, TextSearch, VectorSearch, locate

ARCHIVE = Path(__file__).parent / "fixtures" / "piece5.zip"


@pytest.fixture
def location(settings: Settings, tmp_path: Path) -> Iterator[Location]:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    found = locate(settings, tmp_path / "repository")
    found.folder.mkdir(parents=True)
    (tmp_path / "tables").rename(found.tables)
    yield found


def test_its_index_is_searched_and_then_brought_up_to_date(
    settings: Settings, location: Location
) -> None:
    tables = Tables.open(location)
    assert [unit.place for unit in tables.named(["closeday"])] == ["till.py:16-19"]
    assert tables.find(TextSearch("methods", "evening", 5))[0][0].name == "close_day"
    vector = fast_embedding().embed_query("empty the till in the evening")
    assert tables.find(VectorSearch("methods", "vector", vector, 1))[0][0].name == "close_day"
    summary = Indexer(settings, location).run()
    assert (summary.files, summary.methods) == (2, 3)
    assert Tables.open(location).find(TextSearch("methods", "evening", 5))[0][0].name == "close_day"
