"""From a question to an answer: evidence, generation, citations, and the stream of events."""

from codeqa.chat.app_generator import AppGenerator
from codeqa.chat.citations import Citation, find_citations, verify, verify_all
from codeqa.chat.conversations import Conversations
from codeqa.chat.generation import (
    AnswerGenerator,
    Exchange,
    GenerationInput,
    ModelRequest,
    Piece,
)
from codeqa.chat.options import AskOptions
from codeqa.chat.pipeline import STEPS, Chat
from codeqa.chat.record import TurnRecord
from codeqa.chat.retrieval import Retrieval
from codeqa.chat.turn import TurnState

__all__ = [
    "STEPS",
    "AnswerGenerator",
    "AppGenerator",
    "AskOptions",
    "Chat",
    "Citation",
    "Conversations",
    "Exchange",
    "GenerationInput",
    "ModelRequest",
    "Piece",
    "Retrieval",
    "TurnRecord",
    "TurnState",
    "find_citations",
    "verify",
    "verify_all",
]
