"""The page for those who do not see it, or not well: what is read, the focus, the theme. Its views
are held against axe-core's rules in `test_views`."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

from browser.actions import get_answer, ready
from browser.conftest import ScriptedServer
from playwright.sync_api import Page, expect

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = ("serious", "critical")
Scheme = Literal["light", "dark"]


def violations(page: Page, within: str = "body", contrast: bool = True) -> list[str]:
    """Serious and critical faults of what is in view: rule, place and why, one line each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    result: dict[str, Any] = page.evaluate(
        """([part, enabled]) => axe.run(part, { resultTypes: ["violations"], preload: false,
          rules: { "color-contrast": { enabled } } })""",
        [within, contrast],
    )
    return [
        f"{rule['id']}: {' '.join(node['target'])}: {node['failureSummary'].splitlines()[1:2]}"
        for rule in result["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]


def test_an_answer_is_read_in_whole_blocks_and_never_twice(page: Page) -> None:
    ready(page)
    page.evaluate(
        """() => { window.heard = [];
        const region = document.getElementById("spoken-answer");
        new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(
          node => window.heard.push(node.textContent)))).observe(region, { childList: true }); }"""
    )
    get_answer(page, "x")
    heard = page.evaluate("window.heard")
    assert heard[0].startswith("This answer is put together from the code itself: signatures,")
    assert "Code in python, 4 lines." in heard and "A table of 1 row." in heard
    parts = page.locator(".block:not(:has(> ul)), .block > ul > li")
    assert len(heard) == len(set(heard)) == parts.count()


def test_the_focus_goes_through_a_turn_in_reading_order_and_is_seen(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open(scripted.keep("@codebase x"))
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    page.get_by_role("button", name="Edit the question").focus()
    page.keyboard.press("Shift+Tab")  # from here on the keyboard moves it
    page.keyboard.press("Tab")
    order = []
    for _ in range(12):
        name, ringed = page.evaluate(
            """() => { const e = document.activeElement; return [
              e.getAttribute("aria-label") || e.textContent.trim(),
              e.matches(":focus-visible") && getComputedStyle(e).outlineStyle !== "none"]; }"""
        )
        order.append(name)
        assert ringed, name
        page.keyboard.press("Tab")
    assert order[:4] == ["Edit the question", "Compare", "Earlier version", "Later version"]
    assert order[4].startswith("4 pieces") and order[5].startswith("src/store/sessions.py")
    assert "Copy" in order and "Code, python" in order


def test_the_theme_follows_the_system_until_one_is_chosen(scripted: ScriptedServer) -> None:
    page = scripted.open(scheme="dark")
    body, dark = page.locator("body"), "rgb(23, 24, 26)"
    expect(body).to_have_css("background-color", dark)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Light").click()
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        expect(body).to_have_css("background-color", "rgb(251, 250, 247)")
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="As the system").click()
    expect(body).to_have_css("background-color", dark)


def test_where_colours_are_forced_what_is_chosen_has_the_focus_or_goes_on_is_seen(
    scripted: ScriptedServer,
) -> None:
    scripted.use_model()
    page = scripted.open(scripted.keep("@codebase x"))
    page.emulate_media(forced_colors="active")

    def unlike(one: str, other: str, style: str = "backgroundColor", part: str = "") -> bool:
        read = "(node, [style, part]) => getComputedStyle(node, part)[style]"
        first, second = (
            page.locator(at).first.evaluate(read, [style, part]) for at in (one, other)
        )
        return bool(first != second)

    ready(page)
    page.locator("#codebase").press("Space")
    assert unlike("#codebase", "#effort")
    page.locator("#model-chip").click()
    assert unlike(".provider:has(:checked)", ".provider:not(:has(:checked))")
    page.keyboard.press("Escape")
    page.locator("#effort").click()
    assert unlike(".effort:has(:checked)", ".effort:not(:has(:checked))")
    assert unlike(".segments label:has(:checked)", ".segments label:not(:has(:checked))")
    assert unlike("#rerank", "#answer-options", part="::before"), "the knob of a switch"
    page.keyboard.press("Escape")
    assert unlike(".conversation.current .conversation-row", "#sidebar")
    assert unlike("#index-state .dot", "#sidebar")
    page.locator(".more").first.click()
    page.keyboard.press("ArrowDown")
    assert unlike(".menu :focus-visible", ".menu button:first-child", "outlineStyle")
