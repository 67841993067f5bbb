"""From a question to ranked units and files: query, channels, fusion, ranking."""

from codeqa.search.blend import LanceReranker
from codeqa.search.channels import Candidates, QueryEncoder, filter_of, gather
from codeqa.search.choice import choose_reranker, reranker_status
from codeqa.search.conditions import language_named
from codeqa.search.hybrid import Search, SearchResult, SearchSteps
from codeqa.search.hyde import (
    HydeWriter,
    merge,
    noted,
    parse_hyde,
    search_with_hyde,
)
from codeqa.search.hypothesis import search_hypothesis
from codeqa.search.lance import lance_reranker
from codeqa.search.mentions import Mention, guaranteed, keep_guaranteed
from codeqa.search.opening import open_search, query_encoders
from codeqa.search.query import Query, parse_query, says_something
from codeqa.search.ranking import FileHit, QueryFeatures, explain_hit, rank, rank_files
from codeqa.search.rerank import BuiltInReranker, Reranked, Reranker, parse_rerank
from codeqa.search.resolve import find_candidates
from codeqa.search.word_forms import form_pattern, variants, written_forms

__all__ = [
    "BuiltInReranker",
    "Candidates",
    "FileHit",
    "HydeWriter",
    "LanceReranker",
    "Mention",
    "Query",
    "QueryEncoder",
    "QueryFeatures",
    "Reranked",
    "Reranker",
    "Search",
    "SearchResult",
    "SearchSteps",
    "choose_reranker",
    "explain_hit",
    "filter_of",
    "find_candidates",
    "form_pattern",
    "gather",
    "guaranteed",
    "keep_guaranteed",
    "lance_reranker",
    "language_named",
    "merge",
    "noted",
    "open_search",
    "parse_hyde",
    "parse_query",
    "parse_rerank",
    "query_encoders",
    "rank",
    "rank_files",
    "reranker_status",
    "says_something",
    "search_hypothesis",
    "search_with_hyde",
    "variants",
    "written_forms",
]
