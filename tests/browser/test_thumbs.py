"""Thumbs below an answer: given, taken back, explained, and there again after a reload."""

from __future__ import annotations

import re

from browser.actions import expecting
from browser.conftest import ScriptedServer
from playwright.sync_api import Locator, Page, expect
from waiting import until

HOSTILE = "<img src=x onerror=window.hacked=1>"


def up(page: Page) -> Locator:
    return page.get_by_role("button", name="Good answer")


def down(page: Page) -> Locator:
    return page.get_by_role("button", name="Bad answer")


def reason(page: Page) -> Locator:
    return page.get_by_label(re.compile("What was wrong with this answer"))


def pressed(thumb: Locator, on: bool) -> None:
    expect(thumb).to_have_attribute("aria-pressed", str(on).lower())


def test_a_thumb_is_given_changed_explained_by_keyboard_kept_and_taken_back(
    scripted: ScriptedServer,
) -> None:
    chat = scripted.chat
    page = scripted.open(scripted.keep("say:x"))
    up(page).click()
    pressed(up(page), True)
    expect(page.locator("#announce")).to_have_text("Marked as a good answer")
    until(lambda: chat.rated == {"turn-1": (1, "")})
    expect(reason(page)).to_be_hidden()
    down(page).press("Space")
    pressed(up(page), False)
    expect(reason(page)).to_be_focused()
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("file")
    page.keyboard.press("Enter")
    expect(down(page)).to_be_focused()
    words = f"{HOSTILE}\nfile"
    until(lambda: chat.rated == {"turn-1": (-1, words)})
    page.reload()
    pressed(down(page), True)
    why = page.locator(".reason summary")
    expect(why).to_have_text(words, use_inner_text=True)
    assert page.evaluate("window.hacked") is None
    why.click()
    expect(reason(page)).to_have_value(words)
    reason(page).fill("no")
    page.keyboard.press("Escape")  # leaves it as it was, and closes nothing else
    expect(why).to_contain_text("file")
    why.click()
    expect(reason(page)).to_have_value(words)
    reason(page).fill(" ")
    page.get_by_role("button", name="Save reason").click()
    expect(why).to_have_text("Say why")
    until(lambda: chat.rated == {"turn-1": (-1, "")})
    down(page).click()
    pressed(down(page), False)
    expect(why).to_be_hidden()
    until(lambda: chat.rated == {"turn-1": (0, "")})


def test_a_thumb_that_cannot_be_kept_goes_back_and_the_last_of_quick_presses_is_kept(
    scripted: ScriptedServer,
) -> None:
    chat = scripted.chat
    page = scripted.open(scripted.keep("say:x"))
    expecting(page, "507 (INSUFFICIENT STORAGE)")
    chat.refuse_thumbs = True
    up(page).click()
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("The local state cannot be used. Is the disk full?")
    pressed(up(page), False)
    chat.refuse_thumbs = False
    with page.expect_response(lambda one: '"value":-1' in (one.request.post_data or "")):
        page.evaluate(
            """() => { const [up, down] = document.querySelectorAll(".thumb");
               for (const thumb of [up, up, up, down]) thumb.click(); }"""
        )
    pressed(down(page), True)
    expect(alert).to_have_count(0)
    assert chat.rated == {"turn-1": (-1, "")}
