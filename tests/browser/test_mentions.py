"""`@` in a question, what it mentions, going to a file or symbol by name, the tree of files."""

from __future__ import annotations

import re

from browser.actions import (
    PHONE,
    chip_of,
    field_of,
    ready,
    scrolled_sideways,
)
from browser.conftest import Server
from playwright.sync_api import Locator, Page, expect

HOSTILE = "bookshop/<img src=x onerror=window.hacked=1>.py"


def menu_of(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Files, folders and symbols")


def chips_of(page: Page) -> Locator:
    return page.locator("#mention-chips .mention")


def go_to(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Go to a file or symbol")


def test_an_at_sign_offers_places_and_the_keyboard_completes_them(real: Server) -> None:
    page = real.open()
    ready(page)
    field, menu = field_of(page), menu_of(page)
    options = menu.get_by_role("option")
    field.press_sequentially("is @")
    expect(options.first).to_contain_text("@codebase")
    expect(options.nth(1)).to_contain_text("bookshop/")
    expect(field).to_have_attribute("aria-activedescendant", "suggestions-0")
    expect(page.locator("#announce")).to_contain_text("arrow keys choose")
    field.press_sequentially("res")
    expect(options.first).to_contain_text("Stock.reserve_copies")
    expect(options.first).to_contain_text("bookshop/stock.py:")
    page.keyboard.press("ArrowUp")  # round to the last one, and back
    expect(options.last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # takes it, and sends nothing
    expect(field).to_have_value("is @Stock.reserve_copies ")
    expect(menu).to_be_hidden()
    expect(page.locator(".turn")).to_have_count(0)
    field.press_sequentially("in @stock.p")
    expect(options.first).to_contain_text("stock.py")
    page.keyboard.press("Tab")
    expect(field).to_have_value("is @Stock.reserve_copies in @bookshop/stock.py ")
    expect(chips_of(page)).to_have_text([re.compile("Stock.reserve_copies"), "stock.py"])
    page.keyboard.press("Control+z")
    expect(field).to_have_value("is @Stock.reserve_copies in @stock.p")

    field.fill("")
    field.press_sequentially("@book")
    expect(options.first).to_contain_text("bookshop/")
    page.keyboard.press("Tab")  # goes into the folder
    expect(menu).to_contain_text("orders.py")
    page.keyboard.press("Enter")
    expect(field).to_have_value("@bookshop/ ")
    expect(chips_of(page)).to_have_text(["bookshop/"])

    chip_of(page).click()
    field.fill("where ")
    field.press_sequentially("@cod")
    expect(options.first).to_contain_text("@codebase")
    page.keyboard.press("Enter")  # switches the search on
    expect(chip_of(page)).to_have_attribute("aria-pressed", "true")
    expect(field).to_have_value("where ")

    field.fill("")
    field.press_sequentially("@Ord")
    expect(menu).to_be_visible()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    with page.expect_request("**/api/mentions*"):  # as long as it takes to look for more
        field.press_sequentially("er")
    expect(menu).to_be_hidden()
    field.fill("")
    asked: list[str] = []
    page.on("request", lambda r: asked.append(r.url) if "/api/complete" in r.url else None)
    field.press_sequentially("to me@stock")  # an address
    with page.expect_response("**/api/complete*"):
        field.press_sequentially(" or @zznothing")
    expect(menu).to_be_hidden()
    assert not [url for url in asked if "q=stock" in url]
    expect(chips_of(page)).to_have_text(["@zznothingnot in the index"])


def test_chips_open_what_they_stand_for_and_can_be_taken_out(real: Server) -> None:
    page = real.open()
    ready(page)
    field, title = field_of(page), page.locator("#panel-title")
    field.fill("how do @bookshop/orders.py and @Stock.reserve_copies work? @nothing/of.it")
    expect(chips_of(page)).to_have_text(
        ["orders.py", re.compile("Stock.reserve_copies"), "@nothing/of.itnot in the index"]
    )
    expect(page.locator(".mention-note")).to_have_count(0)
    chip_of(page).click()
    expect(page.locator(".mention-note")).to_have_text("To be looked up:")
    chips_of(page).nth(1).get_by_role("button", name="Stock.reserve_copies", exact=True).click()
    expect(title).to_contain_text("stock.py")
    expect(page.locator(".source .cited").first).to_contain_text("def")
    page.get_by_role("button", name="Remove @bookshop/orders.py").click()
    expect(field).to_have_value("how do and @Stock.reserve_copies work? @nothing/of.it")
    expect(field).to_be_focused()
    expect(chips_of(page)).to_have_count(2)


def test_ctrl_p_goes_to_a_symbol_a_file_and_what_lies_in_a_folder(real: Server) -> None:
    page = real.open()
    ready(page)
    page.keyboard.press("Control+p")
    dialog, title = go_to(page), page.locator("#panel-title")
    box = dialog.get_by_role("combobox", name="File or symbol")
    options = dialog.get_by_role("option")
    expect(box).to_be_focused()
    page.keyboard.type("reserve")
    expect(options.first).to_contain_text("Stock.reserve_copies")
    expect(box).to_have_attribute("aria-activedescendant", "go-to-options-0")
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(title).to_contain_text("stock.py")
    expect(page.locator(".source .cited").first).to_contain_text("def reserve_copies")
    page.keyboard.press("Control+p")
    expect(box).to_have_value("reserve")
    page.keyboard.type("orders.py:3-4")
    page.keyboard.press("Enter")  # at once: what fits is on its way
    expect(page.locator("#panel-lines")).to_have_text("Lines 3–4")
    page.keyboard.press("Control+p")
    page.keyboard.type("zzzznothing")
    expect(dialog.get_by_role("status")).to_contain_text("Nothing has the name “zzzznothing”")
    box.fill("tests/")
    with page.expect_response("**/api/complete*"):  # what lies in it takes the place of what fitted
        options.filter(has_text="tests/").first.click()
    expect(box).to_have_value("tests/")
    options.filter(has_text="test_orders.py").click()
    expect(title).to_contain_text("test_orders.py")


def test_the_files_are_walked_with_the_keyboard(real: Server) -> None:
    page = real.open()
    ready(page)
    files = page.locator("#files")
    head = files.locator("summary").first
    head.press("Enter")
    rows = files.locator("li bdi")
    expect(rows).to_have_text(["bookshop", "tests", "README.md"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    orders = files.get_by_role("button", name="orders.py")
    expect(orders).to_be_visible()
    for _ in range(rows.all_inner_texts().index("orders.py")):
        page.keyboard.press("ArrowDown")
    expect(orders).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_contain_text("orders.py")
    page.keyboard.press("Escape")
    expect(orders).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(files.locator("summary", has_text="bookshop")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(orders).to_be_hidden()
    page.keyboard.press("ArrowUp")
    expect(head).to_be_focused()


def test_all_of_it_works_by_touch_on_a_phone(real: Server) -> None:
    page = real.open(**PHONE)
    ready(page)
    field = field_of(page)
    field.tap()
    field.press_sequentially("what is @reserve")
    option = menu_of(page).get_by_role("option").filter(has_text="Stock.reserve_copies")
    expect(option).to_be_visible()
    box = option.bounding_box()
    assert box is not None and box["height"] >= 44
    option.tap()
    expect(field).to_have_value("what is @Stock.reserve_copies ")
    expect(chips_of(page)).to_have_count(1)
    assert not scrolled_sideways(page)
    page.locator("#open-sidebar").tap()
    page.locator("#files summary").tap()
    page.locator("#files summary", has_text="bookshop").tap()
    page.locator("#files").get_by_role("button", name="stock.py").tap()
    expect(page.locator("#panel-title")).to_contain_text("stock.py")
    expect(page.locator("body")).not_to_have_class(re.compile("sidebar-open"))
    page.locator("#panel-close").tap()
    page.locator("#open-sidebar").tap()
    page.get_by_role("button", name="Go to a file or symbol").tap()
    go_to(page).get_by_role("combobox").fill("order")
    go_to(page).get_by_role("option").filter(has_text="test_orders.py").first.tap()
    expect(page.locator("#panel")).to_be_visible()
    assert not scrolled_sideways(page)
