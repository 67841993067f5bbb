"""Questions in other languages than English: scripts without blanks, and words that ask.

An identifier is found in any language: what stands around it is cut off or known not to
describe. Nothing is translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u1100-\u11ff\uff66-\uff9d"
_UNSPACED = rf"[{_CJK}\u0e00-\u0e7f]"
"""Chinese, Japanese, Korean and Thai letters: identifiers stand between them without a blank,
in Korean with a particle behind."""
_CODE = r"[A-Za-z0-9_$@./\\-]"

_BETWEEN = re.compile(rf"(?<={_UNSPACED})(?={_CODE})|(?<={_CODE})(?={_UNSPACED})")
_IDEOGRAPHS = re.compile(rf"{_UNSPACED}+")
_JAPANESE_ENDING = re.compile(r"[\u3041-\u309f]+")
_CHINESE_ASKING = re.compile(
    "什么|怎么样|怎么|怎样|如何|为什么|为何|在?哪里|在?哪儿|哪个|哪些|在哪|谁|请问|请|解释|告诉我|"
    "是否|可以|能否|工作原理|是|的|了|吗|呢|在|被|这个|那个|一个"
)

_ASKING = {
    "German": """
        ab aber als am an auf aus bei beim bitte da dann das dass dem den denn der des die dies
        diese dieser dieses dort durch ein eine einem einen einer eines er erklär erkläre es etwas
        finde findet funktioniert für geht genau gibt hat hier ich ihr im in ist ja kann man mir
        mit nach nicht noch nun oder ob passiert sich sie sind so über um und uns unter vom von
        vor wann warum was welche welchem welchen welcher welches wenn wer werden weshalb wie
        wieso wir wird wo wobei wodurch wofür woher wohin wozu wurde zeig zeige zu zum zur zwischen
        definiert macht""",
    "French": """
        à afin ai au aux avec ce cela ces cet cette comment dans de des du elle elles en est et
        être explique expliquez fait fonctionne il ils je l la le les leur lui ma mais moi mon
        montre ne nous on ont où ou par pas pour pourquoi qu quand que quel quelle quelles quels
        qui quoi sa sans se ses son sont sous sur trouve trouver un une vers vous y définie défini
        définit d s c j n""",
    "Spanish": """
        a al cómo como con cuál cual cuáles cuándo cuando de del dónde donde el ella en entre es
        esta está este esto están existe explica explícame hace hasta hay la las lo los me mi
        muestra muéstrame no o para pero por porque qué que quién quien se ser si sin sobre son su
        sus también un una unas unos y ya define definida definido funciona encuentra""",
    "Italian": """
        a al alla anche c che chi ci come con cosa cos da dal dalla dei del della delle di dove dov
        e è essere fa gli i il in la le lo ma mi nel nella non o per perché più qual quale quali
        quando questa questo se si sono spiega spiegami su sul un una uno viene definita definito
        funziona trova""",
    "Portuguese": """
        a ao as à às com como da das de dela dele do dos e é ela ele em então entre essa esse esta
        está este eu explica explique faz há isso já mas me meu na nas no nos o onde os ou para
        pela pelo por porque qual quais quando que quem se sem ser seu sua são também um uma
        definida definido define funciona encontra fica""",
    "Russian": """
        а без бы был в вам вас вы где гдe да для до его ее если есть еще же за зачем и из или им
        их к как какая какие какой каким когда кто куда ли между мне мы на над не него нет но о об
        объясни объясните он она они от откуда по под покажи покажите почему при про работает с со
        такое так там то тот ту у уже что чтобы чем это этот эта эти я определен определён
        определена определено находится находятся делает происходит используется""",
    "Korean": """
        가 과 는 은 을 를 의 이 와 로 으로 에 에서 어디 어디서 어디에 어디에서 어떤 어떻게
        무엇 무엇을 무엇인가요 왜 언제 누가 있는 있나요 있습니까 있는지 하나요 합니까 되나요
        됩니까 되는지 정의되어 정의되나요 정의된 정의 작동하나요 동작하나요 설명해 설명해줘
        주세요 찾아줘 코드 그 이것은""",
}
ASKING_WORDS = {name: frozenset(text.split()) for name, text in _ASKING.items()}
"""Language → its words that ask or join rather than describe."""

OWN_LETTERS = ("Russian", "Korean")
"""No name in Latin letters is mistaken for their words, so these always count."""

SURE = 2
"""Words of a language that make a question one in it."""
_NAMES_AS_WELL = "as con de des der die do es la no par per sa se si so son sur un"
NAMES_AS_WELL = frozenset(_NAMES_AS_WELL.split())
"""Words that are no evidence for a language: each is a name in code or in English too."""


def separate(text: str) -> str:
    """Blanks between identifiers and letters of scripts that set none: `调用open_session的` has
    three parts."""
    return text if text.isascii() else _BETWEEN.sub(" ", text)


def describing_part(text: str) -> str:
    """`text` without what only asks or joins in Chinese, and without Japanese endings.

    What is left of a run of signs stands in a comment as it is, the whole run hardly ever.
    """
    return text if text.isascii() else _IDEOGRAPHS.sub(_describing, text)


def _describing(match: re.Match[str]) -> str:
    return " ".join(_CHINESE_ASKING.sub(" ", _JAPANESE_ENDING.sub(" ", match[0])).split()) or " "


def asking_words(words: Iterable[str], english: frozenset[str]) -> frozenset[str]:
    """Words that ask in the language of a question of these lower-case `words`.

    `english`: the question words of English, which always count. A question is taken for one
    in another language when it holds SURE words of it that are evidence, and more than of
    English.
    """
    distinct = frozenset(words)
    always = english.union(*(ASKING_WORDS[name] for name in OWN_LETTERS))
    evidence = distinct - NAMES_AS_WELL
    found = {name: len(evidence & asking) for name, asking in ASKING_WORDS.items()}
    best = max(found, key=lambda name: found[name])
    if found[best] >= SURE and found[best] > len(evidence & english):
        return always | ASKING_WORDS[best]
    return always
