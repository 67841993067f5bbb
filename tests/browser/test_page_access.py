"""The page for those who do not see it, or not well: axe-core's rules, what is read, the focus."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from browser.actions import answered, ask, loaded, use_model
from browser.conftest import Server
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = ("serious", "critical")
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
EVERYTHING = "hello rewritten:x suggest:And then?|And why?"


def violations(page: Page) -> list[str]:
    """Serious and critical faults of what is in view: rule, place and why, one line each."""
    page.evaluate(AXE)
    result: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {' '.join(node['target'])}: {node['failureSummary'].splitlines()[1:2]}"
        for rule in result["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        pytest.param(DESKTOP, "light", id="desktop-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(DESKTOP, "dark", id="desktop-dark", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_serious_in_any_view(
    scripted: Server, open_page: OpenPage, size: dict[str, int], scheme: str
) -> None:
    page = open_page(scripted.address, **size, color_scheme=scheme)
    phone = size is PHONE
    loaded(page)
    faults = {"first page": violations(page)}
    use_model(page)
    page.locator("#codebase").click()
    ask(page, EVERYTHING)
    answered(page)
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
    page.get_by_role("button", name="Bad answer").click()
    page.get_by_role("button", name="Details").click()
    ask(page, "@codebase modelfail")
    expect(page.get_by_role("alert")).to_be_visible()
    faults["conversation"] = violations(page)
    page.locator("#effort").click()
    faults["how to answer"] = violations(page)
    page.keyboard.press("Escape")
    ask(page, "@codebase unverified")
    answered(page)
    page.get_by_role("button", name="Context").last.click()
    page.locator(".chunks .exclude").first.click()
    for fold in page.locator(".context summary").all():
        fold.click()
    faults["context"] = violations(page)
    page.locator(".chunks .open").first.click()
    expect(page.locator(".source .cited").first).to_be_visible()
    faults["file"] = violations(page)
    page.get_by_role("button", name="Close the panel").click()
    if phone:
        page.get_by_role("button", name="Open the menu").click()
    page.get_by_label("Search the conversations").fill("cookie")
    expect(page.locator("#conversations-found a").first).to_be_visible()
    faults["found"] = violations(page)
    page.get_by_role("button", name="What is stored").click()
    page.get_by_role("button", name="Everything").click()
    faults["stored"] = violations(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    faults["keyboard"] = violations(page)
    page.goto(f"{scripted.address}/repositories")
    expect(page.locator("#no-repositories")).not_to_have_text("Looking…")
    faults["repositories"] = violations(page)
    assert {view: found for view, found in faults.items() if found} == {}


def test_these_rules_would_find_a_fault(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    loaded(page)
    page.evaluate("document.getElementById('conversation-search').removeAttribute('aria-label')")
    page.evaluate("document.getElementById('conversation-search').removeAttribute('placeholder')")
    page.evaluate("document.querySelector('.version').style.color = '#ccc'")
    assert {fault.split(":")[0] for fault in violations(page)} == {"label", "color-contrast"}


def test_an_answer_is_read_in_whole_blocks_and_never_twice(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    loaded(page)
    page.evaluate(
        """() => { window.heard = [];
        const region = document.getElementById("spoken-answer");
        new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(
          node => window.heard.push(node.textContent)))).observe(region, { childList: true }); }"""
    )
    ask(page, "x")
    answered(page)
    heard = page.evaluate("window.heard")
    assert heard[0].startswith("This answer is put together from the code itself: signatures,")
    assert "Code in python, 4 lines." in heard and "A table of 1 row." in heard
    assert len(heard) == len(set(heard)) == page.locator(".answer .block").count()
    region = page.locator("#spoken-answer")
    expect(region).to_have_attribute("aria-live", "polite")
    assert page.locator(".answer").first.get_attribute("aria-live") is None  # not once more there
    ask(page, "say:Another one.")
    answered(page)
    expect(region).to_have_text("Another one.")


def test_what_is_written_out_of_view_is_not_read(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "slow")
    expect(page.locator(".block").nth(1)).to_be_visible()
    page.get_by_role("button", name="New conversation").first.click()
    page.evaluate("document.getElementById('spoken-answer').replaceChildren()")
    page.wait_for_timeout(300)
    assert page.locator("#spoken-answer").text_content() == ""
    page.locator("#conversations a").first.click()
    page.get_by_role("button", name="Stop").click()


def test_the_focus_goes_through_a_turn_in_reading_order(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
    page.get_by_role("button", name="Edit the question").focus()
    page.keyboard.press("Shift+Tab")  # from here on the keyboard moves it
    page.keyboard.press("Tab")
    order = []
    for _ in range(9):
        named = "(e => e.getAttribute('aria-label') || e.textContent.trim())"
        order.append(page.evaluate(f"{named}(document.activeElement)"))
        assert page.evaluate(
            "document.activeElement.matches(':focus-visible')"
            " && getComputedStyle(document.activeElement).outlineStyle !== 'none'"
        )
        page.keyboard.press("Tab")
    assert order[:4] == ["Edit the question", "Earlier version", "Later version", "Details"]
    assert order[4].startswith("src/store/sessions.py")
    assert "Copy" in order and "Code, python" in order


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fingers_find_targets_of_44_pixels(
    scripted: Server, open_page: OpenPage, scheme: str
) -> None:
    page = open_page(scripted.address, **PHONE, has_touch=True, is_mobile=True, color_scheme=scheme)
    loaded(page)
    ask(page, EVERYTHING)
    answered(page)
    page.get_by_role("button", name="Regenerate").click()
    answered(page)
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
    page.get_by_role("button", name="Close the panel").tap()
    page.get_by_role("button", name="Open the menu").tap()
    assert page.evaluate(small, "#sidebar") == []


def test_nothing_moves_for_who_wants_it_calm(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address, reduced_motion="reduce")
    ask(page, "silent")
    expect(page.locator(".stages .dot")).to_have_css("animation-name", "none")
    page.keyboard.press("Escape")
    running = "document.getAnimations().filter(one => one.playState === 'running').length"
    assert page.evaluate(running) == 0


def test_what_the_stages_say_is_announced_once(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    expect(page.locator("#announce")).to_have_text(re.compile("^The answer is complete, with"))
