"""What a sentence claims of code, and which lines show it: the rule for citations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from codeqa.chat.values import Citation
from codeqa.search.mentions import FILE_ENDINGS, definitions_called
from codeqa.search.query import QUESTION_WORDS
from codeqa.store import Tables
from codeqa.text.markdown import CITATION
from codeqa.text.tokens import name_key, split_identifier
from codeqa.types import TEXT_KINDS, Chunk, Unit

CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
VALUES = frozenset(
    {"none", "true", "false", "null", "nil", "undefined", "self", "this", "cls", "super"}
    | {"int", "str", "bool", "float", "list", "dict", "set"}
)
"""Written as code in any sentence; they name nothing of the repository."""
NOT_SHOWN = re.compile(
    r"\b(?:chunks?|contexts?|excerpts?)\b.{0,40}(?:\bnot|n't)\b.{0,20}\b(?:show|include|contain|say)"
    r"|(?:\bnot|n't|\bun)\s?(?:\w+ )?(?:shown|visible|sure)\b|@codebase\b",
    re.IGNORECASE,
)
"""What says that something is not known claims nothing of the code."""

OF_SENTENCE, OF_PARAGRAPH, OF_NEITHER = 0.66, 0.58, 0.95
"""Part of what the best place elsewhere shows of a sentence that its cited lines must show: where
they belong to a definition that the sentence names; to one that its paragraph names or cites; to
neither. Set on the tuned half of evals/grounding, as is the next."""
OF_NAMES, OF_WORDS, FEWEST_WORDS = 0.6, 0.2, 5
"""The same where all names stand there, but belong to neither; and of sentences without names."""
ELSEWHERE = "other lines show what this says"
FEW = 10
"""Lines that are looked for where those that were cited do not exist."""
SURE = 0.6
"""A citation is moved where the second best place shows less than this part of the best."""
LARGE = 400
"""Lines of a definition to which nearly all of a file belongs."""

_SENTENCE_ENDS = re.compile(r"[.!?;]\s+(?=[A-Z`*(\[])|\s[-–—]\s|^\s*(?:[-*+]|\d+[.)])\s")
NAME = re.compile(r"[A-Za-z_]\w+")
_NAMED = re.compile(r"\b[A-Za-z]\w*_\w+\b|\b\w+(?=\(\))")
_RUN = re.compile(r"[\w.@+/-]+")
_NUMBER = re.compile(r"(?<![\w.])\d{2,}")
GROUPED = re.compile(r"(?<=\d)[_,](?=\d{3})")
_STEM = 5
"""Letters by which words are compared: matches, matching."""


def names_in(said: str) -> tuple[set[str], set[str]]:
    """The names of code, lower case, and the paths of files that a sentence speaks of."""
    names, paths = set[str](), set[str]()
    prose = CODE_SPAN.sub(" ", said)
    for text, is_code in ((prose, False), *((span[2], True) for span in CODE_SPAN.finditer(said))):
        for run in _RUN.findall(text):
            run = run.rstrip(".")
            if "." in run and run.rpartition(".")[2] in FILE_ENDINGS:
                paths.add(run)
            elif is_code:
                names.update(NAME.findall(run))
    names.update(_NAMED.findall(" ".join(set(prose.split()) - paths)))
    return {name.lower() for name in names} - VALUES, paths


def numbers_in(said: str) -> list[str]:
    """Those of two digits and more, `86_400` and `86,400` as 86400."""
    return _NUMBER.findall(GROUPED.sub("", said))


def last_sentence(said: str) -> str:
    """Of `said` what a citation behind it is of: the last sentence, since its last citation."""
    ends = (match.end() for one in (_SENTENCE_ENDS, CITATION) for match in one.finditer(said))
    return said[max([0, *ends]) :]


def stems_in(text: str) -> set[str]:
    """The stems of the words of `text`, also of those within names, each behind `~`."""
    parts = {part for name in {*NAME.findall(text)} for part in split_identifier(name)}
    return {f"~{part[:_STEM]}" for part in parts - QUESTION_WORDS if len(part) > 2}


@lru_cache(10_000)  # a line is in many definitions, and each answer is checked twice
def terms_in(text: str) -> frozenset[str]:
    """Names, numbers and stems of `text`."""
    numbers = re.findall(r"\d+", GROUPED.sub("", text))
    return frozenset(name.lower() for name in NAME.findall(text)).union(numbers, stems_in(text))


class Shown:
    """The lines that were sent for an answer, each as the terms that it and the names of the
    definitions around it hold. `read` gives the lines of a file."""

    def __init__(
        self, read: Callable[[str], list[str] | None], tables: Tables, chunks: Iterable[Chunk]
    ) -> None:
        self._read, self._tables, self._chunks = read, tables, chunks
        self._units = cache(self._units_of)

    @cached_property
    def _runs(self) -> list[tuple[str, int, list[frozenset[str]]]]:
        """Lines that follow each other: path, the first one, and the terms of each."""
        sent = {(c.path, n) for c in self._chunks for n in range(c.start_line, c.end_line + 1)}
        firsts = [(path, n) for path, n in sorted(sent) if (path, n - 1) not in sent]
        lasts = [n for path, n in sorted(sent) if (path, n + 1) not in sent]
        runs = zip(firsts, lasts, strict=True)
        return [(path, first, self._of(path, first, last)) for (path, first), last in runs]

    @cached_property
    def _known(self) -> set[str]:
        return set[str]().union(*(line for _, _, run in self._runs for line in run))

    def better(self, cited: Citation, said: str) -> tuple[str, Citation | None]:
        """What is wrong with citing the lines of `cited` for the last sentence of `said`, '' where
        they are right; and the one place that shows what it says, where there is one.

        What stands nowhere in the code proves nothing. Nor do lines that show nearly as much as
        any other place: a sentence names more than it is about.
        """
        sentence = last_sentence(said)
        numbers = set(numbers_in(CODE_SPAN.sub(" ", sentence)))
        names = sorted(names_in(sentence)[0] | numbers)
        lines = self._of(cited.path, cited.start, cited.end)
        here = set[str]().union(*lines)
        missing = [name for name in names if name not in here and self._is_known(name)]
        stems = sorted(stems_in(sentence))
        share = self._share(cited, names, said)
        if not names:
            share = OF_WORDS if len(stems) >= FEWEST_WORDS else 0.0
        elif not missing:
            share = OF_NAMES if share == OF_NEITHER else 0.0
        if not share or NOT_SHOWN.search(sentence):
            return "", None
        terms = [*names, *stems]
        tables = [_table(run, terms) for _, _, run in self._runs]
        counts = sum((table.sum(axis=0) for table in tables), np.zeros(len(terms)))
        weights = np.log1p(sum(map(len, tables)) / np.maximum(counts, 0.5))
        weights[: len(names)] *= 2
        size = len(lines) or FEW
        found = [  # how much of the sentence as many lines elsewhere show
            (score, place)
            for (path, start, _), table in zip(self._runs, tables, strict=True)
            for first, score in enumerate(_scores(table, size, weights), start)
            if not _meet(place := Citation(path, first, first + min(size, len(table)) - 1), cited)
        ]
        best, place = max(found, key=lambda one: one[0], default=(0.0, cited))
        shown = float(weights[[term in here for term in terms]].sum())
        if shown >= share * best and (shown or not missing):
            return "", None
        problem = f"these lines do not show `{missing[-1]}`" if missing else ELSEWHERE
        symbols = [span[2] for span in CODE_SPAN.finditer(sentence)]
        if len(symbols) == 1 and here.isdisjoint(names):
            called = definitions_called(self._tables, re.sub(r"\(.*|!$", "", symbols[-1]))
            if len(called) == 1:  # of several definitions, or names, none is sure
                (unit,) = called
                return problem, Citation(unit.path, unit.start_line, unit.end_line)
        second = max((score for score, one in found if not _meet(one, place)), default=0.0)
        if second >= SURE * best:
            return problem, None
        same = [one for score, one in found if score == best and _meet(one, place)]
        first, last = sorted((max(one.start for one in same), min(one.end for one in same)))
        return problem, Citation(place.path, first, last)

    def _share(self, cited: Citation, names: Sequence[str], said: str) -> float:
        """The part of the best place that `cited` has to show."""
        units = [
            unit
            for unit in self._units(cited.path)
            if unit.start_line <= cited.end and cited.start <= unit.end_line
            if unit.end_line - unit.start_line < LARGE
        ]
        if not {unit.name.lower() for unit in units}.isdisjoint(names):
            return OF_SENTENCE
        holding = [u for u in units if u.start_line <= cited.start and cited.end <= u.end_line]
        before = [(c[1], int(c[2]), int(c[3] or c[2])) for c in CITATION.finditer(said)]
        if not {unit.name.lower() for unit in holding}.isdisjoint(names_in(said)[0]) or any(
            (u.path, True, True) == (path, u.start_line <= start, end <= u.end_line)
            for u in holding
            for path, start, end in before[-2:]
        ):
            return OF_PARAGRAPH
        return OF_NEITHER

    def _is_known(self, name: str) -> bool:
        return name in self._known or bool(self._tables.named([name_key(name)], limit=1))

    def _units_of(self, path: str) -> list[Unit]:
        kept = self._tables.in_file(path)
        return [unit for unit in kept if unit.kind not in TEXT_KINDS and unit.kind != "module"]

    def _of(self, path: str, start: int, end: int) -> list[frozenset[str]]:
        start = max(start, 1)
        found = [terms_in(line) for line in (self._read(path) or [])[start - 1 : end]]
        for unit in self._units(path):
            around = terms_in(unit.qualified_name)
            within = slice(max(unit.start_line - start, 0), max(unit.end_line - start + 1, 0))
            found[within] = [line | around for line in found[within]]
        return found


def _table(lines: Sequence[frozenset[str]], terms: Sequence[str]) -> NDArray[np.bool_]:
    """(lines, terms) Which line holds which."""
    return np.array([[term in line for term in terms] for line in lines], bool)


def _scores(table: NDArray[np.bool_], size: int, weights: NDArray[np.float64]) -> list[float]:
    """What each run of `size` lines shows, by its first; of fewer lines, all of them."""
    size = min(size, len(table))
    counts = np.vstack([np.zeros((1, len(weights)), int), np.cumsum(table, axis=0)])
    shown: list[float] = ((counts[size:] > counts[:-size]) @ weights).tolist()
    return shown


def _meet(one: Citation, other: Citation) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end
