"""The tools of `codeqa.code.tools` as commands: `codeqa grep`, `codeqa callers`, …"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from codeqa.cli import served
from codeqa.cli.command import DONE, FAILED, command, where_options
from codeqa.cli.console import print_either, visible
from codeqa.errors import CodeQAError

EXAMPLES = {
    "search_code": ['codeqa search-code "how is a request dispatched" --k 5'],
    "grep": ["codeqa grep TODO", r'codeqa grep "def \w+_request\(" --regex --path src/'],
    "open_file": ["codeqa open-file app.py 120-180"],
    "outline": ["codeqa outline src/flask/ctx.py"],
    "find_definition": ["codeqa find-definition Flask.dispatch_request"],
    "find_references": ["codeqa find-references dispatch_request --json"],
    "callers": ["codeqa callers dispatch_request --depth 3"],
    "callees": ["codeqa callees wsgi_app --depth 2"],
    "impact": ["codeqa impact Flask.make_response"],
    "call_path": ["codeqa call-path Flask.wsgi_app Flask.make_response"],
    "list_all": ["codeqa list-all routes", "codeqa list-all subclasses View --json"],
    "list_files": ['codeqa list-files "src/**/*.py"'],
    "overview": ["codeqa overview --repo ~/src/flask"],
    "git_log": ["codeqa git-log Flask.dispatch_request"],
    "git_show": ["codeqa git-show HEAD~3 --path app.py"],
    "blame": ["codeqa blame app.py 120-180"],
    "changes": ["codeqa changes v2.2 v2.3", 'codeqa changes v2.2 HEAD "how sessions are signed"'],
}
TYPES = {"integer": click.INT, "string": click.STRING}
"""Of arguments, by their type in JSON Schema."""

TOOL_COMMANDS = tuple(name.replace("_", "-") for name in EXAMPLES)


def tool_command(name: str) -> click.Command:
    """The command of that name: texts are arguments; filters, numbers and switches are options.

    A server that runs has described its tools; else they are loaded.
    """
    tool = name.replace("-", "_")
    for server in served.fitting_servers():
        for told in server.tools:
            if told["name"] == tool:
                return _command(tool, told["description"], told["arguments"])
    from codeqa.code.tools import TOOLS

    return _command(tool, TOOLS[tool].description, TOOLS[tool].schema())


def _command(tool: str, description: str, arguments: Mapping[str, Any]) -> click.Command:
    def run(repos: tuple[str, ...], rev: str, local: bool, as_json: bool, **values: Any) -> int:
        given = {name: value for name, value in values.items() if value is not None}
        try:
            result = served.call(f"/api/tools/{tool}", given, repos, rev, local)
        except CodeQAError as error:
            error.hint = _as_typed(error.hint)
            raise
        print_either(as_json, result, visible(result["text"]))
        return FAILED if result["unknown"] else DONE

    run.__doc__ = description
    made = where_options(run)
    required = arguments.get("required", ())
    for name, field in reversed(arguments.get("properties", {}).items()):
        made = _parameter(name, field, name in required)(made)
    return command(tool.replace("_", "-"), EXAMPLES[tool])(made)


def _as_typed(text: str) -> str:
    """Tools in `text` as the commands that they are here."""
    return re.sub(rf"\b({'|'.join(EXAMPLES)})\b", lambda one: one[0].replace("_", "-"), text)


def _parameter(name: str, field: Mapping[str, Any], required: bool) -> Any:
    choices = [one for one in field.get("enum", ()) if one]
    kind = click.Choice(choices) if choices else TYPES.get(field["type"])
    if required or (field["type"] == "string" and name != "path" and not choices):
        return click.argument(name, required=required, type=kind)
    flag = "--" + name.replace("_", "-")
    if field["type"] == "boolean":
        return click.option(flag, is_flag=True, default=None, help=field["description"])
    default = f" Default: {field['default']}." if field.get("default") else ""
    return click.option(flag, type=kind, help=f"{field['description']}{default}")
