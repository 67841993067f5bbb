"""Writes docs/settings.md's table of settings and docs/api.md's list of the options of a question.

`--write` changes them between their markers; without it they are printed.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from codeqa.chat.options import QuestionOptions  # noqa: E402 (the checkout comes first)
from codeqa.settings import settings_table  # noqa: E402


def markdown_table() -> str:
    """Return the settings as a Markdown table: name, default, what it does."""
    lines = ["| setting | default | what it does |", "|---|---|---|"]
    for name, default, help_text in settings_table():
        code = f"`{default}`" if default else ""
        lines.append(f"| `{name}` | {code} | {help_text} |")
    return "\n".join(lines)


def option_list() -> str:
    """Return the options of a question as a Markdown list: name, choices, what it does."""
    hints, items = get_type_hints(QuestionOptions), []
    for field in fields(QuestionOptions):
        choices = ""
        if get_origin(hints[field.name]) is Literal:
            choices = f" ({', '.join(f'`{one}`' for one in get_args(hints[field.name]) if one)})"
        item = f"- `{field.name}`{choices}: {field.metadata['help']}"
        items.append(textwrap.fill(item, 100, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(items)


PARTS = {"settings": markdown_table, "api": option_list}
"""Document in docs/ → what is written into it."""


def with_part(document: str, name: str) -> str:
    """Put the part `name` between its markers in `document`; ValueError if one is missing."""
    begin = f"<!-- {name}: written by scripts/settings_table.py -->"
    before, after = document.index(begin) + len(begin), document.index(f"<!-- end of {name} -->")
    return f"{document[:before]}\n{PARTS[name]()}\n{document[after:]}"


def main() -> int:
    """Print the parts, or write them into the documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write them into the documents")
    write = parser.parse_args().write
    for name, part in PARTS.items():
        if not write:
            print(part())
            continue
        page = ROOT / "docs" / f"{name}.md"
        page.write_text(with_part(page.read_text(encoding="utf-8"), name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
