"""A real ColBERT checkpoint through `rerankers`, torch and transformers, without a network.

The checkpoint is made here: a small BERT with a projection and a tokenizer, as
`save_pretrained` writes them. Runs where the extra `rerank` is installed (`make test-rerank`).
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the extra `rerank` is not installed")
pytest.importorskip("transformers", reason="the extra `rerank` is not installed")

from colbert_checkpoint import make_checkpoint

from codeqa.errors import RerankerError
from codeqa.search import choose_reranker, parse_query, reranker_status
from codeqa.search.rerank import local
from codeqa.search.rerank.checkpoint import DEFAULT_CHECKPOINT, Family
from codeqa.search.rerank.local import (
    CANDIDATES,
    TOKENS,
    LocalModel,
    load_ranker,
    local_reranker,
    score_batch,
)
from codeqa.search.rerank.model import ModelReranker
from codeqa.settings import Settings, load_settings
from codeqa.types import Hit, Unit

QUESTION = parse_query("session cookie")
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reaches for another machine fails at once, and is not believed to be slow."""
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            raise AssertionError(f"{address} was to be reached")
        connect(self, address)

    def nowhere(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in ("127.0.0.1", "localhost"):
            raise socket.gaierror("no names are resolved here")
        return resolve(host, *arguments, **options)

    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", only_here)
    monkeypatch.setattr(socket, "getaddrinfo", nowhere)


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache of this test alone; nothing is kept between tests."""
    from huggingface_hub import constants

    cache = tmp_path / "hub cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    local.shared.cache_clear()
    return cache


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("made") / "colbert-small")


@pytest.fixture(scope="module")
def ranker(checkpoint: Path) -> Any:
    return load_ranker(str(checkpoint), Family.COLBERT, may_download=False)


def hit(number: int, code: str) -> Hit:
    unit = Unit("a.py", "python", "function", "f", "f", code, 1, 1, id=str(number))
    return Hit(unit, 1 - number / 1_000)


CODE = [f"return total price of the basket {number}" for number in range(30)]
HITS = [hit(n, "self session cookie expire" if n == 13 else code) for n, code in enumerate(CODE)]


def in_folder(folder: Path) -> ModelReranker:
    return local_reranker(LocalModel(str(folder), download=False))


def order(hits: list[Hit]) -> list[int]:
    return [int(one.unit.id) for one in hits]


def test_a_checkpoint_in_a_folder_reranks_and_puts_the_words_asked_for_first(
    checkpoint: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(reranker=str(checkpoint))
    assert reranker_status(settings) == (True, "colbert-small", "")
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("colbert-small", ())
    assert order(done.hits)[0] == 13
    assert order(done.hits)[CANDIDATES:] == list(range(CANDIDATES, 30))
    assert done.hits[0].why[-1].startswith("reranked by colbert-small: ")
    assert capfd.readouterr().out == ""


def test_a_score_does_not_depend_on_what_else_is_in_the_batch(ranker: Any) -> None:
    texts = ["session cookie", "return " * 200, "", "def total(basket): return price"]
    together = score_batch(ranker, "session cookie expire", texts)
    alone = [score_batch(ranker, "session cookie expire", [text])[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-4)


def test_a_score_is_the_mean_over_the_question_of_the_nearest_token(
    ranker: Any, checkpoint: Path
) -> None:
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(checkpoint, local_files_only=True)

    def vectors(text: str, marker: str) -> Any:
        ids = tokenizer(text)["input_ids"]
        ids.insert(1, tokenizer.convert_tokens_to_ids(marker))
        if marker == "[unused0]":  # questions are filled up with masks, which are not read
            ids += [tokenizer.mask_token_id] * 8
        mask = torch.tensor([[int(one != tokenizer.mask_token_id) for one in ids]])
        with torch.inference_mode():
            found = ranker.model(torch.tensor([ids]), attention_mask=mask)[0]
        return found / found.norm(dim=-1, keepdim=True), mask[0].bool()

    question, read = vectors("session cookie", "[unused0]")
    code, _ = vectors("return session", "[unused1]")
    nearest = (question @ code.T).max(-1).values
    # As the loader sums: the filling takes part in the sum, the words are what it is shared by.
    expected = float(nearest.sum() / read.sum())
    assert score_batch(ranker, "session cookie", ["return session"])[0] == pytest.approx(
        expected, abs=1e-4
    )


def test_long_code_and_a_long_question_are_cut_to_what_the_model_takes(ranker: Any) -> None:
    assert ranker.doc_max_length <= TOKENS
    long = "session " * 2_000
    assert len(score_batch(ranker, long, [long, "\x00", "🎉" * 500, "{}" * 900])) == 4


def test_weights_that_are_no_safetensors_are_read_as_well(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "small", safe=False)
    assert not (folder / "model.safetensors").exists()
    done = in_folder(folder).rerank(HITS, QUESTION)
    assert order(done.hits)[0] == 13


# What is wrong is said, and the built-in one answers


def replaced(folder: Path) -> str:
    """The warning of a search whose reranker cannot work; the built-in one has worked."""
    done = choose_reranker(load_settings(reranker=str(folder))).rerank(HITS, QUESTION)
    assert done.reranker == "built-in"
    assert sorted(order(done.hits)) == list(range(30))
    (warning,) = done.warnings
    assert "The built-in reranker was used." in warning
    return warning


@pytest.mark.parametrize("verbosity", ["warning", "error"])
def test_a_bert_without_projection_does_not_rerank_by_chance(
    tmp_path: Path, verbosity: str
) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity(getattr(logging, verbosity.upper()))
    try:
        warning = replaced(make_checkpoint(tmp_path / "small", projection=False))
    finally:
        logging.set_verbosity(before)
    assert "small is no ColBERT checkpoint: it lacks linear.weight" in warning


# The hub and its cache


def cached(cache: Path, checkpoint: Path, name: str) -> Path:
    """Put a checkpoint where the hub's client keeps what it has fetched."""
    repository = cache / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / SHA
    shutil.copytree(checkpoint, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(SHA)
    return snapshot


def test_automatically_the_model_is_used_when_it_is_in_the_cache(
    hub_cache: Path, checkpoint: Path
) -> None:
    reranker = choose_reranker(Settings())
    done = reranker.rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("built-in", ())
    ok, message, _ = reranker_status(Settings())
    assert ok and message.startswith("built-in; CODEQA_RERANKER=answerdotai/")

    cached(hub_cache, checkpoint, DEFAULT_CHECKPOINT)
    done = reranker.rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == (DEFAULT_CHECKPOINT, ())
    assert order(done.hits)[0] == 13
    assert reranker_status(Settings()) == (True, DEFAULT_CHECKPOINT, "")


def test_a_name_that_is_not_here_without_a_network_says_so(hub_cache: Path) -> None:
    settings = load_settings(reranker="owner/colbert-small")
    ok, message, _ = reranker_status(settings)
    assert ok and message == "owner/colbert-small, downloaded from the model hub when first used"
    started = time.monotonic()
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert time.monotonic() - started < 14
    assert done.reranker == "built-in"
    assert done.warnings == (
        "owner/colbert-small is not on this machine, and the model hub cannot be reached. "
        "The built-in reranker was used. "
        "Check the network, or set CODEQA_RERANKER to the checkpoint's folder.",
    )


@pytest.fixture
def hub(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server that speaks the hub's protocol for `owner/colbert-small`; the paths it gave."""
    from huggingface_hub import constants, file_download

    given: list[str] = []
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir()}
    files |= {"onnx/model.onnx": b"big", "README.md": b"# Read", "vespa.onnx": b"big"}

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            if path == "/api/models/owner/colbert-small/revision/main":
                siblings = [{"rfilename": name} for name in files]
                body = {"id": "owner/colbert-small", "sha": SHA, "siblings": siblings}
                self._send(200, json.dumps(body).encode(), {"Content-Type": "application/json"})
            elif path.startswith(f"/owner/colbert-small/resolve/{SHA}/"):
                name = path.rsplit(f"{SHA}/", 1)[1]
                if self.command == "GET":
                    given.append(name)
                tag = {"ETag": f'"{name}"', "X-Repo-Commit": SHA}
                self._send(200, files[name], tag)
            else:
                self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

        do_HEAD = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(file_download, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield given
    server.shutdown()
    server.server_close()
    thread.join(5)


def test_a_name_is_fetched_once_and_only_the_files_that_are_needed(
    hub: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(reranker="owner/colbert-small")
    done = choose_reranker(settings).rerank(HITS, QUESTION)
    assert (done.reranker, done.warnings) == ("owner/colbert-small", ())
    assert order(done.hits)[0] == 13
    assert "model.safetensors" in hub and "vocab.txt" in hub
    assert not {"onnx/model.onnx", "README.md", "vespa.onnx"} & set(hub)
    assert capfd.readouterr().out == ""

    fetched = len(hub)
    local.shared.cache_clear()  # as a new process
    assert reranker_status(settings) == (True, "owner/colbert-small", "")
    assert choose_reranker(settings).rerank(HITS, QUESTION).reranker == "owner/colbert-small"
    assert len(hub) == fetched


def test_a_name_that_the_hub_does_not_know_is_not_called_a_network_failure(
    hub: list[str],
) -> None:
    done = choose_reranker(load_settings(reranker="owner/nothing")).rerank(HITS, QUESTION)
    assert done.warnings[0].startswith("The model hub has no checkpoint owner/nothing")


def test_without_leave_to_download_nothing_is_fetched(hub: list[str]) -> None:
    with pytest.raises(RerankerError, match="is not on this machine"):
        load_ranker("owner/colbert-small", Family.COLBERT, may_download=False)
    assert hub == []
