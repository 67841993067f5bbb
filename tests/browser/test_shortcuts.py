"""Shortcuts: each does what the list says, the list tells of them, and they can be switched off."""

from __future__ import annotations

import re

from browser.actions import copied, get_answer, ready
from browser.conftest import ScriptedServer
from playwright.sync_api import Page, expect


def test_the_keys_that_move_about_and_copy(scripted: ScriptedServer) -> None:
    page = scripted.open()
    ready(page)
    field, toast = page.locator("#question"), page.locator("#toast")
    page.keyboard.press("Control+k")
    expect(page.locator("#conversation-search")).to_be_focused()
    page.keyboard.press("Shift+Escape")
    expect(field).to_be_focused()
    page.keyboard.press("Control+Shift+C")
    expect(toast).to_have_text("No answer to copy yet")
    answer = "say:Only words.\n\n```python\nreturn {}\n```"
    get_answer(page, answer)
    page.keyboard.press("Control+Shift+C")
    expect(toast).to_have_text("Answer copied")
    assert copied(page).startswith("Only words.")
    page.keyboard.press("Control+Shift+Semicolon")
    expect(toast).to_have_text("Code copied")
    assert copied(page) == "return {}"
    page.keyboard.press("ArrowUp")  # in the empty field
    expect(field).to_have_value(answer)
    expect(page.locator("#editing")).to_be_visible()
    page.keyboard.press("ArrowUp")  # now it moves in the text
    expect(field).to_have_value(answer)
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#welcome")).to_be_visible()
    page.locator("#conversations a").first.focus()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    expect(field).to_have_value("")

    sidebar = page.locator("#sidebar")
    page.keyboard.press("Control+Shift+S")
    expect(sidebar).to_be_hidden()
    page.reload()
    ready(page)
    expect(sidebar).to_be_hidden()
    expect(page.locator("#topbar-state")).to_have_text("Ready")
    page.keyboard.press("Control+k")  # what it searches is there again
    expect(sidebar).to_be_visible()
    expect(page.locator("#conversation-search")).to_be_focused()


def test_the_list_opens_and_closes_and_switches_them_off(page: Page) -> None:
    ready(page)
    page.keyboard.press("Control+/")
    dialog = page.get_by_role("dialog", name="Settings")
    expect(dialog).to_contain_text("Search the conversations")
    page.keyboard.press("Control+/")
    expect(dialog).to_be_hidden()
    page.keyboard.press("?")
    expect(page.locator("#question")).to_have_value("?")
    page.locator("#question").blur()
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    dialog.get_by_role("switch", name=re.compile("^Shortcuts")).click()
    expect(page.locator("#announce")).to_have_text("Shortcuts are off")
    page.reload()
    ready(page)
    page.locator("#question").focus()
    page.keyboard.press("Control+k")
    expect(page.locator("#conversation-search")).not_to_be_focused()
