"""Join the scripts of a page into one file and its styles into another, small and compressed.

A page takes two requests instead of sixty; with `?source=yes` it takes the files as they are. The
expressions rely on the form that `make lint` keeps; rjsmin and rcssmin have wheels for Linux alone.
"""

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
DECLARATION = r"\1 \2"
COMMENT = re.compile(r"^\s*(?://.*|/\*(?s:.*?)\*/)\n", re.MULTILINE)
# One behind code goes as well, unless quotes in it could be the end of a string around it.
BEHIND = re.compile(r"(?<=[;,{}\])]) // [^\"'`\n]*$", re.MULTILINE)
INDENT = re.compile(r"^\s+", re.MULTILINE)
PRIVATE = re.compile(r"(?:(?<=\.)|(?<=\n)|(?<=\nasync )|(?<=\nget ))#(\w+)")


def bundle(entry: Path) -> str:
    """Join the module `entry` with all that it imports. Each becomes a function that is called once
    and returns its exports, so that the names of one module stay hidden from the others."""
    numbers: dict[Path, int] = {}
    functions: list[str] = []

    def constants(folder: Path, match: re.Match[str]) -> str:
        names = " ".join(match[1].replace(" as ", ": ").split())
        return f"const {{ {names} }} = m{add((folder / match[2]).resolve())};\n"

    def add(path: Path) -> int:
        """Append the module after those that it imports. Return its number."""
        if path not in numbers:
            text = IMPORT.sub(partial(constants, path.parent), path.read_text(encoding="utf-8"))
            numbers[path] = len(numbers)
            body = f"{EXPORT.sub(DECLARATION, text)}return {{{exports(text)}}};\n"
            functions.append(f"const m{numbers[path]} = (() => {{\n{body}}})();\n")
        return numbers[path]

    number = add(entry.resolve())
    if names := exports(entry.read_text(encoding="utf-8")):
        functions.append(f"export const {{{names}}} = m{number};\n")
    short: dict[str, str] = {}  # what no other class can name needs no name to be read
    text = smaller("".join(functions))
    return PRIVATE.sub(lambda match: f"#{short.setdefault(match[1], f'p{len(short):x}')}", text)


def exports(module: str) -> str:
    return ",".join(name for _, name in EXPORT.findall(module))


def smaller(text: str) -> str:
    """Return `text` without comments and indents; a string of several lines loses them too."""
    return INDENT.sub("", BEHIND.sub("", COMMENT.sub("", text)))


@cache
def asset(folder: Path, name: str) -> tuple[bytes, str]:
    """Make the file `name` of those in `folder`, once. Return it compressed, and its digest."""
    if name == STYLES:
        sheets = [folder / "css" / f"{sheet}.css" for sheet in SHEETS]
        text = smaller("".join(sheet.read_text(encoding="utf-8") for sheet in sheets))
    else:
        text = bundle(folder / "js" / name)
    return gzip.compress(text.encode(), mtime=0), hashlib.sha256(text.encode()).hexdigest()[:20]


def address_of(name: str) -> str:
    """Return the address of the script or the styles `name`; another one when they change."""
    return url_for(
        "pages.asset_file", name=name, v=asset(Path(str(current_app.static_folder)), name)[1]
    )


def send_asset(name: str) -> Response:
    """Send the file at `address_of(name)`. Raises NotFoundError."""
    if name not in (STYLES, *SCRIPTS):
        raise NotFoundError("There is no such file.", "Load the page again.")
    body, digest = asset(Path(str(current_app.static_folder)), name)
    response = sent(body, "text/css" if name == STYLES else "text/javascript")
    response.set_etag(digest)
    # The address has the digest: what is there never changes.
    is_current = request.args.get("v") == digest
    response.headers["Cache-Control"] = f"max-age={31_536_000 if is_current else 0}"
    return response.make_conditional(request.environ)


def sent(body: bytes, kind: str) -> Response:
    """Reply with `body`, which is compressed, and is unpacked for a client that does not ask so."""
    response = Response(body, mimetype=kind)
    response.vary.add("Accept-Encoding")
    if request.accept_encodings.quality("gzip"):
        response.headers["Content-Encoding"] = "gzip"
    else:
        response.set_data(gzip.decompress(body))
    return response
