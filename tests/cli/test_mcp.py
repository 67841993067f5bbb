"""The Model Context Protocol, driven by its official client."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from serving import PATIENT, client_of
from waiting import AT_ONCE, until

from codeqa import mcp
from codeqa.cli import mcp as mcp_command
from codeqa.code.tools import TOOLS

if TYPE_CHECKING:
    from chat_kit import Listener, Open
    from cli_shop import Command, Served

    from codeqa.engine import Engine

pytest_plugins = ("cli_shop", "chat_fixtures")
# Loading it takes a second, in each process that collects tests.
pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="mcp is not installed")

Work = Callable[[Any], Coroutine[Any, Any, Any]]


def apart(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Its result, from a thread of its own: tests of the page leave a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def over_stdio(data: Path, arguments: list[str], work: Work) -> Any:
    """What `work` makes of a session with `codeqa mcp`, started as an agent starts it."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def run() -> Any:
        environment = {**os.environ, "CODEQA_DATA": str(data)}
        program = ["-c", PATIENT, "mcp", *arguments]
        server = StdioServerParameters(command=sys.executable, args=program, env=environment)
        async with Client(stdio_client(server)) as client:
            return await work(client)

    return apart(run())


async def search(client: Any) -> None:
    assert "search_code" in client.instructions
    hits = await client.call_tool("search_code", {"query": "put an article into a basket"})
    assert "store/basket.py" in hits.content[0].text and "add_article" in hits.content[0].text


async def use_the_tools(client: Any) -> None:
    await search(client)
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == [*TOOLS, "ask", "review"]
    for name, tool in TOOLS.items():
        assert tools[name].description == tool.description
        assert tools[name].input_schema == tool.schema()
    for name, given, said in (
        ("grep", {"path": "store/"}, "`pattern` is missing"),
        ("open_file", {"path": "../secret"}, "No indexed file"),
        ("review", {}, "The issue is empty."),
        ("ask", {"question": "x", "effort": "huge"}, "`effort` cannot be used"),
        ("grap", {}, "There is no tool 'grap'. The tools are: "),
    ):
        wrong = await client.call_tool(name, given)
        assert wrong.is_error and said in wrong.content[0].text, name
    issue = {"title": "The total price is wrong", "body": "With two articles. " * 400}
    review = (await client.call_tool("review", issue)).content[0].text
    assert "store/basket.py" in review and "Likely to change" in review
    answered = await client.call_tool("ask", {"question": "what does total_price do?"})
    assert "[store/basket.py:" in answered.content[0].text


def test_a_server_answers_agents_of_this_machine_and_no_other_origin(
    served: Served, shop: Path
) -> None:
    from mcp.client.client import Client

    async def over_http() -> None:
        async with Client(f"http://127.0.0.1:{served.port}/mcp") as client:
            await use_the_tools(client)

    data = served.settings.data_dir
    over_stdio(data, [str(shop)], search)
    assert "/api/terminal/hello" in served.asked and "/mcp" in served.asked
    served.asked.clear()
    apart(over_http())
    assert set(served.asked) == {"/mcp"}
    kept = b"".join(file.read_bytes() for file in data.glob("state.sqlite*"))
    assert b"what does total_price do" not in kept, "what an agent asks is not kept"
    for other in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        refused = served.client.post("/mcp", json={"method": "ping", "id": 1}, headers=other)
        assert refused.status_code in (403, 421)
    client = served.client
    batch = [request(1, "ping"), {"method": "notifications/initialized"}, request(2, "ping")]
    assert [one["id"] for one in client.post("/mcp", json=batch).get_json()] == [1, 2]
    assert client.post("/mcp", json=batch[1]).status_code == 202
    assert client.post("/mcp", json={"id": 1, "result": {}}).data == b""
    broken = client.post("/mcp", data="{", content_type="application/json")
    assert broken.status_code == 400 and broken.get_json()["error"]["code"] == mcp.UNREADABLE
    noted = request(1, "tools/list", _meta={"progressToken": 7})
    streamed = client.post("/mcp", json=noted, headers={"Accept": "text/event-stream"})
    assert streamed.mimetype == "text/event-stream"
    assert (
        len(json.loads(streamed.text.removeprefix("data: "))["result"]["tools"]) == len(TOOLS) + 2
    )
    assert client.get("/mcp").status_code == client.delete("/mcp").status_code == 405
    deep = "[" * 100_000 + "]" * 100_000
    answer = served.client.post("/mcp", data=deep, content_type="application/json")
    assert answer.status_code == 400


def request(number: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_lines_of_json_are_answered_each_and_several_repositories_as_one(
    shop: Path, shop_codeqa: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a server, and without a client's library."""
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mcp_command, "gc", Mock())  # it is switched off, for a process of its own

    def told(messages: Sequence[object], *arguments: str | Path) -> tuple[list[Any], str]:
        lines = ["\ufeff", "", "\r", " ", "no JSON", *map(json.dumps, messages)]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
            patch.setattr(sys, "stdout", sys.stdout)
            done = shop_codeqa("mcp", *arguments)
        return [json.loads(line) for line in done.out.splitlines()], done.err

    grep = request(3, "tools/call", name="grep", arguments={"pattern": "PayOrder"})
    hello = request(1, "initialize", protocolVersion="2024-11-05")
    more = [{"method": "notifications/initialized"}, request(2, "ping"), request(4, "prompts/list")]
    more += [request(5, "surprise"), {"jsonrpc": "2.0", "id": 9, "result": {}}]
    answers, err = told([hello, grep, *more], shop.name, "--repo", tmp_path / "bare")
    by_id = {one["id"]: one for one in answers}
    assert len(answers) == 6 and set(by_id) == {None, 1, 2, 3, 4, 5}
    assert by_id[None]["error"]["code"] == mcp.UNREADABLE
    assert by_id[1]["result"]["protocolVersion"] == "2024-11-05"
    assert f"{shop}, {tmp_path / 'bare'}" in by_id[1]["result"]["instructions"]
    assert by_id[2]["result"] == {} and by_id[4]["result"] == {"prompts": []}
    assert by_id[5]["error"]["code"] == mcp.UNKNOWN_METHOD
    assert "my-shop/store/checkout.go" in by_id[3]["result"]["content"][0]["text"]
    assert str(shop) in err
    answers, err = told([grep])
    assert answers == [] and "No repository was given" in err, "the last one used is not meant"
    answers, err = told([request(1, "tools/list"), grep], tmp_path / "bare")
    (refused,) = (one for one in answers if one["id"] == 3)
    assert "codeqa index" in refused["result"]["content"][0]["text"] and "codeqa index" in err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": 1, "method": "ping"}', {}),
        ('\ufeff{"id": 1, "method": "ping", "params": [1]}\r', {}),
        ('{"id": "\\ud800", "method": "ping"}', {}),
        ('{"id": null, "method": "notifications/initialized"}', None),
        ('{"method": "notifications/cancelled", "params": {"requestId": {}}}', None),
        ('{"id": 5, "result": {}}', None),
        ('{"id": 5, "error": {"code": 1, "message": "no"}}', None),
        ('[{"method": "notifications/initialized"}]', None),
        ('{"id": 1, "method": "resources/list"}', {"resources": []}),
        ('{"id": 1, "method": "resources/templates/list"}', {"resourceTemplates": []}),
        ('{"id": 1, "method": "logging/setLevel"}', mcp.UNKNOWN_METHOD),
        ('{"id": 1, "method": "server/discover"}', mcp.UNKNOWN_METHOD),
        ("{'id': 1}", mcp.UNREADABLE),
        ('{"id": 1}{"id": 2}', mcp.UNREADABLE),
        ("Content-Length: 40", mcp.UNREADABLE),
        ("[" * 100_000, mcp.UNREADABLE),
        ("null", mcp.INVALID),
        ("[]", mcp.INVALID),
        ('{"id": 1}', mcp.INVALID),
        ('{"id": [1], "method": "ping"}', mcp.INVALID),
    ],
)
def test_each_message_gets_the_reply_of_the_protocol(line: str, told: Any) -> None:
    reply = mcp.answer(mcp.read(line.encode()), "shop", Mock())
    assert isinstance(reply, dict) or reply is told is None
    if isinstance(reply, dict):
        assert told == (reply["error"]["code"] if "error" in reply else reply["result"])
        assert (reply["id"] is None) == (told in (mcp.UNREADABLE, mcp.INVALID))


def test_a_client_of_any_version_is_told_one_that_it_may_know() -> None:
    for version in (*mcp.VERSIONS, "2024-10-07", "2099-01-01", None, 5, {}):
        hello: Any = mcp.answer(request(1, "initialize", protocolVersion=version), "shop", Mock())
        expected = version if version in mcp.VERSIONS else mcp.VERSIONS[0]
        assert hello["result"]["protocolVersion"] == expected


def test_a_call_that_takes_long_is_told_to_go_on_where_that_was_asked_for() -> None:
    may_end = threading.Event()
    for token in (7, "a", 0):
        may_end.clear()
        message = request(1, "tools/call", _meta={"progressToken": token})
        parts = mcp.with_progress(message, lambda: may_end.wait() and {"id": 1}, 0.0)
        (first, second) = (next(parts)["params"] for _ in range(2))
        assert first["progressToken"] == token and first["progress"] < second["progress"]
        may_end.set()
        *_, last = parts
        assert last == {"id": 1}
    for params in ({}, {"_meta": None}, {"_meta": {"progressToken": {}}}, [1]):
        assert list(mcp.with_progress({"params": params}, dict[str, str], 0.0)) == []


class Agent:
    """A session of `codeqa mcp` in this process, and what it writes."""

    def __init__(self, open_: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mcp_command, "gc", Mock())
        monkeypatch.setattr(mcp_command, "ENDING_SECONDS", AT_ONCE)
        monkeypatch.setattr(mcp_command.served, "post", lambda *_: None)
        incoming, sending = os.pipe()
        self.incoming, self.written = os.fdopen(incoming, "rb"), io.BytesIO()
        self.sending = os.fdopen(sending, "wb", buffering=0)
        session = mcp_command._Session(["shop"], self.written)
        session._open = open_  # type: ignore[method-assign]
        self.thread = threading.Thread(target=session.run, args=(self.incoming,))
        self.thread.start()

    def send(self, message: object) -> None:
        self.sending.write(json.dumps(message).encode() + b"\n")

    def has_said(self, id_: int) -> bool:
        return any(
            one["id"] == id_ for one in map(json.loads, self.written.getvalue().splitlines())
        )

    def end(self) -> None:
        self.sending.close()
        self.thread.join()
        self.incoming.close()


def test_a_cancelled_question_is_stopped_and_gets_no_reply(
    opened: Open, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener.during = lambda: until(lambda: listener.last.cancelled())
    agent = Agent(lambda: opened(generator=listener), monkeypatch)
    question = {"name": "ask", "arguments": {"question": "how long do sessions live?"}}
    agent.send(request(1, "tools/call", **question))
    until(lambda: listener.asked)
    agent.send(request(2, "ping"))
    until(lambda: agent.has_said(2))
    agent.send({"method": "notifications/cancelled", "params": {"requestId": "1"}})
    agent.send(request(3, "ping"))
    until(lambda: agent.has_said(3))
    assert not listener.last.cancelled(), "another one was meant"
    agent.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
    until(lambda: listener.last.cancelled())
    agent.end()
    assert not agent.has_said(1)


def test_the_end_of_the_input_stops_a_question_and_lets_a_look_end(
    opened: Open, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener.during = lambda: until(lambda: listener.last.cancelled())
    agent = Agent(lambda: opened(generator=listener), monkeypatch)
    question = {"name": "ask", "arguments": {"question": "how long do sessions live?"}}
    agent.send(request(1, "tools/call", **question))
    until(lambda: listener.asked)
    agent.send(request(2, "tools/call", name="grep", arguments={"pattern": "session"}))
    agent.end()
    assert listener.last.cancelled() and agent.has_said(2)


def test_over_http_a_question_ends_when_it_is_cancelled_or_the_client_leaves(
    listened: Engine, listener: Listener
) -> None:
    client = client_of(listened.settings, listened)
    hello = client.post("/mcp", json=request(0, "initialize"))
    at = {"Mcp-Session-Id": hello.headers["Mcp-Session-Id"]}
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    ask = request(1, "tools/call", name="ask", arguments={"question": "how long do sessions live?"})

    def from_another() -> None:
        headers: dict[str, str]
        for headers in ({}, {"Mcp-Session-Id": "other"}):
            client.post("/mcp", json=cancel, headers=headers)
        assert not listener.last.cancelled()

    def from_itself() -> None:
        client.post("/mcp", json=cancel, headers=at)
        assert listener.last.cancelled()

    listener.during = from_another
    assert not client.post("/mcp", json=ask, headers=at).get_json()["result"]["isError"]
    listener.during = from_itself
    assert client.post("/mcp", json=ask, headers=at).get_json()["result"]["isError"]
    listener.during = lambda: None
    gone = {"waitress.client_disconnected": lambda: True}
    assert client.post("/mcp", json=ask, environ_overrides=gone).get_json()["result"]["isError"]


def test_what_fails_unexpectedly_is_told_and_logged_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine: Any = partial(int, "burrow")
    told = mcp.answer(request(1, "tools/call", name="grep"), "shop", engine)
    assert told is not None and told["error"]["code"] == mcp.FAILED
    assert "literal" not in str(told) + caplog.text and "ValueError" in caplog.text
