"""Step 1: which repositories of the list are at hand and may be read.

Looks for each repository's mirror, resolves the pinned commit (HEAD where the list pins
none), reads the tree's own licence files and checks them against the allow-list. Writes
OUT/collected.jsonl, one object per accepted repository, and OUT/refused.jsonl, with reasons.
No tree is ever written out.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codeqa.languages import detect
from research.training import licences
from research.training.console import LIST, bar, parser, read_lines, say, write_lines
from research.training.mirrors import Mirror, MirrorError, find_mirror

BENCHMARK = ("pallets/flask", "gin-gonic/gin", "tokio-rs/axum", "google/gson", "rack/rack")
"""Never trained on: questions about them measure what was trained."""

EXAMPLES = """\
  python -m research.training.collect ~/mirrors --out ~/training
  python -m research.training.collect ~/mirrors --out ~/training --list my-repositories.jsonl
"""


def examine(entry: dict[str, Any], mirrors: Path) -> tuple[dict[str, Any] | None, str]:
    """(what `collected.jsonl` says of a repository, ''), or (None, why it is refused)."""
    name = entry["repository"]
    if name.lower() in BENCHMARK:
        return None, "it belongs to the benchmark"
    directory = find_mirror(mirrors, name)
    if directory is None:
        return None, "no mirror at hand"
    try:
        with Mirror(directory) as mirror:
            return _examine(entry, directory, mirror)
    except MirrorError as error:
        return None, str(error)


def _examine(
    entry: dict[str, Any], directory: Path, mirror: Mirror
) -> tuple[dict[str, Any] | None, str]:
    try:
        commit = mirror.commit(entry.get("commit", ""))
    except MirrorError:
        return None, f"its mirror lacks the commit {entry.get('commit', 'HEAD')}"
    tree = mirror.tree(commit)
    top = [file for file in tree if "/" not in file.path]
    texts = [_text(mirror, file.blob) for file in top if licences.is_licence_file(file.path)]
    if not any(texts):  # the licences' texts in a folder of their own
        folder = [file for file in tree if file.path.startswith(("LICENSES/", "legal/LICENSE"))]
        texts = [_text(mirror, file.blob) for file in folder]
    readmes = [file for file in top if file.path.lower().startswith("readme")]
    readme = "\n".join(_text(mirror, file.blob) for file in readmes)
    licence, why = licences.tree_licence([text for text in texts if text], readme)
    if why:
        return None, why
    languages: Counter[str] = Counter()
    for file in tree:
        language = detect(file.path)
        if language is not None and language.grammar and file.size > 0:
            languages[language.name] += file.size
    return {
        "repository": entry["repository"],
        "commit": commit,
        "licence": licence,
        "mirror": str(directory),
        "files": len(tree),
        "missing": sum(1 for file in tree if file.size < 0),
        "bytes": dict(languages.most_common()),
        "documents": not licences.documents_apart(texts),
        "restricted": list(licences.restricted_folders(tree, mirror.read)),
    }, ""


def _text(mirror: Mirror, blob: str) -> str:
    return (mirror.read(blob) or b"").decode("utf-8", "replace")


def collect(mirrors: Path, out: Path, listed: Path = LIST) -> tuple[int, int]:
    """Write `collected.jsonl` and `refused.jsonl`; how many repositories each names."""
    accepted: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for entry in bar(list(read_lines(listed)), "collect", "repo"):
        found, why = examine(entry, mirrors)
        if found is None:
            refused.append({"repository": entry["repository"], "why": why})
        else:
            accepted.append(found)
    accepted.sort(key=lambda item: item["repository"])
    write_lines(out / "refused.jsonl", refused)
    write_lines(out / "collected.jsonl", accepted)
    reasons = Counter(item["why"] for item in refused)
    say(f"collect: {len(accepted)} repositories accepted, {len(refused)} refused")
    for reason, count in reasons.most_common():
        say(f"  {count:4} {reason}")
    say(f"  licences: {json.dumps(Counter(item['licence'] for item in accepted))}")
    return len(accepted), len(refused)


def main(arguments: Sequence[str] | None = None) -> int:
    """The step's command line."""
    options = parser("collect", __doc__, EXAMPLES)
    options.add_argument("mirrors", type=Path, help="folder of git mirrors, in any usual layout")
    options.add_argument("--list", type=Path, default=LIST, help="repositories, commits, licences")
    chosen = options.parse_args(arguments)
    accepted, _ = collect(chosen.mirrors, chosen.out, chosen.list)
    return 0 if accepted else 1


if __name__ == "__main__":
    sys.exit(main())
