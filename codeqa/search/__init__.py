"""From a question to ranked units and files: query, channels, fusion, ranking."""

from codeqa.search.blend import LanceReranker
from codeqa.search.channels import Candidates, QueryEncoder, filter_of, gather
from codeqa.search.choice import choose_reranker, reranker_status
from codeqa.search.conditions import language_named
from codeqa.search.drafts import search_draft
from codeqa.search.forms import form_pattern, variants, written_forms
from codeqa.search.hyde import (
    Drafting,
    merge,
    noted,
    parse_hyde,
    search_by_drafts,
)
from codeqa.search.lance import lance_reranker
from codeqa.search.mentions import Mention, guaranteed, keep_guaranteed
from codeqa.search.query import Query, parse_query, says_something
from codeqa.search.ranking import Asked, FileScore, explain, rank, rank_files
from codeqa.search.rerank import BuiltInReranker, Reranked, Reranker, parse_rerank
from codeqa.search.settle import look_up

__all__ = [
    "Asked",
    "BuiltInReranker",
    "Candidates",
    "Drafting",
    "FileScore",
    "LanceReranker",
    "Mention",
    "Query",
    "QueryEncoder",
    "Reranked",
    "Reranker",
    "choose_reranker",
    "explain",
    "filter_of",
    "form_pattern",
    "gather",
    "guaranteed",
    "keep_guaranteed",
    "lance_reranker",
    "language_named",
    "look_up",
    "merge",
    "noted",
    "parse_hyde",
    "parse_query",
    "parse_rerank",
    "rank",
    "rank_files",
    "reranker_status",
    "says_something",
    "search_by_drafts",
    "search_draft",
    "variants",
    "written_forms",
]
