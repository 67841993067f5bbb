"""The code that an answer is made from is chosen by hand, and the question asked again with it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, scrolled_sideways, use_model
from browser.conftest import Server
from browser.test_page_loop import ASK
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
SENT, DROPPED = "src/store/sessions.py:25-33", "src/store/long.py:1-2000"
HIT = "src/store/long.py:1200-1210"


def test_pieces_are_left_out_and_put_in_and_the_question_asked_again_with_these(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    use_model(page)
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Context").click()
    bar = page.get_by_role("group", name="Chosen code")
    expect(bar).to_be_hidden()
    out = page.get_by_role("button", name=f"Leave {SENT} out")
    out.click()
    expect(out).to_have_attribute("aria-pressed", "true")
    expect(bar).to_contain_text("1 piece left out")
    keep = page.get_by_role("button", name=f"Keep {SENT} in any case")
    keep.click()  # one piece is either
    expect(out).to_have_attribute("aria-pressed", "false")
    expect(bar).to_contain_text("1 piece kept or put in")
    out.click()
    page.get_by_role("button", name=f"Put {DROPPED} in").click()
    page.get_by_text("All hits, best first").click()
    page.get_by_role("button", name=f"Put {HIT} in").click()
    expect(page.locator("#announce")).to_have_text("2 pieces kept or put in, 1 piece left out")
    bar.get_by_role("button", name="Ask again with these").click()
    expect(page.locator("#panel")).to_be_hidden()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert asked["replaces"] == "turn-1" and asked["question"] == "@codebase x"
    assert asked["pin"] == [DROPPED, HIT] and asked["exclude"] == [SENT]
    expect(page.locator(".turn-notice")).to_have_text(
        "Asked with 2 pieces of code put in, 1 piece left out"
    )
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    page.get_by_role("button", name="Regenerate").click()  # the same once more
    answered(page)
    assert scripted.chat.asked[-1]["exclude"] == [SENT]


def test_choosing_is_taken_back_at_once(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Context").click()
    page.get_by_role("button", name=f"Leave {SENT} out").focus()
    page.keyboard.press("Space")
    bar = page.get_by_role("group", name="Chosen code")
    bar.get_by_role("button", name="Reset").click()
    expect(bar).to_be_hidden()
    expect(page.get_by_role("button", name=f"Leave {SENT} out")).to_have_attribute(
        "aria-pressed", "false"
    )


def test_on_a_phone_the_choice_stays_in_view(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, width=360, height=740, has_touch=True, is_mobile=True)
    page.locator("#question").fill("x")
    page.get_by_role("button", name="Send").tap()
    answered(page)
    page.get_by_role("button", name="Context").tap()
    out = page.get_by_role("button", name=f"Leave {SENT} out")
    size = out.bounding_box()
    assert size is not None and size["width"] >= 44 and size["height"] >= 44
    out.tap()
    page.get_by_text("All hits, best first").tap()
    expect(page.get_by_role("button", name="Ask again with these")).to_be_in_viewport()
    assert not scrolled_sideways(page)


def test_with_the_real_engine_the_context_is_packed_anew(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    ask(page, ASK)
    answered(page)
    page.get_by_role("button", name="Context").click()
    first = page.locator(".chunks .where").first.text_content() or ""
    page.get_by_role("button", name=f"Leave {first} out").click()
    page.get_by_role("button", name="Ask again with these").click()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    page.get_by_role("button", name="Context").click()
    block = page.get_by_label("The context block", exact=True)
    expect(block).to_contain_text(re.compile("CHUNK 1"))
    path, _, lines = first.rpartition(":")
    expect(block).not_to_contain_text(f"Path: {path}\nLines: {lines}\n")
