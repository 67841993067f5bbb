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
from collections import Counter
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
class _Said:
    """What is to be gone, as needles; ids apart."""

    ids: set[bytes] = field(default_factory=set)
    texts: set[bytes] = field(default_factory=set)
    intents: set[str] = field(default_factory=set)
    """Keys under which intents of the questions may be cached: those say nothing of a user."""

    def add_id(self, text: str) -> None:
        if len(data := text.encode()) >= ID_BYTES:
            self.ids.add(data)

    def add_text(self, text: str) -> None:
        for piece in pieces_of(text):
            self.add_exactly(piece, TEXT_BYTES)

    def add_exactly(self, text: str, least: int = LEAST_BYTES) -> None:
        forms = (text.encode(), json.dumps(text)[1:-1].encode())
        self.texts |= {form for form in forms if len(form) >= least}


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
            conversation = ""
        state, data = self.state, self.state.user_data
        place = ""
        if scope == "conversation":
            place = self.conversation(conversation, user, repository).repository
        said = self._needles_of(scope, user, conversation, place)
        before = data.counts(user)
        if scope == "conversation":
            state.conversations.delete(conversation, user, place)
        elif scope == "profile":
            state.profile.clear(user)
        else:
            data.delete(user)
        problems: list[str] = []
        cached = 0
        if scope != "profile":
            cached = self._forget_cached(user, conversation, said, problems)
        try:
            state.compact()
        except StorageError as error:
            problems.append(str(error))
        after = data.counts(user)
        counts = {
            "conversations": before.conversations - after.conversations,
            "turns": before.turns - after.turns,
            "thumbs": before.thumbs - after.thumbs,
            "vectors": before.questions - after.questions,
            "facts": before.facts - after.facts,
            "cached": cached,
        }
        searched = self._search(said)
        if searched.unread:
            problems.append(
                f"{counted(len(searched.unread), 'file')} of the data folder could not be searched "
                f"within {SEARCH_SECONDS:g} seconds or not be read."
            )
        found, kept = self._judged(searched, user)
        return DeletionResult(
            scope=scope,
            counts={name: max(0, count) for name, count in counts.items()},
            searched_files=searched.files,
            searched_bytes=searched.size,
            searched_texts=len(said.ids) + len(said.texts),
            found=found,
            kept=kept,
            problems=tuple(problems),
        )

    def conversation(
        self, conversation: str, user: str, repository: str | None = None
    ) -> Conversation:
        """The conversation of this id about `repository`, or the one that was continued last.

        Raises NotFoundError.
        """
        found = self.state.conversations.get(conversation, user, repository)
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

    def _forget_cached(self, user: str, conversation: str, said: _Said, problems: list[str]) -> int:
        """Delete the cached contexts, and the intents of what was asked lately; how many
        contexts there were."""
        total = 0
        for cache in self.inventory.caches():
            deleted = cache.delete_prefix(prefix_of(user, conversation))
            total += deleted or 0
            for key in said.intents:
                cache.delete(key)
            if deleted is None:
                problems.append(NOT_UNCACHED)
        return total

    def _needles_of(self, scope: str, user: str, conversation: str, repository: str) -> _Said:
        said = _Said()
        if scope != "conversation":
            for key, fact in self.state.profile.facts(user).items():
                # As a row, as a line for a model, and as JSON: short values alone are anywhere.
                said.add_exactly(f"{user}{key}{fact.value}")
                said.add_exactly(f"{kind_of(key)}: {fact.value}", TEXT_BYTES)
                said.add_text(fact.value)
        if scope == "profile":
            return said
        said.add_id(conversation)
        for turn in self.state.user_data.turns(user, conversation, repository):
            said.add_id(turn.turn)
            said.add_id(turn.conversation)
            for text in (turn.title, turn.question, turn.answer, turn.reason):
                said.add_text(text)
            if turn.created > time.time() - CACHE_SECONDS:
                _, text = read_mode(strip_tag(turn.question))
                said.intents |= {cache_key(user, text, history) for history in (True, False)}
        return said

    def _search(self, said: _Said) -> Searched:
        """The data folder, searched: what was said comes first, index tables last."""
        searched = Searched()
        until = time.monotonic() + SEARCH_SECONDS
        folder = self.inventory.settings.data_dir
        state = self.inventory.state_files()
        files = [path for path in _files(folder) if path not in state]
        tables = [path for path in files if path.is_relative_to(folder / "repos")]
        ours = [*state, *sorted({*files} - {*tables})]
        search_files(ours, Needles(said.ids | said.texts), searched, until)
        search_files(tables, Needles(said.ids), searched, until)
        return searched

    def _judged(self, searched: Searched, user: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What was found and is left, and what was found because something kept says the same.

        That another user's row says the same is not told: whoever deletes a guess would learn
        what others wrote.
        """
        state = set(self.inventory.state_files())
        in_state = Needles(needle for needle, paths in searched.found.items() if state & paths)
        held: set[bytes] = set()
        own: set[tuple[str, str]] = set()
        for row in self.state.user_data.texts_of_everybody() if in_state.all else ():
            stands = in_state.in_block(row.text.encode("utf-8", "replace"))
            held |= stands
            if stands and row.user == user:
                own.add((row.repository, row.conversation))
        left = Counter(
            path
            for needle, paths in searched.found.items()
            for path in paths
            if not (needle in held and path in state)
        )
        folder = self.inventory.settings.data_dir
        found = tuple(
            f"{counted(count, 'piece')} of what was deleted can still be found in "
            f"{path.relative_to(folder)}."
            for path, count in left.items()
        )
        if not own:
            return found, ()
        return found, (
            f"Some of it also stands in {counted(len(own), 'conversation')} of yours that you "
            "keep: delete those, or everything, to remove it there.",
        )


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
