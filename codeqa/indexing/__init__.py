"""From a repository to its tables: plan, parse, write, refine.

Importing this package is free; parsing and the database are loaded by the first run.
"""

from codeqa.indexing.background import BackgroundIndexer as BackgroundIndexer
from codeqa.indexing.indexer import Indexer as Indexer
