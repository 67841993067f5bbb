"""The definitions of universal-ctags, for languages without another oracle.

A definition of ctags is a function, method, type or `typedef` with a name of its own, whose line
reads like one: ctags also lists calls of C# and parameters of Kotlin's lambdas. It is found where a
unit of this name, in the same file, has its line; where ctags takes a macro for the name
(`TEST(Suite, Name)`), any function there. In the other direction a unit is told by ctags with a tag
of any kind; what it does not tell is for reading.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from codeqa.types import METHOD_KINDS, TEXT_KINDS, Unit

KINDS = {"class", "enum", "function", "interface", "method", "object", "struct", "trait",
         "typealias", "typedef", "union"}  # fmt: skip
UNNAMED = re.compile(r"__anon|AnonymousClass|<lambda>|Companion$|^ ")
READS = {
    "Kotlin": r"\bfun\b\s*(?:<[^()]*>\s*)?(?:[^(){}=]*\.)?`?%s`?\s*\(",
    "C#": r"^\s*(?!return|throw|new\b|else|await|yield|lock|using|if|case|:)"
    r"[\w\[].*[\w>\]?,]\s+%s\s*[(<]",
}
"""How the line of a function or method reads, by ctags's name of the language."""


def compare_tags(root: Path, units: Iterable[Unit], add: Callable[[str, bool, str], None]) -> None:
    """Count the definitions of a repository in both directions, by `add`."""
    mine: dict[tuple[str, str], list[Unit]] = defaultdict(list)
    theirs: dict[tuple[str, str], list[int]] = defaultdict(list)
    units = [one for one in units if one.kind not in TEXT_KINDS]
    for unit in units:
        mine[unit.path, _key(unit.name)].append(unit)
        if unit.kind in METHOD_KINDS:
            mine[unit.path, ""].append(unit)
    for tag in _tags(root, sorted({unit.path for unit in units})):
        path, line, name = tag["path"], tag["line"], tag["name"]
        theirs[path, _key(name)].append(line)
        if _is_definition(root, tag):
            around = mine[path, _key(name)] + (mine[path, ""] if name.isupper() else [])
            right = any(unit.start_line <= line <= unit.end_line for unit in around)
            add("definitions recall", right, f"{path}:{line} {tag['kind']} {name}")
    for unit in units:
        if unit.kind not in ("module", "constant", "lambda"):
            lines = theirs[unit.path, _key(unit.name)]
            right = any(unit.start_line <= line <= unit.end_line for line in lines)
            add("definitions precision", right, f"{unit.span} {unit.kind} {unit.qualified_name}")


def _tags(root: Path, paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    command = ["ctags", "--output-format=json", "--fields=+nKle", "-L", "-", "-f", "-"]
    command += [f"--kinds-{name}=*" for name in ("C", "C++", "C#", "PHP", "Kotlin")]
    done = subprocess.run(command, input="\n".join(paths), cwd=root, capture_output=True,
                          text=True, check=True)  # fmt: skip
    rows = map(json.loads, done.stdout.splitlines())
    yield from (row for row in rows if row["_type"] == "tag")


def _is_definition(root: Path, tag: dict[str, Any]) -> bool:
    reads, name = READS.get(tag["language"]), tag["name"]
    alias = tag["kind"] == "typedef" and tag["language"] == "C#"  # `using A = B;`
    if alias or tag["kind"] not in KINDS or UNNAMED.search(name):
        return False
    if reads is None or tag["kind"] != "method":
        return True
    line = (root / tag["path"]).read_text("utf-8", "replace").split("\n")[tag["line"] - 1]
    return re.search(reads % re.escape(name), line) is not None


def _key(name: str) -> str:
    """The last part of a qualified name, without signs that one side alone writes."""
    name = name if name.startswith("operator") else name.split("::")[-1]
    name = name if " " in name else name.split(".")[-1]
    return "".join(name.strip("`~").split()).removeprefix("operator")
