"""Check that an object store keeps what several writers commit at the same time.

LanceDB commits a version by writing its manifest only where there is none yet (`If-None-Match: *`).
A store that ignores the condition silently lets one writer replace the commit of another. So the
probe appends rows from several connections at the same moment, and counts those that are kept.
"""

from __future__ import annotations

import asyncio
import json
import re
from uuid import uuid4

from codeqa.errors import StorageError
from codeqa.store.location import Location, read_note, write_atomically
from codeqa.store.reader import run_on_loop

WRITERS = 4
NOTE = "stores.json"  # in the data folder
IMPATIENT = {"connect_timeout": "5s", "client_max_retries": "2", "client_retry_timeout": "20"}
"""Options of LanceDB for the probe: an unreachable store raises an error after seconds."""


def check_commits(location: Location) -> None:
    """Probe the store of `location` once per data folder. Raises StorageError if it loses rows."""
    store, _, _ = location.tables.rpartition("/")
    # Folders of snapshots lie one level deeper in the data folder.
    note = location.folder.parents[2 if location.snapshot_of else 1] / NOTE
    if store in read_note(note):
        return
    try:
        count = run_on_loop(_race(store))
    except (OSError, RuntimeError, ValueError) as error:  # as LanceDB raises it
        pattern = r"(?<=<Code>)\w+|(?<=message: \")[\w ]+|Failed to get AWS credentials"
        reasons = ", ".join(dict.fromkeys(re.findall(pattern, str(error))))
        raise StorageError(
            f"The tables cannot be written to {store}: {reasons or 'it does not answer'}.",
            "See that the bucket exists, and what docs/scale.md says of address and credentials.",
        ) from error
    if count < WRITERS:
        raise StorageError(
            f"{store} loses rows that are written at the same time: it kept {count} of {WRITERS}.",
            "Use a store that honours `If-None-Match: *` on PUT, or leave CODEQA_TABLES empty.",
        )
    stores = read_note(note) | {store: f"{count} of {WRITERS} rows kept"}
    write_atomically(note, json.dumps(stores))


async def _race(store: str) -> int:
    """Append WRITERS rows at the same time; return how many are kept."""
    import lancedb
    import pyarrow as pa

    name, row = f"probe-{uuid4().hex}", pa.table({"row": [1]})
    uri = f"{store}/codeqa-probe"
    first = await lancedb.connect_async(uri, storage_options=IMPATIENT)
    await first.create_table(name, schema=row.schema)
    try:
        others = [await lancedb.connect_async(uri) for _ in range(WRITERS)]
        tables = [await connection.open_table(name) for connection in others]
        await asyncio.gather(*(table.add(row) for table in tables))
        return int(await (await first.open_table(name)).count_rows())
    finally:
        await first.drop_table(name)
