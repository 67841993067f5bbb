"""Where the page's files lie: in the installed package, else in the checkout."""

from __future__ import annotations

from pathlib import Path

from codeqa.errors import CodeQAError


def assets_root() -> Path:
    """The folder that holds `templates` and `static`.

    A wheel carries both inside this package; a checkout and an editable install have them
    at the top level. Raises CodeQAError when neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package, package.parent.parent):
        if (folder / "templates").is_dir() and (folder / "static").is_dir():
            return folder
    raise CodeQAError("The page's files are missing.", "Install CodeQA again.")
