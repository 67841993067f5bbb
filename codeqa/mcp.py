"""The Model Context Protocol: other agents read repositories with the tools of `codeqa.code.tools`.

Served over stdio, as a program that the agent starts, or over streamable HTTP on this machine. It
needs the package `mcp`, which the extra `codeqa[mcp]` brings.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from codeqa import __version__
from codeqa.code.tools import TOOLS, ToolResult, declare
from codeqa.engine import Engine, open_engine, whole_answer
from codeqa.errors import CodeQAError, SettingsError, UsageError
from codeqa.review.report import IssueReport
from codeqa.review.reviewer import MOST_CHARACTERS, Reviewer
from codeqa.settings import Settings

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server

USER = "mcp"
INSTRUCTIONS = """\
CodeQA has indexed {repositories} on this machine: every definition, call and document.
- A question in words ("where are sessions signed?"): search_code. It finds by meaning and by name,
  and gives whole functions with their lines: prefer it to grep and to opening files one by one.
- A name you know: find_definition, find_references, callers, callees. Exact and resolved, where
  grep gives every line with the same letters.
- All of a kind (routes, tests, subclasses), what a change breaks, how A reaches B: list_all,
  impact, call_path. Counted.
- Exact text, messages: grep. A long file: outline, then open_file with lines.
- Why and when: git_log (of one function, too), blame, git_show.
- New to a repository: overview. An issue to work on: review, for the files, tests and people that
  it concerns. A whole answer with citations, made by CodeQA itself: ask."""
Issue = Annotated[str, Field(max_length=MOST_CHARACTERS, description="Text of the issue.")]


@dataclass
class Repositories:
    """The repositories that are served, by name, each opened when it is first asked about."""

    settings: Callable[[Path], Settings]
    roots: Mapping[str, Path]
    _open: dict[str, Engine] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def engine(self, name: str) -> Engine:
        """The engine of the repository called `name`, of the only one for ''.

        Raises UsageError for a name that is not served.
        """
        name = name or (next(iter(self.roots)) if len(self.roots) == 1 else "")
        if name not in self.roots:
            there = ", ".join(self.roots)
            raise UsageError(f"No repository {name!r} is served.", f"There is: {there}.")
        with self._lock:
            if name not in self._open:
                root = self.roots[name]
                self._open[name] = open_engine(self.settings(root), root)
            return self._open[name]

    def close(self) -> None:
        for engine in self._open.values():
            engine.close()


def call(repositories: Repositories, name: str, arguments: Mapping[str, Any]) -> ToolResult:
    """What the tool `name` gives for `arguments`. Raises CodeQAError."""
    given = dict(arguments)
    engine = repositories.engine(str(given.pop("repo", "")))
    if name in OWN:
        return OWN[name].call(engine, given)
    return engine.call(name, **given)


def ask(
    engine: Engine,
    question: Annotated[str, Field(description="A question in words.")],
    effort: Annotated[
        Literal["", "fast", "normal", "deep"],
        Field(description="How much code the answer may be made from; empty: as its user set."),
    ] = "",
) -> ToolResult:
    """Answer a question about the repository with citations [path:first-last], by CodeQA's own
    search and the language model that its user chose; without one, from what the code says."""
    # It is not kept: whoever asks has it.
    answer = whole_answer(engine.ask(question, user=USER, effort=effort))
    whole = "\n\n".join(filter(None, (answer.text.strip(), answer.details.get("notice"))))
    return ToolResult(summary=f"answered “{question}”", text=whole)


class ReviewResult(ToolResult, frozen=True):
    """A report, beside its text."""

    report: IssueReport


def review(
    engine: Engine,
    title: Annotated[str, Field(description="Title of the issue.")] = "",
    body: Issue = "",
) -> ReviewResult:
    """What an issue takes: files likely to change, tests and people, and how hard it is where its
    user chose a language model, which searches the code."""
    reviewer = Reviewer(engine.toolbox, engine.models.answer_model(), engine.settings.config_dir)
    report = reviewer.report(title, body)
    return ReviewResult(summary=f"reviewed “{title}”", text=report.text, report=report)


OWN = {function.__name__: declare(function) for function in (ask, review)}
"""By name, what needs more of an engine than its toolbox."""


def offered(repositories: Repositories) -> list[types.Tool]:
    """The tools, with a `repo` among their arguments where several are served."""
    import mcp_types as types

    several = len(repositories.roots) > 1
    repo = {"type": "string", "enum": list(repositories.roots), "description": "Which one."}
    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = []
    for name, tool in (TOOLS | OWN).items():
        schema = tool.schema()
        if several:
            schema["properties"] = {**schema.get("properties", {}), "repo": repo}
            schema["required"] = [*schema.get("required", ()), "repo"]
        tools.append(
            types.Tool(name=name, description=tool.description, input_schema=schema,
                       output_schema=tool.result.model_json_schema(), annotations=hints)
        )  # fmt: skip
    return tools


def mcp_server(repositories: Repositories) -> Server[Any]:
    """The server, to be run over any transport. Raises SettingsError without the package."""
    try:
        import mcp_types as types
        from mcp.server import Server
    except ImportError:
        raise SettingsError(
            "The package mcp is not installed.", "Install it with: pip install 'codeqa[mcp]'"
        ) from None

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered(repositories))

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        work = partial(call, repositories, params.name, params.arguments or {})
        try:
            result = await asyncio.get_running_loop().run_in_executor(None, work)
        except CodeQAError as error:
            said = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[said], is_error=True)
        text = types.TextContent(type="text", text=result.text)
        # Some clients give their model this instead of the text: code stands in it once.
        typed = result.model_dump(exclude={"places": {"__all__": {"text"}}})
        return types.CallToolResult(content=[text], structured_content=typed)

    named = ", ".join(repositories.roots)
    gc.freeze()
    gc.enable()
    return Server(
        "codeqa",
        version=__version__,
        title="CodeQA",
        instructions=INSTRUCTIONS.format(repositories=named),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve_stdio(settings: Callable[[Path], Settings], roots: Mapping[str, Path]) -> None:
    """Serve the agent that started this program, until it goes away."""

    async def run(server: Server[Any]) -> None:
        from mcp.server.stdio import stdio_server

        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    with closing(Repositories(settings, roots)) as repositories:
        asyncio.run(run(mcp_server(repositories)))


def serve_http(
    settings: Callable[[Path], Settings], roots: Mapping[str, Path], host: str, port: int
) -> None:
    """Serve agents of this machine at http://host:port/mcp, until interrupted."""
    with closing(Repositories(settings, roots)) as repositories:
        app = mcp_server(repositories).streamable_http_app(host=host)
        import uvicorn

        uvicorn.run(app, host=host, port=port, log_level="warning")
