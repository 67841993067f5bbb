"""How much of a question is sent to a model that takes little."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from codeqa.chat.messages import ModelGenerator, count_tokens
from codeqa.chat.values import Gathered, ModelRequest
from codeqa.context.blocks import pack
from codeqa.llm.client import Model
from codeqa.llm.providers import ModelAddress
from codeqa.types import Chunk, Exchange
from tests.openai_server import Reply, completion, failure, openai_server

NOTHING_CITED: Any = SimpleNamespace(files=None, tables=lambda: None)
"""For an answer without citations nothing is looked up."""


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
        model = Model(ModelAddress(server.base_url, "m", provider="vllm"))
        given = replace(given, window=model.window())
        pieces = list(ModelGenerator(model, NOTHING_CITED).generate(given))
        model.close()
    (request,) = (piece for piece in pieces if isinstance(piece, ModelRequest))
    _, *earlier, last = (message["parts"] for message in request.messages)
    assert not window or count_tokens(request.messages) <= window * 7 / 8
    assert question in last[0] and last[1].startswith(packed.text[:1_000])
    assert (len(last[1]) < len(packed.text)) == bool(request.warning) == cut
    assert [parts[0] for parts in earlier[::2]] == [f"question {n}?" for n in range(3)][3 - told :]
