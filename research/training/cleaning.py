"""What makes a sentence of a comment a query worth training on; each rule is one function.

The limits (3–60 words, ASCII, 78 % letters, names of three words) are those of the recipe
that README.md describes; the rest is what reading mined rows showed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from codeqa.text.tokens import split_identifier

MIN_WORDS, MAX_WORDS = 3, 60
MIN_LETTERS = 0.78
"""Share of the characters other than blanks that are letters."""
MIN_NAME_WORDS = 3

_TYPOGRAPHIC = str.maketrans(
    {
        "‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\u00a0": " ",
        "‐": "-", "‑": "-", "→": "->", "•": "*", "\u200b": "",
    }
)  # fmt: skip
_LINK_TAG = re.compile(
    r"\{@link(?:plain)?\s+(?:[^\s{}()]*#)?([^\s{}()]*)(?:\([^(){}]*\))?(?:\s+([^{}]*?))?\s*\}"
)
"""Its last part and, when there is one, its label."""
_CODE_TAG = re.compile(r"\{@(?:code|value|literal)\s+([^{}]*)\}")
_XML_REFERENCE = re.compile(r'<\w+\s+(?:cref|langword|name|href)="(?:\w:)?([^"]*)"\s*/>')
_HTML = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]*)?/?>")
_ROLE = re.compile(r":[\w+:]+:`~?!?([^`<]*?)(?:\s*<[^`]*>)?`")
_MARKDOWN_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()\s]*\)|\[[^\[\]]*\])?")
_COMMAND = re.compile(
    r"[@\\](?:brief|short|summary|desc|description|details|internal|fn|method|function|memberof"
    r"|since|ingroup|name|private|public|api|async|static|c|p|a|em|ref|b|e)\b(?!\()\s*",
    re.I,
)
_CALL = re.compile(r"(\w)\(\)")
_EMPHASIS = re.compile(r"(?<!\w)[*_]{1,2}([\w][^*_]*?)[*_]{1,2}(?!\w)")
_BLANKS = re.compile(r"\s+")


def plain(text: str) -> str:
    """Prose without the markup of comments: links, tags, roles, backticks, emphasis."""
    text = text.translate(_TYPOGRAPHIC)
    text = _LINK_TAG.sub(lambda link: link[2] or link[1], text)
    text = _CODE_TAG.sub(r"\1", text)
    text = _XML_REFERENCE.sub(r"\1", text)
    text = _HTML.sub(" ", text)
    text = _ROLE.sub(r"\1", text)
    text = _MARKDOWN_LINK.sub(r"\1", text)
    text = _COMMAND.sub("", text)
    text = text.replace("`", "")
    text = _CALL.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\1", text)
    return _BLANKS.sub(" ", text).strip()


# --- where the first sentence ends ------------------------------------------------------------

_SENTENCE_END = re.compile(r"[.!?](?=[\"')\]]*(?:\s+(?:[A-Z(\[{<`\"'@\\:]|\d)|\s*$))|[.!?](?=\s*<)")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|viz|approx|resp|incl|no|fig|st)|\b[A-Z])$")
_BLOCK_START = re.compile(
    r"\n(?:\s*\n|\s*(?:[@\\](?!brief|link|code\b|c\b|p\b|a\b|ref)\w+|:\w[\w ]*:|[-*+#>|=]{1,3}\s"
    r"|\d+[.)]\s|```|\.\.\s|={3,}|-{3,}|~{3,}"
    r"|(?:args|arguments|returns?|raises?|parameters?|params?|yields?|notes?|examples?|usage"
    r"|throws|see also|todo|input|output|inputs|outputs|attributes)\s*:|<p>|</?\w+>\s*$))",
    re.I,
)
_TAG_FIRST = re.compile(
    r"\s*(?:[@\\](?!brief|short|summary|desc|internal|fn|since|ingroup|code|link)\w+"
    r"|:\w[\w ]*:(?!`)"
    r"|(?:args|arguments|returns?|raises?|parameters?|params?)\s*:\s*$)",
    re.I | re.M,
)


def first_sentence(comment: str) -> tuple[str, str]:
    """The first sentence of a comment as written, and what stands behind it.

    ("", comment) when the comment opens with a tag (`@param`, `:param x:`, `Args:`).
    """
    text = comment.strip()
    if _TAG_FIRST.match(text):
        return "", comment
    block = _BLOCK_START.search(text)
    limit = block.start() if block else len(text)
    for match in _SENTENCE_END.finditer(text, 0, limit):
        if not _ABBREVIATION.search(text, max(0, match.start() - 8), match.start()):
            return text[: match.end()], text[match.end() :].strip()
    return text[:limit], text[limit:].strip()


_SPOKEN_LABEL = re.compile(
    r"^(?:public|internal|private|protected|optional|required|summary):\s+", re.I
)
"""Labels that documentation tools read (TomDoc and others)."""
_AFTER_NAME = re.compile(r"^(?:\(\))?\s*(?:[:,–—-]+\s*)?")


def without_name(sentence: str, *names: str) -> str:
    """`ServeHTTP handles requests` → `handles requests`, when the name stands at the front."""
    for name in names:
        if not name or not sentence.lower().startswith(name.lower()):
            continue
        rest = sentence[len(name) :]
        if rest[:1].isalnum() or rest[:1] == "_":
            continue
        return _AFTER_NAME.sub("", rest, count=1).strip()
    return sentence


# --- what is refused --------------------------------------------------------------------------

_NOTICE = re.compile(
    r"copyright|licen[sc]e[ds]?\b|\bSPDX\b|all rights reserved|warranty|permission is hereby"
    r"|\beslint|\bpylint|\bnolint|\bnoqa\b|\brubocop|\bphpcs|\btslint|\bjshint|\bprettier"
    r"|\bclang-format|\bclippy|suppress ?warnings|checkstyle|ts-(?:ignore|expect)",
    re.I,
)
_DEPRECATION = re.compile(r"\bdeprecat|\bobsolete\b|no longer (?:used|supported|needed)", re.I)
_CODE = re.compile(
    r"[{};|\\]|==|=>|->|::|&&|<-|<<|>>|!=|\+=|:=|\$\w|\w\(\w|\w\[\w|\]\(|@\w|https?:|www\.|</"
    r"|\w=\S|\S=\w|\w/\w+/\w|\w+\.\w+\.\w+\.\w|%[sdv]\b|0x[0-9a-f]|\+-|--\w|^#|\*\*|\w_\w+_\w+_\w"
)
_EMPTY_TALK = re.compile(
    r"automatically generated|auto-?generated|classmap-authoritative"
    r"|^(?:see\b|refer to\b|todo\b|fixme\b|xxx\b|hack\b|note\b|\(?non-javadoc|inherit(?:ed)?doc"
    r"|@?inheritdoc|generated (?:by|from|method)|method"
    r" description|description of|constructor(?: for| of)?\b.{0,40}$|default constructor"
    r"|creates? a new instance of \w+ ?\.?$|initiali[sz]es a new instance of"
    r"|gets? or sets? (?:the|a|an)? ?\w+\.?$|same as\b|alias (?:for|of|to)\b|ditto\b|used by\b"
    r"|implements? (?:the )?\w+(?:\.\w+)*(?: (?:interface|method|trait))?\.?$|overrides?\b"
    r"|this (?:file|class|method|function) (?:is|was) (?:auto|generated)|end of\b|begin of\b)",
    re.I,
)
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def wrong_length(sentence: str) -> bool:
    """Fewer than 3 or more than 60 words."""
    return not MIN_WORDS <= len(_WORD.findall(sentence)) <= MAX_WORDS


def not_ascii(sentence: str) -> bool:
    """Other letters than English has: most often another language."""
    return not sentence.isascii()


def few_letters(sentence: str) -> bool:
    """Less than 78 % letters: formulas, tables, rulers, commented-out code."""
    filled = [character for character in sentence if not character.isspace()]
    letters = sum(1 for character in filled if character.isalpha())
    return letters < MIN_LETTERS * len(filled)


def is_code(sentence: str) -> bool:
    """Code, an address or a path rather than words."""
    return bool(_CODE.search(sentence))


def is_notice(sentence: str) -> bool:
    """About rights, or spoken to a linter."""
    return bool(_NOTICE.search(sentence))


def is_deprecation(sentence: str) -> bool:
    """Says that the thing is not to be used, not what it does."""
    return bool(_DEPRECATION.search(sentence))


def says_nothing(sentence: str) -> bool:
    """`See X`, `{@inheritDoc}`, `Default constructor.`: no description of this code."""
    return bool(_EMPTY_TALK.search(sentence.lstrip("{@( ")))


RULES: tuple[Callable[[str], bool], ...] = (
    wrong_length,
    not_ascii,
    few_letters,
    is_code,
    is_notice,
    is_deprecation,
    says_nothing,
)


def refusal(sentence: str) -> str:
    """Name of the first rule that refuses a cleaned sentence; '' when it may be a query."""
    return next((rule.__name__ for rule in RULES if rule(sentence)), "")


def query_of(comment: str, *names: str) -> tuple[str, str, str]:
    """(query, rest of the comment, '') of a doc comment, or ("", comment, name of the rule).

    `names` are the definition's own, longest first; the query does not begin with them.
    """
    sentence, rest = first_sentence(comment)
    spoken = _SPOKEN_LABEL.sub("", plain(sentence))
    query = without_name(spoken, *names).rstrip(" .:;,-")
    reason = refusal(query)
    return ("", comment, reason) if reason else (query, rest, "")


# --- names and headings -----------------------------------------------------------------------

_TEST_WORDS = frozenset({"test", "tests", "should"})


def name_query(name: str) -> str:
    """The words of a name, when there are three or more that read as words; else ''."""
    words = split_identifier(name)
    spoken = [word for word in words if len(word) > 1 and word.isalpha() and word.isascii()]
    return " ".join(words) if len(spoken) >= MIN_NAME_WORDS else ""


def test_query(name: str) -> str:
    """What a test's name says is tested, without `test`; '' when it says too little."""
    words = split_identifier(name)
    while words and words[0] in _TEST_WORDS:
        words = words[1:]
    while words and words[-1] in _TEST_WORDS:
        words = words[:-1]
    spoken = [word for word in words if len(word) > 1 and word.isalpha() and word.isascii()]
    return " ".join(words) if len(spoken) >= MIN_NAME_WORDS else ""


_HEADING_NUMBER = re.compile(r"^(?:\d+[.)]\s*)+|^[#*\s]+")
_VERSION = re.compile(r"\bv?\d+\.\d+|\b(?:19|20)\d\d-\d\d|\bunreleased\b|\bchangelog\b", re.I)

_USUAL_HEADING = re.compile(
    r"table of contents|(?:how to )?contribut\w*|report(?:ing)? (?:a |security )?(?:bug|issue|vuln)"
    r"|code of conduct|security policy|getting (?:help|started)|breaking changes|bug fixes"
    r"|what'?s (?:new|changed)|(?:supported|new) (?:versions|features)|pull requests?\b"
    r"|describe your|join (?:the|our)|frequently asked",
    re.I,
)


def heading_query(heading: str) -> str:
    """A heading of three words or more as a query; '' for versions, dates and code."""
    text = _HEADING_NUMBER.sub("", plain(heading)).rstrip(" .:?!")
    return "" if _VERSION.search(text) or _USUAL_HEADING.match(text) or refusal(text) else text
