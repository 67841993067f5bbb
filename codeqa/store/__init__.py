"""Where the index lives, what its tables hold, and how they are read and written.

Importing this package is free: LanceDB and Arrow are loaded by the first open.
"""

from codeqa.store.catalogue import Catalogue, nearest_words
from codeqa.store.filters import Filter
from codeqa.store.location import (
    Location,
    list_locations,
    local_bytes,
    locate,
    remove,
    save_location,
)
from codeqa.store.lookups import TextSearch, VectorSearch
from codeqa.store.meta import EmbeddingRecord, Meta
from codeqa.store.records import INDEXED, FileRecord, IndexCounts
from codeqa.store.schema import FORMAT_VERSION, UNIT_TABLES
from codeqa.store.tables import Tables, open_once

__all__ = [
    "FORMAT_VERSION",
    "INDEXED",
    "UNIT_TABLES",
    "Catalogue",
    "EmbeddingRecord",
    "FileRecord",
    "Filter",
    "IndexCounts",
    "Location",
    "Meta",
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
]
