"""The dialog with the repositories: by keyboard and on a phone, over the real server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser.actions import PHONE, Held, comes, expecting, get_answer, ready, scrolled_sideways
from browser.conftest import Server
from playwright.sync_api import Page, expect


def opened(page: Page) -> None:
    page.locator("#choose-repository").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Repositories")).to_be_visible()


@pytest.mark.slow
def test_a_folder_is_found_added_renamed_and_removed_without_a_pointer(
    real: Server, tmp_path: Path
) -> None:
    for folder in ("lamps/.git", ".secret lamps", "chairs"):
        (tmp_path / "things" / folder).mkdir(parents=True)
    (tmp_path / "things" / "lamps" / "light.py").write_text("def shine():\n    return 1\n")
    page = real.open()
    ready(page)
    opened(page)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("link", name=re.compile("bookshop"))).to_contain_text("open")
    dialog.get_by_label("Folder on this machine").fill(str(tmp_path / "things"))
    dialog.get_by_role("button", name="Browse…").press("Enter")
    folders = dialog.locator("#folders-list button")
    expect(folders).to_have_text(["chairs", "lampsgit"])
    dialog.get_by_label("Hidden folders").check()
    expect(folders).to_have_count(3)
    dialog.get_by_role("button", name="lamps git").press("Enter")
    expect(page.locator("#folders-path")).to_have_text(str(tmp_path / "things" / "lamps"))
    dialog.get_by_role("button", name="Add this folder").press("Enter")
    comes(page, page.get_by_role("heading", name=re.compile("lamps")))
    get_answer(page, "how does it shine?")
    expect(page.locator('a.citation[data-path="light.py"]').first).to_be_visible()

    page.locator("#together-chip").press("Enter")
    page.locator("#together-all").check()
    page.get_by_role("button", name="Switch to these").press("Enter")
    expect(page.get_by_text("None about these repositories together yet.")).to_be_visible()
    get_answer(page, "how does it shine?")
    cited = page.locator('a.citation[data-path="lamps/light.py"]').first
    expect(cited).to_have_text(re.compile("^lamps/light.py:"))
    expect(cited).to_have_text(re.compile("^lamps/light.py:"), use_inner_text=True)
    opened(page)
    for name in ("bookshop", "lamps"):
        expect(dialog.get_by_role("link", name=re.compile(f"^{name}"))).to_contain_text("open")
    dialog.get_by_role("link", name=re.compile("^lamps")).press("Enter")
    expect(page.get_by_role("heading", name=re.compile("lamps"))).to_be_visible()

    opened(page)
    dialog.get_by_role("button", name="Rename lamps").press("Enter")
    field = dialog.get_by_label("New name of lamps")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog.get_by_role("button", name="Rename lamps")).to_be_focused()
    expect(dialog).to_be_visible()
    page.keyboard.press("Enter")
    field.fill("bookshop")
    expecting(page, "400 (BAD REQUEST)")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Another repository is called bookshop")
    dialog.get_by_role("button", name="Rename lamps").press("Enter")
    field.fill("All the lamps")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("link", name=re.compile("All the lamps"))).to_be_visible()
    dialog.get_by_role("button", name="Refresh All the lamps").press("Enter")
    dialog.get_by_role("button", name="Remove All the lamps").press("Enter")
    group = dialog.get_by_role("group", name="Remove All the lamps")
    expect(group).to_contain_text(f"The folder {tmp_path / 'things' / 'lamps'} stays as it is.")
    expect(group.get_by_role("button", name="Keep")).to_be_focused()
    group.get_by_role("button", name="Remove").press("Enter")
    page.wait_for_url("**/repositories")
    expect(page.get_by_role("link", name=re.compile("bookshop"))).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("lamps"))).to_have_count(0)
    assert (tmp_path / "things" / "lamps" / "light.py").exists()


def test_while_a_folder_is_looked_at_the_list_says_so_and_whoever_closes_it_stays(
    real: Server, tmp_path: Path
) -> None:
    page = real.open()
    ready(page)
    asked = Held(page, "**/api/repos", "POST")
    opened(page)
    dialog, field = page.get_by_role("dialog"), page.get_by_label("Folder on this machine")
    add = dialog.get_by_role("button", name="Add", exact=True)
    looking = dialog.get_by_role("listitem").filter(has_text="looking…")
    expecting(page, "400 (BAD REQUEST)")
    field.fill("/nowhere/at/all")
    add.click()
    expect(dialog.get_by_role("button", name="Adding…")).to_be_disabled()
    expect(looking).to_contain_text("/nowhere/at/all")
    field.press("Enter")
    asked.go_on()
    expect(dialog.get_by_role("alert")).to_contain_text("not a folder")
    assert not asked.count()
    expect(looking).to_have_count(0)
    expect(add).to_be_enabled()
    expect(field).to_be_focused()
    (tmp_path / "table.py").write_text("def lay(): ...\n")
    field.fill(str(tmp_path))
    add.click()
    expect(dialog.get_by_role("alert")).to_be_hidden()
    expect(looking).to_be_visible()
    page.keyboard.press("Escape")
    address = page.url
    with page.expect_response(lambda reply: reply.request.method == "POST" and reply.ok):
        asked.go_on()
    opened(page)
    comes(page, dialog.get_by_role("listitem").filter(has_text=str(tmp_path)))
    expect(add).to_be_enabled()
    assert page.url == address


def test_an_address_asks_for_a_branch_and_says_what_failed_also_on_a_phone(real: Server) -> None:
    page = real.open(**PHONE)
    ready(page)
    page.get_by_role("button", name="Open the menu").tap()
    page.locator("#choose-repository").tap()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("Folder on this machine")
    expecting(page, "400 (BAD REQUEST)")
    for typed, words in (
        ("/nowhere/at/all", "not a folder"),
        ("http://host.invalid/a/b", "https://host/owner/name"),
    ):
        field.fill(typed)
        dialog.get_by_role("button", name="Add", exact=True).tap()
        expect(dialog.get_by_role("alert")).to_contain_text(words)
    expect(dialog.get_by_label("Branch or tag")).to_be_visible()
    field.fill("https://host.invalid/some/shop")
    dialog.get_by_role("button", name="Add", exact=True).tap()
    comes(page, dialog.get_by_role("alert").filter(has_text="Could not resolve host"))
    failed = dialog.get_by_role("listitem").filter(has_text="https://host.invalid/some/shop")
    assert not scrolled_sideways(page)
    expect(failed).to_have_count(0)
