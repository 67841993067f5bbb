"""Models that run on this machine, by ONNX Runtime through fastembed: their files, found or
fetched, and those that embed.

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
"""Where exporters put a model, in order of preference."""

TOKENS = 512
"""Read of a text: what most of these models are trained on, and a second of a core for one text
of a model of the usual size."""
BATCH = 8
"""Texts at once; each is filled up to the longest, so that more is slower and takes more memory."""

_HUB_NAME = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model as a setting names it; what cannot be found is an `error` that says what to write."""

    name: str
    setting: str
    error: type[CodeQAError]

    @property
    def is_folder(self) -> bool:
        return self.name.startswith((".", "~", "/", "\\")) or Path(self.name).is_absolute()

    @property
    def title(self) -> str:
        """How answers call it: a hub name whole, of a folder the last part."""
        if not self.is_folder:
            return self.name
        return with_home(Path(self.name)).resolve().name or self.name

    def here(self, known: dict[str, Any]) -> Path | None:
        """The folder that holds the model on this machine, None for a name not in the hub's cache.

        `known` is `listed`'s. Touches no network. Raises `error` for a folder that is not there
        or holds no model, and for what is neither a folder nor a name.
        """
        if self.is_folder:
            folder = with_home(Path(self.name)).resolve()
            return self._whole(folder, ONNX_FILES, f"The folder {folder}")
        if not _HUB_NAME.fullmatch(self.name):
            raise self.error(
                f"{self.setting}={self.name!r} is neither a folder nor a model's name.",
                "Write a name as `owner/name` and a folder as `/path` or `./path`.",
            )
        repository, files = _wanted(self.name, known)
        try:
            folder = _snapshot(repository, files, local_files_only=True)
        except Exception:  # not there, or the cache cannot be read
            return None
        return None if _lacking(folder, files) else folder

    def fetch(self, known: dict[str, Any]) -> Path:
        """Fetch the model from the hub into its usual cache and give the folder.

        Raises `error` when the hub cannot be reached, does not know the name, or has no model
        in ONNX under it.
        """
        from huggingface_hub.errors import RepositoryNotFoundError

        repository, files = _wanted(self.name, known)
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
        return self._whole(folder, files, f"What the model hub has as {repository}")

    def _whole(self, folder: Path, files: tuple[str, ...], what: str) -> Path:
        if lacking := _lacking(folder, files):
            raise self.error(f"{what} {lacking}.", f"Set {self.setting} to a model in ONNX.")
        return folder


def missing_extra() -> str:
    """What stands in the way of running any model here, as a clause; '' for nothing."""
    return "" if find_spec("fastembed") else "fastembed is not installed"


def listed(kind: Any, name: str) -> dict[str, Any]:
    """What fastembed's class `kind` says of a model that it lists; {} for any other."""
    models = kind.list_supported_models()
    return next((one for one in models if one["model"].lower() == name.lower()), {})


def read_at_most(tokens: int, model: Any) -> None:
    """Have a model of fastembed's read the first `tokens` of a text, or fewer as it is made."""
    tokenizer = model.model.tokenizer
    tokenizer.enable_truncation(min(tokens, tokenizer.truncation["max_length"]))


def _wanted(name: str, known: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The repository on the hub, and files of which one is the model."""
    if not known:
        return name, ONNX_FILES
    return known["sources"]["hf"] or name, (known["model_file"], *known["additional_files"])


def _snapshot(repository: str, files: tuple[str, ...], **options: Any) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(repository, allow_patterns=[*SMALL_FILES, *files], **options))


def _lacking(folder: Path, files: tuple[str, ...]) -> str:
    """What `folder` lacks of a model, as a clause; '' for nothing."""
    if not folder.is_dir():
        return "does not exist"
    if not any((folder / file).is_file() for file in files):
        return f"holds no model in ONNX ({' or '.join(files)})"
    missing = [name for name in TOKENIZER_FILES if not (folder / name).is_file()]
    return f"holds no {' and no '.join(missing)}" if missing else ""


class LocalModel:
    """One model of fastembed's, which is loaded, and fetched if it has to be, once per process.
    Raises EmbeddingError that says what is amiss."""

    def __init__(self, name: str) -> None:
        self._model = _load(name)

    def compute_query_embeddings(self, query: str) -> list[Any]:
        """One vector in a list."""
        return list(self._model.query_embed(query))

    def compute_source_embeddings(self, texts: Sequence[str]) -> list[Any]:
        """A vector for each text."""
        return list(self._model.passage_embed(list(texts), batch_size=BATCH))


@cache
def _load(name: str) -> Any:
    files = ModelFiles(name, "CODEQA_EMBEDDING", EmbeddingError)
    if problem := missing_extra():
        raise EmbeddingError(f"{files.title} cannot be used: {problem}.", INSTALL)
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource

    known = listed(TextEmbedding, name)
    folder = files.here(known) or files.fetch(known)
    kept_as = known.get("model") or f"folder {folder}"
    if not listed(TextEmbedding, kept_as):
        TextEmbedding.add_custom_model(
            kept_as,
            pooling=_pooling(folder),
            normalization=True,
            sources=ModelSource(hf=kept_as),
            dim=0,  # nobody reads it
            model_file=next(file for file in ONNX_FILES if (folder / file).is_file()),
        )
    model: Any = TextEmbedding(kept_as, specific_model_path=str(folder))
    read_at_most(TOKENS, model)
    return model


def _pooling(folder: Path) -> Any:
    """How a model's tokens become one vector, as sentence-transformers notes it; else the mean."""
    from fastembed.common.model_description import PoolingType

    try:
        noted = json.loads((folder / "1_Pooling" / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return PoolingType.MEAN
    return PoolingType.CLS if noted.get("pooling_mode_cls_token") else PoolingType.MEAN
