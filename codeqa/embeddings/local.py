"""Find, fetch and run models on this machine, by ONNX Runtime through fastembed.

A setting names a folder (`/path`, `./path`, `~/path`) or a model on the hub. `owner/name` is never
a folder: one of that name in the working directory may belong to a repository, and nothing in a
repository is configuration. Only a name that the user wrote is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from codeqa.environment import install_command, with_home
from codeqa.errors import CodeQAError, EmbeddingError

INSTALL_COMMAND = install_command("models")
INSTALL = f"Install it: {INSTALL_COMMAND}"

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
SMALL_FILES = (*TOKENIZER_FILES, "config.json", "special_tokens_map.json", "1_Pooling/config.json")
ONNX_FILES = ("vespa_colbert.onnx", "model.onnx", "onnx/model.onnx")
"""Paths at which exporters put a model, in order of preference."""

MOST_TOKENS = 512
"""Longest text: most of these models are trained on so many, and they take a second of a core."""
TEXTS_AT_ONCE = 8
"""Texts at once; each is padded to the longest, so that more is slower and takes more memory."""

_HUB_NAME = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that a setting names."""

    name: str
    setting: str
    error: type[CodeQAError]
    """Class of the error where there is no such model."""

    @property
    def is_folder(self) -> bool:
        return self.name.startswith((".", "~", "/", "\\")) or Path(self.name).is_absolute()

    @property
    def title(self) -> str:
        """Return the name for answers: that of the hub, or the last part of a folder."""
        if not self.is_folder:
            return self.name
        return with_home(Path(self.name)).resolve().name or self.name

    def here(self, description: dict[str, Any]) -> Path | None:
        """Return the model's folder on this machine, None for a name not in the hub's cache.

        `description` is that of `listed`. Sends nothing. Raises `error` for a folder without a
        model, and for an impossible name.
        """
        if self.is_folder:
            folder = with_home(Path(self.name)).resolve()
            return self._checked(folder, ONNX_FILES, f"The folder {folder}")
        if not _HUB_NAME.fullmatch(self.name):
            raise self.error(
                f"{self.setting}={self.name!r} is neither a folder nor a model's name.",
                "Write a name as `owner/name` and a folder as `/path` or `./path`.",
            )
        repository, files = _source(self.name, description)
        try:
            folder = _snapshot(repository, files, local_files_only=True)
        except Exception:  # not there, or the cache cannot be read
            return None
        return None if _lacking(folder, files) else folder

    def fetch(self, description: dict[str, Any]) -> Path:
        """Fetch the model from the hub into its usual cache; return the folder or raise `error`."""
        from huggingface_hub.errors import RepositoryNotFoundError

        repository, files = _source(self.name, description)
        try:
            folder = _snapshot(repository, files)
        except RepositoryNotFoundError:
            raise self.error(
                f"The model hub has no model {repository}, or not for everyone.",
                f"Correct {self.setting}, or set it to a folder.",
            ) from None
        except Exception:  # the HTTP client's, the hub's and the operating system's errors
            raise self.error(
                f"{self.name} is not on this machine, and the model hub cannot be reached.",
                f"Check the network, or set {self.setting} to the folder of a copy.",
            ) from None
        return self._checked(folder, files, f"What the model hub has as {repository}")

    def _checked(self, folder: Path, files: tuple[str, ...], subject: str) -> Path:
        if lacking := _lacking(folder, files):
            raise self.error(f"{subject} {lacking}.", f"Set {self.setting} to a model in ONNX.")
        return folder


def missing_extra() -> str:
    """Return why no model can run here, as a clause; '' where one can."""
    return "" if find_spec("fastembed") else "fastembed is not installed"


def listed(kind: Any, name: str) -> dict[str, Any]:
    """Return the description of a model that fastembed's class `kind` lists; {} for any other."""
    models = kind.list_supported_models()
    return next((model for model in models if model["model"].lower() == name.lower()), {})


def read_at_most(tokens: int, model: Any) -> None:
    """Let a model of fastembed's read only the first `tokens` of a text."""
    tokenizer = model.model.tokenizer
    tokenizer.enable_truncation(min(tokens, tokenizer.truncation["max_length"]))


def _source(name: str, description: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the repository on the hub, and the files of which one is the model."""
    if not description:
        return name, ONNX_FILES
    files = (description["model_file"], *description["additional_files"])
    return description["sources"]["hf"] or name, files


def _snapshot(repository: str, files: tuple[str, ...], **options: Any) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(repository, allow_patterns=[*SMALL_FILES, *files], **options))


def _lacking(folder: Path, files: tuple[str, ...]) -> str:
    """Return what `folder` lacks of a model, as a clause; '' for nothing."""
    if not folder.is_dir():
        return "does not exist"
    if not any((folder / file).is_file() for file in files):
        return f"holds no model in ONNX ({' or '.join(files)})"
    missing = [name for name in TOKENIZER_FILES if not (folder / name).is_file()]
    return f"holds no {' and no '.join(missing)}" if missing else ""


class LocalModel:
    """A model of fastembed's, loaded, and fetched if need be, once per process (EmbeddingError)."""

    def __init__(self, name: str) -> None:
        self._model = _load(name)

    def compute_query_embeddings(self, query: str) -> list[Any]:
        """Return one vector in a list."""
        return list(self._model.query_embed(query))

    def compute_source_embeddings(self, texts: Sequence[str]) -> list[Any]:
        """Return a vector for each text.

        Texts of like length are read together, for each is padded to the longest beside it: a fifth
        of what is read is padding, in the order of the code almost half.
        """
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        by_length = [texts[place] for place in order]
        vectors = self._model.passage_embed(by_length, batch_size=TEXTS_AT_ONCE)
        of_place = dict(zip(order, vectors, strict=True))
        return [of_place[place] for place in range(len(texts))]


@cache
def _load(name: str) -> Any:
    files = ModelFiles(name, "CODEQA_EMBEDDING", EmbeddingError)
    if problem := missing_extra():
        raise EmbeddingError(f"{files.title} cannot be used: {problem}.", INSTALL)
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource

    description = listed(TextEmbedding, name)
    folder = files.here(description) or files.fetch(description)
    key = description.get("model") or f"folder {folder}"
    if not listed(TextEmbedding, key):
        TextEmbedding.add_custom_model(
            key,
            pooling=_pooling(folder),
            normalization=True,
            sources=ModelSource(hf=key),
            dim=0,  # unused
            model_file=next(file for file in ONNX_FILES if (folder / file).is_file()),
        )
    model: Any = TextEmbedding(key, specific_model_path=str(folder))
    read_at_most(MOST_TOKENS, model)
    return model


def _pooling(folder: Path) -> Any:
    """Return how tokens become one vector, as sentence-transformers stores it; else the mean."""
    from fastembed.common.model_description import PoolingType

    try:
        config = json.loads((folder / "1_Pooling" / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return PoolingType.MEAN
    return PoolingType.CLS if config.get("pooling_mode_cls_token") else PoolingType.MEAN
