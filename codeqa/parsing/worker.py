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
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

from codeqa.repository.classify import classify
from codeqa.repository.reading import read_with_status
from codeqa.types import ParsedFile, Reference, Skipped, Unit

Packer = Callable[[ParsedFile], Any]
"""Makes something of a ParsedFile that `marshal` takes."""

NICENESS = 5
"""Parsing makes way for everything else on the machine."""

READY = ("ready",)
"""The first thing a worker says, when its imports are done."""

PARSER_FAILED = "the parser failed on it"

SECONDS_TO_START = 60.0
"""Imports and grammars take 0.2 s; a loaded machine takes longer."""

_unit_values = attrgetter(*Unit.__dataclass_fields__)
_reference_values = attrgetter(*Reference.__dataclass_fields__)
_file_values = attrgetter(*ParsedFile.__dataclass_fields__)


class FileResult(NamedTuple):
    """What became of one file. One of `packed`, `reason` and `unchanged` is set."""

    path: str
    size: int = 0
    mtime_ns: int = 0
    hash: str = ""
    """blake2b of the content, 16 bytes in hexadecimal; '' when it could not be read."""
    role: str = ""
    reason: str = ""
    """Why the file is not indexed."""
    masked: int = 0
    """Secret-looking strings that were replaced by asterisks."""
    unchanged: bool = False
    """The content has the hash that the caller knew."""
    packed: Any = None
    """What the packer made of the ParsedFile."""


def parse_entry(
    root: Path, path: str, max_file_bytes: int, known_hash: str, packer: Packer
) -> FileResult:
    """Read and parse one file; whatever it holds, a result comes back."""
    from codeqa.parsing import parse_file

    try:
        data, status = read_with_status(root, path, max_bytes=max_file_bytes)
    except OSError as error:
        reason = f"unreadable: {error.strerror or type(error).__name__}"
        if error.errno == errno.EFBIG:
            reason = f"larger than {max_file_bytes:,} bytes"
        return FileResult(path, reason=reason)
    digest = blake2b(data, digest_size=16).hexdigest()
    read = FileResult(path, len(data), status.st_mtime_ns, digest)
    if digest == known_hash:
        return read._replace(unchanged=True)
    try:
        verdict = classify(path, data)
        if isinstance(verdict, Skipped):
            return read._replace(reason=verdict.reason)
        parsed = parse_file(path, data, verdict)
        return read._replace(role=verdict, masked=parsed.masked, packed=packer(parsed))
    except Exception:  # one file must never end the run
        return read._replace(reason=PARSER_FAILED)


def pack_parsed(parsed: ParsedFile) -> tuple[Any, ...]:
    """A ParsedFile as nested tuples of strings and numbers."""
    path, language, units, references, *rest = _file_values(parsed)
    packed = tuple(map(_unit_values, units)), tuple(map(_reference_values, references))
    return (path, language, *packed, *rest)


def unpack_parsed(packed: tuple[Any, ...]) -> ParsedFile:
    """Inverse of `pack_parsed`."""
    path, language, units, references, *rest = packed
    unpacked = tuple([Unit(*one) for one in units]), tuple([Reference(*one) for one in references])
    return ParsedFile(path, language, *unpacked, *rest)


def send(stream: IO[bytes], message: tuple[Any, ...]) -> None:
    """Write one message; one that is gone is noticed by its silence."""
    data = marshal.dumps(message)
    with suppress(OSError):
        stream.write(len(data).to_bytes(8, "little") + data)
        stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; None when the other side is gone, or sends something else."""
    with suppress(EOFError, MemoryError, OSError, OverflowError, TypeError, ValueError):
        return marshal.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    return None


def named_function(name: str) -> Packer:
    """The function that `name` (`package.module:function`) names."""
    module, _, attribute = name.partition(":")
    packer: Packer = getattr(importlib.import_module(module), attribute)
    return packer


def run_worker() -> None:
    """Serve until the standard input ends, which it also does when the parent dies.

    A start or a file that takes too long ends the process, even where a parser hangs.
    """
    with suppress(OSError):
        os.nice(NICENESS)
    messages, results = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that prints may break the protocol
    with open(os.devnull, "w") as silent, suppress(OSError):  # noqa: PTH123
        limit = partial(faulthandler.dump_traceback_later, exit=True, file=silent)
        limit(SECONDS_TO_START)
        root, max_file_bytes, seconds, packer_name = receive(messages)
        import codeqa.parsing  # noqa: F401 (slow, and to be done before the first file's clock)

        packer = named_function(packer_name)
        faulthandler.cancel_dump_traceback_later()
        send(results, READY)
        while (files := receive(messages)) is not None:
            for path, known_hash in files:
                limit(seconds)
                result = parse_entry(Path(root), path, max_file_bytes, known_hash, packer)
                faulthandler.cancel_dump_traceback_later()
                send(results, tuple(result))
