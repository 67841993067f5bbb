"""What a reader of code does, as functions: search, look up a name, grep, open, list, see history.

Each is declared once and is a tool of the agent and of other agents (MCP), a command and an address
of the API. They read one repository, change nothing, and answer within a bounded size. Their
arguments are called alike: `path`, `name`, `lines`.
"""

from collections.abc import Callable

from codeqa.code.tools.edges import symbol
from codeqa.code.tools.history import history
from codeqa.code.tools.listing import list_all
from codeqa.code.tools.reading import grep, open_file
from codeqa.code.tools.search import search_code
from codeqa.code.tools.tool import Commit, Place, Tool, Toolbox, ToolResult, declare

_FUNCTIONS: tuple[Callable[..., ToolResult], ...] = (
    search_code, symbol, grep, open_file, list_all, history
)  # fmt: skip

TOOLS = {function.__name__: declare(function) for function in _FUNCTIONS}
"""By name, in the order in which they are worth trying."""

__all__ = ["TOOLS", "Commit", "Place", "Tool", "ToolResult", "Toolbox", "declare"]
