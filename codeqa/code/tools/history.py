"""The tool that reads git: commits of code, blame, earlier files, changes between two commits.

It shows only files of the index: one that is skipped for its secrets keeps them in its history too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from hashlib import blake2b
from itertools import groupby
from typing import Annotated, NamedTuple

from pydantic import Field

from codeqa.code.tools.reading import Lines, line_span, one_file, place
from codeqa.code.tools.search import definitions
from codeqa.code.tools.tool import CodeSpan, Commit, Toolbox, ToolResult, fitting, list_result
from codeqa.embeddings.registry import question_matcher
from codeqa.errors import NotFoundError
from codeqa.parsing import parse_file
from codeqa.repositories.files import GROWN_BYTES
from codeqa.repositories.snapshots import commit_of, read_blobs
from codeqa.repository.classify import classify, role_of
from codeqa.repository.git import find_git, git_directory, read_git
from codeqa.repository.secrets import mask_diff, mask_secrets
from codeqa.search.mentions import resolve_mentions
from codeqa.text import counted
from codeqa.text.unit_text import UnitText
from codeqa.types import CLASS_KINDS, Unit

GIT_SECONDS = 20.0
"""For git: the history of one function in a long repository takes some."""
MOST_LISTED_COMMITS = 15
MOST_OTHERS = 3
"""Files or definitions of the same name that are named."""
LOG_FORMAT = "--format=%h%x00%as%x00%an%x00%s"
SAFE = ("--no-textconv", "--no-ext-diff")
"""Do not run programs that the repository's configuration names for its diffs."""
_CHANGE = ("show", "--format=", "--diff-merges=first-parent", "--relative")
MOST_FILES = 400
"""Parsed in both versions, some milliseconds each; source first."""
MOST_CHANGES = 40
"""Changes that are listed; all are counted."""
MOST_DIFFS, LONGEST_DIFF = 5, 60
"""Diffs that are shown, and lines of each."""
MOST_LINES = 1_000
"""Lines of a definition that are compared; the time grows with their square at worst."""
MOST_COMMITS = 10
"""Commits listed for a change between two commits."""
CHANGE_NEAR_BEST = 0.6
"""Part of the best score from which a change is about the question."""
KINDS = ("added", "changed", "removed")

_REVISION = r"[0-9A-Za-z](?:\.?[0-9A-Za-z_/@^~-]){0,199}"
"""A commit, branch or tag: 3f2a91c, main, v2.0, HEAD~3; never two dots, never an option of git."""


def history(
    box: Toolbox,
    path: Annotated[str, Field(description="A file or folder; everything unless given.")] = "",
    name: Annotated[str, Field(description="A function or class: what changed it.")] = "",
    lines: Lines = "",
    commit: Annotated[
        str,
        Field(
            pattern=rf"^({_REVISION}(\.\.{_REVISION})?)?$",
            description="A commit, branch or tag; `v1..v2` for what changed between two.",
        ),
    ] = "",
    about: Annotated[str, Field(description="Between two, only changes that are about it.")] = "",
    added: Annotated[bool, Field(description="Only the commit that added `name`.")] = False,
) -> ToolResult:
    """Tell when, by whom and why code changed, from git.

    Of a path or name the commits, newest first; of `lines` the commit that last changed each; of a
    `commit` what it changed, or with a path the file as it was then; of `v1..v2` what was added,
    changed and removed between them.
    """
    path, lines = place(path, lines)
    start, between, end = commit.partition("..")
    if between:
        return _changes(box, start, end, about)
    if commit:
        return _file_at(box, commit, path) if path else _show(box, commit)
    if path and lines:
        return _blame(box, path, lines)
    if added and name:
        return _added(box, name)
    return _log(box, name or box.tables().plain_path(path))


def _log(box: Toolbox, path_or_name: str) -> ToolResult:
    title, arguments = _history_of(box, path_or_name)
    commits = _log_commits(box, [f"-{MOST_LISTED_COMMITS}", *arguments])
    newest = "the newest " if len(commits) == MOST_LISTED_COMMITS else ""
    summary = f"history of {title}: {newest}{counted(len(commits), 'commit')}"
    return list_result(summary, [commit.line for commit in commits], "", items=commits)


def _added(box: Toolbox, name: str) -> ToolResult:
    """Return the first commit with the head of the definition, or with the name, in any file."""
    unit = next(iter(definitions(box.tables(), name)), None)
    text, where = name, ""
    if unit:
        head = re.search(rf"(?:[\w)]+ )?{re.escape(unit.name)}\b", unit.signature)
        text, where = head[0] if head else unit.name, f" ({unit.span})"
    commits = _log_commits(box, [f"-S{text}"])
    if not commits:
        raise NotFoundError(
            f"No commit here added {name!r}.",
            "The clone may be shallow: `git fetch --unshallow` completes its history.",
        )
    first = commits[-1]
    summary = f"{name}{where} was added on {first.date} by {first.author} in {first.id}"
    form = f"The first commit with “{text}” in any file."
    return list_result(summary, [first.line], "", items=[first], completeness=form)


def _file_at(box: Toolbox, commit: str, path: str) -> ToolResult:
    path = one_file(box.tables(), path)
    code = mask_secrets(_blob(box, f"{commit}:./{path}"))
    lines = code.removesuffix("\n").split("\n")
    summary = f"{path} at {commit}: {counted(len(lines), 'line')}"
    parts = [f"{n}\t{line}" for n, line in enumerate(lines, 1)]
    _, fitted = fitting(parts)
    place = CodeSpan(path=path, start_line=1, end_line=fitted, note=f"at {commit}",
                  text="\n".join(lines[:fitted]))  # fmt: skip
    return list_result(summary, parts, "Only its beginning fits.", places=(place,))


def _show(box: Toolbox, commit: str) -> ToolResult:
    """Return the message and the diff of a commit; tests and documents are only named."""
    commit += "^{commit}"  # of a tag the commit that it marks
    head = mask_secrets(run_git(box, ["show", "-s", f"{LOG_FORMAT}%x00%b", commit]))
    *fields, body = head.split("\0", 4)
    entry = _commit("\0".join(fields))
    printed = run_git(box, [*_CHANGE, "--name-only", "-z", commit])
    paths = list(filter(None, printed.split("\0")))
    if not (paths or _is_whole(box)):
        raise NotFoundError("This commit changes nothing here.", "It only changes other folders.")
    shown_paths = [path for path in paths if path in box.tables().catalogue().paths]
    source = [path for path in shown_paths if role_of(path) == "source"]
    others = [path for path in shown_paths if path not in source]
    # Tests and documents of a change are often longer than it.
    diff_paths = source or others
    diff = run_git(box, _CHANGE + SAFE + (commit, "--") + tuple(diff_paths)) if diff_paths else ""
    parts = [f"{entry.date}  {entry.author}", body]
    if source and others:
        parts.append(f"Also changed: {', '.join(others)}")
    parts += mask_diff(diff).split("\n")
    summary = f"{entry.id} {entry.subject}: {counted(len(paths), 'file')} changed"
    hint, files = "Open a file of it with `path`.", tuple(source + others)
    return list_result(summary, parts, hint, total=len(files), commits=(entry,), paths=files)


def _is_whole(box: Toolbox) -> bool:
    return git_directory(bytes(box.root)) is not None


def _blame(box: Toolbox, path: str, lines: str) -> ToolResult:
    """Return the commit that last changed each line of a file, as of the last commit."""
    path = one_file(box.tables(), path)
    count = _blob(box, f"HEAD:./{path}").count("\n") + 1
    first, last = line_span(lines, count)
    # Of the last commit, not of the file on disk: git would run the repository's filters on that.
    span = f"-L{first},{last}"
    blame = run_git(box, ["blame", "-ls", "--root", "--no-textconv", span, "HEAD", "--", path])
    ids = [line.partition(" ")[0].lstrip("^") for line in blame.removesuffix("\n").split("\n")]
    distinct = list(dict.fromkeys(ids))
    commits = _log_commits(box, ["--no-walk=unsorted", *distinct])
    commit_of = dict(zip(distinct, commits, strict=True))
    runs, start = list[Commit](), first
    for id_, run in groupby(ids):
        end = start + len(list(run)) - 1
        runs.append(commit_of[id_].model_copy(update={"lines": f"{start}-{end}"}))
        start = end + 1
    summary = f"blame of {path}:{first}-{last}: {counted(len(distinct), 'commit')}"
    parts = [f"{run.lines:>11}  {run.line}" for run in runs]
    return list_result(summary, parts, "Ask for fewer lines.", items=runs)


def _history_of(box: Toolbox, target: str) -> tuple[str, list[str]]:
    """Return a title of `target`, and git's arguments for its history. Raises NotFoundError."""
    if not target:
        # A part of a work tree has only its own commits.
        return "the repository", [] if _is_whole(box) else ["--", "."]
    mentions, _ = resolve_mentions(box.tables(), [target.removeprefix("@").removesuffix("()")])
    for mention in mentions:
        if mention.units:
            unit, *rest = box.tables().by_ids(mention.units[: 1 + MOST_OTHERS])
            others = "".join(f", not {other.span}" for other in rest)
            # Lines are those of the index; after later edits git finds those nearby.
            span = f"-L{unit.start_line},{unit.end_line}:./{unit.path}"
            return f"{unit.qualified_name} ({unit.span}{others})", [span]
        paths = mention.files + mention.folders
        if target in paths:
            return target, ["--", target]
        if paths:
            title = "".join(f", not {path}" for path in mention.files[1 : 1 + MOST_OTHERS])
            return paths[0] + title, ["--", paths[0]]
    hint = "Give a path, or the name of a definition."
    raise NotFoundError(f"Nothing here is called {target!r}.", hint)


def run_git(box: Toolbox, arguments: Sequence[str]) -> str:
    """Return git's output. Raises NotFoundError, or RepositoryError for another repository's."""
    git = find_git(box.root)
    output = read_git(git, box.root, ["--literal-pathspecs", *arguments], GIT_SECONDS)
    if output is not None:
        return output.decode("utf-8", "replace")
    if read_git(git, box.root, ["rev-parse", "--verify", "HEAD"], GIT_SECONDS) is None:
        hint = "History needs git, and a git repository with at least one commit."
        raise NotFoundError("This folder has no history.", hint)
    hint = "Check that the commit exists, and that the file exists in it."
    raise NotFoundError("git could not answer this.", hint)


def _blob(box: Toolbox, name: str) -> str:
    """Return a file of a commit. Raises NotFoundError, also for one that is too large to show."""
    # git packs a file to as little as a thousandth of its size.
    if int(run_git(box, ["cat-file", "-s", name])) > GROWN_BYTES:
        raise NotFoundError(f"{name} is larger than {GROWN_BYTES:,} bytes.", "Ask git for it.")
    return run_git(box, ["cat-file", "blob", name])


def _log_commits(box: Toolbox, arguments: Sequence[str]) -> list[Commit]:
    """Return the commits that `git log` lists for `arguments`."""
    printed = run_git(box, ["log", "-s", LOG_FORMAT, *SAFE, *arguments])
    return [_commit(line) for line in printed.split("\n") if line.count("\0") == 3]


def _commit(line: str) -> Commit:
    id_, date, author, subject = line.split("\0")
    return Commit(id=id_.strip(), date=date, author=author, subject=mask_secrets(subject))


class _Change(NamedTuple):
    kind: str
    """One of KINDS."""
    unit: Unit
    """The definition after the change, or before it was removed."""
    diff: list[str]
    in_index: bool
    """The index holds the file as it is after."""


def _changes(box: Toolbox, start: str, end: str, about: str) -> ToolResult:
    """List the units that differ, those nearest to `about` first, and the commits."""
    before, after = commit_of(box.root, start), commit_of(box.root, end)
    versions = _versions(box, before, after)
    indexed = versions.keys() & box.tables().catalogue().paths
    paths = sorted(indexed, key=lambda path: (role_of(path) != "source", path))[:MOST_FILES]
    hashes = sorted({key.encode() for path in paths for key in versions[path] if key})
    blobs = dict(zip(hashes, read_blobs(box.root, hashes, GROWN_BYTES), strict=True))
    every: list[_Change] = []
    for path in paths:
        every += _compare(box, path, *(blobs.get(key.encode(), b"") for key in versions[path]))
    changes = _about(box, about, every) if about else sorted(every, key=_importance)
    files = list(dict.fromkeys(change.unit.path for change in changes[:MOST_DIFFS]))
    commits: list[Commit] = []
    if files:
        span = f"{before}..{after}"
        commits = _log_commits(box, ["--no-merges", f"-{MOST_COMMITS}", span, "--", *files])
    places = [_place(change, start, end) for change in changes[:MOST_CHANGES]]
    parts = [f"{p.location} {p.kind} {p.name}, {p.note}" for p in places]
    parts += [commit.line for commit in commits]
    diff = "\n".join("\n".join(change.diff[:LONGEST_DIFF]) for change in changes[:MOST_DIFFS])
    if diff:
        parts.append(diff)
    numbers = Counter(change.kind for change in changes)
    kinds = ", ".join(f"{numbers[kind]:,} {kind}" for kind in KINDS if numbers[kind])
    topic = f", about “{about}”" if about else ""
    summary = f"from {start} to {end}{topic}: {kinds or 'nothing'}"
    summary += f" of {counted(len(every), 'change')} in {counted(len(paths), 'file')}"
    left = len(versions) - len(paths)
    unread = f"Not compared: {counted(left, 'file')} not in the index, or too many." if left else ""
    return list_result(summary, parts, "Say what about.", total=len(changes), completeness=unread,
                       places=tuple(places), commits=tuple(commits), diff=diff)  # fmt: skip


def _versions(box: Toolbox, before: str, after: str) -> dict[str, tuple[str, str]]:
    """Return path → hashes before and after of the files that differ, '' for no plain file."""
    raw = run_git(box, ["diff-tree", "-r", "-z", "--no-renames", "--relative", before, after])
    fields = iter(raw.split("\0")[:-1])
    versions = {}
    for header, path in zip(fields, fields, strict=True):
        mode, later_mode, key, later_key, _ = header.removeprefix(":").split()
        is_file, stays_file = mode.startswith("100"), later_mode.startswith("100")
        versions[path] = (key if is_file else "", later_key if stays_file else "")
    return versions


def _place(change: _Change, start: str, end: str) -> CodeSpan:
    added = sum(line.startswith("+") for line in change.diff[2:])
    removed = sum(line.startswith("-") for line in change.diff[2:])
    commit = start if change.kind == "removed" else end
    note = f"{change.kind}, +{added} −{removed}"
    return CodeSpan.of(change.unit, note=note, commit="" if change.in_index else commit)


def _compare(box: Toolbox, path: str, code: bytes, new_code: bytes) -> list[_Change]:
    """Return the units that differ between two versions of a file."""
    record = box.tables().file(path)
    in_index = record is not None and record.hash == blake2b(new_code, digest_size=16).hexdigest()
    before = {unit.id: unit for unit in _units(path, code)}
    after = {unit.id: unit for unit in _units(path, new_code)}
    changes = []
    for key in after | before:
        was, now = before.get(key), after.get(key)
        lines, new_lines = _own_lines(was), _own_lines(now)
        unit = now or was
        if unit is None or lines == new_lines:
            continue
        kind = "changed" if was and now else "added" if now else "removed"
        diff = unified_diff(lines[:MOST_LINES], new_lines[:MOST_LINES],
                            f"{path} {unit.qualified_name}", kind, n=2, lineterm="")  # fmt: skip
        changes.append(_Change(kind, unit, list(diff), in_index and now is not None))
    return changes


def _units(path: str, data: bytes) -> Sequence[Unit]:
    role = classify(path, data)
    return parse_file(path, data, role).units if isinstance(role, str) else ()


def _own_lines(unit: Unit | None) -> list[str]:
    """Return the lines of `unit` up to its first member, which is a unit of its own."""
    if unit is None:
        return []
    lines = unit.source_code.split("\n")
    return lines[: unit.head_end_line - unit.start_line + 1] if unit.head_end_line else lines


def _importance(change: _Change) -> tuple[bool, bool, int]:
    """Sort definitions of source first, and large changes before small ones."""
    is_definition = change.unit.is_method or change.unit.kind in CLASS_KINDS
    return change.unit.role != "source", not is_definition, -len(change.diff)


def _about(box: Toolbox, about: str, changes: Sequence[_Change]) -> list[_Change]:
    """Return the changes that are about it, definitions of source first, then the nearest.

    The shipped table rates their changed lines. The search rates the units; it does not know
    removed ones, and so counts half.
    """
    matcher = question_matcher(about)
    hits = box.search.search(about, top=200).units
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    by_name = {(hit.unit.path, hit.unit.qualified_name): hit.score / best / 2 for hit in hits}
    scored: list[tuple[float, _Change]] = []
    for change in changes:
        path, name = change.unit.path, change.unit.qualified_name
        score = by_name.get((path, name), 0.0)
        if matcher:
            lines = "\n".join(line[1:] for line in change.diff[2:] if line[0] in "+-")
            near = matcher.nearness(UnitText(path, "", "", "", "", f"{name}\n{lines}"))
            score += near.late + near.passage
        scored.append((score, change))
    least = CHANGE_NEAR_BEST * max((score for score, _ in scored), default=0.0)
    near_enough = [pair for pair in scored if pair[0] >= least]
    near_enough.sort(key=lambda pair: (*_importance(pair[1])[:2], -pair[0]))
    return [change for _, change in near_enough]
