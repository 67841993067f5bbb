"""Language models: any server that speaks OpenAI's chat-completions API, none by default."""

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
from codeqa.llm.client import Model
from codeqa.llm.endpoint import (
    Cancelled,
    Complete,
    Endpoint,
    Message,
    Thought,
    TokenUsage,
    ToolCall,
    estimate_messages,
    never,
)
from codeqa.llm.models import SOURCES, Models
from codeqa.llm.providers import CUSTOM, PROVIDERS, ModelProvider, provider_named
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
