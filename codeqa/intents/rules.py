"""The rules: what speaks for an intent, how strongly, and in which words that is told.

Every rule that holds adds its weight to its intent; `heuristics` compares the sums. Weights are
whole numbers: 1 is a hint, 2 an indication, 4 decides where nothing speaks against it, from 7 on
against most else. The rules follow the definitions of S3.03 to S3.07 and speak of kinds of words,
so that each holds in ten languages and more; the words are in `lexicon.toml`.
"""

from __future__ import annotations

from codeqa.intents import of_code, of_followups, of_general, of_privacy, of_profile
from codeqa.intents.common import Rule

RULES: tuple[Rule, ...] = (
    *of_privacy.RULES,
    *of_profile.RULES,
    *of_general.RULES,
    *of_code.RULES,
    *of_followups.RULES,
)
