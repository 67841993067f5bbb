"""Answer questions about the whole repository by counting, without a search.

They are: who calls it, what inherits from it, all routes, what breaks, the call path between
two, a literal text, what changed. A message is such a question only as a whole, for "how does X
call Y?" asks something else. A tool of `codeqa.code.tools` gives the result, which is put into
words here.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from codeqa.asked import counted_forms
from codeqa.code.descriptions import bullet_list
from codeqa.code.tools import TOOLS, CodeSpan, Commit, Toolbox, ToolResult
from codeqa.code.tools.listing import DEFINED
from codeqa.code.tools.search import definitions
from codeqa.code.tools.tool import Arrow
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

MOST_ITEMS = 40
"""Places listed; all are counted."""
MOST_AUTHORS = 5
"""Authors named, those with the most commits."""
LONGEST_LINE = 160
LONGEST_MESSAGE = 300
"""Characters; a longer message is no such question."""


@dataclass(frozen=True, slots=True)
class CountedQuestion:
    """The tool and the arguments that a message asks for."""

    tool: str
    arguments: Mapping[str, str]
    asks_more: bool = False
    """The message has a second question after it."""


_WANTS = {"call": "callers", "use": "references", "subclasses": "subclasses"}
_LISTED = ("routes", "commands", "tests", "todos", "environment", "recursive", *DEFINED)
_WAY = "path to "
_POINTING = ("it", "its", "that", "this", "them", "those", "these", "here")
_MORE = re.compile(
    r"(?:[,;?.]\s+(?:and\s+)?|\s+and\s+)(?=(?:why|how|explain|what|which|should|does|is|are)\b)"
)
_MENTION = re.compile(r"^@\S+ ")
_CODE_LIKE = re.compile(r"[_:#()]|\.[A-Za-z]|[a-z0-9][A-Z]")
_OPTIONS = {"path": "--path", "commit": "--commit", "about": "--about"}
"""Argument of a tool → the option of its command."""


def counted_question(text: str) -> CountedQuestion | None:
    """Return what `text` asks for if that can be counted; its form alone decides."""
    text = _MENTION.sub("", " ".join(text.split()))
    if len(text) > LONGEST_MESSAGE:
        return None
    if question := _matched(text):
        return question
    for match in _MORE.finditer(text):
        if first := _matched(text[: match.start()]):
            return CountedQuestion(first.tool, first.arguments, asks_more=True)
    return None


def _matched(text: str) -> CountedQuestion | None:
    for form, expression in counted_forms():
        if match := expression.fullmatch(text.strip(" ?.!")):
            groups = match.groupdict().items()
            return _tool_call(form, {name: value for name, value in groups if value})
    return None


def _tool_call(form: str, groups: dict[str, str]) -> CountedQuestion:
    """Return the call of a tool for a message of that form, whose `groups` matched."""
    if form == "references":
        want = next((want for kind, want in _WANTS.items() if kind in groups), "references")
        arguments = {"name": groups["name"], "want": want}
        if "path" in groups:
            arguments["within"] = groups["path"]
        return CountedQuestion("symbol", arguments)
    if form == "impact":
        return CountedQuestion("symbol", {"name": groups["name"], "want": form})
    if form == "path":
        return CountedQuestion("symbol", {"name": groups["start"], "want": _WAY + groups["end"]})
    if form == "list_all":
        kind = next(kind for kind in _LISTED if kind in groups)
        return CountedQuestion(form, {"kind": kind, "path": groups.get("path", "")})
    if form == "added":
        return CountedQuestion("history", {"name": groups["name"], "added": "true"})
    if form == "changes":
        commits = f"{groups['start']}..{groups.get('end', 'HEAD')}"
        return CountedQuestion("history", {"commit": commits, "about": groups.get("about", "")})
    return CountedQuestion(form, groups)


def counted_answer(box: Toolbox, question: CountedQuestion, subjects: Sequence[str]) -> str:
    """Return the whole answer in Markdown, counted, with places and a diagram.

    It is '' if a name is neither defined here nor written as code. `subjects` are what "it" may
    mean, as written in code.
    """
    values, tool = dict(question.arguments), question.tool
    folder, typed = values.pop("within", "").strip("/"), values.get("pattern", "")
    if tool == "grep" and typed.islower():
        values |= {"pattern": f"(?i){re.escape(typed)}", "regex": "true"}
    if "name" in values and not _put_names(box, tool, values, subjects):
        return ""
    try:
        result = _result(box, tool, values)
    except CodeQAError as error:
        # A word that is no path or commit: "what changed in version two?"
        commit = values.get("commit")
        meant = re.search(r"\d", commit) if commit else _CODE_LIKE.search(values.get("name", ""))
        text = f"**{escape(error.message)}** {escape(error.hint)}"
        return text if meant or tool != "history" else ""
    if result is None:
        return ""
    places, total, summary = result.places, result.total, result.summary
    if folder:
        places = tuple(span for span in places if f"/{folder}/" in f"/{span.path}/")
        total = len(places)
        summary += f", {total:,} of them in {folder}"
    summary = summary.replace(values.get("pattern", ""), typed, 1)
    fields = {"places": places, "total": total, "summary": summary}
    return _worded(result.model_copy(update=fields), tool, values)


def _put_names(box: Toolbox, tool: str, values: dict[str, str], subjects: Sequence[str]) -> bool:
    """Put what "it" means into `values`; return False for names that are no code."""
    want, way, end = values.get("want", "").partition(_WAY)
    names = [values["name"], end] if way else [values["name"]]
    for index, name in enumerate(names):
        names[index] = name.removesuffix("()")
        if names[index].lower() in _POINTING:
            names[index] = subjects[0] if subjects else ""
    values["name"] = names[0]
    if way:
        values["want"] = _WAY + names[1]
    # What is inherited from may be defined elsewhere.
    anything = want == "subclasses" or (tool == "history" and "added" not in values)
    if not all(names):
        return False
    tables = box.tables()
    return anything or all(_CODE_LIKE.search(name) or definitions(tables, name) for name in names)


def _result(box: Toolbox, tool: str, values: dict[str, str]) -> ToolResult | None:
    """Return the result of the tool, None if it is no answer: the search then finds more."""
    result = TOOLS[tool].call(box, values)
    if result.unknown and not _CODE_LIKE.search(result.unknown):
        return None
    if " " in values.get("pattern", "") and not result.total:
        return None  # a message is put together while a program runs
    return result


def _worded(result: ToolResult, tool: str, values: Mapping[str, str]) -> str:
    summary = result.summary
    if not summary.startswith(tuple(filter(None, values.values()))):  # which stay as written
        summary = summary[:1].upper() + summary[1:]
    head = f"**{escape(summary)}.** {_linked(result.completeness)}".strip()
    commits = _commit_items(result.commits)
    if tool == "history" and not result.places:
        if len(commits) == 1:
            return joined([head, commits[0]])
        people = Counter(commit.author for commit in result.commits).most_common()
        by = some_of([f"{name} ({number:,})" for name, number in people], MOST_AUTHORS)
        title = f"{escape(f'By {by}.')} To see a commit's changes: `codeqa history --commit <id>`."
        return joined([head, bullet_list(title, commits)])
    listed = result.places[:MOST_ITEMS]
    left = result.total - sum(span.times for span in listed)
    more = f": {code_span(_command(tool, values))}"
    title = f"{result.total - left:,} of {result.total:,}:" if left else ""
    places = bullet_list(title, map(place_item, listed), left, more)
    newest = bullet_list("Commits that made the first of these changes, newest first:", commits)
    hunks = code_block(result.diff, "diff") if result.diff else ""
    return joined([head, places, _diagram(result.edges), newest, hunks])


def _diagram(edges: Sequence[Arrow]) -> str:
    """Draw `edges`, '' if all begin or end at one definition: those are the list once more."""
    starts, ends = {edge.start for edge in edges}, {edge.end for edge in edges}
    if len(starts) < 2 or len(ends) < 2:
        return ""
    drawing = code_block(flowchart((edge.start, edge.end, edge.label) for edge in edges), "mermaid")
    number = len(starts | ends)
    part = f"The first {MOST_NODES} of {number:,}, drawn:" if number > MOST_NODES else ""
    return joined([part, drawing])


def _commit_items(commits: Iterable[Commit]) -> list[str]:
    items = []
    for commit in commits:
        text = escape(f"{commit.author}: {commit.subject}")
        items.append(f"- {code_span(commit.id)} {commit.date} {text}")
    return items


def _command(tool: str, values: Mapping[str, str]) -> str:
    """Return the command that lists all."""
    words = ["codeqa", tool.replace("_", "-")]
    for name, value in values.items():
        if name == "regex" and value:
            words.append("--regex")
        elif value:
            words += [_OPTIONS[name], value] if name in _OPTIONS else [value]
    return shlex.join(words + ["--json"])


def place_item(span: CodeSpan) -> str:
    """Return a span of the code as an item of a list."""
    is_site = span.kind in ("call", "use", "import", "inherits")
    name = f" {'in ' if is_site else ''}{code_span(span.name)}" if span.name else ""
    note = f", {escape(span.note)}" if span.note else ""
    text = f": {code_span(span.text[:LONGEST_LINE])}" if span.text else ""
    where = cite(span.path, span.start_line, span.end_line)
    if span.commit:  # other lines than those that a citation would open
        where = code_span(f"{span.location} at {span.commit}")
    return f"- {where}{name}{note}{text}"


def _linked(text: str) -> str:
    """Escape `text`, but for its citations."""
    escaped, end = "", 0
    for match in CITATION.finditer(text):
        escaped += escape(text[end : match.start()]) + match[0]
        end = match.end()
    return escaped + escape(text[end:])
