"""Writes docs/settings.md's table of settings from codeqa/settings.py.

`--write` changes it between its two markers; without it the table is printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from codeqa.settings import settings_table  # noqa: E402 (the checkout comes first)

BEGIN = "<!-- settings: written by scripts/settings_table.py -->"
END = "<!-- end of settings -->"


def markdown_table() -> str:
    """The settings as a Markdown table: name, default, what it does."""
    lines = ["| setting | default | what it does |", "|---|---|---|"]
    for name, default, help_text in settings_table():
        shown = f"`{default}`" if default else ""
        lines.append(f"| `{name}` | {shown} | {help_text} |")
    return "\n".join(lines)


def with_table(document: str) -> str:
    """`document` with the table between its markers; ValueError if a marker is missing."""
    before, after = document.index(BEGIN) + len(BEGIN), document.index(END)
    return f"{document[:before]}\n{markdown_table()}\n{document[after:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write it into docs/settings.md")
    if not parser.parse_args().write:
        print(markdown_table())
        return 0
    page = ROOT / "docs" / "settings.md"
    page.write_text(with_table(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
