"""Log who asked when of which repository, as lines of JSON: `CODEQA_ACCESS_LOG`."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from flask import g, request

from codeqa.errors import SettingsError
from codeqa.repository.secrets import mask_secrets
from codeqa.settings import Settings
from codeqa.web.security import current_user

log = logging.getLogger(__name__)


class AccessLog:
    """Append to the file that the settings name. Raises SettingsError where that is impossible."""

    def __init__(self, settings: Settings) -> None:
        self._path, self._text = settings.access_log, settings.access_log_text
        if not os.access(Path(self._path).absolute().parent, os.W_OK):
            raise SettingsError("CODEQA_ACCESS_LOG cannot be written.", "Name another file.")

    def note(self, status: int) -> None:
        """Add a line for this request, which ended with `status`."""
        values: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "user": current_user().id,
            "at": f"{request.method} {request.url_rule}",
            "repositories": [],
            "status": status,
        }
        if "engine" in g:
            values["repositories"] = [location.id for location in g.engine.repositories]
        if self._text and status < 400:
            sent = json.dumps(request.get_json(silent=True), ensure_ascii=False)
            values["text"] = mask_secrets(g.get("question") or sent)
        try:  # opened each time, so that a program may rotate it without notice
            with open(self._path, "ab", opener=partial(os.open, mode=0o600)) as file:
                file.write(f"{json.dumps(values)}\n".encode())
        except OSError as error:
            log.error("the access log cannot be written: %s", error.strerror)
