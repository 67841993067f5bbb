"""Languages as data: names, endings, grammars and queries."""

from codeqa.languages.registry import Language, detect, get, languages, query_text

__all__ = ["Language", "detect", "get", "languages", "query_text"]
