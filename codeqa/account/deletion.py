"""Deleting what is stored of a user, and looking for it in the bytes that are left.

What was said is taken apart into needles before it is deleted: ids, and pieces of questions,
answers, titles, reasons and facts, as UTF-8 and as JSON writes them. Everything in the data folder
is then searched for all of them, except the index tables below `repos/`: those hold the
repository's code, of which questions and answers quote pieces, so they are searched for ids alone.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from codeqa.account.bytesearch import LEAST_BYTES, Needles, Searched, search_files
from codeqa.account.inventory import DataInventory, counted, prefix_of
from codeqa.account.profile import LEARNT, kind_of
from codeqa.errors import NotFoundError, StorageError, UsageError
from codeqa.intents import read_mode
from codeqa.intents.classifier import CACHE_SECONDS, cache_key
from codeqa.state import Conversation, State
from codeqa.text.tag import strip_tag
from codeqa.text.tokens import words

SCOPES = ("conversation", "profile", "everything")

SEARCH_SECONDS = 30.0
"""Longest that the bytes are searched: about a gigabyte; what was said comes first."""
TEXT_BYTES = 12
"""Shorter texts are not searched for by themselves: they may stand anywhere."""
ID_BYTES = 16
"""Shorter names of conversations, which clients give, are not searched for."""
PIECE_CHARACTERS = 40
"""Short enough to lie within a page of the database nearly always."""
PIECES = 3
log = logging.getLogger(__name__)

NOT_UNCACHED = (
    "The Redis server could not be asked to delete what it holds: code that was found goes there "
    "by itself within 24 hours, what kind a question was within 30 minutes."
)


@dataclass(frozen=True, slots=True)
class DeletionResult:
    """What was deleted, and what the search of the data folder for it came to."""

    scope: str
    counts: Mapping[str, int]
    """`conversations`, `turns`, `thumbs`, `vectors`, `facts` and `cached` values."""
    searched_files: int
    searched_bytes: int
    searched_texts: int
    """Pieces and ids that were looked for."""
    found: tuple[str, ...] = ()
    """What is left although it should be gone, one sentence each; no text is repeated."""
    kept: tuple[str, ...] = ()
    """What of it stands elsewhere on purpose, one sentence each."""
    problems: tuple[str, ...] = ()
    """What could not be done or seen, one sentence each."""

    def as_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(slots=True)
class _Wanted:
    """Needles and what they were, ids apart."""

    ids: dict[bytes, str] = field(default_factory=dict)
    texts: dict[bytes, str] = field(default_factory=dict)
    intents: set[str] = field(default_factory=set)
    """Keys under which intents of the questions may be cached: those say nothing of a user."""

    def add_id(self, text: str) -> None:
        if len(data := text.encode()) >= ID_BYTES:
            self.ids[data] = text

    def add_text(self, text: str) -> None:
        for piece in pieces_of(text):
            self.add_exactly(piece, TEXT_BYTES)

    def add_exactly(self, text: str, least: int = LEAST_BYTES) -> None:
        for form in (text, json.dumps(text)[1:-1]):
            if len(data := form.encode()) >= least:
                self.texts[data] = form


@dataclass(frozen=True, slots=True)
class Privacy:
    """What is stored of each user (`inventory`), and how it is deleted for good."""

    inventory: DataInventory

    @property
    def state(self) -> State:
        return self.inventory.state

    def delete(
        self, scope: str, user: str, conversation: str = "", repository: str | None = None
    ) -> DeletionResult:
        """Delete a conversation, the profile or everything of `user`, in state and cache, have
        the state file written anew, and search the data folder for what was deleted.

        Raises NotFoundError for a conversation that is not there, UsageError for another scope,
        StorageError when nothing can be deleted.
        """
        if scope not in SCOPES:
            raise UsageError("There is nothing of that name.", f"Choose one: {', '.join(SCOPES)}.")
        if scope == "conversation" and not conversation:
            raise UsageError("No conversation is named.", "Name one, or choose another scope.")
        if scope != "conversation":
            conversation, repository = "", None
        wanted = self._wanted(scope, user, conversation, repository)
        before = self.state.user_data.counts(user)
        if scope == "conversation":
            if self.state.conversations.get(conversation, user, repository) is None:
                raise NotFoundError("There is no such conversation.", "It may be gone already.")
            self.state.conversations.delete(conversation, user, repository)
        elif scope == "profile":
            self.state.profile.clear(user)
        else:
            self.state.user_data.delete(user)
        problems: list[str] = []
        cached = 0
        if scope != "profile":
            cached = self._forget_cached(user, conversation, wanted, problems)
        try:
            self.state.compact()
        except StorageError as error:
            problems.append(str(error))
        after = self.state.user_data.counts(user)
        counts = {
            "conversations": before.conversations - after.conversations,
            "turns": before.turns - after.turns,
            "thumbs": before.thumbs - after.thumbs,
            "vectors": before.questions - after.questions,
            "facts": before.facts - after.facts,
            "cached": cached,
        }
        searched = self._search(wanted, problems)
        found, kept = self._judged(searched, wanted, user)
        return DeletionResult(
            scope,
            {name: max(0, count) for name, count in counts.items()},
            searched.files,
            searched.size,
            len(wanted.ids) + len(wanted.texts),
            found,
            kept,
            tuple(problems),
        )

    def conversation(self, conversation: str, user: str) -> Conversation:
        """The conversation that was last continued under this id. Raises NotFoundError."""
        found = self.state.conversations.get(conversation, user)
        if found is None:
            raise NotFoundError("There is no such conversation.", "It may be gone already.")
        return found

    def forget_facts(self, user: str, facts: Sequence[str]) -> int:
        """Delete single facts, each by its kind, its key or what was told (`facts_to_forget`),
        also from the bytes of the file; how many there were."""
        told = [_plain(fact) for fact in facts]

        def named(key: str, value: str) -> bool:
            kind = kind_of(key)
            # Facts of earlier kinds are known by their value alone: "new to Rust".
            by_value = kind not in LEARNT and any(_plain(value) in one for one in told)
            return key in facts or kind in facts or by_value

        known = self.state.profile.facts(user)
        keys = [key for key, fact in known.items() if named(key, fact.value)]
        deleted = sum(self.state.profile.delete(key, user) for key in keys)
        if deleted:
            try:
                self.state.compact()
            except StorageError as error:  # it is deleted; its bytes go with the next compacting
                log.warning("a deleted fact may still be in the file's bytes: %s", error)
        return deleted

    def _forget_cached(
        self, user: str, conversation: str, wanted: _Wanted, problems: list[str]
    ) -> int:
        """Delete the cached contexts, and the intents of what was asked lately; how many
        contexts there were."""
        total = 0
        for cache in self.inventory.caches():
            deleted = cache.delete_prefix(prefix_of(user, conversation))
            total += deleted or 0
            for key in wanted.intents:
                cache.delete(key)
            if deleted is None:
                problems.append(NOT_UNCACHED)
        return total

    def _wanted(self, scope: str, user: str, conversation: str, repository: str | None) -> _Wanted:
        wanted = _Wanted()
        if scope != "conversation":
            for key, fact in self.state.profile.facts(user).items():
                # As a row, as a line for a model, and as JSON: short values alone are anywhere.
                wanted.add_exactly(f"{user}{key}{fact.value}")
                wanted.add_exactly(f"{kind_of(key)}: {fact.value}", TEXT_BYTES)
                wanted.add_text(fact.value)
        if scope == "profile":
            return wanted
        wanted.add_id(conversation)
        for said in self.state.user_data.turns(user, conversation or None, repository):
            wanted.add_id(said.turn)
            wanted.add_id(said.conversation)
            for text in (said.title, said.question, said.answer, said.reason):
                wanted.add_text(text)
            if said.created > time.time() - CACHE_SECONDS:
                _, text = read_mode(strip_tag(said.question))
                wanted.intents |= {cache_key(user, text, history) for history in (True, False)}
        return wanted

    def _search(self, wanted: _Wanted, problems: list[str]) -> Searched:
        searched = Searched()
        until = time.monotonic() + SEARCH_SECONDS
        state = set(self.inventory.state_files())
        ours: list[Path] = []
        tables: list[Path] = []
        repositories = self.inventory.settings.data_dir / "repos"
        for path in _files(self.inventory.settings.data_dir):
            if path not in state:
                (tables if path.is_relative_to(repositories) else ours).append(path)
        everything = Needles([*wanted.ids, *wanted.texts])
        search_files([*sorted(state), *ours], everything, searched, until)
        search_files(tables, Needles(wanted.ids), searched, until)
        if searched.unread:
            problems.append(
                f"{counted(len(searched.unread), 'file')} of the data folder could not be searched "
                f"within {SEARCH_SECONDS:g} seconds or not be read."
            )
        return searched

    def _judged(
        self, searched: Searched, wanted: _Wanted, user: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What was found and is left, and what was found because something kept says the same.

        That another user's row says the same is not told: whoever deletes a guess would learn
        what others wrote.
        """
        state = set(self.inventory.state_files())
        left: dict[Path, int] = {}
        in_state = [needle for needle, paths in searched.found.items() if state & set(paths)]
        held, said = self._held(Needles(in_state), user) if in_state else (set(), 0)
        for needle, paths in searched.found.items():
            for path in paths:
                if not (needle in held and path in state):
                    left[path] = left.get(path, 0) + 1
        kept = []
        if said:
            kept.append(
                f"Some of it also stands in {counted(said, 'conversation')} of yours that you "
                "keep: delete those, or everything, to remove it there."
            )
        return tuple(self._left(path, count) for path, count in left.items()), tuple(kept)

    def _held(self, needles: Needles, user: str) -> tuple[set[bytes], int]:
        """Which needles a row that is kept holds, whoever's it is, and in how many conversations
        of `user` one of them stands."""
        held: set[bytes] = set()
        own: set[tuple[str, str]] = set()
        for row in self.state.user_data.texts_of_everybody():
            found = needles.in_block(row.text.encode("utf-8", "replace"))
            held |= found
            if found and row.user == user:
                own.add((row.repository, row.conversation))
        return held, len(own)

    def _left(self, path: Path, count: int) -> str:
        shown = path.relative_to(self.inventory.settings.data_dir)
        return f"{counted(count, 'piece')} of what was deleted can still be found in {shown}."


def _plain(text: str) -> str:
    """The words of `text` in small letters, each between blanks."""
    return f" {' '.join(words(text)).casefold()} "


def pieces_of(text: str) -> Iterator[str]:
    """A few telling pieces of `text`, each from within a line: its first, longest and last."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        return
    chosen = dict.fromkeys((lines[0], max(lines, key=len), lines[-1]))
    for line in list(chosen)[:PIECES]:
        yield line[:PIECE_CHARACTERS].strip()
        if len(line) > 2 * PIECE_CHARACTERS:
            yield line[-PIECE_CHARACTERS:].strip()


def _files(folder: Path) -> Iterator[Path]:
    """Every plain file below `folder`; links are not followed."""
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(base, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    yield path
            except OSError:
                continue
