"""Which licence a tree states in its own files, and whether training may read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from research.training.mirrors import Entry

ALLOWED = frozenset(
    {
        "MIT", "Apache-2.0", "BSD", "ISC", "zlib", "BSL-1.0", "curl", "MIT-CMU", "Unlicense",
        "MIT-Old", "PostgreSQL", "PSF", "Ruby",
    }
)  # fmt: skip
"""Permissive licences: everything else, and what is not recognised, is refused."""

UNKNOWN = "unknown"

_FILE = re.compile(
    r"(?:un)?licen[sc]e(?:[-_.][\w.+-]+)?|copying(?:[-_.][\w.+-]+)?|mit-license(?:\.\w+)?"
    r"|[\w.]+[-_.]licen[sc]e(?:\.(?:txt|md))?|bsdl|legal",
    re.I,
)
_CODE_ENDING = re.compile(
    r"\.(?:py|js|mjs|cjs|ts|tsx|jsx|go|rs|java|kt|scala|c|h|cc|cpp|hpp|cs|rb|php|swift|lua|sh|sql"
    r"|json|ya?ml|xml|toml|html?|tmpl|erb|css|svg|png|header|tpl|template|in|spdx|props|targets"
    r"|gradle|cmake|resx|properties)$",
    re.I,
)

# The first mark in the text names the licence: notices of bundled parts come later.
_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        ("AGPL", r"affero general public|\bAGPL"),
        ("LGPL", r"(?:lesser|library) general public|\bLGPL"),
        ("GPL", r"gnu general public|\bGPL\b(?!-compatible)|\bGPLv?[23]"),
        ("MPL", r"mozilla public license"),
        ("EPL", r"eclipse public license"),
        ("CDDL", r"common development and distribution"),
        ("EUPL", r"european union public licen[cs]e"),
        ("SSPL", r"server side public license"),
        ("BUSL", r"business source license"),
        ("Elastic", r"elastic license"),
        ("Commons-Clause", r"commons clause"),
        ("CC", r"creative commons|attribution-(?:noncommercial|sharealike)"),
        ("Artistic", r"artistic license"),
        ("Apache-2.0", r"apache license,?\s+version 2|apache license\s+version 2|apache-2\.0"
                       r"|apache license 2\.0|apache software license,? version 2"),
        ("Unlicense", r"free and unencumbered software released into the public domain"),
        ("ISC", r"permission to use, copy, modify,? and(?: or)? distribute this software for any"
                r" purpose with or without fee is hereby granted,? provided that|^ ?isc license"),
        ("BSL-1.0", r"boost software license"),
        ("curl", r"copyright and permission notice.{0,300}daniel stenberg"),
        ("MIT-CMU", r"permission to use, copy, modify,? and distribute this software and its"
                    r" documentation for any purpose and without fee is hereby granted"),
        ("MIT-Old", r"permission is hereby granted, without written agreement and without license"
                    r" or royalty fees, to use, copy, modify, and distribute this software"),
        ("PostgreSQL", r"permission to use, copy, modify, and distribute this software and its"
                       r" documentation for any purpose, without fee, and without a written"),
        ("MIT", r"permission is hereby granted, free of charge, to any person obtaining"
                r"|\bmit licenses?\b|licensed under (?:the )?mit\b"),
        ("BSD", r"redistribution and use in source and binary forms"),
        ("zlib", r"provided ['\"]as-is['\"], without any express or implied warranty"),
        ("PSF", r"python software foundation license|history of the software [= ]*python was"),
        ("Ruby", r"you may make and give away verbatim copies of the source form"),
    )
)  # fmt: skip
_COPYLEFT_HEAD = re.compile(
    rb"GNU (?:Affero |Lesser |Library )?General Public Licen[sc]e"
    rb"|SPDX-License-Identifier:\s*\(?(?:A|L)?GPL|Mozilla Public License|\bCDDL\b"
    rb"|SPDX-License-Identifier:\s*(?:MPL|EPL|CDDL|BUSL|SSPL|Elastic)"
    rb"|Elastic License|Business Source License|Server Side Public License",
    re.I,
)
_CHOICE = re.compile(
    r"dual[- ]licen[sc]ed|at your (?:option|choice)|either (?:the |of )|one of the following licen"
    r"|licen[sc]ed under (?:both|multiple)|\bor\b.{0,40}at your",
    re.I | re.S,
)
_BLANKS = re.compile(r"[\s*#>/]+")
SHORTEST = 60
"""Characters of a licence file that states something; a shorter one names another file."""
_SHARE_ALIKE = re.compile(r"creative commons|\bCC[- ]BY", re.I)
HEAD_BYTES = 3000
"""Where a file states a licence of its own."""


def is_licence_file(path: str) -> bool:
    """Whether a file's name says that it holds a licence."""
    name = path[path.rfind("/") + 1 :]
    return bool(_FILE.fullmatch(name)) and not _CODE_ENDING.search(name)


def licence_of(text: str) -> str:
    """Short name of the licence that a text states first; `unknown` when it states none."""
    text = _BLANKS.sub(" ", text)
    found = ((match.start(), order, name) for order, (name, mark) in enumerate(_MARKS)
             if (match := mark.search(text)))  # fmt: skip
    return min(found, default=(0, 0, UNKNOWN))[2]


def tree_licence(texts: Sequence[str], readme: str = "") -> tuple[str, str]:
    """(licence, '') of a tree by its top-level licence files, or (what was found, why not).

    A permissive and a refused licence side by side are accepted only when the files or the
    README say that the reader may choose.
    """
    names = list(dict.fromkeys(licence_of(text) for text in texts))
    good = [name for name in names if name in ALLOWED]
    bad = [name for name in names if name not in ALLOWED and name != UNKNOWN]
    stated = ", ".join(names)
    if not texts:
        return "", "no licence file at the top of its tree"
    if not good:
        return stated, f"its licence files state {stated}"
    if bad and not _CHOICE.search("\n".join([*texts, readme])):
        return stated, f"beside {', '.join(good)} it states {', '.join(bad)}, without a choice"
    return good[0], ""


def documents_apart(texts: Iterable[str]) -> bool:
    """Whether the licence files put the documentation under a licence of its own."""
    return any(_SHARE_ALIKE.search(text) for text in texts)


def restricted_folders(
    tree: Iterable[Entry], read: Callable[[str], bytes | None], limit: int = 300
) -> tuple[str, ...]:
    """Folders below the top whose own licence file states something that is not allowed."""
    folders = []
    nested = [entry for entry in tree if "/" in entry.path and is_licence_file(entry.path)]
    nested.sort(key=lambda entry: entry.path.count("/"))
    for entry in nested[:limit]:
        folder = entry.path[: entry.path.rfind("/") + 1]
        text = (read(entry.blob) or b"").decode("utf-8", "replace")
        if len(text) < SHORTEST:
            continue
        name = licence_of(text)
        if name not in ALLOWED and not (name == UNKNOWN and "/licenses/" in "/" + folder.lower()):
            folders.append(folder)
    return tuple(dict.fromkeys(folders))


def states_copyleft(data: bytes) -> bool:
    """Whether the head of a file puts the file itself under a licence that is not allowed."""
    return bool(_COPYLEFT_HEAD.search(data[:HEAD_BYTES]))
