"""Which files of a repository are to be read: git's view of it, or our own outside git.

Both ways give the same list. `git ls-files` names what is tracked or would be; where there
is no git, or it refuses, our own walk applies the same ignore rules. On top of either,
`.codeqaignore` files (same syntax, nested too) leave out more, and what names alone decide
(lock files, secrets, images) is left out without opening it. Nothing is read through a
symbolic link, and no pipe, socket or device is ever opened.
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH110, PTH118, PTH120, PTH208

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from codeqa.errors import RepositoryError, UsageError
from codeqa.parsing.git import (
    common_directory,
    find_git,
    git_directory,
    is_linked_work_tree,
    list_files,
)
from codeqa.parsing.ignore import Chain, excluded, global_excludes, read_patterns
from codeqa.parsing.skip import skip_by_name
from codeqa.types import Skipped

GIT_IGNORE = b".gitignore"
OWN_IGNORE = b".codeqaignore"

MAX_GIT_CALLS = 200
"""Nested repositories that git itself lists; a tree with more is walked by us."""

TOOL_FOLDERS = frozenset(
    b"__pycache__ .pytest_cache .venv .git .idea venv node_modules .vscode .github .gitlab "
    b".angular cdk.out .aws-sam .terraform .hg .svn .tox .nox .mypy_cache .ruff_cache "
    b".gradle .eggs bower_components".split()
)
"""Left out where no ignore rules of git's say what is source (S0.05, and their like)."""

OUTPUT_FOLDERS = frozenset({b"env", b"dist", b"build"})
"""Of S0.05 too, but also usual names of packages: left out only beside a manifest."""

_MANIFESTS = frozenset(
    b"package.json setup.py setup.cfg pyproject.toml pom.xml build.gradle build.gradle.kts "
    b"Cargo.toml CMakeLists.txt composer.json Gemfile mix.exs Makefile".split()
)

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""A name with these would break the line-based forms in which paths are shown and sent."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file to read: path relative to the root with `/`, bytes, time of last change in ns."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found, both sorted by path."""

    root: Path
    files: tuple[FileEntry, ...]
    skipped: tuple[Skipped, ...]


def walk(root: Path, *, max_file_bytes: int, use_git: bool = True) -> Walk:
    """List the files of `root` that are to be indexed, and those that are not with the reason.

    `root` may be a work tree, a folder inside one, or any other folder. What git ignores is
    normal and not listed. Raises UsageError when `root` is no folder, RepositoryError when
    it cannot be read.
    """
    top = checked_root(root)
    skipped: list[Skipped] = []
    names = _all_names(top, use_git, skipped)
    kept = _without_own_ignores(top, sorted(names), skipped)
    files = list(_examine(os.fsencode(top), kept, names, max_file_bytes, skipped))
    return Walk(top, tuple(files), tuple(sorted(skipped, key=lambda item: item.path)))


def checked_root(root: Path) -> Path:
    """The real path of `root`. Raises UsageError or RepositoryError with a sentence."""
    try:
        top = root.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        raise UsageError(f"There is no folder {root}.", "Give the path of a repository.") from None
    if not top.is_dir():
        raise UsageError(f"{root} is not a folder.", "Give the path of a repository.")
    try:
        with os.scandir(top):
            return top
    except OSError as error:
        raise RepositoryError(
            f"{root} cannot be read: {error.strerror}.", "Check its permissions."
        ) from None


# --- names: from git where it answers, else from our own walk -------------------------------


_Names = dict[bytes, os.stat_result | None]
"""Name relative to the root → its status, where finding it took one."""


def _all_names(root: Path, use_git: bool, skipped: list[Skipped]) -> _Names:
    """Every candidate below `root`, nested repositories and submodules included."""
    top = os.fsencode(root)
    git = find_git(root) if use_git else None
    names: _Names = {}
    waiting = [b""]
    calls = 0
    while waiting:
        base = waiting.pop()
        folder = top + b"/" + base if base else top
        listed = None
        if git is not None and calls < MAX_GIT_CALLS and (base or _work_tree(folder)):
            calls += 1
            listed = list_files(git, Path(os.fsdecode(folder)))
        if listed is not None and (listed or base):
            found, nested = _split_nested(folder, listed, base, skipped)
        else:
            found, nested = _own_walk(folder, base, skipped)
        names.update(found)
        waiting += nested
    return names


def _work_tree(folder: bytes) -> bytes | None:
    """Top of the work tree that `folder` lies in."""
    while True:
        if git_directory(folder) is not None:
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _split_nested(
    folder: bytes, listed: list[bytes], base: bytes, skipped: list[Skipped]
) -> tuple[_Names, list[bytes]]:
    """Tell the nested repositories and submodules in git's list from the files."""
    found: _Names = {}
    nested: list[bytes] = []
    for name in listed:
        if name.startswith((b"../", b"/")):
            continue
        if name.endswith(b"/"):
            _add_nested(folder, name, base, nested, skipped)
            continue
        path = folder + b"/" + name
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # tracked, but deleted in the work tree
        except OSError as error:
            skipped.append(Skipped(_shown(base + name), f"unreadable: {error.strerror}"))
            continue
        if not stat.S_ISDIR(status.st_mode):
            found[base + name] = status
        elif git_directory(path) is not None:
            nested.append(base + name + b"/")
        elif not os.listdir(path):
            skipped.append(Skipped(_shown(base + name), "submodule not checked out"))
    return found, nested


def _add_nested(
    folder: bytes, name: bytes, base: bytes, nested: list[bytes], skipped: list[Skipped]
) -> None:
    """Queue an untracked repository, unless it is a second work tree of one."""
    directory = git_directory(folder + b"/" + name.rstrip(b"/"))
    if directory is not None and is_linked_work_tree(directory):
        skipped.append(Skipped(_shown(base + name), "another work tree of a repository"))
    elif directory is not None:
        nested.append(base + name)


def _own_walk(folder: bytes, base: bytes, skipped: list[Skipped]) -> tuple[_Names, list[bytes]]:
    """Walk `folder` as git would. Returns names relative to the root, nested ones apart."""
    tree = folder if base else _work_tree(folder)
    prefix, chain = _outer_rules(tree, folder) if tree is not None else (b"", ())
    in_git = tree is not None
    if chain is None:  # the folder itself is ignored; who names it wants it all the same
        prefix, chain, in_git = b"", (), False
    found: _Names = {}
    nested: list[bytes] = []
    waiting: list[tuple[bytes, Chain]] = [(b"", chain)]
    while waiting:
        here, chain = waiting.pop()
        try:
            with os.scandir(folder + b"/" + here) as entries:
                content = list(entries)
        except OSError as error:
            skipped.append(Skipped(_shown(base + here), f"unreadable: {error.strerror}"))
            continue
        rules = read_patterns(folder + b"/" + here + GIT_IGNORE)
        if rules is not None:
            chain = (*chain, (len(prefix + here), rules))
        beside_manifest = not here or any(entry.name in _MANIFESTS for entry in content)
        for entry in content:
            name = here + entry.name
            if entry.name == b".git":
                continue
            if not entry.is_dir(follow_symlinks=False):
                if not excluded(chain, prefix + name, False):
                    found[base + name] = None
            elif not in_git and (
                entry.name in TOOL_FOLDERS
                or (entry.name in OUTPUT_FOLDERS and beside_manifest)
                or os.path.exists(entry.path + b"/pyvenv.cfg")
            ):
                skipped.append(Skipped(_shown(base + name) + "/", "folder of tools or output"))
            elif excluded(chain, prefix + name, True):
                continue
            elif git_directory(entry.path) is not None:
                _add_nested(folder, name + b"/", base, nested, skipped)
            else:
                waiting.append((name + b"/", chain))
    return found, nested


def _outer_rules(tree: bytes, folder: bytes) -> tuple[bytes, Chain | None]:
    """Prefix of `folder` in its work tree and the rules from outside of it.

    The rules are None when they exclude `folder` itself.
    """
    directory = git_directory(tree) or tree + b"/.git"
    chain: Chain = ()
    for rules in (
        global_excludes(),
        read_patterns(common_directory(directory) + b"/info/exclude"),
    ):
        if rules is not None:
            chain = (*chain, (0, rules))
    prefix = b""
    for part in [part for part in folder[len(tree) :].split(b"/") if part]:
        rules = read_patterns(tree + b"/" + prefix + GIT_IGNORE)
        if rules is not None:
            chain = (*chain, (len(prefix), rules))
        if excluded(chain, prefix + part, True):
            return b"", None
        prefix += part + b"/"
    return prefix, chain


# --- what is left out on top ------------------------------------------------------------------


def _without_own_ignores(root: Path, names: list[bytes], skipped: list[Skipped]) -> Iterator[bytes]:
    """Drop, and list, what `.codeqaignore` files exclude."""
    top = os.fsencode(root)
    # Directory → its chain of rules, or None when the directory itself is excluded.
    chains: dict[bytes, Chain | None] = {b"": _with_rules(top, b"", ())}
    for name in names:
        folder = name[: name.rfind(b"/") + 1]
        chain = chains[folder] if folder in chains else _chain_of(top, folder, chains)
        if chain == ():
            yield name
        elif chain is None or excluded(chain, name, False):
            skipped.append(Skipped(_shown(name), "excluded by .codeqaignore"))
        else:
            yield name


def _chain_of(top: bytes, folder: bytes, chains: dict[bytes, Chain | None]) -> Chain | None:
    missing = []
    while folder not in chains:
        missing.append(folder)
        folder = folder[: folder.rfind(b"/", 0, -1) + 1]
    chain = chains[folder]
    for folder in reversed(missing):
        if chain is not None:
            chain = None if excluded(chain, folder[:-1], True) else _with_rules(top, folder, chain)
        chains[folder] = chain
    return chain


def _with_rules(top: bytes, folder: bytes, chain: Chain) -> Chain:
    rules = read_patterns(top + b"/" + folder + OWN_IGNORE)
    return (*chain, (len(folder), rules)) if rules is not None else chain


def _examine(
    top: bytes,
    kept: Iterable[bytes],
    statuses: _Names,
    max_file_bytes: int,
    skipped: list[Skipped],
) -> Iterator[FileEntry]:
    """Look at each candidate's kind, size and name, without opening it."""
    real: dict[bytes, bool] = {b"": True}
    inside = os.fsdecode(top).rstrip("/") + "/"
    for name in kept:
        folder = name[: name.rfind(b"/") + 1]
        if not (real[folder] if folder in real else _is_real(top, folder, real)):
            continue  # tracked below a directory that is now a link: another file, or none
        try:
            status = statuses[name] or os.lstat(top + b"/" + name)
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted meanwhile
        except OSError as error:
            skipped.append(Skipped(_shown(name), f"unreadable: {error.strerror}"))
            continue
        path = os.fsdecode(name)
        reason = ""
        if stat.S_ISLNK(status.st_mode):
            reason = _link_reason(os.fsdecode(top), path, inside)
            if not reason:
                continue  # its target is a file of the repository and stands for itself
        elif not stat.S_ISREG(status.st_mode):
            if stat.S_ISDIR(status.st_mode):
                continue
            reason = "not a regular file"
        elif _UNPRINTABLE.search(path):
            reason = "file name with unprintable characters"
        else:
            reason = skip_by_name(path) or ""
            if not reason and status.st_size == 0:
                reason = "empty"
            elif not reason and status.st_size > max_file_bytes:
                reason = f"larger than {max_file_bytes:,} bytes"
        if reason:
            skipped.append(Skipped(_shown(name), reason))
        else:
            yield FileEntry(path, status.st_size, status.st_mtime_ns)


def _is_real(top: bytes, folder: bytes, real: dict[bytes, bool]) -> bool:
    """Whether every component of `folder` is a directory rather than a link to one."""
    missing = []
    while folder not in real:
        missing.append(folder)
        folder = folder[: folder.rfind(b"/", 0, -1) + 1]
    known = real[folder]
    for folder in reversed(missing):
        if known:
            try:
                known = stat.S_ISDIR(os.lstat(top + b"/" + folder[:-1]).st_mode)
            except FileNotFoundError:
                known = False
            except OSError:
                known = True  # let the file's own lstat say what is wrong
        real[folder] = known
    return known


def _link_reason(top: str, path: str, inside: str) -> str:
    target = os.path.realpath(os.path.join(top, path))
    if not (target + "/").startswith(inside):
        return "symbolic link out of the repository"
    return "" if os.path.exists(target) else "broken symbolic link"


def _shown(name: bytes) -> str:
    """`name` as text that can be printed and stored: odd bytes and characters as escapes."""
    text = name.decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
