"""From a question to ranked units and files: query, channels, fusion, ranking, reranking."""

from codeqa.search.channels import QueryEncoder
from codeqa.search.hybrid import (
    Search,
    SearchResult,
    SearchSteps,
    open_search,
    query_encoders,
)
from codeqa.search.hyde import parse_hyde
from codeqa.search.query import Query, parse_query, says_something
from codeqa.search.query_filters import language_named
from codeqa.search.ranking import FileHit
from codeqa.search.rerank import (
    Reranked,
    Reranker,
    choose_reranker,
    lance_reranker,
    parse_rerank,
    parse_reranker,
    reranker_status,
)
from codeqa.search.word_forms import form_pattern, written_forms

__all__ = [
    "FileHit",
    "Query",
    "QueryEncoder",
    "Reranked",
    "Reranker",
    "Search",
    "SearchResult",
    "SearchSteps",
    "choose_reranker",
    "form_pattern",
    "lance_reranker",
    "language_named",
    "open_search",
    "parse_hyde",
    "parse_query",
    "parse_rerank",
    "parse_reranker",
    "query_encoders",
    "reranker_status",
    "says_something",
    "written_forms",
]
