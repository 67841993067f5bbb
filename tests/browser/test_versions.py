"""Versions of a question: made by asking again and by editing, and gone back to."""

from __future__ import annotations

import re
from typing import Any

from browser.actions import (
    PHONE,
    answered,
    ask,
    field_of,
    get_answer,
    scrolled_sideways,
)
from browser.conftest import ScriptedServer
from playwright.sync_api import Locator, Page, expect

from codeqa.llm.providers import ModelChoice

THREE = ("first", "second", "third")


def kept(server: ScriptedServer) -> list[Any]:
    """The turns in view of the one conversation that there is."""
    (conversation,) = server.chat.all()
    return server.chat.turns(conversation.id)


def questions(page: Page) -> Locator:
    return page.locator(".question > div")


def test_regenerating_any_answer_makes_another_version_of_it(scripted: ScriptedServer) -> None:
    page = scripted.open(scripted.keep("say:one", "say:two"))
    page.get_by_role("button", name="Regenerate").first.click()
    expect(page.locator(".turn")).to_have_count(1)  # what came after belongs to the other version
    answered(page)
    assert scripted.chat.asked[-1]["replaces"] == "turn-1"
    expect(page.locator(".branches")).to_contain_text("1 question after version\N{NO-BREAK SPACE}1")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("group", name="Version 3 of 3")).to_be_visible()
    answered(page)
    assert scripted.chat.asked[-1]["replaces"] == "turn-3"
    page.reload()
    expect(page.get_by_role("group", name="Version 3 of 3")).to_be_visible()
    assert [turn.id for turn in kept(scripted)] == ["turn-4"]

    later, earlier = (
        page.get_by_role("button", name=f"{which} version") for which in ("Later", "Earlier")
    )
    expect(later).to_have_attribute("aria-disabled", "true")
    earlier.press("ArrowLeft")
    expect(page.locator("#announce")).to_have_text("Version 2 of 3")
    expect(earlier).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#announce")).to_have_text("Version 1 of 3")
    expect(later).to_be_focused()  # nothing is earlier than the first


def test_another_model_answers_one_question_and_its_version_stands_beside_the_others(
    scripted: ScriptedServer,
) -> None:
    scripted.use_model()
    page = scripted.open(scripted.keep("say:one"))
    other = page.get_by_role("button", name="Answer with model…")
    expect(page.get_by_role("button", name="Regenerate")).to_be_visible()
    expect(other).to_be_hidden()  # only one is known
    scripted.models.used.append(ModelChoice("ollama", "qwen3:8b"))
    page.reload()
    other.click()
    menu = page.get_by_role("menu")
    expect(menu.get_by_role("menuitem")).to_have_text(
        ["gpt-4o · api.openai.com", "qwen3:8b · this machine"]
    )
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    answered(page)
    asked = scripted.chat.asked[-1]
    assert (asked["with_model"], asked["replaces"]) == ("ollama/qwen3:8b", "turn-1")
    expect(page.locator(".stages")).to_contain_text("qwen3:8b")
    expect(page.locator("#model-chip-name")).to_have_text("gpt-4o")

    page.get_by_role("button", name="Compare").click()
    versions = page.locator(".versions > .turn")
    expect(versions.locator(".stages")).to_have_text(
        [re.compile(r"gpt-4o · [\d.]+ m?s$"), re.compile(r"qwen3:8b · [\d.]+ m?s$")]
    )
    expect(page.locator(".turn > .answer:visible")).to_have_count(2)
    for width, beside in ((1000, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 800})
        first, second = (versions.nth(number).bounding_box() for number in (0, 1))
        assert first is not None and second is not None
        assert (first["y"] == second["y"]) is beside and not scrolled_sideways(page)
    page.get_by_role("button", name="Compare").press("Enter")
    expect(versions).to_have_count(0)
    get_answer(page, "two")
    assert scripted.chat.asked[-1]["with_model"] == ""


def test_a_question_is_edited_and_what_followed_it_stays_on_its_own_branch(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open(scripted.keep(*THREE))
    field, edit = field_of(page), page.get_by_role("button", name="Edit the question")
    edit.last.click()
    expect(field).to_have_value("third")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Cancel").click()
    expect(field).to_have_value("")
    get_answer(page, "fourth")  # which replaces nothing
    edit.nth(1).click()
    get_answer(page, "second, put better")
    expect(questions(page)).to_have_text(["first", "second, put better"])
    assert scripted.chat.asked[-1]["replaces"] == "turn-2"
    switch = page.get_by_role("group", name="Version 2 of 2")
    expect(switch.locator(".branches-count")).to_have_text("2/2")
    get_answer(page, "what follows the better one")
    assert scripted.chat.asked[-1]["after"] == "turn-5"
    switch.get_by_role("button", name="Earlier version").click()
    for reloaded in (False, True):  # the server knows which branch is in view
        if reloaded:
            page.reload()
        expect(questions(page)).to_have_text([*THREE, "@codebasefourth"])
    page.get_by_role("button", name="Later version").click()
    after = ["first", "second, put better", "@codebasewhat follows the better one"]
    expect(questions(page)).to_have_text(after)


def test_a_version_that_fails_leaves_the_way_back(scripted: ScriptedServer) -> None:
    page = scripted.open(scripted.keep(*THREE))
    page.get_by_role("button", name="Edit the question").first.click()
    ask(page, "fail")
    expect(page.get_by_role("alert")).to_contain_text("It did not work.")
    expect(questions(page)).to_have_text(["fail"])
    page.get_by_role("button", name="Earlier version").click()
    expect(questions(page)).to_have_text(list(THREE))
    expect(page.locator(".branches:visible")).to_have_count(0)  # nothing of the other was kept


def test_the_question_stays_where_it_is_while_versions_change(scripted: ScriptedServer) -> None:
    phone = scripted.open(scripted.keep("one", "say:short"), **PHONE)
    phone.get_by_role("button", name="Edit the question").last.click()
    get_answer(phone, "@codebase x")
    before = phone.locator(".branches:visible").bounding_box()
    phone.get_by_role("button", name="Earlier version").click()
    expect(questions(phone)).to_have_text([re.compile("one"), re.compile("say:short")])
    after = phone.locator(".branches:visible").bounding_box()
    assert before is not None and after is not None and abs(before["y"] - after["y"]) < 2
