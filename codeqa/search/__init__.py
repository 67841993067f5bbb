"""From a question to ranked units and files: query, channels, fusion, ranking, reranking."""

from codeqa.search.by_model import parse_hyde
from codeqa.search.hybrid import Search, SearchResult, open_search, query_encoders
from codeqa.search.query import Query, language_named, parse_query, says_something
from codeqa.search.rerank import (
    Reranked,
    choose_reranker,
    parse_rerank,
    parse_reranker,
    reranker_status,
)

__all__ = [
    "Query",
    "Reranked",
    "Search",
    "SearchResult",
    "choose_reranker",
    "language_named",
    "open_search",
    "parse_hyde",
    "parse_query",
    "parse_rerank",
    "parse_reranker",
    "query_encoders",
    "reranker_status",
    "says_something",
]
