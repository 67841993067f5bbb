"""How an answer cites: `[path:12-34]` as a citation, `path:12-34` as code."""

from __future__ import annotations

import re

CITATION = re.compile(r"\[((?:[^\[\]\n]|\[[^\[\]\n]*\])+):(\d{1,9})(?:-(\d{1,9}))?\]")
"""Groups: path, first line, last line when it is another one."""
CODE_LOCATION = re.compile(r"([^\s:`]+):(\d{1,9})(?:-(\d{1,9}))?")
"""The same groups; to be matched against the whole of a code span."""
