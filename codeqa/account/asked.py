"""How people ask for a fact about themselves, and how they ask that one is forgotten."""

from __future__ import annotations

import re

NOUNS = {
    "name": "name", "nickname": "name", "role": "role", "job": "role", "profession": "role",
    "job title": "role", "team": "team", "employer": "employer", "company": "employer",
    "editor": "editor", "ide": "editor", "favourite editor": "editor", "favorite editor": "editor",
    "time zone": "timezone", "timezone": "timezone", "operating system": "system", "os": "system",
    "pronouns": "pronouns", "language": "language", "preferred language": "language",
    "answer language": "language", "experience": "experience", "preferences": "format",
    "namen": "name", "nom": "name", "prénom": "name", "nombre": "name", "nome": "name",
    "naam": "name",
}  # fmt: skip
_NOUN = "|".join(sorted(NOUNS, key=len, reverse=True))
FORGET = re.compile(
    r"(?:can\s+you\s+|could\s+you\s+|please\s+|bitte\s+|i\s+want\s+you\s+to\s+|you\s+can\s+)*"
    r"(?:forget|unremember|delete|remove|erase|drop|vergiss|lösche?|oublie|supprime|olvida|borra|"
    r"esquece|esqueça|apaga|dimentica|cancella|vergeet)\s+(?:bitte\s+|about\s+)?(?:"
    rf"(?:my|meinen?|mon|ma|mi|o\s+meu|meu|il\s+mio|mijn)\s+(?P<noun>{_NOUN})(?:\s+(?:again|please))?"
    r"|(?:that|dass|que|che|dat)\s+(?P<clause>(?:i|i'm|i've|my|we|ich|je|mi|me)\b.+))\s*[.!]*$",
    re.IGNORECASE,
)

_KNOW = (
    r"(?:what(?:'s|\s+is|\s+was|\s+are)?|which|who|tell\s+me|say|(?:do|can|did)\s+you\s+(?:still\s+)?"
    r"(?:know|remember|recall)|you\s+know|remember|remind\s+me|how)"
)


def _asking(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


ASKED = tuple(
    (kind, _asking(pattern))
    for kind, pattern in (
        (
            "*",
            r"who\s+am\s+i|wer\s+bin\s+ich|qui\s+suis[- ]je|quién\s+soy|chi\s+sono\s+io|quem\s+sou|"
            r"what\s+do\s+you\s+(?:know|remember|have)\s+(?:\w+\s+)?about\s+me|"
            r"what\s+(?:have|did)\s+i\s+(?:told|tell)\s+you\s+about\s+(?:me|myself)",
        ),
        (
            "name",
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+(?:first\s+|full\s+)?name(?=\W*$|\s+(?:is|again|was))|"
            r"^my\s+name\s*\?|what\s+(?:do|will|should)\s+you\s+call\s+me|what\s+am\s+i\s+called|"
            r"wie\s+(?:heiße|heisse)\s+ich|wie\s+ist\s+mein\s+name|(?:kennst|weißt)\s+du\s+(?:noch\s+)?"
            r"(?:meinen\s+namen|wie\s+ich\s+heiße)|comment\s+(?:est-ce\s+que\s+)?(?:je\s+m'appelle|"
            r"m'appelle[- ]je)|quel\s+est\s+mon\s+(?:pré)?nom|cómo\s+me\s+llamo|como\s+me\s+llamo|"
            r"cuál\s+es\s+mi\s+nombre|come\s+mi\s+chiamo|qual\s+[ée]\s+(?:o\s+)?(?:meu|il\s+mio)\s+nome|"
            r"como\s+(?:eu\s+)?me\s+chamo|hoe\s+heet\s+ik|как\s+меня\s+зовут|jak\s+mam\s+na\s+imię",
        ),
        (
            "experience",
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}languages?\s+(?:that\s+)?(?:do\s+)?i\s+(?:know|can|speak|am)|"
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+(?:\w+\s+)?experience|how\s+experienced\s+am\s+i|"
            r"what\s+do\s+i\s+know|am\s+i\s+(?:new\s+to|a\s+beginner|experienced)",
        ),
        (
            "language",
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}(?:language|my\s+(?:\w+\s+)?language)(?:\s+(?:do|did)\s+i\s+"
            r"(?:prefer|want|like|choose)|\W*$|\s+is)|(?:which|what)\s+language\s+(?:do|should|will)\s+you"
            r"\s+(?:answer|reply|use)|what\s+(?:programming\s+)?language\s+do\s+i\s+(?:prefer|like)",
        ),
        (
            "editor",
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}(?:my\s+(?:\w+\s+)?(?:editor|ide)|(?:editor|ide)\s+(?:that\s+)?"
            r"(?:do\s+)?i\s+(?:use|prefer|like))",
        ),
        (
            "role",
            r"what\s+do\s+i\s+do(?:\s+for\s+(?:a\s+living|work))?\W*$|what\s+am\s+i\W*$|"
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+(?:job|role|position|profession)",
        ),
        ("team", rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+team|(?:which|what)\s+team\s+(?:am|do)\s+i"),
        ("employer", r"(?:where|who)\s+do\s+i\s+work(?:\s+for)?\W*$"),
        ("timezone", rf"{_KNOW}\s+(?:\w+\s+){{0,2}}(?:my\s+time\s*zone|time\s*zone\s+am\s+i)"),
        (
            "system",
            rf"{_KNOW}\s+(?:\w+\s+){{0,2}}(?:my\s+(?:os|operating\s+system)|(?:os|operating\s+system|"
            r"system)\s+(?:do\s+i|am\s+i|i))",
        ),
        ("pronouns", rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+pronouns"),
        (
            "verbosity",
            r"how\s+(?:long|short|detailed|brief)\s+(?:do|should|will)\s+(?:i|you|my|your)\s"
            r".{0,30}answers?",
        ),
        ("fact", rf"{_KNOW}\s+(?:\w+\s+){{0,2}}my\s+(?:favou?rite|preferred)\s+\w+"),
    )
)  # fmt: skip
