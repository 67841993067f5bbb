"""Every view of the page, one after the other, and pictures of them that can be compared."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browser.actions import (
    answered,
    ask,
    being_written,
    choose_provider,
    expecting,
    field_of,
    get_answer,
    new_conversation,
    open_context,
    ready,
    show_switches,
    stop,
)
from browser.conftest import ScriptedServer
from browser.test_hostile import replies
from playwright.sync_api import Page, expect

REFERENCES = Path(__file__).parent / "references"
"""The pictures, and `boxes.ttf`: every character but a space is a box, half an em wide."""
SCALES = {1440: 1 / 4, 768: 1 / 4, 360: 1 / 3}
"""Of the pictures, by the width of the page."""
CELL = 12
"""Pixels of the page, each way, whose mean colour is compared."""
UNLIKE = 6
"""Of 255 levels in one colour: what rounding makes of a cell is less."""
SMALLEST_PART = 3
"""Cells that differ where a part of 24 pixels has moved; fewer are no difference."""
DRAWN = """
@font-face { font-family: boxes; src: url("/boxes.ttf"); }
*, ::before, ::after { font-family: boxes !important; caret-color: transparent !important; }
.stages .doing { display: inline-block; max-width: 90px; overflow: hidden; white-space: nowrap; }
.stages .time { display: none; }
#privacy dd { font-size: 0; }
"""
"""Text in boxes of one width, so that every machine breaks lines alike; no time that was taken, and
no folder of the test."""
SEE = """(style) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  document.adoptedStyleSheets.push(sheet);
}"""
COMPARE = """async ([pictures, cell, unlike]) => {
  const [one, two] = await Promise.all(pictures.map(async (address) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    const { width, height } = image;
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, width, height);
  }));
  const { width, height } = one;
  if (width !== two.width || height !== two.height) return width * height;
  const columns = Math.ceil(width / cell);
  const sums = new Float64Array(columns * Math.ceil(height / cell) * 3);
  for (let y = 0, at = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1, at += 4) {
      const place = (Math.floor(y / cell) * columns + Math.floor(x / cell)) * 3;
      for (let colour = 0; colour < 3; colour += 1)
        sums[place + colour] += one.data[at + colour] - two.data[at + colour];
    }
  let cells = 0;
  for (let at = 0; at < sums.length; at += 3)
    cells += Math.max(...sums.subarray(at, at + 3).map(Math.abs)) > unlike * cell * cell;
  return cells;
}"""
OUT_OF_REACH = """(part) =>
  [...document.querySelectorAll(`${part} :is(button, a[href], input, select, textarea)`)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("[inert]"))
    .filter((one) => {
      for (let at = one; (at = at.parentElement); )
        if (["auto", "scroll"].includes(getComputedStyle(at).overflowY)) return false;
      const { x, y, width, height } = one.getBoundingClientRect();
      if (width < 2 || x + width <= 0 || y + height <= 0) return false; // heard, or put aside
      const seen = document.elementFromPoint(x + width / 2, y + height / 2);
      if (!seen) return document.body.matches(".app"); // others scroll
      return !(one.contains(seen) || one.closest("label")?.contains(seen));
    })
    .map((one) => `covered: ${one.id || one.className} ${one.textContent.trim()}`)"""
"""Controls that something covers or that are off the page, but for those that scroll into view."""
SMALL = """([part, height]) =>
  [...document.querySelectorAll(`${part} :is(button, input, select, summary, textarea)`)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => !one.labels?.length && !one.closest(".visually-hidden, .themes"))
    .map((one) => [one, one.getBoundingClientRect()])
    .filter(([, at]) => at.width > 1 && (at.height < height || at.width < 32))
    .map(([{ id, className, textContent }, at]) =>
      `${Math.round(at.width)} by ${Math.round(at.height)}: ${id || className} ${textContent}`)"""
"""Controls that a finger would miss, as they are not so high."""
EVERYTHING = "hello rewritten:x suggest:And then?|And why?"
PLACE = {"path": "src/store/sessions.py", "kind": "class", "language": "python", "note": ""}
CLASSES = (("SessionInterface", 8, 19), ("SecureCookieSessionInterface", 22, 34))


def draw_in_boxes(page: Page) -> None:
    """Have the page look the same everywhere and at any time, from its next document on."""
    page.add_init_script(f"Date.now = () => {1000 * time.time():.0f}")
    page.route("**/boxes.ttf", lambda route: route.fulfill(path=REFERENCES / "boxes.ttf"))
    page.add_init_script(f"({SEE})({DRAWN!r})")


def views(page: Page, server: ScriptedServer, sign_in: str) -> Iterator[tuple[str, str]]:
    """Bring the page into each view. Gives its name, and a selector of what is new in it."""
    narrow = (page.viewport_size or {})["width"] < 1100
    field = field_of(page)

    def press_in_sidebar(button: str) -> None:
        menu = page.locator("#open-sidebar")
        if narrow and menu.get_attribute("aria-expanded") == "false":
            menu.click()
        page.locator(button).first.click()

    page.goto(sign_in)
    yield "sign in", "body"
    page.goto(server.address)
    ready(page)
    expect(page.locator("#local-models button").first).to_be_visible()
    yield "empty", "body"
    for typed, option in (("@", "sessions.py"), ("/", "/review")):
        field.press_sequentially(typed)
        expect(page.get_by_role("option").filter(has_text=option).first).to_be_visible()
        yield f"typed {'mention' if typed == '@' else 'mode'}", "#composer"
        field.fill("")
    dialog = choose_provider(page, "OpenAI")
    expect(dialog.get_by_role("button", name="Use this model")).to_be_visible()
    yield "model", "#models"
    dialog.get_by_role("button", name="Use this model").click()
    show_switches(page)
    page.locator("#effort").click()
    yield "how to answer", "#answer-options"
    page.keyboard.press("Escape")
    ask(page, "held by drafts")
    expect(page.locator(".found")).to_contain_text("sessions.py")
    yield "searching", ".turn"
    server.chat.drafts.release(2)
    answered(page)
    ask(page, "slow tell me more")
    being_written(page, 25)
    yield "writing", ".dock"
    stop(page)

    new_conversation(page) if not narrow else page.locator("#new-conversation-top").click()
    get_answer(page, EVERYTHING)
    page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("group", name="Version 2 of 2")).to_be_visible()
    answered(page)
    yield "versions", ".turn"
    page.get_by_role("button", name="Bad answer").click()
    page.locator(".stages").click()
    page.get_by_role("button", name="And why?", exact=True).scroll_into_view_if_needed()
    yield "end of an answer", ".turn"
    ask(page, "@codebase modelfail")
    expect(page.get_by_role("alert")).to_be_visible()
    yield "failed", ".turn:last-child"
    get_answer(page, "@codebase unverified unproven alike")
    page.locator(".turn").last.get_by_role("button", name="Context").scroll_into_view_if_needed()
    yield "doubts", ".turn:last-child"
    open_context(page)
    page.locator(".chunks .exclude").first.click()
    yield "context", "#panel"
    definitions = [
        {**PLACE, "name": name, "start_line": start, "end_line": end, "depth": 0, "text": name}
        for name, start, end in CLASSES
    ]
    replies(page, "**/api/outline?**", {"path": PLACE["path"], "definitions": definitions})
    named = {"definitions": definitions[:1], "uses": definitions, "total": 2}
    replies(page, "**/api/name?**", named)
    page.locator(".chunks .open").first.click()
    expect(page.locator(".source .cited").first).to_be_in_viewport()
    yield "file", "#panel"
    page.get_by_role("button", name="Definitions in this file").click()
    expect(page.locator("#panel-places [role=option]")).to_have_count(2)
    yield "what a file defines", "#panel-places"
    page.get_by_role("button", name="Close the list").click()
    page.locator('.row[data-line="26"] .nf').click()
    expect(page.locator("#panel-places [role=option]").nth(2)).to_be_visible()
    yield "uses of a name", "#panel-places"
    page.get_by_role("button", name="Close the list").click()
    page.get_by_role("button", name="Find in this file").click()
    page.keyboard.type("session")
    expect(page.locator("#panel-places [role=option]").nth(2)).to_be_visible()
    yield "found in a file", "#panel-places"
    page.get_by_role("button", name="Close the list").click()
    page.get_by_role("button", name="Close the panel").click()
    expect(page.locator("#panel")).to_be_hidden()

    press_in_sidebar("#files summary")
    expect(page.locator("#files li").first).to_be_visible()
    yield "menu", "#sidebar"
    page.locator("#files summary").first.click()
    page.get_by_label("Search the conversations").fill("cookie")
    expect(page.locator("#conversations-found a").first).to_be_visible()
    yield "conversations found", "#sidebar"
    page.get_by_label("Search the conversations").fill("")
    press_in_sidebar("#index-state")
    yield "index", "#index"
    page.keyboard.press("Escape")
    press_in_sidebar("#go-to")
    page.keyboard.type("sess")
    expect(page.locator("#go-to-options [role=option]").first).to_be_visible()
    yield "go to", "#go-to-dialog"
    page.keyboard.press("Escape")
    press_in_sidebar("#review-issue")
    page.locator("#issue").get_by_role("button", name="Review", exact=True).click()
    yield "issue", "#issue"
    page.keyboard.press("Escape")
    press_in_sidebar("#show-privacy")
    page.get_by_role("button", name="Everything").click()
    yield "stored", "#privacy"
    page.keyboard.press("Escape")
    press_in_sidebar("#show-settings")
    yield "settings", "#settings"
    page.keyboard.press("Escape")
    replies(page, "**/api/folders?**", {
        "path": "/src", "parent": "/", "git": True,
        "folders": [{"name": "shop", "path": "/src/shop", "git": True}],
    })  # fmt: skip
    replies(page, "**/api/repos", {"current": "a", "changeable": True, "repositories": [
        {"id": state, "name": state, "path": "/src/shop", "url": url, "branch": "", "files": 3,
         "state": state, "updated_at": 1, "problem": "", "progress": None}
        for state, url in (("ready", ""), ("cloning", "git@host:a/b"), ("folder gone", ""))
    ]})  # fmt: skip
    press_in_sidebar("#choose-repository")
    expect(page.locator("#repositories-dialog li")).to_have_count(3)
    yield "repositories", "#repositories-dialog"
    page.goto(f"{server.address}/repositories")
    expect(page.get_by_role("listitem")).to_have_count(3)
    page.get_by_role("button", name="Browse…").click()
    page.get_by_role("button", name="Remove ready").click()
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    yield "choose a repository", "body"

    expecting(page, "404", "ERR_INTERNET_DISCONNECTED")
    page.goto(f"{server.address}/?c=gone")
    expect(page.get_by_role("alert")).to_be_visible()
    yield "no such conversation", ".main"
    page.context.set_offline(True)
    page.get_by_role("button", name="New conversation").last.click()
    ask(page, "are you there?")
    expect(page.locator("#connection")).to_contain_text(re.compile("does not answer"))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # it looks at once
    expect(page.locator("#index-state .dot")).to_have_attribute("data-state", "unreachable")
    yield "server away", ".main"
    page.context.set_offline(False)


def faults_of_place(page: Page, part: str) -> list[str]:
    """What is off the page, covered or on a phone too small in `part`, one line each."""
    found: list[str] = page.evaluate(OUT_OF_REACH, part)
    if page.evaluate("matchMedia('(pointer: coarse)').matches"):
        found += page.evaluate(SMALL, [part, 36])
    sizes = "(({ scrollWidth, scrollHeight }) => [scrollWidth, scrollHeight])"
    width, height = page.evaluate(f"{sizes}(document.documentElement)")
    size: Any = page.viewport_size
    if width > size["width"]:
        found.append(f"{width} pixels wide")
    if page.evaluate("document.getAnimations().some((one) => one.playState === 'running')"):
        found.append("something moves for who wants it calm")
    if height > size["height"] and page.locator("body.app").count():
        found.append(f"{height} pixels high: the whole page can be scrolled")
    return found


def picture(page: Page) -> bytes:
    """The page in view, scaled by SCALES, as PNG."""
    size: Any = page.viewport_size
    clip = {"x": 0, "y": 0, **size, "scale": SCALES[size["width"]]}
    session: Any = getattr(page, "drawn", None) or page.context.new_cdp_session(page)
    page.drawn = session  # type: ignore[attr-defined]
    taken = session.send("Page.captureScreenshot", {"format": "png", "clip": clip})
    return base64.b64decode(taken["data"])


def cells_unlike(page: Page, one: bytes, two: bytes) -> int:
    """How many cells of two pictures of this page differ; all where their sizes do."""
    size: Any = page.viewport_size
    pictures = [f"data:image/png;base64,{base64.b64encode(each).decode()}" for each in (one, two)]
    cell = CELL * SCALES[size["width"]]
    unlike: int = page.evaluate(COMPARE, [pictures, cell, UNLIKE])
    return unlike
