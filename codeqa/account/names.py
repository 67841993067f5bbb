"""The name that somebody gives themselves, and what only looks like one."""

from __future__ import annotations

import re

from codeqa.account.words import CODE_LANGUAGE, ROLES, words

NAME_CHARACTERS = 60
NAME_WORDS = 5

_CALLED = re.compile(
    r"(?:(?:^|[\s,;.:–-])(?:my\s+(?:first\s+|full\s+|real\s+)?name\s*(?:is|'s)|mein\s+name\s+ist|"
    r"ich\s+hei(?:ß|ss)e|je\s+m'appelle|mon\s+(?:pré)?nom\s+est|me\s+llamo|mi\s+nombre\s+es|"
    r"mi\s+chiamo|il\s+mio\s+nome\s+è|meu\s+nome\s+é|(?:eu\s+)?me\s+chamo|chamo-me|ik\s+heet|"
    r"mijn\s+naam\s+is|jag\s+heter|mam\s+na\s+imię|nazywam\s+się|меня\s+зовут|мене\s+звати|"
    r"benim\s+adım|jmenuji\s+se|nimeni\s+on|nevem)\s*[:,]?\s+)(?P<name>.+)",
    re.IGNORECASE,
)
_CALLED_EAST = re.compile(
    r"(?:我叫|我的名字(?:是|叫)|私の名前は|제\s*이름은)\s*(?P<name>[^\s,，.。!！?？、]{1,30}?)\s*"
    r"(?:です|だ|입니다|이에요|예요)?(?=$|[\s,，.。!！、])"
)
_CALL_ME = re.compile(
    r"(?:(?:you\s+(?:can|may|should)|just|rather|better|please|everybody\s+)\s*)*(?:call\s+me|"
    r"nenn(?:e)?\s+mich|appelle[sz]?[- ]moi|llámame|chiamami|(?:me\s+)?chame-me|me\s+chame\s+de|"
    r"noem\s+me|зови\s+меня)\s+(?P<name>.+)",
    re.IGNORECASE,
)
_I_AM = re.compile(r"(?i:i'm|i\s+am|ich\s+bin(?:\s+(?:der|die))?|je\s+suis|soy|sou|sono|ik\s+ben)"
                   r"\s+(?P<name>[A-ZÀ-ÖØ-ÞА-Я].*)")  # fmt: skip
_CORRECTED = re.compile(
    r"(?:my\s+name\s*(?:is\s+not|isn't|isnt|'s\s+not)|i'm\s+not|i\s+am\s+not|not|ich\s+hei(?:ß|ss)e"
    r"\s+nicht|je\s+ne\s+m'appelle\s+pas|no\s+me\s+llamo)\s+[\w'’.-]+(?:\s+[\w'’.-]+)?\s*[,;.–-]+\s*"
    r"(?:but\s+|rather\s+|sondern\s+|mais\s+|sino\s+)?(?:it's|it\s+is|its|i'm|i\s+am|"
    r"my\s+name\s+is|call\s+me|ich\s+hei(?:ß|ss)e|je\s+m'appelle|me\s+llamo)?\s*(?P<name>.+)",
    re.IGNORECASE,
)
_NAME_ENDS = re.compile(
    r"\s*(?:[,;!()–—:/\n]|\.(?!\s?[A-Z])|\s-\s|\s(?:and|but|or|from|here|by\s+the\s+way|btw|please|now|instead|"
    r"from\s+now|in\s+future|not|which|who|so|because|und|aber|bitte|ab|et|mais|y|pero|e|ma|mas|en|"
    r"maar|и)\s|\s(?:here|now|please|instead|bitte|btw)$)"
)
_NAME_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’‐-](?=[^\W\d_])|\u0301)*\.?")
_NO_NAME = frozenset(
    words(
        "a an the in on at of to for with by as is are was not no too so very also just only still "
        "being been it its this that these those there here what when if why how where who which "
        "mangled missing wrong hardcoded stored shown printed displayed logged truncated cut empty "
        "null none undefined nil nan true false escaped required taken used parsed ignored changed "
        "duplicated misspelled misspelt rejected invalid visible blank gone unknown overwritten "
        "saved lost garbled broken incorrect long short longer shorter optional private public "
        "set unset read written passed sent hidden replaced removed deleted masked encoded "
        "different correct right fine ok okay good bad sorry sure done ready back later maybe "
        "today tomorrow again afraid aware lost stuck confused curious new using trying looking "
        "working having getting going doing asking testing writing reading wondering from able "
        "interested happy glad tired bored busy worried your my you me i we they he she und oder "
        "der die das ein eine neu im bei von mit le la les un une dans de du el los en con por "
        "crazy anything everything names stupid back buddy"
    ).split("|")
)
_PARTICLES = frozenset(
    words(
        "van von de der den del della di da du la le al el bin ibn ben ter y dos das mc st"
    ).split("|")
)
_NO_PERSON = re.compile(
    r"(?:english|american|british|german|french|spanish|italian|dutch|polish|russian|chinese|"
    r"japanese|korean|indian|swedish|turkish|portuguese|brazilian|canadian|australian|mexican|"
    r"windows|linux|macos|ubuntu|debian|vim|emacs|yes|cto|ceo|sre|dba|qa)$",
    re.IGNORECASE,
)


def name_in(sentence: str) -> str:
    """The name that somebody gives themselves, '' for none."""
    for pattern in (_CORRECTED, _CALLED, _CALLED_EAST):
        found = pattern.search(sentence) if pattern is not _CORRECTED else pattern.match(sentence)
        if found and (name := _name(found["name"], sure=pattern is not _CORRECTED)):
            return name
    if found := _CALL_ME.match(sentence):
        return _name(found["name"], sure=False)
    if found := _I_AM.match(sentence):
        return _name(found["name"], sure=False, person=True)
    return ""


def says_nothing(value: str) -> bool:
    """Whether `value` only says how something is, as in "my name is missing"."""
    return value.split()[0].lower() in _NO_NAME if value.split() else True


def _name(text: str, *, sure: bool, person: bool = False) -> str:
    """The name at the beginning of `text`; where it is not `sure` that one stands there it must
    be written like one, or be all that there is."""
    given = _NAME_ENDS.split(text.strip(" \"'“”‘’«»*"), maxsplit=1)[0].strip(" \"'“”‘’«»*?")
    parts = given.split()
    if not 1 <= len(parts) <= NAME_WORDS or len(given) > NAME_CHARACTERS:
        return ""
    if not all(_NAME_WORD.fullmatch(part) for part in parts):
        return ""
    if any(part.lower() in _NO_NAME for part in parts[:1]):
        return ""
    lowered = [part for part in parts if part[0].islower() and part.lower() not in _PARTICLES]
    if any(part in _NO_NAME for part in lowered):
        return ""
    if (person or not sure) and lowered and not (len(parts) == 1 and not person):
        return ""
    if lowered and len(parts) > 3:
        return ""
    if person and (_NO_PERSON.match(given) or CODE_LANGUAGE.match(given) or _is_role(given)):
        return ""
    return given


def _is_role(text: str) -> bool:
    return re.search(rf"(?<!\w)(?:{ROLES})(?!\w)", text, re.IGNORECASE) is not None
