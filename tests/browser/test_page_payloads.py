"""All payloads through every way in which words of others reach the page: none of them runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import fakes
from browser.actions import answered, ask, choose_from_menu, expecting, until
from browser.conftest import Server
from browser.payloads import PAYLOADS
from browser.test_page_hostile import unharmed
from playwright.sync_api import Page, Route, expect

from codeqa.chat import AskOptions

pytestmark = pytest.mark.browser

OpenPage = Callable[..., Page]
FEWEST = 50
# What a line, a path or a name can hold.
LINES = [payload.replace("\n", " ").replace("\x00", "") for payload in PAYLOADS]


def test_there_are_as_many_payloads_as_the_tests_rely_on() -> None:
    assert len(set(PAYLOADS)) >= FEWEST and len(set(LINES)) >= FEWEST
    assert all("hacked" in payload for payload in PAYLOADS)


def answers_with(page: Page, address: str, values: dict[str, Any]) -> None:
    """Have the server's JSON at `address` hold what it would hold if somebody put it there."""

    def fulfil(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=json.dumps(values))

    page.route(address, fulfil)


def test_as_questions_and_as_what_a_model_and_plugins_say_of_them(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    words = " ".join(LINES)
    for prefix in ("", "rewritten:", "suggest:", "learn:name=", "plugged:", "revise:"):
        ask(page, f"{prefix}{words}"[:19_000])
        answered(page)
    for button in page.get_by_role("button", name="Details").all():
        button.click()
    expect(page.locator(".details-facts").nth(1)).to_contain_text(LINES[0])
    expect(page.locator(".learnt")).to_contain_text(LINES[3])
    expect(page.locator(".turn-notice").last).to_contain_text(LINES[3])
    unharmed(page)
    page.reload()
    expect(page.locator(".turn")).to_have_count(6)
    unharmed(page)


def test_each_as_a_question_of_its_own(scripted: Server, open_page: OpenPage) -> None:
    """In the bubble, the outline, the title and the list."""
    page = open_page(scripted.address)
    assert scripted.chat is not None
    ask(page, "one")
    answered(page)
    conversation = scripted.chat.asked[0]["conversation"]
    for payload in PAYLOADS:
        list(scripted.chat.ask(AskOptions(payload, conversation=conversation)))
        list(scripted.chat.ask(AskOptions(payload, conversation=f"c{abs(hash(payload))}")))
    page.reload()
    expect(page.locator(".turn")).to_have_count(len(PAYLOADS) + 1)
    expect(page.locator("#outline li")).to_have_count(len(PAYLOADS) + 1)
    assert page.locator("#conversations .title").count() >= FEWEST
    unharmed(page)


def test_each_as_an_answer_and_as_code_in_it(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    fence = "`" * 6
    code = "\n\n".join(f"{fence}html\n{payload}\n{fence}" for payload in PAYLOADS)
    for text in ("\n\n".join(PAYLOADS), code):
        ask(page, f"say:{text}"[:19_900])
        answered(page)
        unharmed(page)
    assert page.locator(".code-block").count() >= FEWEST
    page.keyboard.press("Control+Shift+Semicolon")
    unharmed(page)


def test_as_lines_of_a_file_and_as_names_of_files(
    scripted: Server, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fakes.FILES, "src/all.html", ("html", "\n".join(LINES)))
    monkeypatch.setitem(fakes.FILES, "src/all.py", ("python", "\n".join(LINES)))
    page = open_page(f"{scripted.address}/?file=src/all.html&lines=1-9")
    for name in ("all.html", "all.py"):
        page.goto(f"{scripted.address}/?file=src/{name}&lines=1-9")
        expect(page.locator("#panel-title")).to_contain_text(name)
        assert until(lambda: page.locator(".source .row").count() >= FEWEST)
        unharmed(page)
    answers_with(page, "**/api/skipped?**", {
        "total": len(LINES), "groups": [{"reason": LINES[3], "count": len(LINES), "paths": LINES}],
    })  # fmt: skip
    page.locator("#show-skipped").click()
    page.locator(".groups summary").click()
    expect(page.locator(".groups li")).to_have_count(len(LINES))
    unharmed(page)


def test_as_paths_names_reasons_and_messages_of_a_context(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "x")
    answered(page)
    chunks = [
        {"id": str(n), "path": text, "start_line": 1, "end_line": 2, "language": text, "why": text,
         "score": 1.5, "channels": {text: 1}, "characters": 12}
        for n, text in enumerate(LINES)
    ]  # fmt: skip
    hits = [{**chunk, "name": chunk["path"], "kind": chunk["path"], "why": [chunk["path"]],
             "sent": False} for chunk in chunks]  # fmt: skip
    stages = [{"name": "hyde-1", "milliseconds": 1, "outcome": text, "text": text, "model": text,
               "host": text} for text in LINES]  # fmt: skip
    answers_with(page, "**/api/context/**", {
        "text": LINES[3], "chunks": chunks, "dropped": chunks, "hits": hits, "stages": stages,
        "messages": [{"role": text, "parts": [text, text]} for text in LINES],
        "model": f"a/{LINES[3]}", "host": LINES[3], "tokens": {"prompt": 3}, "hyde": "one",
    })  # fmt: skip
    page.get_by_role("button", name="Context").click()
    expect(page.locator(".chunks .where").first).to_contain_text(LINES[0])
    expect(page.locator(".message")).to_have_count(2 * len(LINES))
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.locator(".chunks .exclude").nth(3).click()
    unharmed(page)


def test_as_what_is_found_in_conversations(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    rows = [{"id": text, "title": text, "created": 1, "updated": 1, "turns": 1, "turn": text,
             "snippet": text} for text in LINES]  # fmt: skip
    answers_with(page, "**/api/conversations?**", {"conversations": rows})
    page.get_by_label("Search the conversations").fill("hacked")
    expect(page.locator("#conversations-found li")).to_have_count(len(LINES))
    assert page.locator("#conversations-found mark").count() >= FEWEST
    unharmed(page)


def test_as_what_is_stored(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    receivers = [{"part": text, "name": text, "host": text, "local": False} for text in LINES]
    answers_with(page, "**/api/privacy", {
        "conversations": 1, "repositories": 1, "turns": 1, "thumbs": 0, "vectors": 0,
        "cached": None, "profile": {text: text for text in LINES}, "folder": LINES[3],
        "state_bytes": 1, "redis": LINES[4], "receivers": receivers, "plugins": True,
        "keys_file": LINES[5],
    })  # fmt: skip
    answers_with(page, "**/api/privacy/everything", {
        "counts": {"facts": 1}, "searched_files": 1, "searched_bytes": 1, "found": LINES,
        "kept": LINES, "problems": LINES,
    })  # fmt: skip
    page.get_by_role("button", name="What is stored").click()
    expect(page.locator("#privacy-body dt", has_text=LINES[3]).first).to_be_visible()
    page.get_by_role("button", name="Everything").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator(".privacy-result p")).to_have_count(3 * len(LINES) + 2)
    unharmed(page)


def test_as_what_may_be_mentioned_and_as_names_in_the_tree(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    items = [{"kind": "symbol", "text": text, "label": text, "detail": text, "path": text,
              "line": 1, "end_line": 2, "what": text} for text in LINES]  # fmt: skip
    answers_with(page, "**/api/complete?**", {"items": items, "ready": True})
    answers_with(page, "**/api/tree?**", {
        "path": "", "folders": [{"name": t, "path": f"{t}/", "files": 1} for t in LINES],
        "files": [{"name": t, "path": t} for t in LINES], "ready": True,
    })  # fmt: skip
    mentions = [{"text": f"m{n}", "kind": "file", "path": text, "line": 0, "end_line": 0,
                 "places": 1, "included": "", "held": 0, "lines": 0}
                for n, text in enumerate(LINES)]  # fmt: skip
    answers_with(page, "**/api/mentions?**", {"mentions": mentions})
    field = page.locator("#question")
    field.press_sequentially("@ha")
    expect(page.locator("#mentions [role=option]").first).to_be_visible()
    unharmed(page)
    page.keyboard.press("Enter")
    unharmed(page)
    field.fill(" ".join(f"@m{n}" for n in range(len(LINES))))
    expect(page.locator("#mention-chips li").nth(3)).to_be_visible()
    unharmed(page)
    page.locator("#files-toggle").click()
    expect(page.locator("#files-tree [role=treeitem]").first).to_be_visible()
    page.keyboard.press("Control+p")
    unharmed(page)


def test_as_examples_and_as_names_of_repositories(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    answers_with(page, "**/api/examples?**", {"questions": LINES})
    rows = [{"id": text, "open": False, "name": text, "path": text, "state": text, "files": 1,
             "units": 1, "references": 1, "bytes_on_disk": 1, "updated_at": 1, "problem": text}
            for text in LINES]  # fmt: skip
    answers_with(page, "**/api/repos", {"current": "", "repositories": rows})
    page.reload()
    expect(page.locator("#examples li")).to_have_count(len(LINES))
    unharmed(page)
    page.goto(f"{scripted.address}/repositories")
    expect(page.locator("#repositories li")).to_have_count(len(LINES))
    unharmed(page)


def test_as_errors(scripted: Server, open_page: OpenPage) -> None:
    page = open_page(scripted.address)
    expecting(page, "500")
    error = {"message": " ".join(LINES), "hint": " ".join(LINES), "code": LINES[3]}
    page.route(
        "**/chat/stream",
        lambda route: route.fulfill(
            status=500, content_type="application/json", body=json.dumps({"error": error})
        ),
    )
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text(LINES[3])
    unharmed(page)


def test_an_exported_conversation_is_a_file_and_never_a_page(
    scripted: Server, open_page: OpenPage
) -> None:
    page = open_page(scripted.address)
    ask(page, "title")
    answered(page)
    ask(page, "say:" + "\n\n".join(PAYLOADS))
    answered(page)
    for name in ("Markdown", "JSON"):
        with page.expect_download() as waited:
            choose_from_menu(page, "title", f"Export as {name}")
        assert "hacked" in Path(waited.value.path()).read_text(encoding="utf-8")
    unharmed(page)
    conversation = scripted.chat.asked[0]["conversation"] if scripted.chat else ""
    for kind in ("markdown", "json"):
        reply = page.request.get(
            f"{scripted.address}/api/conversations/{conversation}/export?format={kind}"
        )
        assert reply.headers["content-disposition"].startswith("attachment")
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "html" not in reply.headers["content-type"]
