"""What the index and the files say to the citations of one answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from codeqa.errors import CodeQAError
from codeqa.repositories.files import Files
from codeqa.search.mentions import definitions_called
from codeqa.store import Tables
from codeqa.types import Chunk, Unit


@dataclass(frozen=True)
class CitedCode:
    """Looks paths, lines and symbols up for one answer; each file is read once."""

    files: Files
    tables: Tables
    chunks: Sequence[Chunk] = ()
    """What was sent."""
    _read: dict[str, list[str] | None] = field(default_factory=dict)
    _found: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _sent(self) -> list[str]:
        return list(dict.fromkeys(chunk.path for chunk in self.chunks))

    def path_of(self, written: str) -> str:
        """The one indexed file that `written`, a path or the end of one, means; '' for none.

        What was sent goes before the rest of the repository.
        """
        if written not in self._found:
            self._found[written] = self._path_of(written.removeprefix("./").lstrip("/"))
        return self._found[written]

    def _path_of(self, written: str) -> str:
        catalogue = self.tables.catalogue()
        if written in catalogue.paths or not written:
            return written
        for known in (self._sent, catalogue.by_file_name.get(written.rpartition("/")[2], ())):
            ending = [path for path in known if path.endswith("/" + written)]
            if ending:
                return ending[0] if len(ending) == 1 else ""
        return ""

    def lines(self, path: str) -> list[str] | None:
        """The lines of `path` as they are now; None when it is no readable indexed file."""
        if path not in self._read:
            try:
                text = self.files.read(path).text
            except CodeQAError:  # one file that cannot be read must not cost the whole answer
                self._read[path] = None
            else:
                self._read[path] = text.removesuffix("\n").split("\n")
        return self._read[path]

    def has_changed(self, path: str, start: int, end: int) -> bool:
        """Whether these lines differ from what was sent of them."""
        now = (self.lines(path) or [])[start - 1 : end]
        sent = (
            chunk.content.split("\n")[start - chunk.start_line : end - chunk.start_line + 1]
            for chunk in self.chunks
            if chunk.holds(path, start, end)
        )
        return any(then != now for then in sent)

    def speaks_of(self, path: str, start: int, end: int, symbols: Sequence[str]) -> bool:
        """Whether one of `symbols` stands in these lines, or is the definition around them."""
        lines = self.lines(path) or []
        text = "\n".join(lines[start - 1 : end])
        last = {re.split(r"\W+", symbol)[-1] for symbol in symbols} - {""}
        if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in last):
            return True
        around = (
            part
            for unit in self.tables.in_file(path)
            if unit.start_line <= end and start <= unit.end_line
            for part in re.split(r"\W+", unit.qualified_name)
        )
        return not last.isdisjoint(around)

    def definition(self, symbol: str) -> Unit | None:
        """The one definition that `symbol` names, with its owners where they are written; None
        where there is none, or several."""
        called = definitions_called(self.tables, symbol)
        return called[0] if len(called) == 1 else None
