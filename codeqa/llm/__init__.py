"""Language models: any server that speaks OpenAI's chat-completions API, none by default."""

from codeqa.llm.answer import Thought, TokenUsage, ToolCall
from codeqa.llm.bounded import (
    DONE,
    EMPTY,
    STOPPED,
    TIMED_OUT,
    generate_bounded,
    skipped_stage,
    within,
)
from codeqa.llm.choice import ModelChoice, parse_choice
from codeqa.llm.client import Cancelled, Complete, Message, Model, estimate_messages, never
from codeqa.llm.models import SOURCES, Models
from codeqa.llm.providers import CUSTOM, PROVIDERS, Endpoint, ModelProvider, provider_named
from codeqa.llm.window import context_window, cut_off

__all__ = [
    "CUSTOM",
    "DONE",
    "EMPTY",
    "PROVIDERS",
    "SOURCES",
    "STOPPED",
    "TIMED_OUT",
    "Cancelled",
    "Complete",
    "Endpoint",
    "Message",
    "Model",
    "ModelChoice",
    "ModelProvider",
    "Models",
    "Thought",
    "TokenUsage",
    "ToolCall",
    "context_window",
    "cut_off",
    "estimate_messages",
    "generate_bounded",
    "never",
    "parse_choice",
    "provider_named",
    "skipped_stage",
    "within",
]
