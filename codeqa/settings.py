"""All settings, each with its default and a help sentence, read from the environment.

A setting is read from `CODEQA_<NAME>` or from its `alias`, a provider's usual variable, and from
`.env` in the working directory unless that lies in a repository.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from codeqa.environment import PREFIX, data_folder, env_file
from codeqa.errors import SettingsError
from codeqa.types import Effort, HydeMode


def _field(default: Any, help: str, alias: str = "", **limits: Any) -> Any:
    choices = AliasChoices(alias) if alias else None
    return Field(default, description=help, validation_alias=choices, **limits)


def _secret(help: str, alias: str = "") -> Any:
    return _field(SecretStr(""), help, alias)


def _provider_key(name: str) -> Any:
    return _secret(f"Key for {name}, used only once {name} is chosen.", f"{name.upper()}_API_KEY")


SERVING = {
    "data", "host", "port", "token", "threads", "workers", "watch", "log_level", "auth",
    "auth_user", "auth_groups", "auth_from", "auth_host", "access_log", "access_log_text",
    "web_workers", "drain_seconds", "secret_key",
    "log_format", "metrics", "metrics_token", "jobs",
}  # fmt: skip
"""Settings that no answer depends on: where the data lies and how it is served."""


class Settings(BaseSettings):
    """All settings; the table in docs/settings.md is generated from these fields."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", frozen=True, populate_by_name=True
    )

    data: Path | None = _field(None, "Folder of indices and state; empty: the user's data folder.")
    tables: str = _field("", "Where the LanceDB tables lie instead, also `s3://…`.")
    state: SecretStr = _secret("Where the state lies instead: `postgresql://…`.")
    host: str = _field("127.0.0.1", "Address of the page; any but this machine's needs a token.")
    port: int = _field(5001, "Port to serve the page on.", ge=1, le=65535)
    token: SecretStr = _secret("Password for page and API; required to serve other machines.")
    auth: Literal["", "header"] = _field(
        "",
        "Empty: users sign in with `CODEQA_TOKEN`. `header`: a reverse proxy signs them in, and "
        "`access.toml` says who sees which repository (docs/security.md).",
    )
    auth_user: str = _field("X-Forwarded-User", "Header with the user's name.")
    auth_groups: str = _field("X-Forwarded-Groups", "Header with their groups, comma-separated.")
    auth_from: str = _field(
        "127.0.0.0/8, ::1", "Proxy addresses, comma-separated; others are refused."
    )
    auth_host: str = _field("", "Host names of the proxy, comma-separated.")
    access_log: str = _field(
        "", "File that logs who asked about which repository and when, as JSON lines."
    )
    access_log_text: bool = _field(False, "Also log the questions there, with secrets masked.")
    secret_key: SecretStr = _secret(
        "Signs sessions, made with `openssl rand -hex 32`; all machines that serve the same users "
        "need the same one. Empty: a key in the data folder."
    )
    threads: int = _field(256, "Threads per process at most, one per stream.", ge=4, le=4096)
    web_workers: int = _field(1, "Processes that serve the page; several need Redis.", ge=1, le=64)
    jobs: Literal["", "rq"] = _field(
        "", "Where long work runs: in the server, or `rq`: in `codeqa worker`, by a queue in Redis."
    )
    drain_seconds: float = _field(
        60.0, "Seconds to wait for answers after SIGTERM.", ge=0, le=3_600
    )

    max_file_bytes: int = _field(1_000_000, "Larger files are skipped.", ge=1_000, le=100_000_000)
    workers: int = _field(0, "Processes that parse files; 0: one per core, at most 4.", ge=0, le=64)
    batch_files: int = _field(200, "Files per committed batch.", ge=1, le=10_000)

    watch: bool = _field(
        True, "Index changed files at once and before each answer; off: only at the start."
    )

    embedding: str = _field(
        "",
        "Chosen embedding: `provider/name` of LanceDB's registry, or a model that runs on this "
        "machine, `owner/name` on the model hub or a folder; empty for none.",
    )
    embedding_dimension: int = _field(0, "Vector dimension; 0: the registry's.", ge=0, le=16_384)
    embedding_tokens: int = _field(8_191, "Tokens (≈) that it reads per text.", ge=64, le=1_000_000)
    embedding_batch: int = _field(32, "Texts per embedding request.", ge=1, le=2_048)

    top_methods: int = _field(3, "Methods in the context at most.", ge=0, le=50)
    top_classes: int = _field(3, "Classes and documents in the context at most.", ge=0, le=50)
    context_characters: int = _field(28_000, "Size of the context at `fast`.", ge=500, le=200_000)
    context_tokens: int = _field(
        0,
        "Size of the context at `normal` and `deep`, in tokens; 0: 3,500. At most half of the "
        "model's window, and 200 KB.",
        ge=0,
        le=1_000_000,
    )
    effort: Effort = _field(
        "normal",
        "How an answer is made: `fast` (one call), `normal` (the model may read more code) or "
        "`deep` (it may read much more, and the search uses drafts of the answer).",
    )

    model: str = _field("", "Language model, `provider/name` or `none`; empty: chosen on the page.")
    model_url: str = _field("", "Address of the model's API instead of the provider's own.")
    model_key: SecretStr = _secret("Key for the address in `CODEQA_MODEL_URL`.")
    model_timeout: int = _field(120, "Seconds a model may stay silent.", ge=1, le=3_600)
    reranker: str = _field(
        "auto",
        "Reranker of the rerank switch: `built-in`; a ColBERT model or cross-encoder that "
        "fastembed lists; `rerankers/<name or folder>` for one of PyTorch; "
        "`cohere/<model>` or `jina/<model>`, which get up to 50 hits; `auto` uses "
        "`answerdotai/answerai-colbert-small-v1` if it and its extra are installed.",
    )
    hyde: Literal["", HydeMode] = _field(
        "",
        "Drafts of the answer that a language model writes first, to search by (HyDE): "
        "`off`, `one`, or `two`, the second with the hits of the first. Empty: none at "
        "`normal`, where the model reads more code itself, and `two` at `deep`. Never at `fast` or "
        "without a model.",
    )
    hyde_seconds: float = _field(8.0, "Seconds that each draft may take.", ge=0.1, le=120)
    hyde_model: str = _field(
        "",
        "Name of the model that writes drafts, at the address of the chosen one; empty: the "
        "provider's small model if it has one, else the chosen one.",
    )
    retrieval: Literal["explicit", "auto"] = _field(
        "explicit",
        "Which questions search the code: `explicit`: those with `@codebase`, others use the code "
        "of the conversation; `auto`: all that need code, and the answer says so.",
    )
    earlier_answers: bool = _field(
        False,
        "Also send the model answers to similar questions without a thumb up; those with one are "
        "always sent, as long as the code that they cite is unchanged.",
    )
    plugins: str = _field(
        "",
        "Folder of `.py` files with your own hooks, outside of indexed repositories. Never read "
        "from `.env`.",
    )
    redis_url: str = _field(
        "",
        "Redis server for cached contexts, running answers and rate limits, which server "
        "processes share. Empty: the local state, and one process.",
        alias="REDIS_URL",
    )

    openai_api_key: SecretStr = _provider_key("OpenAI")
    openai_base_url: str = _field("", "Another address of OpenAI's API.", alias="OPENAI_BASE_URL")
    anthropic_api_key: SecretStr = _provider_key("Anthropic")
    cerebras_api_key: SecretStr = _provider_key("Cerebras")
    groq_api_key: SecretStr = _provider_key("Groq")
    gemini_api_key: SecretStr = _provider_key("Gemini")
    mistral_api_key: SecretStr = _provider_key("Mistral")
    openrouter_api_key: SecretStr = _provider_key("OpenRouter")
    jina_api_key: SecretStr = _provider_key("Jina")
    jina_base_url: str = _field("", "Another address of Jina's API.", alias="JINA_BASE_URL")
    cohere_api_key: SecretStr = _provider_key("Cohere")
    cohere_base_url: str = _field("", "Another address of Cohere's API.", alias="COHERE_BASE_URL")
    log_level: Literal["debug", "info", "warning", "error"] = _field(
        "warning", "What is logged to stderr; `info` adds a line for each request."
    )
    log_format: Literal["text", "json"] = _field(
        "text", "Format of the log: `json` writes one object per line, without names and texts."
    )
    metrics: bool = _field(False, "Serve `/metrics` for Prometheus; needs `codeqa[server]`.")
    metrics_token: SecretStr = _secret("Token for `/metrics` alone; empty: the owner's.")

    @cached_property
    def data_dir(self) -> Path:
        """Return the data folder, which exists once something was written."""
        return data_folder(self.data or "")

    @cached_property
    def config_dir(self) -> Path:
        """Return the folder of the user's own configuration, such as prompt overrides."""
        return Path(platformdirs.user_config_dir("codeqa", appauthor=False))

    @property
    def tokens(self) -> tuple[str, ...]:
        """Return the comma-separated tokens, of which the first is the owner's."""
        tokens = map(str.strip, self.token.get_secret_value().split(","))
        return tuple(dict.fromkeys(filter(None, tokens)))

    def provider_key(self, variable: str) -> str:
        """Return the key in the setting of `variable` (`GROQ_API_KEY`), '' for none."""
        value = getattr(self, variable.lower(), None) if variable else None
        return value.get_secret_value() if isinstance(value, SecretStr) else ""

    @property
    def worker_count(self) -> int:
        return self.workers or max(1, min(4, os.cpu_count() or 1))


def load_settings(repository: Path | None = None, **overrides: Any) -> Settings:
    """Read the environment and, outside of repositories, the working directory's `.env`.

    Raises SettingsError that names the variable and what is allowed.
    """
    values = {name: value for name, value in overrides.items() if value is not None}
    # Code to execute is named by the user's own environment, never by a file that lies around.
    values.setdefault("plugins", os.environ.get(f"{PREFIX}PLUGINS", ""))
    try:
        file = env_file(repository)
        settings = Settings(_env_file=file, **values)  # type: ignore[call-arg]
        # The data folder that the file names may show that the file lies in an indexed repository.
        if file and not env_file(repository, settings.data_dir):
            settings = Settings(_env_file=None, **values)  # type: ignore[call-arg]
        return settings
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "?"
        variable = name if name.isupper() else PREFIX + name.upper()
        raise SettingsError(
            f"{variable} has a value that cannot be used: {first['msg']}.",
            "Correct or unset it; docs/settings.md lists every setting.",
        ) from None


def variables_of_answers() -> list[str]:
    """Return the environment variables that an answer may depend on."""
    names = [_variable(name) for name in Settings.model_fields if name not in SERVING]
    return names + ["XDG_CONFIG_HOME", "HOME"]


def settings_table() -> list[tuple[str, str, str]]:
    """Return the rows (variable, default, help) for docs/settings.md."""
    rows = []
    for name, info in Settings.model_fields.items():
        default = "" if info.default is None else str(info.default)  # '' for an empty SecretStr
        rows.append((_variable(name), default, info.description or ""))
    return rows


def _variable(name: str) -> str:
    alias = Settings.model_fields[name].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else PREFIX + name.upper()
