"""Reading a file in the panel: its names, finding in it, its lines, and where else they are."""

from __future__ import annotations

from browser.actions import copied, field_of, ready
from browser.conftest import ScriptedServer, Server
from browser.test_accessibility import violations
from playwright.sync_api import Page, expect

CITED = ".source .cited"


def press_name(page: Page, line: int, name: str, key: str = "") -> None:
    """Press a name in a line of the file as somebody with a mouse does."""
    code = page.locator(f'.row[data-line="{line}"] code')
    expect(code).to_contain_text(name)
    x, y = code.evaluate(
        """(code, name) => {
          const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
          while (!texts.nextNode().data.includes(name));
          const range = new Range();
          range.setStart(texts.currentNode, texts.currentNode.data.indexOf(name));
          range.setEnd(texts.currentNode, range.startOffset + name.length);
          const { x, y, width, height } = range.getBoundingClientRect();
          return [x + width / 2, y + height / 2];
        }""",
        name,
    )
    if key:
        page.keyboard.down(key)
    page.mouse.click(x, y)
    if key:
        page.keyboard.up(key)


def test_a_name_lists_its_definition_and_uses_and_one_goes_there_and_back(real: Server) -> None:
    page = real.open("/?file=bookshop/orders.py&lines=1-3")
    ready(page)
    use = page.locator(".row").filter(has_text="self.stock.reserve_copies(isbn")
    line = int(use.get_attribute("data-line") or 0)
    press_name(page, line, "reserve_copies")
    found = page.get_by_role("region", name="reserve_copies: used in")
    expect(found.get_by_role("option").first).to_contain_text("def reserve_copies")
    expect(found.get_by_role("option").nth(1)).to_contain_text("reserve_copies(")
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_contain_text("stock.py")
    expect(page.locator(CITED).first).to_contain_text("def reserve_copies")
    expect(page.locator("#panel-blame")).to_contain_text("A. Tester")
    assert violations(page) == []
    page.keyboard.press("Alt+ArrowLeft")
    expect(page.locator("#panel-title")).to_contain_text("orders.py")
    page.get_by_role("button", name="Forward").click()
    expect(page.locator("#panel-title")).to_contain_text("stock.py")
    page.get_by_role("button", name="Back", exact=True).click()
    page.get_by_role("button", name="Close the list").click()
    press_name(page, line, "reserve_copies", "Control")
    expect(page.locator(CITED).first).to_contain_text("def reserve_copies")
    left = page.locator(".row").filter(has_text="if left < copies")
    press_name(page, int(left.get_attribute("data-line") or 0), "left")  # a local name
    expect(page.locator("#panel-places-title")).to_have_text("2 of 3")
    expect(page.locator(CITED)).to_contain_text("if left < copies")


def test_a_file_is_read_by_the_keyboard_its_definitions_and_what_is_found_in_it(
    real: Server,
) -> None:
    page = real.open("/?file=bookshop/stock.py")
    ready(page)
    lines = page.locator("#panel-lines")
    expect(lines).to_have_text("323 lines")  # what is not there yet is not found
    page.locator("#panel-body").press("Control+f")
    page.keyboard.type("shelf number 1")
    title = page.locator("#panel-places-title")
    expect(title).to_have_text("1 of 11")
    page.keyboard.press("Enter")
    expect(title).to_have_text("2 of 11")
    expect(page.locator(CITED)).to_contain_text("Shelf number 10")
    page.keyboard.press("Escape")
    expect(page.locator("#panel-places")).to_be_hidden()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowDown")
    expect(lines).to_contain_text("Lines")
    page.keyboard.press("Enter")
    expect(page.get_by_role("option").first).to_contain_text("shelf_10")
    page.get_by_role("button", name="Definitions in this file").click()
    expect(page.get_by_role("option").first).to_contain_text("OutOfStockError")
    page.keyboard.type("__init__")
    expect(page.get_by_role("option")).to_have_text("ƒ\u2003__init__, constructor, 311")
    page.get_by_role("combobox", name="Filter").fill("reserve")
    page.keyboard.press("Enter")
    expect(page.locator(CITED).first).to_contain_text("def reserve_copies")


def test_lines_are_asked_about_and_lead_to_the_editor_and_the_host(
    scripted: ScriptedServer,
) -> None:
    page = scripted.open("/?file=src/store/sessions.py&lines=8-20")
    ready(page)
    editor, hosted = page.locator("#panel-editor"), page.locator("#panel-hosted")
    path = "/src/store/sessions.py"
    expect(hosted).to_have_attribute(
        "href", f"https://github.com/you/store/blob/{'1' * 40}{path}#L8-L20"
    )
    expect(editor).to_be_hidden()
    page.evaluate("localStorage.setItem('codeqa.editor', 'vscode')")
    page.locator('.row[data-line="10"]').click(position={"x": 10, "y": 10})
    expect(editor).to_have_attribute("href", f"vscode://file/home/you/src/store{path}:10")
    page.evaluate("localStorage.setItem('codeqa.editor', 'javascript:alert(`{path}`)')")
    page.locator('.row[data-line="14"]').click(position={"x": 10, "y": 10}, modifiers=["Shift"])
    expect(page.locator("#panel-lines")).to_have_text("Lines 10–14")
    expect(editor).to_be_hidden()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#toast")).to_have_text("Link copied")
    other = scripted.open(copied(page).removeprefix(scripted.address))
    expect(other.locator(CITED)).to_have_count(5)
    expect(other.locator(CITED).first).to_have_attribute("data-line", "10")
    page.get_by_role("button", name="Ask about these lines").click()
    expect(field_of(page)).to_have_value("@src/store/sessions.py:10-14 ")
    expect(field_of(page)).to_be_focused()


def test_wrapped_lines_and_back_lead_to_where_one_was(scripted: ScriptedServer) -> None:
    page = scripted.open("/?file=src/store/long.py&lines=1500-1510")
    ready(page)
    cited, body = page.locator(CITED), page.locator("#panel-body")
    page.get_by_role("button", name="Wrap long lines").click()
    expect(cited.first).to_be_in_viewport()
    body.evaluate("node => node.scrollTo(0, 4000)")
    page.keyboard.press("Control+p")
    page.keyboard.type("README.md")
    page.get_by_role("option").first.click()
    expect(page.locator("#panel-title")).to_contain_text("README.md")
    page.get_by_role("button", name="Back", exact=True).click()
    expect(cited).to_have_count(11)
    assert body.evaluate("node => node.scrollTop") == 4000

    # What goes on in a further row begins behind the indentation of its line.
    page.goto(f"{scripted.address}/?file=src/store/sessions.py&lines=22-27")
    rows = (page.locator(f'.source [data-line="{line}"] code') for line in (22, 26, 27))
    hang = "node => parseFloat(getComputedStyle(node).paddingLeft)"
    flat, method, inner = (row.evaluate(hang) for row in rows)
    assert [round(method / flat), round(inner / flat)] == [3, 5]


def test_the_panel_is_as_wide_as_its_edge_was_left(scripted: ScriptedServer) -> None:
    page = scripted.open("/?file=README.md")
    ready(page)
    edge, panel = page.get_by_role("separator", name="Width of the panel"), page.locator("#panel")
    before = panel.evaluate("node => node.offsetWidth")
    box = edge.bounding_box() or {}
    page.mouse.move(box["x"] + 4, 300)
    page.mouse.down()
    page.mouse.move(box["x"] - 96, 300, steps=3)
    page.mouse.up()
    dragged = panel.evaluate("node => node.offsetWidth")
    assert before + 80 < dragged < before + 120
    edge.press("ArrowRight")
    left = panel.evaluate("node => node.offsetWidth")
    assert left < dragged
    page.reload()
    expect(page.locator(".source .row").first).to_be_visible()
    assert panel.evaluate("node => node.offsetWidth") == left
