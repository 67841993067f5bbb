"""What changed between two commits, told by definitions and sections rather than by lines.

Both versions of each file are parsed and compared unit by unit. Only files that the index holds are
read: what it leaves out is not told by its history either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import unified_diff
from hashlib import blake2b
from typing import Annotated, NamedTuple

from pydantic import Field

from codeqa.code.tools.declaration import Toolbox
from codeqa.code.tools.history import LOG_FORMAT, SAFE, Revision, commits_in, run_git
from codeqa.code.tools.results import ToolResult, bare_place, list_result
from codeqa.embeddings.registry import question_matcher
from codeqa.parsing import parse_file
from codeqa.repositories.files import GROWN_BYTES
from codeqa.repositories.snapshots import commit_of, read_blobs
from codeqa.repository.classify import classify, role_of
from codeqa.text import counted
from codeqa.text.unit_text import UnitText
from codeqa.types import CLASS_KINDS, Unit

MOST_FILES = 400
"""Parsed in both versions, some milliseconds each; source first."""
SHOWN = 40
"""Changes listed; all are counted."""
DIFFED, LONGEST_DIFF = 5, 60
"""Of how many the diff is shown, and lines of one."""
MOST_LINES = 1_000
"""Of one definition that are compared line by line, which takes the square of them at worst."""
MOST_COMMITS = 10
NEAR_BEST = 0.6
"""Part of the best score from which a change is about what was asked."""
KINDS = ("added", "changed", "removed")


class _Change(NamedTuple):
    kind: str
    """One of KINDS."""
    unit: Unit
    """As it is after, or was before it was removed."""
    diff: list[str]
    in_index: bool
    """The index holds the file as it is after."""


def changes(
    box: Toolbox,
    start: Revision,
    end: Revision = "HEAD",
    about: Annotated[str, Field(description="What the changes are to be about, in words.")] = "",
) -> ToolResult:
    """What changed between two commits: which functions, classes and sections were added, changed
    or removed, those nearest to `about` first, the diff of the best, and the commits behind."""
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
    summary = f"from {start} to {end}{f', about “{about}”' * bool(about)}: {kinds or 'nothing'}"
    summary += f" of {counted(len(every), 'change')} in {counted(len(read), 'file')}"
    log = ["log", "-s", *SAFE, "--no-merges", f"-{MOST_COMMITS}", LOG_FORMAT, f"{before}..{after}"]
    files = list(dict.fromkeys(one.unit.path for one in found[:DIFFED]))
    commits = commits_in(run_git(box, [*log, "--", *files])) if files else []
    places = []
    for one in shown:
        at = "" if one.in_index else start if one.kind == "removed" else end
        added, removed = (sum(line[0] == mark for line in one.diff[2:]) for mark in "+-")
        note = f"{one.kind}, +{added} −{removed}"
        places.append(bare_place(one.unit).model_copy(update={"note": note, "commit": at}))
    left = len(differing) - len(read)
    unread = f"Not compared: {counted(left, 'file')} not in the index, or too many." * bool(left)
    diff = "\n".join(line for one in found[:DIFFED] for line in one.diff[:LONGEST_DIFF])
    parts = [f"{p.location} {p.kind} {p.name}, {p.note}" for p in places]
    parts += [f"{c.id}  {c.date}  {c.author}  {c.subject}" for c in commits]
    parts += filter(None, [diff])
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
    near = question_matcher(about)
    hits = box.search.search(about, top=200).units
    best = max((hit.score for hit in hits), default=0.0) or 1.0
    found = {(hit.unit.path, hit.unit.qualified_name): hit.score / best / 2 for hit in hits}
    scores = []
    for one in every:
        score = found.get((one.unit.path, one.unit.qualified_name), 0.0)
        if near:  # what changed counts, not what stayed
            lines = "\n".join(line[1:] for line in one.diff[2:] if line[0] in "+-")
            body = f"{one.unit.qualified_name}\n{lines}"
            close = near.nearness(UnitText(one.unit.path, "", "", "", "", body))
            score += close.late + close.passage
        scores.append(score)
    least = NEAR_BEST * max(scores, default=0.0)
    near_enough = [pair for pair in zip(scores, every, strict=True) if pair[0] >= least]
    ranked = sorted(near_enough, key=lambda pair: (*_importance(pair[1])[:2], -pair[0]))
    return [one for _, one in ranked]
