"""Language models: any server that speaks OpenAI's chat-completions API, none by default."""

from codeqa.llm.choice import Choice, parse_choice
from codeqa.llm.client import Model
from codeqa.llm.endpoint import Cancelled, Complete, Endpoint, Message, Usage, never
from codeqa.llm.estimate import estimate_messages, estimate_tokens
from codeqa.llm.local import LocalServer
from codeqa.llm.models import Models, Tested
from codeqa.llm.providers import CUSTOM, PROVIDERS, Provider, provider_named

__all__ = [
    "CUSTOM",
    "PROVIDERS",
    "Cancelled",
    "Choice",
    "Complete",
    "Endpoint",
    "LocalServer",
    "Message",
    "Model",
    "Models",
    "Provider",
    "Tested",
    "Usage",
    "estimate_messages",
    "estimate_tokens",
    "never",
    "parse_choice",
    "provider_named",
]
