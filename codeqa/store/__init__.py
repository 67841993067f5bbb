"""Where the index lives, what its tables hold, and how they are read and written.

Importing this package is free: LanceDB and Arrow are loaded by the first open.
"""

from codeqa.store.catalogue import nearest_words
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
from codeqa.store.lookups import TextSearch, VectorSearch
from codeqa.store.meta import EmbeddingRecord
from codeqa.store.records import INDEXED, FileRecord
from codeqa.store.schema import UNIT_TABLES
from codeqa.store.tables import Tables, open_once

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
    "list_locations",
    "local_bytes",
    "locate",
    "nearest_words",
    "open_once",
    "remove",
    "save_location",
    "snapshots_folder",
    "snapshots_of",
]
