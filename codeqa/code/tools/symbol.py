"""The tool for one name.

It shows the definition, or what references say about it: uses, callers, callees, subclasses, what a
change may break, and the calls that lead from one definition to another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from pydantic import Field

from codeqa.code.tools.references import references
from codeqa.code.tools.search import Name, symbol_definition
from codeqa.code.tools.tool import (
    Toolbox,
    ToolResult,
    joined_results,
)
from codeqa.code.tools.walk import call_path, callees, impact, subclasses
from codeqa.errors import UsageError

RELATIONS: dict[str, Callable[[Toolbox, str], ToolResult]] = {
    "definition": symbol_definition,
    "callers": partial(references, kind="call"),
    "references": references,
    "callees": callees,
    "subclasses": subclasses,
    "impact": impact,
}
"""Value of `want` → the function that answers it."""


def symbol(
    box: Toolbox,
    name: Name,
    want: Annotated[
        str,
        Field(
            description="definition, callers, references, callees (two deep), subclasses, impact "
            "(what a change may break), or `path to NAME` (the calls that lead there)."
        ),
    ] = "definition",
) -> ToolResult:
    """Look up a function, class or constant by name.

    Gives its code, what it calls, who calls it and the constants it uses. It tells apart what has
    the same name, where grep finds every line with the same letters. Several names at once, `a, b`,
    are cheaper than opening files.
    """
    names = list(filter(None, map(str.strip, name.split(","))))
    if len(names) > 1:
        return joined_results([symbol(box, part, want) for part in names])
    kind, _, end = " ".join(want.split()).partition(" to ")
    if kind == "path" and end:
        return call_path(box, name, end)
    if want not in RELATIONS:
        choices = ", ".join(RELATIONS)
        raise UsageError(f"`want` cannot be {want!r}.", f"Use {choices} or `path to NAME`.")
    return RELATIONS[want](box, name)
