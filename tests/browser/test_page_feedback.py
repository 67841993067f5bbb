"""Thumbs below an answer: given, taken back, explained, and there again after a reload."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, choose_from_menu, expecting, scrolled_sideways, until
from browser.conftest import Server
from browser.fakes import FakeChat
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
HOSTILE = "<img src=x onerror=window.hacked=1>\nand more"


def chat_of(server: Server) -> FakeChat:
    assert server.chat is not None
    return server.chat


def up(page: Page) -> Locator:
    return page.get_by_role("button", name="Good answer")


def down(page: Page) -> Locator:
    return page.get_by_role("button", name="Bad answer")


def reason(page: Page) -> Locator:
    return page.get_by_label(re.compile("What was wrong with this answer"))


def test_a_thumb_is_given_changed_and_taken_back(scripted: Server, open_page: OpenPage) -> None:
    page, chat = open_page(scripted.address), chat_of(scripted)
    ask(page, "x")
    answered(page)
    expect(up(page)).to_have_attribute("aria-pressed", "false")
    up(page).click()
    expect(up(page)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#announce")).to_have_text("Marked as a good answer")
    assert until(lambda: chat.rated == {"turn-1": (1, "")})
    expect(reason(page)).to_have_count(0)
    down(page).click()
    expect(up(page)).to_have_attribute("aria-pressed", "false")
    expect(down(page)).to_have_attribute("aria-pressed", "true")
    assert until(lambda: chat.rated == {"turn-1": (-1, "")})
    down(page).click()
    expect(down(page)).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".reason")).to_be_empty()
    assert until(lambda: chat.rated == {"turn-1": (0, "")})


def test_the_reason_is_given_by_keyboard_and_changed_later(
    scripted: Server, open_page: OpenPage
) -> None:
    page, chat = open_page(scripted.address), chat_of(scripted)
    ask(page, "x")
    answered(page)
    up(page).focus()
    page.keyboard.press("Tab")
    expect(down(page)).to_be_focused()
    page.keyboard.press("Space")
    expect(reason(page)).to_be_focused()
    page.keyboard.type("The wrong")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("file")
    page.keyboard.press("Enter")
    expect(page.locator(".reason-text")).to_have_text("The wrong\nfile", use_inner_text=True)
    expect(down(page)).to_be_focused()
    assert until(lambda: chat.rated == {"turn-1": (-1, "The wrong\nfile")})
    page.get_by_role("button", name="Change").click()
    expect(reason(page)).to_have_value("The wrong\nfile")
    reason(page).fill("no")
    page.keyboard.press("Escape")  # leaves it as it was, and closes nothing else
    expect(page.locator(".reason-text")).to_contain_text("The wrong")
    page.get_by_role("button", name="Change").click()
    reason(page).fill(" ")
    page.get_by_role("button", name="Save reason").click()
    expect(page.get_by_role("button", name="Say why")).to_be_visible()
    assert until(lambda: chat.rated == {"turn-1": (-1, "")})


def test_thumbs_are_there_again_when_the_conversation_is_opened(
    scripted: Server, open_page: OpenPage
) -> None:
    page, chat = open_page(scripted.address), chat_of(scripted)
    ask(page, "one")
    answered(page)
    up(page).click()
    ask(page, "two")
    answered(page)
    down(page).last.click()
    reason(page).fill(HOSTILE)
    page.get_by_role("button", name="Save reason").click()
    assert until(lambda: chat.rated == {"turn-1": (1, ""), "turn-2": (-1, HOSTILE)})
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    expect(up(page).first).to_have_attribute("aria-pressed", "true")
    expect(down(page).first).to_have_attribute("aria-pressed", "false")
    expect(down(page).last).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".reason-text")).to_have_text(HOSTILE, use_inner_text=True)
    assert page.evaluate("window.hacked") is None
    assert page.locator(".reason img").count() == 0


def test_a_thumb_that_cannot_be_kept_goes_back_and_says_why(
    scripted: Server, open_page: OpenPage
) -> None:
    page, chat = open_page(scripted.address), chat_of(scripted)
    expecting(page, "507 (INSUFFICIENT STORAGE)")
    ask(page, "x")
    answered(page)
    up(page).click()
    assert until(lambda: chat.rated == {"turn-1": (1, "")})
    chat.refuse_thumbs = True
    up(page).click()
    expect(page.get_by_role("alert")).to_have_text(
        "The local state cannot be used. Is the disk full?"
    )
    expect(up(page)).to_have_attribute("aria-pressed", "true")
    chat.refuse_thumbs = False
    up(page).click()
    expect(page.get_by_role("alert")).to_have_count(0)
    assert until(lambda: chat.rated == {"turn-1": (0, "")})


def test_the_last_of_many_quick_presses_is_kept(scripted: Server, open_page: OpenPage) -> None:
    page, chat = open_page(scripted.address), chat_of(scripted)
    ask(page, "x")
    answered(page)
    with page.expect_response(lambda one: '"value":-1' in (one.request.post_data or "")):
        page.evaluate(
            """() => { const [up, down] = document.querySelectorAll(".thumb");
               for (const thumb of [up, up, up, down]) thumb.click(); }"""
        )
    expect(down(page)).to_have_attribute("aria-pressed", "true")
    assert chat.rated == {"turn-1": (-1, "")}


def test_only_what_was_answered_has_thumbs_and_a_stopped_answer_keeps_its_own(
    scripted: Server, open_page: OpenPage
) -> None:
    page, chat = open_page(scripted.address), chat_of(scripted)
    ask(page, "fail")
    expect(page.get_by_role("alert")).to_contain_text("It did not work.")
    expect(page.locator(".thumbs")).to_have_count(0)
    ask(page, "slow")
    expect(page.locator(".block").nth(2)).to_be_visible()
    expect(page.locator(".thumbs")).to_have_count(0)
    page.get_by_role("button", name="Stop").click()
    down(page).click()  # its id is found first
    assert until(lambda: len(chat.rated) == 1)
    (kept,) = [turn for turn in chat.turns(chat.all()[0].id) if turn.question == "slow"]
    assert chat.rated == {kept.id: (-1, "")}


def test_thumbs_work_on_a_phone(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, width=360, height=740, has_touch=True, is_mobile=True)
    page.locator("#question").fill("x")
    page.get_by_role("button", name="Send").tap()
    answered(page)
    for thumb in (up(page), down(page)):
        box = thumb.bounding_box()
        assert box is not None and box["width"] >= 44 and box["height"] >= 44
    down(page).tap()
    expect(reason(page)).to_be_in_viewport()
    expect(reason(page)).not_to_be_focused()  # no keyboard over what is optional
    assert not scrolled_sideways(page)
    reason(page).fill("word" * 400)
    page.get_by_role("button", name="Save reason").tap()
    expect(page.locator(".reason-text")).to_be_visible()
    assert not scrolled_sideways(page)


def test_real_thumbs_survive_a_reload_and_go_with_their_conversation(
    real: Server, open_page: OpenPage
) -> None:
    page = open_page(real.address)
    question = "How are copies of a book reserved, thumbed?"
    ask(page, question)
    answered(page)
    down(page).click()
    reason(page).fill("It misses the shelf")
    with page.expect_response(re.compile("/feedback")) as kept:
        page.get_by_role("button", name="Save reason").click()
    assert kept.value.ok
    page.reload()
    expect(down(page)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".reason-text")).to_have_text("It misses the shelf")
    choose_from_menu(page, question, "Delete")
    page.goto(real.address)  # which leaves no way back
    again = {"value": 1, "reason": ""}
    assert until(lambda: page.request.post(kept.value.url, data=again).status == 404)
