"""A fingerprint of what turns files into rows: when it changes, the rows are stale."""

from __future__ import annotations

import hashlib
from pathlib import Path

_PARTS = ("repository", "parsing", "languages", "text", "store/records.py")
_ENDINGS = {".py", ".scm", ".toml"}


def parser_fingerprint() -> str:
    """Hash of the extracting code and its data files; 5 ms."""
    package = Path(__file__).resolve().parent.parent
    digest = hashlib.blake2b(digest_size=8)
    for part in _PARTS:
        place = package / part
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix in _ENDINGS and file.is_file():
                digest.update(file.relative_to(package).as_posix().encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
