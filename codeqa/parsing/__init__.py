"""What each file of a repository holds: units and references."""

from codeqa.parsing.parse import parse_file

__all__ = ["parse_file"]
