"""Repositories on other machines: their addresses, and where their hosts show a file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlsplit

from codeqa.errors import RepositoryError, UsageError
from codeqa.repository.git import (
    Git,
    find_git,
    read_git,
    refs_state,
    work_tree,
)

HOST_SECONDS = 3.0
"""How long git may take to say where a file is shown: an answer can do without."""

_LIKE_AN_ADDRESS = re.compile(r"[\w+.-]+:(//|:)|[\w.-]+@[\w.-]+:")
_SCP = re.compile(r"([\w][\w.-]*)@([^:/]+):(?!//)(.+)")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_PART = re.compile(r"(?!\.+$)[\w~.%][\w~.%+-]{0,99}")
_BRANCH = re.compile(r"(?!.*(\.\.|//|@\{))[\w][\w./+#@-]{0,199}")


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on another machine, without any password."""

    url: str
    branch: str
    """A branch or tag; '' for the one that the server calls its own."""
    folder: Path
    """Where its clone lies, below the folder of all clones: `host/owner/name`."""


def looks_remote(text: str) -> bool:
    """Return whether `text` is meant as the address of a repository, not as a path or name."""
    return bool(_LIKE_AN_ADDRESS.match(text.strip()))


def read_remote(address: str, branch: str = "") -> Remote:
    """Return the repository at an https or ssh address or `user@host:owner/name`.

    A password in it is left out: it would be stored and shown. Raises UsageError for every
    other address, and for a branch that cannot be one.
    """
    address, branch = address.strip(), branch.strip()
    wrong = UsageError(
        "This is no address that can be cloned.",
        "Give it as https://host/owner/name, ssh://git@host/owner/name or git@host:owner/name.",
    )
    if branch and not _BRANCH.fullmatch(branch):
        raise UsageError("This is no name of a branch.", "Leave it out for the usual one.")
    if scp := _SCP.fullmatch(address):
        user, host, path = scp.groups()
        url, place = f"{user}@{host}:{path}", host
    else:
        try:
            parts = urlsplit(address)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise wrong from None
        if parts.scheme not in ("https", "ssh") or parts.query or parts.fragment:
            raise wrong
        path, user = parts.path, parts.username if parts.scheme == "ssh" else ""
        if user and not re.fullmatch(r"\w[\w.-]*", user):
            raise wrong
        place = f"{host}:{port}" if port else host
        url = f"{parts.scheme}://{f'{user}@' if user else ''}{place}{path}"
    *owners, name = (path.strip("/").removesuffix(".git") or "-").split("/")
    if not _HOST.fullmatch(host) or not all(map(_PART.fullmatch, (*owners, name))):
        raise wrong
    # All clones lie equally deep, so that none lies in another; `,` and `@` are in no part.
    named = f"{name}@{branch.replace('/', ',')}" if branch else name
    server = place.lower().replace(":", "_")
    return Remote(url, branch, Path(server, ",".join(owners) or ",", named))


_SHOWN_AT = {
    "github": "blob/{commit}/{path}#L{start}-L{end}",
    "gitlab": "-/blob/{commit}/{path}#L{start}-{end}",
    "codeberg": "src/commit/{commit}/{path}#L{start}-L{end}",
    "gitea": "src/commit/{commit}/{path}#L{start}-L{end}",
    "forgejo": "src/commit/{commit}/{path}#L{start}-L{end}",
}
"""Below the repository's own page, by a part of the name of its host."""


def hosted_lines(folder: Path, path: str) -> str:
    """Return the address of the file `path` of `folder` at the repository's host, as of the last
    commit, with `{start}` and `{end}` where its lines go; '' for an unknown host, or one without
    that commit.

    No name of a user and no password is in it. Git is asked once until a commit, a branch or the
    configuration changes."""
    tree = work_tree(os.fsencode(folder.resolve()))
    return _hosted_form(folder, tree and refs_state(tree)).replace("{path}", quote(path))


@lru_cache(64)
def _hosted_form(folder: Path, _state: object) -> str:
    """Return what `hosted_lines` does for any path in `folder`, with `{path}` where it goes."""
    try:
        git = find_git(folder)
        wanted = ("config", "--no-includes", "--get-regexp", r"^remote\..*\.url$")
        urls = dict(line.split(" ", 1) for line in _lines(git, folder, *wanted))
        url = urls.get("remote.origin.url") or next(iter(urls.values()), "")
        server, owners, name = read_remote(url).folder.parts
    except (RepositoryError, UsageError):  # there is no git, or nothing that could be a host
        return ""
    host, _, port = server.partition("_")
    form = next((form for word, form in _SHOWN_AT.items() if word in host.split(".")), "")
    there = ("for-each-ref", "--count=1", "--contains=HEAD", "refs/remotes")
    if not form or not _lines(git, folder, *there):
        return ""
    commit, *inside = _lines(git, folder, "rev-parse", "HEAD", "--show-prefix")
    if url.startswith("https:") and port:
        host += f":{port}"
    path = f"{quote(''.join(inside))}{{path}}"
    form = form.format(commit=commit, path=path, start="{start}", end="{end}")
    return f"https://{host}/{owners.replace(',', '/')}/{name}/{form}"


def _lines(git: Git, folder: Path, *arguments: str) -> list[str]:
    """Return the lines that a git command prints, none where it fails."""
    printed = read_git(git, folder, arguments, HOST_SECONDS) or b""
    return printed.decode("utf-8", "replace").splitlines()
