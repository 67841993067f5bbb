"""What is stored is shown and deleted for good, after a second word."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, expecting
from browser.conftest import Server
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def open_stored(page: Page) -> Locator:
    page.get_by_role("button", name="What is stored").click()
    dialog = page.get_by_role("dialog", name="What is stored")
    expect(dialog).to_contain_text("Who receives it")
    return dialog


def delete(dialog: Locator, scope: str) -> None:
    dialog.get_by_role("button", name=scope).click()
    sure = dialog.get_by_role("group", name=f"Delete: {scope}")
    expect(sure).to_contain_text("There is no way back.")
    sure.get_by_role("button", name="Delete for good").click()


def test_what_is_stored_is_counted_and_everything_is_deleted_after_a_second_word(
    real: Server, open_page: OpenPage
) -> None:
    page = open_page(real.address)
    ask(page, "How are copies of a book reserved?")
    answered(page)
    page.get_by_role("button", name="New conversation").first.click()
    ask(page, "What is an order?")
    answered(page)
    dialog = open_stored(page)
    expect(dialog).to_contain_text(re.compile(r"Conversations \d+, about \d+ repositor(y|ies)"))
    expect(dialog).to_contain_text("Nobody: nothing leaves this machine.")
    before = page.locator("#conversations li.conversation").count()

    dialog.get_by_role("button", name="This conversation").click()
    sure = dialog.get_by_role("group", name="Delete: This conversation")
    expect(sure).to_contain_text("“What is an order?”, 1 question in view.")
    sure.get_by_role("button", name="Keep it").click()
    expect(sure).to_have_count(0)
    delete(dialog, "This conversation")
    expect(dialog.locator(".privacy-result")).to_contain_text("Deleted: 1 conversation")
    expect(dialog.locator(".privacy-result")).to_contain_text("nothing of it is left.")
    expect(page.locator("#conversations li.conversation")).to_have_count(before - 1)
    expect(page.locator("#welcome")).to_be_visible()

    delete(dialog, "Everything")
    expect(dialog.locator(".privacy-result")).to_contain_text("Deleted:")
    expect(dialog).to_contain_text("Conversations none")
    page.keyboard.press("Escape")
    expect(page.locator("#no-conversations")).to_be_visible()
    page.reload()
    expect(page.locator("#no-conversations")).to_be_visible()


def test_what_was_told_is_listed_and_forgotten(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    page.locator("#codebase").click()
    ask(page, "My name is Ada.")
    answered(page)
    expect(page.locator(".learnt")).to_contain_text("name: Ada")
    dialog = open_stored(page)
    expect(dialog).to_contain_text("name Ada")
    delete(dialog, "What it knows of you")
    expect(dialog.locator(".privacy-result")).to_contain_text("1 thing known of you")
    expect(dialog).to_contain_text("Nothing. Tell it")
    expect(page.locator(".turn")).to_have_count(1)  # the conversation stays


def test_what_cannot_be_read_is_said_in_the_dialog(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    expecting(page, "ERR_INTERNET_DISCONNECTED")
    page.context.set_offline(True)
    page.get_by_role("button", name="What is stored").click()
    dialog = page.get_by_role("dialog", name="What is stored")
    expect(dialog.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    page.context.set_offline(False)
    dialog.get_by_role("button", name="Try again").click()
    expect(dialog).to_contain_text("Conversations none")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
