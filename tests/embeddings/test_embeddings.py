"""Embeddings: what is sent, what comes back, and what is said when it does not."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codeqa.embeddings import local, registry
from codeqa.embeddings.registry import Embedding, chosen_embedding, cut, fast_embedding
from codeqa.engine import open_engine
from codeqa.environment import install_command
from codeqa.errors import EmbeddingError, SettingsError
from codeqa.indexing import Indexer, passes
from codeqa.indexing.runs import CANCELLED, CancelledError
from codeqa.settings import Settings, load_settings
from codeqa.store import EmbeddingRecord, Location, Tables, TextSearch, VectorSearch, locate
from codeqa.text.tokens import estimate_tokens
from codeqa.text.unit_text import unit_text
from codeqa.types import Progress
from tests.kit.indexed import copied, indexed, write
from tests.kit.openai_server import Reply, Script, ScriptedServer, failure, openai_server
from tests.kit.waiting import AT_ONCE

DIMENSION = 16
FILES = {
    "app.py": "def load_config(path):\n    return path\n\n\ndef render(page):\n    return page\n",
    "store.py": "class UserStore:\n    def find_user(self, key):\n        return key\n",
    "README.md": "# Manual\n\nHow to load the config.\n",
}


def bag(text: str) -> list[float]:
    """A bag of hashed words: texts that share words lie near each other."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    for word in re.findall(r"[a-z]+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=2).digest()
        vector[int.from_bytes(digest, "big") % DIMENSION] += 1
    return [float(value) for value in vector + 0.01]


@pytest.fixture(autouse=True, scope="module")
def no_table() -> Iterator[None]:
    """The table that is installed takes no part here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "SHIPPED", Path("/nowhere"))
        yield


@pytest.fixture
def sent() -> list[list[str]]:
    """Batches of texts that the test embeddings were given."""
    return []


@pytest.fixture
def register(sent: list[list[str]]) -> Iterator[Callable[..., None]]:
    """`register(alias)` puts a deterministic embedding into LanceDB's registry."""
    from lancedb.embeddings import TextEmbeddingFunction, get_registry

    known = get_registry()
    before = dict(known._functions)

    def add(alias: str) -> None:
        class BagOfWords(TextEmbeddingFunction):
            name: str = "bag"

            def ndims(self) -> int:
                return DIMENSION

            def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> Any:
                sent.append(list(texts))
                return [bag(text) for text in texts]

        known._functions.pop(alias, None)
        known.register(alias)(BagOfWords)

    yield add
    known._functions.clear()
    known._functions.update(before)


def embeddings(body: dict[str, Any], dimension: int = 8) -> Reply:
    data = [
        {"object": "embedding", "index": index, "embedding": [1.0] * (dimension - 1) + [index]}
        for index in range(len(body["input"]))
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {}, {"object": "list", "data": data[::-1], "model": "m", "usage": usage}


@contextmanager
def openai_embedding(script: Script, **more: Any) -> Iterator[tuple[Embedding, ScriptedServer]]:
    """OpenAI's embedding of 8 dimensions, or another, at a server that answers by `script`."""
    values = {"embedding": "openai/text-embedding-3-large", "embedding_dimension": 8, **more}
    provider = values["embedding"].partition("/")[0]
    with openai_server(script) as server:
        values |= {f"{provider}_base_url": server.base_url, f"{provider}_api_key": "sk-test"}
        embedding = chosen_embedding(load_settings(**values))
        assert embedding is not None
        yield embedding, server


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", AT_ONCE)


# The client against a server


def test_openai_gets_texts_and_the_dimension_and_gives_vectors_in_order() -> None:
    with openai_embedding(lambda path, body: embeddings(body)) as (embedding, server):
        vectors = embedding.embed_passages(["one", "two", "three"])
        assert vectors.shape == (3, 8) and vectors.dtype == np.float32
        assert vectors[:, -1].tolist() == [0, 1, 2]
        assert embedding.embed_query("question").shape == (8,)
    path, body = server.requests[0]
    assert path.endswith("/embeddings")
    assert body["model"] == "text-embedding-3-large"
    assert body["input"] == ["one", "two", "three"]
    assert body["dimensions"] == 8
    assert server.headers[0]["authorization"] == "Bearer sk-test"


def test_the_known_models_have_their_dimensions() -> None:
    for name, dimension in {
        "openai/text-embedding-3-large": 3072,
        "openai/text-embedding-3-small": 1536,
        "jina/jina-embeddings-v3": 1024,
    }.items():
        made = chosen_embedding(load_settings(embedding=name, openai_api_key="k", jina_api_key="k"))
        assert made is not None
        assert (made.name, made.dimension, made.max_tokens) == (name, dimension, 8191)


def test_jina_is_told_queries_from_passages_and_only_what_a_request_needs_is_sent_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: secret\nAuthorization: Bearer other")
    jina = {"embedding": "jina/jina-embeddings-v3", "embedding_dimension": 1024}
    with openai_embedding(lambda path, body: embeddings(body, 1024), **jina) as (embedding, server):
        embedding.embed_passages(["text"])
        embedding.embed_query("question")
    assert [body["task"] for _, body in server.requests] == ["retrieval.passage", "retrieval.query"]
    assert "dimensions" not in server.requests[0][1]
    needed = {"host", "accept", "connection", "user-agent", "content-type", "content-length"}
    for headers in server.headers:
        assert set(headers) <= needed | {"authorization"}
        assert headers["authorization"] == "Bearer sk-test"
        assert headers["user-agent"] == "codeqa"


def test_a_redirect_is_not_followed() -> None:
    with openai_server(lambda path, body: embeddings(body)) as other:
        moved: Reply = (307, {"Location": f"{other.base_url}/embeddings"}, {})
        refused = pytest.raises(EmbeddingError, match="status 307")
        with openai_embedding(lambda path, body: moved) as (embedding, _), refused:
            embedding.embed_query("question")
        assert other.requests == []


OTHER_DIMENSION = embeddings({"input": ["text"]}, 5)


@pytest.mark.parametrize(
    ("reply", "message", "hint", "tries"),
    [
        (failure(401, "bad key sk-test"), r"refused the key \(status 401\)", "OPENAI_API_KEY", 1),
        (failure(404, "no model"), r"with status 404: no model", "base URL", 1),
        (failure(429, "slow"), "with status 429", "CODEQA_EMBEDDING_BATCH", 4),
        (failure(429, "slow", {"Retry-After": "600"}), "with status 429", "stored", 1),
        (OTHER_DIMENSION, "5 dimensions, 8 were expected", "CODEQA_EMBEDDING_DIMENSION=5", 1),
    ],
    ids=["401", "404", "429", "429-long", "dimension"],
)
def test_each_refusal_says_what_it_is_and_what_to_do(
    reply: Reply, message: str, hint: str, tries: int
) -> None:
    caught = pytest.raises(EmbeddingError, match=message)
    with openai_embedding(lambda path, body: reply) as (embedding, server), caught as error:
        embedding.embed_passages(["text"])
    assert hint in error.value.hint
    assert "127.0.0.1" in error.value.message or reply is OTHER_DIMENSION
    assert "\n" not in str(error.value) and "sk-test" not in str(error.value)
    assert len(server.requests) == tries


def test_an_unreachable_host_is_named() -> None:
    with openai_embedding(lambda path, body: embeddings(body)) as (embedding, _):
        pass  # nobody is there any more
    with pytest.raises(EmbeddingError, match=r"127\.0\.0\.1:\d+\) cannot be reached") as caught:
        embedding.embed_query("question")
    assert "network" in caught.value.hint


def test_what_cannot_be_chosen_is_said_before_anything_is_sent() -> None:
    for name, key, message in (
        ("openai/text-embedding-3-large", "", "OPENAI_API_KEY is not set"),
        ("jina/jina-embeddings-v3", "", "JINA_API_KEY is not set"),
        ("large", "k", "provider/name"),
        ("openai/own-model", "k", "dimension of openai/own-model is unknown"),
    ):
        with pytest.raises((EmbeddingError, SettingsError), match=message) as caught:
            chosen_embedding(load_settings(embedding=name, openai_api_key=key))
        assert caught.value.hint


def test_a_missing_package_of_a_provider_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    for name, said, hint in (
        ("instructor/hkunlp/instructor-base", "package that is not installed", "Install"),
        ("jinaai/x", "cannot be used: fastembed is not", install_command("models")),
    ):
        with pytest.raises(EmbeddingError, match=said) as caught:
            chosen_embedding(load_settings(embedding=name))
        assert hint in caught.value.hint


# Cutting


def test_texts_are_cut_between_lines_and_a_line_only_where_it_is_too_long() -> None:
    lines = "\n".join(f"line {number} of the text" for number in range(300))
    for text in (lines, "x漢" * 5_000 + "\nend", "short"):
        short = cut(text, 100)
        assert text.startswith(short)
        assert estimate_tokens(short) <= 100
        assert short == text or estimate_tokens(short) > 80
        assert text != lines or text[len(short)] == "\n"


# Filling the tables


@pytest.fixture(scope="module")
def made(no_table: None, tmp_path_factory: pytest.TempPathFactory) -> Location:
    return indexed(tmp_path_factory.mktemp("made"), FILES).location


@pytest.fixture
def indexer(made: Location, settings: Settings, tmp_path: Path) -> Indexer:
    """Of a repository that is indexed without vectors."""
    return Indexer(settings, copied(made, settings, tmp_path / "repo"))


def choosing(indexer: Indexer, name: str, **more: Any) -> Indexer:
    settings = indexer.settings.model_copy(update={"embedding": name, **more})
    return Indexer(settings, indexer.location)


def test_the_chosen_embedding_fills_its_column_anew_after_changes_of_code_or_choice(
    indexer: Indexer, register: Callable[..., None], sent: list[list[str]]
) -> None:
    register("bags")
    seen: list[Progress] = []
    chosen = choosing(indexer, "bags/bag", embedding_batch=2)
    chosen.run(seen.append)
    tables = Tables(indexer.location)
    counts = tables.counts()
    assert counts.refined == counts.units and counts.embedded == 0
    assert tables.vector_columns() == [
        ("vector_refined", EmbeddingRecord("bags/bag", "1", DIMENSION))
    ]
    assert max(map(len, sent)) == 2
    steps = [step for step in seen if step.phase == "embedding"]
    assert (steps[-1].done, steps[-1].total) == (counts.units, counts.units)
    text = unit_text(tables.named(["finduser"])[0])
    vector = np.array(bag(text), dtype=np.float32)
    best = tables.find(VectorSearch("methods", "vector_refined", vector, 1))
    assert best[0][0].name == "find_user"
    assert (chosen.status().embedding, chosen.status().embedded) == ("bags/bag", counts.units)
    # Only what changed is embedded again, and a rebuild keeps what was paid for.
    target = indexer.location.root / "app.py"
    target.write_text(target.read_text().replace("return page", "return page + 1"))
    sent.clear()
    chosen.run()
    assert [re.findall("name: (.*)", text)[0] for batch in sent for text in batch] == ["render"]
    sent.clear()
    chosen.run(full=True)
    assert sent == []
    counts = Tables(indexer.location).counts()
    assert counts.refined == counts.units


def test_an_embedding_that_fails_leaves_text_searchable_and_is_resumed(indexer: Indexer) -> None:
    answers = 0

    def script(path: str, body: dict[str, Any]) -> Reply:
        nonlocal answers
        answers += 1
        return embeddings(body) if answers != 2 else failure(401, "expired")

    with openai_server(script) as server:
        own = {"embedding_dimension": 8, "embedding_batch": 1, "openai_base_url": server.base_url}
        chosen = choosing(indexer, "openai/text-embedding-3-large", **own)
        with pytest.raises(EmbeddingError, match="refused the key") as caught:
            chosen.run()
        assert "can be searched" in caught.value.hint
        tables = Tables(indexer.location)
        assert tables.find(TextSearch("methods", "config", 5))
        status = chosen.status()
        assert status.state == "ready" and "refused the key" in status.error
        chosen.run()
    counts = Tables(indexer.location).counts()
    assert counts.refined == counts.units
    assert chosen.status().error == ""


def test_vectors_of_files_asked_about_come_first_then_one_of_each_file(
    indexer: Indexer,
    register: Callable[..., None],
    sent: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register("bags")
    monkeypatch.setattr("codeqa.indexing.passes.os.cpu_count", lambda: 2)  # one worker
    chosen = choosing(indexer, "bags/bag", embedding_batch=1)
    engine = open_engine(chosen.settings, indexer.location.root)
    engine.search.search("how is a page rendered?", path="app.py")
    engine.index.run()
    passages = [text for batch in sent for text in batch if text.startswith("codeqa/1")]
    paths = [re.findall("path: (.*)", text)[0] for text in passages]
    assert paths == ["app.py", "app.py", "store.py", "README.md", "store.py"]
    (first, *_) = engine.search.search("find the user").units
    assert (first.unit.name, "vector_refined" in first.channels) == ("find_user", True)


def test_vectors_of_a_chosen_embedding_are_made_by_half_of_the_cores_at_a_low_priority(
    indexer: Indexer, register: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[tuple[int, int]] = set()

    def pool(count: int, begin: Callable[[], None]) -> ThreadPool:
        def begun() -> None:
            before = os.getpriority(os.PRIO_PROCESS, 0)
            begin()
            seen.add((count, os.getpriority(os.PRIO_PROCESS, 0) - before))

        return ThreadPool(count, begun)

    monkeypatch.setattr(passes, "ThreadPool", pool)
    before = os.getpriority(os.PRIO_PROCESS, 0)
    lower = min(5, 19 - before) if sys.platform == "linux" else 0
    for cores, threads in ((None, 1), (5, 2), (64, 4)):
        monkeypatch.setattr(passes.os, "cpu_count", lambda cores=cores: cores)
        register(f"of {cores}")
        summary = choosing(indexer, f"of {cores}/bag").run()
        assert seen == {(threads, lower)}
        assert (summary.changed, summary.unchanged) == (0, 3), "refilled without parsing again"
        record = EmbeddingRecord(f"of {cores}/bag", "1", DIMENSION)
        assert Tables(indexer.location).vector_columns() == [("vector_refined", record)]
        seen.clear()
    monkeypatch.setattr(passes.sys, "platform", "darwin")
    passes._lower_priority()  # where it would be that of the whole process
    assert os.getpriority(os.PRIO_PROCESS, 0) == before, "the server keeps its own"


def test_vectors_are_saved_every_20_files_and_a_cancelled_run_goes_on_there(
    settings: Settings, tmp_path: Path, register: Callable[..., None], sent: list[list[str]]
) -> None:
    register("bags")
    files = {f"m{n}.py": f"def load_{n}():\n    return {n}\n" for n in range(45)}
    many = Indexer(settings, locate(settings, write(tmp_path / "many", files)))
    chosen = choosing(many, "bags/bag", embedding_batch=1)

    def cancel(step: Progress) -> None:
        if step.phase == "embedding" and step.done == 41:
            chosen.cancel()

    with pytest.raises(CancelledError):
        chosen.run(cancel)
    tables = Tables(chosen.location)
    assert tables.counts().refined == 40
    assert tables.find(TextSearch("methods", "load", 5))
    assert (chosen.status().state, chosen.status().error) == ("ready", CANCELLED)
    sent.clear()
    chosen.run()
    assert len(sent) == 5 and Tables(chosen.location).counts().refined == 45


def test_nothing_is_sent_unless_a_setting_names_the_provider(
    indexer: Indexer, register: Callable[..., None], sent: list[list[str]]
) -> None:
    assert chosen_embedding(load_settings(openai_api_key="k", jina_api_key="k")) is None
    assert fast_embedding() is None
    register("bags")
    with openai_server(lambda path, body: embeddings(body)) as server:
        settings = load_settings(
            data=indexer.settings.data, openai_base_url=server.base_url, openai_api_key="k"
        )
        Indexer(settings, indexer.location).run(full=True)
    choosing(indexer, "bags/bag").run(refine=False)
    assert server.requests == [] == sent
    assert Tables(indexer.location).counts().refined == 0
