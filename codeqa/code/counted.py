"""Questions about the whole repository that are counted and not searched for: who calls it, what
inherits from it, all routes, what breaks, the way from one to the other, a literal text, what
changed.

A message is such a question only as a whole, for "how does X call Y?" asks something else. It is
answered by a tool of `codeqa.code.tools`, whose result is put into words here.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codeqa.asked import counted_forms
from codeqa.code.descriptions import bullet_list
from codeqa.code.tools import TOOLS, Place, Toolbox, ToolResult
from codeqa.code.tools.listing import DEFINED
from codeqa.code.tools.search import definitions
from codeqa.errors import CodeQAError
from codeqa.text import some_of
from codeqa.text.markdown import (
    CITATION,
    MOST_NODES,
    cite,
    code_block,
    code_span,
    escape,
    flowchart,
    joined,
)

ITEMS = 40
"""Places listed; all are counted."""
AUTHORS = 5
"""Of those who wrote the commits, the ones with most."""
LONGEST_LINE = 160
LONGEST_MESSAGE = 300
"""Characters of a question that can be one of these."""


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """A tool and its arguments, as a message asks for them."""

    tool: str
    arguments: Mapping[str, str]
    asks_more: bool = False
    """The message has a second question behind it."""


_WANTS = {"call": "callers", "use": "references", "subclasses": "subclasses"}
_LISTED = ("routes", "commands", "tests", "todos", "environment", "recursive", *DEFINED)
_WAY = "path to "
_POINTING = ("it", "its", "that", "this", "them", "those", "these", "here")
_MORE = re.compile(
    r"(?:[,;?.]\s+(?:and\s+)?|\s+and\s+)(?=(?:why|how|explain|what|which|should|does|is|are)\b)"
)
_MENTION = re.compile(r"^@\S+ ")
_CODE_LIKE = re.compile(r"[_:#()]|\.[A-Za-z]|[a-z0-9][A-Z]")


def exact_question(text: str) -> ExactQuestion | None:
    """What `text` asks for, if that can be counted; by its form alone."""
    text = _MENTION.sub("", " ".join(text.split()))
    if len(text) > LONGEST_MESSAGE:
        return None
    if whole := _matched(text):
        return whole
    heads = (_matched(text[: found.start()]) for found in _MORE.finditer(text))
    head = next(filter(None, heads), None)
    return ExactQuestion(head.tool, head.arguments, asks_more=True) if head else None


def _matched(text: str) -> ExactQuestion | None:
    for form, expression in counted_forms():
        if found := expression.fullmatch(text.strip(" ?.!")):
            return _asked(form, {key: value for key, value in found.groupdict().items() if value})
    return None


def _asked(form: str, named: dict[str, str]) -> ExactQuestion:
    """The call of a tool that a message of that form asks for."""
    if form == "references":
        want = next((want for kind, want in _WANTS.items() if kind in named), "references")
        within = {"within": named["path"]} if "path" in named else {}
        return ExactQuestion("symbol", {"name": named["name"], "want": want, **within})
    if form == "impact":
        return ExactQuestion("symbol", {"name": named["name"], "want": form})
    if form == "path":
        return ExactQuestion("symbol", {"name": named["start"], "want": f"{_WAY}{named['end']}"})
    if form == "list_all":
        kind = next(kind for kind in _LISTED if kind in named)
        return ExactQuestion(form, {"kind": kind, "path": named.get("path", "")})
    if form == "added":
        return ExactQuestion("history", {"name": named["name"], "added": "true"})
    if form == "changes":
        commits = f"{named['start']}..{named.get('end', 'HEAD')}"
        return ExactQuestion("history", {"commit": commits, "about": named.get("about", "")})
    return ExactQuestion(form, named)


def exact_answer(box: Toolbox, asked: ExactQuestion, subjects: Sequence[str]) -> str:
    """All of it in Markdown, counted, with places and a diagram. '' where a name is neither defined
    here nor written as code; `subjects` are what "it" may mean, as written in code."""
    values, tool = dict(asked.arguments), TOOLS[asked.tool]
    within = values.pop("within", "").strip("/")

    def resolved(name: str) -> str:
        name = name.removesuffix("()")
        return next(iter(subjects), "") if name.lower() in _POINTING else name

    if asked.tool == "grep" and values["pattern"].islower():
        values |= {"pattern": f"(?i){re.escape(values['pattern'])}", "regex": "true"}
    if "name" in values:
        names = values["name"] = resolved(values["name"])
        want, way, end = values.get("want", "").partition(_WAY)
        if way:
            values["want"] = f"{_WAY}{resolved(end)}"
        # What is inherited from may be defined elsewhere.
        sure = (asked.tool == "history" and "added" not in values) or want == "subclasses"
        for name in (names, resolved(end)) if way else (names,):
            if not name or not (sure or _CODE_LIKE.search(name) or definitions(box.tables(), name)):
                return ""
    try:
        result = tool.call(box, values)
        if result.unknown and not _CODE_LIKE.search(result.unknown):
            return ""
        if " " in values.get("pattern", "") and not result.total:
            return ""  # a message is put together while a program runs: the search finds its parts
        if not (result.total or result.unknown) and values.get("want") == "callers":
            anyhow = values | {"want": "references"}
            used = tool.call(box, anyhow)
            if used.total:  # as a decorator, or handed on
                result, values = used, anyhow
    except CodeQAError as error:
        # A word that is no path or commit: "what changed in version two?"
        commit = values.get("commit")
        meant = re.search(r"\d", commit) if commit else _CODE_LIKE.search(values.get("name", ""))
        told = f"**{escape(error.message)}** {escape(error.hint)}"
        return told if meant or asked.tool != "history" else ""
    if within:
        inside = tuple(one for one in result.places if f"/{within}/" in f"/{one.path}/")
        summary = f"{result.summary}, {len(inside):,} of them in {within}"
        result = result.model_copy(
            update={"places": inside, "summary": summary, "total": len(inside)}
        )
    told = result.summary.replace(values.get("pattern", ""), asked.arguments.get("pattern", ""), 1)
    return _worded(result.model_copy(update={"summary": told}), asked.tool, values)


def _worded(result: ToolResult, tool: str, values: Mapping[str, str]) -> str:
    summary, written = result.summary, tuple(filter(None, values.values()))
    if not summary.startswith(written):  # which stay as they are written
        summary = summary[:1].upper() + summary[1:]
    said = f"**{escape(summary)}.** {_linked(result.completeness)}".strip()
    if tool == "history" and len(result.commits) == 1 and not result.places:
        return joined([said, *_commits(result)])
    if tool == "history" and not result.places:
        people = Counter(commit.author for commit in result.commits).most_common()
        by = some_of([f"{name} ({number:,})" for name, number in people], AUTHORS)
        shown = f"{escape(f'By {by}.')} What one of them changed: `codeqa history --commit <id>`."
        return joined([said, bullet_list(shown, _commits(result))])
    left = result.total - sum(place.times for place in result.places[:ITEMS])
    more = f": {code_span(_command(tool, values))}"
    listed = f"{result.total - left:,} of {result.total:,}:" if left else ""
    places = bullet_list(listed, map(place_item, result.places[:ITEMS]), left, more)
    # Edges that all begin or end at one place are the list once more.
    star = any(
        len(set(ends)) < 2 for ends in zip(*((e.start, e.end) for e in result.edges), strict=True)
    )
    edges = () if star else result.edges
    drawn = flowchart((edge.start, edge.end, edge.label) for edge in edges)
    names = {name for edge in edges for name in (edge.start, edge.end)}
    part = f"The first {MOST_NODES} of {len(names):,}, drawn:" if len(names) > MOST_NODES else ""
    diagram = code_block(drawn, "mermaid") if drawn else ""
    commits = bullet_list("Commits behind the first of them, the newest first:", _commits(result))
    hunks = code_block(result.diff, "diff") if result.diff else ""
    return joined([said, places, part, diagram, commits, hunks])


def _commits(result: ToolResult) -> list[str]:
    return [
        f"- {code_span(one.id)} {one.date} {escape(f'{one.author}: {one.subject}')}"
        for one in result.commits
    ]


def _command(tool: str, values: Mapping[str, str]) -> str:
    """What to type for what is not listed."""
    words = ["codeqa", tool.replace("_", "-")]
    for key, value in ((key, value) for key, value in values.items() if value):
        option = {"regex": "--regex", "path": "--path", "commit": "--commit", "about": "--about"}
        words += filter(None, (option.get(key, ""), value if key != "regex" else ""))
    return shlex.join([*words, "--json"])


def place_item(place: Place) -> str:
    """An item of a list that is a place of the code."""
    is_site = place.kind in ("call", "use", "import", "inherits")
    name = f" {'in ' * is_site}{code_span(place.name)}" if place.name else ""
    note = f", {escape(place.note)}" if place.note else ""
    text = f": {code_span(place.text[:LONGEST_LINE])}" if place.text else ""
    if place.commit:  # other lines than those that a citation would open
        return f"- {code_span(f'{place.location} at {place.commit}')}{name}{note}{text}"
    return f"- {cite(place.path, place.start_line, place.end_line)}{name}{note}{text}"


def _linked(text: str) -> str:
    """`text` as it stands, its citations alone as such."""
    parts, end = list[str](), 0
    for found in CITATION.finditer(text):
        parts += [escape(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, escape(text[end:])])
