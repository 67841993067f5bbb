"""What users have told of themselves: kept as `key: value`, told to models, looked up.

A key is a kind (`name`), or a kind and which one of several (`fact-1f0c9a`). Only kinds
in LEARNT are learnt; earlier versions knew others, which are still shown and deleted.
Values are one short line each: they go to a model beside the rules, and must not look like any.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping

from codeqa.repository.secrets import mask_secrets
from codeqa.text.tokens import well_formed

LEARNT = ("name", "language", "verbosity", "format", "fact")
PREFERENCES = ("language", "verbosity", "code language", "format", "address")
"""Kinds that are lasting wishes, of now and earlier: they go with every answer of a model."""
SEVERAL = ("format", "fact")
"""Kinds of which a user may have told more than one."""
VALUE_CHARACTERS = 200
PROFILE_LINES = 40
"""Lines that a model is told of; what was learnt first goes first."""

_UNSAFE = re.compile(r"[<>\[\]{}|`=\\]+")
"""What fences, roles and the parts of a message are written with; no fact needs it."""
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_LEADING = re.compile(r"^(?:that|dass|que|che|dat)\s+", re.IGNORECASE)


def kind_of(key: str) -> str:
    """The kind of a key: `experience-rust` is `experience`."""
    return key.partition("-")[0]


def is_preference(key: str) -> bool:
    """Whether the fact under `key` is a lasting wish."""
    return kind_of(key) in PREFERENCES


def preferences(profile: Mapping[str, str]) -> dict[str, str]:
    """The lasting wishes of a profile."""
    return {key: value for key, value in profile.items() if is_preference(key)}


def profile_text(profile: Mapping[str, str]) -> str:
    """The profile as `key: value` lines; the values are cleaned once more."""
    lines = [
        f"{clean_value(kind_of(key))}: {clean}"
        for key, value in profile.items()
        if (clean := clean_value(value))
    ]
    return "\n".join(lines[-PROFILE_LINES:])


def matching(profile: Mapping[str, str], kind: str) -> dict[str, str]:
    """The facts of a kind, or under exactly that key; `*` is all of them."""
    return {k: v for k, v in profile.items() if kind in ("*", k, kind_of(k))}


def clean_value(value: str) -> str:
    """`value` as one line without marks that mean something to a model; secrets are masked."""
    masked = mask_secrets(well_formed(value[: 4 * VALUE_CHARACTERS]))
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in masked)
    line = " ".join(_UNSAFE.sub(" ", _LEADING.sub("", shown)).split()).strip(" ,;:.!-–\"'")
    return line[:VALUE_CHARACTERS].rstrip()


def fact_key(kind: str, value: str) -> str:
    """The key of a fact; of kinds with several, one for each value."""
    if kind not in SEVERAL:
        return kind
    digest = hashlib.blake2b(value.lower().encode(), digest_size=3).hexdigest()
    return f"{kind}-{digest}"
