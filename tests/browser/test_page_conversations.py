"""Conversations in the sidebar and in the address."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, choose_from_menu, loaded, row
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def titles(page: Page) -> list[str]:
    return page.locator("#conversations .title").all_text_contents()


def two_conversations(page: Page) -> None:
    """One about sessions with two questions, then one about logging."""
    for question in ("How are sessions kept?", "And for how long?"):
        ask(page, question)
        answered(page)
    page.get_by_role("button", name="New conversation").first.click()
    ask(page, "Where is logging set up?")
    answered(page)


def test_a_conversation_is_listed_by_its_first_question_and_survives_a_reload(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    expect(page.locator("#no-conversations")).to_be_visible()
    two_conversations(page)
    expect(page.locator("#no-conversations")).to_be_hidden()
    assert titles(page) == ["Where is logging set up?", "How are sessions kept?"]
    address = page.url
    assert re.search(r"[?&]c=[0-9a-f]{24}", address)
    expect(page).to_have_title("Where is logging set up? · store · CodeQA")

    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    assert page.url == address
    expect(page.locator(".question")).to_contain_text("@codebaseWhere is logging set up?")
    expect(page.locator(".answer .code-head")).to_contain_text("python")
    expect(page.locator(".answer a.citation").first).to_be_visible()
    expect(row(page, "Where is logging set up?").get_by_role("link").first).to_have_attribute(
        "aria-current", "page"
    )
    assert scripted.chat is not None
    ask(page, "and where to?")  # the conversation goes on as the same one
    answered(page)
    assert scripted.chat.asked[-1]["conversation"] == scripted.chat.asked[-2]["conversation"]


def test_a_conversation_opens_by_a_click_and_the_back_button_leads_back(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    two_conversations(page)
    row(page, "How are sessions kept?").get_by_role("link").first.click()
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".question").last).to_contain_text("And for how long?")
    expect(page.locator(".turn").last).to_be_in_viewport()
    outline = page.get_by_role("list", name="Questions of this conversation")
    expect(outline.get_by_role("link")).to_have_text(
        ["How are sessions kept?", "And for how long?"]
    )
    outline.get_by_role("link").first.click()
    expect(page.locator(".question").first).to_be_in_viewport()

    page.go_back()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.locator(".question")).to_contain_text("logging")
    page.go_back()  # to the empty page between the two
    expect(page.locator("#welcome")).to_be_visible()
    page.go_forward()
    expect(page.locator(".question")).to_contain_text("logging")


def test_a_conversation_is_renamed_in_its_place(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    two_conversations(page)
    choose_from_menu(page, "Where is logging set up?", "Rename")
    field = page.get_by_label("Title of the conversation")
    expect(field).to_be_focused()
    field.fill("  Logging\tand levels ")
    page.keyboard.press("Enter")
    expect(row(page, "Logging and levels").get_by_role("link").first).to_be_focused()
    expect(page).to_have_title(re.compile("^Logging and levels"))
    choose_from_menu(page, "How are sessions kept?", "Rename")
    page.get_by_label("Title of the conversation").fill("not this")
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.locator("#conversations .title")).to_have_text(
        ["Logging and levels", "How are sessions kept?"]
    )
    expect(page).to_have_title(re.compile("^Logging and levels"))


def test_a_deleted_conversation_comes_back_by_undo_and_is_gone_without(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    two_conversations(page)
    choose_from_menu(page, "Where is logging set up?", "Delete")
    expect(page.locator("#welcome")).to_be_visible()  # it was the one in view
    assert titles(page) == ["How are sessions kept?"]
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_contain_text("logging")
    assert len(scripted.chat.all()) == 2

    choose_from_menu(page, "How are sessions kept?", "Delete")
    expect(undo).to_be_visible()
    page.reload()  # leaving the page is no way to keep it
    expect(page.locator(".turn")).to_have_count(1)
    assert titles(page) == ["Where is logging set up?"]
    assert [one.title for one in scripted.chat.all()] == ["Where is logging set up?"]


def test_a_deletion_is_carried_out_when_its_time_is_over(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    page.clock.install()
    ask(page, "only one")
    answered(page)
    choose_from_menu(page, "only one", "Delete")
    page.clock.fast_forward(20_000)  # the focus is on the message: it stays
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert scripted.chat.all()
    page.get_by_label(re.compile("Question about")).focus()
    page.clock.fast_forward(1)
    with page.expect_response(lambda response: response.request.method == "DELETE"):
        page.clock.fast_forward(9_000)
    expect(page.get_by_role("button", name="Undo")).to_be_hidden()
    assert not scripted.chat.all()


def test_the_menu_of_a_conversation_is_worked_by_keys(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "one")
    answered(page)
    more = page.get_by_role("button", name="More for “one”")
    more.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    expect(more).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(more).to_be_focused()
    more.click()
    page.mouse.click(700, 200)
    expect(page.get_by_role("menu")).to_have_count(0)


def test_an_answer_goes_on_while_another_conversation_is_in_view(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    ask(page, "slow and long")
    expect(page.locator(".block").nth(2)).to_be_visible()
    page.get_by_role("button", name="New conversation").first.click()
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(row(page, "slow and long").locator(".dot")).to_be_visible()
    ask(page, "in between")
    answered(page)
    row(page, "slow and long").get_by_role("link").first.click()
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))
    seen = page.locator(".block").count()
    expect(page.locator(".block").nth(seen + 2)).to_be_attached()
    assert not scripted.chat.cancelled.is_set()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".stages")).to_contain_text("Stopped")
    expect(row(page, "slow and long").locator(".dot")).to_have_count(0)


def test_what_was_written_is_still_there_after_a_reload_in_the_middle(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(2)).to_be_visible()
    page.reload()
    deadline = time.monotonic() + 10
    while not scripted.chat.all() and time.monotonic() < deadline:
        time.sleep(0.02)  # the server notices that its reader is gone
    page.reload()
    expect(page.locator(".answer")).to_contain_text("Paragraph 1 of a long answer.")
    expect(page.locator(".turn")).to_contain_text("Stopped before it was complete")
    expect(page.get_by_role("button", name="Regenerate")).to_be_visible()


def test_a_conversation_that_is_not_there_is_said(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(f"{scripted.address}/?c=0123456789abcdef01234567")
    page.watched.expected.append("404 (NOT FOUND)")  # type: ignore[attr-defined]
    expect(page.get_by_role("alert")).to_contain_text("no such conversation")
    page.get_by_role("alert").get_by_role("button", name="New conversation").click()
    expect(page.locator("#welcome")).to_be_visible()
    assert "c=" not in page.url


def test_the_list_on_a_phone_is_in_the_drawer_and_closes_it(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, width=390, height=844, has_touch=True, is_mobile=True)
    loaded(page)
    for question in ("first thing", "second thing"):
        page.get_by_role("button", name="New conversation").last.tap()
        page.locator("#question").fill(question)
        page.get_by_role("button", name="Send").tap()
        answered(page)
    expect(page.locator("#topbar-title")).to_have_text("second thing")
    page.get_by_role("button", name="Open the menu").tap()
    more = page.get_by_role("button", name="More for “second thing”")
    expect(more).to_be_in_viewport()
    box = more.bounding_box()
    assert box is not None and box["width"] >= 40 and box["height"] >= 40
    row(page, "first thing").get_by_role("link").first.tap()
    expect(page.locator("#sidebar")).not_to_be_in_viewport()
    expect(page.locator("#topbar-title")).to_have_text("first thing")
