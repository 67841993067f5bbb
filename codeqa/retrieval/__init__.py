"""From a question to ranked units and files: query, channels, fusion, ranking."""

from codeqa.retrieval.channels import QueryEncoder, gather
from codeqa.retrieval.choice import choose_reranker, reranker_status
from codeqa.retrieval.forms import form_pattern, variants, written_forms
from codeqa.retrieval.query import Query, parse_query
from codeqa.retrieval.ranking import Asked, FileScore, explain, rank, rank_files
from codeqa.retrieval.rerank import BuiltInReranker, Reranked, Reranker, parse_rerank

__all__ = [
    "Asked",
    "BuiltInReranker",
    "FileScore",
    "Query",
    "QueryEncoder",
    "Reranked",
    "Reranker",
    "choose_reranker",
    "explain",
    "form_pattern",
    "gather",
    "parse_query",
    "parse_rerank",
    "rank",
    "rank_files",
    "reranker_status",
    "variants",
    "written_forms",
]
