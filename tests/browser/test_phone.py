"""The page on a phone: nothing is too wide or too small, sheets and drawers give way."""

from __future__ import annotations

import re

import pytest
from browser.actions import (
    PHONE,
    answered,
    get_answer,
    loaded,
    open_context,
    row,
    scrolled_sideways,
    use_model,
)
from browser.conftest import OpenPage, ScriptedServer
from browser.test_answers import CITED, CODE
from playwright.sync_api import Locator, Page, expect

EVERYTHING = "hello rewritten:x suggest:And then?|And why?"
SENT = "src/store/sessions.py:25-33"


def within(locator: Locator, width: int = 360, height: int = 740) -> bool:
    box = locator.bounding_box()
    assert box is not None
    return box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] + box["height"] <= height


def expect_cited(page: Page) -> None:
    expect(page.locator(".source .cited").first).to_be_in_viewport()


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_wider_than_a_narrow_screen(
    scripted: ScriptedServer, open_page: OpenPage, width: int
) -> None:
    page = open_page(scripted, width=width, height=740, has_touch=True)
    loaded(page)
    assert not scrolled_sideways(page)
    get_answer(page, f"say:See {CITED}.\n\n{CODE}\n")
    button = page.locator(".open-file")
    expect(button).to_be_visible()
    box = button.bounding_box()
    assert box is not None and (width > 760 or box["height"] >= 43.5)
    open_context(page)
    assert not scrolled_sideways(page)
    page.locator(".chunks button").first.tap()
    expect_cited(page)
    page.get_by_role("button", name="Back to the context").tap()
    expect(page.locator(".chunks")).to_be_visible()
    page.get_by_role("button", name="Close the panel").tap()
    page.locator("a.citation").first.tap()
    expect_cited(page)
    assert not scrolled_sideways(page)
    assert within(page.locator("#panel"), width)
    page.get_by_role("button", name="Close the panel").tap()
    expect(page.locator("#panel")).to_be_hidden()
    page.goto(f"{scripted.address}/repositories")
    expect(page.get_by_role("heading", name="Choose a repository")).to_be_visible()
    expect(page.locator("#no-repositories")).not_to_have_text("Looking…")
    assert not scrolled_sideways(page)


def test_line_numbers_stay_in_one_piece_and_stages_wrap_without_a_dash_that_leads_nowhere(
    phone: Page,
) -> None:
    use_model(phone)
    cited = "the place [src/store/sessions.py:25-33] and `src/store/sessions.py:25-33` again, "
    get_answer(phone, "say:" + cited * 12)
    numbers = phone.locator(".answer .numbers")
    expect(numbers).to_have_count(24)
    assert phone.evaluate(
        "[...document.querySelectorAll('.numbers')].every(e => e.getClientRects().length === 1)"
    )
    assert numbers.first.text_content() == ":25-33"
    rows = """() => { const list = document.querySelector(".stages").getBoundingClientRect();
      return [...document.querySelectorAll(".stages li")].map(li => {
        const dash = getComputedStyle(li, "::before"), at = li.getBoundingClientRect();
        return [at.top, at.left + parseFloat(dash.left) >= list.left]; }); }"""
    drawn = phone.evaluate(rows)
    assert len({top for top, _ in drawn}) > 1, "they fit into one row: a longer name is needed"
    tops: set[float] = set()
    for top, dashed in drawn:
        assert dashed == (top in tops)  # between two stages of one row, and nowhere else
        tops.add(top)


def test_the_panel_is_a_sheet_the_sidebar_a_drawer_and_the_list_closes_it(
    phone: Page, scripted: ScriptedServer
) -> None:
    loaded(phone)
    for question in ("first thing", "second thing"):
        phone.get_by_role("button", name="New conversation").last.tap()
        phone.locator("#question").fill(question)
        phone.get_by_role("button", name="Send").tap()
        answered(phone)
    sidebar, title = phone.locator("#sidebar"), phone.locator("#topbar-title")
    expect(title).to_have_text("second thing")
    expect(sidebar).not_to_be_in_viewport()
    phone.get_by_role("button", name="Open the menu").tap()
    expect(sidebar).to_be_in_viewport()
    expect(phone.locator("#index-state")).to_be_visible()
    phone.keyboard.press("Escape")
    expect(sidebar).not_to_be_in_viewport()
    phone.get_by_role("button", name="Open the menu").tap()
    more = phone.get_by_role("button", name="More for “second thing”")
    expect(more).to_be_in_viewport()
    box = more.bounding_box()
    assert box is not None and box["width"] >= 40 and box["height"] >= 40
    row(phone, "first thing").get_by_role("link").first.tap()
    expect(sidebar).not_to_be_in_viewport()
    expect(title).to_have_text("first thing")
    phone.goto(f"{scripted.address}/?file=src/store/long.py&lines=700-710")
    expect_cited(phone)
    sheet = phone.locator("#panel").bounding_box()
    assert sheet is not None and sheet["width"] == 360 and 100 < sheet["y"] < 200


def test_back_closes_the_sheet_and_stays_in_the_conversation(phone: Page) -> None:
    loaded(phone)
    get_answer(phone, "x")
    conversation = phone.url
    panel, citation = phone.locator("#panel"), phone.locator("a.citation").first
    citation.tap()
    expect_cited(phone)
    phone.go_back()
    expect(panel).to_be_hidden()
    expect(phone.locator(".turn")).to_have_count(1)
    assert phone.url == conversation

    phone.get_by_role("button", name="Context").tap()
    phone.locator(".chunks button").first.tap()
    expect_cited(phone)
    phone.get_by_role("button", name="Close the panel").tap()
    citation.tap()  # at once: the step back may still be on its way
    expect_cited(phone)
    phone.get_by_role("button", name="Close the panel").tap()
    expect(panel).to_be_hidden()
    expect(phone).to_have_url(conversation)
    phone.go_forward()  # to the sheet that was closed
    expect_cited(phone)
    phone.go_back()
    expect(panel).to_be_hidden()
    phone.get_by_role("button", name="Context").tap()
    expect(phone.locator(".chunks")).to_be_visible()
    phone.reload()
    expect(phone.locator(".chunks")).to_be_visible()
    phone.go_back()
    expect(panel).to_be_hidden()
    expect(phone.locator(".turn")).to_have_count(1)
    phone.go_back()  # now it leads out of the conversation
    expect(phone.locator("#welcome")).to_be_visible()


def test_fingers_find_targets_of_44_pixels(scripted: ScriptedServer, open_page: OpenPage) -> None:
    page = open_page(scripted, **PHONE)
    loaded(page)
    get_answer(page, EVERYTHING)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    small = """root => [...document.querySelectorAll(root)].flatMap(part =>
      [...part.querySelectorAll("button, input, summary, textarea")])
      .filter(e => e.checkVisibility() && !e.closest(".options, .themes, label, .visually-hidden"))
      .map(e => [e, e.getBoundingClientRect()])
      .filter(([e, at]) => at.width && (at.height < 43.5 || at.width < 32))
      .map(([e, at]) => `${e.id || e.className || e.textContent} ${at.width}x${at.height}`)"""
    assert page.evaluate(small, ".main") == []
    page.get_by_role("button", name="Context").tap()
    expect(page.locator(".chunks")).to_be_visible()
    assert page.evaluate(small, "#panel") == []
    page.get_by_role("button", name=f"Leave {SENT} out").tap()
    page.get_by_text("All hits, best first").tap()
    expect(page.get_by_role("button", name="Ask again with these")).to_be_in_viewport()
    assert not scrolled_sideways(page)
    page.get_by_role("button", name="Close the panel").tap()
    page.get_by_role("button", name="Open the menu").tap()
    assert page.evaluate(small, "#sidebar") == []
    page.get_by_role("button", name="Review an issue").tap()
    assert page.evaluate(small, "#issue") == []
    page.get_by_role("button", name="Close", exact=True).tap()


def test_thumbs_are_given_without_a_keyboard_over_what_is_optional(phone: Page) -> None:
    get_answer(phone, "x")
    up, down = (phone.get_by_role("button", name=f"{kind} answer") for kind in ("Good", "Bad"))
    for thumb in (up, down):
        box = thumb.bounding_box()
        assert box is not None and box["width"] >= 44 and box["height"] >= 44
    down.tap()
    reason = phone.get_by_label(re.compile("What was wrong with this answer"))
    expect(reason).to_be_in_viewport()
    expect(reason).not_to_be_focused()
    assert not scrolled_sideways(phone)
    reason.fill("word" * 400)
    phone.get_by_role("button", name="Save reason").tap()
    expect(phone.locator(".reason-text")).to_be_visible()
    assert not scrolled_sideways(phone)


def test_the_answer_options_and_the_whole_context_fit(phone: Page) -> None:
    use_model(phone)
    phone.locator("#effort").tap()
    form = phone.get_by_role("dialog", name="How to answer")
    assert within(form)
    for option in form.locator("label").all():
        if option.is_visible():
            size = option.bounding_box()
            assert size is not None and size["height"] >= 44
    assert not scrolled_sideways(phone)
    form.locator("label").filter(has_text=re.compile("^One")).tap()
    phone.touchscreen.tap(180, 40)  # elsewhere
    expect(form).to_be_hidden()
    get_answer(phone, "x")
    phone.get_by_role("button", name="Context").tap()
    expect(phone.locator(".legend summary")).to_be_visible()
    for fold in phone.locator(".search-trace summary, .legend summary").all():
        fold.tap()
    expect(phone.locator(".legend dl")).to_be_visible()
    assert phone.locator("#panel-body").evaluate("e => e.scrollWidth <= e.clientWidth")
    assert not scrolled_sideways(phone)


def test_the_dialog_of_models_is_a_list_and_then_a_form(phone: Page) -> None:
    phone.locator("#model-chip").tap()
    dialog = phone.get_by_role("dialog", name="Language model")
    use = dialog.get_by_role("button", name="Use", exact=False)
    expect(use).to_be_hidden()
    openai = dialog.locator("label.provider").filter(has_text="OPENAI_API_KEY")
    openai.tap()
    expect(use).to_be_in_viewport()
    expect(dialog.locator(".providers")).to_be_hidden()
    dialog.get_by_role("button", name="Back to the providers").tap()
    openai.tap()  # the same one once more
    use.tap()
    expect(phone.locator("#model-chip-name")).to_have_text("gpt-4o")
    assert not scrolled_sideways(phone)
