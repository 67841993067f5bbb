"""From a question to ranked units and files: query, channels, fusion, ranking, reranking."""

from codeqa.search.hybrid import Search, SearchResult, open_search, query_encoders
from codeqa.search.hyde import parse_hyde
from codeqa.search.query import Query, language_named, parse_query, says_something
from codeqa.search.rerank.choice import (
    choose_reranker,
    missing_command,
    parse_reranker,
    reranker_status,
)
from codeqa.search.rerank.reranker import Reranked, parse_rerank

__all__ = [
    "Query",
    "Reranked",
    "Search",
    "SearchResult",
    "choose_reranker",
    "language_named",
    "missing_command",
    "open_search",
    "parse_hyde",
    "parse_query",
    "parse_rerank",
    "parse_reranker",
    "query_encoders",
    "reranker_status",
    "says_something",
]
