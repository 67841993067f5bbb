"""Files of a repository: which there are, and what each one holds."""

from codeqa.parsing.parse import parse_file
from codeqa.parsing.reading import read_file
from codeqa.parsing.skip import classify
from codeqa.parsing.walk import walk

__all__ = ["classify", "parse_file", "read_file", "walk"]
