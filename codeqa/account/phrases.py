"""The phrases in which people speak of themselves and of how they want to be answered.

English; names and the languages of answers also in the commonest forms of others. Everything is
matched against one sentence at a time, of bounded length.
"""

from __future__ import annotations

import re

from codeqa.text.tokens import word_set


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)


# Languages, by how they are named

_NATURAL = {
    "Arabic": "arabic", "Chinese": "chinese chinesisch 中文", "Czech": "czech", "Danish": "danish",
    "Dutch": "dutch nederlands niederländisch",
    "English": "english englisch anglais inglés inglês inglese",
    "French": "french französisch français francés francese francês",
    "German": "german deutsch allemand alemán tedesco alemão", "Greek": "greek", "Hindi": "hindi",
    "Italian": "italian italienisch italien italiano", "Japanese": "japanese 日本語",
    "Korean": "korean 한국어", "Norwegian": "norwegian", "Polish": "polish polnisch",
    "Portuguese": "portuguese portugiesisch portugais português", "Russian": "russian русском",
    "Spanish": "spanish spanisch espagnol español spagnolo espanhol", "Swedish": "swedish",
    "Turkish": "turkish", "Ukrainian": "ukrainian",
}  # fmt: skip
LANGUAGES = {word: name for name, forms in _NATURAL.items() for word in forms.split()}
NATURAL_LANGUAGE = re.compile(
    "|".join(
        word if ord(word[0]) > 0x2E7F else rf"(?<!\w){word}(?!\w)"
        for word in sorted(LANGUAGES, key=len, reverse=True)
    ),
    re.IGNORECASE,
)

# Names

CALLED = re.compile(
    r"(?:^|[\s,;.:–-])(?:my\s+(?:first\s+|full\s+|real\s+)?name\s*(?:is|'s)|mein\s+name\s+ist|"
    r"ich\s+hei(?:ß|ss)e|je\s+m'appelle|mon\s+(?:pré)?nom\s+est|me\s+llamo|mi\s+nombre\s+es|"
    r"mi\s+chiamo|meu\s+nome\s+é|me\s+chamo|ik\s+heet|меня\s+зовут)\s*[:,]?\s+(?P<name>.+)",
    re.IGNORECASE,
)
CALLED_EAST = re.compile(
    r"(?:我叫|我的名字(?:是|叫)|私の名前は)\s*(?P<name>[^\s,，.。!！?？、]{1,30}?)\s*"
    r"(?:です|だ)?(?=$|[\s,，.。!！、])"
)
CALL_ME = re.compile(
    r"^(?:(?:you\s+(?:can|may|should)|just|rather|please)\s*)*(?:call\s+me|nenn(?:e)?\s+mich|"
    r"appelle[sz]?[- ]moi|llámame|chiamami)\s+(?P<name>.+)",
    re.IGNORECASE,
)
I_AM = re.compile(r"^(?i:i'?m|i\s+am|ich\s+bin|je\s+suis|soy|sou|sono)\s+(?P<name>[A-ZÀ-ÞА-Я].*)")
CORRECTED = re.compile(
    r"^(?:my\s+name\s*(?:is\s+not|isn'?t)|i'?m\s+not|i\s+am\s+not|not|ich\s+hei(?:ß|ss)e\s+nicht)\s+"
    r"[\w'’.-]+(?:\s+[\w'’.-]+)?\s*[,;.–-]+\s*(?:but\s+|rather\s+|sondern\s+)?"
    r"(?:it's|it\s+is|i'm|i\s+am|my\s+name\s+is|call\s+me)?\s*(?P<name>.+)",
    re.IGNORECASE,
)
NAMED = ((CORRECTED, 1), (CALLED, 3), (CALLED_EAST, 3), (CALL_ME, 1), (I_AM, 0))
"""How a name is told, and how many words it may have where one begins with a small letter."""
NAME_ENDS = re.compile(
    r"\s*(?:[,;!()–—:/\n]|\.(?!\s?[A-Z])|\s-\s|\s(?:and|but|or|from|here|by\s+the\s+way|btw|please|"
    r"now|instead|in\s+future|not|which|who|so|because|und|aber|bitte|ab|et|mais|y|pero|e|ma)\s|"
    r"\s(?:here|now|please|instead|bitte|btw)$)"
)
NAME_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’‐-](?=[^\W\d_])|\u0301)*\.?")
NO_NAME = word_set(
    """a an the in on at of to for with by as is are was not no too so very also just only still
    being been it its this that these those there here what when if why how where who which mangled
    missing wrong hardcoded stored shown printed displayed logged truncated cut empty null none
    undefined nil true false escaped required taken used parsed ignored changed duplicated rejected
    invalid visible blank gone unknown overwritten saved lost garbled broken incorrect long short
    optional private public set unset read written passed sent hidden replaced removed masked
    encoded different correct right fine ok okay good bad sorry sure done ready back later maybe
    today tomorrow again afraid aware stuck confused curious new using trying looking working having
    getting going doing asking testing writing reading wondering from able interested happy glad
    tired bored busy worried your my you me i we they he she und oder der die das ein eine neu im
    bei von le la les un une dans de el los en con por crazy anything everything names stupid buddy
    opening"""
)
PARTICLES = word_set("""van von de der den del della di da la le al el bin ibn ben ter dos""")
NO_PERSON = _words(
    "english|american|british|german|french|spanish|italian|dutch|polish|russian|chinese|japanese|"
    "korean|indian|swedish|turkish|portuguese|brazilian|canadian|australian|mexican|windows|linux|"
    "macos|ubuntu|debian|vim|emacs|yes|cto|ceo|sre|dba|qa|"
    r"(?:[\w-]+\s+){0,3}(?:developer|engineer|programmer|student|intern|tester|designer|manager|"
    "architect|entwickler|entwicklerin)"
)
"""What people say that they are and that is no name."""

# Wishes as to the answers

LASTING = _words(
    r"always|never|ever|from\s+now\s+on|in\s+(?:the\s+)?future|every\s+time|whenever|by\s+default|"
    r"permanently|forever|going\s+forward|immer|künftig|in\s+zukunft|ab\s+(?:jetzt|sofort)|"
    r"toujours|désormais|siempre|de\s+ahora\s+en\s+adelante|sempre|d'ora\s+in\s+poi|altijd"
)
"""From now on, not for one answer."""
REMEMBER = re.compile(
    r"(?:(?:can|could)\s+you\s+)?(?:please\s+|pls\s+|bitte\s+)?(?:re?me?m?ber|note|keep\s+in\s+mind|"
    r"don'?t\s+forget|for\s+the\s+record|fyi|know|make\s+a\s+note|merk(?:e)?\s+dir|retiens|"
    r"recuerda|lembre(?:-se)?|lembra|ricorda(?:ti)?)(?:\s+(?:bitte|please))?\s*[,:]?\s*"
    r"(?:(?:that|dass|que|qu'|che)\s*)?,?\s*",
    re.IGNORECASE,
)
"""At the beginning of a sentence: what follows is to be kept."""
FIRST_PERSON = _words(
    r"i|i'?m|i'?ve|i'd|my|we|our|me|ich|mein\w*|mir|je|j'\S+|mon|ma|yo|mi|mis|prefiero|eu|meu|minha|"
    r"prefiro|io|preferisco"
)
ANSWERS = _words(
    r"answer\w*|repl(?:y|ies|ying)|respon(?:d|se|ses|ding)|explain\w*|explanations?|talk|speak|write|"
    r"antwort\w*|erklär\w*|sprich|répon\w+|respuestas?|respond\w+|respost\w+|rispost\w+|rispondi\w*"
)
PREFER = _words(
    r"prefer|like|love|want|need|would\s+rather|bevorzuge|mag|möchte|préfère|aime|prefiero|quiero|"
    r"prefiro|gosto|preferisco|vorrei"
)
OWN_LANGUAGE = _words(
    r"(?:set|change|switch)\s+(?:my|the)\s+(?:\w+\s+){0,2}language\s+to|"
    r"my\s+(?:preferred|favou?rite|main|usual|native)\s+(?:\w+\s+)?language\s+(?:is|now\s+is)"
)
NOT = _words(r"no|not|don'?t|do\s+not|never|without|hate|nicht|keine?n?|pas|jamais|sin|sem|non")
SHORT = _words(
    r"short(?:er)?|brief|concise|terse|succinct|compact|to\s+the\s+point|kurz\w*|knapp\w*|"
    r"court(?:e?s)?|cort[ao]s?|breves?|brevi"
)
LONG = _words(
    r"long(?:er)?|lengthy|detailed|thorough|in[- ]depth|verbose|elaborate|ausführlich\w*|lange|"
    r"détaillée?s?|detallad[ao]s?|larg[ao]s?|dettagliat[aei]"
)
ORDER = re.compile(
    r"(?:please\s+)?(?:(?:always|never|don'?t|do\s+not)\s+)?(?:show|give|include|use|explain|add|answer|"
    r"reply|respond|write|put|start|begin|end|mention|cite|quote|skip|omit|leave|assume|avoid|stop|be|"
    r"keep|call|treat|address|format|summari[sz]e|number|link|no\s+need\s+to)\s",
    re.IGNORECASE,
)
TO_ME = _words(r"me|i|i'd|my|you|your|yourself")
NOT_TO_BE_KEPT = _words(
    r"(?:don'?t|do\s+not|never|without|not\s+to|rather\s+not|shouldn'?t|should\s+not|must\s+not)\s+"
    r"(?:want\s+you\s+to\s+)?(?:you\s+)?(?:ever\s+)?(?:sav|stor|remember|keep|record|log|memori[sz]|retain|writ)\w*|"
    r"nicht\s+(?:zu\s+)?(?:speichern|merken|behalten)|(?:speicher\w*|merk\w*)\s+(?:\w+\s+){0,3}nicht"
    r"|ne\s+(?:\w+\s+)?(?:sauvegard|enregistr|retien|gard)\w*|no\s+(?:lo\s+|la\s+|me\s+)?"
    r"(?:guard|record|almacen)\w*|não\s+(?:\w+\s+)?(?:guard|salv|lembr)\w*|non\s+(?:\w+\s+)?"
    r"(?:salvar|ricordar|memorizzar)\w*|off\s+the\s+record"
)
"""Whoever says this does not want the rest of the message to be learnt either."""

# How a message is read

FENCED = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
QUOTED = re.compile(r"^\s*(?:>|\||#|//|\$ |at |File \").*$", re.MULTILINE)
ENDS = re.compile(r"(?<=[^\W\d_][^\W\d_][.!?…;])\s+|(?<=[.!?…]['\")])\s+|[。！？]+|\n+")
QUESTION = re.compile(r"[?？]\W*$")
INTRODUCTION = re.compile(
    r"(?:(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|good\s+(?:morning|evening|day)|thanks|thank\s+"
    r"you|ok|okay|so|well|right|yes|no(?=[,.!])|nope|sorry|oops|btw|by\s+the\s+way|actually|also|and|"
    r"but|please|just|oh|fyi|correction|there|all|everyone|team|danke|merci|gracias)(?!\w)"
    r"[\s,.!:–-]*)+",
    re.IGNORECASE,
)
APOSTROPHES = str.maketrans("’‘`´", "''''")
