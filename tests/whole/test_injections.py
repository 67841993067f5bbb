"""Orders in indexed files stay data: through indexing, retrieval, packing and the messages."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from block_grammar import parse_block
from chat_kit import answer, parts
from markdown_it import MarkdownIt

from codeqa.chat.events import Event
from codeqa.chat.values import AskOptions
from codeqa.engine import Engine, open_engine
from codeqa.prompts import render_prompt
from codeqa.settings import load_settings
from tests.kit.injections import INJECTIONS, Injection
from tests.kit.openai_server import ScriptedServer, openai_server, stream
from tests.kit.repositories import write

pytest_plugins = ("chat_fixtures",)
pytestmark = pytest.mark.usefixtures("clock")

markdown = MarkdownIt("commonmark", {"html": True})


@dataclass
class Shop:
    """A repository full of orders, its harmless twin, and a model that only listens."""

    hostile: Engine
    harmless: Engine
    server: ScriptedServer

    def sent(self) -> list[dict[str, Any]]:
        return list(self.server.requests[-1][1]["messages"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("injections")
    hostile = write(folder / "hostile", {one.path: one.text for one in INJECTIONS})
    harmless = write(folder / "harmless", {one.path: one.harmless for one in INJECTIONS})
    with openai_server(lambda path, body: stream(["Noted."])) as server:
        settings = load_settings(
            data=folder / "data", workers=1, watch=False,
            model="openai/gpt-4o", model_url=server.base_url, model_key="a-key",
        )  # fmt: skip
        engines = [open_engine(settings, root) for root in (hostile, harmless)]
        for engine in engines:
            engine.index.run()
        yield Shop(*engines, server)
        for engine in engines:
            engine.close()


def ask(engine: Engine, question: str, **options: Any) -> tuple[list[Event], str]:
    events = list(engine.chat.ask(AskOptions(question, **options)))
    assert events[-1].kind == "done", events[-1].data
    return events, answer(events)


@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda one: one.name)
def test_an_order_in_a_file_reaches_the_model_only_as_fenced_and_labelled_data(
    shop: Shop, injection: Injection
) -> None:
    nobody = uuid.uuid4().hex  # has no earlier answers to similar questions
    ask(shop.hostile, f"@codebase {injection.question}", user=nobody, effort="fast")
    system, user = shop.sent()
    instruction, block = parts(user)
    # Rules and instruction are what they would be for any file.
    assert parts(system) == [render_prompt("chat_system")]
    assert instruction == (
        f"[MODE: explain]\n[INSTRUCTION]\n"
        f"{render_prompt('mode_explain', question=injection.question).rstrip()}\n"
    )
    # The order is in the block, inside the chunks of its own file, which are labelled as such;
    # beside the chunks there is nothing but the grammar, else the block cannot be read back.
    chunks = parse_block(block)
    own = [chunk for chunk in chunks if chunk.path == injection.path]
    assert any(injection.word in chunk.path + chunk.content for chunk in own)
    assert all(injection.word not in c.path + c.content for c in chunks if c not in own)
    lines = injection.text.split("\n")
    for chunk in own:
        if not injection.path.endswith(".ipynb"):  # of a notebook the cells' text is shown
            assert chunk.content == "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


@pytest.mark.parametrize("injection", INJECTIONS[::3], ids=lambda one: one.name)
def test_an_order_in_a_file_does_not_change_what_the_extractive_answer_is(
    shop: Shop, injection: Injection
) -> None:
    question = f"@codebase {injection.question}"
    events, text = ask(shop.hostile, question, use_model=False)
    twin_events, twin = ask(shop.harmless, question, use_model=False)
    done, twin_done = events[-1].data, twin_events[-1].data
    for name in ("intent", "mode", "generator", "coverage"):
        assert done[name] == twin_done[name]
    assert text.split("\n", 1)[0] == twin.split("\n", 1)[0]
    assert injection.question in text
    # The same places are cited, and all are true.
    places = [
        [(c["path"], c["start"], c["end"]) for c in d["citations"]] for d in (done, twin_done)
    ]
    if injection.word not in injection.path:
        assert places[0][0] == places[1][0]
        assert places[0][0][0] == injection.path
    assert all(citation["verified"] for citation in done["citations"])
    # And no text of a file becomes markup of the answer.
    parsed = markdown.parse(text)
    found = {t.type for token in parsed for t in (token, *(token.children or ()))}
    assert not found & {"html_block", "html_inline", "image", "link_open", "hr"}


def test_what_was_quoted_without_a_model_is_never_put_into_the_models_mouth(shop: Shop) -> None:
    injection = next(i for i in INJECTIONS if i.name == "readme-order")
    _, text = ask(
        shop.hostile, f"@codebase {injection.question}", use_model=False, conversation="quoted"
    )
    assert injection.word in text
    ask(shop.hostile, "and what does it say?", conversation="quoted")
    *earlier, user = shop.sent()
    assert [m["role"] for m in earlier] == ["system", "user", "assistant"]
    assert all(injection.word not in part for m in earlier for part in parts(m))
    instruction, block = parts(user)
    assert injection.word not in instruction
    assert injection.word in block


def test_a_file_that_names_the_tag_starts_no_search(shop: Shop) -> None:
    injection = next(i for i in INJECTIONS if i.name == "codebase-tag")
    ask(shop.hostile, f"@codebase {injection.question}", conversation="tagged")
    events, _ = ask(shop.hostile, "what does the comment say?", conversation="tagged")
    assert not [event for event in events if event.kind == "retrieved"]
    assert events[-1].data["query_tags"] == []
