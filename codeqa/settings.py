"""The reader of the environment: one table of settings with default and help.

Every name is read from `CODEQA_<NAME>` or, where `alias` says so, from a provider's
usual variable. A `.env` file in the working directory is honoured unless that directory lies
in a repository, indexed or not: nothing in a repository is configuration.
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


def _provider_key(name: str) -> Any:
    help = f"Key for {name}, used only once {name} is chosen."
    return _field(SecretStr(""), help, alias=f"{name.upper()}_API_KEY")


SERVING = {
    "data", "host", "port", "token", "threads", "workers", "watch", "log_level", "auth",
    "auth_user", "auth_groups", "auth_from", "auth_host", "access_log", "access_log_text",
    "web_workers", "drain_seconds", "secret_key",
    "log_format", "metrics", "metrics_token", "jobs",
}  # fmt: skip
"""Settings that say where the data lies and how it is served; no answer depends on them."""


class Settings(BaseSettings):
    """All settings; the table in docs/settings.md is generated from these fields."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="ignore", frozen=True, populate_by_name=True
    )

    data: Path | None = _field(
        None, "Folder for indices and local state; default: the user's data folder."
    )
    tables: str = _field(
        "", "Where the LanceDB tables live instead, also `s3://…`; locks stay local."
    )
    state: SecretStr = _field(SecretStr(""), "Where the state lies instead: `postgresql://…`.")
    host: str = _field("127.0.0.1", "Address the page is served on; any other needs a token.")
    port: int = _field(5001, "Port the page is served on.", ge=1, le=65535)
    token: SecretStr = _field(
        SecretStr(""), "Password for the page and API; required off loopback."
    )
    auth: Literal["", "header"] = _field(
        "",
        "Empty: by `CODEQA_TOKEN`. `header`: a reverse proxy has signed people in and names them, "
        "and `access.toml` says who sees which repository (docs/security.md).",
    )
    auth_user: str = _field("X-Forwarded-User", "Header that holds the user's name.")
    auth_groups: str = _field("X-Forwarded-Groups", "Header that holds their groups, with commas.")
    auth_from: str = _field(
        "127.0.0.0/8, ::1", "Addresses of the proxy, with commas; nobody else is answered."
    )
    auth_host: str = _field("", "Names, with commas, under which people know the proxy.")
    access_log: str = _field("", "File of who asked when of which repository, as lines of JSON.")
    access_log_text: bool = _field(False, "That file holds what was asked, too, secrets masked.")
    secret_key: SecretStr = _field(
        SecretStr(""), "Signs sessions; machines that serve the same users need the same one, by "
        "`openssl rand -hex 32`. Empty: one of the data folder.",
    )  # fmt: skip
    threads: int = _field(256, "Most threads of a process, one per open stream.", ge=4, le=4096)
    web_workers: int = _field(1, "Processes that serve the page; several take Redis.", ge=1, le=64)
    jobs: Literal["", "rq"] = _field(
        "", "Who clones, refreshes, indexes and describes: `rq`: `codeqa worker`, by a queue in "
        "Redis; empty: the server.",
    )  # fmt: skip
    drain_seconds: float = _field(
        60.0, "Longest wait after SIGTERM for answers that are being written.", ge=0, le=3_600
    )

    max_file_bytes: int = _field(
        1_000_000, "Larger files are skipped and listed.", ge=1_000, le=100_000_000
    )
    workers: int = _field(
        0, "Worker processes that parse; 0 means one per core, at most 4.", ge=0, le=64
    )
    batch_files: int = _field(
        200, "Files per committed batch: what a killed run can lose.", ge=1, le=10_000
    )

    watch: bool = _field(
        True,
        "Follow changes on disk while the page is served, and read what changed before it answers; "
        "off: look once, at the start.",
    )

    embedding: str = _field(
        "",
        "Chosen embedding: `provider/name` of LanceDB's registry, or a model that runs on this "
        "machine, `owner/name` on the model hub or a folder; empty for none.",
    )
    embedding_dimension: int = _field(
        0, "Dimension of the chosen embedding; 0 asks the registry.", ge=0, le=16_384
    )
    embedding_tokens: int = _field(
        8_191, "Tokens per text the chosen embedding accepts (≈).", ge=64, le=1_000_000
    )
    embedding_batch: int = _field(32, "Texts per embedding request.", ge=1, le=2_048)

    top_methods: int = _field(3, "Methods kept for the context.", ge=0, le=50)
    top_classes: int = _field(3, "Classes and documents kept for the context.", ge=0, le=50)
    context_characters: int = _field(
        28_000, "Budget of the chat's context block at the effort `fast`.", ge=500, le=200_000
    )
    context_tokens: int = _field(
        0, "Budget of the block at `normal` and `deep`, in tokens; 0: 3,500. Never "
        "more than half of what the model takes, nor than 200 KB.", ge=0, le=1_000_000,
    )  # fmt: skip
    effort: Effort = _field(
        "normal",
        "How an answer is made: `fast` (one call), `normal` "
        "(the model may look further first) or `deep` (for longer, and drafts are searched by).",
    )

    model: str = _field(
        "", "Language model as `provider/name`, or `none`; empty: as picked on the page."
    )
    model_url: str = _field("", "Address of the model's API instead of the provider's own.")
    model_key: SecretStr = _field(SecretStr(""), "Key for the address in `CODEQA_MODEL_URL`.")
    model_timeout: int = _field(
        120, "Seconds of silence after which a model is asked again, or lost.", ge=1, le=3_600
    )
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
    hyde_seconds: float = _field(
        8.0, "Seconds that each draft may take; then the search goes on with what there is.",
        ge=0.1, le=120,
    )  # fmt: skip
    hyde_model: str = _field(
        "", "Model that drafts, by its name at the address of the chosen one; empty: the "
        "provider's small model where it has one, else the chosen one.",
    )  # fmt: skip
    retrieval: Literal["explicit", "auto"] = _field(
        "explicit",
        "When an untagged question about the code searches: `explicit` only with `@codebase`, else "
        "it goes on from the code at hand; `auto` whenever it needs code, and the answer says so.",
    )
    earlier_answers: bool = _field(
        False,
        "Answers of other conversations to similar questions are sent to the model, as data, also "
        "where you gave them no thumb up; those with one always, while the code that they cite is "
        "as it was.",
    )
    plugins: str = _field(
        "", "Hooks of your own: a folder of `.py` files; empty runs none. Never a folder inside an "
        "indexed repository, and never read from `.env`.",
    )  # fmt: skip
    redis_url: str = _field(
        "", "Redis server for cached contexts, and for what server processes share: running "
        "answers, and how much was asked. Empty: the local state, and one process.",
        alias="REDIS_URL",
    )  # fmt: skip

    openai_api_key: SecretStr = _provider_key("OpenAI")
    openai_base_url: str = _field(
        "", "Another endpoint that speaks OpenAI's API.", alias="OPENAI_BASE_URL"
    )
    anthropic_api_key: SecretStr = _provider_key("Anthropic")
    cerebras_api_key: SecretStr = _provider_key("Cerebras")
    groq_api_key: SecretStr = _provider_key("Groq")
    gemini_api_key: SecretStr = _provider_key("Gemini")
    mistral_api_key: SecretStr = _provider_key("Mistral")
    openrouter_api_key: SecretStr = _provider_key("OpenRouter")
    jina_api_key: SecretStr = _provider_key("Jina")
    jina_base_url: str = _field(
        "", "Another endpoint that speaks Jina's API of embeddings and rerankers.",
        alias="JINA_BASE_URL",
    )  # fmt: skip
    cohere_api_key: SecretStr = _provider_key("Cohere")
    cohere_base_url: str = _field(
        "", "Another endpoint that speaks Cohere's rerank API.", alias="COHERE_BASE_URL"
    )
    log_level: Literal["debug", "info", "warning", "error"] = _field(
        "warning", "What is written to stderr; `info` also a line for each request."
    )
    log_format: Literal["text", "json"] = _field(
        "text", "Form of the log: `json` is one object a line, without names and texts."
    )
    metrics: bool = _field(
        False, "Measure answers, searches, models and runs for Prometheus, at `/metrics`; needs "
        "`codeqa[server]`.",
    )  # fmt: skip
    metrics_token: SecretStr = _field(
        SecretStr(""), "Token that reads `/metrics` and nothing else; else the owner's does."
    )

    @cached_property
    def data_dir(self) -> Path:
        """Folder of the local state, created on first use by whoever writes."""
        return data_folder(self.data or "")

    @cached_property
    def config_dir(self) -> Path:
        """Folder of the user's own configuration (prompt overrides)."""
        return Path(platformdirs.user_config_dir("codeqa", appauthor=False))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens, which the setting separates by commas; the first is the owner's."""
        given = self.token.get_secret_value().split(",")
        return tuple(dict.fromkeys(token.strip() for token in given if token.strip()))

    def provider_key(self, variable: str) -> str:
        """The key that the environment holds under `variable` (`GROQ_API_KEY`), '' for none."""
        value = getattr(self, variable.lower(), None) if variable else None
        return value.get_secret_value() if isinstance(value, SecretStr) else ""

    @property
    def worker_count(self) -> int:
        """Worker processes to start: the setting, else one per usable core, at most 4."""
        return self.workers or max(1, min(4, os.cpu_count() or 1))


def load_settings(repository: Path | None = None, **overrides: Any) -> Settings:
    """Read the environment and, outside of repositories, the working directory's `.env`.

    Raises SettingsError that names the variable, its value and what is allowed.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    # What is executed is named by the user's own environment, never by a file that lies around.
    given.setdefault("plugins", os.environ.get(f"{PREFIX}PLUGINS", ""))
    try:
        file = env_file(repository)
        settings = Settings(_env_file=file, **given)  # type: ignore[call-arg]
        if file and not env_file(repository, settings.data_dir):  # where that file says the data is
            settings = Settings(_env_file=None, **given)  # type: ignore[call-arg]
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
    """Variables that an answer may depend on."""
    others = {PREFIX + name.upper() for name in SERVING}
    names = [name for name, _, _ in settings_table() if name not in others]
    return [*names, "XDG_CONFIG_HOME", "HOME"]


def settings_table() -> list[tuple[str, str, str]]:
    """Rows (variable, default, help) for documentation, in the order of declaration."""
    rows = []
    for name, info in Settings.model_fields.items():
        alias = info.validation_alias
        usual = PREFIX + name.upper()
        variable = str(alias.choices[0]) if isinstance(alias, AliasChoices) else usual
        default = info.default
        shown = default.get_secret_value() if isinstance(default, SecretStr) else default
        rows.append((variable, "" if shown in (None, "") else str(shown), info.description or ""))
    return rows
