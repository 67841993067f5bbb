"""Where the index lives, what its tables hold, and how they are read and written.

Importing this package is free: LanceDB and Arrow are loaded by the first open.
"""

from codeqa.store.filters import Filter
from codeqa.store.location import (
    Location,
    list_locations,
    local_bytes,
    locate,
    remove,
    save_location,
    snapshots_folder,
    snapshots_of,
)
from codeqa.store.reader import damage
from codeqa.store.records import INDEXED, FileRecord
from codeqa.store.schema import UNIT_TABLES, EmbeddingRecord
from codeqa.store.tables import Tables, TextSearch, VectorSearch, open_once

__all__ = [
    "INDEXED",
    "UNIT_TABLES",
    "EmbeddingRecord",
    "FileRecord",
    "Filter",
    "Location",
    "Tables",
    "TextSearch",
    "VectorSearch",
    "damage",
    "list_locations",
    "local_bytes",
    "locate",
    "open_once",
    "remove",
    "save_location",
    "snapshots_folder",
    "snapshots_of",
]
