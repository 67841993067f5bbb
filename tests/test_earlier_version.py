"""An index and a state file that the commit before piece 6 wrote, on a small repository."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from codeqa.chat.record import read_turn_record
from codeqa.embeddings.registry import fast_embedding
from codeqa.indexing import Indexer
from codeqa.settings import Settings
from codeqa.state import State
from codeqa.store import Location, Tables, TextSearch, VectorSearch, locate

ARCHIVE = Path(__file__).parent / "fixtures" / "piece5.zip"
REPOSITORY = "shop-0d52be96"


@pytest.fixture
def location(settings: Settings, tmp_path: Path) -> Iterator[Location]:
    with zipfile.ZipFile(ARCHIVE) as archive:
        archive.extractall(tmp_path)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    (tmp_path / "state.sqlite").rename(settings.data_dir / "state.sqlite")
    found = locate(settings, tmp_path / "repository")
    found.folder.mkdir(parents=True)
    (tmp_path / "tables").rename(found.tables)
    yield found


def test_its_index_is_searched_and_then_brought_up_to_date(
    settings: Settings, location: Location
) -> None:
    tables = Tables.open(location)
    assert [unit.location for unit in tables.named(["closeday"])] == ["till.py:16-19"]
    assert tables.find(TextSearch("methods", "evening", 5))[0][0].name == "close_day"
    vector = fast_embedding().embed_query("empty the till in the evening")
    assert tables.find(VectorSearch("methods", "vector", vector, 1))[0][0].name == "close_day"
    summary = Indexer(settings, location).run()
    assert (summary.files, summary.methods) == (2, 3)
    assert Tables.open(location).find(TextSearch("methods", "evening", 5))[0][0].name == "close_day"


@pytest.mark.usefixtures("location")
def test_its_conversations_are_read_with_their_contexts(settings: Settings) -> None:
    state = State(settings.data_dir)
    (conversation,) = state.conversations.latest(REPOSITORY)
    assert conversation.title == "how is the till emptied?"
    turns = state.turns.active("talk", repository=REPOSITORY)
    assert [turn.question[:12] for turn in turns] == ["@codebase ho", "where is `ta"]
    chunks = read_turn_record(turns[0]).chunks
    assert "def close_day" in "".join(chunk.content for chunk in chunks)
    assert state.feedback.of_conversation("talk", "local", REPOSITORY) == {
        turns[0].id: (1, "right")
    }
