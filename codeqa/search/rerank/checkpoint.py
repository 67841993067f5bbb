"""Where a checkpoint that reranks comes from: a folder, the local hub cache, or the hub."""

from __future__ import annotations

import re
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from codeqa.errors import RerankerError
from codeqa.settings import with_home

DEFAULT_CHECKPOINT = "answerdotai/answerai-colbert-small-v1"
"""33 million parameters, 96 dimensions a token, made for the CPU."""


class Family(StrEnum):
    """What a checkpoint is, as messages call it."""

    COLBERT = "ColBERT"
    CROSS_ENCODER = "cross-encoder"


INSTALL = "Install them with `pip install 'codeqa[rerank]'`."
PACKAGES = ("rerankers", "torch", "transformers")
TRANSFORMERS = "4"
"""Major version that `rerankers` 0.10 runs on; 5 fails on `all_tied_weights_keys`."""

SMALL_FILES = ("*.json", "*.txt", "*.model")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""In order of preference; what else a repository holds (ONNX, TensorFlow) is not fetched."""

_HUB_NAME = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?", re.ASCII)


def missing_packages() -> str:
    """What stands in the way of running a checkpoint at all, as a clause; '' for nothing.

    Looks the packages up and imports none of them.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    try:
        installed = version("transformers")
    except PackageNotFoundError:
        return ""  # found, though not by its metadata: loading will tell
    if installed.split(".")[0] != TRANSFORMERS:
        return f"it runs on transformers {TRANSFORMERS}, and {installed} is installed"
    return ""


def is_folder_name(checkpoint: str) -> bool:
    """Whether `checkpoint` is written as a folder rather than as a name on the hub.

    `owner/name` is never a folder: one of that name in the working directory may belong to
    a repository, and nothing in a repository is configuration.
    """
    return checkpoint.startswith((".", "~", "/", "\\")) or Path(checkpoint).is_absolute()


def short_name(checkpoint: str) -> str:
    """How a checkpoint is called in answers: a hub name whole, of a folder the last part."""
    if not is_folder_name(checkpoint):
        return checkpoint
    return with_home(Path(checkpoint)).resolve().name or checkpoint


def local_folder(checkpoint: str) -> Path | None:
    """The folder that holds `checkpoint` on this machine; None for a name not in the hub cache.

    Touches no network. Raises RerankerError for a folder that is not there or holds no
    checkpoint, and for what is neither a folder nor a name.
    """
    if is_folder_name(checkpoint):
        folder = with_home(Path(checkpoint)).resolve()
        if lacking := _lacking(folder):
            raise RerankerError(
                f"The reranker's folder {folder} {lacking}.",
                "Set CODEQA_RERANKER to the folder of a checkpoint, or to `built-in`.",
            )
        return folder
    if not _HUB_NAME.fullmatch(checkpoint):
        raise RerankerError(
            f"CODEQA_RERANKER={checkpoint!r} is neither a folder nor a checkpoint's name.",
            "Write a name as `owner/name` and a folder as `/path` or `./path`.",
        )
    return _cached(checkpoint)


def fetch(checkpoint: str) -> Path:
    """Fetch `checkpoint` from the hub into its usual cache and give the folder.

    Small files and one file of weights. Raises RerankerError when the hub cannot be
    reached, does not know the name, or has no checkpoint under it.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        folder = Path(snapshot_download(checkpoint, allow_patterns=[*SMALL_FILES, WEIGHTS[0]]))
        if not (folder / WEIGHTS[0]).exists():
            folder = Path(snapshot_download(checkpoint, allow_patterns=[*SMALL_FILES, WEIGHTS[1]]))
    except RepositoryNotFoundError:
        raise RerankerError(
            f"The model hub has no checkpoint {checkpoint}, or not for everyone.",
            "Correct CODEQA_RERANKER, or set it to a folder or to `built-in`.",
        ) from None
    except Exception:  # requests', the hub's and the operating system's errors
        raise RerankerError(
            f"{checkpoint} is not on this machine, and the model hub cannot be reached.",
            "Check the network, or set CODEQA_RERANKER to the checkpoint's folder.",
        ) from None
    if lacking := _lacking(folder):
        raise RerankerError(
            f"What the model hub has as {checkpoint} {lacking}.",
            "Set CODEQA_RERANKER to the name of a checkpoint, or to `built-in`.",
        )
    return folder


def _cached(name: str) -> Path | None:
    """The snapshot of `name` in the local hub cache, None when it is not there as a whole."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except Exception:  # not there, or the cache cannot be read
        return None
    return None if _lacking(folder) else folder


def _lacking(folder: Path) -> str:
    """What `folder` lacks of a checkpoint, as a clause; '' for nothing."""
    if not folder.is_dir():
        return "does not exist"
    if not (folder / "config.json").is_file():
        return "holds no config.json"
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt")):
        return "holds no tokenizer"
    sharded = (f"{name}.index.json" for name in WEIGHTS)
    if not any((folder / name).is_file() for name in (*WEIGHTS, *sharded)):
        return "holds no weights"
    return ""
