"""The one place that runs git: to read which files there are and what changed in them, and to
bring clones of our own.

A repository is somebody else's data, and its configuration can name commands. Git is
therefore run so that none of them is executed: no file-system monitor, hook, pager,
credential helper or transport, no fetching of missing objects, and nothing that the
caller's environment points elsewhere. `ls-files` by itself runs no filter, diff or
text conversion; a command that compares versions is told to run none (`history`).

A clone lies in the data folder and is of the newest commit of one branch. For it git may reach
other machines, by https and ssh alone. It asks nothing, runs no hook, template or filter for large
files, and takes no submodules.
"""

# Names are bytes here, because they need not be UTF-8.
# ruff: noqa: PTH103, PTH110, PTH112, PTH113, PTH114, PTH116, PTH117, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from filelock import FileLock, Timeout

from codeqa.errors import RepositoryError, UsageError
from codeqa.folders import BORROWERS, OTHERS, is_same, make_private
from codeqa.types import Progress

_CONFIG = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.alternateRefsCommand=",
    # A version of a file that is larger is told as changed and not unpacked to be compared.
    "core.bigFileThreshold=5m",
    # What is printed is read: as it is without a configuration.
    "color.ui=never",
    "color.diff=never",
    "diff.submodule=short",
    "blame.coloring=none",
    "i18n.logOutputEncoding=UTF-8",
    f"diff.orderFile={os.devnull}",
    # Names that other systems forbid are names all the same.
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)

_KEPT_VARIABLES = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}
)
"""What of the caller's GIT_* remains: where the user's own configuration lies."""

_HISTORY = b"HEAD objects refs packed-refs logs reftable worktrees config config.worktree".split()
"""What a git directory tells history from."""

_OPENED = (
    b"HEAD commondir config config.worktree index info/exclude info/attributes packed-refs shallow"
).split()
"""What git opens in a git directory by its name."""

_WORK_TREE = re.compile(rb"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)
"""In the configuration of a submodule: where its files are."""

_UNREADABLE = re.compile(rb"^warning: could not open directory '(.*/)': (.*)$", re.MULTILINE)


class Listing(NamedTuple):
    """What git says of a folder; all names are relative to it, and unsorted."""

    names: list[bytes]
    """Files. Names of nested repositories end in `/`; submodules go by their bare name; files
    that are tracked but gone are still named."""
    unreadable: list[tuple[bytes, bytes]]
    """Folders that could not be opened, and why."""
    untracked: set[bytes]
    """Those of the names that git would track."""


class Git(NamedTuple):
    """A git that no repository brought along."""

    program: str
    """Its absolute path."""
    path: str
    """PATH for what it runs, which leads into no repository either."""


def find_git(*roots: Path) -> Git:
    """The git to run, outside of the repositories at `roots`; looked for in `program_folders`.

    Raises RepositoryError when there is none.
    """
    untrusted, folders = _untrusted_folders(roots), program_folders(*roots)
    for folder in folders:
        found = shutil.which("git", path=folder)
        # A link to the program may lead into the repository.
        if found and not _lies_in(Path(found), untrusted):
            return Git(found, os.pathsep.join(folders))
    raise RepositoryError(
        "git was not found.",
        "Install git: its folder must be in PATH, outside of repository and current folder.",
    )


def program_folders(*roots: Path) -> list[str]:
    """The folders of PATH that hold no program of a repository's.

    Entries that are empty or relative are left out, and those inside one of `roots`, inside the
    work tree around it, or inside the current folder (unless that is the whole file system).
    """
    untrusted = _untrusted_folders(roots)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [f for f in folders if os.path.isabs(f) and not _lies_in(Path(f), untrusted)]


def _untrusted_folders(roots: Iterable[Path]) -> set[Path]:
    """The current folder, `roots`, the work trees around them, and those whose objects they
    borrow, as what is kept of one commit does."""
    folders = set()
    with suppress(OSError):  # the current folder may be gone
        current = Path.cwd()
        if current != Path(current.anchor):
            folders.add(current)
    for root in roots:
        real = os.fsencode(root.resolve())
        lender = _line_of((git_directory(real) or real) + b"/objects/info/alternates")
        trees = (work_tree(one) for one in (real, lender) if os.path.isabs(one))
        folders |= {Path(os.fsdecode(one)) for one in (real, *trees) if one}
    return folders


def _lies_in(path: Path, folders: set[Path]) -> bool:
    """Whether `path`, as it is written or where its links lead, is or lies in one of `folders`."""
    real = path.resolve()
    return not folders.isdisjoint({path, *path.parents, real, *real.parents})


def read_git(
    git: Git, folder: Path, arguments: Sequence[str], seconds: float, given: bytes = b""
) -> bytes | None:
    """What a git command that only reads prints; None when it fails or takes longer. `given` is its
    standard input. Raises RepositoryError where it would read another repository than the one at
    `folder`."""
    top, done = work_tree(os.fsencode(folder)), None
    if top is None or holding_up(top):
        return None
    own = _own_directories(folder, top)
    with suppress(TimeoutError):
        done = _run(git, ["-C", folder, *arguments], seconds, given, **own)
    _own_directories(folder, top)  # it may have been changed meanwhile
    return done.stdout if done and not done.returncode else None


def _own_directories(folder: Path, top: bytes) -> dict[str, str]:
    """Return the variables that name what git reads for `folder`, so that it looks for nothing by
    rules of its own. Raises RepositoryError where the history would be another repository's."""
    try:
        top = os.path.realpath(top)
        directory = os.path.realpath(git_directory(top) or top)
        common = os.path.realpath(os.path.join(directory, _line_of(directory + b"/commondir")))
        other = not is_same(folder) or _leads_elsewhere(top, directory, common)
    except OSError:  # a link is being replaced
        other = True
    if other:
        raise RepositoryError(
            "Its history is not told: its git directory leads to another repository.",
            "A clone made with --shared or --reference has its own after `git repack -a -d` and "
            "`rm .git/objects/info/alternates`.",
        )
    return {
        "GIT_DIR": os.fsdecode(directory),
        "GIT_COMMON_DIR": os.fsdecode(common),
        "GIT_OBJECT_DIRECTORY": os.fsdecode(common + b"/objects"),
        "GIT_WORK_TREE": os.fsdecode(top),
    }


def list_files(
    git: Git, folder: bytes, seconds: float, place: Sequence[bytes] = (), rules: bool = True
) -> Listing | None:
    """What git tracks or would track under `folder`; `place` are options that say for which
    repository, if not for its own. Without `rules` no ignore file is opened.

    None: git refuses (no work tree, another user's repository, a broken one).
    Raises TimeoutError.
    """
    asked = ("ls-files", "-tz", "--cached", "--others", *["--exclude-standard"] * rules)
    done = _run(git, [*place, "-C", folder, *asked], seconds)
    if done.returncode:
        return None
    told = done.stdout.split(b"\0")[:-1]
    untracked = {one[2:] for one in told if one.startswith(b"? ")}
    return Listing([one[2:] for one in told], _UNREADABLE.findall(done.stderr), untracked)


def list_plain_files(
    git: Git, folder: bytes, tree: bytes, excluded: Iterable[bytes] | None, seconds: float
) -> Listing:
    """What the ignore rules in `tree`, which holds `folder`, leave of `folder`.

    For folders outside of git and for repositories that git refuses: an empty repository of
    ours stands in for theirs. `excluded` are patterns that count beside the ignore files; None:
    not even these are opened.
    Raises TimeoutError, and RepositoryError when git fails.
    """
    with _empty_repository() as repository:
        with open(repository + b"/info/exclude", "wb") as rules:
            rules.write(b"\n".join(excluded or ()))
        place = [b"--git-dir=" + repository, b"--work-tree=" + tree]
        if listing := list_files(git, folder, seconds, place, excluded is not None):
            return listing
    raise RepositoryError(
        f"git cannot list {os.fsdecode(folder)}.", "It must be git 2.17 or newer."
    )


def excluded_by(
    git: Git, names: Iterable[bytes], rules: Mapping[bytes, bytes], seconds: float
) -> set[bytes]:
    """Those of `names` that rules leave out; `rules` are contents of rule files by their folders.

    Git is given copies of the rule files and the names, and sees nothing of the repository.
    Raises TimeoutError, and RepositoryError when git fails.
    """
    failed = RepositoryError("git cannot apply the ignore rules.", "Look at the ignore files.")
    with _empty_repository() as repository, tempfile.TemporaryDirectory() as scratch:
        tree = os.fsencode(scratch)
        try:
            for folder, content in rules.items():
                os.makedirs(tree + b"/" + folder, exist_ok=True)
                with open(tree + b"/" + folder + b".gitignore", "wb") as file:
                    file.write(content)
        except OSError:  # too long a path, a full disk
            raise failed from None
        # The user's own ignore file is none of these rules.
        asked = ["-c", f"core.excludesFile={os.devnull}"]
        place = [b"--git-dir=" + repository, b"--work-tree=" + tree, b"-C", tree]
        given = b"\0".join(b"./" + name for name in names)  # `:x` alone would mean something
        command = ("check-ignore", "--no-index", "-z", "--stdin")
        done = _run(git, [*asked, *place, *command], seconds, given)
    if done.returncode not in (0, 1):  # 1: none of them
        raise failed
    return {name.removeprefix(b"./") for name in done.stdout.split(b"\0")[:-1]}


@contextmanager
def _empty_repository() -> Iterator[bytes]:
    """A git directory of our own, without configuration, for a moment."""
    with tempfile.TemporaryDirectory(prefix="codeqa-git-") as folder:
        for name in ("objects", "refs", "info"):
            Path(folder, name).mkdir()
        Path(folder, "HEAD").write_text("ref: refs/heads/none\n")
        yield os.fsencode(folder)


Done = subprocess.CompletedProcess[bytes]


def _run(git: Git, words: Sequence[Any], seconds: float, given: bytes = b"", **own: str) -> Done:
    """Run git with `given` as its standard input and `own` variables. Raises TimeoutError.

    Where it cannot be started, its exit status is -1.
    """
    try:
        return subprocess.run(
            [*_guarded(git, (*_CONFIG, "credential.helper=")), *words],
            cwd=Path(git.program).anchor or None,
            env=_environment(git) | own,
            input=given,
            capture_output=True,
            timeout=max(seconds, 0.001),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"git took longer than {seconds:.0f} seconds") from None
    except (OSError, ValueError):
        return subprocess.CompletedProcess([], -1, b"", b"")


def _guarded(git: Git, settings: Iterable[str]) -> list[str]:
    """The beginning of a command of git, in which `settings` are above every configuration."""
    return [git.program, "--no-pager", *(part for setting in settings for part in ("-c", setting))]


def _environment(git: Git) -> dict[str, str]:
    """The caller's variables without those of git's, and without a way to ask or to fetch."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return kept | {
        "PATH": git.path,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        # Older gits fetch a missing object all the same; then no transport is permitted.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_PAGER": "cat",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "LC_ALL": "C",
    }


def work_tree(folder: bytes) -> bytes | None:
    """Top of the work tree that `folder` lies in; None outside of git."""
    while git_directory(folder) is None:
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def git_directory(folder: bytes) -> bytes | None:
    """The git directory of the work tree whose top is `folder`; None when it is no top."""
    marker = folder + b"/.git"
    if os.path.isdir(marker):
        return marker if os.path.exists(marker + b"/HEAD") else None
    line = b"" if os.path.islink(marker) else _line_of(marker)
    if not line.startswith(b"gitdir:"):
        return None
    target = os.path.join(folder, line[7:].strip(b" \t\r\n"))
    return target if os.path.exists(target + b"/HEAD") else None


def holding_up(tree: bytes) -> bytes:
    """What in the git directory of the work tree `tree` is no file, as a pipe that git would wait
    at without end; '' where there is nothing of that kind."""
    own = git_directory(tree) or tree
    places = (own, os.path.join(own, _line_of(own + b"/commondir")))
    opened = (os.path.join(place, name) for place in places for name in _OPENED)
    return next((one for one in opened if os.path.exists(one) and not os.path.isfile(one)), b"")


def _leads_elsewhere(top: bytes, directory: bytes, common: bytes) -> bool:
    """Whether the git directories of the work tree `top` hold the history of another repository:
    the file `.git`, `commondir`, links at any depth and alternates may name any.

    What lies below the work tree is its own, and so is what knows it: the repository that `git
    worktree add` noted it in, and of one above the submodule that it is. What CodeQA keeps of one
    commit borrows the objects of its repository, which has them itself.
    """
    noted = os.path.realpath(os.path.join(directory, _line_of(directory + b"/gitdir")))
    own = [top]
    if noted == top + b"/.git" and os.path.dirname(directory) == common + b"/worktrees":
        own.append(common)
    tree = _WORK_TREE.search(_line_of(directory + b"/config"))
    if tree and os.path.realpath(os.path.join(directory, tree[1])) == top:
        above = (os.fsencode(one) for one in Path(os.fsdecode(top)).parents)
        own += [directory for one in above if directory.startswith(one + b"/.git/modules/")]
    places = {os.path.join(one, part) for one in (directory, common) for part in _HISTORY}
    lender = common + b"/objects"
    if os.fsdecode(top) in BORROWERS and (borrowed := _line_of(lender + b"/info/alternates")):
        lender = borrowed
        own.append(lender)
        places.add(lender)
    trusted, seen = tuple(one + b"/" for one in own), set[bytes]()
    while places:
        real = os.path.realpath(places.pop())
        if not (real + b"/").startswith(trusted):
            return True
        seen.add(real)
        for entry in _entries_below(real):
            if not (entry.is_file() or entry.is_dir()):  # a pipe would keep git waiting
                return True
            if entry.is_symlink():
                places |= {os.path.realpath(entry.path)} - seen
    return os.path.lexists(lender + b"/info/alternates")


def _entries_below(folder: bytes) -> Iterator[os.DirEntry[bytes]]:
    """Yield all in `folder`, at any depth, but the folders."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry


def _line_of(path: bytes) -> bytes:
    """What a small file of git's says; '' for none, also where a pipe would keep us waiting."""
    if os.path.isfile(path):
        with suppress(OSError), open(path, "rb") as file:
            return file.read(10_000).partition(b"\0")[0].strip()
    return b""


def is_linked_work_tree(folder: bytes) -> bool:
    """Whether `folder` is a further work tree of a repository (`git worktree add`)."""
    directory = git_directory(folder)
    return directory is not None and os.path.isfile(directory + b"/commondir")


# Clones.


Report = Callable[[Progress], None]
"""Told several times a second how far a transfer is; what it raises ends the transfer."""

HOST_SECONDS = 3.0
"""How long git may take to say where a file is shown: an answer can do without."""
SILENT_SECONDS = 60.0
"""After so long without a word git is given up: it tells of its progress each second."""

_REACHING = (
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=30 -oForwardAgent=no",
    "ssh.variant=ssh",
    # What is written must be no other spelling of `.git` on any system.
    "core.protectHFS=true",
    "core.protectNTFS=true",
    # Commits that were replaced are not kept, and nothing goes on behind a command that ended.
    "core.logAllRefUpdates=false",
    "gc.autoDetach=false",
    "maintenance.auto=false",
    "filter.lfs.process=",
    "filter.lfs.required=false",
    "filter.lfs.smudge=",
)
"""Beside _CONFIG. The user's own credential helper may sign in: a clone brings no configuration."""
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "https:ssh",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
}
_AT_ONCE = 65_536
"""Bytes of what git writes that are looked at: the last ones."""
_PROGRESS = re.compile(r"^(?:remote: )?(\w+ \w+): +\d+% \((\d+)/(\d+)\)", re.MULTILINE)
_OF_NO_USE = re.compile(r"(?i)(remote|warning|hint|cloning into|from|note)\b|.*: +\d+% ")
"""How lines begin beside the one that says what went wrong."""

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
    """Whether `text` is meant as the address of a repository, and not as a path or name."""
    return bool(_LIKE_AN_ADDRESS.match(text.strip()))


def read_remote(address: str, branch: str = "") -> Remote:
    """What an https or ssh address, or `user@host:owner/name`, stands for.

    A password in it is left out: it would be kept and shown. Raises UsageError for every
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
_REFS_LOOKED_AT = 1_000
"""Folders of them: a link may lead into the whole file system."""


def hosted_lines(folder: Path, path: str) -> str:
    """The address of the file `path` of `folder` at the host that the repository came from, as of
    the last commit, with `{start}` and `{end}` where its lines go; '' where the host is none that
    is known, or does not have that commit. No name of a user and no password is in it. Git is
    asked once until a commit, a branch or the configuration changes."""
    tree = work_tree(os.fsencode(folder.resolve()))
    return _hosted_form(folder, tree and _refs_of(tree)).replace("{path}", quote(path))


@lru_cache(64)
def _hosted_form(folder: Path, _state: object) -> str:
    """What `hosted_lines` gives of any path in `folder`, which goes where `{path}` stands."""
    try:
        git = find_git(folder)
        wanted = ("config", "--no-includes", "--get-regexp", r"^remote\..*\.url$")
        told = _lines(git, folder, *wanted)
        urls = dict(line.split(" ", 1) for line in told)
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
    host += f":{port}" * (url.startswith("https:") and port != "")
    path = f"{quote(''.join(inside))}{{path}}"
    form = form.format(commit=commit, path=path, start="{start}", end="{end}")
    return f"https://{host}/{owners.replace(',', '/')}/{name}/{form}"


def _refs_of(tree: bytes) -> tuple[int, ...]:
    """Another value once a commit, a branch or the configuration of the work tree `tree` is
    another: git renames what it writes into its folder."""
    own = git_directory(tree) or tree
    common = os.path.join(own, _line_of(own + b"/commondir"))
    walks = (os.walk(os.path.join(common, one)) for one in (b"refs", b"reftable"))
    folders = [folder for folder, *_ in islice(chain.from_iterable(walks), _REFS_LOOKED_AT)]
    single = [os.path.join(common, one) for one in (own + b"/HEAD", b"config", b"packed-refs")]
    times = []
    for one in (*single, *folders):
        with suppress(OSError):  # there is none, or none any more
            times.append(os.stat(one).st_mtime_ns)
    return tuple(times)


def _lines(git: Git, folder: Path, *arguments: str) -> list[str]:
    """What a git command prints, nothing where it fails."""
    printed = read_git(git, folder, arguments, HOST_SECONDS) or b""
    return printed.decode("utf-8", "replace").splitlines()


def clone(git: Git, remote: Remote, clones: Path, report: Report) -> Path:
    """The folder of the clone of `remote` below `clones`, made unless it is there.

    Raises RepositoryError when that fails, and what `report` raises; nothing is left then.
    """
    target = clones / remote.folder
    with _alone(clones, report):
        if target.is_dir():
            return target
        unfinished = clones / ".unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        branch = [f"--branch={remote.branch}"] if remote.branch else []
        try:
            _transfer(
                git,
                ["clone", "--progress", "--depth=1", "--single-branch", "--no-tags", "--template=",
                 "--no-recurse-submodules", *branch, "--", remote.url, unfinished],
                report,
            )  # fmt: skip
            target.parent.mkdir(parents=True, exist_ok=True)
            make_private(target.parent, target.parents[1], deep=False)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return target


def sync(git: Git, folder: Path, url: str, branch: str, report: Report) -> None:
    """Make the clone in `folder` the newest commit; what was changed or added there is lost.

    Raises RepositoryError when it cannot be fetched: the clone is as it was; and what `report`
    raises.
    """
    with _alone(folder.parents[2], report):
        for left in (folder / ".git").rglob("*.lock"):  # by a process that was killed
            left.unlink()
        for command in (
            ["fetch", "--progress", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", url,
             branch or "HEAD"],
            ["reset", "--hard", "FETCH_HEAD"],
            ["clean", "-ffdxq"],
            ["gc", "--auto", "--quiet", "--prune=now"],
        ):  # fmt: skip
            _transfer(git, ["-C", folder, *command], report)


def delete_clone(folder: Path) -> None:
    """Delete the clone in `folder`. Another clone, which may take minutes, is not waited for."""
    gone = Path(tempfile.mkdtemp(prefix=".removed-", dir=folder.parents[2]))
    folder.rename(gone / folder.name)  # in one step: no half of it is found
    shutil.rmtree(gone)


@contextmanager
def _alone(clones: Path, report: Report) -> Iterator[None]:
    """One change of clones at a time, of all processes."""
    clones.mkdir(parents=True, exist_ok=True, mode=0o700)  # what came with a sign-in is private
    lock = FileLock(clones / ".lock", mode=0o600)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2, poll_interval=0.05)
        except Timeout:
            report(Progress("waiting for another clone", 0, 0))
    try:
        yield
    finally:
        lock.release()


def _transfer(git: Git, arguments: Sequence[str | Path], report: Report) -> None:
    """Run a git command that may reach other machines.

    Raises RepositoryError with what git said when it fails, or says nothing for SILENT_SECONDS.
    """
    step = Progress("waiting for the server", 0, 0)
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(
            [*_guarded(git, (*_CONFIG, *_REACHING)), *arguments],
            cwd=Path(git.program).anchor or None,
            env=_environment(git) | _VARIABLES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            umask=OTHERS,  # it may be nobody else's to read where it comes from
            start_new_session=True,  # ssh has no terminal to ask at, and all of it can be ended
        ) as process,
    ):
        said, size, heard = "", 0, time.monotonic()
        try:
            while time.monotonic() - heard < SILENT_SECONDS:
                ended = process.poll() is not None  # asked first: then all that it wrote is read
                if (now := os.fstat(output.fileno()).st_size) > size:
                    size, heard = now, time.monotonic()
                    # Read without moving the place at which git writes.
                    data = os.pread(output.fileno(), _AT_ONCE, max(0, size - _AT_ONCE))
                    said = data.decode("utf-8", "replace").replace("\r", "\n")
                    for name, done, total in _PROGRESS.findall(said)[-1:]:
                        step = Progress(name.lower(), int(done), int(total))
                if ended:
                    break
                report(step)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
        finally:
            if silent := process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        lines = [line.strip() for line in said.split("\n")]
        useful = [line for line in lines if line and not _OF_NO_USE.match(line)]
        why = (useful or ["it failed without a word"])[0]
        if silent:
            why = f"nothing came for {SILENT_SECONDS:.0f} seconds"
        # The user's configuration may put a password into an address.
        why = re.sub(r"://[^/@\s]+@", "://", re.sub(r"^(?:fatal|error): ", "", why))
        raise RepositoryError(
            f"git: {why[:300].rstrip('.')}.",
            "Check the address and the branch; what is not public takes an ssh key, or a sign-in "
            "that git's own credential helper knows.",
        )
