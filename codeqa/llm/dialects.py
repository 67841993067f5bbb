"""The patterns and sentences of `dialects.toml`: how servers of models and models speak."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

_TEXT = files(__package__).joinpath("dialects.toml").read_text("utf-8")
DIALECTS: dict[str, Any] = tomllib.loads(_TEXT)


@cache
def any_of(*alternatives: str) -> re.Pattern[str]:
    """Return a pattern of `alternatives`; one that nothing fits if there are none."""
    return re.compile("|".join(alternatives) or r"(?!)", re.IGNORECASE)
