"""Rules that find one kind of fact each in a sentence: who somebody is, and how they want it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codeqa.account.names import name_in, says_nothing
from codeqa.account.words import (
    ANSWERS,
    CODE_LANGUAGE,
    EDITORS,
    EXAMPLES,
    IMPERATIVE,
    LASTING,
    LONG,
    NATURAL,
    NATURAL_LANGUAGE,
    NOT,
    OWN_LANGUAGE,
    PREFER,
    ROLES,
    SHORT,
    SYSTEMS,
    TO_ME,
)

Fact = tuple[str, str]
"""Kind and value, not cleaned yet."""

_PHRASE = r"(?P<v>[^,;.!?()]{1,80}?)(?=\s+(?:and|but|so|because|und|et|y|e)\s|[,;.!?()]|$)"
_START = r"(?:^|(?<=[,;:.–-]\s)|(?<=\sand\s)|(?<=\sbut\s)|(?<=\sund\s))"
_AM = r"(?:i'm|i\s+am|ich\s+bin|(?<=und\s)bin|je\s+suis|soy|eu\s+sou|sou|sono|ik\s+ben)"

_ROLE = re.compile(
    rf"{_START}(?:{_AM}|i\s+work\s+as|ich\s+arbeite\s+als|je\s+travaille\s+comme|trabajo\s+como)\s+"
    rf"(?:(?:a|an|the|ein|eine|un|une|una|um|uma|een)\s+)?(?=(?:[\w/+#-]+\s+){{0,4}}(?:{ROLES})(?!\w))"
    rf"{_PHRASE}",
    re.IGNORECASE,
)
_TITLE = re.compile(
    rf"{_START}my\s+(?:role|job|job\s+title|position|profession)\s+is\s+(?:(?:a|an|the|that\s+of)\s+)?"
    rf"(?=(?:[\w/+#-]+\s+){{0,4}}(?:{ROLES})(?!\w)){_PHRASE}",
    re.IGNORECASE,
)
_CARES = re.compile(
    rf"{_START}i\s+(?P<verb>maintain|own|lead|manage|look\s+after|am\s+responsible\s+for)\s+"
    rf"(?P<w>(?:the|our|this)\s+[^,;.!?()]{{1,60}}?)(?=\s+(?:and|but|so)\s|[,;.!?()]|$)",
    re.IGNORECASE,
)
_TEAM = re.compile(
    r"\b(?:the|our|team)\s+(?P<v>(?:(?!team|from|the|to)[\w&/.-]+\s+){1,3}(?:team|squad|group|department))"
    r"(?=\s*(?:[,;.!)]|$|(?:and|but|so|now|since|last|this|today|as|at|here)\b))",
    re.IGNORECASE,
)
_IN_TEAM = re.compile(
    rf"{_START}(?:i\s+(?:work|moved|joined|switched|belong|lead|manage)|i've\s+(?:joined|moved)|"
    rf"i'm|i\s+am|my\s+team\s+is)\b(?!\s+(?:trying|looking|getting|seeing|asking|wondering))",
    re.IGNORECASE,
)
_EMPLOYER = re.compile(
    r"\bi\s+work\s+(?:at|for)\s+(?P<v>(?-i:[A-Z])[\w&.-]*(?:\s+(?-i:[A-Z])[\w&.-]*){0,3})",
    re.IGNORECASE,
)

_NEW_TO = re.compile(
    rf"{_START}(?:{_AM})\s+(?P<v>(?:(?:still|quite|very|fairly|completely|totally|rather|pretty|"
    rf"a|an|not|ganz|noch|relativ|tout|très)\s+){{0,3}}(?:(?:new|neu|nouveau|nouvelle|nuevo|nueva|novo|"
    rf"nova|nuovo|nuova|nieuw|fluent|good|experienced|proficient|comfortable|familiar|unfamiliar|"
    rf"beginner|beginer|newbie|novice|expert|experte|expertin|anfänger|anfängerin|débutante?|"
    rf"principiante|iniciante)(?!\w)(?:\s+(?:to|in|im|with|at|here|hier|on|mit|bei|en|avec|con|com|em|"
    rf"dans)\b[^,;.!?()]{{0,50}}?)?))(?=\s+(?:and|but|so|because|und|et|y|e)\s|[,;.!?()]|$)",
    re.IGNORECASE,
)
_KNOWS = re.compile(
    rf"{_START}(?P<v>i\s+(?:(?:do\s+not|don't|dont|only|also|already|mostly|barely|hardly)\s+)?"
    rf"(?:know|speak|learn|am\s+learning|program\s+in|code\s+in|write|teach|"
    rf"have\s+never\s+(?:used|written|seen))\s[^;.!?()]{{1,60}}|"
    rf"(?:i've|i\s+have)\s+(?:never\s+(?:used|written)|been\s+\w+ing)\s[^;.!?()]{{1,60}}|"
    rf"i'm\s+learning\s[^;.!?()]{{1,40}}|"
    rf"(?:i've|i\s+have)\s+(?:\w+\s+){{0,2}}(?:years?|decades?|months?)\s[^;.!?()]{{1,60}})",
    re.IGNORECASE,
)
_EDITOR = re.compile(
    rf"\bmy\s+(?:favou?rite\s+|preferred\s+|main\s+)?(?:text\s+)?(?:editor|ide)\s+is\s+{_PHRASE}|"
    rf"{_START}i\s+(?:use|prefer|code\s+in|work\s+(?:in|with)|edit\s+in)\s+(?P<w>{EDITORS})(?!\w)",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    rf"(?:\bi'm\s+on|\bi\s+am\s+on|\bi\s+(?:use|run|work\s+on))\s+(?P<v>{SYSTEMS})(?!\w)|"
    rf"\bmy\s+(?:os|operating\s+system)\s+is\s+(?P<w>[\w. -]{{1,40}})",
    re.IGNORECASE,
)
_TIME_ZONE = re.compile(
    r"\bmy\s+time\s*zone\s+is\s+(?P<v>[^,;!?()]{1,40}?)(?=[,;!?().]|$)|"
    r"\b(?:i'm|i\s+am)\s+in\s+(?P<w>(?:UTC|GMT)\s*[+-]?\d{0,2}(?::\d\d)?)",
    re.IGNORECASE,
)
_PRONOUNS = re.compile(r"\bmy\s+pronouns\s+are\s+(?P<v>[\w/ ]{1,30})", re.IGNORECASE)
_FAVOURITE = re.compile(
    r"^my\s+(?:favou?rite|preferred)\s+[\w-]+(?:\s+[\w-]+)?\s+(?:is|are)\s+(?!not\s|n't).{1,80}",
    re.IGNORECASE,
)
_DO_NOT_CALL = re.compile(
    r"(?:please\s+)?(?:don'?t|do\s+not|stop)\s+call(?:ing)?\s+me\s+(?P<v>.{1,40})", re.IGNORECASE
)
_HABIT = re.compile(
    r"(?:i'd|i\s+would|i)\s+(?:always\s+|really\s+|rather\s+)?(?:like|prefer|want|love|need)\s",
    re.IGNORECASE,
)


def facts_of(sentence: str, lasting: bool) -> Iterator[Fact]:
    """Facts that a sentence without its introduction states; `lasting` when that said so."""
    lasting = lasting or bool(LASTING.search(sentence))
    if name := name_in(sentence):
        yield "name", name
    for find in (_work, _knowledge, _tools):
        yield from find(sentence)
    yield from wishes_of(sentence, lasting)


def _work(sentence: str) -> Iterator[Fact]:
    for pattern in (_ROLE, _TITLE):
        if found := pattern.search(sentence):
            yield "role", found["v"]
            break
    else:
        if found := _CARES.search(sentence):
            verb = {"am responsible for": "is responsible for", "look after": "looks after"}
            said = " ".join(found["verb"].lower().split())
            yield "role", f"{verb.get(said, said + 's')} {found['w']}"
    if _IN_TEAM.search(sentence) and (teams := list(_TEAM.finditer(sentence))):
        yield "team", teams[-1]["v"]
    if found := _EMPLOYER.search(sentence):
        yield "employer", found["v"]


def _knowledge(sentence: str) -> Iterator[Fact]:
    if found := _NEW_TO.search(sentence):
        yield "experience", found["v"]
    found = _KNOWS.search(sentence)
    if found and CODE_LANGUAGE.search(found["v"]) and not PREFER.search(found["v"]):
        yield "experience", found["v"]


def _tools(sentence: str) -> Iterator[Fact]:
    for kind, pattern in (("editor", _EDITOR), ("system", _SYSTEM), ("timezone", _TIME_ZONE)):
        if found := pattern.search(sentence):
            value = found["v"] or found["w"]
            if not says_nothing(value):  # "my editor is broken"
                yield kind, value
    if found := _PRONOUNS.search(sentence):
        yield "pronouns", found["v"]
    if _FAVOURITE.match(sentence) and not (
        _EDITOR.search(sentence) or OWN_LANGUAGE.search(sentence)
    ):
        yield "fact", sentence


def wishes_of(sentence: str, lasting: bool) -> Iterator[Fact]:
    """How somebody wants to be answered; for one answer alone (not `lasting`) it is no fact."""
    if found := _DO_NOT_CALL.match(sentence):
        yield "address", f"not {found['v']}"
        return
    answers, prefers = bool(ANSWERS.search(sentence)), bool(PREFER.search(sentence))
    own = OWN_LANGUAGE.search(sentence)
    language = NATURAL_LANGUAGE.search(sentence)
    if language and (own or (answers and (lasting or prefers))):
        yield "language", NATURAL[language[0].lower()]
        return
    code = CODE_LANGUAGE.search(sentence)
    examples = bool(EXAMPLES.search(sentence))
    if code and (own or (examples and (lasting or prefers))):
        yield "code language", code[0]
        return
    length = _length(sentence) if lasting or prefers or NOT.search(sentence) else ""
    if length and (answers or (lasting and IMPERATIVE.match(sentence))):
        yield "verbosity", length
        return
    begun = LASTING.match(sentence)
    told = sentence[begun.end() :].lstrip(" ,:") if begun else sentence
    wish = _HABIT.match(told) and (lasting or answers or examples)
    ordered = IMPERATIVE.match(told) or IMPERATIVE.match(sentence)
    about_answers = answers or examples or TO_ME.search(sentence)
    if wish or (lasting and ordered and about_answers):
        yield "format", sentence


def _length(sentence: str) -> str:
    short, long, negated = (bool(p.search(sentence)) for p in (SHORT, LONG, NOT))
    if short == long:
        return ""
    return "short" if short != negated else "detailed"
