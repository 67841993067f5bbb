"""Take a snapshot: a repository as it was at a commit, indexed beside it and leaving it untouched.

`<data>/revs/<id of the repository>/<name>@<commit>` holds the files, `….index` beside it the index,
which begins as a copy of the repository's: rows of equal files are shared. Files are read as git
objects, one by one: a checkout would run what the repository's configuration names.
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

SNAPSHOTS_KEPT = 10  # of one repository; then the one that was not asked for longest goes
NAMES_OFFERED = 200  # branches and tags, those with the newest commits
GIT_SECONDS = 60.0  # for one call of git: objects of a large repository are read in some seconds
_FILES_AT_ONCE = 100  # read by one call of git, which are in memory together
_HASH_CHARACTERS = 10
_LONGEST = 200  # characters of the name of a commit
_FILE = (b"100644", b"100755")  # modes of files in a tree; links and submodules have others


def take_snapshot(settings: Settings, location: Location, revision: str) -> Location:
    """Write the files of `location` at `revision`; an indexing run makes them searchable.

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
    snapshot = locate(settings, folder)
    _copy_index(location, snapshot)
    snapshots = snapshots_of(settings, location)
    snapshots.sort(key=lambda one: one.root.is_dir() and one.root.stat().st_mtime, reverse=True)
    for oldest in snapshots[SNAPSHOTS_KEPT:]:
        remove(settings, oldest)
    return snapshot


def commit_of(root: Path, revision: str) -> str:
    """Return the full hash of the commit `revision`. Raises UsageError and NotFoundError."""
    if not 0 < len(revision) <= _LONGEST or revision[0] in "-^" or not revision.isprintable():
        raise UsageError(
            f"{revision[:_LONGEST]!r} is not a commit.", "Name a commit, a branch or a tag."
        )
    if commit := _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        return commit.decode().strip()
    raise NotFoundError(
        f"The repository has no commit {revision!r}.",
        "Name one that `git log` shows; `git fetch --deepen=1000` gets a shallow clone older ones.",
    )


def revision_names(root: Path) -> list[str]:
    """Return branches and tags, newest commit first, secret-looking strings masked."""
    order = ("--sort=-creatordate", f"--count={NAMES_OFFERED}", "--format=%(refname:short)")
    output = None
    with suppress(RepositoryError):  # a folder that leads to another repository offers none
        output = _git(root, "for-each-ref", *order, "refs/heads", "refs/tags", "refs/remotes")
    names = mask_secrets((output or b"").decode("utf-8", "replace")).split("\n")
    return [name for name in names if name and not name.endswith("/HEAD") and name != "origin"]


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes | None:
    return read_git(find_git(root), root, arguments, GIT_SECONDS, stdin)


def _checked_git(root: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Return what git prints. Raises RepositoryError when it fails."""
    output = _git(root, *arguments, stdin=stdin)
    if output is None:
        raise RepositoryError(
            f"git cannot read that commit of {root}.", "Run `git fsck` and `git fetch` there."
        )
    return output


def _write_files(root: Path, commit: str, folder: Path, max_file_bytes: int) -> None:
    """Write the files of `commit` into `folder`, in one step, as a work tree of its own.

    Its git directory borrows the repository's objects but not its configuration, so files and
    history are read there as in a checkout.
    """
    # Code that nobody else may be able to read where it came from.
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Two may ask for the same commit at once, also of one server.
    unfinished = Path(tempfile.mkdtemp(".tmp", f"{folder.name}.", folder.parent))
    try:
        _make_work_tree(root, commit, unfinished)
        hashes = _blob_hashes(unfinished)
        blobs = read_blobs(root, list(hashes.values()), max_file_bytes)
        for name, data in zip(hashes, blobs, strict=True):
            path = unfinished / os.fsdecode(name)
            # A hostile tree may name a file twice, or a file as a folder: one of them is enough.
            with suppress(FileExistsError, NotADirectoryError):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as file:
                    file.write(data)
        with suppress(OSError):  # another process made it meanwhile
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _blob_hashes(folder: Path) -> dict[bytes, bytes]:
    """Return name → git hash of the files in the git index in `folder`, but for keys."""
    hashes = {}
    for entry in _checked_git(folder, "ls-files", "--stage", "-z").split(b"\0")[:-1]:
        fields, _, name = entry.partition(b"\t")
        mode, blob_hash, _ = fields.split()
        if mode in _FILE and not skip_by_name(os.fsdecode(name)):
            hashes[name] = blob_hash
    return hashes


def read_blobs(root: Path, hashes: Sequence[bytes], max_bytes: int) -> Iterator[bytes]:
    """Yield files by their git hashes, b'' for larger ones. Raises RepositoryError."""
    for first in range(0, len(hashes), _FILES_AT_ONCE):
        part = hashes[first : first + _FILES_AT_ONCE]
        sizes = _checked_git(
            root, "cat-file", "--batch-check=%(objectsize)", stdin=b"\n".join(part) + b"\n"
        ).split()
        if not all(size.isdigit() for size in sizes):
            raise RepositoryError(
                f"An object of the commit is missing in {root}.",
                "The clone is partial: run `git checkout` with that commit there once.",
            )
        small = [one for one, size in zip(part, sizes, strict=True) if int(size) <= max_bytes]
        output = _checked_git(root, "cat-file", "--batch", stdin=b"\n".join(small + [b""]))
        start = 0
        for size in map(int, sizes):
            if size > max_bytes:
                yield b""
                continue
            start = output.index(b"\n", start) + 1
            yield output[start : start + size]
            start += size + 1


def _make_work_tree(root: Path, commit: str, folder: Path) -> None:
    """Make the git directory of `folder` and its index."""
    git_directory = folder / ".git"
    alternates = git_directory / "objects" / "info" / "alternates"
    BORROWERS.add(str(folder))
    tree = _git(root, "rev-parse", "--verify", "--quiet", f"{commit}:./")
    if tree is None:
        raise NotFoundError(f"The commit {commit[:_HASH_CHARACTERS]} has no files in {root}.")
    alternates.parent.mkdir(parents=True)
    (git_directory / "refs").mkdir()
    (git_directory / "HEAD").write_text(f"{commit}\n")
    alternates.write_bytes(os.fsencode(_git_path(root, "objects").resolve()) + b"\n")
    shallow = _git_path(root, "shallow")
    if shallow.is_file():
        shutil.copyfile(shallow, git_directory / "shallow")
    strict = ("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true")
    # With these, git refuses names that would leave `folder` or enter .git on any system.
    _checked_git(folder, *strict, "read-tree", tree.decode().strip())
    if _checked_git(root, "rev-parse", "--show-prefix").strip():
        alternates.unlink()  # the objects hold more than this part of the repository


def _git_path(root: Path, name: str) -> Path:
    path = _checked_git(root, "rev-parse", "--git-path", name).removesuffix(b"\n")
    return root / os.fsdecode(path)


def _copy_index(location: Location, snapshot: Location) -> None:
    """Copy the repository's own index; the run that follows reads what differs."""
    if Path(snapshot.tables).exists() or not Path(location.tables).is_dir():
        return
    save_location(snapshot)
    unfinished = Path(f"{snapshot.tables}.tmp")
    # One that is missing or being written now is left alone; not every file system has links.
    with suppress(CodeQAError, OSError), hold(location, wait=False), hold(snapshot, wait=False):
        # Rows of another version would all be replaced; another process may have copied it.
        if Tables(location).meta().parser == ROWS_VERSION and not Path(snapshot.tables).exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            # Links do: LanceDB never changes a file of a table.
            shutil.copytree(location.tables, unfinished, copy_function=os.link)
            unfinished.rename(snapshot.tables)
