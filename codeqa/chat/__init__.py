"""From a question to an answer: evidence, generation, citations, and the stream of events."""

from codeqa.chat.conversations import Conversations
from codeqa.chat.generation import AnswerGenerator, Exchange, GenerationInput, Piece
from codeqa.chat.options import AskOptions
from codeqa.chat.pipeline import Chat
from codeqa.chat.record import TurnRecord
from codeqa.chat.retrieval import Retrieval

__all__ = [
    "AnswerGenerator",
    "AskOptions",
    "Chat",
    "Conversations",
    "Exchange",
    "GenerationInput",
    "Piece",
    "Retrieval",
    "TurnRecord",
]
