"""Read addresses of repositories on other machines, and link to their hosts' pages of files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, urlsplit

from codeqa.errors import RepositoryError, UsageError
from codeqa.repository.git import Git, find_git, read_git, refs_state, work_tree

HOST_SECONDS = 3.0
"""Time limit of git for the link to a file: an answer can do without the link."""

_LIKE_AN_ADDRESS = re.compile(r"(?!file:/)[\w+.-]+:(//|:)|[\w.-]+@[\w.-]+:")
_SCP = re.compile(r"([\w][\w.-]*)@([^:/]+):(?!//)(.+)")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_PART = re.compile(r"(?!\.+$)[\w~.%][\w~.%+-]{0,99}")
_REMOTE_URLS = r"^remote\..*\.url$"
_BRANCH = re.compile(r"(?!.*(\.\.|//|@\{))[\w][\w./+#@-]{0,199}")


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on another machine, without any password."""

    url: str
    branch: str
    """A branch or tag; '' for the server's default branch."""
    folder: Path
    """Folder of its clone below the folder of all clones: `host/owner/name`."""


def looks_remote(text: str) -> bool:
    """Return whether `text` looks like the address of a repository, not like a path or name."""
    return bool(_LIKE_AN_ADDRESS.match(text.strip()))


def read_remote(address: str, branch: str = "") -> Remote:
    """Return the repository at an https or ssh address or `user@host:owner/name`.

    A password is removed from it: it would be stored and shown. Raises UsageError for every other
    address, and for a branch that cannot be one.
    """
    address, branch = address.strip(), branch.strip()
    if branch and not _BRANCH.fullmatch(branch):
        raise UsageError(
            "This can't be the name of a branch.", "Leave it out to clone the default branch."
        )
    url, server, path = _address_parts(address)
    parts = (path.strip("/").removesuffix(".git") or "-").split("/")
    if not _HOST.fullmatch(server.partition(":")[0]) or not all(map(_PART.fullmatch, parts)):
        raise _not_clonable()
    # All clones lie equally deep, so that none lies in another; `,` and `@` are in no part.
    owners, folder = ",".join(parts[:-1]) or ",", parts[-1]
    if branch:
        folder += f"@{branch.replace('/', ',')}"
    return Remote(url, branch, Path(server.lower().replace(":", "_"), owners, folder))


def _address_parts(address: str) -> tuple[str, str, str]:
    """Return the address without a password, `host` or `host:port`, and the path.

    Raises UsageError for other schemes, queries and odd names of users.
    """
    if scp := _SCP.fullmatch(address):
        user, host, path = scp.groups()
        return f"{user}@{host}:{path}", host, path
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _not_clonable() from None
    if parts.scheme not in ("https", "ssh") or parts.query or parts.fragment:
        raise _not_clonable()
    user = parts.username if parts.scheme == "ssh" else ""
    if user and not re.fullmatch(r"\w[\w.-]*", user):
        raise _not_clonable()
    server = f"{host}:{port}" if port else host
    sign_in = f"{user}@" if user else ""
    return f"{parts.scheme}://{sign_in}{server}{parts.path}", server, parts.path


def _not_clonable() -> UsageError:
    return UsageError(
        "This address can't be cloned.",
        "Use https://host/owner/name, ssh://git@host/owner/name or git@host:owner/name.",
    )


_FILE_PAGES = {
    "github": "blob/{commit}/{path}#L{start}-L{end}",
    "gitlab": "-/blob/{commit}/{path}#L{start}-{end}",
    "codeberg": "src/commit/{commit}/{path}#L{start}-L{end}",
    "gitea": "src/commit/{commit}/{path}#L{start}-L{end}",
    "forgejo": "src/commit/{commit}/{path}#L{start}-L{end}",
}
"""A part of the host's name → the address of a file's lines below the repository's own page."""


def hosted_lines(folder: Path, path: str) -> str:
    """Return the address at which the host of the repository `folder` shows the file `path`.

    It is that of the last commit, with `{start}` and `{end}` for the lines, and without a user's
    name or password; '' for an unknown host, or one without that commit. Git is run once until a
    commit, a branch or the configuration changes.
    """
    tree = work_tree(os.fsencode(folder.resolve()))
    return _hosted_form(folder, tree and refs_state(tree)).replace("{path}", quote(path))


@lru_cache(64)
def _hosted_form(folder: Path, _state: object) -> str:
    """Return the result of `hosted_lines` for any path in `folder`, with `{path}` in its place."""
    try:
        git = find_git(folder)
        settings = _lines(git, folder, "config", "--no-includes", "--get-regexp", _REMOTE_URLS)
        urls = dict(line.split(" ", 1) for line in settings)
        url = urls.get("remote.origin.url") or next(iter(urls.values()), "")
        server, owners, name = read_remote(url).folder.parts
    except (RepositoryError, UsageError):  # there is no git, or no remote with a host
        return ""
    host, _, port = server.partition("_")
    words = host.split(".")
    page = next((page for word, page in _FILE_PAGES.items() if word in words), "")
    on_host = ("for-each-ref", "--count=1", "--contains=HEAD", "refs/remotes")
    if not page or not _lines(git, folder, *on_host):
        return ""
    commit, *prefix = _lines(git, folder, "rev-parse", "HEAD", "--show-prefix")
    if url.startswith("https:") and port:
        host += f":{port}"
    path = quote("".join(prefix)) + "{path}"
    page = page.format(commit=commit, path=path, start="{start}", end="{end}")
    return f"https://{host}/{owners.replace(',', '/')}/{name}/{page}"


def _lines(git: Git, folder: Path, *arguments: str) -> list[str]:
    """Return the lines that a git command prints; none if it fails."""
    output = read_git(git, folder, arguments, HOST_SECONDS) or b""
    return output.decode("utf-8", "replace").splitlines()
