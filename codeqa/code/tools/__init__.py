"""What a reader of code does, as functions: search, grep, open, follow calls, look into git.

Each is declared once and is a tool of the agent and of other agents (MCP), a command and an address
of the API. They read one repository, change nothing, and answer within a bounded size.
"""

from collections.abc import Callable

from codeqa.code.tools.edges import call_path, callees, callers, find_references, impact
from codeqa.code.tools.history import blame, changes, git_log, git_show
from codeqa.code.tools.listing import list_all
from codeqa.code.tools.reading import (
    find_definition,
    grep,
    list_files,
    open_file,
    outline,
    overview,
    search_code,
)
from codeqa.code.tools.tool import Commit, Place, Tool, Toolbox, ToolResult, declare

_FUNCTIONS: tuple[Callable[..., ToolResult], ...] = (
    search_code, grep, open_file, outline, find_definition, find_references, callers, callees,
    impact, call_path, list_all, list_files, overview, git_log, git_show, blame,
    changes,
)  # fmt: skip

TOOLS = {function.__name__: declare(function) for function in _FUNCTIONS}
"""By name, in the order in which they are worth trying."""

__all__ = ["TOOLS", "Commit", "Place", "Tool", "ToolResult", "Toolbox", "declare"]
