"""From a question to ranked units and files: query, channels, fusion, ranking."""

from codeqa.retrieval.channels import QueryEncoder, gather
from codeqa.retrieval.query import Query, has_tag, parse_query, strip_tag
from codeqa.retrieval.ranking import Asked, FileScore, explain, rank, rank_files
from codeqa.retrieval.rerank import parse_rerank, rerank

__all__ = [
    "Asked",
    "FileScore",
    "Query",
    "QueryEncoder",
    "explain",
    "gather",
    "has_tag",
    "parse_query",
    "parse_rerank",
    "rank",
    "rank_files",
    "rerank",
    "strip_tag",
]
