"""Several repositories that are asked as one: which are meant, what they are called, and how their
indices are opened."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from codeqa.errors import CodeQAError, IndexMissingError, NotFoundError, UsageError
from codeqa.repositories import find_repository
from codeqa.settings import Settings
from codeqa.store import Location, Tables, list_locations
from codeqa.store.multi_repo import ID_SEPARATOR, Member, MultiRepoTables

MOST_REPOSITORIES = 50
NAMED = 3
"""Repositories whose names stand for all of them."""
RETRY_SECONDS = 5.0
"""After which a repository whose index could not be opened is tried again."""

_AT_REPO = re.compile(r"(?<!\S)@repo:(?:\"([^\"]+)\"|([^\s,;:?!]+))")
_UNSAFE = re.compile(r"[^\w.-]+")


def end_of(id_: str) -> str:
    """The end of a repository's id, which no other repository's has."""
    return id_.rpartition("-")[2]


def member_names(locations: Sequence[Location]) -> dict[str, Location]:
    """What each is called among the others, by name: where two are called alike, with as many
    folders around them before it as tell them apart."""
    found: dict[str, Location] = {}
    for depth in range(1, 1 + max((len(one.root.parts) for one in locations), default=0)):
        called: dict[str, list[Location]] = {}
        for one in locations:
            parts = (*one.root.parent.parts[-depth + 1 :], one.name)[-depth:]
            name = _UNSAFE.sub("-", "-".join(parts)).strip("-.")
            called.setdefault(name, []).append(one)
        alone = {name: same[0] for name, same in called.items() if len(same) == 1 and name}
        found |= {name: one for name, one in alone.items() if name not in found}
        locations = [one for one in locations if one not in found.values()]
    found |= {one.id: one for one in locations}
    return dict(sorted(found.items()))


def multi_repo_location(
    settings: Settings, members: Mapping[str, Location], id_: str = ""
) -> Location:
    """What stands for all of `members` where one repository is meant; nothing lies there. Its id is
    `id_`, where some are gone by now, else made of theirs.

    Raises UsageError for too many.
    """
    if len(members) > MOST_REPOSITORIES:
        raise UsageError(
            f"{len(members)} repositories are more than can be asked at once.",
            f"Choose up to {MOST_REPOSITORIES}.",
        )
    id_ = id_ or ID_SEPARATOR.join(sorted(end_of(one.id) for one in members.values()))
    folder, names = settings.data_dir / "repos" / ID_SEPARATOR, list(members)
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return Location(folder / " + ".join([*names[:NAMED], *more]), id_, folder, str(folder))


def locations_of(settings: Settings, id_: str) -> list[Location]:
    """The repositories that `id_` stands for, those that are indexed.

    Raises NotFoundError when none is.
    """
    wanted = {end_of(one) for one in id_.split(ID_SEPARATOR)}
    every = (*list_locations(settings), *list_locations(settings, "revs/*"))
    found = [one for one in every if end_of(one.id) in wanted]
    if not found:
        raise NotFoundError("None of these repositories is indexed.", "Choose from the list.")
    return found


def repositories_meant(
    settings: Settings, chosen: Sequence[Location], question: str
) -> tuple[list[Location], str]:
    """The repositories that a question is asked of, `chosen` and those that it names as
    `@repo:name`, and the question with the folders of those that it names.

    Raises NotFoundError for a name that none has, or several.
    """
    if not _AT_REPO.search(question):
        return list(chosen), question
    called = member_names(list_locations(settings))
    named: dict[str, Location] = {}
    for match in _AT_REPO.finditer(question):
        name = match[1] or match[2].rstrip(".")
        named[match[0]] = called.get(name) or find_repository(settings, name)
    every = {one.id: one for one in (*chosen, *named.values())}
    names = {one.id: name for name, one in member_names(list(every.values())).items()}

    def folder(match: re.Match[str]) -> str:
        # Of one repository nothing remains to be pointed at.
        return f"@{names[named[match[0]].id]}/" if len(every) > 1 else ""

    return list(every.values()), _AT_REPO.sub(folder, question).strip()


def open_multi_repo_tables(
    location: Location, places: Mapping[str, Location]
) -> Callable[[], MultiRepoTables]:
    """Give a function that opens the indices at `places` (name → place) as one.

    One that cannot be opened is left out, and tried again after RETRY_SECONDS. Raises what opening
    the last one raised where none can be opened.
    """
    found, lock, tried = MultiRepoTables(location, ()), threading.Lock(), 0.0

    def opened() -> MultiRepoTables:
        nonlocal tried
        with lock:
            missing = [name for name in places if name not in found.members]
            if missing and time.monotonic() - tried >= RETRY_SECONDS:
                for name in missing:
                    try:
                        found.members[name] = Member(name, Tables.open(places[name]))
                        found.left_out.pop(name, None)
                    except CodeQAError as error:
                        found.left_out[name] = str(error)
                tried = time.monotonic()
            if not found.members:
                raise IndexMissingError(
                    "None of these repositories can be read.", " ".join(found.notices)
                )
            return found

    return opened
