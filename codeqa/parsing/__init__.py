"""Files of a repository: which there are, and what each one holds."""

from codeqa.parsing.parse import parse_file
from codeqa.repository.reading import read_file
from codeqa.repository.skip import classify
from codeqa.repository.walk import walk

__all__ = ["classify", "parse_file", "read_file", "walk"]
