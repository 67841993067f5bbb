"""Versions of a question: made by asking again and by editing, and gone back to."""

from __future__ import annotations

import re
from typing import Any

from browser.actions import (
    answered,
    ask,
    being_written,
    chip_of,
    expecting,
    field_of,
    get_answer,
    open_context,
    stop,
    use_model,
)
from browser.conftest import OpenPage, ScriptedServer
from playwright.sync_api import Locator, Page, expect


def kept(server: ScriptedServer) -> list[Any]:
    """The turns in view of the one conversation that there is."""
    (conversation,) = server.chat.all()
    return server.chat.turns(conversation.id)


def questions(page: Page) -> Locator:
    return page.locator(".question > div")


def three_questions(page: Page) -> None:
    chip_of(page).click()  # so that the questions stand alone
    for question in ("first", "second", "third"):
        get_answer(page, question)


def test_regenerating_any_answer_makes_another_version_of_it(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "one")
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
    assert scripted.chat.asked[-1]["replaces"] == "turn-1"
    expect(page.locator(".turn")).to_have_count(1)
    assert [turn.id for turn in kept(scripted)] == ["turn-2"]
    get_answer(page, "two")
    assert scripted.chat.asked[-1]["after"] == "turn-2"
    page.locator(".turn").first.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".turn")).to_have_count(1)  # what came after belongs to the other version
    answered(page)
    assert scripted.chat.asked[-1]["replaces"] == "turn-2"
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)
    assert [turn.id for turn in kept(scripted)] == ["turn-4"]
    expect(page.locator(".branches-count")).to_have_text("3/3")

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
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("group", name="Version 2 of 3")).to_be_visible()


def test_a_stopped_answer_is_replaced_and_followed_as_well(
    page: Page, scripted: ScriptedServer
) -> None:
    ask(page, "slow")
    being_written(page)
    stop(page)
    page.get_by_role("button", name="Regenerate").click()
    being_written(page)
    assert scripted.chat.asked[-1]["replaces"] == "turn-1"
    stop(page)
    open_context(page)  # its id is found, too
    page.keyboard.press("Escape")
    get_answer(page, "next")
    assert scripted.chat.asked[-1]["after"] == "turn-2"


def test_the_last_question_is_edited_in_the_field_and_becomes_another_version(
    page: Page, scripted: ScriptedServer
) -> None:
    get_answer(page, "How are sesions kept?")
    page.locator(".question").hover()
    page.get_by_role("button", name="Edit the question").click()
    field = field_of(page)
    expect(field).to_have_value("How are sesions kept?")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    page.get_by_role("button", name="Edit the question").click()
    expect(page.locator("#editing")).to_contain_text("beside the old one")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#editing")).to_be_hidden()
    get_answer(page, "another one")  # which replaces nothing
    page.get_by_role("button", name="Edit the question").last.click()
    get_answer(page, "How are sessions kept?")
    expect(page.locator(".question")).to_have_count(2)
    asked = [turn.question for turn in kept(scripted)]
    assert asked == ["How are sesions kept?", "How are sessions kept?"]


def test_an_earlier_question_is_edited_and_what_followed_it_stays_on_its_own_branch(
    page: Page, scripted: ScriptedServer
) -> None:
    three_questions(page)
    page.get_by_role("button", name="Edit the question").nth(1).click()
    get_answer(page, "second, put better")
    expect(questions(page)).to_have_text(["first", "second, put better"])
    assert scripted.chat.asked[-1]["replaces"] == "turn-2"
    switch = page.get_by_role("group", name="Version 2 of 2")
    expect(switch.locator(".branches-count")).to_have_text("2/2")
    get_answer(page, "what follows the better one")
    assert scripted.chat.asked[-1]["after"] == "turn-4"
    switch.get_by_role("button", name="Earlier version").click()
    for reloaded in (False, True):  # the server knows which branch is in view
        if reloaded:
            page.reload()
        expect(questions(page)).to_have_text(["first", "second", "third"])
    page.get_by_role("button", name="Later version").click()
    after = ["first", "second, put better", "what follows the better one"]
    expect(questions(page)).to_have_text(after)


def test_a_version_that_fails_leaves_the_way_back_and_one_that_is_gone_is_said(
    page: Page, scripted: ScriptedServer
) -> None:
    three_questions(page)
    page.get_by_role("button", name="Edit the question").first.click()
    ask(page, "fail")
    expect(page.get_by_role("alert")).to_contain_text("It did not work.")
    expect(questions(page)).to_have_text(["fail"])
    expect(page.locator(".branches-count")).to_have_text("2/2")
    page.get_by_role("button", name="Earlier version").click()
    expect(questions(page)).to_have_text(["first", "second", "third"])
    expect(page.locator(".branches:visible")).to_have_count(0)  # nothing of the other was kept

    page.get_by_role("button", name="Regenerate").last.click()
    answered(page)
    expecting(page, "404 (NOT FOUND)")
    scripted.chat.delete(scripted.chat.asked[0]["conversation"])
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator("#toast")).to_contain_text("There is no such conversation.")
    expect(page.locator(".branches:visible .branches-count")).to_have_text("2/2")


def test_an_untagged_question_offers_to_search_the_code(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    get_answer(page, "one")
    expect(page.get_by_role("button", name="Search the code")).to_have_count(0)
    get_answer(page, "two")
    expect(page.locator(".stages").last).to_contain_text("Went on from what was found before")
    page.get_by_role("button", name="Search the code").click()
    expect(page.locator(".question").last).to_contain_text("@codebasetwo")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase two"
    assert scripted.chat.asked[-1]["replaces"] == "turn-2"


def test_the_question_stays_where_it_is_while_versions_change(
    scripted: ScriptedServer, open_page: OpenPage
) -> None:
    page = open_page(scripted, width=360, height=740)
    get_answer(page, "one")
    get_answer(page, "say:short")
    page.get_by_role("button", name="Edit the question").last.click()
    get_answer(page, "x")
    before = page.locator(".branches:visible").bounding_box()
    page.get_by_role("button", name="Earlier version").click()
    expect(questions(page)).to_have_text([re.compile("one"), re.compile("say:short")])
    after = page.locator(".branches:visible").bounding_box()
    assert before is not None and after is not None and abs(before["y"] - after["y"]) < 2
    size = page.get_by_role("button", name="Later version").bounding_box()
    assert size is not None and size["height"] >= 44 and size["width"] >= 44
