"""The field for questions: what is sent, the chip beside it, modes after a slash, what is kept."""

from __future__ import annotations

import re

from browser.actions import (
    answered,
    ask,
    chip_of,
    field_of,
    get_answer,
    new_conversation,
    ready,
    use_model,
)
from browser.conftest import ScriptedServer
from playwright.sync_api import Page, expect


def expect_chip(page: Page, pressed: bool) -> None:
    expect(chip_of(page)).to_have_attribute("aria-pressed", str(pressed).lower())


def test_enter_sends_shift_enter_begins_a_line_and_what_is_not_sent_outlives_a_reload(
    page: Page, scripted: ScriptedServer
) -> None:
    ready(page)
    field = field_of(page)
    field.press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    field.press_sequentially("two")
    page.reload()
    expect(field).to_have_value("one\ntwo")
    page.goto(f"{scripted.address}/repositories")
    page.go_back()
    expect(field).to_have_value("one\ntwo")
    ready(page)
    field.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase one\ntwo"
    page.reload()
    ready(page)
    expect(field).to_have_value("")
    field.fill("asked by a double click")
    page.locator("#send").dblclick()  # the second click does not stop it
    answered(page)
    expect(page.locator(".stages").last).to_contain_text("pieces")


def test_the_chip_is_on_at_first_and_a_tag_that_is_typed_is_as_good(
    page: Page, scripted: ScriptedServer
) -> None:
    field, alert = field_of(page), page.get_by_role("alert")
    for typed, words in (  # only a mode or a tag is not sent
        ("/review ", "What should be reviewed? Write it after /review."),
        ("@codebase /Plan ", "What should be planned? Write it after /plan."),
        ("@codebase", "What should be searched for? Write it after @codebase."),
    ):
        ask(page, typed)
        expect(alert).to_have_text(words)
        expect(field).to_have_accessible_description(words)
        expect(field).to_have_value(typed)
    assert not scripted.chat.asked
    field.press_sequentially(" sessions")
    expect(alert).to_have_count(0)
    expect_chip(page, True)
    chip_of(page).click()
    get_answer(page, "just this")
    asked = scripted.chat.asked[-1]
    assert asked["question"] == "just this"
    get_answer(page, "@Codebase sessions")
    assert scripted.chat.asked[-1]["question"] == "@codebase sessions"
    expect(page.locator(".question > div").last).to_have_text("@codebasesessions")
    new_conversation(page)
    expect_chip(page, True)
    get_answer(page, "fresh")
    assert scripted.chat.asked[-1]["conversation"] != asked["conversation"]
    expect_chip(page, True)  # without a model every question is searched for
    expect(field).to_have_attribute("placeholder", "Ask a follow-up")


def test_after_code_was_found_follow_ups_go_on_from_it_until_a_new_conversation(
    page: Page, scripted: ScriptedServer
) -> None:
    use_model(page)
    get_answer(page, "nothing of the kind")
    expect(page.locator(".stages")).to_contain_text("Found no code")
    expect_chip(page, True)  # there is nothing to go on from
    get_answer(page, "How are sessions kept?")
    expect_chip(page, False)
    expect(chip_of(page)).to_have_text("@codebase searched if needed")
    expect(chip_of(page)).to_have_attribute("title", re.compile("use the code found before"))
    field = field_of(page)
    for width, citation in ((360, False), (1440, True)):
        page.set_viewport_size({"width": width, "height": 800})
        if citation:
            page.locator(".answer .citation").last.click()
        expect(page.locator("#composer-more")).to_be_visible()
        expect(field).to_have_attribute("placeholder", "Ask a follow-up")
        assert page.locator("#composer").evaluate("node => node.offsetHeight") <= 56, "one row"
    page.keyboard.press("Escape")
    get_answer(page, "and for how long?")
    assert scripted.chat.asked[-1]["question"] == "and for how long?"
    expect(page.locator(".stages").last).to_contain_text("Used the code found before")

    new_conversation(page)
    expect_chip(page, True)
    page.go_back()
    expect(page.locator(".turn")).to_have_count(3)
    expect_chip(page, False)
    chip_of(page).click()
    page.get_by_role("button", name="Edit the question").last.click()
    expect_chip(page, False)  # as it was asked
    page.keyboard.press("Escape")
    expect_chip(page, True)  # as it stood before
    page.reload()
    expect(page.locator(".turn")).to_have_count(3)
    expect_chip(page, False)


def test_a_slash_offers_the_modes_and_the_keyboard_completes_them(
    page: Page, scripted: ScriptedServer
) -> None:
    field, menu = field_of(page), page.get_by_role("listbox", name="Modes")
    options = menu.get_by_role("option")
    modes = ("explain", "locate", "issue", "review", "plan", "change", "files", "all")
    field.press_sequentially("/")
    expect(options).to_have_text([re.compile(f"^/{mode}, mode, .+") for mode in modes])
    words = "Only with a language model"
    expect(menu.get_by_text(words, exact=True)).to_have_count(1)
    needy = options.filter(has_text=f"mode, {words.lower()}")
    expect(needy).to_have_text([re.compile(f"^/{mode},") for mode in modes[3:]])
    expect(field).to_have_attribute("aria-activedescendant", "suggestions-0")
    expect(page.locator("#announce")).to_contain_text("Tab completes")
    page.keyboard.press("ArrowUp")
    expect(menu.get_by_role("option", selected=True)).to_contain_text("/all")
    field.press_sequentially("r")
    expect(options).to_have_text([re.compile("^/review")])
    expect(menu.get_by_role("option", selected=True)).to_contain_text("/review")
    page.keyboard.press("Enter")  # takes it, and sends nothing
    expect(field).to_have_value("/review ")
    expect(menu).to_be_hidden()
    assert not scripted.chat.asked
    field.press_sequentially("the sessions")
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase /review the sessions"
    field.press_sequentially("/")
    options.nth(1).click()
    expect(field).to_have_value("/locate ")
    expect(field).to_be_focused()
    field.fill("what is a/b")
    expect(menu).to_be_hidden()
    use_model(page)
    field.fill("/")
    expect(options).to_have_count(8)
    expect(needy).to_have_count(0)
