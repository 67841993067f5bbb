"""Questions about the whole repository that are counted and not searched for: who calls it, what
inherits from it, all routes, what breaks, the way from one to the other, what changed.

A message is such a question only as a whole, for "how does X call Y?" asks something else. It is
answered by a tool of `codeqa.code.tools`, whose result is put into words here.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from codeqa.code.cited import NOTHING, Cited, cited_list, together
from codeqa.code.tools import TOOLS, Place, Toolbox, ToolResult
from codeqa.code.tools.finding import definitions
from codeqa.errors import CodeQAError
from codeqa.text.citation_format import CITATION, ShownLines
from codeqa.text.markdown import cite, code_block, code_span, escape
from codeqa.text.mermaid import MOST_NODES, flowchart

ITEMS = 40
"""Places listed; all are counted."""
AUTHORS = 5
"""Of those who wrote the commits, the ones with most."""
LONGEST_LINE = 160
LONGEST_MESSAGE = 300
"""Characters of a question that can be one of these."""

_KIND = "function|method|class|trait|interface|struct|type|macro|decorator"
_WORD = r"[^\W\d][\w$]*(?:(?:\.|::|#|->)[\w$]+)*(?:\(\))?"
_THINGS = (
    "functions?|methods?|code|places?|files?|classes|types?|structs?|modules?|exceptions?|else"
)
_ONE = r"(?:i|we|you|one|someone)"
_CHANGE = r"(?:chang(?:ed?|es|ing)|modif(?:y|ies|ied|ying)|edit(?:s|ed|ing)?|remov(?:ed?|es|ing)"
_CHANGE += r"|renam(?:ed?|es|ing)|delet(?:ed?|es|ing)|touch(?:ed|es|ing)?)"
_POLITE = r"(?:(?:and|so|ok(?:ay)?|now|then|please|can you|could you|tell me|do you know)[, ]+)*"
_LIST = r"(?:(?:list|show|find|give|name|enumerate)(?: me| us)? )"
_ALL = "code ?base|code|repo|repository|project|app|application"
_HERE = rf"(?: in total)?(?: (?:in|of) (?:the|this) (?:{_ALL}))?"
_AT = r"(?: (?:in|under|below) `?(?P<of>[\w./*-]*[/.*][\w./*-]*)`?)?"
_PATH = r"(?:the )?[`@]?(?P<path_or_name>[\w./:#-]*\w/?)(?:\(\))?`?"
_DID = r"(?:changed|touched|edited|modified|added|introduced|written|wrote)"
_WHEN = r"(?: (?:lately|recently|last|here))?"
_BETWEEN = (
    r"(?:between|from|since) `?(?P<start>[\w./@^~-]+)`?(?: (?:and|to) `?(?P<end>[\w./@^~-]+)`?)?"
)
_TOPIC = r"(?:about|in|with|for|around|regarding|concerning) (?P<about>.+?)"
_WHY = r"(?:[, ]+(?:and|why|when|who|by whom|what for))*"
_KINDS = {
    "routes": r"(?:http |url |api |web |rest )?(?:routes?|endpoints?)",
    "commands": r"(?:cli |command[- ]line |sub-?)?commands?",
    "tests": r"(?:unit |integration )?tests?(?: cases?| functions?)?",
    "todos": r"(?:todos?|to-dos?)(?: comments?| notes?)?",
    "environment": r"env(?:ironment)?[- ]?var(?:iable)?s?",
}


def _name(argument: str = "name") -> str:
    kind = f"(?:{_KIND})"
    return rf"(?:the |an? )?(?:{kind} )?[`@]?(?P<{argument}>{_WORD})`?(?: {kind})?"


def _relation(verb: str, done: str, noun: str) -> tuple[str, ...]:
    name = _name()
    all_of = rf"(?:{_LIST}|what are |which are )?(?:all |every |the |direct )*(?:{noun})"
    return (
        rf"(?:who|what|which (?:{_THINGS})) (?:else )?(?:{verb}) {name}(?: directly)?",
        rf"{all_of} (?:of|to|for) {name}",
        rf"(?:{_LIST}|(?:what|who) are |how many )(?:all )?(?P<name>its) (?:{noun})(?: are there)?",
        rf"(?:where|how often|how many times) (?:is|are|was) {name} (?:{done})(?: from)?",
        rf"how many (?:{_THINGS}) (?:{verb}) {name}",
        rf"how many (?:{noun}) (?:does|do|has|have) {name}(?: have)?",
        rf"how many (?:{noun}) (?:are there )?of {name}(?: are there| exist)?",
    )


def _listed(kind: str) -> tuple[str, ...]:
    are = r"(?: (?:that |which )?(?:are|is|does it|do we|exist)?"
    are += r"(?: ?(?:there|defined|registered|read|used|here|have|exist))*)?"
    return (
        rf"{_LIST}(?:all |every |the |of )*{kind}{are}{_AT}",
        rf"(?:what|which) (?:are )?(?:all |the )*{kind} (?:that )?(?:are|is|does it|do we|exist)"
        rf"(?: ?(?:there|defined|registered|read|used|here|have|exist))*{_AT}",
        rf"(?:what|which) are (?:all |the )*{kind}{_AT}",
        rf"all (?:the |of the )?{kind}{_AT}",
        rf"how many {kind}{are}{_AT}",
    )


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """A tool and its arguments, as a message asks for them."""

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    asks_more: bool = False
    """The message has a second question behind it."""


_ASKED: tuple[tuple[str, Mapping[str, str], tuple[str, ...]], ...] = (
    ("find_references", {"kind": "call"}, _relation(
        "calls?|invokes?", "called|invoked", "callers?|call sites?|calls")),
    ("find_references", {}, _relation(
        "uses?|references?", "used|referenced", "uses?|usages?|references?|users")),
    ("list_all", {"kind": "subclasses"}, tuple(
        form.replace("?P<name>", "?P<of>") for form in _relation(
            "implements?|inherits?(?: from)?|extends?|subclass(?:es)?|derives? from",
            "subclassed|extended|inherited from",
            "(?:sub|derived |child )class(?:es)?|implementations?|implement[eo]rs?|descendants?"))),
    ("impact", {}, (
        rf"what (?:else )?(?:(?:would |will |could |can |might )?breaks?|(?:is|would be) affected)"
        rf" (?:if|when) {_ONE} {_CHANGE} {_name()}",
        rf"which tests (?:(?:would |will |could )?(?:break|fail)|are affected) (?:if|when) {_ONE} "
        rf"{_CHANGE} {_name()}",
        rf"(?:what|who) (?:depends|relies) on {_name()}",
        rf"(?:what is |what's )?(?:the )?impact of (?:{_CHANGE} |a change (?:of|to|in) )?{_name()}",
        rf"what (?:is|would be) affected by (?:{_CHANGE} |a change (?:of|to|in) )?{_name()}")),
    ("call_path", {}, (
        rf"{_LIST}?(?:what is )?(?:(?:the|a|shortest|call) )*(?:path|chain|way)(?: of calls)?"
        rf" from {_name('start')} to {_name('end')}",
        rf"how does {_name('start')} (?:reach|get to|lead to|end up (?:in|at)) {_name('end')}")),
    *(("list_all", {"kind": kind}, _listed(words)) for kind, words in _KINDS.items()),
    ("changes", {}, (
        rf"what (?:has |was |have )?(?:been )?changed {_BETWEEN}(?: {_TOPIC})?",
        rf"what (?:has |was |have )?(?:been )?changed {_TOPIC} {_BETWEEN}",
        rf"{_LIST}?(?:what are )?(?:the )?(?:changes|differences) {_BETWEEN}(?: {_TOPIC})?")),
    ("git_log", {}, (
        rf"what (?:has |was )?(?:been )?changed (?:lately|recently|last)(?: in {_PATH})?{_WHY}",
        rf"what (?:has |was |have )?(?:been )?changed (?:in |on |about |to )?{_PATH}{_WHEN}{_WHY}",
        rf"who (?:has )?(?:last |recently )?{_DID} {_PATH}{_WHEN}{_WHY}",
        rf"(?:when|why|by whom|who) (?:and (?:why|when|by whom) )?(?:was|were) {_PATH} "
        rf"(?:last |recently )?{_DID}{_WHEN}{_WHY}",
        rf"{_LIST}?(?:what (?:is|are) )?(?:the )?(?:(?:git )?(?:history|log)|(?:recent|latest) "
        rf"changes) (?:of|for|in|to) {_PATH}")),
)  # fmt: skip
"""Tool, the arguments that the form says, and the forms, whose groups are the other arguments."""
_OF_HISTORY = ("git_log", "changes")
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


@cache
def _forms() -> list[tuple[str, Mapping[str, str], re.Pattern[str]]]:
    return [
        (tool, given, re.compile(f"{_POLITE}(?:{form}){_HERE}", re.IGNORECASE))
        for tool, given, forms in _ASKED
        for form in forms
    ]


def _matched(text: str) -> ExactQuestion | None:
    text = text.strip(" ?.!")
    for tool, given, form in _forms():
        if found := form.fullmatch(text):
            named = {key: value for key, value in found.groupdict().items() if value}
            return ExactQuestion(tool, {**given, **named})
    return None


def exact_answer(box: Toolbox, asked: ExactQuestion, subjects: Sequence[str]) -> Cited:
    """All of it, counted, with places and a diagram. NOTHING where a name is neither defined here
    nor written as code; `subjects` are what "it" may mean, as written in code."""
    values = dict(asked.arguments)
    if asked.tool == "changes":  # in the order of the command
        values = {"end": "HEAD", **values}
        values = {key: values[key] for key in ("start", "end", "about") if key in values}
    for key, value in asked.arguments.items():
        if key == "kind" or (key == "of" and values.get("kind") != "subclasses"):
            continue
        value = value.removesuffix("()")
        if value.lower() in _POINTING:
            value = next(iter(subjects), "")
        values[key] = value
        # What is inherited from may be defined elsewhere.
        known = key == "of" or _CODE_LIKE.search(value) or definitions(box.tables(), value)
        if not (value and known) and asked.tool not in _OF_HISTORY:
            return NOTHING
    try:
        result = TOOLS[asked.tool].call(box, values)
        if result.unknown and not _CODE_LIKE.search(result.unknown):
            return NOTHING
        if not (result.total or result.unknown) and values.get("kind") == "call":
            anyhow = {key: value for key, value in values.items() if key != "kind"}
            used = TOOLS[asked.tool].call(box, anyhow)
            if used.total:  # as a decorator, or handed on
                result, values = used, anyhow
    except CodeQAError as error:
        # A word that is no path: "what changed in version two?"
        told = f"**{escape(error.message)}** {escape(error.hint)}"
        meant = values.get("path_or_name") or "".join(values.values())
        is_meant = _CODE_LIKE.search(meant) or (asked.tool == "changes" and re.search(r"\d", meant))
        return Cited(told) if is_meant or asked.tool not in _OF_HISTORY else NOTHING
    return _worded(result, asked.tool, values)


def _worded(result: ToolResult, tool: str, values: Mapping[str, str]) -> Cited:
    summary, written = result.summary, tuple(filter(None, values.values()))
    if not summary.startswith(written):  # which stay as they are written
        summary = summary[:1].upper() + summary[1:]
    said = Cited(f"**{escape(summary)}.** {_linked(result.completeness)}".strip(),
                 tuple(_cited_in(result.completeness)))  # fmt: skip
    if tool == "git_log" and result.commits:
        people = Counter(commit.author for commit in result.commits).most_common()
        by = ", ".join(f"{name} ({number:,})" for name, number in people[:AUTHORS])
        by += f" and {len(people) - AUTHORS:,} more" * (len(people) > AUTHORS)
        shown = f"{escape(f'By {by}.')} What one of them changed: `codeqa git-show <id>`."
        return together([said, Cited(shown), _commits(result)])
    left = result.total - sum(place.times for place in result.places[:ITEMS])
    rest = f"--skip {ITEMS}" if tool == "find_references" else "--json"
    command = " ".join([f"codeqa {tool.replace('_', '-')}", *_options(values), rest])
    listed = cited_list("", map(_item, result.places[:ITEMS]), left, f": {code_span(command)}")
    drawn = flowchart((edge.start, edge.end, edge.label) for edge in result.edges)
    names = {name for edge in result.edges for name in (edge.start, edge.end)}
    part = f"The first {MOST_NODES} of {len(names):,}, drawn:" if len(names) > MOST_NODES else ""
    diagram = "\n\n".join(filter(None, [part, code_block(drawn, "mermaid")])) if drawn else ""
    behind = [Cited("Commits behind the first of them, the newest first:"), _commits(result)]
    hunks = Cited(code_block(result.diff, "diff") if result.diff else "")
    return together([said, listed, Cited(diagram), *(behind if result.commits else ()), hunks])


def _commits(result: ToolResult) -> Cited:
    return together((
        Cited(f"- {code_span(one.id)} {one.date} {escape(f'{one.author}: {one.subject}')}")
        for one in result.commits
    ), "\n")  # fmt: skip


def _options(values: Mapping[str, str]) -> Iterator[str]:
    for key, value in values.items():
        yield f"--kind {value}" if key == "kind" and "name" in values else shlex.quote(value)


def _item(place: Place) -> Cited:
    is_site = place.kind in ("call", "use", "import", "inherits")
    name = f" {'in ' * is_site}{code_span(place.name)}" if place.name else ""
    note = f", {escape(place.note)}" if place.note else ""
    text = f": {code_span(place.text[:LONGEST_LINE])}" if place.text else ""
    if place.commit:  # other lines than those that a citation would open
        return Cited(f"- {code_span(f'{place.location} at {place.commit}')}{name}{note}{text}")
    lines = ShownLines(place.path, place.start_line, place.end_line, place.name)
    cited = cite(place.path, place.start_line, place.end_line)
    return Cited(f"- {cited}{name}{note}{text}", (lines,))


def _linked(text: str) -> str:
    """`text` as it stands, its citations alone as such."""
    parts, end = list[str](), 0
    for found in CITATION.finditer(text):
        parts += [escape(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*parts, escape(text[end:])])


def _cited_in(text: str) -> Iterator[ShownLines]:
    for path, start, end in CITATION.findall(text):
        yield ShownLines(path, int(start), int(end or start))
