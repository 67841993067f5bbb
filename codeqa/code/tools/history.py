"""Tools that look into git: what changed, when, by whom; how a file was; what changed between two
commits, by definitions and sections rather than by lines. They only read.

Only files are told of that the index holds: what is skipped for its secrets is not told by its
history either.
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

from codeqa.code.tools.reading import Lines, line_span, one_file
from codeqa.code.tools.search import definitions
from codeqa.code.tools.tool import Commit, Place, Toolbox, ToolResult, fitting, list_result
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

SECONDS = 20.0
"""How long git may take: the history of one function in a long repository takes some."""
COMMITS = 15
MOST_OTHERS = 3
"""Files or definitions of the same name that are named."""
LOG_FORMAT = "--format=%h%x00%as%x00%an%x00%s"
SAFE = ("--no-textconv", "--no-ext-diff")
"""Programs that the repository's own configuration names for its diffs are not run."""
_CHANGE = ("show", "--format=", "--diff-merges=first-parent", "--relative")
MOST_FILES = 400
"""Parsed in both versions, some milliseconds each; source first."""
SHOWN = 40
"""Changes listed; all are counted."""
DIFFED, LONGEST_DIFF = 5, 60
"""Of how many the diff is shown, and lines of one."""
MOST_LINES = 1_000
"""Of one definition that are compared line by line, which takes the square of them at worst."""
MOST_BEHIND = 10
NEAR_BEST = 0.6
"""Part of the best score from which a change is about what was asked."""
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
    """When, by whom and why code changed, from git. Of a path or name the commits, newest first; of
    `lines` the commit that last changed each; of a `commit` what it changed, or with a path the
    file as it was then; of `v1..v2` what was added, changed and removed between them."""
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
    about, wanted = _history_of(box, path_or_name)
    commits = _logged(box, [*SAFE, f"-{COMMITS}", *wanted])
    newest = "the newest " if len(commits) == COMMITS else ""
    summary = f"history of {about}: {newest}{counted(len(commits), 'commit')}"
    return list_result(summary, [one.line for one in commits], "", items=commits)


def _added(box: Toolbox, name: str) -> ToolResult:
    """The first commit with the head of the definition `name`, or with the name, in any file."""
    unit = next(iter(definitions(box.tables(), name)), None)
    called = unit.name if unit else name
    head = re.search(rf"(?:[\w)]+ )?{re.escape(called)}\b", unit.signature if unit else "")
    text = head[0] if head else called
    commits = _logged(box, [*SAFE, f"-S{text}"])
    if not commits:
        raise NotFoundError(f"No commit here added {name!r}.", "The history may be cut short.")
    one = commits[-1]
    where = f" ({unit.place})" if unit else ""
    summary = f"{name}{where} was added on {one.date} by {one.author} in {one.id}"
    known = f"The first commit with “{text}” in any file."
    return list_result(summary, [one.line], "", items=[one], completeness=known)


def _file_at(box: Toolbox, commit: str, path: str) -> ToolResult:
    found = one_file(box.tables(), path)
    code = mask_secrets(_blob(box, f"{commit}:./{found}"))
    lines = code.removesuffix("\n").split("\n")
    summary = f"{found} at {commit}: {counted(len(lines), 'line')}"
    parts = [f"{n}\t{line}" for n, line in enumerate(lines, 1)]
    _, shown = fitting(parts)
    place = Place(path=found, start_line=1, end_line=shown, note=f"at {commit}",
                  text="\n".join(lines[:shown]))  # fmt: skip
    return list_result(summary, parts, "Only its beginning fits.", places=(place,))


def _show(box: Toolbox, commit: str) -> ToolResult:
    """What a commit changed and why; of tests and documents beside a change of source only the
    names."""
    commit += "^{commit}"  # of a tag, what it marks; nothing else has a change
    head = mask_secrets(run_git(box, ["show", "-s", f"{LOG_FORMAT}%x00%b", commit]))
    *fields, body = head.split("\0", 4)
    one = _commit("\0".join(fields))
    changed = run_git(box, [*_CHANGE, "--name-only", "-z", commit]).split("\0")
    if not (any(changed) or _is_whole(box)):
        raise NotFoundError("This commit changes nothing here.", "It is of other folders alone.")
    known = box.tables().catalogue().paths
    beside = {name: role_of(name) != "source" for name in changed if name in known}
    shown_paths = sorted(beside, key=beside.__getitem__)
    # Tests and documents of a change are often longer than it; they are named.
    diffed = [name for name in shown_paths if not beside[name]] or shown_paths
    diff = run_git(box, [*_CHANGE, *SAFE, commit, "--", *diffed]) if diffed else ""
    summary = f"{one.id} {one.subject}: {counted(len([n for n in changed if n]), 'file')} changed"
    also = [f"Also changed: {', '.join(rest)}"] if (rest := shown_paths[len(diffed) :]) else []
    parts = [f"{one.date}  {one.author}", body, *also, *mask_diff(diff).split("\n")]
    hint, paths = "Open a file of it with `path`.", tuple(shown_paths)
    return list_result(summary, parts, hint, total=len(paths), commits=(one,), paths=paths)


def _is_whole(box: Toolbox) -> bool:
    return git_directory(bytes(box.root)) is not None


def _blame(box: Toolbox, path: str, lines: str) -> ToolResult:
    """Which commit last changed each line of a file, as of the last commit: who, when and why."""
    found = one_file(box.tables(), path)
    count = _blob(box, f"HEAD:./{found}").count("\n") + 1
    first, last = line_span(lines, count)
    # Of the last commit, not of the file on disk: git would run the repository's filters on that.
    blamed = ["blame", "-ls", "--root", "--no-textconv", f"-L{first},{last}", "HEAD", "--", found]
    lines_told = run_git(box, blamed).removesuffix("\n").split("\n")
    ids = [line.partition(" ")[0].lstrip("^") for line in lines_told]
    distinct = list(dict.fromkeys(ids))
    told = _logged(box, ["--no-walk=unsorted", *distinct])
    commit_of = dict(zip(distinct, told, strict=True))
    runs, start = list[Commit](), first
    for id_, held in groupby(ids):
        end = start + len(list(held)) - 1
        runs.append(commit_of[id_].model_copy(update={"lines": f"{start}-{end}"}))
        start = end + 1
    summary = f"blame of {found}:{first}-{last}: {counted(len(distinct), 'commit')}"
    parts = [f"{one.lines:>11}  {one.line}" for one in runs]
    return list_result(summary, parts, "Ask for fewer lines.", items=runs)


def _history_of(box: Toolbox, wanted: str) -> tuple[str, list[str]]:
    """What `wanted` is, and how git is asked for its history. Raises NotFoundError."""
    if not wanted:
        # Of a part of a work tree only its own commits are told.
        return "the repository", [] if _is_whole(box) else ["--", "."]
    mentions, _ = resolve_mentions(box.tables(), [wanted.removeprefix("@").removesuffix("()")])
    for mention in mentions:
        if mention.units:
            unit, *rest = box.tables().by_ids(mention.units[: 1 + MOST_OTHERS])
            others = "".join(f", not {one.place}" for one in rest)
            named = f"{unit.qualified_name} ({unit.place}{others})"
            # Lines as they are in the index; after later edits git finds those nearby.
            return named, [f"-L{unit.start_line},{unit.end_line}:./{unit.path}"]
        if paths := [*mention.files, *mention.folders]:
            path = wanted if wanted in paths else paths[0]
            same = [] if path == wanted else [one for one in mention.files if one != path]
            return path + "".join(f", not {one}" for one in same[:MOST_OTHERS]), ["--", path]
    hint = "Give a path, or the name of a definition."
    raise NotFoundError(f"Nothing here is called {wanted!r}.", hint)


def run_git(box: Toolbox, arguments: Sequence[str]) -> str:
    """What git prints. Raises NotFoundError where it has no answer, RepositoryError where that
    would be another repository's."""
    git = find_git(box.root)
    printed = read_git(git, box.root, ["--literal-pathspecs", *arguments], SECONDS)
    if printed is not None:
        return printed.decode("utf-8", "replace")
    why = "There is no history here.", "It takes git, and a git repository with a commit."
    if read_git(git, box.root, ["rev-parse", "--verify", "HEAD"], SECONDS) is not None:
        why = "git has no answer to that.", "Is there such a commit, and the file at that commit?"
    raise NotFoundError(*why)


def _blob(box: Toolbox, name: str) -> str:
    """A file as git keeps it: packed, a thousandth of its size. Raises NotFoundError, also for one
    that is larger than a file that is shown may be."""
    if int(run_git(box, ["cat-file", "-s", name])) > GROWN_BYTES:
        raise NotFoundError(f"{name} is larger than {GROWN_BYTES:,} bytes.", "Ask git for it.")
    return run_git(box, ["cat-file", "blob", name])


def _logged(box: Toolbox, arguments: Sequence[str]) -> list[Commit]:
    """Return the commits that `git log` lists for `arguments`."""
    printed = run_git(box, ["log", "-s", LOG_FORMAT, *arguments])
    return [_commit(line) for line in printed.split("\n") if line.count("\0") == 3]


def _commit(line: str) -> Commit:
    id_, date, author, subject = line.split("\0")
    return Commit(id=id_.strip(), date=date, author=author, subject=mask_secrets(subject))


class _Change(NamedTuple):
    kind: str
    """One of KINDS."""
    unit: Unit
    """As it is after, or was before it was removed."""
    diff: list[str]
    in_index: bool
    """The index holds the file as it is after."""


def _changes(box: Toolbox, start: str, end: str, about: str) -> ToolResult:
    """Which functions, classes and sections were added, changed or removed, those nearest to
    `about` first, the diff of the best, and the commits behind."""
    before, after = commit_of(box.root, start), commit_of(box.root, end)
    raw = run_git(box, ["diff-tree", "-r", "-z", "--no-renames", "--relative", before, after])
    told = raw.split("\0")[:-1]
    differing = dict(zip(told[1::2], map(str.split, told[::2]), strict=True))
    known = box.tables().catalogue().paths
    paths = sorted(known & differing.keys(), key=lambda path: (role_of(path) != "source", path))
    read = paths[:MOST_FILES]
    hashes = sorted({one.encode() for path in read for one in _hashes(differing[path])} - {b""})
    blobs = dict(zip(hashes, read_blobs(box.root, hashes, GROWN_BYTES), strict=True))
    every = list[_Change]()
    for path in read:
        versions = [blobs.get(one.encode(), b"") for one in _hashes(differing[path])]
        every += _compared(box, path, versions)
    found = _about(box, about, every) if about else sorted(every, key=_importance)
    shown, numbers = found[:SHOWN], Counter(one.kind for one in found)
    kinds = ", ".join(f"{numbers[kind]:,} {kind}" for kind in KINDS if numbers[kind])
    summary = f"from {start} to {end}{f', about “{about}”' if about else ''}: {kinds or 'nothing'}"
    summary += f" of {counted(len(every), 'change')} in {counted(len(read), 'file')}"
    log = [*SAFE, "--no-merges", f"-{MOST_BEHIND}", f"{before}..{after}"]
    files = list(dict.fromkeys(one.unit.path for one in found[:DIFFED]))
    commits = _logged(box, [*log, "--", *files]) if files else []
    places = []
    for one in shown:
        at = "" if one.in_index else start if one.kind == "removed" else end
        added, removed = (sum(line[0] == mark for line in one.diff[2:]) for mark in "+-")
        note = f"{one.kind}, +{added} −{removed}"
        places.append(Place.of(one.unit, note=note, commit=at))
    left = len(differing) - len(read)
    unread = f"Not compared: {counted(left, 'file')} not in the index, or too many." if left else ""
    diff = "\n".join(line for one in found[:DIFFED] for line in one.diff[:LONGEST_DIFF])
    parts = [f"{p.location} {p.kind} {p.name}, {p.note}" for p in places]
    parts += [*(one.line for one in commits), *filter(None, [diff])]
    return list_result(summary, parts, "Say what about.", total=len(found), completeness=unread,
                       places=tuple(places), commits=tuple(commits), diff=diff)  # fmt: skip


def _hashes(told: Sequence[str]) -> list[str]:
    """Of both versions, '' for what is no file, from two modes and two hashes."""
    modes = told[0][1:], told[1]
    return [one if mode[:3] == "100" else "" for mode, one in zip(modes, told[2:4], strict=True)]


def _compared(box: Toolbox, path: str, versions: Sequence[bytes]) -> list[_Change]:
    """What the two versions of a file differ in."""
    old, new = versions
    record = box.tables().file(path)
    in_index = record is not None and record.hash == blake2b(new, digest_size=16).hexdigest()
    was, now = ({unit.id: unit for unit in _units(path, data)} for data in (old, new))
    found = []
    for identity in {**now, **was}:
        pair = was.get(identity), now.get(identity)
        one, other = (_own_lines(unit) if unit else [] for unit in pair)
        if (unit := pair[1] or pair[0]) and one != other:
            kind = "added" if not pair[0] else "changed" if pair[1] else "removed"
            name = f"{path} {unit.qualified_name}"
            cut = one[:MOST_LINES], other[:MOST_LINES]
            diff = list(unified_diff(*cut, name, kind, n=2, lineterm=""))
            found.append(_Change(kind, unit, diff, in_index and pair[1] is not None))
    return found


def _units(path: str, data: bytes) -> Sequence[Unit]:
    role = classify(path, data)
    return parse_file(path, data, role).units if isinstance(role, str) else ()


def _own_lines(unit: Unit) -> list[str]:
    """The lines of `unit` up to its first member, which is a unit of its own."""
    lines = unit.source_code.split("\n")
    return lines[: unit.head_end_line - unit.start_line + 1] if unit.head_end_line else lines


def _importance(one: _Change) -> tuple[bool, bool, int]:
    """Definitions of source first, large changes before small ones."""
    named = one.unit.is_method or one.unit.kind in CLASS_KINDS
    return one.unit.role != "source", not named, -len(one.diff)


def _about(box: Toolbox, about: str, every: Sequence[_Change]) -> list[_Change]:
    """Those of `every` that are about it, definitions of source first, the nearest of them before
    others: by what the shipped table says of their changed lines, and by the search, which knows
    nothing of what was removed and so counts half."""
    near, scores = question_matcher(about), []
    hits = box.search.search(about, top=200).units
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    found = {(hit.unit.path, hit.unit.qualified_name): hit.score / best / 2 for hit in hits}
    for one in every:
        score = found.get((one.unit.path, one.unit.qualified_name), 0.0)
        lines = "\n".join(line[1:] for line in one.diff[2:] if line[0] in "+-")
        text = UnitText(one.unit.path, "", "", "", "", f"{one.unit.qualified_name}\n{lines}")
        close = near.nearness(text) if near else None
        scores.append(score + (close.late + close.passage if close else 0.0))
    least = NEAR_BEST * max(scores, default=0.0)
    near_enough = [pair for pair in zip(scores, every, strict=True) if pair[0] >= least]
    ranked = sorted(near_enough, key=lambda pair: (*_importance(pair[1])[:2], -pair[0]))
    return [one for _, one in ranked]
