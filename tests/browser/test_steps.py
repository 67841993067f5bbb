"""What the model looked up before it answered: on the page while it works, and ever after."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from browser.actions import (
    answered,
    ask,
    scrolled_sideways,
    set_answer_options,
    use_address,
)
from browser.conftest import Server
from openai_server import ScriptedServer as ModelServer
from openai_server import Streamed, delta, openai_server, stream
from playwright.sync_api import Locator, Page, expect
from waiting import PATIENCE

ASK = "@codebase How are copies of a book reserved?"
THOUGHT = "First <b>look</b> [bookshop/stock.py:1-5]."
REVIEW = {
    "summary": "Copies are <b>never</b> given back.", "difficulty_score": 3,
    "recommended_level": "Mid", "concepts_required": ["stock"], "mentoring_advice": "Begin there.",
    "files_likely_to_change": [{"path": "bookshop/stock.py", "lines": "1-5", "why": "holds it"}],
}  # fmt: skip
NEXT = threading.Semaphore(0)
"""Released once for each event of an answer that waits."""
LONG_NAME = "bookshop/" + "a_name_that_fits_no_phone_" * 5 + ".py"
SAID = "I look who reserves copies."
ANSWER = (
    "`Stock.reserve_copies` [bookshop/stock.py:1-5] takes them off the shelf, ",
    "as [bookshop/stock.py:9000-9010] says.\n",
)
MORE = "There is more to say. " * 12


def calls(made: list[tuple[str, dict[str, Any]]], said: str = "") -> Streamed:
    """An answer that calls tools, as OpenAI streams them."""
    events = [delta(said)] if said else []
    for number, (name, arguments) in enumerate(made):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        events.append(delta(tool_calls=[call]))
    return Streamed((*events, delta(reason="tool_calls")))


def when_released(*events: bytes) -> Iterator[bytes]:
    for event in events:
        NEXT.acquire(timeout=PATIENCE)
        yield event


def reply(path: str, body: dict[str, Any]) -> Streamed:
    results = [message for message in body["messages"] if message["role"] == "tool"]
    if "ONLY a JSON object" in str(body["messages"][0]):
        if not results:
            return calls([("search_code", {"query": "reserve copies"})])
        return stream([json.dumps(REVIEW)])
    if "aloud" in str(body["messages"][-1]) and not body.get("max_tokens"):  # no draft
        return Streamed(when_released(
            delta(reasoning_content=f"{THOUGHT} "), delta("".join(ANSWER)), delta(f"\n\n{MORE}"),
            delta("At last."), delta(reason="stop"),
        ))  # fmt: skip
    if not body.get("tools"):
        return stream(["none"])
    if not results:
        return calls(
            [
                ("symbol", {"name": "reserve_copies", "want": "callers"}),
                ("open_file", {"path": LONG_NAME}),
            ],
            SAID,
        )
    return Streamed(when_released(*map(delta, ANSWER), delta(reason="stop")))


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with openai_server(reply) as server:
        yield server


def step(page: Page, words: str) -> Locator:
    return page.get_by_label("Looked up").get_by_role("listitem").filter(has_text=words)


def test_steps_are_listed_while_the_answer_waits_open_and_are_there_again_after_a_reload(
    real: Server, model: ModelServer
) -> None:
    page = real.open(width=390, scheme="dark")
    use_address(page, model.base_url)
    set_answer_options(page, "Balanced")
    ask(page, ASK)

    page.locator(".stages").click()
    found = step(page, "reserve_copies is called in")
    failed = step(page, LONG_NAME)
    expect(found).to_be_visible()
    expect(page.locator(".turn.writing")).to_be_visible()
    expect(page.locator(".answer")).to_have_text("")
    expect(page.locator("#announce")).to_contain_text("No indexed file is called")
    NEXT.release(3)
    for reloaded in (False, True):
        if reloaded:
            page.reload()
            page.locator(".stages").click()
        expect(found.locator("pre")).to_be_hidden()
        found.locator("summary").click()
        expect(found.locator("pre")).to_contain_text("in Order.add_book")
        expect(found).to_contain_text(SAID)
        expect(failed).to_have_class("failed")
        failed.locator("summary").click()
        expect(failed.locator("pre")).to_contain_text("list_all(files) lists all files")
        assert not scrolled_sideways(page)
        answered(page)
        expect(page.get_by_label("Looked up").get_by_role("listitem")).to_have_count(2)
        right, wrong = page.locator(".answer .citation").all()
        expect(right).to_have_attribute("data-start", "1")  # as the model wrote it
        expect(wrong).to_have_class("citation unverified")
        expect(wrong).to_have_attribute("title", re.compile(r"^Not verified: the file has"))


def test_reasoning_is_folded_and_citations_are_marked_while_the_answer_is_written(
    real: Server, model: ModelServer
) -> None:
    page = real.open()
    use_address(page, model.base_url)
    NEXT.release()
    ask(page, f"{ASK} Think aloud.")
    page.locator(".stages").click()
    thought = step(page, "Reasoning")
    expect(thought).to_be_visible()
    expect(page.locator(".stages")).to_contain_text("Thinking")
    being_written = page.locator(".turn.writing .answer")
    for events, place in ((2, being_written.locator(".block").first),
                          (2, page.locator(".turn:not(.writing) .answer"))):  # fmt: skip
        NEXT.release(events)
        right, wrong = (place.locator(".citation").nth(number) for number in (0, 1))
        expect(right).to_have_attribute("data-path", "bookshop/stock.py")
        expect(wrong).to_have_attribute("title", re.compile("^Not verified: the file has"))
    for reloaded in (False, True):
        if reloaded:
            page.reload()
            page.locator(".stages").click()
        answered(page)
        expect(thought.locator("pre")).to_be_hidden()
        thought.locator("summary").click()
        expect(thought.locator("pre")).to_have_text(THOUGHT)
        expect(page.locator(".answer")).not_to_contain_text("First")


def test_an_issue_is_reviewed_as_a_turn_with_steps_and_links(
    real: Server, model: ModelServer
) -> None:
    page = real.open()
    use_address(page, model.base_url)
    page.get_by_role("button", name="Review an issue").press("Enter")
    dialog = page.get_by_role("dialog", name="Review an issue")
    expect(dialog).to_contain_text("test-model searches the code")
    dialog.get_by_label("Title").press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("Give a title, a text, or both.")
    file = {"name": "issue.md", "mimeType": "text/markdown", "buffer": b"# Copies\n\nGive back."}
    dialog.locator("#issue-file").set_input_files(file)  # type: ignore[arg-type]
    expect(dialog.get_by_label("Title")).to_have_value("Copies")
    expect(dialog.get_by_label("Text", exact=True)).to_have_value("Give back.")
    dialog.get_by_label("Text", exact=True).press("Control+Enter")
    expect(dialog).to_be_hidden()
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        answered(page)
        expect(page.locator(".question")).to_contain_text("/issue Copies")
        expect(page.locator(".stages")).to_contain_text("1 step")
        page.locator(".stages").click()
        expect(step(page, "searched “reserve copies”")).to_be_visible()
        expect(page.locator(".answer")).to_contain_text("Difficulty 3 of 5 · Mid")
        expect(page.locator(".answer")).to_contain_text("Copies are <b>never</b> given back.")
        expect(page.locator(".answer a.citation").first).to_have_attribute("data-start", "1")
