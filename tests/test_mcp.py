"""The Model Context Protocol, driven by its official client."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from codeqa.code.tools import TOOLS

if TYPE_CHECKING:
    from cli_shop import Command

pytest.importorskip("mcp")
pytest_plugins = ("cli_shop",)

Work = Callable[[Any], Coroutine[Any, Any, Any]]


def apart(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Its result, from a thread of its own: tests of the page leave a loop running in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def over_stdio(data: Path, arguments: list[str], work: Work) -> Any:
    """What `work` makes of a session with `codeqa mcp`, started as an agent starts it."""
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def run() -> Any:
        environment = {**os.environ, "CODEQA_DATA": str(data)}
        program = ["-m", "codeqa", "mcp", *arguments]
        server = StdioServerParameters(command=sys.executable, args=program, env=environment)
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            told = await session.initialize()
            assert "search_code" in told.instructions
            return await work(session)

    return apart(run())


def test_an_agent_lists_and_calls_the_tools_and_asks(shop: Path) -> None:
    async def work(session: Any) -> None:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert list(tools) == [*TOOLS, "ask", "review"]
        for name, tool in TOOLS.items():
            assert tools[name].description == tool.description
            assert tools[name].input_schema == tool.schema()
        found = await session.call_tool("search_code", {"query": "put an article into a basket"})
        assert found.content[0].text.startswith("--- store/basket.py (lines ")
        place = found.structured_content["places"][0]
        assert place["name"] == "Basket.add_article" and "text" not in place, "it stands above"
        wrong = await session.call_tool("grep", {"path": "store/"})
        assert wrong.is_error and "`pattern` cannot be used" in wrong.content[0].text
        missing = await session.call_tool("open_file", {"path": "../secret"})
        assert missing.is_error and "No indexed file" in missing.content[0].text
        overview = await session.call_tool("list_all", {})
        assert "How it is organised" in overview.content[0].text
        issue = {"title": "The total price is wrong", "body": "With two articles. " * 400}
        review = await session.call_tool("review", issue)
        files = [one["path"] for one in review.structured_content["report"]["files"]]
        assert "store/basket.py" in files and "Likely to change" in review.content[0].text
        wordless = await session.call_tool("review", {})
        assert wordless.is_error and "The issue is empty." in wordless.content[0].text
        effort = await session.call_tool("ask", {"question": "x", "effort": "huge"})
        assert effort.is_error and "`effort` cannot be used" in effort.content[0].text
        answered = await session.call_tool("ask", {"question": "what does total_price do?"})
        assert "[store/basket.py:" in answered.content[0].text

    data = shop.parent / "data"
    over_stdio(data, ["--repo", str(shop)], work)
    kept = b"".join(file.read_bytes() for file in data.glob("state.sqlite*"))
    assert b"what does total_price do" not in kept, "what an agent asks is not kept"


def test_http_serves_this_machine_and_no_other_origin_and_each_call_names_one_of_several(
    shop: Path,
    shop_codeqa: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import httpx2
    import uvicorn
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async def work(address: str) -> None:
        async with (
            streamable_http_client(address) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert all("repo" in tool.input_schema["required"] for tool in tools)
            given = {"pattern": "PayOrder"}
            found = await session.call_tool("grep", {**given, "repo": "my-shop"})
            assert found.structured_content["total"] == 2
            elsewhere = await session.call_tool("grep", {**given, "repo": "bare"})
            assert elsewhere.is_error and "codeqa index" in elsewhere.content[0].text
            unnamed = await session.call_tool("grep", given)
            assert unnamed.is_error and "There is: bare, my-shop." in str(unnamed)

    served: list[str] = []

    def run(app: Any, **options: Any) -> None:
        """As `uvicorn.run`, until the work is done."""
        server = uvicorn.Server(uvicorn.Config(app, **options))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while thread.is_alive() and not server.started:
                time.sleep(0.01)
            served.append(f"http://{options['host']}:{options['port']}/mcp")
            apart(work(served[0]))
            for other in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
                headers = {**other, "Content-Type": "application/json"}
                refused = httpx2.post(served[0], headers=headers, json={})
                assert refused.status_code in (400, 403, 421)
        finally:
            server.should_exit = True
            thread.join(20)

    monkeypatch.setattr(uvicorn, "run", run)
    (tmp_path / "bare").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = shop_codeqa("mcp", "--repo", shop, "--repo", tmp_path / "bare", "--port", port)
    assert done.status == 0, done.err
    assert served == [f"http://127.0.0.1:{port}/mcp"]
    bare, *_ = done.err.splitlines()
    assert bare.startswith(f"codeqa: {tmp_path / 'bare'}: ") and "codeqa index" in bare
