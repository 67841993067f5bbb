"""Conversations are found by what was said in them, exported, and linked to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from browser.actions import answered, ask, choose_from_menu, expecting
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]


def two_conversations(page: Page) -> None:
    for question in ("How are sessions kept?", "say:The Täter is the cookie (signed)."):
        ask(page, question)
        answered(page)
    page.get_by_role("button", name="New conversation").first.click()
    ask(page, "say:Logging goes to stderr.")
    answered(page)


def test_conversations_are_found_by_words_of_an_answer_and_open_there(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    two_conversations(page)
    field = page.get_by_label("Search the conversations")
    field.fill("täter")
    found = page.get_by_role("list", name="Conversations found").get_by_role("link")
    expect(found).to_have_count(1)
    expect(found).to_contain_text("How are sessions kept?")
    expect(found.locator(".snippet mark")).to_have_text(["Täter"])
    expect(page.locator("#announce")).to_have_text("1 conversation found")
    expect(page.locator("#conversations")).to_be_hidden()
    page.keyboard.press("ArrowDown")
    expect(found).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".question").last).to_be_in_viewport()
    field.fill("unheard of")
    expect(page.locator("#nothing-found")).to_be_visible()
    field.press("Escape")
    expect(field).to_have_value("")
    expect(page.locator("#conversations .title")).to_have_count(2)


def test_what_was_said_on_another_branch_is_found_and_shown(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "say:an unusual wording")
    answered(page)
    page.get_by_role("button", name="Edit the question").click()
    ask(page, "say:other words")
    answered(page)
    page.get_by_label("Search the conversations").fill("unusual")
    page.get_by_role("list", name="Conversations found").get_by_role("link").click()
    expect(page.locator(".answer")).to_have_text("an unusual wording")
    expect(page.get_by_role("group", name="Version 1 of 2")).to_be_visible()


def test_letters_that_mean_something_elsewhere_are_only_letters(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    two_conversations(page)
    field = page.get_by_label("Search the conversations")
    field.fill("(signed).")
    found = page.get_by_role("list", name="Conversations found")
    expect(found.locator(".snippet mark")).to_have_text(["(signed)."])
    field.fill("signed)[")
    expect(page.locator("#nothing-found")).to_be_visible()


def test_a_search_that_fails_says_so(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    two_conversations(page)
    expecting(page, "ERR_INTERNET_DISCONNECTED")
    page.context.set_offline(True)
    page.get_by_label("Search the conversations").fill("x")
    expect(page.locator("#connection")).to_contain_text("does not answer")
    page.context.set_offline(False)
    expect(page.locator("#connection")).to_contain_text("is back")


@pytest.mark.parametrize(("name", "ending"), [("Markdown", "md"), ("JSON", "json")])
def test_a_conversation_is_exported_as_a_file(
    scripted: Server, open_page: OpenPage, name: str, ending: str
) -> None:
    page = open_page(scripted.address)
    ask(page, "How are sessions kept?")
    answered(page)
    with page.expect_download() as waited:
        choose_from_menu(page, "How are sessions kept?", f"Export as {name}")
    assert waited.value.suggested_filename == f"How-are-sessions-kept.{ending}"
    text = Path(waited.value.path()).read_text(encoding="utf-8")
    assert "SecureCookieSessionInterface" in text
    if ending == "json":
        assert json.loads(text)["turns"][0]["question"] == "How are sessions kept?"


def test_the_link_of_a_conversation_opens_it(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, permissions=["clipboard-read", "clipboard-write"])
    ask(page, "How are sessions kept?")
    answered(page)
    choose_from_menu(page, "How are sessions kept?", "Copy link")
    expect(page.locator("#toast")).to_contain_text("Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{scripted.address}/?") and re.search(r"[?&]c=[0-9a-f]{24}", link)
    page.goto(link)
    expect(page.locator(".question")).to_contain_text("How are sessions kept?")
