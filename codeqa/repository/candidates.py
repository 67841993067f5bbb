"""The names of all files of a repository: from git where it answers, else by our own walk.

Nested repositories and submodules are asked one by one, each with its own rules.
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH110, PTH120, PTH208

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from codeqa.repository.git import (
    common_directory,
    find_git,
    git_directory,
    is_linked_work_tree,
    list_files,
)
from codeqa.repository.ignore import Chain, excluded, global_excludes, read_patterns
from codeqa.types import Skipped

GIT_IGNORE = b".gitignore"

MAX_GIT_CALLS = 200
"""Nested repositories that git itself lists; a tree with more is walked by us."""

GIT_SECONDS = 60.0
"""For all calls of one walk: git lists 20,000 files in some 30 ms; a minute means that
something holds it, as a pipe in the place of a configuration file does."""

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

UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""A name with these would break the line-based forms in which paths are shown and sent."""

Names = dict[bytes, os.stat_result | None]
"""Name relative to the root → its status, where finding it took one."""


def all_names(root: Path, use_git: bool, skipped: list[Skipped]) -> Names:
    """Every candidate below `root`, nested repositories and submodules included."""
    top = os.fsencode(root)
    git = find_git(root) if use_git else None
    names: Names = {}
    waiting = [b""]
    calls = 0
    until = time.monotonic() + GIT_SECONDS
    while waiting:
        base = waiting.pop()
        folder = top + b"/" + base if base else top
        listed = None
        left = until - time.monotonic()
        may_ask = git is not None and calls < MAX_GIT_CALLS and left > 0
        if git is not None and may_ask and (base or _work_tree(folder)):
            calls += 1
            listed = list_files(git, Path(os.fsdecode(folder)), left)
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
) -> tuple[Names, list[bytes]]:
    """Tell the nested repositories and submodules in git's list from the files."""
    found: Names = {}
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
            skipped.append(Skipped(shown(base + name), f"unreadable: {error.strerror}"))
            continue
        if not stat.S_ISDIR(status.st_mode):
            found[base + name] = status
        elif git_directory(path) is not None:
            nested.append(base + name + b"/")
        elif not os.listdir(path):
            skipped.append(Skipped(shown(base + name), "submodule not checked out"))
    return found, nested


def _add_nested(
    folder: bytes, name: bytes, base: bytes, nested: list[bytes], skipped: list[Skipped]
) -> None:
    """Queue an untracked repository, unless it is a second work tree of one."""
    directory = git_directory(folder + b"/" + name.rstrip(b"/"))
    if directory is not None and is_linked_work_tree(directory):
        skipped.append(Skipped(shown(base + name), "another work tree of a repository"))
    elif directory is not None:
        nested.append(base + name)


def _own_walk(folder: bytes, base: bytes, skipped: list[Skipped]) -> tuple[Names, list[bytes]]:
    """Walk `folder` as git would. Returns names relative to the root, nested ones apart."""
    tree = folder if base else _work_tree(folder)
    prefix, chain = _outer_rules(tree, folder) if tree is not None else (b"", ())
    in_git = tree is not None
    if chain is None:  # the folder itself is ignored; who names it wants it all the same
        prefix, chain, in_git = b"", (), False
    found: Names = {}
    nested: list[bytes] = []
    waiting: list[tuple[bytes, Chain]] = [(b"", chain)]
    while waiting:
        here, chain = waiting.pop()
        try:
            with os.scandir(folder + b"/" + here) as entries:
                content = list(entries)
        except OSError as error:
            skipped.append(Skipped(shown(base + here), f"unreadable: {error.strerror}"))
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
                skipped.append(Skipped(shown(base + name) + "/", "folder of tools or output"))
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


def shown(name: bytes) -> str:
    """`name` as text that can be printed and stored: odd bytes and characters as escapes."""
    text = name.decode("utf-8", "backslashreplace")
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
