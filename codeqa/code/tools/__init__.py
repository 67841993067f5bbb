"""The tools of a reader of code: search, look up a name, grep, open, list, see history.

Each is declared once and serves the model, other agents (MCP), the terminal and the API. They read
one repository, change nothing and return a bounded text. Their arguments have the same names:
`path`, `name`, `lines`.
"""

from collections.abc import Callable

from codeqa.code.tools.history import history
from codeqa.code.tools.listing import list_all
from codeqa.code.tools.reading import grep, open_file
from codeqa.code.tools.search import search_code
from codeqa.code.tools.symbol import symbol
from codeqa.code.tools.tool import CodeSpan, Commit, Tool, Toolbox, ToolResult, declare

_FUNCTIONS: tuple[Callable[..., ToolResult], ...] = (
    search_code, symbol, grep, open_file, list_all, history
)  # fmt: skip

TOOLS = {function.__name__: declare(function) for function in _FUNCTIONS}
"""Name → tool, in the order in which they are worth trying."""

__all__ = ["TOOLS", "CodeSpan", "Commit", "Tool", "ToolResult", "Toolbox", "declare"]
