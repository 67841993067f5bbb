"""Conversations in the sidebar and in the address: opened, found, renamed, deleted, taken along."""

from __future__ import annotations

import json
import re
from pathlib import Path

from browser.actions import (
    ask,
    being_written,
    choose_from_menu,
    copied,
    expecting,
    field_of,
    get_answer,
    new_conversation,
    pass_time,
    row,
)
from browser.conftest import ScriptedServer
from browser.fakes import PART
from playwright.sync_api import Locator, Page, Route, expect
from waiting import until

SESSIONS, LOGGING = "How are sessions kept?", "Where is logging set up?"


def titles(page: Page) -> Locator:
    return page.locator("#conversations .title")


def two_conversations(server: ScriptedServer) -> str:
    """One about sessions with two questions, then another one, whose path is returned."""
    server.keep(SESSIONS, "say:The Täter is the cookie (signed).", conversation="sessions")
    return server.keep(f"@codebase {LOGGING}", conversation="logging")


def link_of(page: Page, title: str) -> Locator:
    return row(page, title).get_by_role("link").first


def test_conversations_are_listed_opened_and_gone_back_to(scripted: ScriptedServer) -> None:
    scripted.keep(SESSIONS, "say:The Täter is the cookie (signed).", conversation="sessions")
    page = scripted.open()
    get_answer(page, LOGGING)
    expect(titles(page)).to_have_text([LOGGING, SESSIONS])
    address = page.url
    assert re.search(r"[?&]c=[0-9a-f]{24}", address)
    assert "repo=" in address, "another tab may open another repository"
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page).to_have_title(f"{LOGGING} · store · CodeQA")
    expect(page.locator(".turn")).to_have_count(1)
    expect(titles(page)).to_have_text([LOGGING, SESSIONS])
    assert page.url == address
    assert not [one for one in asked if "/api/conversations?" in one], "the list is in the page"
    expect(page.locator(".question")).to_contain_text(f"@codebase{LOGGING}")
    expect(page.locator(".answer a.citation").first).to_be_visible()
    expect(link_of(page, LOGGING)).to_have_attribute("aria-current", "page")

    link_of(page, SESSIONS).click()
    expect(page.locator(".question").last).to_contain_text("say:The Täter")
    expect(page.locator(".turn").last).to_be_in_viewport()
    outline = page.get_by_role("list", name="Questions of this conversation").get_by_role("link")
    expect(outline).to_have_text([SESSIONS, re.compile("^say:")])
    outline.first.click()
    expect(page.locator(".question").first).to_be_in_viewport()
    page.go_back()
    expect(page.locator(".turn")).to_have_count(1)
    get_answer(page, "and where to?")  # the conversation goes on as the same one
    assert scripted.chat.asked[-1]["conversation"] == scripted.chat.asked[-2]["conversation"]
    page.go_back()  # to the empty page before it
    expect(page.locator("#welcome")).to_be_visible()


def test_a_pin_keeps_a_conversation_first_over_reloads_and_later_answers(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open(two_conversations(scripted))
    groups = page.locator("#conversations .day")
    expect(titles(page)).to_have_text([LOGGING, SESSIONS])
    more = page.get_by_role("button", name=f"More for “{SESSIONS}”")
    more.press("Enter")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Pin")).to_be_focused()
    page.keyboard.press("Enter")
    expect(titles(page)).to_have_text([SESSIONS, LOGGING])
    expect(groups).to_have_text(["Pinned", "Today"])
    expect(more).to_be_focused()
    get_answer(page, "and now?")
    page.reload()
    expect(titles(page)).to_have_text([SESSIONS, LOGGING])
    choose_from_menu(page, SESSIONS, "Unpin")
    expect(titles(page)).to_have_text([LOGGING, SESSIONS])
    expect(groups).to_have_text(["Today"])
    expecting(page, "404")
    scripted.chat.delete("sessions")  # in another tab
    choose_from_menu(page, SESSIONS, "Pin")
    expect(page.locator("#toast")).to_contain_text("no such conversation")


def test_a_conversation_is_renamed_in_its_place_by_its_menu(scripted: ScriptedServer) -> None:
    page = scripted.open(two_conversations(scripted))
    more = page.get_by_role("button", name=f"More for “{LOGGING}”")
    more.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    # The list is written anew whenever the page is looked at again, but not below an open menu.
    with page.expect_response("**/api/conversations?*"):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(more).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(more).to_be_focused()

    choose_from_menu(page, LOGGING, "Rename")
    field = page.get_by_label("Title of the conversation")
    expect(field).to_be_focused()
    field.fill("  Logging\tand levels ")
    page.keyboard.press("Enter")
    expect(link_of(page, "Logging and levels")).to_be_focused()
    choose_from_menu(page, SESSIONS, "Rename")
    field.fill("not this")
    page.keyboard.press("Escape")
    page.reload()
    expect(titles(page)).to_have_text(["Logging and levels", SESSIONS])
    expect(page).to_have_title(re.compile("^Logging and levels"))


def test_a_deleted_conversation_comes_back_by_undo_and_is_gone_without(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open(two_conversations(scripted))
    choose_from_menu(page, LOGGING, "Delete")
    expect(page.locator("#welcome")).to_be_visible()  # it was the one in view
    expect(titles(page)).to_have_text([SESSIONS])
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    pass_time(page, 20)  # the focus is on the message: it stays
    page.keyboard.press("Enter")
    expect(page.locator(".question")).to_contain_text("logging")
    assert len(scripted.chat.all()) == 2

    choose_from_menu(page, SESSIONS, "Delete")
    expect(undo).to_be_focused()
    assert len(scripted.chat.all()) == 2
    field_of(page).focus()
    pass_time(page, 20)
    expect(undo).to_be_hidden()
    until(lambda: [one.title for one in scripted.chat.all()] == [LOGGING])
    choose_from_menu(page, LOGGING, "Delete")
    expect(undo).to_be_focused()
    page.goto(f"{scripted.address}/static/favicon.svg")  # leaving the page is no way to keep it
    until(lambda: not scripted.chat.all())


def test_a_conversation_deleted_while_it_is_opened_does_not_come_into_view(
    scripted: ScriptedServer,
) -> None:
    two_conversations(scripted)
    page = scripted.open()
    held: list[Route] = []
    page.route("**/api/conversations/logging?*", lambda route: held.append(route))
    with page.expect_request("**/api/conversations/logging?*"):
        link_of(page, LOGGING).click()
    choose_from_menu(page, LOGGING, "Delete")
    expect(titles(page)).to_have_text([SESSIONS])
    with page.expect_response("**/api/conversations/logging?*"):
        held[0].continue_()
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator(".question")).to_have_count(0)


def test_an_answer_goes_on_unread_while_another_conversation_is_in_view(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "slow and long")
    being_written(page)
    new_conversation(page)
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(row(page, "slow and long").locator(".dot")).to_be_visible()
    get_answer(page, "say:in between")
    expect(page.locator("#spoken-answer")).to_have_text("in between")  # and nothing of the other
    link_of(page, "slow and long").click()
    scripted.chat.more.release()
    being_written(page, 2 * PART)
    assert not scripted.chat.cancelled.is_set()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".stages")).to_contain_text("Stopped")
    expect(row(page, "slow and long").locator(".dot")).to_have_count(0)


def test_a_conversation_that_is_not_there_is_said(scripted: ScriptedServer) -> None:
    page = scripted.open("/?c=0123456789abcdef01234567")
    expecting(page, "404 (NOT FOUND)")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("no such conversation")
    alert.get_by_role("button", name="New conversation").click()
    expect(page.locator("#welcome")).to_be_visible()
    assert "c=" not in page.url


def test_conversations_are_found_by_what_was_said_on_any_branch_and_open_there(
    scripted: ScriptedServer,
) -> None:
    two_conversations(scripted)
    for words in ("an unusual wording", "other words"):
        scripted.keep(f"say:{words}", conversation="versions")
    scripted.chat.turns("versions")[1].parent = ""  # so these are versions of one question
    page = scripted.open()
    field = page.get_by_label("Search the conversations")
    found = page.get_by_role("list", name="Conversations found").get_by_role("link")
    field.fill("unusual")
    found.click()
    expect(page.locator(".answer")).to_have_text("an unusual wording")
    expect(page.get_by_role("group", name="Version 1 of 2")).to_be_visible()

    field.fill("täter")
    expect(found).to_have_count(1)
    expect(found).to_contain_text(SESSIONS)
    expect(found.locator(".snippet mark")).to_have_text(["Täter"])
    expect(page.locator("#announce")).to_have_text("1 conversation found")
    field.press("ArrowDown")
    expect(found).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".question").last).to_be_in_viewport()

    field.fill("(signed).")  # letters that mean something elsewhere
    expect(found.locator(".snippet mark")).to_have_text(["(signed)."])
    field.fill("unheard of")
    expect(page.locator("#nothing-found")).to_be_visible()
    field.press("Escape")
    expect(field).to_have_value("")
    expect(titles(page)).to_have_count(3)


def test_a_conversation_is_exported_as_a_file_and_as_a_link(scripted: ScriptedServer) -> None:
    path = two_conversations(scripted)
    page = scripted.open(path)
    for name, ending in (("Markdown", "md"), ("JSON", "json")):
        with page.expect_download() as waited:
            choose_from_menu(page, LOGGING, f"Export as {name}")
        assert waited.value.suggested_filename == f"Where-is-logging-set-up.{ending}"
        text = Path(waited.value.path()).read_text(encoding="utf-8")
        assert "SecureCookieSessionInterface" in text
    assert json.loads(text)["turns"][0]["question"] == LOGGING
    choose_from_menu(page, SESSIONS, "Copy link")
    expect(page.locator("#toast")).to_contain_text("Link copied")
    assert copied(page).startswith(f"{scripted.address}/?") and "c=sessions" in copied(page)


def test_a_repeated_title_says_how_it_went_on_and_days_head_the_list(
    scripted: ScriptedServer,
) -> None:
    for second in ("and who calls it?", "and who tests it?"):
        scripted.keep("what is a session?", second, conversation=second[8:13])
    rows = scripted.open().locator("#conversations > li")
    expect(rows.first).to_have_text("Today")
    expect(rows.filter(has_text="what is a session?and who calls it?")).to_have_count(1)
    expect(rows.filter(has_text="what is a session?and who tests it?")).to_have_count(1)
