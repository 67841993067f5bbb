"""From a question to an answer: evidence, generation, citations, and the stream of events."""

from codeqa.answering.chat import Chat
from codeqa.answering.citations import Citation, Span, find_citations, verify, verify_all
from codeqa.answering.evidence import Evidence
from codeqa.answering.generator import Asked, Exchange, Generator, Piece, Sent, Used
from codeqa.answering.trace import Trace
from codeqa.answering.turns import TurnView

__all__ = [
    "Asked",
    "Chat",
    "Citation",
    "Evidence",
    "Exchange",
    "Generator",
    "Piece",
    "Sent",
    "Span",
    "Trace",
    "TurnView",
    "Used",
    "find_citations",
    "verify",
    "verify_all",
]
