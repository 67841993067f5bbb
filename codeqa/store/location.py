"""Where the index of a repository lies: one folder per repository, outside of it.

`<data>/repos/<name>-<hash of the real path>/` holds `repository.json`, the lock, the
progress record and, unless `CODEQA_TABLES` names another place, the tables. Locks and
progress are always local, the tables may lie on object storage. What a repository was like at
a commit (`repositories/snapshots.py`) lies with its index in `<data>/revs/<id of the repository>/`.
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
from itertools import chain
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
NAME_CHARACTERS = 60
"""Longest readable part of a folder's name; well under the 255 bytes of file systems."""

NOTE = "repository.json"

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Location:
    """The place of one repository's index.

    `root` is the repository's real path, `tables` the URI of its LanceDB database.
    """

    root: Path
    id: str
    folder: Path
    tables: str
    snapshot_of: str = ""
    """Id of the repository whose files at a commit these are; '' for one that people work on."""

    @property
    def name(self) -> str:
        """What the user calls it, else the last part of its path; read anew, as it may change."""
        return str(read_note(self.folder / NOTE).get("name") or self.root.name or "root")

    @property
    def remote(self) -> tuple[str, str]:
        """Address and branch of what this is a clone of; '' for a folder of the user's own, and
        the branch '' for the one that the server calls its own."""
        note = read_note(self.folder / NOTE)
        return str(note.get("url", "")), str(note.get("branch", ""))

    @property
    def commit(self) -> str:
        """How the commit begins that this is a snapshot of; '' for no snapshot."""
        return self.root.name.rpartition("@")[2] if self.snapshot_of else ""

    @property
    def tables_are_local(self) -> bool:
        return "://" not in self.tables


def locate(settings: Settings, root: Path) -> Location:
    """Give the location for the repository at `root`; nothing is created.

    Raises UsageError when `root` is no folder, RepositoryError when its name cannot be stored.
    """
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
    """The location for the real path of a repository, be there a folder or not."""
    digest = hashlib.blake2b(os.fsencode(real), digest_size=16).hexdigest()[:HASH_CHARACTERS]
    name = real.name or "root"
    readable = _UNSAFE.sub("-", name)[:NAME_CHARACTERS].strip("-.") or "repository"
    identity = f"{readable}-{digest}"
    folder, snapshot_of = settings.data_dir / "repos" / identity, ""
    if real.parent.parent == (settings.data_dir / "revs").resolve():
        folder, snapshot_of = real.with_name(f"{real.name}.index"), real.parent.name
        BORROWERS.add(str(real))
    return Location(real, identity, folder, tables_of(settings, folder, identity), snapshot_of)


def tables_of(settings: Settings, folder: Path, identity: str) -> str:
    """The URI of the tables that are called `identity`, of what has this folder."""
    base = settings.tables.rstrip("/")
    if base and "://" not in base:
        base = str(Path(base).expanduser().absolute())
    return f"{base}/{identity}" if base else str(folder / "tables")


def end_of(id_: str) -> str:
    """The end of a repository's id, which no other repository's has."""
    return id_.rpartition("-")[2]


def stamp_of(location: Location) -> int:
    """What is another number after each run over that index; 0 where there is none."""
    last = location.folder / "progress.json"
    if location.tables_are_local:
        last = Path(location.tables) / "meta.lance/_versions"
    with contextlib.suppress(OSError):
        return last.stat().st_mtime_ns
    return 0


def save_location(location: Location, **changed: str) -> None:
    """Create the folder and note in it which repository it belongs to.

    `changed` are `name`, or `url` and `branch`; what was noted of the others stays.
    """
    for folder in (location.folder.parent, location.folder):
        if os.path.lexists(folder) and not folder.is_dir():  # what else lies there is none of ours
            folder.unlink()
    location.folder.mkdir(parents=True, exist_ok=True)
    make_private(location.folder, deep=False)
    known = {"root": str(location.root), "name": location.name}
    note = read_note(location.folder / NOTE)
    if not note:
        known |= pin_of(location)
    if note != (wanted := note | known | changed):
        path = location.folder / NOTE
        if path.is_dir():
            shutil.rmtree(path)
        write_atomically(path, json.dumps(wanted, ensure_ascii=False))


def pin_of(location: Location) -> dict[str, str]:
    """Return what the note of a location says of the folder that lies there now."""
    here = direct_identity(location.root)
    return {"pinned": here} if here else {}


def confirm(location: Location) -> None:
    """Raise RepositoryError where the folder of a repository is another than the one indexed, as
    `confirm_folder` does; `codeqa index PATH` pins another. Clones and snapshots are our own."""
    if location.snapshot_of:  # which borrows from its repository
        folder = location.folder.parents[2] / "repos" / location.snapshot_of
        root = Path(str(read_note(folder / NOTE).get("root") or location.root))
        location = replace(location, root=root, folder=folder, snapshot_of="")
    data, note = location.folder.parents[1], location.folder / NOTE
    if location.root.is_relative_to(data.resolve()):
        return
    if str(location.root) not in FOUND:  # opened first: another one may have been renamed
        pin = pin_of(location).items()
        for other in data.glob(f"repos/*/{NOTE}"):
            if other != note and pin and pin <= read_note(other).items():
                FOUND[str(location.root)] = ""
    confirm_folder(location.root, lambda: str(read_note(note).get("pinned")))


def read_note(path: Path) -> dict[str, Any]:
    """The JSON object in the file at `path`; an empty one if there is none that can be read."""
    with contextlib.suppress(OSError, ValueError):  # of text that is none
        about = path.stat()
        return {**_read(path, about.st_mtime_ns, about.st_size, about.st_ino)}
    return {}


@functools.lru_cache(4_096)
def _read(path: Path, *_version: int) -> dict[str, Any]:
    return json_object(path.read_text(encoding="utf-8")) or {}


def list_locations(settings: Settings, *below: str) -> list[Location]:
    """All repositories that have a folder here, by name; those that moved away included.

    `below` are parts of the data folder: `repos` unless given, `revs/*` for snapshots.
    """
    found, data = [], settings.data_dir.resolve()
    parts = (sorted(data.glob(f"{part}/*/{NOTE}")) for part in below or ("repos",))
    for note in chain.from_iterable(parts):
        root = str(read_note(note).get("root", ""))
        location = location_of(settings, Path(root))
        if root and location.folder.resolve() == note.parent:
            found.append(location)
    return found


def snapshots_folder(settings: Settings, location: Location) -> Path:
    """Where the snapshots of the repository at `location` lie."""
    return settings.data_dir.resolve() / "revs" / location.id


def snapshots_of(settings: Settings, location: Location) -> list[Location]:
    """The snapshots of the repository at `location` that have an index."""
    return list_locations(settings, f"revs/{location.id}")


def remove(settings: Settings, location: Location) -> None:
    """Delete the index of `location`: its tables, wherever they lie, its folder and its snapshots;
    of a snapshot its files as well.

    Raises NotFoundError when there is none.
    """
    if not location.folder.is_dir():
        raise NotFoundError(
            f"There is no index of {location.root}.", "`codeqa repos list` shows what there is."
        )
    for snapshot in snapshots_of(settings, location):
        remove(settings, snapshot)
    files = location.root if location.snapshot_of else snapshots_folder(settings, location)
    shutil.rmtree(files, ignore_errors=True)
    if location.tables_are_local:
        shutil.rmtree(location.tables, ignore_errors=True)
    else:
        connect(location).drop_all_tables()
    # A run may be at work in a snapshot that makes room.
    shutil.rmtree(location.folder, ignore_errors=bool(location.snapshot_of))


def connect(location: Location, **options: Any) -> DBConnection:
    """Open the database of `location`, with `options` of LanceDB.

    From then on Arrow takes memory where LanceDB does. Its own allocator keeps what other threads
    gave back: a served repository grew by 60 MB in 100 updates, and none of that was in use.
    """
    import lancedb
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
    return lancedb.connect(location.tables, **options)


def local_bytes(location: Location) -> int:
    """Bytes on this machine's disk: the folder and, where local, the tables. Files that vanish
    meanwhile count as 0."""
    folders = {str(location.folder)}
    if location.tables_are_local and not location.tables.startswith(f"{location.folder}{os.sep}"):
        folders.add(location.tables)
    total = 0
    for parent, _, names in chain(*map(os.walk, folders)):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(parent) / name).lstat().st_size
    return total


def write_atomically(path: Path, text: str) -> None:
    """Replace `path` in one step, so that a reader sees the old or the new text."""
    # Threads of a server write the same note at the same time.
    beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        beside.touch(0o600)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:  # a full disk leaves a part of it
        beside.unlink(missing_ok=True)
