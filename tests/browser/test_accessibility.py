"""The page for those who do not see it, or not well: axe-core's rules, what is read, the focus."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Literal

import pytest
from browser.actions import PHONE, ask, get_answer, open_context, ready, stop, use_model
from browser.conftest import OpenPage, ScriptedServer
from browser.test_hostile import replies
from browser.test_phone import EVERYTHING
from playwright.sync_api import Page, expect

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = ("serious", "critical")
Scheme = Literal["light", "dark"]


def violations(page: Page, within: str = "body") -> list[str]:
    """Serious and critical faults of what is in view: rule, place and why, one line each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    result: dict[str, Any] = page.evaluate(
        "part => axe.run(part, { resultTypes: ['violations'] })", within
    )
    return [
        f"{rule['id']}: {' '.join(node['target'])}: {node['failureSummary'].splitlines()[1:2]}"
        for rule in result["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize(
    ("scheme", "other"),
    [("light", "dark"), pytest.param("dark", "light", marks=pytest.mark.slow)],
)
def test_axe_finds_nothing_serious_in_any_view(
    scripted: ScriptedServer, open_page: OpenPage, scheme: Scheme, other: Scheme
) -> None:
    page = open_page(scripted, scheme=scheme)
    ready(page)
    faults = {"first page": violations(page)}
    use_model(page)
    page.locator("#codebase").click()
    get_answer(page, EVERYTHING)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    page.get_by_role("button", name="Bad answer").click()
    page.locator(".stages").click()
    ask(page, "@codebase modelfail")
    expect(page.get_by_role("alert")).to_be_visible()
    get_answer(page, "@codebase unverified")
    faults["conversation"] = violations(page)
    page.locator("#effort").click()
    faults["how to answer"] = violations(page, "#answer-options")
    page.keyboard.press("Escape")
    open_context(page)
    page.locator(".chunks .exclude").first.click()
    for fold in page.locator(".context summary").all():
        fold.click()
    faults["context"] = violations(page, "#panel")
    page.locator(".chunks .open").first.click()
    expect(page.locator(".source .cited").first).to_be_visible()
    faults["file"] = violations(page, "#panel")
    page.get_by_role("button", name="Close the panel").click()
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    page.emulate_media(color_scheme=other)
    faults["conversation on a phone"] = violations(page)
    page.get_by_role("button", name="Open the menu").click()
    page.get_by_label("Search the conversations").fill("cookie")
    expect(page.locator("#conversations-found a").first).to_be_visible()
    faults["found"] = violations(page, "#sidebar")
    page.get_by_role("button", name="Review an issue").click()
    page.locator("#issue").get_by_role("button", name="Review", exact=True).click()
    faults["issue"] = violations(page, "#issue")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="What is stored").click()
    page.get_by_role("button", name="Everything").click()
    faults["stored"] = violations(page, "#privacy")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    faults["settings"] = violations(page, "#settings")
    replies(page, "**/api/folders?**", {
        "path": "/src", "parent": "/", "git": True,
        "folders": [{"name": "shop", "path": "/src/shop", "git": True}],
    })  # fmt: skip
    replies(page, "**/api/repos", {"current": "a", "changeable": True, "repositories": [
        {"id": state, "name": state, "path": "/src/shop", "url": url, "branch": "", "files": 3,
         "state": state, "updated_at": 1, "problem": "", "progress": None}
        for state, url in (("ready", ""), ("cloning", "git@host:a/b"), ("folder gone", ""))
    ]})  # fmt: skip
    page.goto(f"{scripted.address}/repositories")
    expect(page.get_by_role("listitem")).to_have_count(3)
    page.get_by_role("button", name="Browse…").click()
    page.get_by_role("button", name="Remove ready").click()
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    faults["repositories"] = violations(page)
    assert {view: found for view, found in faults.items() if found} == {}


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


def test_the_focus_goes_through_a_turn_in_reading_order_and_is_seen(page: Page) -> None:
    get_answer(page, "x")
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


def test_nothing_moves_for_who_wants_it_calm(page: Page) -> None:
    ask(page, "silent")
    expect(page.locator(".stages .dot")).to_have_css("animation-name", "none")
    stop(page)
    running = "document.getAnimations().filter(one => one.playState === 'running').length"
    assert page.evaluate(running) == 0


def test_the_theme_follows_the_system_until_one_is_chosen(
    scripted: ScriptedServer, open_page: OpenPage
) -> None:
    page = open_page(scripted, scheme="dark")
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
