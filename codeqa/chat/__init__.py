"""From a question to an answer: evidence, generation, citations, and the stream of events."""

from codeqa.chat.ask import Chat
from codeqa.chat.conversations import Conversations
from codeqa.chat.gather import Gatherer
from codeqa.chat.generation import AnswerGenerator, Gathered, Piece
from codeqa.chat.options import AskOptions
from codeqa.chat.record import TurnRecord
from codeqa.chat.route import Router
from codeqa.chat.write import Writers
from codeqa.types import Exchange

__all__ = [
    "AnswerGenerator",
    "AskOptions",
    "Chat",
    "Conversations",
    "Exchange",
    "Gathered",
    "Gatherer",
    "Piece",
    "Router",
    "TurnRecord",
    "Writers",
]
