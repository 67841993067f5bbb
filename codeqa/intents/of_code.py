"""What speaks for `knowledge_base` (S3.04): questions and tasks that the code helps with."""

from __future__ import annotations

from codeqa.intents.common import ASKING, Rule, asks, free, to_the_app
from codeqa.intents.reading import CODE, Reading
from codeqa.intents.reference import free_pronoun, specific, strong_software


def _location(m: Reading) -> bool:
    return (
        m.has("WHERE", "WHICH", "WHO")
        and asks(m)
        and (strong_software(m) or m.has("CODE_VERB", "CODEBASE", CODE))
        and (strong_software(m) or not m.has("TECH", "EVERYDAY"))
    )


def _task(m: Reading) -> bool:
    if m.has("LORE", "TECH", "EVERYDAY") and not (
        m.has("the") or strong_software(m) or m.has("CODEBASE", CODE)
    ):
        return False
    if free_pronoun(m) and m.has_history:
        return False
    return (m.opens("TASK", within=4) and specific(m) >= 1 and not m.has("ME", "MY")) or (
        m.has("TASK") and (strong_software(m) or m.has(CODE, "CODEBASE"))
    )


def _asks_how(m: Reading) -> bool:
    opened = m.opens("HOW", "WHAT", "WHY", "WHEN", within=2) or m.opens("AUX")
    by_app = to_the_app(m) and not m.opens("HOW")
    return (
        opened
        and not by_app
        and not free(m)
        and (strong_software(m) or (m.has("CODE_VERB") and specific(m) >= 1))
    )


def _phrase(m: Reading) -> bool:
    """Words without a verb, a question or a speaker: looked up as they are."""
    return (
        1 <= m.length <= 8
        and specific(m) >= 1
        and not m.asks
        and not m.has(
            "I",
            "YOU",
            "AUX",
            "PRONOUN",
            "SOCIAL",
            "EVERYDAY",
            "MY",
            "ME",
            "LASTING",
            "DELETE",
            "SUCH",
            "LORE",
            "HABIT",
            *ASKING,
        )
    )


def _remark_and_question(m: Reading) -> bool:
    """A question about code in another clause than what is said about the speaker."""
    held = m.has("PASTE", "STORE", "DELETE") or m.near("YOU", "REMEMBER", 3)
    if held and m.any_near(["MY"], ["TALK", "DATA", "FACT"], 3):
        return False
    asking = [
        m.clause[p]
        for name in ("WHERE", "WHICH", "WHO", "HOW", "WHAT", "WHY", "AUX")
        for p in m.at.get(name, ())
        if m.lead[p] <= 1
        or m.near("know", name, 2)
        or m.near("wonder", name, 2)
        or m.near("tell", name, 2)
        or m.near("explain", name, 2)
    ]
    told = [m.clause[p] for p in m.at.get("I", []) + m.at.get("MY", []) + m.at.get("SOCIAL", [])]
    return (
        bool(asking and told)
        and (strong_software(m) or m.has("CODEBASE", CODE))
        and (any(one not in told for one in asking) or m.any_near(["know", "wonder"], ASKING, 2))
    )


def _new_question(m: Reading) -> bool:
    personal = m.has("MY", "ABOUT_ME") or to_the_app(m)
    general = m.has("LORE", "EVERYDAY", "TECH")
    return not free_pronoun(m) and specific(m) >= 2 and asks(m) and not personal and not general


def _trouble(m: Reading) -> bool:
    return m.has("TROUBLE") and (strong_software(m) or m.panic) and not m.opens(*ASKING)


RULES = (
    Rule("tells of something that fails", "knowledge_base", 5, _trouble),
    Rule("a first message", "knowledge_base", 1, lambda m: not m.has_history and bool(m.words)),
    Rule("names a piece of code", "knowledge_base", 4, lambda m: m.has(CODE)),
    Rule("an error message or lines of code", "knowledge_base", 4, lambda m: m.panic),
    Rule("speaks of the code base", "knowledge_base", 3, lambda m: m.has("CODEBASE")),
    Rule("asks where, which or who in the code", "knowledge_base", 3, _location),
    Rule("a task on code", "knowledge_base", 3, _task),
    Rule("asks about software", "knowledge_base", 2, _asks_how),
    Rule("software is the subject", "knowledge_base", 1, strong_software),
    Rule("speaks of 'we' and 'our'", "knowledge_base", 1, lambda m: m.has("OUR")),
    Rule("words to look up", "knowledge_base", 2, lambda m: _phrase(m) and not m.begins("help")),
    Rule("a question about code beside a remark", "knowledge_base", 8, _remark_and_question),
    Rule("a question complete in itself", "knowledge_base", 1, _new_question),
)
