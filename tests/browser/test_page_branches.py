"""Versions of a question: made by asking again and by editing, and gone back to."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, expecting
from browser.conftest import Server
from browser.fakes import FakeChat
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def chat_of(server: Server) -> FakeChat:
    assert server.chat is not None
    return server.chat


def questions(page: Page) -> Locator:
    return page.locator(".question > div")


def three_questions(page: Page) -> None:
    page.locator("#codebase").click()  # so that the questions stand alone
    for question in ("first", "second", "third"):
        ask(page, question)
        answered(page)


def test_an_earlier_question_is_edited_and_what_followed_it_stays_on_its_own_branch(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    three_questions(page)
    page.get_by_role("button", name="Edit the question").nth(1).click()
    expect(page.locator("#editing")).to_contain_text("beside the old one")
    ask(page, "second, put better")
    answered(page)
    expect(questions(page)).to_have_text(["first", "second, put better"])
    assert chat_of(scripted).asked[-1]["replaces"] == "turn-2"
    switch = page.get_by_role("group", name="Version 2 of 2")
    expect(switch.locator(".branches-count")).to_have_text("2/2")
    ask(page, "what follows the better one")
    answered(page)
    assert chat_of(scripted).asked[-1]["after"] == "turn-4"

    switch.get_by_role("button", name="Earlier version").click()
    expect(questions(page)).to_have_text(["first", "second", "third"])
    page.reload()  # the server knows which branch is in view
    expect(questions(page)).to_have_text(["first", "second", "third"])
    page.get_by_role("group", name="Version 1 of 2").get_by_role(
        "button", name="Later version"
    ).click()
    expect(questions(page)).to_have_text(
        ["first", "second, put better", "what follows the better one"]
    )


def test_the_switch_is_worked_by_keys_and_keeps_the_focus(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "one")
    answered(page)
    for _ in range(2):
        page.get_by_role("button", name="Regenerate").click()
        answered(page)
    later, earlier = (
        page.get_by_role("button", name=f"{which} version") for which in ("Later", "Earlier")
    )
    expect(page.get_by_role("group", name="Version 3 of 3")).to_be_visible()
    expect(later).to_have_attribute("aria-disabled", "true")
    earlier.focus()
    page.keyboard.press("ArrowRight")  # there is none
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#announce")).to_have_text("Version 2 of 3")
    expect(earlier).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#announce")).to_have_text("Version 1 of 3")
    expect(later).to_be_focused()  # nothing is earlier than the first
    assert [turn.id for turn in chat_of(scripted).turns(chat_of(scripted).asked[0]["conversation"])]
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("group", name="Version 2 of 3")).to_be_visible()


def test_a_version_that_fails_leaves_the_way_back(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    three_questions(page)
    page.get_by_role("button", name="Edit the question").first.click()
    ask(page, "fail")
    expect(page.get_by_role("alert")).to_contain_text("It did not work.")
    expect(questions(page)).to_have_text(["fail"])
    expect(page.locator(".branches-count")).to_have_text("2/2")
    page.get_by_role("button", name="Earlier version").click()
    expect(questions(page)).to_have_text(["first", "second", "third"])
    expect(page.locator(".branches:visible")).to_have_count(0)  # nothing of the other was kept


def test_what_follows_a_stopped_answer_follows_it(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(2)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")
    ask(page, "next")
    answered(page)
    assert chat_of(scripted).asked[-1]["after"] == "turn-1"


def test_a_branch_that_cannot_be_shown_is_said_and_nothing_changes(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "one")
    answered(page)
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
    expecting(page, "404 (NOT FOUND)")
    chat = chat_of(scripted)
    chat.delete(chat.asked[0]["conversation"])
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator("#toast")).to_contain_text("There is no such conversation.")
    expect(page.locator(".branches-count")).to_have_text("2/2")


@pytest.mark.parametrize("width", [1280, 360])
def test_the_question_stays_where_it_is_while_versions_change(
    scripted: Server, open_page: OpenPage, width: int
) -> None:
    page = open_page(scripted.address, width=width, height=740)
    ask(page, "one")
    answered(page)
    ask(page, "say:short")
    answered(page)
    page.get_by_role("button", name="Edit the question").last.click()
    ask(page, "x")
    answered(page)
    switch = page.locator(".branches:visible")
    before = switch.bounding_box()
    page.get_by_role("button", name="Earlier version").click()
    expect(questions(page)).to_have_text([re.compile("one"), re.compile("say:short")])
    after = page.locator(".branches:visible").bounding_box()
    assert before is not None and after is not None and abs(before["y"] - after["y"]) < 2
    # Steps of 44 pixels where fingers are.
    if width == 360:
        size = page.get_by_role("button", name="Later version").bounding_box()
        assert size is not None and size["height"] >= 44 and size["width"] >= 44
