"""The Model Context Protocol, driven by its official client."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from serving import PATIENT

from codeqa import mcp
from codeqa.cli import mcp as mcp_command
from codeqa.code.tools import TOOLS

if TYPE_CHECKING:
    from cli_shop import Command, Served

pytest_plugins = ("cli_shop",)
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
        ("grep", {"path": "store/"}, "`pattern` cannot be used"),
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
        lines = ["no JSON", *map(json.dumps, messages)]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
            patch.setattr(sys, "stdout", sys.stdout)
            done = shop_codeqa("mcp", *arguments)
        return [json.loads(line) for line in done.out.splitlines()], done.err

    grep = request(3, "tools/call", name="grep", arguments={"pattern": "PayOrder"})
    hello = request(1, "initialize", protocolVersion="2024-11-05")
    more = [{"method": "notifications/initialized"}, request(2, "ping"), request(4, "prompts/list")]
    answers, err = told([hello, grep, *more], shop.name, "--repo", tmp_path / "bare")
    by_id = {one["id"]: one for one in answers}
    assert len(answers) == 5 and set(by_id) == {None, 1, 2, 3, 4}
    assert by_id[1]["result"]["protocolVersion"] == "2024-11-05"
    assert f"{shop}, {tmp_path / 'bare'}" in by_id[1]["result"]["instructions"]
    assert by_id[2]["result"] == {} and by_id[4]["error"]["code"] == -32601
    assert "my-shop/store/checkout.go" in by_id[3]["result"]["content"][0]["text"]
    assert str(shop) in err
    answers, err = told([grep])
    assert answers == [] and "No repository was given" in err, "the last one used is not meant"
    answers, err = told([request(1, "tools/list"), grep], tmp_path / "bare")
    (refused,) = (one for one in answers if one["id"] == 3)
    assert "codeqa index" in refused["result"]["content"][0]["text"] and "codeqa index" in err


def test_what_fails_unexpectedly_is_told_and_logged_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine: Any = partial(int, "burrow")
    told = mcp.answer(request(1, "tools/call", name="grep"), "shop", engine)
    assert told is not None and told["error"]["code"] == mcp.FAILED
    assert "literal" not in str(told) + caplog.text and "ValueError" in caplog.text
