"""Locate, list and remove the folders that hold the indices of repositories.

`<data>/repos/<name>-<hash of the real path>/` holds `repository.json`, the lock, the progress
record and, unless `CODEQA_TABLES` names another place, the tables. Locks and progress are always
local, the tables may lie on object storage. Snapshots (`repositories/snapshots.py`) lie with their
indices in `<data>/revs/<id of the repository>/`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import shutil
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeqa.errors import NotFoundError, RepositoryError, UsageError
from codeqa.folders import BORROWERS, FOUND, confirm_folder, direct_identity, make_private
from codeqa.text import json_object
from codeqa.text.tokens import well_formed

if TYPE_CHECKING:
    from lancedb.db import DBConnection

    from codeqa.settings import Settings

HASH_CHARACTERS = 8
NAME_CHARACTERS = 60  # of the readable part of a folder's name: file systems take 255 bytes

NOTE = "repository.json"


@dataclass(frozen=True, slots=True)
class Location:
    """The place of one repository's index."""

    root: Path  # the repository's real path
    id: str
    folder: Path
    tables: str  # URI of its LanceDB database
    snapshot_of: str = ""  # id of the repository that this is a snapshot of

    @property
    def name(self) -> str:
        """Return the user's name for it, else the last part of its path; both may change."""
        return str(read_note(self.folder / NOTE).get("name") or self.root.name or "root")

    @property
    def remote(self) -> tuple[str, str]:
        """Return a clone's address and branch, '' for the default branch; else two ''."""
        note = read_note(self.folder / NOTE)
        return str(note.get("url", "")), str(note.get("branch", ""))

    @property
    def commit(self) -> str:
        """Return the beginning of the hash of a snapshot's commit; '' for no snapshot."""
        return self.root.name.rpartition("@")[2] if self.snapshot_of else ""

    @property
    def tables_are_local(self) -> bool:
        return "://" not in self.tables


def locate(settings: Settings, root: Path) -> Location:
    """Return the location for the repository at `root`. Raises UsageError and RepositoryError."""
    # Path.expanduser raises for `~nobody`; this leaves it as it is.
    real = Path(os.path.realpath(os.path.expanduser(root)))  # noqa: PTH111
    if not real.is_dir():
        raise UsageError(
            f"{root} is not a folder.", "Give the path of a folder that holds source code."
        )
    if str(real) != well_formed(str(real)):
        raise RepositoryError(
            f"The path {str(real)!r} is not in UTF-8.", "Rename the folder that is not."
        )
    return location_of(settings, real)


def location_of(settings: Settings, real: Path) -> Location:
    """Return the location for the real path of a repository, be there a folder or not."""
    digest = hashlib.blake2b(os.fsencode(real), digest_size=16).hexdigest()[:HASH_CHARACTERS]
    name = re.sub(r"[^\w.-]+", "-", real.name or "root")[:NAME_CHARACTERS].strip("-.")
    identity = f"{name or 'repository'}-{digest}"
    folder, snapshot_of = settings.data_dir / "repos" / identity, ""
    if real.parent.parent == (settings.data_dir / "revs").resolve():
        folder, snapshot_of = real.with_name(f"{real.name}.index"), real.parent.name
        BORROWERS.add(str(real))
    return Location(real, identity, folder, tables_of(settings, folder, identity), snapshot_of)


def tables_of(settings: Settings, folder: Path, identity: str) -> str:
    """Return the URI of the tables called `identity`: in the folder, or where a setting says."""
    base = settings.tables.rstrip("/")
    if base and "://" not in base:
        base = str(Path(base).expanduser().absolute())
    return f"{base}/{identity}" if base else str(folder / "tables")


def short_id(id_: str) -> str:
    """Return the last part of a repository's id, which no other repository has."""
    return id_.rpartition("-")[2]


def stamp_of(location: Location) -> int:
    """Return a number that changes with each run over that index; 0 where there is none."""
    last = location.folder / "progress.json"
    if location.tables_are_local:
        last = Path(location.tables) / "meta.lance/_versions"
    with contextlib.suppress(OSError):
        return last.stat().st_mtime_ns
    return 0


def save_location(location: Location, **changed: str) -> None:
    """Create the folder and note in it which repository it belongs to.

    `changed` are `name`, or `url` and `branch`, or a pin; the other entries stay.
    """
    for folder in (location.folder.parent, location.folder):
        if os.path.lexists(folder) and not folder.is_dir():  # a file or link is none of ours
            folder.unlink()
    location.folder.mkdir(parents=True, exist_ok=True)
    make_private(location.folder, deep=False)
    path = location.folder / NOTE
    before = read_note(path)
    note = before | {"root": str(location.root), "name": location.name}
    if not before:
        note |= pin_of(location)
    note |= changed
    if note != before:
        if path.is_dir():
            shutil.rmtree(path)
        write_atomically(path, json.dumps(note, ensure_ascii=False))


def pin_of(location: Location) -> dict[str, str]:
    """Return the identity of the repository's folder, as its note has it; {} for no folder."""
    identity = direct_identity(location.root)
    return {"pinned": identity} if identity else {}


def confirm(location: Location) -> None:
    """Raise RepositoryError where another folder took the place of the indexed one.

    `codeqa index PATH` accepts the other. Clones are our own, and a snapshot is its repository.
    """
    if location.snapshot_of:
        folder = location.folder.parents[2] / "repos" / location.snapshot_of
        root = Path(str(read_note(folder / NOTE).get("root") or location.root))
        location = replace(location, root=root, folder=folder, snapshot_of="")
    data, note = location.folder.parents[1], location.folder / NOTE
    if location.root.is_relative_to(data.resolve()):
        return
    if str(location.root) not in FOUND:  # first use: another repository may have moved here
        pin = pin_of(location).items()
        for other in data.glob(f"repos/*/{NOTE}"):
            if other != note and pin and pin <= read_note(other).items():
                FOUND[str(location.root)] = ""
    confirm_folder(location.root, lambda: str(read_note(note).get("pinned")))


def read_note(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file at `path`; an empty one if it cannot be read."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: not UTF-8
        status = path.stat()
        return _read_version(path, status.st_mtime_ns, status.st_size, status.st_ino).copy()
    return {}


@functools.lru_cache(4_096)
def _read_version(path: Path, *_version: int) -> dict[str, Any]:
    return json_object(path.read_text(encoding="utf-8")) or {}


def list_locations(settings: Settings, *below: str) -> list[Location]:
    """Return all repositories with an index, by folder name, also those that are gone by now.

    `below` are parts of the data folder: `repos` by default, `revs/*` for snapshots.
    """
    locations, data = [], settings.data_dir.resolve()
    for part in below or ("repos",):
        for note in sorted(data.glob(f"{part}/*/{NOTE}")):
            root = str(read_note(note).get("root", ""))
            location = location_of(settings, Path(root))
            if root and location.folder.resolve() == note.parent:
                locations.append(location)
    return locations


def snapshots_folder(settings: Settings, location: Location) -> Path:
    """Return the folder of the snapshots of a repository."""
    return settings.data_dir.resolve() / "revs" / location.id


def snapshots_of(settings: Settings, location: Location) -> list[Location]:
    """Return the snapshots of a repository that have an index."""
    return list_locations(settings, f"revs/{location.id}")


def remove(settings: Settings, location: Location) -> None:
    """Delete tables and snapshots of `location`, and a snapshot's files. Raises NotFoundError."""
    if not location.folder.is_dir():
        raise NotFoundError(f"There is no index of {location.root}.", "See `codeqa repos list`.")
    for snapshot in snapshots_of(settings, location):
        remove(settings, snapshot)
    files = location.root if location.snapshot_of else snapshots_folder(settings, location)
    shutil.rmtree(files, ignore_errors=True)
    if location.tables_are_local:
        shutil.rmtree(location.tables, ignore_errors=True)
    else:
        connect(location).drop_all_tables()
    # A run may still write into a snapshot that is removed to make room.
    shutil.rmtree(location.folder, ignore_errors=bool(location.snapshot_of))


def connect(location: Location, **options: Any) -> DBConnection:
    """Open the database of `location`, with `options` of LanceDB."""
    import lancedb
    import pyarrow as pa

    # Arrow's own allocator keeps what other threads freed: 60 MB in 100 updates of one repository.
    pa.set_memory_pool(pa.system_memory_pool())
    return lancedb.connect(location.tables, **options)


def local_bytes(location: Location) -> int:
    """Return the bytes on this machine's disk: the folder and, where local, the tables."""
    folders = [str(location.folder)]
    if location.tables_are_local and not location.tables.startswith(f"{location.folder}{os.sep}"):
        folders.append(location.tables)
    total = 0
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(OSError):  # it vanished meanwhile
                    total += (Path(parent) / name).lstat().st_size
    return total


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` in one step, so that a reader sees the old or the new text."""
    # Threads of a server write the same note at the same time.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        temporary.touch(0o600)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:  # a full disk leaves a part of it
        temporary.unlink(missing_ok=True)
