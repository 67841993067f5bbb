"""A repository as it was at a commit, indexed beside it; nothing of it is touched.

`<data>/revs/<id of the repository>/<name>@<commit>` holds the files of that commit, and a folder of
that name with `.index` behind it their index, which begins as a copy of the repository's: rows of
equal files are shared. The files come from git as objects, one by one: a checkout would run what
the repository's configuration names.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from codeqa.errors import CodeQAError, NotFoundError, RepositoryError, UsageError
from codeqa.folders import BORROWERS, make_private
from codeqa.indexing.runs import hold
from codeqa.repository.classify import skip_by_name
from codeqa.repository.git import find_git, read_git
from codeqa.repository.secrets import mask_secrets
from codeqa.settings import Settings
from codeqa.store import Location, Tables, locate
from codeqa.store.location import remove, save_location, snapshots_folder, snapshots_of
from codeqa.store.schema import ROWS_VERSION

SNAPSHOTS_KEPT = 10
"""Of one repository; then the one that was not asked for longest goes."""
NAMES_OFFERED = 200
"""Branches and tags, those with the newest commits."""
SECONDS = 60.0
"""For one call of git: objects of a large repository are read in some seconds."""
_FILES_AT_ONCE = 100
"""Read by one call of git, which are in memory together."""
_HASH_CHARACTERS = 10
_LONGEST = 200
"""Characters of the name of a commit."""

_FILE = (b"100644", b"100755")
"""Modes of a tree's entries that are files; links and submodules are none."""


def take_snapshot(settings: Settings, location: Location, revision: str) -> Location:
    """The repository at `location` as it was at `revision`; an indexing run makes it searchable.

    `revision` is what git takes for a commit: a hash or its beginning, a branch, a tag, `HEAD~3`.
    Raises UsageError and NotFoundError when it is none, RepositoryError when git cannot read it.
    """
    commit = commit_of(location.root, revision)
    name = f"{location.root.name}@{commit[:_HASH_CHARACTERS]}"
    folder = snapshots_folder(settings, location) / name
    if not folder.is_dir():
        _write_files(location.root, commit, folder, settings.max_file_bytes)
    os.utime(folder)  # used now
    make_private(folder)
    there = locate(settings, folder)
    _begin_with_a_copy(location, there)
    kept = snapshots_of(settings, location)
    kept.sort(key=lambda one: one.root.is_dir() and one.root.stat().st_mtime, reverse=True)
    for old in kept[SNAPSHOTS_KEPT:]:
        remove(settings, old)
    return there


def commit_of(root: Path, revision: str) -> str:
    """The full hash of the commit that `revision` names.

    Raises UsageError for what is no name of a commit, NotFoundError when there is none.
    """
    if not 0 < len(revision) <= _LONGEST or revision[0] in "-^" or not revision.isprintable():
        raise UsageError(
            f"{revision[:_LONGEST]!r} is no commit.", "Name a commit, a branch or a tag."
        )
    if found := _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        return found.decode().strip()
    raise NotFoundError(
        f"The repository has no commit {revision!r}.",
        "Name one that `git log` shows; `git fetch --deepen=1000` brings a shallow clone more.",
    )


def revision_names(root: Path) -> list[str]:
    """Branches and tags, the one with the newest commit first, secret-looking strings masked; none
    without a history."""
    order = ("--sort=-creatordate", f"--count={NAMES_OFFERED}", "--format=%(refname:short)")
    printed = None
    with suppress(RepositoryError):  # it leads to another repository
        printed = _git(root, "for-each-ref", *order, "refs/heads", "refs/tags", "refs/remotes")
    names = mask_secrets((printed or b"").decode("utf-8", "replace")).split("\n")
    return [name for name in names if name and not name.endswith("/HEAD") and name != "origin"]


def _git(root: Path, *arguments: str, given: bytes = b"") -> bytes | None:
    return read_git(find_git(root), root, arguments, SECONDS, given)


def _asked(root: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git prints. Raises RepositoryError when it fails."""
    printed = _git(root, *arguments, given=given)
    if printed is None:
        raise RepositoryError(
            f"git cannot read that commit of {root}.", "Run `git fsck` and `git fetch` there."
        )
    return printed


def _write_files(root: Path, commit: str, folder: Path, max_file_bytes: int) -> None:
    """Write the files of `commit` into `folder`, in one step, as a work tree of its own.

    Its git directory borrows the objects of the repository and has no configuration of theirs; so
    files are listed, and their history is told, as in a checkout.
    """
    # Code that nobody else may be able to read where it came from.
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Two may ask for the same commit at once, also of one server.
    made = Path(tempfile.mkdtemp(".tmp", f"{folder.name}.", folder.parent))
    try:
        _make_work_tree(root, commit, made)
        names = _wanted(made)
        blobs = read_blobs(root, [*names.values()], max_file_bytes)
        for name, data in zip(names, blobs, strict=True):
            path = made / os.fsdecode(name)
            # A hostile tree may name a file twice, or a file as a folder: one of them is enough.
            with suppress(FileExistsError, NotADirectoryError):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    file.write(data)
        with suppress(OSError):  # another process made it meanwhile
            made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _wanted(folder: Path) -> dict[bytes, bytes]:
    """Names and git hashes of the files in the git index in `folder`, but for keys."""
    wanted = {}
    for entry in _asked(folder, "ls-files", "--stage", "-z").split(b"\0")[:-1]:
        about, _, name = entry.partition(b"\t")
        mode, identity, _ = about.split()
        if mode in _FILE and not skip_by_name(os.fsdecode(name)):
            wanted[name] = identity
    return wanted


def read_blobs(root: Path, identities: Sequence[bytes], max_bytes: int) -> Iterator[bytes]:
    """The contents of files by their git hashes, nothing of larger ones. Raises RepositoryError
    when one is missing."""
    for first in range(0, len(identities), _FILES_AT_ONCE):
        part = identities[first : first + _FILES_AT_ONCE]
        given = b"\n".join((*part, b""))
        told = _asked(root, "cat-file", "--batch-check=%(objectsize)", given=given).split()
        if not all(map(bytes.isdigit, told)):
            raise RepositoryError(
                f"An object of the commit is missing in {root}.",
                "A partial clone lacks it: `git checkout` the commit there once.",
            )
        small = [one for one, size in zip(part, told, strict=True) if int(size) <= max_bytes]
        printed, at = _asked(root, "cat-file", "--batch", given=b"\n".join((*small, b""))), 0
        for size in map(int, told):
            if size > max_bytes:
                yield b""
                continue
            at = printed.index(b"\n", at) + 1
            yield printed[at : at + size]
            at += size + 1


def _make_work_tree(root: Path, commit: str, folder: Path) -> None:
    """Make the git directory and its index. Git refuses names that lead out of `folder` or into a
    git directory, however another system spells them."""
    own, short = folder / ".git", commit[:_HASH_CHARACTERS]
    BORROWERS.add(str(folder))
    tree = _git(root, "rev-parse", "--verify", "--quiet", f"{commit}:./")
    if tree is None:
        raise NotFoundError(f"The commit {short} has no files in {root}.")
    (own / "objects" / "info").mkdir(parents=True)
    (own / "refs").mkdir()
    (own / "HEAD").write_text(f"{commit}\n")
    objects = _path_in_git(root, "objects").resolve()
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    if (shallow := _path_in_git(root, "shallow")).is_file():
        shutil.copyfile(shallow, own / "shallow")
    strict = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")
    _asked(folder, *strict, "read-tree", tree.decode().strip())
    if _asked(root, "rev-parse", "--show-prefix").strip():  # the commit is of more than this part
        (own / "objects" / "info" / "alternates").unlink()


def _path_in_git(root: Path, name: str) -> Path:
    return root / os.fsdecode(_asked(root, "rev-parse", "--git-path", name).removesuffix(b"\n"))


def _begin_with_a_copy(location: Location, there: Location) -> None:
    """Copy the repository's own index; the run that follows reads what differs. LanceDB never
    changes a file of a table, so links do."""
    if Path(there.tables).exists() or not Path(location.tables).is_dir():
        return
    save_location(there)
    made = Path(f"{there.tables}.tmp")
    # One that is missing or being written now is left alone; not every file system has links.
    with suppress(CodeQAError, OSError), hold(location, wait=False), hold(there, wait=False):
        # Rows that another version made are all made anew; another process may have made it.
        if Tables(location).meta().parser == ROWS_VERSION and not Path(there.tables).exists():
            shutil.rmtree(made, ignore_errors=True)
            shutil.copytree(location.tables, made, copy_function=os.link)
            made.rename(there.tables)
