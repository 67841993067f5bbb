"""Places in a turn where plugins may change what is done: `Hooks` and its decorators."""

from codeqa.chat.hooks.hooks import ARGUMENTS, HookError, Hooks, Retrieved
from codeqa.chat.hooks.plugins import load_hooks

__all__ = ["ARGUMENTS", "HookError", "Hooks", "Retrieved", "load_hooks"]
