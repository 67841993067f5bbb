"""Which files are never indexed, by name or by content.

Left out: binary data, minified code and source maps, lock files, secrets, empty files.
Generated and vendored files are not left out; their role puts them last (`roles`).
"""

from __future__ import annotations

import re

from codeqa.languages import detect
from codeqa.repository.roles import role_of
from codeqa.repository.secrets import is_secret_content, is_secret_name
from codeqa.text.tokens import word_set
from codeqa.types import Skipped

_BINARY, _MINIFIED, _SECRET = "binary", "minified", "looks like a secret"

LOCK_FILES = word_set(
    "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb "
    "deno.lock cargo.lock poetry.lock uv.lock pdm.lock pixi.lock pipfile.lock conda-lock.yml "
    "pylock.toml go.sum go.work.sum gemfile.lock composer.lock mix.lock pubspec.lock "
    "podfile.lock package.resolved cartfile.resolved packages.lock.json paket.lock "
    "project.assets.json gradle.lockfile buildscript-gradle.lockfile flake.lock "
    ".terraform.lock.hcl rebar.lock shard.lock stack.yaml.lock cabal.project.freeze "
    "manifest.toml.lock module.bazel.lock buf.lock symfony.lock"
)
"""Lower-case names of files that tools write and nobody reads."""

BINARY_ENDINGS = word_set(
    "png jpg jpeg gif bmp ico icns webp tif tiff avif heic psd ai eps svgz pdf ps mp3 mp4 m4a "
    "m4v mov avi mkv webm ogg oga ogv wav flac aac mid zip gz tgz bz2 tbz2 xz txz zst 7z rar "
    "lz4 lzma jar war ear aar apk ipa whl egg nupkg deb rpm dmg iso img exe dll so dylib a o "
    "obj lib pdb class pyc pyo pyd wasm elf bin dat db sqlite sqlite3 mdb ldb rdb frm ttf otf "
    "woff woff2 eot doc docx xls xlsx ppt pptx odt ods odp parquet arrow feather avro orc npy "
    "npz pkl pickle joblib h5 hdf5 pt pth onnx safetensors gguf tflite pb.gz mo gmo blend fbx "
    "glb stl dwg swf keystore snap"
)

_MAGIC = (b"%PDF-", b"%!PS", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b",
          b"\x7fELF", b"\xca\xfe\xba\xbe", b"\0asm", b"SQLite format 3", b"\xfd7zXZ",
          b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"Rar!", b"BZh9", b"wOFF", b"wOF2", b"OTTO",
          b"!<arch>\n", b"\x80\x04\x95")  # fmt: skip
"""How files begin that may hold no NUL in their first 8 KiB."""

SNIFFED_BYTES = 8192
"""git's own rule: a NUL in the first 8 KiB means binary."""

_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r\f\b\x1b") + b"\x7f"
MAX_CONTROL_SHARE = 0.1
"""Control characters in the beginning of a file, above which it is no text."""

_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html)$")
_WEB_CODE = (".js", ".mjs", ".cjs", ".css", ".jsx", ".ts")
_LONG_LINES_NORMAL = (".ipynb", ".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".csv", ".tsv")
"""Formats whose paragraphs, rows or images are one line each."""

LONG_LINE = 1_000
"""Bytes; nobody writes such a line of code by hand."""
LONG_LINE_WEB = 500
"""Bytes; minifiers often break at this column."""
LONG_SHARE = 0.8
"""Share of a file in long lines above which it is minified or a dump on one line."""


def skip_by_name(path: str) -> str:
    """Reason to leave `path` out unread; '' when its content must be looked at."""
    name = path[path.rfind("/") + 1 :].lower()
    if name in LOCK_FILES:
        return "lock file"
    if is_secret_name(name):
        return _SECRET
    if "." in name and name[name.rfind(".") + 1 :] in BINARY_ENDINGS:
        return _BINARY
    if name.endswith((".js.map", ".css.map", ".mjs.map", ".cjs.map", ".ts.map")):
        return "source map"
    return _MINIFIED if _MINIFIED_NAME.search(name) else ""


def classify(path: str, data: bytes) -> Skipped | str:
    """Why the file is left out, else its role (`types.ROLES`)."""
    reason = skip_by_name(path) or _skip_by_content(path, data)
    return Skipped(path, reason) if reason else role_of(path, data)


def _skip_by_content(path: str, data: bytes) -> str:
    if not data.strip():
        return "empty"
    if is_binary(data):
        return _BINARY
    name = path[path.rfind("/") + 1 :].lower()
    language = detect(path)
    if (name == ".npmrc" and b"_authToken" in data) or is_secret_content(
        data, is_source=bool(language and language.grammar)
    ):
        return _SECRET
    return _MINIFIED if is_minified(name, data) else ""


def is_binary(data: bytes) -> bool:
    """Whether `data` is no text: a NUL early on, a known beginning, or mostly controls."""
    head = data[:SNIFFED_BYTES]
    if b"\0" in head or head.startswith(_MAGIC):
        return True
    controls = len(head) - len(head.translate(None, _CONTROL))
    return controls > MAX_CONTROL_SHARE * len(head)


def is_minified(name: str, data: bytes) -> bool:
    """Whether nearly all of a file lies in lines longer than anybody writes."""
    limit = LONG_LINE_WEB if name.endswith(_WEB_CODE) else LONG_LINE
    # A file whose lines are short on average has no large share in long ones.
    if len(data) <= limit or len(data) < (data.count(b"\n") + 1) * limit * 0.2:
        return False
    if name.endswith(_LONG_LINES_NORMAL):
        return False
    long = sum(len(line) for line in data.split(b"\n") if len(line) > limit)
    return long > LONG_SHARE * len(data)
