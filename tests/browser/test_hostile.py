"""Nothing that a model, a file, a provider or a person writes runs in the page.

All payloads go through every way in which words of others reach it.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from browser import fakes
from browser.actions import (
    ask,
    choose_from_menu,
    choose_provider,
    choose_radio,
    expecting,
    get_answer,
    ready,
    stop,
)
from browser.conftest import ScriptedServer
from browser.fake_models import HOSTILE
from browser.payloads import PAYLOADS
from playwright.sync_api import Page, expect

FOREIGN = ":is(img, iframe, object, embed, form:not([id]), style, link, script:not([src]))"
FEWEST = 50
# What a line, a path or a name can hold.
LINES = [payload.replace("\n", " ").replace("\x00", "") for payload in PAYLOADS]


def unharmed(page: Page) -> None:
    """Nothing ran; the policy would have stopped it, and nothing even tried."""
    find = "foreign => [window.hacked, document.querySelectorAll(foreign).length]"
    assert page.evaluate(find, f"body {FOREIGN}") == [None, 0]


def replies(page: Page, address: str, values: dict[str, Any], status: int = 200) -> None:
    """Have the server's JSON at `address` hold what it would hold if somebody put it there."""
    body = json.dumps(values)
    page.route(
        address,
        lambda route: route.fulfill(status=status, content_type="application/json", body=body),
    )


def test_there_are_as_many_payloads_as_the_tests_rely_on() -> None:
    assert len(set(PAYLOADS)) >= FEWEST and len(set(LINES)) >= FEWEST
    assert all("hacked" in payload for payload in PAYLOADS)


def test_as_a_question_its_title_and_what_a_model_and_plugins_say_of_it(
    page: Page, scripted: ScriptedServer
) -> None:
    # Each takes what follows it.
    get_answer(page, f"rewritten:suggest:learn:name=plugged:revise:{' '.join(LINES)}")
    page.locator(".stages").click()
    expect(page.locator(".details-body")).to_contain_text(LINES[0])
    for part in (".learnt", ".turn-notice"):
        expect(page.locator(part).last).to_contain_text(LINES[3])
    unharmed(page)
    page.reload()
    ready(page)
    expect(page.locator(".suggestions")).to_contain_text(LINES[3])
    unharmed(page)
    page.get_by_role("button", name="Edit the question").press("Enter")
    unharmed(page)

    title = scripted.chat.all()[0].title
    for payload in ('"><svg onload=window.hacked=1>', "‮</title><script>x</script>"):
        choose_from_menu(page, title, "Rename")
        page.get_by_label("Title of the conversation").fill(payload)
        with page.expect_response(lambda response: response.request.method == "POST") as saved:
            page.keyboard.press("Enter")
        if not saved.value.ok:  # characters that cannot be shown are refused
            expecting(page, "400 (BAD REQUEST)")
            continue
        title = payload
        expect(page.locator("#conversations .current .title")).to_have_text(title)
        unharmed(page)
    choose_from_menu(page, title, "Delete")
    expect(page.locator("#toast")).to_contain_text(title[:20])
    unharmed(page)


def test_each_as_a_question_and_a_title_of_its_own(scripted: ScriptedServer) -> None:
    """In the bubble, the outline, the page's title and the list."""
    for number, payload in enumerate(PAYLOADS):
        scripted.keep(payload, conversation=f"c{number}")
    path = scripted.keep(*PAYLOADS[3:], *PAYLOADS[:3])
    for turn in scripted.chat.turns("c"):
        turn.answer = "short"
    page = scripted.open(path)
    expect(page.locator(".turn")).to_have_count(len(PAYLOADS))
    expect(page.locator("#outline li")).to_have_count(len(PAYLOADS))
    assert page.title().startswith(PAYLOADS[3])
    assert page.locator("#conversations .title").count() >= FEWEST
    unharmed(page)


def test_each_as_an_answer_and_as_code_in_it(page: Page) -> None:
    fence = "`" * 6
    code = [f"{fence}html\n{payload}\n{fence}" for payload in PAYLOADS]
    get_answer(page, "\n\n".join(["say:", *code, *PAYLOADS]))
    unharmed(page)
    assert page.locator(".code-block").count() >= FEWEST


def test_as_lines_of_a_file_and_as_names_of_files(
    scripted: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fakes.FILES, "src/all.html", ("html", "\n".join(LINES)))
    monkeypatch.setitem(fakes.FILES, "src/all.py", ("python", "\n".join(LINES)))
    page = scripted.open("/?file=src/<img src=x onerror=window.hacked=1>.js&lines=1-1")
    expect(page.locator(".source")).to_contain_text("<script>")
    for name in ("all.html", "all.py"):
        page.goto(f"{scripted.address}/?file=src/{name}&lines=1-9")
        expect(page.locator("#panel-title")).to_contain_text(name)
        page.locator(".source .row").nth(FEWEST - 1).wait_for()
        unharmed(page)
    replies(page, "**/api/skipped?**", {
        "total": len(LINES), "groups": [{"reason": LINES[3], "count": len(LINES), "paths": LINES}],
    })  # fmt: skip
    page.locator("#index-state").click()
    page.locator("#show-skipped").click()
    page.locator(".groups summary").click()
    expect(page.locator(".groups li")).to_have_count(len(LINES))
    unharmed(page)
    expecting(page, "404 (NOT FOUND)")
    page.goto(f"{scripted.address}/?c=<img src=x onerror=window.hacked=1>&file={HOSTILE}")
    expect(page.get_by_role("alert")).to_contain_text("no such conversation")
    expect(page.locator("#panel-body")).to_contain_text("not an indexed file")
    unharmed(page)


def test_as_paths_names_reasons_and_messages_of_a_context(scripted: ScriptedServer) -> None:
    page = scripted.open(scripted.keep("say:x"))
    chunks = [
        {"id": str(n), "path": text, "start_line": 1, "end_line": 2, "language": text, "why": text,
         "score": 1.5, "channels": {text: 1}, "characters": 12}
        for n, text in enumerate(LINES)
    ]  # fmt: skip
    hits = [{**chunk, "name": chunk["path"], "kind": chunk["path"], "why": [chunk["path"]],
             "sent": False} for chunk in chunks]  # fmt: skip
    stages = [{"name": "hyde-1", "milliseconds": 999, "outcome": text, "text": text, "model": text,
               "host": text} for text in LINES]  # fmt: skip
    replies(page, "**/api/context/**", {
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


def test_as_what_is_found_stored_and_suggested_and_as_errors(
    page: Page, scripted: ScriptedServer
) -> None:
    rows = [{"id": text, "title": text, "created": 1, "updated": 1, "turns": 1, "turn": text,
             "snippet": text} for text in LINES]  # fmt: skip
    replies(page, "**/api/conversations?**", {"conversations": rows})
    page.get_by_label("Search the conversations").fill("hacked")
    expect(page.locator("#conversations-found li")).to_have_count(len(LINES))
    assert page.locator("#conversations-found mark").count() >= FEWEST
    unharmed(page)

    receivers = [{"part": text, "name": text, "host": text, "local": False} for text in LINES]
    replies(page, "**/api/privacy", {
        "conversations": 1, "repositories": 1, "turns": 1, "thumbs": 0, "vectors": 0,
        "cached": None, "profile": {text: text for text in LINES}, "folder": LINES[3],
        "state": LINES[4], "state_bytes": 1, "redis": LINES[4], "receivers": receivers,
        "plugins": True, "keys_file": LINES[5],
    })  # fmt: skip
    replies(page, "**/api/privacy/everything", {"counts": {"facts": 1}, "problems": LINES})
    page.get_by_role("button", name="What is stored").click()
    expect(page.locator("#privacy-body dt", has_text=LINES[3]).first).to_be_visible()
    page.get_by_role("button", name="Everything").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(page.locator(".privacy-result p")).to_have_count(len(LINES) + 1)
    unharmed(page)
    page.keyboard.press("Escape")

    expecting(page, "500")
    error = {"message": " ".join(LINES), "hint": " ".join(LINES), "code": LINES[3]}
    replies(page, "**/chat/stream", {"error": error}, status=500)
    ask(page, "x")
    expect(page.get_by_role("alert")).to_contain_text(LINES[3])
    unharmed(page)

    repositories = [{"id": text, "open": False, "name": text, "path": text, "state": text,
                     "files": 1, "units": 1, "references": 1, "bytes_on_disk": 1, "updated_at": 1,
                     "problem": text, "url": text, "branch": text,
                     "progress": {"phase": text, "done": 1, "total": 2}}
                    for text in LINES]  # fmt: skip
    replies(page, "**/api/repos", {"current": "", "changeable": True, "repositories": repositories})
    page.goto(f"{scripted.address}/repositories")
    expect(page.locator("#repositories li")).to_have_count(len(LINES))
    unharmed(page)


def test_as_what_may_be_mentioned_and_as_names_in_the_tree(page: Page) -> None:
    items = [{"kind": "symbol", "text": text, "label": text, "detail": text, "path": text,
              "line": 1, "end_line": 2, "what": text} for text in LINES]  # fmt: skip
    replies(page, "**/api/complete?**", {"items": items})
    replies(page, "**/api/tree?**", {
        "path": "", "folders": [{"name": t, "path": f"{t}/", "files": 1} for t in LINES],
        "files": [{"name": t, "path": t} for t in LINES],
    })  # fmt: skip
    mentions = [{"text": f"m{n}", "kind": "file", "path": text, "line": 0, "end_line": 0,
                 "places": 1}
                for n, text in enumerate(LINES)]  # fmt: skip
    replies(page, "**/api/mentions?**", {"mentions": mentions})
    field = page.locator("#question")
    field.press_sequentially("@ha")
    expect(page.locator("#suggestions [role=option]").first).to_be_visible()
    unharmed(page)
    page.keyboard.press("Enter")
    unharmed(page)
    field.fill(" ".join(f"@m{n}" for n in range(len(LINES))))
    expect(page.locator("#mention-chips li").nth(3)).to_be_visible()
    unharmed(page)
    page.locator("#files summary").first.click()
    expect(page.locator("#files li").first).to_be_visible()
    page.keyboard.press("Control+p")
    unharmed(page)


def test_models_and_what_providers_say_are_text(page: Page) -> None:
    expecting(page, "502 (BAD GATEWAY)")
    dialog = choose_provider(page, "Groq")
    dialog.get_by_label("Key", exact=True).fill("wrong")
    dialog.get_by_label("Model", exact=True).fill(PAYLOADS[9])
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text(HOSTILE)
    choose_radio(dialog, re.compile("^Ollama"))
    dialog.get_by_label("Model", exact=True).click()
    dialog.get_by_role("option", name=HOSTILE).click()
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text(HOSTILE)
    dialog.get_by_role("button", name="Use this model").click()
    expect(page.locator("#model-chip-name")).to_have_text(HOSTILE)
    get_answer(page, "x")
    expect(page.locator(".details-body")).to_contain_text(HOSTILE)
    page.get_by_role("button", name="Context").click()
    expect(page.locator("#panel-title")).to_contain_text(HOSTILE)
    unharmed(page)
    ask(page, "silent")
    expect(page.locator(".stages").last).to_contain_text(f"Waiting for {HOSTILE}")
    stop(page)
    ask(page, f"modelfail because:{PAYLOADS[16]}")
    for reloaded in (False, True):
        if reloaded:
            page.reload()
        expect(page.get_by_role("alert")).to_contain_text(PAYLOADS[16])
        unharmed(page)
