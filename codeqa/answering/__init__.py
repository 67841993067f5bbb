"""From a question to an answer: evidence, generation, citations, and the stream of events."""

from codeqa.answering.chat import Chat
from codeqa.answering.citations import Citation, Span, find_citations, verify, verify_all
from codeqa.answering.evidence import Evidence
from codeqa.answering.generator import Generator

__all__ = [
    "Chat",
    "Citation",
    "Evidence",
    "Generator",
    "Span",
    "find_citations",
    "verify",
    "verify_all",
]
