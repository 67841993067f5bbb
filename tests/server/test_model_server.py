"""Answers by llama.cpp's own server and a small model: `make test-model-server`.

What the model says makes no sense. Templates that show it the same answer thrice have it say that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_kit import Indexed, answer, ask, index
from serving import client_of

from codeqa.chat.messages import TOO_LONG
from codeqa.engine import Engine
from codeqa.errors import RateLimitError
from codeqa.llm.client import Model
from codeqa.llm.providers import ModelAddress, provider_named
from codeqa.llm.values import Piece, Reasoning
from codeqa.settings import Settings
from codeqa.types import TokenUsage
from tests.kit.llama_server import USUAL_PORT, LlamaServer, llama_server
from tests.kit.waiting import PATIENCE, until

pytest_plugins = ("patient",)
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("patient")]
MESSAGES = [{"role": "system", "content": "Count."}, {"role": "user", "content": "2 + 2?"}]
FILES = {
    "session.py": "def expire_session(cookie):\n    return cookie.clear()\n",
    "visit.py": "from session import expire_session\n\n\ndef end(visit):\n"
    "    return expire_session(visit.cookie)\n",
}
MESSAGE = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == "tool" %}<tool_response>
{{ message.content }}
</tool_response>{% elif message.tool_calls %}{% for call in message.tool_calls %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% else %}{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}{% endif %}<|im_end|>
{% endfor %}"""
BEGINS = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
CALL = '<tool_call>\n{"name": "symbol", "arguments": {"name": "expire_session"}}\n</tool_call>'
THOUGHT = "<think>\nLet me count.\n</think>\n\nIt is four."


def thrice(text: str) -> str:
    return f"<|im_start|>assistant\n{text}<|im_end|>\n" * 3


TOOLS = (
    "{% for tool in tools or [] %}{{ tool | tojson }}\n{% endfor %}"
    f"{MESSAGE}{{% if messages[-1].role == 'user' %}}{thrice(CALL)}{{% endif %}}{BEGINS}"
)
THINKS = (
    f"{MESSAGE}{thrice(THOUGHT)}{BEGINS}{{% if add_generation_prompt and enable_thinking is defined"
    " and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
)


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    pytest.importorskip("xllamacpp", reason="`make test-model-server` installs it.")


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    """One whose template drops tools."""
    with llama_server(n_ctx=32_768, n_predict=8, ignore_eos=True) as running:
        yield running


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    return index(tmp_path_factory.mktemp("shop"), FILES)


def model_at(server: LlamaServer, provider: str = "llamacpp") -> Model:
    (name,) = [row["id"] for row in server.page("/v1/models")["data"]]
    return Model(ModelAddress(server.base_url, name, provider=provider), PATIENCE)


def said(pieces: Sequence[Piece]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


def opened(shop: Indexed, data: Path, server: LlamaServer, **settings: Any) -> Engine:
    values = {"model": "llamacpp/gemma", "model_url": server.base_url, "model_timeout": PATIENCE}
    return shop.open(data, **values | settings)


def test_it_is_found_without_a_setting(server: LlamaServer, settings: Settings) -> None:
    if server.port != USUAL_PORT:
        pytest.skip("another program has its usual port")
    found = client_of(settings, None).get("/api/models/local").json["servers"]
    assert [one["models"] for one in found if one["provider"] == "llamacpp"] == [
        [row["id"] for row in server.page("/v1/models")["data"]]
    ]
    assert server.base_url == provider_named("llamacpp").base_url


@pytest.mark.parametrize("provider", ["llamacpp", "custom"])
def test_it_tells_how_much_its_model_takes(server: LlamaServer, provider: str) -> None:
    with model_at(server, provider) as model:
        assert model.window() == 32_768


def test_an_answer_comes_in_pieces_with_what_it_took(server: LlamaServer) -> None:
    with model_at(server) as model:
        *pieces, usage = model.stream(MESSAGES, max_tokens=6)
    assert len(pieces) > 1 and said(pieces)
    assert isinstance(usage, TokenUsage) and usage.prompt_tokens > 10
    assert usage.completion_tokens == 6 and usage.cut


def test_an_answer_that_is_stopped_leaves_it_free_for_the_next(server: LlamaServer) -> None:
    with model_at(server) as model:
        endless = model.stream(MESSAGES, max_tokens=32_000)
        next(endless)
        assert server.busy
        endless.close()
        until(lambda: not server.busy)
        assert said(list(model.stream(MESSAGES, max_tokens=6)))


def test_a_question_while_the_model_is_loaded_is_told_so(server: LlamaServer) -> None:
    problems = set[str]()

    def answered() -> str:
        try:
            with Model(ModelAddress(loading.base_url, "m", provider="llamacpp"), PATIENCE) as model:
                return said(list(model.stream(MESSAGES, retries=0)))
        except RateLimitError as error:
            problems.add(error.message)
            return ""

    with llama_server(loaded=False, n_ctx=512, n_predict=4) as loading:
        assert until(answered)
    assert problems <= {"127.0.0.1 still loads the model."}


@pytest.mark.parametrize("says_window", [True, False])
def test_code_that_it_cannot_take_is_left_out_and_that_is_said(
    says_window: bool, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each digit is a token, which no estimate foresees.
    lines = "".join(f"    cookie[{n}] = {n * 7919 % 10_007}\n" for n in range(220))
    shop = index(tmp_path, {**FILES, "rates.py": f"def rate(cookie):\n{lines}"})
    if not says_window:
        monkeypatch.setattr(Model, "window", lambda model: 0)
    with llama_server(n_ctx=3_072, n_predict=4) as server, opened(shop, data_dir, server) as engine:
        events = ask(engine, "/files rates.py what does rate do?")
    record = events[-1].record  # type: ignore[attr-defined]
    assert answer(events) and 0 < record.tokens.prompt < 3_072
    assert TOO_LONG in record.notice


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        ({"chat_template": TOOLS}, ["symbol"]),
        ({}, []),  # its template drops tools
        ({"use_jinja": False}, []),  # it refuses tools
    ],
    ids=["takes tools", "drops tools", "refuses tools"],
)
def test_the_model_may_look_further_whatever_its_template_does_with_tools(
    options: dict[str, Any], calls: list[str], shop: Indexed, data_dir: Path
) -> None:
    limits = {"n_ctx": 8_192, "n_predict": 40}
    with (
        llama_server(**limits, **options) as server,
        opened(shop, data_dir, server, effort="normal") as engine,
    ):
        events = ask(engine, "@codebase what does expire_session do to the cookie?")
        model = engine.models.answer_model()
    record = events[-1].record  # type: ignore[attr-defined]
    looks = [step.tool for step in record.looked_up]
    assert model and model.refuses_tools == (not calls)
    assert answer(events) and looks[: len(calls)] == calls
    by_lines = "LOOK symbol" in str(record.messages[0].parts)
    assert by_lines == (not calls)


@pytest.mark.parametrize("thinks", [True, False])
def test_what_it_thinks_is_told_apart_from_what_it_answers(thinks: bool) -> None:
    with (
        llama_server(n_ctx=1_024, chat_template=THINKS, enable_reasoning=int(thinks)) as server,
        model_at(server) as model,
    ):
        pieces = list(model.stream(MESSAGES, max_tokens=20))
    thoughts = "".join(piece.text for piece in pieces if isinstance(piece, Reasoning))
    assert thoughts == ("Let me count.\n" if thinks else "")
    assert said(pieces).startswith("It is four.")
