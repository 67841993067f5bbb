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
    host: str = _field("127.0.0.1", "Address the page is served on; any other needs a token.")
    port: int = _field(5001, "Port the page is served on.", ge=1, le=65535)
    token: SecretStr = _secret("Password for the page and API; required off loopback.")
    auth: Literal["", "header"] = _field(
        "",
        "Empty: by `CODEQA_TOKEN`. `header`: a reverse proxy signs users in and names them, and "
        "`access.toml` says who sees which repository (docs/security.md).",
    )
    auth_user: str = _field("X-Forwarded-User", "Header that holds the user's name.")
    auth_groups: str = _field("X-Forwarded-Groups", "Header that holds their groups, with commas.")
    auth_from: str = _field("127.0.0.0/8, ::1", "Proxy addresses, with commas; others are refused.")
    auth_host: str = _field("", "Names, with commas, under which users reach the proxy.")
    access_log: str = _field(
        "", "File that logs who asked when of which repository, as JSON lines."
    )
    access_log_text: bool = _field(False, "Log the questions there, too, with secrets masked.")
    secret_key: SecretStr = _secret(
        "Signs sessions; machines that serve the same users need the same one, by "
        "`openssl rand -hex 32`. Empty: one of the data folder."
    )
    threads: int = _field(256, "Most threads of a process, one per open stream.", ge=4, le=4096)
    web_workers: int = _field(1, "Processes that serve the page; several take Redis.", ge=1, le=64)
    jobs: Literal["", "rq"] = _field(
        "", "Where long work runs: in the server, or `rq`: in `codeqa worker`, by a queue in Redis."
    )
    drain_seconds: float = _field(60.0, "Longest wait for answers after SIGTERM.", ge=0, le=3_600)

    max_file_bytes: int = _field(1_000_000, "Larger files are skipped.", ge=1_000, le=100_000_000)
    workers: int = _field(0, "Processes that parse; 0: one per core, at most 4.", ge=0, le=64)
    batch_files: int = _field(200, "Files per committed batch.", ge=1, le=10_000)

    watch: bool = _field(
        True, "Index changes on disk as they happen and before each answer; off: at the start only."
    )

    embedding: str = _field(
        "",
        "Chosen embedding: `provider/name` of LanceDB's registry, or a model that runs on this "
        "machine, `owner/name` on the model hub or a folder; empty for none.",
    )
    embedding_dimension: int = _field(0, "Vector dimension; 0: the registry's.", ge=0, le=16_384)
    embedding_tokens: int = _field(8_191, "Tokens (≈) that it takes per text.", ge=64, le=1_000_000)
    embedding_batch: int = _field(32, "Texts per embedding request.", ge=1, le=2_048)

    top_methods: int = _field(3, "Methods kept for the context.", ge=0, le=50)
    top_classes: int = _field(3, "Classes and documents kept for the context.", ge=0, le=50)
    context_characters: int = _field(28_000, "Budget of the block at `fast`.", ge=500, le=200_000)
    context_tokens: int = _field(
        0,
        "The same at `normal` and `deep`, in tokens; 0: 3,500. Never more than half of the model's "
        "window, nor than 200 KB.",
        ge=0,
        le=1_000_000,
    )
    effort: Effort = _field(
        "normal",
        "How an answer is made: `fast` (one call), `normal` (the model may look further first) or "
        "`deep` (it may look longer, and drafts are searched by).",
    )

    model: str = _field("", "Language model, `provider/name` or `none`; empty: chosen on the page.")
    model_url: str = _field("", "Address of the model's API instead of the provider's own.")
    model_key: SecretStr = _secret("Key for the address in `CODEQA_MODEL_URL`.")
    model_timeout: int = _field(120, "Seconds that a model may be silent.", ge=1, le=3_600)
    reranker: str = _field(
        "auto",
        "What the rerank switch uses: `built-in`; a ColBERT model or cross-encoder that "
        "fastembed lists; `rerankers/<name or folder>` for one of PyTorch; "
        "`cohere/<model>` or `jina/<model>`, which are sent up to 50 pieces of code; `auto` takes "
        "`answerdotai/answerai-colbert-small-v1` when the extra and it are on this machine.",
    )
    hyde: Literal["", HydeMode] = _field(
        "",
        "Drafts of the answer that a language model writes to search by before it answers (HyDE): "
        "`off`, `one`, or `two`, the second with the code that the first found. Empty: none at "
        "`normal`, where the model looks further itself, and `two` at `deep`. None at `fast`, nor "
        "without a model.",
    )
    hyde_seconds: float = _field(8.0, "Seconds that each draft may take.", ge=0.1, le=120)
    hyde_model: str = _field(
        "",
        "Model that drafts, by its name at the address of the chosen one; empty: the provider's "
        "small model where it has one, else the chosen one.",
    )
    retrieval: Literal["explicit", "auto"] = _field(
        "explicit",
        "Which questions search: `explicit`: those with `@codebase`, others go on from the code at "
        "hand; `auto`: all that need code, and the answer says so.",
    )
    earlier_answers: bool = _field(
        False,
        "Send the model answers of other conversations to similar questions also without your "
        "thumb up; those with one are always sent, while the code that they cite is unchanged.",
    )
    plugins: str = _field(
        "",
        "Hooks of your own: a folder of `.py` files, outside of indexed repositories. Never read "
        "from `.env`.",
    )
    redis_url: str = _field(
        "",
        "Redis server for cached contexts, and for what server processes share: running answers "
        "and rate limits. Empty: the local state, and one process.",
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
        "warning", "What is logged to stderr; `info` also a line for each request."
    )
    log_format: Literal["text", "json"] = _field(
        "text", "Form of the log: `json` is one object a line, without names and texts."
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
    return [*names, "XDG_CONFIG_HOME", "HOME"]


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
