"""The page on a phone: nothing is too wide or too small, sheets and drawers give way."""

from __future__ import annotations

import re

from browser.actions import (
    PHONE,
    answered,
    get_answer,
    open_context,
    ready,
    row,
    scrolled_sideways,
    show_switches,
)
from browser.conftest import ScriptedServer
from browser.test_answers import CITED, CODE
from browser.views import EVERYTHING, SMALL
from playwright.sync_api import Locator, Page, expect

from codeqa.llm.providers import ModelChoice

SENT = "src/store/sessions.py:25-33"


def within(locator: Locator) -> bool:
    box = locator.bounding_box()
    assert box is not None
    return box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["y"] + box["height"] <= 740


def expect_cited(page: Page) -> None:
    expect(page.locator(".source .cited").first).to_be_in_viewport()


def test_nothing_is_wider_than_a_narrow_screen(scripted: ScriptedServer) -> None:
    scripted.use_model()
    path = scripted.keep(f"@codebase say:See {CITED}.\n\n{CODE}\n")
    phone = scripted.open(path, **PHONE)
    show_switches(phone)
    phone.locator("#effort").tap()
    form = phone.get_by_role("dialog", name="How to answer")
    assert within(form) and not scrolled_sideways(phone)
    above = "document.getElementById('answer-options').getBoundingClientRect().bottom"
    field = "document.getElementById('composer').getBoundingClientRect().top"
    assert phone.evaluate(f"{above} <= {field}"), "the question stays in view"
    phone.touchscreen.tap(180, 40)  # elsewhere
    expect(form).to_be_hidden()
    phone.get_by_role("button", name="Bad answer").tap()
    reason = phone.get_by_label(re.compile("What was wrong with this answer"))
    expect(reason).to_be_in_viewport()
    expect(reason).not_to_be_focused()  # no keyboard over what is optional
    reason.fill("word" * 400)
    phone.get_by_role("button", name="Save reason").tap()
    expect(phone.locator(".reason summary")).to_be_visible()
    open_context(phone)
    for fold in phone.locator(".search-trace summary, .legend summary").all():
        fold.tap()
    expect(phone.locator(".legend dl")).to_be_visible()
    assert phone.locator("#panel-body").evaluate("e => e.scrollWidth <= e.clientWidth")
    assert not scrolled_sideways(phone)
    phone.get_by_role("button", name="Close the panel").tap()
    phone.locator("a.citation").first.tap()
    expect_cited(phone)
    assert within(phone.locator("#panel")) and not scrolled_sideways(phone)
    phone.goto(f"{scripted.address}/repositories")
    expect(phone.get_by_role("heading", name="Choose a repository")).to_be_visible()
    expect(phone.locator("#no-repositories")).not_to_have_text("Looking…")
    assert not scrolled_sideways(phone)


def test_the_panel_is_a_sheet_the_sidebar_a_drawer_and_the_list_closes_it(
    scripted: ScriptedServer,
) -> None:
    phone = scripted.open(scripted.keep("first thing"), **PHONE)
    ready(phone)
    phone.get_by_role("button", name="New conversation").last.tap()
    phone.locator("#question").fill("second thing")
    phone.get_by_role("button", name="Send").tap()
    answered(phone)
    sidebar, title = phone.locator("#sidebar"), phone.locator("#topbar-title")
    expect(title).to_have_text("second thing")
    expect(sidebar).not_to_be_in_viewport()
    phone.get_by_role("button", name="Open the menu").tap()
    expect(sidebar).to_be_in_viewport()
    phone.keyboard.press("Escape")
    expect(sidebar).not_to_be_in_viewport()
    phone.get_by_role("button", name="Open the menu").tap()
    row(phone, "first thing").get_by_role("link").first.tap()
    expect(sidebar).not_to_be_in_viewport()
    expect(title).to_have_text("first thing")
    phone.goto(f"{scripted.address}/?file=src/store/sessions.py&lines=22-27")
    expect_cited(phone)
    sheet = phone.locator("#panel").bounding_box()
    assert sheet is not None and sheet["width"] == 360 and 100 < sheet["y"] < 200


def test_what_leads_to_the_end_stands_where_nothing_is_covered(scripted: ScriptedServer) -> None:
    path = scripted.keep(f"@codebase say:{CODE * 9}", "say:short")
    for width, place in ((360, "#composer"), (601, "#composer"), (768, ".dock"), (1024, ".dock")):
        page = scripted.open(path, **{**PHONE, "width": width})
        # A page that opens goes to the end of its conversation, perhaps after this.
        page.wait_for_function("""() => {
          document.querySelector("#scroller").scrollTo(0, 300);
          return !document.querySelector("#jump").hidden;
        }""")
        apart = """([place]) => {
          const [jump, thread, around] = ["#jump", ".turns", place].map((one) =>
            document.querySelector(one).getBoundingClientRect());
          return jump.left >= thread.right - 24 ||
            (jump.top >= around.top && jump.right <= around.right);
        }"""
        assert page.evaluate(apart, [place]), width


def test_the_name_of_a_model_is_shown_whole_at_every_width(scripted: ScriptedServer) -> None:
    name = "hf.co/unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF:Q4_K_M"
    scripted.models.choose(ModelChoice("openai", name))
    page = scripted.open(own=True)
    whole = """(node) => {
      const [text, chip] = [node, node.closest(".chip")].map((one) => one.getBoundingClientRect());
      return node.scrollWidth <= node.clientWidth && node.scrollHeight <= node.clientHeight &&
        text.right <= chip.right && text.bottom <= chip.bottom;
    }"""
    for width in (1440, 1024, 768, 700, 600, 360):
        page.set_viewport_size({"width": width, "height": 740})
        show_switches(page)
        shown = page.locator("#model-chip-name")
        expect(shown).to_have_text(name)
        assert shown.evaluate(whole) and not scrolled_sideways(page), width


def test_on_a_tablet_the_panel_lies_over_the_answer_and_back_closes_it(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open(scripted.keep("x"), width=768, height=1024)
    ready(page)
    answer, panel = page.locator(".answer"), page.locator("#panel")
    before = answer.bounding_box()
    page.locator("a.citation").first.click()
    expect_cited(page)
    assert answer.bounding_box() == before and not scrolled_sideways(page)
    page.go_back()
    expect(panel).to_be_hidden()
    page.locator("a.citation").first.click()
    expect_cited(page)
    page.mouse.click(20, 500)  # beside it
    expect(panel).to_be_hidden()


def test_back_closes_the_sheet_and_stays_in_the_conversation(phone: Page) -> None:
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
    phone.get_by_role("button", name="Context").tap()
    expect(phone.locator(".chunks")).to_be_visible()
    phone.reload()
    expect(phone.locator(".chunks")).to_be_visible()
    phone.go_back()
    expect(panel).to_be_hidden()
    expect(phone.locator(".turn")).to_have_count(1)
    phone.go_back()  # now it leads out of the conversation
    expect(phone.locator("#welcome")).to_be_visible()


def test_fingers_find_targets_of_44_pixels(scripted: ScriptedServer) -> None:
    phone = scripted.open(scripted.keep(f"@codebase {EVERYTHING}"), **PHONE)
    phone.get_by_role("button", name="Regenerate").click()
    expect(phone.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    assert phone.evaluate(SMALL, [".main", 43.5]) == []
    open_context(phone)
    assert phone.evaluate(SMALL, ["#panel", 43.5]) == []
    phone.get_by_role("button", name=f"Leave {SENT} out").tap()
    expect(phone.locator("#panel").get_by_text("Regenerate with your choice")).to_be_in_viewport()
    phone.get_by_role("button", name="Close the panel").tap()
    phone.get_by_role("button", name="Open the menu").tap()
    assert phone.evaluate(SMALL, ["#sidebar", 43.5]) == []
    phone.get_by_role("button", name="Review an issue").tap()
    assert phone.evaluate(SMALL, ["#issue", 43.5]) == []
    phone.get_by_role("button", name="Close", exact=True).tap()


def test_the_dialog_of_models_is_a_list_and_then_a_form(phone: Page) -> None:
    show_switches(phone)
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
