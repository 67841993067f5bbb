"""The page over the real engine, with a model behind it that is scripted but really served."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from browser.actions import answered, ask, choose_provider, expecting, loaded
from browser.conftest import Server
from openai_server import ScriptedServer, completion, failure, openai_server, silent, stream
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]

ASK = "How are copies of a book reserved?"
FIRST_TEXT = """
  window.firstTexts = [];
  new MutationObserver(() => {
    const turns = document.querySelectorAll(".turn.writing");
    for (const turn of turns) {
      if (turn.timed || !turn.querySelector(".answer").textContent) continue;
      turn.timed = true;
      window.firstTexts.push(performance.timeOrigin + performance.now());
    }
  }).observe(document, { childList: true, subtree: true, characterData: true });
"""
"""Notes, in milliseconds since the epoch, when text of each answer is first in the page."""


def use(page: Page, server: ScriptedServer, model: str = "test-model") -> None:
    """Choose the scripted server in the dialog, as somebody with a server of their own does."""
    dialog = choose_provider(page, "Another address")
    dialog.get_by_label("Address", exact=True).fill(server.base_url)
    dialog.get_by_label("Model", exact=True).fill(model)
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()


def sent(server: ScriptedServer, index: int = -1) -> list[Any]:
    """The messages of a request, each content as a list of texts."""
    texts = []
    for message in server.requests[index][1]["messages"]:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part["text"] for part in content]
        texts.append((message["role"], parts))
    return texts


def block_of(parts: list[str]) -> str:
    return next((text for text in parts if text.startswith("[CONTEXT]")), "")


def test_a_model_is_picked_tested_asked_followed_up_reloaded_and_regenerated(
    modelled: Server, open_page: OpenPage
) -> None:
    answers = iter(
        [
            completion("ready"),
            stream(["Stock takes them off ", "the shelf [bookshop/stock.py:311-320].\n\n",
                    "It raises an error when there are too few."], usage=(900, 30)),
            stream(["It is raised as `OutOfStockError`."], usage=(950, 12)),
            stream(["Another way to say it."], usage=(950, 6)),
        ]
    )  # fmt: skip
    with openai_server(lambda path, body: next(answers)) as server:
        page = open_page(modelled.address)
        dialog = choose_provider(page, "Another address")
        dialog.get_by_label("Address", exact=True).fill(server.base_url)
        dialog.get_by_role("button", name="List models").click()
        dialog.get_by_role("option", name="gpt-4o", exact=True).click()
        dialog.get_by_role("button", name="Test").click()
        expect(dialog.get_by_role("status")).to_have_text(
            re.compile(r"^gpt-4o at 127\.0\.0\.1\S* answered in [\d,]+ ms\.$")
        )
        dialog.get_by_role("button", name="Use this model").click()
        expect(page.locator("#model-chip")).to_contain_text("gpt-4othis machine")

        ask(page, ASK)
        answered(page)
        expect(page.locator(".answer")).to_contain_text("when there are too few.")
        expect(page.locator('a.citation[data-path="bookshop/stock.py"]')).to_be_visible()
        expect(page.locator(".facts")).to_contain_text("900 in, 30 out")
        (system, instructions), *_ = sent(server)
        assert system == "system" and "reserve_copies" not in "".join(instructions)
        role, parts = sent(server)[-1]
        assert role == "user" and "@codebase" not in "".join(parts)
        block = block_of(parts)
        assert "def reserve_copies" in block

        expect(page.locator("#estimate")).to_contain_text("sends ≈")
        ask(page, "Which error is that?")
        answered(page)
        assert block_of(sent(server)[-1][1]) == block  # the cached context, unchanged
        history = [text for role, texts in sent(server)[1:-1] for text in texts]
        assert history[0] == ASK and "off the shelf" in history[1]

        page.get_by_role("button", name="Context").last.click()
        shown = page.locator(".message pre").all_text_contents()
        assert shown == [text for _, texts in sent(server) for text in texts]
        page.keyboard.press("Escape")

        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".answer").last).to_contain_text("It is raised as OutOfStockError.")
        page.get_by_role("button", name="Regenerate").last.click()
        expect(page.locator(".answer").last).to_contain_text("Another way to say it.")
        answered(page)
        assert sent(server)[-1] == sent(server, -2)[-1]
        again = [text for _, texts in sent(server)[1:-1] for text in texts]
        assert again == history  # the answer that is replaced is not held against it
        page.reload()
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".answer").last).to_contain_text("Another way to say it.")


def test_stopping_while_the_model_is_silent_ends_the_request_at_its_server(
    modelled: Server, open_page: OpenPage
) -> None:
    with openai_server(lambda path, body: silent(30)) as server:
        page = open_page(modelled.address)
        use(page, server)
        ask(page, ASK)
        expect(page.locator(".stages")).to_contain_text("Waiting for test-model")
        assert server.wait_for_requests(1)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".stages")).to_contain_text("Stopped")
        assert server.wait_for_disconnects(1)
        page.reload()
        expect(page.locator(".turn")).to_contain_text("Stopped before it was complete")
        expect(page.get_by_role("button", name="Regenerate")).to_be_visible()


def test_a_model_that_refuses_is_explained_and_the_answer_had_without_it(
    modelled: Server, open_page: OpenPage
) -> None:
    hostile = "<img src=x onerror=window.hacked=1> no such model"
    with openai_server(lambda path, body: failure(404, hostile)) as server:
        page = open_page(modelled.address)
        use(page, server)
        ask(page, ASK)
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("test-model")
        expect(alert.locator("p")).not_to_be_empty()  # the next step
        assert page.evaluate("window.hacked") is None
        expect(alert.locator("img")).to_have_count(0)
        page.reload()
        expect(alert).to_contain_text("test-model")
        page.get_by_role("button", name="Answer without the model").click()
        answered(page)
        expect(page.locator(".answer")).to_contain_text("reserve_copies")
        expect(page.locator(".turn")).to_have_count(1)
        page.reload()
        expect(page.locator(".turn")).to_have_count(1)
        expect(page.locator(".answer")).to_contain_text("reserve_copies")


def test_a_model_that_cannot_be_tested_is_not_silently_used(
    modelled: Server, open_page: OpenPage
) -> None:
    with openai_server(lambda path, body: failure(401, "bad key sk-secret-123")) as server:
        page = open_page(modelled.address)
        expecting(page, "502 (BAD GATEWAY)")
        dialog = choose_provider(page, "Another address")
        dialog.get_by_label("Address", exact=True).fill(server.base_url)
        dialog.get_by_label("Model", exact=True).fill("test-model")
        dialog.get_by_label("Key", exact=True).fill("sk-secret-123")
        dialog.get_by_role("button", name="Test").click()
        expect(dialog.get_by_role("status")).to_contain_text(re.compile("key", re.IGNORECASE))
        expect(dialog.get_by_role("status")).not_to_contain_text("sk-secret-123")
        headers = {name.lower(): value for name, value in server.headers[-1].items()}
        assert headers["authorization"] == "Bearer sk-secret-123"


def test_the_first_text_is_in_the_page_a_tenth_of_a_second_after_the_models_first_token(
    modelled: Server, open_page: OpenPage
) -> None:
    pieces = ["word "] * 3
    with openai_server(lambda path, body: stream(pieces, delay=0.05)) as server:
        page = open_page(modelled.address)
        use(page, server)
        page.add_init_script(FIRST_TEXT)
        page.reload()
        loaded(page)
        epoch = time.time() - time.monotonic()
        for number in range(5):
            ask(page, f"{ASK} {number}")
            answered(page)
        shown = [seen / 1000 - epoch for seen in page.evaluate("window.firstTexts")]
        told = [exchange.first_piece for exchange in server.exchanges if exchange.first_piece]
    assert len(shown) == len(told) == 5
    late = [1000 * (seen - said) for seen, said in zip(shown, told, strict=True)]
    assert statistics.median(late) < 100, late
