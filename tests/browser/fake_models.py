"""Language models that are written down, behind the seam `engine.models`."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import urlsplit

from codeqa.errors import ModelError
from codeqa.llm.providers import ModelChoice

HOSTS = {
    "openai": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "groq": "api.groq.com",
    "ollama": "localhost:11434",
    "lmstudio": "localhost:1234",
}
LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm")
HOSTILE = "<img src=x onerror=window.hacked=1>"


class FakeModels:
    """OpenAI has an exported key, Ollama runs here; the key `wrong` is refused.

    A test of the model `patience` waits until `patient` is set.
    """

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.tested: list[Any] = []
        self.probed = 0
        self.local = True
        self.exported = True
        self.used: list[Any] = []
        self.patient = threading.Event()
        self._choice: Any = None
        self._lock = threading.Lock()

    def current(self) -> Any:
        return self._choice

    def known(self) -> dict[str, Any]:
        usual = [ModelChoice("openai", "gpt-4o")] if self.exported else []
        named = [one for one in (self._choice, *self.used, *usual) if one]
        return {str(one): one for one in named[::-1]}

    def source(self) -> str:
        return "page" if self._choice else ""

    def problem(self) -> str:
        return ""

    def choose(self, choice: Any, key: str = "") -> None:
        with self._lock:
            self._choice = choice
            self.used = [choice, *self.used] if choice else self.used
            if choice and key:
                self.keys[self.host(choice)] = key

    def forget_key(self, choice: Any) -> None:
        self.keys.pop(self.host(choice), None)

    def key_state(self, choice: Any) -> str:
        if choice.provider in LOCAL:
            return "unneeded"
        if self.host(choice) in self.keys:
            return "stored"
        return "exported" if choice.provider == "openai" and self.exported else "missing"

    def base_url(self, choice: Any) -> str:
        return choice.address or f"https://{HOSTS.get(choice.provider, choice.provider)}/v1"

    def host(self, choice: Any) -> str:
        return urlsplit(self.base_url(choice)).netloc if choice else ""

    def list_models(self, choice: Any, key: str = "") -> list[str]:
        self._refuse(key)
        if choice.provider in LOCAL:
            self.probed += 1
            if choice.provider != "ollama" or not self.local:
                raise ModelError("It cannot be reached.", "Start it.")
            return ["qwen3:8b", "llama3.2:3b", HOSTILE, "nomic-embed-text"]
        others = ["text-embedding-3-small", "whisper-1", "tts-1", "dall-e-3", "omni-moderation"]
        return ["gpt-4o", "gpt-4o-mini", "o4-mini", HOSTILE, *others]

    def test(self, choice: Any, key: str = "") -> Any:
        self._refuse(key)
        if choice.model == "patience":
            self.patient.wait(60)
        self.tested.append(choice)
        return {"milliseconds": 640, "model": choice.model, "host": self.host(choice)}

    def _refuse(self, key: str) -> None:
        if "wrong" in key:
            raise ModelError(
                f"The server refused the key: {HOSTILE}.", "Enter another key, then test again."
            )
