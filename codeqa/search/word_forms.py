"""The forms in which a word of the question stands in code: one place for all who look."""

from __future__ import annotations

import re


def variants(word: str) -> tuple[str, ...]:
    """Other forms in which an English word stands in code: `routes`, `routing` → `route`.

    Light on purpose: plural, -ing, -ed and -er of words of five letters or more, and what is
    called -ation in prose and -ate, -ator, -e or -er in code (`pagination` → `Paginator`); a
    form that is no word costs nothing, for no unit holds it.
    """
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return ()
    forms: list[str] = []
    if word.endswith("ies"):
        forms += [word[:-3] + "y", word[:-1]]
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        forms.append(word[:-2])
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        forms.append(word[:-1])
    for ending in ("ing", "ed", "er", "ers", "or", "ors"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending == "ed"):
            stem = word[: -len(ending)]
            forms += [stem, stem + "e"]
            if len(stem) > 3 and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    if word.endswith("ation") and len(word) > 8:
        stem = word[:-5]
        forms += [stem + ending for ending in ("ate", "ator", "e", "er")]
    if not word.endswith(("s", "ing", "ed")):
        forms.append(word + "s")
    return tuple(dict.fromkeys(form for form in forms if len(form) > 2 and form != word))


def written_forms(word: str) -> tuple[str, ...]:
    """What counts as holding `word` where it stands in lower-case text.

    `path_router` also as `pathrouter` and as two words; of forms that hold each other the
    shortest: `routes` is found with `route`.
    """
    # Of `_` alone nothing is left, and nothing stands in every text.
    spelled = (word, word.replace("_", ""), word.replace("_", " ").strip(), *variants(word))
    forms = dict.fromkeys(filter(None, spelled))
    return tuple(f for f in forms if not any(other in f for other in forms if other != f))


def form_pattern(word: str) -> re.Pattern[str]:
    """Finds any of `written_forms(word)` in lower-case text, also inside an identifier."""
    return re.compile("|".join(map(re.escape, written_forms(word))))
