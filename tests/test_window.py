"""How much a model takes, as servers of four kinds say it over real HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from codeqa.chat.citations import CitedCode
from codeqa.chat.generation import Gathered, ModelRequest, count_tokens
from codeqa.chat.generators import ModelGenerator
from codeqa.context import pack
from codeqa.llm import Endpoint, Model, context_window, cut_off, provider_named
from codeqa.llm import window as window_module
from codeqa.types import Chunk, Exchange
from tests.openai_server import Reply, completion, failure, openai_server

SERVERS = [
    ("ollama", {"/api/ps": {"models": [{"name": "m:latest", "context_length": 16_000}]}}, {},
     16_000),
    ("ollama", {"/api/ps": {"models": []}}, {"parameters": "stop  \"x\"\nnum_ctx   8192"}, 8_192),
    ("ollama", {"/api/ps": {"models": []}}, {"parameters": "temperature 1"}, 4_096),
    ("llamacpp", {"/props": {"default_generation_settings": {"n_ctx": 6_000}}}, {}, 6_000),
    ("lmstudio", {"/api/v0/models": {"data": [
        {"id": "other", "loaded_context_length": 1},
        {"id": "m", "loaded_context_length": 12_000, "max_context_length": 32_000}]}}, {}, 12_000),
    ("lmstudio", {"/api/v0/models": {"data": [{"id": "m", "max_context_length": 32_000}]}}, {}, 0),
    ("vllm", {"/v1/models": {"data": [{"id": "m", "max_model_len": 40_960}]}}, {}, 40_960),
    ("custom", {"/v1/models": {"data": [{"id": "m", "context_window": 131_072}]}}, {}, 131_072),
    ("custom", {"/v1/models": {"data": [{"id": "m"}]}}, {}, 0),
    ("custom", {"/v1/models": ["no", "list", {"of": "models"}]}, {}, 0),
    ("llamacpp", {"/props": {"default_generation_settings": "none"}}, {}, 0),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of another test may have had the same port."""
    monkeypatch.setattr(window_module, "_known", {})


@pytest.mark.parametrize(("provider", "pages", "shown", "window"), SERVERS)
def test_a_server_says_how_much_its_model_takes(
    provider: str, pages: dict[str, Any], shown: dict[str, Any], window: int
) -> None:
    def script(path: str, body: dict[str, Any]) -> Reply:
        known = path == "/api/show" and body == {"model": "m"} and shown
        return (200, {}, shown) if known else failure(404)

    with openai_server(script) as server:
        server.pages |= pages
        assert context_window(Endpoint(server.base_url, "m", provider=provider)) == window


def test_a_server_is_asked_once_in_a_while_and_one_that_is_not_there_costs_nothing_else() -> None:
    with openai_server(lambda path, body: failure(404)) as server:
        server.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": 9_000}]}
        endpoint = Endpoint(server.base_url, "m", provider="vllm")
        assert [context_window(endpoint) for _ in range(3)] == [9_000] * 3
        assert len(server.exchanges) == 1
        gone = Endpoint(server.base_url.replace("/v1", "/v2"), "m", provider="vllm")
    assert context_window(gone) == 0


def test_a_large_provider_is_not_asked_but_a_server_that_speaks_for_it_is() -> None:
    own = provider_named("openai").base_url
    assert context_window(Endpoint(own, "gpt-4o", provider="openai")) == 128_000
    with openai_server(lambda path, body: failure(404)) as server:
        server.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": 5_000}]}
        assert context_window(Endpoint(server.base_url, "m", provider="openai")) == 5_000


def test_an_address_that_cannot_be_asked_has_no_known_window(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://proxy")
    assert context_window(Endpoint("http://models.invalid/v1", "m", provider="custom")) == 0


@pytest.mark.parametrize(
    ("read", "characters", "cut"),
    [
        (4_096, 40_000, True),
        (8_000, 28_000, False),
        (5_000, 28_000, False),  # prose
        (12, 28_000, False),  # only what was not remembered from before
        (0, 28_000, False),
    ],
)
def test_a_server_that_cannot_have_read_it_all_is_found_out(
    read: int, characters: int, cut: bool
) -> None:
    assert cut_off(read, characters) is cut


def nothing_cited(chunks: Sequence[Chunk]) -> CitedCode:
    """For an answer without citations nothing is looked up."""
    missing: Any = None
    return CitedCode(missing, missing, chunks)


@pytest.mark.parametrize(
    ("window", "question", "block", "told", "cut"),
    [
        (4_096, "why?", 6_000, 1, False),  # the last turn, shortened
        (6_500, "why?", 12_000, 1, False),
        (32_000, "why?", 12_000, 3, False),
        (4_096, "why? " * 900, 6_000, 0, True),  # a long question takes room from the code
        (0, "why? " * 900, 12_000, 3, False),
    ],
)
def test_question_code_and_as_much_of_the_history_as_fits_the_window_are_sent(
    window: int, question: str, block: int, told: int, cut: bool
) -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(60))
    chunks = [Chunk(f"ctx_{n:08x}", f"{n}.py", 1, 60, "python", code) for n in range(20)]
    history = tuple(Exchange(f"question {n}?", f"{n} " * 1_300) for n in range(3))
    packed = pack(chunks, block)
    given = Gathered(question, "explain", packed, searched=True, history=history)

    def script(path: str, body: dict[str, Any]) -> Reply:
        return completion("Because.") if path.endswith("completions") else failure(404)

    with openai_server(script) as server:
        if window:
            server.pages["/v1/models"] = {"data": [{"id": "m", "max_model_len": window}]}
        model = Model(Endpoint(server.base_url, "m", provider="vllm"))
        given = replace(given, window=context_window(model.endpoint))
        pieces = list(ModelGenerator(model, nothing_cited).generate(given))
        model.close()
    (request,) = (piece for piece in pieces if isinstance(piece, ModelRequest))
    _, *earlier, last = (message["parts"] for message in request.messages)
    assert not window or count_tokens(request.messages) <= window * 7 / 8
    assert question in last[0] and last[1].startswith(packed.text[:1_000])
    assert (len(last[1]) < len(packed.text)) == bool(request.warning) == cut
    assert [parts[0] for parts in earlier[::2]] == [f"question {n}?" for n in range(3)][3 - told :]
