"""An embedding that runs here, through fastembed's own code.

The model is made here: a small BERT in ONNX with random weights.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from models import hub_cache, hub_of, put_in_cache

from codeqa.embeddings import local
from codeqa.embeddings.local import MOST_TOKENS
from codeqa.embeddings.registry import chosen_embedding, local_model, query_embedding
from codeqa.errors import EmbeddingError
from codeqa.indexing import Indexer
from codeqa.search.hybrid import Search
from codeqa.settings import Settings, load_settings
from codeqa.store import Tables, locate
from tests.kit.onnx_models import make_model
from tests.kit.repositories import write

__all__ = ["hub_cache"]

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("made") / "encoder", "hidden")


@pytest.fixture(autouse=True)
def forget_loaded_models(hub_cache: Path) -> None:
    local._load.cache_clear()


@pytest.fixture
def settings(tmp_path: Path, model: Path) -> Settings:
    return load_settings(data=tmp_path / "data", embedding=str(model))


def test_what_begins_with_no_providers_name_runs_here() -> None:
    for setting, name in (
        ("jinaai/jina-embeddings-v2-base-code", "jinaai/jina-embeddings-v2-base-code"),
        (MINILM, MINILM),
        ("sentence-transformers/BAAI/bge-large-en-v1.5", "BAAI/bge-large-en-v1.5"),
        ("huggingface/nomic-ai/nomic-embed-text-v1", "nomic-ai/nomic-embed-text-v1"),
        ("huggingface//models/x", "/models/x"),
        ("/models/x", "/models/x"),
        ("./x", "./x"),
        ("~/x", "~/x"),
    ):
        assert local_model(setting) == name
    for elsewhere in ("openai/text-embedding-3-large", "jina/v3", "ollama/nomic", "large", ""):
        assert local_model(elsewhere) == ""


def test_a_model_in_a_folder_fills_vectors_and_answers_questions(
    settings: Settings, tmp_path: Path
) -> None:
    files = {
        "basket.py": "def price_of(basket):\n    return basket.total.price\n",
        "visit.py": "def session(cookie):\n    return cookie.session.expire\n",
    }
    location = locate(settings, write(tmp_path / "shop", files))
    Indexer(settings, location).run()
    tables = Tables(location)
    counts = tables.counts()
    assert counts.refined == counts.units > 0
    search = Search(lambda: tables, settings, lambda name: query_embedding(settings, name))
    found = search.search("session cookie expire")
    assert found.units[0].unit.path == "visit.py"
    assert "vector_refined" in found.channels
    assert settings.embedding in found.coverage


def test_a_text_has_one_vector_of_length_1_and_its_first_tokens_count(settings: Settings) -> None:
    embedding = chosen_embedding(settings)
    assert embedding is not None
    long = "price " * MOST_TOKENS
    texts = ["the price", "the price", "the cookie", long, long + "cookie"]
    vectors = embedding.embed_passages(texts)
    assert vectors.shape == (5, embedding.dimension) == (5, 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[0] == pytest.approx(vectors[1]) and vectors[3] == pytest.approx(vectors[4])
    assert not np.allclose(vectors[0], vectors[2], atol=0.01)
    assert embedding.embed_query("the price") == pytest.approx(vectors[0], abs=1e-5)


def test_texts_of_like_length_are_read_together_and_each_has_its_own_vector(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedding, model = chosen_embedding(settings), local._load(settings.embedding)
    assert embedding is not None
    words = ("price", "cookie", "session", "basket")
    texts = [" ".join(words[at % 4 :] * (at * 7 % 11 + 1)) for at in range(24)]
    alone = [embedding.embed_query(text) for text in texts]
    read: list[list[str]] = []
    embed = model.passage_embed

    def passage_embed(texts: list[str], batch_size: int) -> object:
        read.append(texts)
        return embed(texts, batch_size=batch_size)

    monkeypatch.setattr(model, "passage_embed", passage_embed)
    assert embedding.embed_passages(texts) == pytest.approx(np.array(alone), abs=1e-5)
    (together,) = read
    assert [len(text) for text in together] == sorted(len(text) for text in texts)


def test_the_first_token_is_the_vector_where_the_model_says_so(model: Path, tmp_path: Path) -> None:
    by_first = make_model(tmp_path / "by first", "hidden")
    (by_first / "1_Pooling").mkdir()
    (by_first / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    )
    mean, first = (
        chosen_embedding(load_settings(embedding=str(folder))) for folder in (model, by_first)
    )
    assert mean is not None and first is not None
    assert not np.allclose(mean.embed_query("cookie"), first.embed_query("cookie"), atol=0.01)


def test_a_name_is_taken_from_the_cache_or_fetched_and_nothing_else_is(
    hub_cache: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EmbeddingError, match="hub cannot be reached") as caught:
        chosen_embedding(load_settings(embedding=MINILM))
    assert "CODEQA_EMBEDDING to the folder" in caught.value.hint
    put_in_cache(hub_cache, model, "Qdrant/all-MiniLM-L6-v2-onnx")  # where fastembed takes it from
    minilm = chosen_embedding(load_settings(embedding=MINILM))
    assert minilm is not None and minilm.dimension == 32
    with hub_of("owner/encoder", model, monkeypatch) as given:
        other = chosen_embedding(load_settings(embedding="owner/encoder"))
        assert other is not None and other.dimension == 32
        assert set(given) == {
            "config.json", "model.onnx", "special_tokens_map.json", "tokenizer.json",
            "tokenizer_config.json",
        }  # fmt: skip
        with pytest.raises(EmbeddingError, match="hub has no model owner/nothing"):
            chosen_embedding(load_settings(embedding="owner/nothing"))


def test_a_folder_that_holds_no_model_and_what_is_no_name_are_said_to_be_none(
    tmp_path: Path,
) -> None:
    with pytest.raises(EmbeddingError, match=r"neither a folder nor a model's name"):
        chosen_embedding(load_settings(embedding="two/words here"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmbeddingError, match=r"empty holds no model in ONNX"):
        chosen_embedding(load_settings(embedding=f"huggingface/{tmp_path / 'empty'}"))
