"""Questions to begin with: what the repository is, how the type that most of it uses works, what a
much used function does, and what can be set, extended or called.

They name what they ask about as the code does, and so are answered well without a model, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from weakref import WeakKeyDictionary

from codeqa.code.calls import is_test
from codeqa.code.descriptions import README_NAMES
from codeqa.store import Filter, Tables
from codeqa.store.catalogue import Catalogue
from codeqa.text.markdown import code_span
from codeqa.text.tokens import name_key
from codeqa.types import Unit

MOST_REFERENCES, OFTEN = 300_000, 1_000
"""References that are counted, and names that the most files use, which are asked about."""
LONG, CALLING, HEIRS, SETTINGS = 10, 5, 3, 20
"""Lines of a type, names that a function calls, heirs, and lines of a type of settings from which
on there is something to tell."""
OWNERS, CENTRAL = 3, 5
"""Of a name with more owners nobody knows which is meant; types whose methods count twice."""
_TYPES = ("class", "struct", "interface", "trait", "enum")
_DULL = re.compile(
    r"_|(?i:file|status|clone)$|(?i:test|mock|fake)|(?:[Gg]et|[Ss]et|is|has|[Nn]ew|make)(?![a-z])"
    r"|.*(?i:util|helper|error|exception|fail|warn|log|debug|print|assert|version)"
)
_SETTINGS = re.compile(r"\w*(?:config|configuration|settings|options)", re.IGNORECASE)
_OF_WORDS = re.compile(r"[a-z0-9][A-Z]|[^_]_[^_]")
"""A name that is hardly that of anything else."""
_known: WeakKeyDictionary[Catalogue, tuple[str, ...]] = WeakKeyDictionary()


def first_questions(tables: Tables) -> tuple[str, ...]:
    """Up to four, each of another kind; fewer where there is little. Remembered until a table
    changes."""
    catalogue = tables.catalogue()
    if catalogue not in _known:
        _known[catalogue] = tuple(_questions(tables, catalogue)) if catalogue.paths else ()
    return _known[catalogue]


def _questions(tables: Tables, catalogue: Catalogue) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    yield f"What is {tables.location.name}, and how is it organised?"
    rows = tables.reference_rows(("name", "path", "kind", "unit_id"), MOST_REFERENCES)
    source = [path for path, role in catalogue.roles().items() if role == "source"]
    kind, inside = pc.field("kind"), pc.field("path").isin(pa.array(source, pa.string()))

    def counted(by: str, what: str, where: pc.Expression) -> dict[str, int]:
        """How many different `what` the references `where` that holds have for each `by`."""
        groups = rows.filter(where).group_by(by).aggregate([(what, "count_distinct")])
        columns = groups.to_pydict()
        return dict(zip(columns[by], columns[f"{what}_count_distinct"], strict=True))

    used = counted("name", "path", kind != "import")
    calls = counted("unit_id", "name", kind == "call")
    heirs = counted("name", "unit_id", (kind == "inherits") & inside)
    names = sorted(used, key=lambda name: (-used[name], name))[:OFTEN]
    found = tables.named([*map(name_key, names)], 5 * OFTEN, Filter(roles=("source",)))
    found = [u for u in found if u.name in used and not (_DULL.match(u.name) or is_test(u))]
    readmes = tables.units(Filter(paths=tuple(f"{name}*" for name in README_NAMES)))
    readme = " ".join(unit.source_code for unit in readmes)
    told, main = set(re.findall(r"\w+", readme)), [unit.id for unit in tables.named(["main"])]
    shown = {one.name for one in tables.references(unit_id=main)} if main else set[str]()
    shown.update(re.findall(r"(\w+)\(", readme))

    def worth_of_type(unit: Unit) -> float:
        return used[unit.name] * math.log2(_lines(unit)) * (1 + (unit.name in told))

    def worth(unit: Unit) -> float:
        likely = (1 + (unit.name in shown)) * (1 + (unit.class_name in central))
        return math.log2(1 + used[unit.name]) * math.pow(calls[unit.id], 0.7) * likely

    large = (unit for unit in found if unit.kind in _TYPES and _lines(unit) >= LONG)
    types = _best(large, worth_of_type)
    settings = [unit for unit in types if _SETTINGS.fullmatch(unit.name)]
    types = [unit for unit in types if unit not in settings]
    bases = [unit for unit in types[1:] if heirs.get(unit.name, 0) >= HEIRS]
    central = {unit.qualified_name for unit in types[:CENTRAL]}
    busy = (unit for unit in found if unit.is_method and calls.get(unit.id, 0) >= CALLING)
    functions = _best((unit for unit in busy if unit.kind != "constructor"
                       and (unit.class_name in central or unit.name in shown
                            or _OF_WORDS.search(unit.name))), worth)  # fmt: skip
    others = [unit for unit in functions[1:] if _OF_WORDS.search(unit.name)]
    if types:
        yield f"How does {_called(types[0])} work?"
    if functions:
        yield f"What happens when {_called(functions[0])} is called?"
    if settings and _lines(settings[0]) >= SETTINGS:
        yield f"What can be set in {_called(settings[0])}?"
    elif bases:
        does = "inherits from" if bases[0].kind == "class" else "implements"
        yield f"What {does} {_called(bases[0])}?"
    elif others:
        yield f"Who calls {_called(others[0])}?"


def _best(units: Iterable[Unit], worth: Callable[[Unit], float]) -> list[Unit]:
    """Those of few owners, the best first."""
    units, owners = list(units), dict[str, set[tuple[str, str]]]()
    for unit in units:
        owners.setdefault(unit.name, set()).add((unit.class_name, unit.path.rpartition("/")[0]))
    few = [unit for unit in units if len(owners[unit.name]) <= OWNERS]
    return sorted(few, key=lambda u: (-worth(u) / len(owners[u.name]), u.path, u.start_line))


def _lines(unit: Unit) -> int:
    return unit.end_line - unit.start_line + 1


def _called(unit: Unit) -> str:
    """Its name as code, with its owner's where it is a method or a word that others have, too."""
    parts = re.split(r"(::|\.|\\|#)", unit.qualified_name)
    alone = not unit.is_method and _OF_WORDS.search(unit.name)
    return code_span("".join(parts[-1 if alone else -3 :]))
