"""Users and groups that a reverse proxy names, and which repositories they see by `access.toml`.

That lies in the configuration folder of the user who runs the server, and is read again when it
changes. docs/security.md shows one.
"""

from __future__ import annotations

import ipaddress
import logging
import tomllib
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import quote

from flask import request
from pydantic import BaseModel, ConfigDict, ValidationError

from codeqa.errors import SettingsError
from codeqa.hosts import ip_address
from codeqa.settings import Settings
from codeqa.store import Location
from codeqa.store.location import NOTE, read_note
from codeqa.web.connections import TWICE
from codeqa.web.errors import RequestRefusedError
from codeqa.web.security import User

log = logging.getLogger(__name__)

EVERYBODY = "*"


class Rules(BaseModel):
    """Say which groups see which repositories.

    The first pattern that fits decides; only owners see repositories that none fits. So a file of
    which only half is written never shows anybody more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    owners: frozenset[str] = frozenset()
    repositories: dict[str, frozenset[str]] = {}
    """Pattern → groups. One with a `/` is matched with the source of a clone (`host/owner/name`,
    with or without the port, without the branch) or the path of a folder, others with the name."""

    def allow(self, groups: frozenset[str], location: Location) -> bool:
        """Return whether one of `groups` sees a repository."""
        return not self.groups_of(location).isdisjoint(groups)

    def groups_of(self, location: Location) -> frozenset[str]:
        """Return the groups that see a repository, or that of a snapshot."""
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
            source = "/".join(path).partition("@")[0]
            sources = {f"{server}/{source}" for server in servers}
        for pattern, groups in self.repositories.items():
            names = sources if "/" in pattern else {location.name}
            if any(fnmatchcase(name, pattern) for name in names):
                return groups
        return frozenset()


def read_rules(path: Path) -> Rules:
    """Read the rules in `path`, anew where it has changed. Raises SettingsError."""
    try:
        status = path.stat()
        return _parsed(path, status.st_ino, status.st_ctime_ns, status.st_size)
    except ValidationError as error:
        problem = "{loc}: {msg}".format_map(error.errors()[0])
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise SettingsError(f"{path} cannot be used: {problem}.", "Write it as docs/security.md shows.")


@lru_cache(maxsize=1)
def _parsed(path: Path, *version: int) -> Rules:
    return Rules.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


class Proxy:
    """Authenticate by the headers of a reverse proxy. Raises SettingsError."""

    def __init__(self, settings: Settings) -> None:
        self._user, self._groups = settings.auth_user, settings.auth_groups
        self._rules = settings.config_dir / "access.toml"
        try:
            addresses = map(str.strip, settings.auth_from.split(","))
            networks = [ipaddress.ip_network(address) for address in addresses]
        except ValueError:
            networks = []
        if not networks or not all(network.prefixlen for network in networks):
            raise SettingsError(
                "CODEQA_AUTH_FROM must name the proxy's addresses.", "As in 10.0.3.7, 10.1.0.0/16."
            )
        self._networks = networks
        read_rules(self._rules)

    def user(self) -> User:
        """Return the user who sent this request.

        Raises RequestRefusedError for a request that came from elsewhere (403) or does not name one
        user (401), and while the rules cannot be read (503).
        """
        address = ip_address(request.remote_addr or "")
        if address is None or not any(address in network for network in self._networks):
            raise RequestRefusedError(403, "Come through the proxy that signs people in.")
        user, groups = self._header(self._user), self._header(self._groups).split(",")
        if not user or "," in user:
            raise RequestRefusedError(401, f"The proxy must name one user in {self._user}.")
        try:
            rules = read_rules(self._rules)
        except SettingsError as error:
            log.error("nobody sees any repository: %s", error)
            raise RequestRefusedError(503, "Its log says what is wrong in access.toml.") from None
        own_groups = frozenset(group.strip(" \t") for group in groups) - {""} | {EVERYBODY}
        name = f"user-{quote(user, safe='@')}"  # escaped: no two names become one
        if not own_groups.isdisjoint(rules.owners):
            return User(name)
        return User(name, owner=False, sees=partial(rules.allow, own_groups))

    def _header(self, name: str) -> str:
        """Return a header's value.

        Raises RequestRefusedError (401) if it was sent twice: one may be the user's own.
        """
        text = request.headers.get(name, "").encode("latin-1").decode("utf-8", "surrogateescape")
        if name.upper() in request.headers.get(TWICE, "").split() or not text.isprintable():
            raise RequestRefusedError(401, f"The proxy must send {name} once, in plain UTF-8.")
        return text.strip(" \t")
