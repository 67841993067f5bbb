"""From a question to an answer: evidence, generation, citations, and the stream of events."""

from codeqa.chat.chat import Chat
from codeqa.chat.citations import Citation, find_citations, verify, verify_all
from codeqa.chat.trace import Trace
from codeqa.chat.turns import TurnView
from codeqa.extractive.evidence import QuotedEvidence
from codeqa.extractive.generator import Asked, Exchange, Generator, Piece, Sent, Used
from codeqa.text.citation_format import ShownLines

__all__ = [
    "Asked",
    "Chat",
    "Citation",
    "Exchange",
    "Generator",
    "Piece",
    "QuotedEvidence",
    "Sent",
    "ShownLines",
    "Trace",
    "TurnView",
    "Used",
    "find_citations",
    "verify",
    "verify_all",
]
