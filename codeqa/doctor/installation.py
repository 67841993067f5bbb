"""Checks of what every run needs, from the interpreter to the port, and of what improves answers
where it is set: model, reranker, Redis."""

from __future__ import annotations

import math
import platform
import secrets
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from codeqa.doctor.check import Result
from codeqa.embeddings import fast_embedding
from codeqa.hosts import is_loopback
from codeqa.languages import languages
from codeqa.llm import Models
from codeqa.parsing.grammar import grammar
from codeqa.repository.git import find_git, read_git
from codeqa.settings import Settings
from codeqa.state.cache import RedisCache
from codeqa.store.location import folder_bytes

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE = 500_000_000
"""Bytes: an index of a million lines takes up to about this much."""
SECONDS_FOR_GIT = 10
SPELLED = {"openai": "OpenAI", "openrouter": "OpenRouter"}
"""Providers whose names are not written as a word with a capital."""
CHECK_SECONDS = 10.0
"""Lifetime of the value that is written into Redis and read back."""
CHOSEN = {"page": "picked by the user", "setting": "set by CODEQA_MODEL", "": "chosen"}
KEYS = {
    "stored": "with the key that was entered",
    "exported": "with the key that is exported",
    "missing": "without the key that it needs",
    "unneeded": "without a key",
}


def python() -> Result:
    """The interpreter's version."""
    found = f"{platform.python_version()} ({sys.executable})"
    return sys.version_info >= OLDEST_PYTHON, found, "Install Python 3.11 or newer."


def git() -> Result:
    """Git, which lists the files of a repository; never one that lies in the current folder."""
    path = find_git()
    printed = read_git(path, Path(path).parent, ["--version"], SECONDS_FOR_GIT)
    version = "fails" if printed is None else printed.decode(errors="replace").strip()
    found = f"{version} ({path})"
    return printed is not None, found, "Run 'git --version' to see why it fails."


def chosen(settings: Settings) -> Result:
    """What decides who may connect and what leaves the machine; a key shows as set only."""
    parts = [f"page on {settings.host}:{settings.port}"]
    parts.append("token set" if settings.tokens else "no token")
    parts.append(f"embedding {settings.embedding}" if settings.embedding else "no embedding chosen")
    for name in type(settings).model_fields:
        provider = name.removesuffix("_api_key")
        if provider != name and settings.provider_key(name):
            parts.append(f"{SPELLED.get(provider, provider.capitalize())} key set")
    # As the server judges: commas alone are no token, and it then does not start at all.
    meant = bool(settings.token.get_secret_value())
    ok = bool(settings.tokens) if meant else is_loopback(settings.host)
    return ok, ", ".join(parts), "Set CODEQA_TOKEN: any address but this machine's own needs one."


def data(settings: Settings) -> Result:
    """Whether the data folder can be written and has room."""
    folder = settings.data_dir
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    used = folder_bytes(folder) if folder.exists() else 0
    detail = f"{folder}, {used / 1e6:,.1f} MB used, {free / 1e9:,.1f} GB free"
    if not existing.is_dir() or not _writable(existing):
        return False, f"{detail}, not writable", "Set CODEQA_DATA to a folder you may write to."
    return free >= LITTLE_SPACE, detail, "Free some space, or set CODEQA_DATA to another disk."


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def grammars() -> Result:
    """Whether every grammar loads."""
    keys = [language.key for language in languages().values() if language.grammar]
    broken = []
    for key in keys:
        try:
            grammar(key)
        except Exception as error:
            # A grammar of another version fails in its own ways; all mean the same here.
            broken.append(f"{key} ({error})")
    if broken:
        detail = f"{len(broken)} of {len(keys)} grammars fail: {'; '.join(broken)}"
        return False, detail, "Install the versions that requirements.txt names."
    return True, f"{len(keys)} grammars load, {len(languages())} languages known", ""


def tables() -> Result:
    """Whether LanceDB writes and reads a table."""
    import lancedb

    with tempfile.TemporaryDirectory() as folder:
        table = lancedb.connect(folder).create_table("check", [{"text": "a"}])
        found = table.count_rows()
    return found == 1, f"{lancedb.__version__} writes and reads", "Install it again."


def embedding() -> Result:
    """Whether the fast embedding loads and encodes."""
    start = time.perf_counter()
    fast = fast_embedding()
    if fast is None:
        return True, "none installed; text and symbols are searched", ""
    milliseconds = (time.perf_counter() - start) * 1000
    length = math.hypot(*fast.embed_query("read the configuration file").tolist())
    detail = f"{fast.name} version {fast.version}, {fast.dimension} dimensions"
    detail += f", ready in {milliseconds:.0f} ms"
    sound = math.isfinite(length) and length > 0
    return sound, detail, "Install CodeQA again: its embedding knows no plain English word."


def port(settings: Settings) -> Result:
    """Whether the page's port is free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            detail = f"{settings.port} on {settings.host}: {error.strerror}"
            return False, detail, "Stop what uses it, or set CODEQA_PORT to another one."
    return True, f"{settings.port} on {settings.host} is free", ""


def model(settings: Settings) -> Result:
    """The model that answers, its host and where the key comes from; nothing is sent."""
    models = Models(settings)
    if problem := models.problem():
        return False, problem.removesuffix("."), "Pick the model and enter its key again."
    choice = models.current()
    if choice is None:
        return True, "none chosen; answers are put together from the code that is found", ""
    # Raises what would keep a question from being sent, such as a missing key.
    endpoint = models.endpoint(choice)
    named = str(choice) if choice.model else f"{choice}, the first of its models,"
    detail = f"{named} at {endpoint.host}, {KEYS[models.key_state(choice)]}"
    return True, f"{detail}, {CHOSEN[models.source()]}", ""


def redis(settings: Settings) -> Result:
    """Whether the Redis server keeps a value and gives it back."""
    cache = RedisCache(settings.redis_url)
    key, value = f"codeqa:doctor:{secrets.token_hex(8)}", secrets.token_hex(8)
    start = time.perf_counter()
    cache.set(key, value, CHECK_SECONDS)
    found = cache.get(key)
    milliseconds = (time.perf_counter() - start) * 1000
    cache.delete(key)
    if problem := cache.problem():
        hint = "Start it, or correct REDIS_URL; until then follow-ups find no earlier context."
        return False, problem.removesuffix("."), hint
    detail = f"{cache.address} writes and reads in {milliseconds:.1f} ms"
    return found == value, detail, "See which program answers there: it gave another value back."
