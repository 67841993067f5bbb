"""Checks of what improves answers where it is set: model, reranker, Redis."""

from __future__ import annotations

import secrets
import time

from codeqa.doctor.check import Result
from codeqa.settings import Settings
from codeqa.state.cache import RedisCache

CHECK_SECONDS = 10.0
"""Lifetime of the value that is written into Redis and read back."""
CHOSEN = {"page": "picked by the user", "setting": "set by CODEQA_MODEL", "": "chosen"}
KEYS = {
    "stored": "with the key that was entered",
    "exported": "with the key that is exported",
    "missing": "without the key that it needs",
    "unneeded": "without a key",
}


def model(settings: Settings) -> Result:
    """The model that answers, its host and where the key comes from; nothing is sent."""
    from codeqa.llm import Models

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


def reranker(settings: Settings) -> Result:
    """The reranker that would be used; nothing is loaded."""
    from codeqa.search import reranker_status

    return reranker_status(settings)


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
