"""Join the scripts of a page into one small file and its styles into another, both compressed.

A page then takes two requests instead of sixty; with `?source=yes` it loads the single files.
The expressions rely on the format that `make lint` keeps;
rjsmin and rcssmin have wheels for Linux only.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from flask import current_app, request, url_for
from werkzeug.wrappers import Response

from codeqa.errors import NotFoundError

STYLES = "all.css"
FRAME = "diagram_frame.js"
SCRIPTS = ("apply_theme.js", "chat_page.js", FRAME, "picker_page.js", "privacy_dialog.js")
MERMAID = "mermaid.js"
"""Draws diagrams; it is sent when a page first shows one."""
SHEETS = (
    "base", "page", "answer", "syntax", "sidebar", "panel", "models", "mentions", "dialogs",
    "repositories", "forced", "print",
)  # fmt: skip
"""Style sheets in static/css, in this order: later rules win."""
IMPORT = re.compile(r'^import \{([^}]+)\} from "([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const)) (\w+)", re.MULTILINE)
DECLARATION = r"\1 \2"
COMMENT = re.compile(r"^\s*(?://.*|/\*(?s:.*?)\*/)\n", re.MULTILINE)
# A comment after code is removed too, unless it holds quotes: it may then be part of a string.
TRAILING_COMMENT = re.compile(r"(?<=[;,{}\])]) // [^\"'`\n]*$", re.MULTILINE)
INDENT = re.compile(r"^\s+", re.MULTILINE)
PRIVATE = re.compile(r"(?:(?<=\.)|(?<=\n)|(?<=\nasync )|(?<=\nget ))#(\w+)")


def bundle(entry: Path) -> str:
    """Return the module `entry` joined with all modules that it imports.

    Each becomes a function that is called once and returns its exports, so that the names of one
    module stay hidden from the others.
    """
    numbers: dict[Path, int] = {}
    functions: list[str] = []

    def constants(folder: Path, match: re.Match[str]) -> str:
        names = " ".join(match[1].replace(" as ", ": ").split())
        return f"const {{ {names} }} = m{add((folder / match[2]).resolve())};\n"

    def add(path: Path) -> int:
        """Append a module, after those that it imports, and return its number."""
        if path not in numbers:
            text = IMPORT.sub(partial(constants, path.parent), path.read_text(encoding="utf-8"))
            numbers[path] = len(numbers)
            body = f"{EXPORT.sub(DECLARATION, text)}return {{{exports(text)}}};\n"
            functions.append(f"const m{numbers[path]} = (() => {{\n{body}}})();\n")
        return numbers[path]

    number = add(entry.resolve())
    if names := exports(entry.read_text(encoding="utf-8")):
        functions.append(f"export const {{{names}}} = m{number};\n")
    short: dict[str, str] = {}  # short names for private members, which only their class uses
    text = smaller("".join(functions))
    return PRIVATE.sub(lambda match: f"#{short.setdefault(match[1], f'p{len(short):x}')}", text)


def exports(module: str) -> str:
    """Return the names that the text of a module exports, with commas between them."""
    return ",".join(name for _, name in EXPORT.findall(module))


def smaller(text: str) -> str:
    """Return `text` without comments and indents, even inside strings of several lines."""
    return INDENT.sub("", TRAILING_COMMENT.sub("", COMMENT.sub("", text)))


@cache
def asset(folder: Path, name: str) -> tuple[bytes, str]:
    """Return the joined file `name`, compressed, and its digest; it is made once."""
    if name == STYLES:
        sheets = [(folder / "css" / f"{name}.css").read_text(encoding="utf-8") for name in SHEETS]
        text = smaller("".join(sheets))
    elif name == MERMAID:
        if (script := mermaid()) is None:
            raise NotFoundError("The package mermaidx is not installed.", "Install it.")
        text = script.read_text(encoding="utf-8")
    else:
        text = bundle(folder / "js" / name)
    return gzip.compress(text.encode(), mtime=0), hashlib.sha256(text.encode()).hexdigest()[:20]


@cache
def mermaid() -> Path | None:
    """Return the script in the package mermaidx, which is not imported; None where it is not."""
    spec = find_spec("mermaidx")
    folders = (spec and spec.submodule_search_locations) or ()
    return next(filter(Path.is_file, (Path(one, "assets", MERMAID) for one in folders)), None)


def address_of(name: str) -> str:
    """Return the address of the script or style sheet `name`; it changes with the content."""
    digest = asset(Path(str(current_app.static_folder)), name)[1]
    return url_for("pages.asset_file", name=name, v=digest)


def send_asset(name: str) -> Response:
    """Return the response for `address_of(name)`. Raises NotFoundError."""
    if name not in (STYLES, *SCRIPTS, MERMAID):
        raise NotFoundError("This file does not exist.", "Load the page again.")
    body, digest = asset(Path(str(current_app.static_folder)), name)
    response = sent(body, "text/css" if name == STYLES else "text/javascript")
    response.set_etag(digest)
    if name in (FRAME, MERMAID):  # a frame without origin is another site to its own server
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    # The address contains the digest, so its content never changes.
    is_current = request.args.get("v") == digest
    response.headers["Cache-Control"] = f"max-age={31_536_000 if is_current else 0}"
    return response.make_conditional(request.environ)


def sent(body: bytes, kind: str) -> Response:
    """Return a response with the gzip-compressed `body`, unpacked for a client without gzip."""
    response = Response(body, mimetype=kind)
    response.vary.add("Accept-Encoding")
    if request.accept_encodings.quality("gzip"):
        response.headers["Content-Encoding"] = "gzip"
    else:
        response.set_data(gzip.decompress(body))
    return response
