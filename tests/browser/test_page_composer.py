"""The field for questions: modes after a slash, what is missing, and room for the model's name."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from browser.actions import answered, ask, choose_provider, loaded, scrolled_sideways
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
LONG_NAME = "llama-3.3-70b-versatile"


def test_a_slash_offers_the_modes_and_the_keyboard_completes_them(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    field = page.get_by_label(re.compile("Question about"))
    menu = page.get_by_role("listbox", name="Modes")
    options = menu.get_by_role("option")
    field.press_sequentially("/")
    expect(options).to_have_text(
        [re.compile(f"^/{mode} .+") for mode in ("explain", "locate", "review", "plan", "change")]
    )
    expect(field).to_have_attribute("aria-activedescendant", "mode-explain")
    expect(page.locator("#announce")).to_contain_text("Tab completes")
    page.keyboard.press("ArrowUp")
    expect(field).to_have_attribute("aria-activedescendant", "mode-change")
    expect(menu.get_by_role("option", selected=True)).to_contain_text("/change")
    field.press_sequentially("r")
    expect(options).to_have_text([re.compile("^/review")])
    page.keyboard.press("Enter")  # takes it, and sends nothing
    expect(field).to_have_value("/review ")
    expect(menu).to_be_hidden()
    assert not scripted.chat.asked
    field.press_sequentially("the sessions")
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase /review the sessions"

    field.press_sequentially("/pl")
    page.keyboard.press("Tab")
    expect(field).to_have_value("/plan ")
    expect(field).to_be_focused()
    field.fill("")
    field.press_sequentially("/")
    options.nth(1).click()
    expect(field).to_have_value("/locate ")
    expect(field).to_be_focused()


def test_escape_closes_the_modes_and_enter_then_sends_as_always(
    scripted: Server, open_page: OpenPage
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    field = page.get_by_label(re.compile("Question about"))
    menu = page.get_by_role("listbox", name="Modes")
    ask(page, "slow")
    expect(page.locator(".block").nth(2)).to_be_visible()
    field.press_sequentially("/p")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(field).to_have_value("/p")
    expect(page.locator(".turn")).to_have_class(re.compile("writing"))  # it goes on
    field.press_sequentially("l")
    expect(menu).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator(".stages")).to_contain_text("Stopped")
    field.fill("what is a/b")
    expect(menu).to_be_hidden()
    field.fill("/nonsense")
    expect(menu).to_be_hidden()
    page.keyboard.press("Enter")
    answered(page)
    assert scripted.chat.asked[-1]["question"] == "@codebase /nonsense"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/review ", "What should be reviewed? Write it after /review."),
        ("@codebase /Plan ", "What should be planned? Write it after /plan."),
        ("@codebase", "What should be searched for? Write it after @codebase."),
    ],
)
def test_a_question_that_is_only_a_mode_is_not_sent(
    scripted: Server, open_page: OpenPage, typed: str, said: str
) -> None:
    assert scripted.chat is not None
    page = open_page(scripted.address)
    field = page.get_by_label(re.compile("Question about"))
    ask(page, typed)
    expect(page.get_by_role("alert")).to_have_text(said)
    expect(field).to_have_accessible_description(said)
    expect(field).to_have_value(typed)
    field.press_sequentially(" sessions")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.keyboard.press("Enter")
    answered(page)
    assert len(scripted.chat.asked) == 1


@pytest.mark.parametrize("width", [390, 600, 1280])
def test_the_models_name_has_room_before_everything_else(
    scripted: Server, open_page: OpenPage, width: int
) -> None:
    page = open_page(scripted.address, width=width, height=800)
    loaded(page)
    dialog = choose_provider(page, "OpenAI")
    dialog.get_by_label("Model", exact=True).fill(LONG_NAME)
    dialog.get_by_role("button", name="Use this model").click()
    expect(dialog).to_be_hidden()
    ask(page, "x")
    answered(page)
    expect(page.locator("#model-chip-name")).to_have_text(LONG_NAME)
    expect(page.locator("#estimate")).to_be_visible()
    whole = "e => e.scrollWidth <= e.clientWidth"
    assert page.locator("#model-chip-name").evaluate(whole)
    assert not scrolled_sideways(page)
    send = page.get_by_role("button", name="Send").bounding_box()
    form = page.locator("#composer").bounding_box()
    assert send is not None and form is not None
    assert send["x"] + send["width"] > form["x"] + form["width"] - 20  # at the end of its row
    words = page.locator("#estimate .words").first
    assert words.is_visible() == (width == 1280)


def test_a_double_click_on_send_asks_and_does_not_stop(real: Server, open_page: OpenPage) -> None:
    page = open_page(real.address)
    page.get_by_role("textbox", name="Question").fill("How are copies of a book reserved?")
    page.locator("#send").dblclick()
    expect(page.locator(".turn.writing")).to_have_count(0)
    expect(page.locator(".stages")).to_contain_text("Answered")
