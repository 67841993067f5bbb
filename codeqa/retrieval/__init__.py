"""From a question to ranked units and files: query, channels, fusion, ranking."""

from codeqa.retrieval.blend import LanceReranker
from codeqa.retrieval.channels import Candidates, QueryEncoder, filter_of, gather
from codeqa.retrieval.choice import choose_reranker, reranker_status
from codeqa.retrieval.conditions import language_named
from codeqa.retrieval.drafts import search_draft
from codeqa.retrieval.forms import form_pattern, variants, written_forms
from codeqa.retrieval.hyde import (
    Drafting,
    merge,
    noted,
    parse_hyde,
    search_by_drafts,
)
from codeqa.retrieval.lance import lance_reranker
from codeqa.retrieval.mentions import Mention, guaranteed, keep_guaranteed
from codeqa.retrieval.query import Query, parse_query, says_something
from codeqa.retrieval.ranking import Asked, FileScore, explain, rank, rank_files
from codeqa.retrieval.rerank import BuiltInReranker, Reranked, Reranker, parse_rerank
from codeqa.retrieval.settle import look_up

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
