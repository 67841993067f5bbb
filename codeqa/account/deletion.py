"""Deleting what is stored of a user, and looking for it in the bytes that are left.

What was said is taken apart into needles before it is deleted: ids, and pieces of questions,
answers, titles, reasons and facts, as UTF-8 and as JSON writes them. Everything in the data folder
is then searched for all of them, except the index tables below `repos/`: those hold the
repository's code, of which questions and answers quote pieces, so they are searched for ids alone.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from codeqa.account.bytesearch import LEAST_BYTES, Needles, Searched, search_files
from codeqa.account.facts import LEARNT, kind_of
from codeqa.account.inventory import DataInventory, counted, prefix_of
from codeqa.errors import NotFoundError, StorageError, UsageError
from codeqa.intents import cache_prefix
from codeqa.state import Conversation, State

SCOPES = ("conversation", "profile", "everything")

SEARCH_SECONDS = 30.0
"""Longest that the bytes are searched: about a gigabyte; what was said comes first."""
TEXT_BYTES = 12
"""Shorter texts are not searched for by themselves: they may stand anywhere."""
ID_BYTES = 16
"""Shorter names of conversations, which clients give, are not searched for."""
PIECE_CHARACTERS = 40
"""Short enough to lie within a page of the database nearly always."""
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
        state, data = self.state, self.state.user_data
        before = data.counts(user)
        if scope == "conversation":
            place = self.conversation(conversation, user, repository).repository
            ids, texts = self._said(user, conversation, place)
            state.conversations.delete(conversation, user, place)
        elif scope == "profile":
            ids, texts = set(), self._told(user)
            state.profile.clear(user)
        else:
            ids, texts = self._said(user)
            texts |= self._told(user)
            data.delete(user)
        problems: list[str] = []
        cached = 0
        if scope != "profile":
            name = conversation if scope == "conversation" else ""
            for cache in self.inventory.caches():
                deleted = cache.delete_prefix(prefix_of(user, name))
                cache.delete_prefix(cache_prefix(user))
                cached += deleted or 0
                if deleted is None:
                    problems.append(NOT_UNCACHED)
        try:
            state.compact()
        except StorageError as error:
            problems.append(str(error))
        after = asdict(data.counts(user))
        searched = self._search(ids, texts)
        if searched.unread:
            problems.append(
                f"{counted(len(searched.unread), 'file')} of the data folder could not be searched "
                f"within {SEARCH_SECONDS:g} seconds or not be read."
            )
        found, kept = self._judged(searched, user)
        gone = {name: max(0, number - after[name]) for name, number in asdict(before).items()}
        gone.pop("repositories")
        return DeletionResult(
            scope=scope,
            counts={**gone, "cached": cached},
            searched_files=searched.files,
            searched_bytes=searched.size,
            searched_texts=len(ids) + len(texts),
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
        said = f" {' '.join(facts)} ".casefold()

        def named(key: str, value: str) -> bool:
            kind = kind_of(key)
            # Facts of earlier kinds are known by their value alone: "new to Rust".
            by_value = kind not in LEARNT and f" {value} ".casefold() in said
            return key in facts or kind in facts or by_value

        profile = self.state.profile
        keys = [key for key, value in profile.facts(user).items() if named(key, value)]
        deleted = sum(profile.delete(key, user) for key in keys)
        if deleted:
            try:
                self.state.compact()
            except StorageError as error:  # it is deleted; its bytes go with the next compacting
                log.warning("a deleted fact may still be in the file's bytes: %s", error)
        return deleted

    def _told(self, user: str) -> set[bytes]:
        """The facts of a user as needles: as a row, as a line for a model, and as JSON; short
        values alone are anywhere."""
        texts: set[bytes] = set()
        for key, value in self.state.profile.facts(user).items():
            texts |= _forms(f"{user}{key}{value}", LEAST_BYTES)
            for piece in (f"{kind_of(key)}: {value}", *pieces_of(value)):
                texts |= _forms(piece)
        return texts

    def _said(
        self, user: str, conversation: str = "", repository: str = ""
    ) -> tuple[set[bytes], set[bytes]]:
        """The ids of a user's turns, or of those of one conversation, and pieces of their texts."""
        ids, texts = {conversation}, set()
        for turn in self.state.user_data.turns(user, conversation, repository):
            ids |= {turn.turn, turn.conversation}
            for text in (turn.title, turn.question, turn.answer, turn.reason):
                for piece in pieces_of(text):
                    texts |= _forms(piece)
        return {data for one in ids if len(data := one.encode()) >= ID_BYTES}, texts

    def _search(self, ids: set[bytes], texts: set[bytes]) -> Searched:
        """The data folder, searched: what was said comes first, index tables last."""
        searched = Searched()
        until = time.monotonic() + SEARCH_SECONDS
        folder, state = self.inventory.settings.data_dir, self.inventory.state_files()
        files = [p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink()]
        tables = [path for path in files if path.is_relative_to(folder / "repos")]
        ours = dict.fromkeys((*state, *files))
        for path in tables:
            del ours[path]
        search_files(ours, Needles(ids | texts), searched, until)
        search_files(tables, Needles(ids), searched, until)
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


def _forms(text: str, least: int = TEXT_BYTES) -> set[bytes]:
    """`text` as UTF-8 and as JSON writes it, where that is long enough to tell something."""
    forms = (text.encode(), json.dumps(text)[1:-1].encode())
    return {form for form in forms if len(form) >= least}


def pieces_of(text: str) -> Iterator[str]:
    """A few telling pieces of `text`, each from within a line: its first, longest and last."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    if not lines:
        return
    chosen = dict.fromkeys((lines[0], max(lines, key=len), lines[-1]))
    for line in chosen:
        yield line[:PIECE_CHARACTERS].strip()
        if len(line) > 2 * PIECE_CHARACTERS:
            yield line[-PIECE_CHARACTERS:].strip()
