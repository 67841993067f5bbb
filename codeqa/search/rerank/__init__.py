"""Reading the best hits again, more closely: built in, by a checkpoint, or by a provider's API."""

from codeqa.search.rerank.built_in import BuiltInReranker
from codeqa.search.rerank.choice import choose_reranker, parse_reranker, reranker_status
from codeqa.search.rerank.lance import lance_reranker
from codeqa.search.rerank.reranker import Reranked, Reranker, parse_rerank

__all__ = [
    "BuiltInReranker",
    "Reranked",
    "Reranker",
    "choose_reranker",
    "lance_reranker",
    "parse_rerank",
    "parse_reranker",
    "reranker_status",
]
