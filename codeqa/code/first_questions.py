"""Offer questions to begin with, by the names of the code, which are answered well without a model.

They are about what the repository is, how its most used type works, what a much used function does,
and what can be set, extended or called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from codeqa.code.calls import is_test
from codeqa.code.descriptions import README_NAMES
from codeqa.store import Filter, Tables
from codeqa.store.catalogue import Catalogue
from codeqa.text.markdown import code_span
from codeqa.text.tokens import name_key
from codeqa.types import Unit

MOST_REFERENCES, OFTEN = 300_000, 1_000
"""References that are counted, and the most used names that are considered."""
LONG, CALLING, HEIRS, SETTINGS = 10, 5, 3, 20
"""Least sizes that are worth a question: lines of a type, names that a function calls, heirs of a
base, lines of a type of settings."""
OWNERS, CENTRAL = 3, 5
"""Owners up to which a name is clear; types whose methods count twice."""
_TYPES = ("class", "struct", "interface", "trait", "enum")
_DULL = re.compile(
    r"_|(?i:file|status|clone)$|(?i:test|mock|fake)|(?:[Gg]et|[Ss]et|is|has|[Nn]ew|make)(?![a-z])"
    r"|.*(?i:util|helper|error|exception|fail|warn|log|debug|print|assert|version)"
)
_SETTINGS = re.compile(r"\w*(?:config|configuration|settings|options)", re.IGNORECASE)
_OF_WORDS = re.compile(r"[a-z0-9][A-Z]|[^_]_[^_]")
"""A name of several words, which hardly means anything else."""
_cache: WeakKeyDictionary[Catalogue, tuple[str, ...]] = WeakKeyDictionary()


def first_questions(tables: Tables) -> tuple[str, ...]:
    """Return up to four questions of different kinds; they are cached until a table changes."""
    catalogue = tables.catalogue()
    if catalogue not in _cache:
        _cache[catalogue] = tuple(_questions(tables, catalogue)) if catalogue.paths else ()
    return _cache[catalogue]


# In one piece, for what is counted for one kind of question decides about the next.
def _questions(tables: Tables, catalogue: Catalogue) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    yield f"What is {tables.location.name}, and how is it organised?"
    rows = tables.reference_rows(("name", "path", "kind", "unit_id"), MOST_REFERENCES)
    source = [path for path, role in catalogue.roles().items() if role == "source"]
    kind, in_source = pc.field("kind"), pc.field("path").isin(pa.array(source, pa.string()))
    uses = _count(rows.filter(kind != "import"), "name", "path")
    calls = _count(rows.filter(kind == "call"), "unit_id", "name")
    heirs = _count(rows.filter((kind == "inherits") & in_source), "name", "unit_id")
    units = _candidates(tables, uses)
    readmes = tables.units(Filter(paths=tuple(f"{name}*" for name in README_NAMES)))
    readme = " ".join(unit.source_code for unit in readmes)
    words = set(re.findall(r"\w+", readme))

    def worth_of_type(unit: Unit) -> float:
        return uses[unit.name] * math.log2(_lines(unit)) * (2 if unit.name in words else 1)

    long_types = [unit for unit in units if unit.kind in _TYPES and _lines(unit) >= LONG]
    types = _best(long_types, worth_of_type)
    settings = [unit for unit in types if _SETTINGS.fullmatch(unit.name)]
    types = [unit for unit in types if unit not in settings]
    bases = [unit for unit in types[1:] if heirs.get(unit.name, 0) >= HEIRS]
    central = {unit.qualified_name for unit in types[:CENTRAL]}
    called = _called_first(tables, readme)

    def worth_of_function(unit: Unit) -> float:
        likely = (2 if unit.name in called else 1) * (2 if unit.class_name in central else 1)
        return math.log2(1 + uses[unit.name]) * math.pow(calls[unit.id], 0.7) * likely

    functions = []
    for unit in units:
        busy = unit.is_method and unit.kind != "constructor" and calls.get(unit.id, 0) >= CALLING
        clear = unit.class_name in central or unit.name in called or _OF_WORDS.search(unit.name)
        if busy and clear:
            functions.append(unit)
    functions = _best(functions, worth_of_function)
    others = [unit for unit in functions[1:] if _OF_WORDS.search(unit.name)]
    if types:
        yield f"How does {_name(types[0])} work?"
    if functions:
        yield f"What happens when {_name(functions[0])} is called?"
    if settings and _lines(settings[0]) >= SETTINGS:
        yield f"What can be set in {_name(settings[0])}?"
    elif bases:
        verb = "inherits from" if bases[0].kind == "class" else "implements"
        yield f"What {verb} {_name(bases[0])}?"
    elif others:
        yield f"Who calls {_name(others[0])}?"


def _count(rows: Any, by: str, counted: str) -> dict[str, int]:
    """Return for each value of the column `by` the number of different values of `counted`."""
    columns = rows.group_by(by).aggregate([(counted, "count_distinct")]).to_pydict()
    return dict(zip(columns[by], columns[f"{counted}_count_distinct"], strict=True))


def _candidates(tables: Tables, uses: dict[str, int]) -> list[Unit]:
    """Return definitions in source code with the most used names."""
    names = sorted(uses, key=lambda name: (-uses[name], name))[:OFTEN]
    keys = [name_key(name) for name in names]
    units = tables.named(keys, 5 * OFTEN, Filter(roles=("source",)))
    units = [unit for unit in units if unit.name in uses and not _DULL.match(unit.name)]
    return [unit for unit in units if not is_test(unit)]


def _called_first(tables: Tables, readme: str) -> set[str]:
    """Return the names that `main` uses and that the readme calls."""
    names = set(re.findall(r"(\w+)\(", readme))
    main = [unit.id for unit in tables.named(["main"])]
    if main:
        names.update(reference.name for reference in tables.references(unit_id=main))
    return names


def _best(units: Sequence[Unit], worth: Callable[[Unit], float]) -> list[Unit]:
    """Return the units whose name has few owners, the best first."""
    owners: dict[str, set[tuple[str, str]]] = {}
    for unit in units:
        owners.setdefault(unit.name, set()).add((unit.class_name, unit.path.rpartition("/")[0]))
    few = [unit for unit in units if len(owners[unit.name]) <= OWNERS]
    return sorted(few, key=lambda u: (-worth(u) / len(owners[u.name]), u.path, u.start_line))


def _lines(unit: Unit) -> int:
    return unit.end_line - unit.start_line + 1


def _name(unit: Unit) -> str:
    """Return its name as code, with its owner's for a method or a name of one word."""
    parts = re.split(r"(::|\.|\\|#)", unit.qualified_name)
    alone = not unit.is_method and _OF_WORDS.search(unit.name)
    return code_span("".join(parts[-1 if alone else -3 :]))
