"""The HTTP interface, through Flask's client: addresses, protocol, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from browser.fakes import ANSWER, FILES, FakeEngine
from browser.payloads import PAYLOADS
from flask.testing import FlaskClient
from serving import client_of

from codeqa.chat.events import Event, Stopped, Token, Waiting
from codeqa.chat.record import Done, TurnRecord
from codeqa.chat.values import AskOptions
from codeqa.errors import SettingsError
from codeqa.llm.providers import ModelChoice
from codeqa.render import split_blocks
from codeqa.settings import Settings, load_settings
from codeqa.types import Skipped
from codeqa.web import ai_sdk, security
from codeqa.web.ai_sdk import encode_stream
from codeqa.web.app import create_app
from codeqa.web.board import ConversationKey, LocalBoard
from codeqa.web.errors import RequestRefusedError
from codeqa.web.questions_api import QuestionBody
from codeqa.web.run import AnswerRun, Runs

pytest_plugins = ("web_kit",)

TOKEN = "correct horse battery"


@pytest.fixture
def guarded(data_dir: Path, fake_engine: FakeEngine) -> FlaskClient:
    """A client of a server that was started with a token, for everybody in the network."""
    settings = load_settings(data=data_dir, token=TOKEN, host="0.0.0.0")
    return client_of(settings, fake_engine)


def stream(client: FlaskClient, question: str | None, **more: Any) -> list[str]:
    response = client.post("/chat/stream", json={"question": question, **more})
    assert response.status_code == 200, response.text
    return response.get_data(as_text=True).splitlines()


def annotations(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(text[2:])[0] for text in lines if text.startswith("8:")]


def error_of(response: Any, status: int) -> dict[str, str]:
    """The one shape of an error, checked."""
    assert response.status_code == status
    assert response.is_json and set(response.json) == {"error"}
    error = response.json["error"]
    assert set(error) == {"code", "message", "hint"}
    assert error["code"] and error["message"] and "Traceback" not in response.text
    return error  # type: ignore[no-any-return]


# The stream


def test_the_stream_is_exactly_the_protocol(client: FlaskClient) -> None:
    response = client.post("/chat/stream", json={"question": "@codebase say:ab \u2713\nc"})
    assert response.headers["x-vercel-ai-data-stream"] == "v1"
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.text.splitlines() == [
        '8:[{"stage":"classified","intent":"knowledge_base","confidence":0.92}]',
        '8:[{"stage":"retrieved","retrieval_info":{"num_docs":4,"similar_queries":2}}]',
        '8:[{"stage":"generating"}]',
        '0:"ab \u2713\\nc"',
        '8:[{"intent":"knowledge_base","confidence":0.92,"retrieval_info":{"num_docs":4,'
        '"similar_queries":2},"query_tags":["codebase"]}]',
        'e:{"finishReason":"stop"}',
        'd:{"finishReason":"stop"}',
    ]


def test_version_5_of_the_ai_sdk_gets_its_own_stream(client: FlaskClient) -> None:
    asked = {
        "id": "m",
        "role": "user",
        "parts": [{"type": "text", "text": "@codebase say:ab \u2713"}],
    }
    from_sdk = {"id": "c", "messages": [asked], "trigger": "submit-message"}
    for body in (
        from_sdk,
        {"messages": [asked]},
        {"question": "@codebase say:ab \u2713", "trigger": "x"},
    ):
        response = client.post("/chat/stream", json=body)
        assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
        assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        *events, end = response.text.removesuffix("\n\n").split("\n\n")
        parts = [json.loads(event.removeprefix("data: ")) for event in events]
        data = [part.pop("data") for part in parts if part["type"] == "data-codeqa"]
        assert end == "data: [DONE]" and data[-1]["query_tags"] == ["codebase"]
        assert [part for part in parts if part != {"type": "data-codeqa"}] == [
            {"type": "start"}, {"type": "start-step"}, {"type": "text-start", "id": "0"},
            {"type": "text-delta", "id": "0", "delta": "ab \u2713"},
            {"type": "text-end", "id": "0"}, {"type": "finish-step"}, {"type": "finish"},
        ]  # fmt: skip
    failed = client.post("/chat/stream", json={"question": "fail", "trigger": "x"}).text
    assert '{"type":"error","errorText":"It did not work. Try it again."}' in failed
    assert "text-" not in failed and failed.endswith("data: [DONE]\n\n")
    old = {"messages": [{**asked, "content": "@codebase x"}]}
    assert client.post("/chat/stream", json=old).headers["x-vercel-ai-data-stream"] == "v1"


def test_an_error_ends_the_stream_with_its_message(client: FlaskClient) -> None:
    assert stream(client, "fail")[1:] == [
        '3:"It did not work. Try it again."',
        'e:{"finishReason":"error"}',
        'd:{"finishReason":"error"}',
    ]
    crashed = stream(client, "crash")
    assert crashed[-1] == 'd:{"finishReason":"error"}'
    assert "secret" not in "".join(crashed) and crashed[-3].startswith("3:")


def test_that_a_model_is_waited_for_is_told_to_a_page_and_to_no_other_client() -> None:
    wait = {"text": "api.example.com asks to wait 70 s", "seconds": 70, "begins": True}
    events = [Waiting(**wait), Token("a"), Done(TurnRecord())]
    plain = [line[:2] for line in encode_stream(events)]
    assert plain == [b"0:", b"8:", b"e:", b"d:"], "what it tells at its end is the one annotation"
    first, *_ = encode_stream(events, cite=lambda *_: None)
    (sent,) = json.loads(first[2:])
    assert sent == {"stage": "waiting", **wait, "milliseconds": sent["milliseconds"]}


@pytest.mark.parametrize("row", ["- item {}\n", "| {} | b |\n"])
def test_a_block_is_not_parsed_again_for_each_of_its_lines(
    row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []

    def counting(text: str) -> tuple[list[str], str]:
        parsed.append(len(text))
        return split_blocks(text)

    monkeypatch.setattr(ai_sdk, "split_blocks", counting)
    text = "| a | b |\n| - | - |\n" * row.startswith("|") + "".join(map(row.format, range(400)))
    renderer = ai_sdk.BlockRenderer(lambda path, start, end: None)
    blocks = [block for line in text.splitlines(True) for block in renderer.feed(line)]
    blocks += renderer.finish()
    assert sum(block["block"]["length"] for block in blocks) == len(text)
    assert sum(parsed) < 20 * len(text)


def test_an_answer_of_which_nobody_reads_a_line_frees_its_conversation(
    settings: Settings, fake_engine: Any
) -> None:
    runs, key = Runs(settings, LocalBoard()), ConversationKey("repository", "user", "conversation")

    def begin() -> AnswerRun:
        return runs.start(fake_engine, AskOptions("hello"), key, lambda: False)

    unread = begin()
    with pytest.raises(RequestRefusedError, match="still being answered"):
        begin()
    unread.close()
    begin().close()


def test_any_text_fits_on_one_line_and_stopping_ends_the_stream_properly() -> None:
    text = 'a"\n\r\u2028\u2029\x00\ud800\U0001f600\\'
    sent, *rest = encode_stream([Token(text), Stopped()])
    assert rest == [b'e:{"finishReason":"stop"}\n', b'd:{"finishReason":"stop"}\n']
    assert sent.count(b"\n") == 1
    assert json.loads(sent[2:].decode()) == text.replace("\ud800", "?")


def test_only_a_client_that_asks_receives_rendered_blocks(client: FlaskClient) -> None:
    assert not any("block" in value for value in annotations(stream(client, "x")))
    values = annotations(stream(client, "x", render=True))
    blocks = [value["block"] for value in values if "block" in value]
    indexes = [block["index"] for block in blocks]  # items of a list come under that of their list
    assert indexes == sorted(indexes) and {*indexes} == {*range(max(indexes) + 1)}
    assert indexes.count(5) == 3
    html = "".join(block["html"] for block in blocks)
    assert 'href="/?repo=store-0123abcd&amp;file=src/store/sessions.py&amp;lines=25-33"' in html
    assert "citation unverified" in html and "<table>" in html
    answer = "One \U0001f600 two\n\n```py\nx = 1\n```\n\n- a\n- b\n\nend"
    values = annotations(stream(client, f"say:{answer}", render=True))
    lengths = [value["block"]["length"] for value in values if "block" in value]
    assert sum(lengths) == len(answer.encode("utf-16-le")) // 2


def test_a_page_also_receives_times_and_what_the_answer_came_from(client: FlaskClient) -> None:
    values = annotations(stream(client, "x", render=True, rerank=True, mode="review"))
    stages = [value["stage"] for value in values if "stage" in value]
    told = [one for one in stages if one != "step"]
    assert told == ["asked", "classified", "retrieved", "generating"]
    assert all(v["milliseconds"] >= 0 for v in values if "stage" in v)
    last = values[-1]
    more = {"model", "host", "generator", "reranker", "notice", "tokens", "mode"}
    assert more <= set(last) and not more & set(annotations(stream(client, "x"))[-1])
    assert (last["turn"], last["reranker"], last["mode"]) == ("turn-1", "built-in", "review")
    assert last["coverage"] and last["citations"]


def test_an_error_reaches_a_page_with_its_hint_and_the_turn_that_keeps_what_had_come(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    error = {"message": "It did not work.", "hint": "Try it again.", "code": "error"}
    assert {"error": error, "turn": ""} in annotations(stream(client, "fail", render=True))
    fake_engine.models.choose(ModelChoice("openai", "gpt-4o"))
    last = annotations(stream(client, "modelfail", render=True))[-1]
    assert last["turn"].startswith("turn-") and "key" in last["error"]["message"]
    assert not any("turn" in value for value in annotations(stream(client, "modelfail")))


def test_all_that_a_question_can_wish_for_reaches_the_chat(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    wishes = {"retrieval": "auto", "strict": True, "after": "turn-1", "mode": "plan",
              "replaces": "turn-0", "conversation": "c",
              "pin": ["a.py:1-2"], "exclude": ["b c.py:3-40", "d:1:2-2"]}  # fmt: skip
    stream(client, "x", without_model="true", **wishes)
    asked = fake_engine.chat.asked[-1]
    assert {name: asked[name] for name in wishes} == wishes
    assert (asked["use_model"], asked["user"]) == (False, "local")
    stream(client, "x", retrieval=None, strict="false", after="", pin=[], exclude=None)
    plain = {"retrieval": "", "strict": False, "after": "", "mode": "", "replaces": "",
             "pin": [], "exclude": [], "use_model": True}  # fmt: skip
    assert {name: fake_engine.chat.asked[-1][name] for name in plain} == plain


def test_the_first_of_question_query_and_messages_with_words_is_asked(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    thought = {"type": "reasoning", "text": "no"}
    parts = [{"type": "text", "text": "second "}, {"type": "file"}, thought, {"text": "question"}]
    messages = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": None},
        {"role": "user", "parts": parts},
    ]
    assert client.post("/chat/stream", json={"messages": messages}).status_code == 200
    assert fake_engine.chat.asked[-1]["question"] == "second question"
    for empty in ("", " \n", None):
        stream(client, empty, query="the query", messages=messages)
        assert fake_engine.chat.asked[-1]["question"] == "the query"
        stream(client, empty, query=empty, messages=messages)
        assert fake_engine.chat.asked[-1]["question"] == "second question"


def test_an_answer_that_a_hook_changed_reaches_the_page_rendered(client: FlaskClient) -> None:
    values = annotations(stream(client, "revise:**b** <i>", render=True))
    assert values[-1]["revised"] == "**b** <i>"
    assert values[-1]["revised_html"].strip() == "<p><strong>b</strong> &lt;i&gt;</p>"
    assert "revised_html" not in annotations(stream(client, "x", render=True))[-1]


# In one piece


def test_a_batch_answer_comes_with_what_it_rests_on(client: FlaskClient) -> None:
    answer = client.post("/chat", json={"question": "@codebase x", "conversation": "c"}).json
    assert set(answer) == {
        "response", "turn", "intent", "confidence", "retrieval_info", "citations", "notice",
    }  # fmt: skip
    assert answer["response"] == ANSWER and answer["intent"] == "knowledge_base"
    assert answer["retrieval_info"] == {"num_docs": 4, "similar_queries": 2}
    assert answer["citations"][0]["path"] == "src/store/sessions.py"
    (turn,) = client.get("/api/conversations/c").json["turns"]
    assert turn["id"] == answer["turn"]
    assert client.post("/chat", json={"question": "revise:new"}).json["response"] == "new"


def test_a_failed_batch_answer_has_the_shape_of_errors(client: FlaskClient) -> None:
    for question, status in (("fail", 500), ("crash", 500), ("", 400)):
        error = error_of(client.post("/chat", json={"question": question}), status)
        assert "secret" not in json.dumps(error)
    client.application.extensions["codeqa"].answers.closing.set()  # a server that ends says so
    error = error_of(client.post("/chat", json={"question": "slow"}), 503)
    assert error["code"] == "not_ready"


def test_a_question_to_the_root_is_answered_in_one_piece(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    response = client.post("/", json={"query": "@codebase x", "rerank": "true"})
    assert response.json == {"response": ANSWER}
    assert fake_engine.chat.asked[-1]["rerank"] is True
    assert error_of(client.post("/", json={"query": "fail"}), 500)["hint"] == "Try it again."
    first, second = (asked["conversation"] for asked in fake_engine.chat.asked)
    assert first == second and first, "one session is one conversation"


# What else the page asks for


def test_the_status_and_the_skipped_files_tell_what_the_page_shows(
    client: FlaskClient, fake_engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = [
        Skipped("logo.png", "binary"),
        Skipped("<i>font</i>.woff", "binary"),
        Skipped("data/dump.sql", "larger than 1,000,000 bytes"),
    ]
    tables = SimpleNamespace(skipped=lambda: left_out)
    monkeypatch.setattr(fake_engine, "tables", lambda: tables)
    status = client.get("/api/status").json
    assert status["state"] == "ready" and status["files"] == 4 and status["skipped_total"] == 3
    assert status["skipped"]["binary"] == 2 and status["id"] == "store-0123abcd"
    skipped = client.get("/api/skipped").json
    paths = ["<i>font</i>.woff", "logo.png"]
    assert skipped["total"] == 3
    assert skipped["groups"][0] == {"reason": "binary", "count": 2, "paths": paths}


def test_an_indexed_file_or_some_lines_of_it_come_line_by_line_and_no_other(
    client: FlaskClient,
) -> None:
    for path, (_, text) in FILES.items():
        file = client.get("/api/file", query_string={"path": path}).json
        assert len(file["lines"]) == text.count("\n")
        assert "<script" not in "".join(file["lines"]) and file["path"] == path
        assert file["on_disk"] == f"/home/you/src/store/{path}" and file["hosted"]
    for path in ("../../etc/passwd", "/etc/passwd", "nowhere.py", ".git/config"):
        error_of(client.get("/api/file", query_string={"path": path}), 404)
    asked = {"path": "src/store/long.py", "start": 1999, "end": 2000}
    lines = client.get("/api/file", query_string=asked).json["lines"]
    assert [re.sub("<[^>]+>", "", line) for line in lines] == [
        f"value_{n} = {n}" for n in (1999, 2000)
    ]
    beyond = {**asked, "start": 2001, "end": 2002}
    assert client.get("/api/file", query_string=beyond).json["lines"] == []
    error_of(client.get("/api/file", query_string={**asked, "start": 0}), 400)


def test_where_a_file_lies_is_told_on_this_machine_alone(
    tmp_path: Path, fake_engine: FakeEngine
) -> None:
    with client_of(
        load_settings(data=tmp_path, host="192.0.2.7", token="t"), fake_engine
    ) as client:
        sent = {"query_string": {"path": "README.md"}, "headers": {"Authorization": "Bearer t"}}
        assert client.get("/api/file", base_url="http://localhost", **sent).json["on_disk"]
        assert not client.get("/api/file", base_url="http://192.0.2.7", **sent).json["on_disk"]


def test_every_address_but_the_pages_is_described_with_what_it_takes(client: FlaskClient) -> None:
    document = client.get("/openapi.json").json
    described = set(document["paths"])
    for rule in client.application.url_map.iter_rules():
        if rule.endpoint != "static" and not rule.endpoint.startswith("pages."):
            assert re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule) in described
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert all(one["summary"] for one in operations)
    assert len({one["operationId"] for one in operations}) == len(operations)
    schemas = document["components"]["schemas"]
    for reference in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)):
        assert reference in schemas
    question = schemas["QuestionBody"]["properties"]
    assert "description" in question["pin"] and "description" in question["repos"]
    assert {} in document["security"], "no token is needed"


def test_health_and_readiness_are_told_apart(client: FlaskClient, fake_engine: FakeEngine) -> None:
    assert client.get("/health").json == {"status": "ok"}
    assert client.get("/ready").status_code == 200
    for state in ("missing", "indexing"):
        fake_engine.index.current = type(fake_engine.index.current)("x", "x", state)
        assert error_of(client.get("/ready"), 503)["code"] == "not_ready"


def test_without_a_repository_the_first_page_is_the_picker_which_takes_folders_alone(
    settings: Settings,
) -> None:
    client = create_app(settings).test_client()
    assert client.get("/").headers["Location"] == "/repositories"
    assert "Choose a repository" in client.get("/repositories").text
    assert error_of(client.get("/api/status"), 409)["code"] == "index_missing"
    for path in ("relative/path", "/nowhere/at/all", "~nobody/x", "\x00", "/" + "x" * 300, "/",
                 "//", "/tmp/.."):  # fmt: skip
        error_of(client.post("/api/repos", json={"path": path}), 400)


def test_a_payload_is_never_markup_in_a_page(client: FlaskClient, fake_engine: FakeEngine) -> None:
    alive = r"window\.hacked=1</script>|<(img|svg|iframe|a)[^>]*(onerror|onload|javascript:)"
    for payload in PAYLOADS:
        fake_engine.location.name = payload
        for response in (client.get("/"), client.get("/", query_string={"repo": payload})):
            assert not re.search(alive, response.text), payload


# Refusals


def test_a_bad_question_is_explained(client: FlaskClient) -> None:
    wrong: list[dict[str, Any]] = [
        {"conversation": 7}, {"mode": "shout"}, {"replaces": {}}, {"retrieval": "always"},
        {"pin": ["a.py"]}, {"exclude": "a.py:1-2"}, {"strict": []}, {"question": ""},
        {"question": 7}, {"question": "x" * 20_001},
    ]  # fmt: skip
    bodies = [json.dumps({"question": "x", **one}) for one in wrong]
    bodies += ["[" * 100_000, "{}", "[]", "x", "null"]
    bodies += ['{"messages": [{"role": "user"}]}', '{"messages": 3}']
    for body in bodies:
        refused = client.post("/chat/stream", data=body, content_type="application/json")
        assert error_of(refused, 400)["hint"], body[:40]


def test_every_refusal_has_the_same_shape(client: FlaskClient, fake_engine: FakeEngine) -> None:
    error_of(client.get("/nowhere"), 404)
    error_of(client.get("/api/context/unknown"), 404)
    error_of(client.get("/static/nowhere.js"), 404)
    error_of(client.get("/api/status?repo=unknown"), 404)
    refused = client.get("/chat/stream")
    error_of(refused, 405)
    assert "POST" in refused.headers["Allow"]
    error_of(client.post("/chat/stream", json="x" * 1_000_001), 413)
    error_of(client.post("/chat/stream", data={"question": "x"}), 415)
    error_of(client.get("/api/file"), 400)


def test_only_this_machine_and_its_names_are_answered(client: FlaskClient) -> None:
    elsewhere = {"REMOTE_ADDR": "192.168.1.20"}
    assert "CODEQA_TOKEN" in error_of(client.get("/", environ_overrides=elsewhere), 403)["hint"]
    for host in ("evil.example", "127.0.0.1.nip.io", "localhost.evil.example", "[::1].evil.example",
                 "localhost:5001@evil.example", "evil.example#localhost", "0.0.0.0", "127.1",
                 "localhost."):  # fmt: skip
        assert client.get("/api/status", headers={"Host": host}).status_code in (400, 421), host
    assert error_of(client.get("/", headers={"Host": "x"}), 421)["code"] == "host"
    for host in ("127.0.0.1:5001", "localhost", "LOCALHOST:80", "[::1]:5001"):
        assert client.get("/health", headers={"Host": host}).status_code == 200


def test_another_page_asks_nothing_and_makes_the_server_do_no_work(
    client: FlaskClient, fake_engine: FakeEngine
) -> None:
    for headers in (
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://localhost:9999"},
        {"Origin": "http://["},
    ):  # fmt: skip
        error_of(client.post("/chat/stream", json={"question": "x"}, headers=headers), 403)
    assert not fake_engine.chat.asked
    for ours in ({}, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}):
        answered = client.post("/chat/stream", json={"question": "x"}, headers=ours)
        assert answered.status_code == 200
    for address in ("/api/status", "/api/models/local", "/v1/models"):
        assert client.get(address, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        for site in ("same-origin", "none"):  # our page, and an address that was typed
            assert client.get(address, headers={"Sec-Fetch-Site": site}).status_code == 200


def test_every_response_carries_the_protecting_headers_and_the_cookie_is_strict(
    client: FlaskClient,
) -> None:
    for address in ("/", "/repositories", "/api/status", "/nowhere", "/static/js/chat_page.js"):
        with client.get(address) as response:
            headers = response.headers
        assert headers["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            "connect-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; "
            "form-action 'self'; frame-ancestors 'none'"
        )
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
    cookie = client.post("/", json={"query": "x"}).headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie


# Token and keys


def test_a_host_that_others_reach_needs_a_token_and_no_other(data_dir: Path) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""):
        with pytest.raises(SettingsError, match="CODEQA_TOKEN"):
            create_app(load_settings(data=data_dir, host=host))
        create_app(load_settings(data=data_dir, host=host, token="one,two"))
    for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.8.9.1"):
        create_app(load_settings(data=data_dir, host=host))
    for host in ("127.0.0.1", "0.0.0.0"):  # commas alone are no token and open no door
        with pytest.raises(SettingsError, match="no token"):
            create_app(load_settings(data=data_dir, token=" , ", host=host))


def test_a_page_behind_a_token_asks_for_it_and_remembers_the_right_one(
    guarded: FlaskClient,
) -> None:
    response = guarded.get("/", headers={"Accept": "text/html"})
    assert response.headers["Location"] == "/login"
    assert "Sign in" in guarded.get("/login").text
    error_of(guarded.get("/api/status"), 401)
    assert guarded.get("/health").status_code == 200
    with guarded.get("/static/css/page.css") as style:
        assert style.status_code == 200
    beside = (f"{security.HELLO_PATH}/x", "/health/x", "/healthy", "/login-as", "/static")
    for path in beside:
        error_of(guarded.get(path), 401)
    program = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/status", headers=program).status_code == 200
    assert guarded.get("/openapi.json", headers=program).json["security"] == [{"token": []}]
    error_of(guarded.get("/api/status", headers={"Authorization": "Bearer x"}), 401)
    assert "token is wrong" in guarded.post("/login", data={"token": "wrong"}).text
    assert guarded.post("/login", data={"token": TOKEN}).headers["Location"] == "/"
    assert guarded.get("/api/status").status_code == 200


def test_guessing_the_token_is_stopped(guarded: FlaskClient) -> None:
    for number in range(5):
        wrong = {"Authorization": f"Bearer guess {number}"}
        error_of(guarded.get("/api/status", headers=wrong), 401)
    assert guarded.post("/login", data={"token": TOKEN}).status_code == 429
    other = {"REMOTE_ADDR": "10.0.0.9"}
    right = guarded.post("/login", data={"token": TOKEN}, environ_overrides=other)
    assert right.status_code == 302


def test_the_secret_key_is_made_once_and_for_its_owner_alone(data_dir: Path) -> None:
    key = security.secret_key(data_dir)
    assert len(key) == 32 and security.secret_key(data_dir) == key
    assert (data_dir / "secret_key").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in data_dir.iterdir()} <= {"secret_key", "secret_key.lock"}
    (data_dir / "secret_key").write_bytes(b"short")  # a damaged one is replaced
    assert len(security.secret_key(data_dir)) == 32


def test_the_log_says_where_something_failed_and_nothing_of_what_was_asked(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterator[Event]:
        yield Token("so far")
        try:
            raise KeyError("wom" + "bats")  # the line of the code itself may be logged
        except KeyError as error:
            raise ValueError("quok" + "kas") from error

    stream = b"".join(encode_stream(broken())).decode()
    assert stream.count("\n3:") == 1 and stream.endswith('d:{"finishReason":"error"}\n')
    app = create_app(settings)
    app.add_url_rule("/broken", view_func=lambda: next(iter([*broken()])))
    assert error_of(app.test_client().get("/broken"), 500)["code"] == "internal"
    assert caplog.text.count("failed: ValueError\n") == caplog.text.count("\nKeyError\n") == 2
    assert "test_web.py" in caplog.text
    assert "wombats" not in caplog.text and "quokkas" not in caplog.text


@pytest.mark.parametrize(
    ("sent", "reranks"),
    [(True, True), ("true", True), ("True", True), ("1", True), (1, True), (False, False),
     ("yes", False), ("on", False), ("TRUE", False), ("0", False), (2, False), ("", False)],
)  # fmt: skip
def test_rerank_is_on_for_what_the_source_system_takes_for_yes(sent: object, reranks: bool) -> None:
    assert QuestionBody.model_validate({"question": "x", "rerank": sent}).rerank is reranks
