"""The tools of `codeqa.code.tools` as commands: `codeqa grep`, `codeqa symbol`, …"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

import click

from codeqa.cli import served
from codeqa.cli.command import DONE, FAILED, command, where_options
from codeqa.cli.console import print_either, visible
from codeqa.environment import data_folder
from codeqa.errors import CodeQAError
from codeqa.web.running import running_servers

EXAMPLES = {
    "search_code": [
        'codeqa search-code "how is a request dispatched"',
        'codeqa search-code "where is the cookie signed" --guess - < draft.py',
    ],
    "symbol": [
        "codeqa symbol Flask.dispatch_request",
        "codeqa symbol dispatch_request callers   or references, callees, subclasses, impact",
        'codeqa symbol Flask.wsgi_app "path to Flask.make_response"',
    ],
    "grep": ["codeqa grep TODO", r'codeqa grep "def \w+_request\(" --regex --path src/'],
    "open_file": ["codeqa open-file app.py 120-180"],
    "list_all": ["codeqa list-all", "codeqa list-all routes --path src/ --json"],
    "history": [
        "codeqa history --name Flask.dispatch_request",
        "codeqa history --path app.py --lines 120-180",
        'codeqa history --commit v2.2..HEAD --about "how sessions are signed"',
    ],
}
TYPED_BARE = {"search_code": 1, "symbol": 2, "grep": 1, "open_file": 2, "list_all": 1}
"""How many arguments of a tool are typed without their names, from the first on."""
TYPES = {"integer": click.INT, "string": click.STRING}
"""Type in JSON Schema → type of the argument."""

TOOL_COMMANDS = tuple(name.replace("_", "-") for name in EXAMPLES)


def tool_command(name: str) -> click.Command:
    """Make the command of a tool; filters, numbers and switches become options.

    A running server has described its tools; otherwise they are loaded.
    """
    tool = name.replace("-", "_")
    for server in running_servers(data_folder()):
        for described in server.tools:
            if described["name"] == tool:
                return _command(tool, described["description"], described["arguments"])
    from codeqa.code.tools import TOOLS

    return _command(tool, TOOLS[tool].description, TOOLS[tool].schema())


def _command(tool: str, description: str, schema: Mapping[str, Any]) -> click.Command:
    def run(repos: tuple[str, ...], rev: str, local: bool, as_json: bool, **values: Any) -> int:
        arguments = {name: value for name, value in values.items() if value is not None}
        if arguments.get("guess") == "-":
            arguments["guess"] = sys.stdin.read()
        try:
            result = served.call(f"/api/tools/{tool}", arguments, repos, rev, local)
        except CodeQAError as error:
            # The hint names tools, which are commands here.
            tools = rf"\b({'|'.join(EXAMPLES)})\b"
            error.hint = re.sub(tools, lambda match: match[0].replace("_", "-"), error.hint)
            raise
        print_either(as_json, result, visible(result["text"]))
        return FAILED if result["unknown"] else DONE

    run_with_options = where_options(run)
    required = schema.get("required", ())
    fields = list(schema.get("properties", {}).items())
    bare = fields[: TYPED_BARE.get(tool, 0)]
    help_texts = [description]
    help_texts += [f"{name.upper()}: {field['description']}" for name, field in bare]
    run.__doc__ = "\n\n".join(help_texts)
    for number, (name, field) in reversed(list(enumerate(fields))):
        parameter = _parameter(name, field, name in required, number < len(bare))
        run_with_options = parameter(run_with_options)
    return command(tool.replace("_", "-"), EXAMPLES[tool])(run_with_options)


def _parameter(name: str, field: Mapping[str, Any], required: bool, bare: bool) -> Any:
    choices = list(filter(None, field.get("enum", ())))
    kind = click.Choice(choices) if choices else TYPES.get(field["type"])
    if bare:
        return click.argument(name, required=required, type=kind)
    flag = "--" + name.replace("_", "-")
    if field["type"] == "boolean":
        return click.option(flag, is_flag=True, default=None, help=field["description"])
    default = f" Default: {field['default']}." if field.get("default") else ""
    return click.option(flag, type=kind, help=f"{field['description']}{default}")
