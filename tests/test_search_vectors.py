"""Vectors as a channel of the search: a real embedding, a real column, the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from indexed import write

from codeqa.embeddings import registry
from codeqa.engine import Engine, open_engine
from codeqa.settings import Settings

CONCEPTS = (("buy", "purchase", "acquire"), ("delete", "remove", "erase"), ("draw", "paint"))
FILES = {
    "shop.py": "def buy_article(name):\n    total = name\n    return total\n",
    "trash.py": "def erase_entry(key):\n    gone = key\n    return gone\n",
    "canvas.py": "def paint_circle(radius):\n    area = radius\n    return area\n",
}


def meaning(text: str) -> list[float]:
    """One axis per concept, so that synonyms meet although they share no letter."""
    lowered = text.lower()
    return [0.05 + sum(lowered.count(word) for word in concept) for concept in CONCEPTS]


@pytest.fixture
def synonyms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The setting of an embedding by `meaning`, which stands in LanceDB's registry."""
    from lancedb.embeddings import TextEmbeddingFunction, get_registry

    known = get_registry()
    before = dict(known._functions)
    # The table that is installed takes no part here.
    monkeypatch.setattr(registry, "SHIPPED", tmp_path / "installed")

    @known.register("concepts")
    class Synonyms(TextEmbeddingFunction):
        name: str = "synonyms"

        def ndims(self) -> int:
            return len(CONCEPTS)

        def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> Any:
            return [meaning(text) for text in texts]

    yield "concepts/synonyms"
    known._functions.clear()
    known._functions.update(before)


def test_a_question_that_shares_no_word_with_the_code_finds_it_by_meaning(
    synonyms: str, settings: Settings, tmp_path: Path
) -> None:
    repository = write(tmp_path / "repo", FILES)
    assert _search(open_engine(settings, repository)) == []
    chosen = settings.model_copy(update={"embedding": synonyms})
    assert _search(open_engine(chosen, repository))[0] == ("buy_article", "vector_refined")


def _search(engine: Engine) -> list[tuple[str, str]]:
    """Name of each hit and the channels that found it, after indexing."""
    engine.index.run()
    result = engine.search.search("where can I purchase something?")
    return [(hit.unit.name, " ".join(hit.channels)) for hit in result.units]
