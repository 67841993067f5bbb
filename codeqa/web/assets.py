"""The scripts and the styles of a page as one file each, small and compressed, so that a page
takes two requests instead of sixty. The files themselves stay as they are, and are what a page
takes with `?source=yes`."""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache, partial
from pathlib import Path

from flask import current_app, request, url_for
from werkzeug.wrappers import Response

from codeqa.errors import NotFoundError

STYLES = "all.css"
SCRIPTS = ("apply_theme.js", "chat_page.js", "picker_page.js", "privacy_dialog.js")
SHEETS = (
    "base", "page", "answer", "syntax", "sidebar", "panel", "models", "mentions", "dialogs",
    "repositories", "forced",
)  # fmt: skip
"""Of static/css, in this order: later ones win."""
IMPORT = re.compile(r'^import \{([^}]+)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const)) (\w+)", re.MULTILINE)
COMMENT = re.compile(r"^\s*(?://.*|/\*(?s:.*?)\*/)\n", re.MULTILINE)
# One behind code goes as well, unless quotes in it could be the end of a string around it.
BEHIND = re.compile(r"(?<=[;,{}\])]) // [^\"'`\n]*$", re.MULTILINE)
INDENT = re.compile(r"^\s+", re.MULTILINE)
PRIVATE = re.compile(r"(?:(?<=\.)|(?<=\n)|(?<=\nasync )|(?<=\nget ))#(\w+)")


def script(entry: Path) -> str:
    """The module `entry` and all that it imports, each a function that is called once and returns
    what it exports: names of one are hidden from the others, as they were."""
    numbers: dict[Path, int] = {}
    written: list[str] = []

    def imported(folder: Path, match: re.Match[str]) -> str:
        names = " ".join(match[1].replace(" as ", ": ").split())
        return f"const {{ {names} }} = m{add(folder / match[2])};\n"

    def add(path: Path) -> int:
        path = path.resolve()
        if path not in numbers:
            text = IMPORT.sub(partial(imported, path.parent), path.read_text(encoding="utf-8"))
            names = ",".join(name for _, name in EXPORT.findall(text))
            numbers[path] = len(numbers)
            body = EXPORT.sub(r"\1 \2", text)
            written.append(
                f"const m{numbers[path]} = (() => {{\n{body}return {{{names}}};\n}})();\n"
            )
        return numbers[path]

    add(entry)
    if names := ",".join(name for _, name in EXPORT.findall(entry.read_text(encoding="utf-8"))):
        written.append(f"export const {{{names}}} = m{numbers[entry.resolve()]};\n")
    short: dict[str, str] = {}  # what no other class can name needs no name to be read
    text = smaller("".join(written))
    return PRIVATE.sub(lambda one: f"#{short.setdefault(one[1], f'p{len(short):x}')}", text)


def smaller(text: str) -> str:
    """`text` without comments and indents, which a string over several lines would lose too."""
    return INDENT.sub("", BEHIND.sub("", COMMENT.sub("", text)))


@cache
def asset(folder: Path, name: str) -> tuple[bytes, str]:
    """The file `name` made of those in `folder`, compressed, and a digest of it; made once."""
    if name == STYLES:
        sheets = [folder / "css" / f"{sheet}.css" for sheet in SHEETS]
        text = smaller("".join(sheet.read_text(encoding="utf-8") for sheet in sheets))
    else:
        text = script(folder / "js" / name)
    return gzip.compress(text.encode(), mtime=0), hashlib.sha256(text.encode()).hexdigest()[:20]


def address_of(name: str) -> str:
    """Where a page finds the script or the styles `name`; another address when they change."""
    return url_for("pages.asset_file", name=name, v=asset(_folder(), name)[1])


def send_asset(name: str) -> Response:
    """The file at `address_of(name)`. Raises NotFoundError."""
    if name not in (STYLES, *SCRIPTS):
        raise NotFoundError("There is no such file.", "Load the page again.")
    body, digest = asset(_folder(), name)
    response = sent(body, "text/css" if name == STYLES else "text/javascript")
    response.set_etag(digest)
    # The address has the digest: what is there never changes.
    fresh = request.args.get("v") == digest
    response.headers["Cache-Control"] = f"max-age={31_536_000 if fresh else 0}"
    return response.make_conditional(request.environ)


def sent(body: bytes, kind: str) -> Response:
    """A reply of `body`, which is compressed, to a client that takes it so, or that does not."""
    response = Response(body, mimetype=kind)
    response.vary.add("Accept-Encoding")
    if request.accept_encodings.quality("gzip"):
        response.headers["Content-Encoding"] = "gzip"
    else:
        response.set_data(gzip.decompress(body))
    return response


def _folder() -> Path:
    return Path(str(current_app.static_folder))
