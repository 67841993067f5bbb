"""Shortcuts: each does what the list says, the list tells of them, and they can be switched off."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, loaded
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
CLIPBOARD = ["clipboard-read", "clipboard-write"]


def test_the_keys_that_move_about(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    loaded(page)
    field = page.locator("#question")
    page.keyboard.press("Control+k")
    expect(page.locator("#conversation-search")).to_be_focused()
    page.keyboard.press("Shift+Escape")
    expect(field).to_be_focused()
    ask(page, "one")
    answered(page)
    page.keyboard.press("ArrowUp")  # in the empty field
    expect(field).to_have_value("one")
    expect(page.locator("#editing")).to_be_visible()
    page.keyboard.press("ArrowUp")  # now it moves in the text
    expect(field).to_have_value("one")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#welcome")).to_be_visible()
    page.get_by_role("button", name="Send").focus()
    page.locator("#conversations a").first.focus()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    expect(field).to_have_value("")


def test_the_sidebar_goes_and_the_state_of_the_index_stays_in_view(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    loaded(page)
    sidebar, state = page.locator("#sidebar"), page.locator("#topbar-state")
    expect(page.locator("#index-state")).to_contain_text("Ready")
    page.keyboard.press("Control+Shift+S")
    expect(sidebar).to_be_hidden()
    expect(state).to_have_text("Ready")
    expect(state).to_be_visible()
    page.reload()
    expect(sidebar).to_be_hidden()
    loaded(page)
    page.keyboard.press("Control+k")  # what it searches is there again
    expect(sidebar).to_be_visible()
    expect(page.locator("#conversation-search")).to_be_focused()
    page.get_by_role("button", name="Hide the sidebar").click()
    expect(sidebar).to_be_hidden()
    page.get_by_role("button", name="Open the menu").click()
    expect(sidebar).to_be_visible()


def test_the_last_answer_and_the_last_code_are_copied(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address, permissions=CLIPBOARD)
    loaded(page)
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#toast")).to_have_text("No answer to copy yet")
    ask(page, "say:Only words.\n\n```python\nreturn {}\n```\n")
    answered(page)
    page.keyboard.press("Control+Shift+C")
    expect(page.locator("#toast")).to_have_text("Answer copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("Only words.")
    page.keyboard.press("Control+Shift+Semicolon")
    expect(page.locator("#toast")).to_have_text("Code copied")
    assert page.evaluate("navigator.clipboard.readText()") == "return {}"


def test_escape_with_shift_goes_to_the_field_and_stops_nothing(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(1)).to_be_visible()
    page.get_by_role("button", name="Edit the question").focus()
    page.keyboard.press("Shift+Escape")
    expect(page.locator("#question")).to_be_focused()
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")


def test_the_list_opens_and_closes_and_switches_them_off(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    loaded(page)
    page.keyboard.press("Control+/")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    for does in ("Search the conversations", "Copy the last answer", "Stop the answer"):
        expect(dialog).to_contain_text(does)
    page.keyboard.press("Control+Shift+O")  # nothing happens behind a dialog
    page.keyboard.press("Control+/")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    dialog.get_by_role("switch", name=re.compile("^Shortcuts")).click()
    expect(page.locator("#announce")).to_have_text("Shortcuts are off")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.reload()
    loaded(page)
    page.locator("#question").focus()
    page.keyboard.press("Control+k")
    expect(page.locator("#conversation-search")).not_to_be_focused()
    ask(page, "slow")  # Enter and Escape always work
    expect(page.locator(".block").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")
