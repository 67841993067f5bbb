"""Language models: any server that speaks OpenAI's chat-completions API, none by default."""

from codeqa.llm.choice import ModelChoice, parse_choice
from codeqa.llm.client import Model
from codeqa.llm.endpoint import (
    Cancelled,
    Complete,
    Endpoint,
    Message,
    TokenUsage,
    estimate_messages,
    never,
)
from codeqa.llm.models import SOURCES, Models, ModelTest
from codeqa.llm.providers import CUSTOM, PROVIDERS, ModelProvider, provider_named
from codeqa.text.tokens import estimate_tokens

__all__ = [
    "CUSTOM",
    "PROVIDERS",
    "SOURCES",
    "Cancelled",
    "Complete",
    "Endpoint",
    "Message",
    "Model",
    "ModelChoice",
    "ModelProvider",
    "ModelTest",
    "Models",
    "TokenUsage",
    "estimate_messages",
    "estimate_tokens",
    "never",
    "parse_choice",
    "provider_named",
]
