"""Locate, read and write the tables of an index.

Importing this package is free: LanceDB and Arrow are loaded by the first open.
"""

from codeqa.store.location import Location as Location
from codeqa.store.location import list_locations as list_locations
from codeqa.store.location import locate as locate
from codeqa.store.reader import damage as damage
from codeqa.store.records import INDEXED as INDEXED
from codeqa.store.records import FileRecord as FileRecord
from codeqa.store.schema import PLACE as PLACE
from codeqa.store.schema import UNIT_TABLES as UNIT_TABLES
from codeqa.store.schema import EmbeddingRecord as EmbeddingRecord
from codeqa.store.schema import Filter as Filter
from codeqa.store.schema import path_patterns as path_patterns
from codeqa.store.tables import Tables as Tables
from codeqa.store.tables import TextSearch as TextSearch
from codeqa.store.tables import VectorSearch as VectorSearch
from codeqa.store.tables import open_once as open_once
