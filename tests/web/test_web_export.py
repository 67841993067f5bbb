"""A conversation as a file: Markdown that nothing can be hidden in, JSON that holds all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.fakes import FakeEngine
from browser.payloads import PAYLOADS
from cli_shop import ANSWER, QUESTION
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from openai_server import openai_server, stream
from serving import ask
from werkzeug.http import parse_options_header

from codeqa.render import inert_markdown
from codeqa.settings import Settings
from codeqa.text.markdown import code_span, escape
from codeqa.web.app import create_app
from codeqa.web.conversations_api import file_name

pytest_plugins = ("cli_shop", "web_kit")


@pytest.fixture
def shop_client(shop: Path, shop_settings: Settings) -> Iterator[FlaskClient]:
    """A client over the real engine."""
    app = create_app(shop_settings, shop)
    yield app.test_client()
    app.extensions["codeqa"].close()


def exported(client: FlaskClient, kind: str = "markdown", conversation: str = "c") -> Any:
    response = client.get(f"/api/conversations/{conversation}/export?format={kind}")
    assert response.status_code == 200, response.text
    return response


def alive(text: str) -> list[str]:
    """What a reader of Markdown with HTML would load, run or take for markup."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    living = []
    for token in parser.parse(text):
        for part in (token, *(token.children or ())):
            if part.type in ("html_block", "html_inline", "image"):
                living.append(part.content)
            href = str(part.attrs.get("href", "")).strip().lower()
            if ":" in href and not href.startswith(("http:", "https:", "mailto:")):
                living.append(href)
    return living


def test_markdown_holds_questions_answers_and_what_they_rest_on(
    shop_client: FlaskClient, shop: Path
) -> None:
    with openai_server(lambda *_: stream(ANSWER)) as server:
        body = {"provider": "custom", "model": "m", "address": server.base_url}
        shop_client.post("/api/models", json=body)
        ask(shop_client, QUESTION)
        ask(shop_client, "and what does it cost?")
    response = exported(shop_client)
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    text = response.text
    assert text.startswith("# how is an article put into the basket?\n\nmy shop · 20")
    assert "## 1. Question\n\n> @codebase how is an article put into the basket?" in text
    assert "## 1. Answer\n\nIt is appended [store/basket.py:7-9]" in text
    assert "- `store/basket.py:7-9`\n" in text
    assert "- `store/basket.py:900-901` (could not be verified)" in text
    assert "custom/m at 127.0.0.1" in text and " UTC" in text
    assert "## 2. Question\n\n> and what does it cost?" in text
    assert alive(text) == []


def test_citations_are_links_where_the_git_host_is_known(client: FlaskClient) -> None:
    ask(client, QUESTION)
    text = exported(client).text
    lines = "src/store/sessions.py#L25-L33"
    address = f"https://github.com/you/store/blob/{'1' * 40}/{lines}"
    assert f'<a href="{address}">src/store/sessions.py:25-33</a>' in MarkdownIt().render(text)
    assert alive(text) == []


def test_json_holds_everything_and_every_version(shop_client: FlaskClient) -> None:
    ask(shop_client, QUESTION)
    ask(shop_client, "and what does it cost?")
    response = exported(shop_client, "json")
    assert response.headers["Content-Type"] == "application/json"
    opened = shop_client.get("/api/conversations/c").json["turns"]
    assert [turn["id"] for turn in response.json["turns"]] == [turn["id"] for turn in opened]
    for turn, kept in zip(response.json["turns"], opened, strict=True):
        context = shop_client.get(f"/api/context/{turn['id']}").json
        assert turn == {**kept, "context": context}
    assert response.json["turns"][0]["context"]["chunks"]
    first, second = response.json["turns"]
    ask(shop_client, "@codebase who charges the card?", body={"replaces": first["id"]})
    values = exported(shop_client, "json").json
    (used,) = values["turns"]
    assert [turn["id"] for turn in values["others"]] == [first["id"], second["id"]]
    assert "without a language model · other versions are in" in exported(shop_client).text
    assert used["siblings"] == values["others"][0]["siblings"] == [first["id"], used["id"]]
    assert [turn["parent"] for turn in values["others"]] == ["", first["id"]]
    assert values["others"][0]["context"]["chunks"]
    assert "how is an article" not in exported(shop_client).text.partition("## ")[2]


def test_nothing_in_a_conversation_is_alive_in_its_export(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    for payload in PAYLOADS:
        fake_engine.begin_anew()
        ask(client, f"say:{payload}")
        client.post("/api/conversations/c", json={"title": f"T {payload}"[:200]})
        ask(client, f"what is {payload}?")
        assert alive(exported(client).text) == [], payload
    response = exported(client, "json")
    assert response.json["turns"][0]["answer"].startswith(payload.replace("\\ud800", "?")[:5])
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@given(st.text(alphabet="<>a!-[]()`~\"'&:/ \n#*_|\\=?bsx", max_size=120))
def test_no_text_is_alive_once_it_was_made_inert(text: str) -> None:
    assert alive(inert_markdown(text)) == []
    assert alive(f"# {' '.join(escape(text).split())}") == []
    assert alive(f"- {code_span(text)}") == []


@pytest.mark.parametrize(
    "text",
    ["`<b>` and ``a ` <i>``", "```html\n<b>x</b> & ![y](z)\n```", "    <b>code</b>", "a & b",
     "> - [store/basket.py:7-9] *x* https://e.org [y](https://e.org)", "| `<a>` |\n|---|\n| b |"],
)  # fmt: skip
def test_code_and_plain_markdown_stay_as_they_are(text: str) -> None:
    assert inert_markdown(text) == text


def test_an_open_fence_ends_with_its_answer(client: FlaskClient) -> None:
    ask(client, "say:```python\nx = 1")
    ask(client, "say:~~~~\n```\ny = 2")
    text = exported(client).text
    assert text.count("## ") == len([line for line in text.split("\n") if line.startswith("## ")])
    headings = [token.content for token in MarkdownIt().parse(text) if token.type == "inline"]
    assert {"1. Answer", "2. Question", "2. Answer"} <= set(headings)


def test_the_file_is_named_after_the_title_or_it_is_said_why_there_is_none(
    client: FlaskClient,
) -> None:
    ask(client, "what is a session?")
    for kind, ending in (("markdown", "md"), ("json", "json")):
        header = exported(client, kind).headers["Content-Disposition"]
        assert header == f"attachment; filename*=UTF-8''what-is-a-session.{ending}"
    for title, name in (
        ("How does it work?", "How-does-it-work"),
        ("../../etc/passwd", "etc-passwd"),
        ('a"; filename="b.exe', "a-filename-b-exe"),
        ("Größe\r\nX: y", "Größe-X-y"),
        ("日本", "日本"),
        ("...", "conversation"),
        ("x" * 300, "x" * 60),
    ):
        assert file_name(title) == name
        if title.isprintable() and len(title) < 200:
            client.post("/api/conversations/c", json={"title": title})
            header = exported(client).headers["Content-Disposition"]
            assert header.isascii(), "else no server can send it"
            kind, options = parse_options_header(header)
            assert (kind, options["filename"]) == ("attachment", f"{name}.md")
    for address, status in (("unknown/export", 404), ("c/export?format=pdf", 400)):
        refused = client.get(f"/api/conversations/{address}")
        assert refused.status_code == status and refused.json["error"]["hint"]
    for identifier in ("a/export", "x/branch"):  # would be taken for another address
        refused = client.post("/chat", json={"question": "x", "conversation": identifier})
        assert refused.status_code == 400 and "/export" in refused.json["error"]["message"]
