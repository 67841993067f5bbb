"""What one worker process does: read a file, judge it, parse it, send what came of it.

The process speaks over its standard input and output: messages of plain tuples, each an
eight-byte length and then `marshal`'s form. Dataclasses would cost the receiving process
several times as much, and it is the one that everything waits for.
"""

from __future__ import annotations

import errno
import faulthandler
import importlib
import marshal
import os
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

from codeqa.repository.reading import read_with_status
from codeqa.repository.skip import classify
from codeqa.types import ParsedFile, Reference, Skipped, Unit

NICENESS = 5
"""Parsing makes way for everything else on the machine."""

READY = ("ready",)
"""The first thing a worker says, when its imports are done."""

PARSER_FAILED = "the parser failed on it"

SECONDS_TO_START = 60.0
"""Imports and grammars take 0.2 s; a loaded machine takes longer."""

_LENGTH = struct.Struct("<Q")

FileOutcome = tuple[str, int, int, str, str, str, int, bool, Any]
"""path, size, mtime_ns, hash, role, reason, masked, unchanged, packed ParsedFile or None."""


def parse_entry(
    root: Path,
    path: str,
    max_file_bytes: int,
    known_hash: str = "",
    packer: Callable[[ParsedFile], Any] | None = None,
) -> FileOutcome:
    """Read and parse one file; whatever it holds, an outcome comes back.

    `packer` makes what is sent of the ParsedFile (anything `marshal` takes), else `pack_parsed`.
    """
    from codeqa.parsing import parse_file

    try:
        data, status = read_with_status(root, path, max_bytes=max_file_bytes)
    except OSError as error:
        return (path, 0, 0, "", "", _reason(error, max_file_bytes), 0, False, None)
    digest = blake2b(data, digest_size=16).hexdigest()
    read = (path, len(data), status.st_mtime_ns, digest)
    if digest == known_hash:
        return (*read, "", "", 0, True, None)
    try:
        verdict = classify(path, data)
        if isinstance(verdict, Skipped):
            return (*read, "", verdict.reason, 0, False, None)
        parsed = parse_file(path, data, verdict)
        packed = (packer or pack_parsed)(parsed)
    except Exception:  # one file must never end the run
        return (*read, "", PARSER_FAILED, 0, False, None)
    return (*read, verdict, "", parsed.masked, False, packed)


def _reason(error: OSError, max_file_bytes: int) -> str:
    if error.errno == errno.EFBIG:
        return f"larger than {max_file_bytes:,} bytes"
    return f"unreadable: {error.strerror or type(error).__name__}"


_unit_values = attrgetter(*Unit.__dataclass_fields__)
_reference_values = attrgetter(*Reference.__dataclass_fields__)


def pack_parsed(parsed: ParsedFile) -> tuple[Any, ...]:
    """A ParsedFile as nested tuples of strings and numbers."""
    return (
        parsed.path,
        parsed.language,
        tuple(map(_unit_values, parsed.units)),
        tuple(map(_reference_values, parsed.references)),
        parsed.has_errors,
        parsed.replaced_bytes,
        parsed.masked,
    )


def unpack_parsed(packed: tuple[Any, ...]) -> ParsedFile:
    """Inverse of `pack_parsed`."""
    path, language, units, references, has_errors, replaced, masked = packed
    return ParsedFile(
        path,
        language,
        tuple([Unit(*fields) for fields in units]),
        tuple([Reference(*fields) for fields in references]),
        has_errors,
        replaced,
        masked,
    )


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message. Raises OSError when the other side is gone."""
    data = marshal.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; None when the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return marshal.loads(data) if len(data) == length else None


def named_function(name: str) -> Callable[[ParsedFile], Any]:
    """The function that `name` (`package.module:function`) names, or with an argument
    (`package.module:function=argument`) what that function makes of it."""
    name, made, argument = name.partition("=")
    module, _, attribute = name.partition(":")
    function: Any = getattr(importlib.import_module(module), attribute)
    packer: Callable[[ParsedFile], Any] = function(argument) if made else function
    return packer


def run_worker() -> None:
    """Serve until the standard input ends, which it also does when the parent dies.

    A start or a file that takes too long ends the process, even where a parser hangs.
    """
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)
    messages, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that prints may break the protocol
    with open(os.devnull, "w") as silent, suppress(OSError):  # noqa: PTH123
        limit = partial(faulthandler.dump_traceback_later, exit=True, file=silent)
        limit(SECONDS_TO_START)
        start = receive(messages)
        import codeqa.parsing  # noqa: F401 (slow, and to be done before the first file's clock)

        packer = named_function(start[3]) if start is not None and start[3] else None
        faulthandler.cancel_dump_traceback_later()
        send(results, READY)
        while start is not None and (batch := receive(messages)) is not None:
            root, max_file_bytes, seconds, _ = start
            for path, known_hash in batch:
                limit(seconds)
                outcome = parse_entry(Path(root), path, max_file_bytes, known_hash, packer)
                faulthandler.cancel_dump_traceback_later()
                send(results, outcome)
