"""The tools of `codeqa.tools` as commands: `codeqa grep`, `codeqa callers`, …"""

from __future__ import annotations

import re
from typing import Any

import click
from pydantic.fields import FieldInfo

from codeqa.cli.command import DONE, FAILED, command, json_option, repo_option
from codeqa.cli.console import print_json, visible
from codeqa.cli.repos import chosen_repository
from codeqa.errors import CodeQAError
from codeqa.settings import load_settings
from codeqa.tools import TOOLS, Tool

EXAMPLES = {
    "search_code": ['codeqa search-code "how is a request dispatched" --k 5'],
    "grep": ["codeqa grep TODO", r'codeqa grep "def \w+_request\(" --regex --path src/'],
    "open_file": ["codeqa open-file app.py 120-180"],
    "outline": ["codeqa outline src/flask/ctx.py"],
    "find_definition": ["codeqa find-definition Flask.dispatch_request"],
    "find_references": ["codeqa find-references dispatch_request --json"],
    "callers": ["codeqa callers dispatch_request --depth 3"],
    "callees": ["codeqa callees wsgi_app --depth 2"],
    "list_files": ['codeqa list-files "src/**/*.py"'],
    "overview": ["codeqa overview --repo ~/src/flask"],
    "git_log": ["codeqa git-log Flask.dispatch_request"],
    "git_show": ["codeqa git-show HEAD~3 --path app.py"],
    "blame": ["codeqa blame app.py 120-180"],
}


def tool_commands() -> dict[str, click.Command]:
    """By the name of the command: `search-code` for the tool `search_code`."""
    return {name.replace("_", "-"): _command(tool) for name, tool in TOOLS.items()}


def _command(tool: Tool) -> click.Command:
    """`tool` as a command: texts are arguments; filters, numbers and switches are options."""
    from codeqa.engine import open_engine

    def run(repo: str | None, as_json: bool, **values: Any) -> int:
        root = chosen_repository(load_settings(), repo)
        engine = open_engine(load_settings(root), root)
        try:
            given = {name: value for name, value in values.items() if value is not None}
            result = tool.call(engine.toolbox, given)
        except CodeQAError as error:
            error.hint = _as_typed(error.hint)
            raise
        finally:
            engine.close()
        if as_json:
            print_json(result.model_dump())
        else:
            click.echo(visible(result.text))
        return FAILED if result.unknown else DONE

    run.__doc__ = tool.description
    made = repo_option(json_option(run))
    for name, field in reversed(tool.arguments.model_fields.items()):
        made = _parameter(name, field)(made)
    return command(tool.name.replace("_", "-"), EXAMPLES[tool.name])(made)


def _as_typed(text: str) -> str:
    """Tools in `text` as the commands that they are here."""
    return re.sub(rf"\b({'|'.join(TOOLS)})\b", lambda one: one[0].replace("_", "-"), text)


def _parameter(name: str, field: FieldInfo) -> Any:
    if field.is_required() or (field.annotation is str and name != "path"):
        return click.argument(name, required=field.is_required())
    flag = "--" + name.replace("_", "-")
    if field.annotation is bool:
        return click.option(flag, is_flag=True, default=None, help=field.description)
    default = f" Default: {field.default}." if field.default else ""
    return click.option(flag, type=field.annotation, help=f"{field.description}{default}")
