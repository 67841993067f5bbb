"""The page over the real engine, without a model and with a scripted one that is really served."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browser.actions import (
    answered,
    change_settings,
    chip_of,
    comes,
    copied,
    expecting,
    get_answer,
    open_context,
    ready,
    show_switches,
    use_address,
)
from browser.bookshop import INVENTORY
from browser.conftest import Server
from openai_server import ScriptedServer as ModelServer
from openai_server import openai_server, stream
from playwright.sync_api import Route, expect

from codeqa.store.location import write_atomically

ASK = "How are copies of a book reserved?"


def test_a_question_is_answered_and_its_citation_opens_its_lines_until_they_change(
    real: Server,
) -> None:
    page = real.open()
    expect(page.get_by_role("heading", name=re.compile("bookshop"))).to_be_visible()
    get_answer(page, ASK)
    expect(page.locator(".stages")).to_have_text(re.compile(r"^\d+ pieces of code · [\d.]+ m?s$"))

    citation = page.locator('a.citation[data-path="bookshop/stock.py"]').first
    start, end = (int(citation.get_attribute(f"data-{name}") or 0) for name in ("start", "end"))
    citation.click()
    cited = page.locator(".source .row.cited")
    expect(cited).to_have_count(end - start + 1)
    expect(cited.first).to_be_in_viewport()
    expect(cited.first).to_have_attribute("data-line", str(start))
    assert "def reserve_copies" in "\n".join(cited.all_text_contents())
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()
    expect(citation).to_be_focused()

    root = page.request.get(f"{real.address}/api/status").json()["repository"]
    file = Path(root, "bookshop", "stock.py")
    before = file.read_text()
    try:
        # In one step: the page may ask for its lines at this moment.
        write_atomically(file, f"# One line more.\n{before}")
        page.reload()
        expect(citation).to_contain_text("source changed")
    finally:
        write_atomically(file, before)
    page.reload()
    ready(page)
    expect(citation).not_to_contain_text("source changed")


def test_an_excerpt_numbers_its_lines_and_those_left_out_open_in_their_place(real: Server) -> None:
    page = real.open()
    get_answer(page, "how does take_inventory hand in what was found?")
    code = page.locator(".code-block[data-place^='bookshop/inventory.py:'] code").first
    long = page.locator(".code-block[data-place^='bookshop/inventory.py:']").first
    expect(long).to_have_class(re.compile("folded"))
    long.get_by_role("button", name=re.compile(r"^Show all \d+ lines$")).click()
    expect(long).not_to_have_class(re.compile("folded"))
    gap = code.locator("button.gap").first
    expect(gap).to_have_text(re.compile(r"^… \d+ lines$"))
    gap.click()
    expect(code.locator("button.gap")).to_have_count(0)
    numbers = code.locator(".number").evaluate_all("all => all.map(one => one.dataset.line)")
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert (code.text_content() or "").rstrip() == INVENTORY.rstrip()
    long.get_by_role("button", name="Copy with citation").click()
    expect(long.get_by_role("button", name="Copied")).to_be_visible()
    assert copied(page).endswith(f"\n\n[{long.get_attribute('data-place')}]")


@pytest.mark.slow
def test_a_commit_that_is_chosen_has_a_page_of_its_own_and_its_answers_name_it(
    real: Server,
) -> None:
    page = real.open()
    expecting(page, "404 (NOT FOUND)")
    page.locator("#question").fill(ASK)
    page.locator("#effort").click()
    field = page.get_by_label("At commit")
    field.fill("v9")
    field.press("Enter")
    expect(page.locator("#revision-about")).to_contain_text("no commit 'v9'")
    page.locator("#question").press("Enter")  # asks about no other files instead
    expect(page.locator("#composer-problem")).to_contain_text("Empty “At commit” to ask")
    expect(page.locator(".turn")).to_have_count(0)
    reading: list[Route] = []
    page.route("**/api/revisions?*", lambda route: reading.append(route), times=1)
    field.fill("v1")
    field.press("Enter")
    page.locator("#question").press("Enter")
    expect(page.locator("#composer-problem")).to_contain_text("as soon as the files of v1 are read")
    reading[0].continue_()
    expect(page.locator(".turn")).to_have_count(1)
    answered(page)
    expect(page.locator(".turn").last).to_contain_text(re.compile(r"files of bookshop@\w{10}"))
    page.locator("a.citation").first.click()
    expect(page.locator(".source .row.cited").first).to_be_visible()
    show_switches(page)
    page.locator("#effort").click()
    expect(field).to_have_value("v1")
    expect(page.locator("#revision-about")).to_have_text(re.compile(r"Commit \w{10}"))
    field.fill("")
    field.press("Enter")
    expect(page.get_by_role("heading", name=re.compile(r"bookshop\?$"))).to_be_visible()


def test_the_index_and_what_it_skipped_are_in_view_and_a_hostile_file_is_shown_as_it_is(
    real: Server,
) -> None:
    page = real.open()
    page.locator("#index-state").click()
    comes(page, page.locator("#index-detail", has_text="6 files"))  # a first look may be under way
    page.get_by_role("button", name=re.compile("skipped: why")).click()
    panel = page.get_by_role("complementary", name="Source and context")
    expect(panel).to_contain_text("cover.png")
    example = page.locator("#examples button").first
    question = example.text_content() or ""
    example.click()
    answered(page)
    expect(page.locator(".question")).to_contain_text(question)
    get_answer(page, "what does hostile do?")
    open_context(page)
    page.locator('.chunks button[data-path*="onerror"]').first.click()
    expect(page.locator(".source")).to_contain_text("<script>window.hacked=1</script>")
    assert page.evaluate("window.hacked") is None


def test_what_is_stored_is_counted_and_deleted_for_good_after_a_second_word(real: Server) -> None:
    page = real.open()
    chip_of(page).click()
    get_answer(page, "My name is Ada.")
    page.get_by_role("button", name="New conversation").first.click()
    get_answer(page, "What is an order?")
    page.get_by_role("button", name="What is stored").click()
    dialog = page.get_by_role("dialog", name="What is stored")
    expect(dialog).to_contain_text(re.compile(r"Conversations \d+, about \d+ repositor(y|ies)"))
    expect(dialog).to_contain_text("Nobody: nothing leaves this machine.")
    expect(dialog).to_contain_text("name Ada")
    expect(dialog).to_contain_text("Conversations of all users state.sqlite, ")
    result = dialog.locator(".privacy-result")
    listed = page.locator("#conversations li.conversation")
    before = listed.count()

    def delete(scope: str, answer: str = "Delete for good") -> None:
        dialog.get_by_role("button", name=scope).click()
        sure = dialog.get_by_role("group", name=f"Delete: {scope}")
        expect(sure).to_contain_text("This cannot be undone.")
        sure.get_by_role("button", name=answer).click()
        expect(sure).to_have_count(0)

    delete("This conversation", "Keep it")
    delete("What it knows about you")
    expect(result).to_contain_text("1 fact about you")
    expect(dialog).to_contain_text("Nothing. Write")
    expect(page.locator(".turn")).to_have_count(1)  # the conversation stays
    delete("This conversation")
    expect(result).to_contain_text("Deleted: 1 conversation")
    expect(listed).to_have_count(before - 1)
    expect(page.locator("#welcome")).to_be_visible()
    delete("Everything")
    expect(dialog).to_contain_text("Conversations none")
    dialog.get_by_role("button", name="Close").click()
    page.reload()
    expect(page.locator("#no-conversations")).to_be_visible()


def sent(server: ModelServer, index: int = -1) -> list[Any]:
    """The messages of a request, each content as a list of texts."""
    texts = []
    for message in server.requests[index][1]["messages"]:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part["text"] for part in content]
        texts.append((message["role"], parts))
    return texts


def block_of(parts: list[str]) -> str:
    return next((text for text in parts if text.startswith("[CONTEXT]")), "")


def test_a_model_is_asked_followed_up_reloaded_and_regenerated(real: Server) -> None:
    answers = iter([
            stream(["Stock takes them off ", "the shelf [bookshop/stock.py:311-320].\n\n",
                    "It raises an error when there are too few."], usage=(900, 30)),
            stream(["It is raised as `OutOfStockError`."], usage=(950, 12)),
            stream(["Another way to say it."], usage=(950, 6)),
    ])  # fmt: skip

    def reply(path: str, body: dict[str, Any]) -> Any:
        return next(answers)

    with openai_server(reply) as server:
        page = real.open()
        use_address(page, server.base_url)
        get_answer(page, ASK)
        expect(page.locator(".answer")).to_contain_text("when there are too few.")
        expect(page.locator('a.citation[data-path="bookshop/stock.py"]')).to_be_visible()
        expect(page.locator(".details-body")).to_contain_text("900 in, 30 out")
        (system, instructions), *_ = sent(server)
        assert system == "system" and "reserve_copies" not in "".join(instructions)
        role, parts = sent(server)[-1]
        assert role == "user" and "@codebase" not in "".join(parts)
        block = block_of(parts)
        assert "def reserve_copies" in block

        change_settings(page, "Only with @codebase")
        get_answer(page, "Which error is that?")
        assert block_of(sent(server)[-1][1]) == block  # the cached context, unchanged
        history = [text for role, texts in sent(server)[1:-1] for text in texts]
        assert history[0] == ASK and "off the shelf" in history[1]

        open_context(page)
        shown = page.locator(".message pre")
        assert shown.all_text_contents() == [text for _, texts in sent(server) for text in texts]
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Regenerate").last.click()
        for reloaded in (False, True):
            if reloaded:
                page.reload()
            expect(page.locator(".answer").last).to_contain_text("Another way to say it.")
            answered(page)
            expect(page.locator(".turn")).to_have_count(2)
        assert sent(server)[-1] == sent(server, -2)[-1]
        again = [text for _, texts in sent(server)[1:-1] for text in texts]
        assert again == history  # the answer that is replaced is not held against it
