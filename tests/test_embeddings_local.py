"""An embedding out of a local folder, through LanceDB's registry, torch and transformers.

The checkpoint is made here. Runs where the extra `rerank` is installed (`make test-rerank`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the extra `rerank` is not installed")
pytest.importorskip("transformers", reason="the extra `rerank` is not installed")

from colbert_checkpoint import make_checkpoint

from codeqa.embeddings import chosen_embedding, query_embedding
from codeqa.errors import EmbeddingError
from codeqa.indexing import Indexer
from codeqa.search import Search
from codeqa.settings import Settings, load_settings
from codeqa.store import Tables, locate


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "encoder"
    return make_checkpoint(folder, projection=False, positions=512)


@pytest.fixture
def settings(tmp_path: Path, checkpoint: Path) -> Settings:
    return load_settings(
        data=tmp_path / "data", embedding=f"huggingface/{checkpoint}", embedding_tokens=200
    )


def test_a_model_in_a_folder_fills_vectors_and_answers_questions(
    settings: Settings, tmp_path: Path
) -> None:
    root = tmp_path / "shop"
    root.mkdir()
    (root / "basket.py").write_text("def price_of(basket):\n    return basket.total.price\n")
    (root / "visit.py").write_text("def session(cookie):\n    return cookie.session.expire\n")
    location = locate(settings, root)
    Indexer(settings, location).run()
    tables = Tables.open(location)
    counts = tables.counts()
    assert counts.refined == counts.units > 0
    search = Search(lambda: tables, settings, lambda name: query_embedding(settings, name))
    found = search.search("session cookie expire")
    assert found.units[0].unit.path == "visit.py"
    assert "vector_refined" in found.channels
    assert settings.embedding in found.coverage


def test_the_same_text_gives_the_same_vector(settings: Settings) -> None:
    embedding = chosen_embedding(settings)
    assert embedding is not None
    vectors = embedding.embed_passages(["the price", "the price", "the cookie"])
    assert vectors.shape == (3, embedding.dimension) == (3, 32)
    assert (vectors[0] == vectors[1]).all() and (vectors[0] != vectors[2]).any()


def test_a_folder_that_holds_no_model_is_said_to_hold_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmbeddingError, match="empty"):
        chosen_embedding(load_settings(embedding=f"huggingface/{tmp_path / 'empty'}"))
