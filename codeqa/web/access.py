"""Who sees which repository behind a proxy: `access.toml` in the configuration folder of the user
who runs the server, read again when it changes. docs/security.md shows one."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from codeqa.errors import SettingsError
from codeqa.store import Location
from codeqa.store.location import NOTE, read_note

EVERYBODY = "*"


class Rules(BaseModel):
    """Where a file is only half written the rest is missing, and nobody sees more than by all of
    it: the first pattern that fits decides, and what none fits nobody sees but the owners."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    owners: frozenset[str] = frozenset()
    repositories: dict[str, frozenset[str]] = {}
    """Pattern → groups. With a `/` it is for where a clone comes from (`host/owner/name`, each
    branch of it, with or without the port), or for the path of a folder, else for the name."""

    def groups_of(self, location: Location) -> frozenset[str]:
        """The groups that see a repository; of a snapshot those that see what it is of."""
        if location.snapshot_of:
            folder = location.folder.parents[2] / "repos" / location.snapshot_of
            root = read_note(folder / NOTE).get("root")
            if not root:  # it was removed
                return frozenset()
            location = replace(location, root=Path(root), folder=folder, snapshot_of="")
        clones, sources = location.folder.parents[1].resolve() / "clones", {str(location.root)}
        if location.root.is_relative_to(clones):
            # `host_port/owner,group/name@branch`, as `git.read_remote` makes it.
            inside = location.root.relative_to(clones).as_posix()
            server, *path = inside.replace(",", "/").split("/")
            host, _, port = server.rpartition("_")
            servers = {f"{host}:{port}", host} if host and port.isdigit() else {server}
            sources = {f"{one}/{'/'.join(path).partition('@')[0]}" for one in servers}
        for pattern, groups in self.repositories.items():
            asked = sources if "/" in pattern else {location.name}
            if any(fnmatchcase(one, pattern) for one in asked):
                return groups
        return frozenset()


def read_rules(path: Path) -> Rules:
    """Raises SettingsError while they cannot be used."""
    try:
        about = path.stat()
        return _parsed(path, about.st_ino, about.st_ctime_ns, about.st_size)
    except ValidationError as error:
        why = "{loc}: {msg}".format_map(error.errors()[0])
    except (OSError, ValueError, RecursionError) as error:
        why = str(error)
    raise SettingsError(f"{path} cannot be used: {why}.", "Write it as docs/security.md shows.")


@lru_cache(maxsize=1)
def _parsed(path: Path, *version: int) -> Rules:
    return Rules.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
